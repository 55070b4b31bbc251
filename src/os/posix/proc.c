/* proc.c: what Linux says in /proc and /sys of its machine and of this process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Elsewhere these files are not there, and all is unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

/* ---- lines --------------------------------------------------------------- */

/* What follows `name` at the beginning of a line; false: no such line. */
static bool line_of(const char *path, const char *name, char *value, size_t n)
{
    char line[512];
    const size_t len = strlen(name);
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = !strncmp(line, name, len);
    if (f) fclose(f);
    if (found) snprintf(value, n, "%s", line + len);
    return found;
}

/* The number there; 0: none. */
static int64_t number_after(const char *path, const char *name)
{
    char value[64];
    return line_of(path, name, value, sizeof value) ? strtoll(value, NULL, 10)
                                                    : 0;
}

void os_cpu_name(char *buf, size_t n)
{
    char value[256];
    const char *colon = line_of("/proc/cpuinfo", "model name", value,
                                sizeof value) ? strchr(value, ':') : NULL;
    snprintf(buf, n, "%s", colon ? colon + 1 + strspn(colon + 1, " \t") : "");
    buf[strcspn(buf, "\n")] = '\0';
}

int64_t os_memory_anonymous(void)
{
    const int64_t n = number_after("/proc/self/smaps_rollup", "Anonymous:");
    return n ? 1024 * n : os_memory_held().anonymous;
}

os_held os_memory_held(void)
{
    static const char status[] = "/proc/self/status";
    return (os_held){
        .anonymous = 1024 * number_after(status, "RssAnon:"),
        .file = 1024 * number_after(status, "RssFile:"),
        .mapped = 1024 * number_after(status, "VmSize:"),
        .threads = (int)number_after(status, "Threads:"),
    };
}

int64_t os_swap_free(void)
{
    return 1024 * number_after("/proc/meminfo", "SwapFree:");
}

/* ---- control groups ------------------------------------------------------ */

/* A group of this process, or one that contains it. */
typedef void (*group_fn)(void *user, const char *folder);

/* `group` and all that contain it. In a container it may not exist under this
 * name, and then the root is the container's own. */
static void levels(const char *root, const char *mount, const char *group,
                   group_fn ask, void *user)
{
    char name[4096], folder[3 * 4096];
    snprintf(name, sizeof name, "%s", group);
    for (char *end = name + strlen(name); end; end = strrchr(name, '/')) {
        *end = '\0';
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root, mount,
                 name);
        ask(user, folder);
    }
}

/* Is `one` among "cpu,cpuacct"? */
static bool in_list(const char *list, const char *one)
{
    const size_t len = strlen(one);
    for (const char *c = list; *c; c += *c == ',') {
        const size_t n = strcspn(c, ",");
        if (n == len && !memcmp(c, one, n)) return true;
        c += n;
    }
    return false;
}

/* A line of /proc/self/cgroup: "0::/a/b" (version 2) or "4:cpu,cpuacct:/a"
 * (version 1). Each version is mounted at either of two places; a list may have
 * its words the other way around, "cpuacct,cpu". */
static void groups_of_line(const char *root, char *line, const char *controller,
                           group_fn ask, void *user)
{
    char mount[4096];
    char *list = strchr(line, ':');
    char *group = list ? strchr(list + 1, ':') : NULL;
    if (!group) return;
    *list++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (*list && !in_list(list, controller)) return;
    snprintf(mount, sizeof mount, "/%s", *list ? controller : "unified");
    levels(root, mount, group, ask, user);
    snprintf(mount, sizeof mount, "/%s", list);
    if (!*list) levels(root, "", group, ask, user);
    else if (strcmp(list, controller)) levels(root, mount, group, ask, user);
    if (*list && strcmp(list, "cpu,cpuacct")
        && in_list("cpu,cpuacct", controller))
        levels(root, "/cpu,cpuacct", group, ask, user);
}

static void each_group(const char *root, const char *controller, group_fn ask,
                       void *user)
{
    char line[4096], path[4096];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        groups_of_line(root, line, controller, ask, user);
    if (f) fclose(f);
}

/* A file of a group of up to two numbers, how many there are; -1: no file. */
static int in_group(const char *folder, const char *name, double *a, double *b)
{
    char path[3 * 4096 + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    const int n = fscanf(f, "%lf %lf", a, b);
    fclose(f);
    return n > 0 ? n : 0;
}

/* Version 2: "max 100000" or "150000 100000" (microseconds of CPU time, of wall
 * time). Version 1: two files, and -1 for no limit. */
static void ask_cpu(void *user, const char *folder)
{
    double time = 0, period = 0, none, *quota = user;
    if (in_group(folder, "cpu.max", &time, &period) < 0) {
        in_group(folder, "cpu.cfs_quota_us", &time, &none);
        in_group(folder, "cpu.cfs_period_us", &period, &none);
    }
    if (!(time > 0 && period > 0)) return;
    if (*quota <= 0 || time / period < *quota) *quota = time / period;
}

double os_cpu_quota(const char *root)
{
    double quota = 0;
    each_group(root, "cpu", ask_cpu, &quota);
    return quota;
}

/* Pages of files of a group and of those in it: version 1 counts its own under
 * the plain names, version 2 has no others. */
static int64_t pages_of_files(const char *folder)
{
    char path[3 * 4096 + 64];
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    const int64_t all = number_after(path, "total_inactive_file ")
                      + number_after(path, "total_active_file ");
    return all ? all : number_after(path, "inactive_file ")
                     + number_after(path, "active_file ");
}

/* A group's limit, less what it uses next to pages of files. */
static void ask_memory(void *user, const char *folder)
{
    double most, used, none;
    int64_t *least = user;
    if (in_group(folder, "memory.max", &most, &none) < 1
        && in_group(folder, "memory.limit_in_bytes", &most, &none) < 1) return;
    if (in_group(folder, "memory.current", &used, &none) < 1
        && in_group(folder, "memory.usage_in_bytes", &used, &none) < 1) return;
    used -= (double)pages_of_files(folder);
    const double left = most - (used > 0 ? used : 0);
    if (left < (double)*least) *least = left > 0 ? (int64_t)left : 0;
}

int64_t os_memory_granted(const char *root)
{
    int64_t least = INT64_MAX;
    each_group(root, "memory", ask_memory, &least);
    return least;
}
