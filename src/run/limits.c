/* limits.c: memory that this process can still have.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three may set an end: the machine (MemAvailable and free swap), a control
 * group and those that contain it, and ulimit -v. TT_MEMORY in the environment,
 * in bytes or with K, M or G after the number, means the first two: the
 * user may know what the system cannot tell. ulimit -d is left alone, because
 * mapped weights do not count there. */
#include "os/os.h"
#include "run/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number after `name` in a file of lines "name: number kB"; 0: none. */
static int64_t line_of(const char *path, const char *name)
{
    char line[256];
    long long n = 0;
    const size_t len = strlen(name);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, len)) {
            n = strtoll(line + len, NULL, 10);
            break;
        }
    if (f) fclose(f);
    return n;
}

int64_t plan_anonymous(void)
{
    const int64_t exact = line_of("/proc/self/smaps_rollup", "Anonymous:");
    return 1024 * (exact ? exact : line_of("/proc/self/status", "RssAnon:"));
}

int64_t plan_mapped(void)
{
    return 1024 * line_of("/proc/self/status", "VmSize:");
}

int64_t plan_stacks(int threads)
{
    struct rlimit r;
    const int64_t more = threads - line_of("/proc/self/status", "Threads:");
    const bool set = !getrlimit(RLIMIT_STACK, &r) && r.rlim_cur < 1 << 30;
    return more > 0 ? more * (set ? (int64_t)r.rlim_cur : 8 << 20) : 0;
}

static void lower(plan_limit *to, int64_t bytes, const char *who)
{
    if (bytes < 0) bytes = 0;
    if (bytes < to->bytes) *to = (plan_limit){bytes, who};
}

/* A file of one number; -1: none, or "max". */
static int64_t limits_number_in(const char *folder, const char *name)
{
    char path[4400];
    long long n = -1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    if (fscanf(f, "%lld", &n) != 1) n = -1;
    fclose(f);
    return n;
}

/* Pages of files of a group and of those in it: version 1 counts its own under
 * the plain names, version 2 has no others. */
static int64_t pages_of_files(const char *path)
{
    const int64_t all = line_of(path, "total_inactive_file ")
                      + line_of(path, "total_active_file ");
    return all ? all : line_of(path, "inactive_file ")
                     + line_of(path, "active_file ");
}

/* A group's limit, less what it uses next to pages of files. */
static void ask_group(plan_limit *to, const char *folder)
{
    char path[4400];
    int64_t most = limits_number_in(folder, "memory.max");
    int64_t used = limits_number_in(folder, "memory.current");
    if (most < 0) most = limits_number_in(folder, "memory.limit_in_bytes");
    if (used < 0) used = limits_number_in(folder, "memory.usage_in_bytes");
    if (most < 0 || used < 0) return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    used -= pages_of_files(path);
    lower(to, most - (used > 0 ? used : 0), "the memory of its control group");
}

/* One line of /proc/self/cgroup: "0::/a/b" or "4:memory:/a/b". In a container
 * the group may not exist under that name: then its root is the container's. */
static void ask_groups(plan_limit *to, char *line)
{
    char folder[4300];
    char *names = strchr(line, ':');
    char *group = names ? strchr(names + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    const bool one = !strcmp(names + 1, "memory");
    if (!one && names[1]) return;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s",
                 one ? "/memory" : "", group);
        ask_group(to, folder);
    }
}

static void ask_all_groups(plan_limit *to)
{
    char line[4096];
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) ask_groups(to, line);
    if (f) fclose(f);
}

/* "3000000", "500M", "1.5G"; -1: not set, or no number. */
static int64_t asked_for(void)
{
    static const char units[] = "KMG";
    const char *text = getenv("TT_MEMORY");
    char *end;
    if (!text || !*text) return -1;
    double n = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*end && (!unit || end[1])) return -1;
    for (const char *u = units; unit && u <= unit; u++) n *= 1000;
    return n >= 0 && n < 9e18 ? (int64_t)n : -1;
}

tt_status plan_memory_check(tt_ctx *ctx)
{
    const char *text = getenv("TT_MEMORY");
    if (ctx->status || !text || !*text || asked_for() >= 0) return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "TT_MEMORY=%.60s is no amount of memory: "
                   "give a number of bytes, or one with K, M or G after it "
                   "like 20G, or leave it unset", text);
}

static plan_limit plan_machine(void)
{
    plan_limit least = {INT64_MAX, ""};
    const int64_t free_now = os_memory_available("/proc/meminfo");
    if (free_now > 0)
        lower(&least, free_now + 1024 * line_of("/proc/meminfo", "SwapFree:"),
              "the machine (MemAvailable)");
    ask_all_groups(&least);
    return least;
}

plan_limit plan_memory(int64_t before)
{
    plan_limit least = {INT64_MAX, ""};
    const int64_t asked = asked_for();
    if (asked >= 0) {
        lower(&least, asked - before, "TT_MEMORY");
        return least;
    }
    least = plan_machine();
    /* What was taken since is missing there, and part of what is planned. */
    const int64_t since = plan_anonymous() - before;
    if (since > 0 && least.bytes < INT64_MAX - since) least.bytes += since;
    return least;
}

plan_limit plan_addresses(int64_t before)
{
    plan_limit least = {INT64_MAX, ""};
    struct rlimit r;
    if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY)
        lower(&least, (int64_t)r.rlim_cur - before, "ulimit -v");
    return least;
}

tt_status tt_memory_left(tt_ctx *ctx, int64_t *bytes, const char **who)
{
    TT_TRY(plan_memory_check(ctx));
    const plan_limit l = plan_memory(plan_anonymous());
    *bytes = l.bytes;
    *who = l.who;
    return TT_OK;
}
