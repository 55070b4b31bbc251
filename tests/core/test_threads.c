/* test_threads.c: how many threads by default, how they wait, what they visit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "core/parallel.h"
#include "core/fpenv.h"
#include "core/threads.h"
#include "os/os.h"
#include "tests/folder.h"

static tt_ctx *ctx;

/* ---- CPUs granted by control groups -------------------------------------- */

/* Write text to <folder>/<path>, with the folders on the way. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s", at(path));
    for (char *p = whole + strlen(folder) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(whole, 0777);
        *p = '/';
    }
    FILE *f = fopen(whole, "w");
    if (expect(f != NULL, "cannot write %s", whole)) {
        fputs(text, f);
        fclose(f);
    }
}

static void expect_quota(double want, const char *what)
{
    const tt_cores c = tt_cores_find(folder);
    expect(c.quota == want, "%s: a quota of %g, not %g", what, c.quota, want);
    const int whole = (int)want + (want > (int)want);
    if (want > 0 && !c.asked)
        expect(c.threads == (whole < c.allowed ? whole : c.allowed),
               "%s: %d threads of %d CPUs", what, c.threads, c.allowed);
}

static void version_2(void)
{
    put("proc/self/cgroup", "0::/a.slice/b c\n");
    expect_quota(0, "no file");
    put("sys/fs/cgroup/a.slice/b c/cpu.max", "max 100000\n");
    expect_quota(0, "no limit");
    put("sys/fs/cgroup/a.slice/b c/cpu.max", "50000 100000\n");
    expect_quota(0.5, "half a CPU");
    put("sys/fs/cgroup/a.slice/b c/cpu.max", "150000 100000\n");
    expect_quota(1.5, "one and a half");
    put("sys/fs/cgroup/a.slice/cpu.max", "1000 1000\n");
    expect_quota(1, "a smaller one above");
    put("sys/fs/cgroup/a.slice/cpu.max", "9000 1000\n");
    expect_quota(1.5, "a larger one above");
    put("sys/fs/cgroup/cpu.max", "50000 200000\n");
    expect_quota(0.25, "the root, as a container sees its own");
    put("sys/fs/cgroup/cpu.max", "nonsense\n");
    expect_quota(1.5, "a line that is none");
    put("proc/self/cgroup", "0::/not/here\n");
    put("sys/fs/cgroup/cpu.max", "75000 100000\n");
    expect_quota(0.75, "a group that is not seen from here");
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
}

static void version_1(void)
{
    put("proc/self/cgroup", "7:blkio:/x\n4:cpuset:/q\n3:cpu,cpuacct:/x/y\n"
                            "1:name=systemd:/\n0::/\n");
    expect_quota(0, "no files");
    put("sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_period_us", "100000\n");
    expect_quota(0, "-1");
    put("sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_quota_us", "225000\n");
    expect_quota(2.25, "two and a quarter");
    put("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "20000\n");
    expect_quota(2.25, "a quota without its period");
    put("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    expect_quota(0.2, "the other name of the mount");
    put("proc/self/cgroup", "3:cpuacct,cpu:/x/y\n");
    put("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    expect_quota(2.25, "the words the other way around");
    put("proc/self/cgroup", "3:cpuacct:/x\nno colon\n5:cpu\n\n");
    expect_quota(0, "lines that say nothing of CPUs");
    put("proc/self/cgroup", "");
    expect_quota(0, "an empty list");
}

static void expect_granted(int64_t want, const char *what)
{
    const int64_t n = os_memory_granted(folder);
    expect(n == want, "%s: %lld bytes, not %lld", what, (long long)n,
           (long long)want);
}

static void memory_granted(void)
{
    put("proc/self/cgroup", "0::/m/n\n");
    expect_granted(INT64_MAX, "no files");
    put("sys/fs/cgroup/m/n/memory.max", "max\n");
    put("sys/fs/cgroup/m/n/memory.current", "100\n");
    expect_granted(INT64_MAX, "max");
    put("sys/fs/cgroup/m/n/memory.max", "5000\n");
    expect_granted(4900, "what is left");
    put("sys/fs/cgroup/m/n/memory.stat", "anon 1\ninactive_file 20\n"
                                         "active_file 30\n");
    expect_granted(4950, "next to pages of files");
    put("sys/fs/cgroup/m/memory.max", "1000\n");
    put("sys/fs/cgroup/m/memory.current", "3000\n");
    expect_granted(0, "a group above that is full");
    put("proc/self/cgroup", "4:memory:/k\n");
    put("sys/fs/cgroup/memory/k/memory.limit_in_bytes", "7000\n");
    put("sys/fs/cgroup/memory/k/memory.usage_in_bytes", "2000\n");
    put("sys/fs/cgroup/memory/k/memory.stat", "inactive_file 1\n"
        "total_inactive_file 100\ntotal_active_file 400\n");
    expect_granted(5500, "version 1");
    put("proc/self/cgroup", "");
}

static void default_threads(void)
{
    char why[128];
    const tt_cores c = tt_cores_find("");
    expect(c.threads >= 1 && c.allowed >= 1, "%d threads, %d CPUs", c.threads,
           c.allowed);
    expect(ctx->nthreads == c.threads, "a context has %d threads, not %d",
           ctx->nthreads, c.threads);
    tt_cores_reason(why, sizeof why, &c);
    expect(atoi(why) == c.threads && strchr(why, ','), "reason: %s", why);
#ifdef _OPENMP
    setenv("OMP_NUM_THREADS", "3", 1);   /* OpenMP itself has read it before */
    expect(tt_cores_find(folder).asked >= 1, "OMP_NUM_THREADS is not seen");
    unsetenv("OMP_NUM_THREADS");
#endif
}

/* ---- loops --------------------------------------------------------------- */

static unsigned char visits[1000];
static int bad_ids;

static void visit(int64_t i)
{
    visits[i]++;
    if (tt_thread_id() < 0 || tt_thread_id() >= ctx->nthreads) bad_ids++;
}

static void expect_visits(int64_t n, const char *loop)
{
    int wrong = 0;
    for (int64_t i = 0; i < 1000; i++) wrong += visits[i] != (i < n);
    expect(!wrong && !bad_ids, "%s to %d, %d threads: %d indices not visited "
           "once, %d bad ids", loop, (int)n, ctx->nthreads, wrong, bad_ids);
    memset(visits, 0, sizeof visits);
    bad_ids = 0;
}

static void every_index_once(void)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 101, 1000};
    static const int threads[] = {1, 2, 3, 7, 16};
    const int before = ctx->nthreads;
    for (int k = 0; k < 5 * 8; k++) {
        const int64_t n = sizes[k % 8];
        ctx->nthreads = threads[k / 8];
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < n; i++) visit(i);
        expect_visits(n, "static");
        for (int64_t work = 0; work <= 1 << 20; work += 1 << 20) {
            TT_PARALLEL_FOR_WORK(ctx, work)
            for (int64_t i = 0; i < n; i++) visit(i);
            expect_visits(n, "work");
            TT_PARALLEL_FOR_DYNAMIC(ctx, work)
            for (int64_t i = 0; i < n; i++) visit(i);
            expect_visits(n, "dynamic");
        }
    }
    ctx->nthreads = before;
}

/* ---- waiting ------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A loop, and a pause in which threads that run in circles are seen: each
 * spins for some milliseconds. */
static void rest(void)
{
    const struct timespec pause = {0, 10000000};
    TT_PARALLEL_FOR_DYNAMIC(ctx, 1 << 30)
    for (int64_t i = 0; i < 100; i++) visit(i);
    nanosleep(&pause, NULL);
}

/* In CPU time, which other programs do not change much. */
static void waiting_costs_nothing(void)
{
    const int before = ctx->nthreads;
    ctx->nthreads = 2;
    rest();   /* threads are started */
    const double start = cpu_seconds();
    for (int k = 0; k < 30; k++) rest();
    const double used = cpu_seconds() - start;
    expect(used < 0.05, "30 short loops and 0.3 s of rest took %.3f s of CPU "
           "time: threads spin", used);
    memset(visits, 0, sizeof visits);
    ctx->nthreads = before;
#if defined _OPENMP && defined __linux__
    expect(getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"),
           "the program was not started anew");
#endif
}

/* OpenMP's threads are not in the child: it works without them. */
static void fork_after_use(void)
{
    enum { N = 1000 };
    int seen[N], sum = 0, status = 0;
    const int threads = ctx->nthreads;
    ctx->nthreads = 2;
    for (int turn = 0; turn < 2; turn++) {
        const pid_t child = turn ? fork() : 0;
        if (child) {
            expect(waitpid(child, &status, 0) == child && WIFEXITED(status)
                   && WEXITSTATUS(status) == 7, "a child: status %d", status);
            ctx->nthreads = threads;
            return;
        }
        if (turn) alarm(20);
        tt_fpenv_begin_all(ctx->nthreads);
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < N; i++) seen[i] = 1;
        for (int i = 0; i < N; i++) sum += seen[i];
        if (turn) _exit(sum == 2 * N ? 7 : 8);
    }
}

int main(void)
{
    ctx = test_begin("core/threads");
    fork_after_use();
    if (!folder_make()) return test_end();
    version_2();
    version_1();
    memory_granted();
    default_threads();
    every_index_once();
    waiting_costs_nothing();
    folder_remove();
    return test_end();
}
