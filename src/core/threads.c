/* threads.c: see core/threads.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Why no thread pool of our own: on a busy machine OpenMP with sleeping waits
 * took about the time of one thread or less; a pool is due where ratios stay
 * over 1.2. */
#include "core/threads.h"

#include "core/parallel.h"

#include <errno.h>
#ifdef _OPENMP
#include <pthread.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#define MOST_THREADS 4096 /* as -t; more is a slip of the hand                */

/* How often GNU's OpenMP looks before a thread sleeps, some 50 us. A thread
 * that sleeps at once may wake up on the processor of the one that wakes it,
 * and wait for its turn there: a layer of 80 ms then took up to 130. */
#define LOOKS "4000"

/* ---- forks --------------------------------------------------------------- */

bool tt_forked;

#ifdef _OPENMP
static void in_child(void)
{
    tt_forked = true;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

void threads_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
}
#else
void threads_watch_forks(void)
{
}
#endif

/* ---- how they wait ------------------------------------------------------- */

#if defined _OPENMP && defined __linux__
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

/* Our arguments, as the system keeps them: one after the other, each with its
 * zero. NULL when they cannot be read. */
static char *read_arguments(size_t *size)
{
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t capacity = 4096, n = 0;
    char *text = f ? malloc(capacity) : NULL;
    while (text && (n += fread(text + n, 1, capacity - n, f)) == capacity) {
        char *larger = realloc(text, capacity *= 2);
        if (!larger) free(text);
        text = larger;
    }
    if (f) fclose(f);
    *size = n;
    return text;
}

/* The same as an array that ends with NULL; NULL when there is none. */
static char **threads_split_arguments(char *text, size_t size)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < size; i++) count += text[i] == '\0';
    char **argv = count ? malloc((count + 1) * sizeof *argv) : NULL;
    if (!argv) return NULL;
    for (size_t i = 0; i < count; i++) {
        argv[i] = text + at;
        at += strlen(text + at) + 1;
    }
    argv[count] = NULL;
    return argv;
}

/* A thread that is bound to a processor cannot start us anew: we would get that
 * processor alone. */
static bool is_bound(void)
{
    const char *bind = getenv("OMP_PROC_BIND");
    return (is_set("OMP_PROC_BIND") && strcasecmp(bind, "false"))
           || is_set("OMP_PLACES") || is_set("GOMP_CPU_AFFINITY")
           || is_set("KMP_AFFINITY");
}

/* valgrind looks at this program, and would not look at what it becomes. */
static bool is_watched(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "/vgpreload_");
}

/* A bare root has no /proc. There the kernel still says what it was asked to
 * run, and glibc hands our arguments to what runs before main. */
#ifdef __GLIBC__
static char **first_arguments;

__attribute__((constructor)) static void keep_arguments(int argc, char **argv)
{
    first_arguments = argc > 0 ? argv : NULL;
}

static void start_without_proc(void)
{
    const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (path && first_arguments) execv(path, first_arguments);
}
#else
static void start_without_proc(void)
{
}
#endif

/* LLVM's OpenMP ends the program at a number of eleven digits. */
static void bound_number(void)
{
    const char *asked = getenv("OMP_NUM_THREADS");
    char most[16];
    snprintf(most, sizeof most, "%d", MOST_THREADS);
    if (asked && strtoll(asked, NULL, 10) > MOST_THREADS)
        setenv("OMP_NUM_THREADS", most, 1);
}

void tt_threads_sleep(void)
{
    static const char *const settled[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
                                          "KMP_BLOCKTIME", "KMP_LIBRARY"};
    char path[4096];
    size_t size;
    bound_number();
    for (size_t i = 0; i < sizeof settled / sizeof *settled; i++)
        if (is_set(settled[i])) return;
    if (is_watched() || is_bound()) return;
    char *text = read_arguments(&size);
    char **argv = text ? threads_split_arguments(text, size) : NULL;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    const bool once = !setenv(settled[0], "passive", 1)
                      && !setenv(settled[1], LOOKS, 1);
    if (once && (!argv || n <= 0)) start_without_proc();
    else if (once) {
        path[n] = '\0';
        execv(path, argv);   /* by its name, which `ps` then shows ...        */
        /* ... unless that has gone since; after another error this may be an
         * emulator, which would take our first word for a program */
        if (errno == ENOENT) execv("/proc/self/exe", argv);
    }
    free(argv);
    free(text);
}
#else
void tt_threads_sleep(void)
{
}
#endif

/* ---- how many ------------------------------------------------------------ */

/* The first line of root/folder/name; false when there is none. */
static bool first_line(char *line, size_t n, const char *root,
                       const char *folder, const char *name)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s%s/%s", root, folder, name)
        >= sizeof path)
        return false;
    FILE *f = fopen(path, "r");
    bool good = f && fgets(line, (int)n, f);
    if (f) fclose(f);
    return good;
}

/* Version 2: cpu.max is "max 100000" or "150000 100000" (microseconds of CPU
 * time, of wall time). Version 1: two files, and -1 for no limit. */
static double quota_of(const char *root, const char *folder)
{
    char line[128];
    double time = 0, period = 0;
    if (first_line(line, sizeof line, root, folder, "cpu.max")) {
        if (sscanf(line, "%lf %lf", &time, &period) != 2) return 0;
    } else {
        if (first_line(line, sizeof line, root, folder, "cpu.cfs_quota_us"))
            time = strtod(line, NULL);
        if (first_line(line, sizeof line, root, folder, "cpu.cfs_period_us"))
            period = strtod(line, NULL);
    }
    return time > 0 && period > 0 ? time / period : 0;
}

static double smaller_quota(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* The smallest quota of a group and of all that contain it. `group` is cut
 * level by level; in a container it may not exist under this name, and then
 * the root is the container's own. */
static double quota_of_levels(const char *root, const char *mount, char *group)
{
    char folder[4096 + 64];
    double quota = 0;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        snprintf(folder, sizeof folder, "%s%s", mount, group);
        quota = smaller_quota(quota, quota_of(root, folder));
    }
    return quota;
}

/* Is "cpu" one of the controllers in "cpu,cpuacct"? */
static bool has_cpu(const char *controllers)
{
    for (const char *c = controllers; *c; c += *c == ',') {
        size_t n = strcspn(c, ",");
        if (n == 3 && !memcmp(c, "cpu", 3)) return true;
        c += n;
    }
    return false;
}

/* One line of /proc/self/cgroup: "0::/a/b" (version 2) or "4:cpu,cpuacct:/a"
 * (version 1). Each version is mounted at either of two places. */
static double quota_of_line(const char *root, char *line)
{
    char again[4096];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return 0;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    snprintf(again, sizeof again, "%s", group);
    if (has_cpu(controllers))
        return smaller_quota(
            quota_of_levels(root, "/sys/fs/cgroup/cpu", group),
            quota_of_levels(root, "/sys/fs/cgroup/cpu,cpuacct", again));
    if (*controllers) return 0;
    return smaller_quota(
        quota_of_levels(root, "/sys/fs/cgroup", group),
        quota_of_levels(root, "/sys/fs/cgroup/unified", again));
}

static double cpu_quota(const char *root)
{
    char line[4096], path[4096];
    double quota = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        quota = smaller_quota(quota, quota_of_line(root, line));
    if (f) fclose(f);
    return quota;
}

/* The quota in whole CPUs, at least one. */
static int threads_whole(double quota)
{
    int n = quota < 1 ? 1 : quota < 65536 ? (int)quota : 65536;
    return n + (n < quota);
}

static int threads_least(int a, int b)
{
    return a < b ? a : b;
}

tt_cores tt_cores_find(const char *root)
{
    tt_cores c = {.allowed = 1, .quota = cpu_quota(root)};
    int most = 1;   /* what OpenMP would take */
#ifdef _OPENMP
    const char *asked = getenv("OMP_NUM_THREADS");
    most = omp_get_max_threads();
    /* OpenMP ignores what is no number, and 0 */
    const bool number = asked && strtol(asked, NULL, 10) > 0;
    c.asked = number ? threads_least(most, MOST_THREADS) : 0;
    c.allowed = omp_get_num_procs();
#endif
    c.threads = c.asked ? c.asked : threads_least(most, c.allowed);
    if (c.quota > 0 && !c.asked)
        c.threads = threads_least(c.threads, threads_whole(c.quota));
    return c;
}

const char *tt_cores_reason(char *buf, size_t n, const tt_cores *c)
{
#ifdef _OPENMP
    if (c->asked)
        snprintf(buf, n, "%d, as OMP_NUM_THREADS says", c->threads);
    else if (c->quota > 0 && c->threads < c->allowed)
        snprintf(buf, n, "%d, because control groups grant %.4g of %d CPUs",
                 c->threads, c->quota, c->allowed);
    else
        snprintf(buf, n, "%d, for the CPUs this process may run on",
                 c->threads);
#else
    snprintf(buf, n, "%d, because this build has no OpenMP", c->threads);
#endif
    return buf;
}
