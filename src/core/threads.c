/* threads.c: see core/threads.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Why no thread pool of our own: on a busy machine OpenMP with sleeping waits
 * took about the time of one thread or less; a pool is due where ratios stay
 * over 1.2. */
#include "core/threads.h"

#include "core/parallel.h"
#include "os/os.h"

#ifdef _OPENMP
#include <pthread.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

#ifdef _OPENMP
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
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
    bound_number();
    for (size_t i = 0; i < sizeof settled / sizeof *settled; i++)
        if (is_set(settled[i])) return;
    if (is_watched() || is_bound()) return;
    if (!setenv(settled[0], "passive", 1) && !setenv(settled[1], LOOKS, 1))
        os_restart();
}
#else
void tt_threads_sleep(void)
{
}
#endif

/* ---- how many ------------------------------------------------------------ */

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
    tt_cores c = {.allowed = 1, .quota = os_cpu_quota(root)};
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
