/* supervisor.c: a backend in a process of its own, seen from outside.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The work is done in a child, with the same code and the same memory as
 * without one; what it adds to its report comes here through a pipe
 * (mirror.h). So nothing but the process is different for a backend that
 * behaves. The child is made before anything was computed, when the program
 * has one thread: a fork keeps only the thread that calls it, and OpenMP's
 * others, or a device that was opened, would be missing in the child. For the
 * same reason no call has a child of its own: a backend may have threads and a
 * device, and lives as long as its process.
 *
 * When the child dies, or stays in a call for too long, the board says in
 * which; that becomes a verdict, and another child goes on after it. An
 * operator that ends three of them, or hangs once, is not called again. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "validate/isolate/mirror.h"

enum {
    TICK_MS = 50,
    PATIENCE = 2,          /* seconds when the user wants an end              */
    PRINTS_MOST = 1 << 28, /* bytes printed in one call                       */
    GOODBYE_MS = 10000     /* from the end of the work to that of the process */
};

enum { FAMILY_MOST = 64 };
typedef struct family {
    int n;
    pid_t pid[FAMILY_MOST];
} family;

typedef struct supervisor {
    tt_ctx *ctx;
    tt_report *report;
    watch w;
    double seconds;            /* a call may take; 0: any time                */
    FILE *prints;
    pid_t child;
    int events;                /* the end that is read; -1: closed            */
    int64_t call;              /* the one in progress at the last look        */
    double waited;             /* for it, or since the user wants an end      */
    bool late, loud;           /* it was stopped for that                     */
    bool reported;             /* that the user wants an end              */
    family before;             /* children of this process that are not ours  */
    bool ended;                /* MIRROR_END came                             */
    mirror_end end;
    size_t held;
    char buffer[MIRROR_MOST];  /* pieces that are not complete                */
} supervisor;

/* ---- the child ----------------------------------------------------------- */

/* A signal handler has nowhere else to look. */
static watch_board *volatile board_here;

/* A touch next to the output says how far; then the signal comes again. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    watch_board *b = board_here;
    const int64_t at = (int64_t)(intptr_t)info->si_addr;
    (void)context;
    if (b->out && at < b->out && at >= b->out - 2 * WATCH_MARGIN)
        b->beyond = at - b->out;
    if (b->out && at >= b->out + b->bytes
        && at < b->out + b->bytes + 2 * WATCH_MARGIN)
        b->beyond = at - b->out - b->bytes + 1;
    signal(number, SIG_DFL);
}

/* On a stack of its own: the backend may have used up the other one. */
static void listen_for_faults(watch_board *b)
{
    static char stack[1 << 16];
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    board_here = b;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

static void warn_outside(void *user, const char *sentence)
{
    dprintf(*(const int *)user, "warning: %s\n", sentence);
}

static void be_child(supervisor *k, tt_isolated_fn work, void *user)
{
    tt_ctx *ctx = k->ctx;
    int outside = dup(STDERR_FILENO);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);    /* no supervisor, no limit of time */
#else
    setpgid(0, 0);
#endif
    signal(SIGINT, SIG_IGN);             /* a terminal says them to both; */
    signal(SIGHUP, SIG_IGN);             /* the supervisor says SIGTERM */
    dup2(k->w.prints, STDOUT_FILENO);
    dup2(k->w.prints, STDERR_FILENO);
    if (!ctx->warn) {
        ctx->warn = warn_outside;
        ctx->warn_user = &outside;
    }
    listen_for_faults(k->w.board);
    k->report->watch = &k->w;
    watch_enter(&k->w, PART_OPEN, 0);
    watch_begin(&k->w, OP_KINDS);        /* until its arithmetic is known */
    work(ctx, k->report, user);
    mirror_finish(&k->w, ctx);
    exit(0);
}

static tt_status supervisor_start(supervisor *k, tt_isolated_fn work,
                                  void *user)
{
    int ends[2];
    fflush(NULL);                        /* or both would write it */
    if (pipe(ends))
        return tt_fail(k->ctx, TT_EIO, "no pipe for the process of a backend: "
                       "%s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    k->w.events = ends[1];
    k->child = fork();
    if (k->child == 0) {
        close(ends[0]);
        be_child(k, work, user);
    }
    const int error = errno;
    close(ends[1]);
    k->events = ends[0];
    if (k->child > 0) return TT_OK;
    close(ends[0]);
    return tt_fail(k->ctx, TT_EIO, "no process for a backend: %s",
                   strerror(error));
}

/* ---- what a backend has started ------------------------------------------ */

/* Processes that a backend leaves are ours when its own is gone: on Linux they
 * become children of this one, elsewhere they are in a group with it. Ones that
 * were there before belong to the program that called us. */
#ifdef __linux__
static int adopt(int yes)
{
    int before = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &before);
    prctl(PR_SET_CHILD_SUBREAPER, yes);
    return before;
}

static family children(void)
{
    family f = {0};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children",
             (long)getpid());
    FILE *list = fopen(path, "r");
    for (long pid; list && f.n < FAMILY_MOST && fscanf(list, "%ld", &pid) == 1;)
        f.pid[f.n++] = (pid_t)pid;
    if (list) fclose(list);
    return f;
}

static bool supervisor_holds(const family *f, pid_t pid)
{
    int i = 0;
    while (i < f->n && f->pid[i] != pid) i++;
    return i < f->n;
}

/* The children of one that is ended come to us: until there are none. */
static void end_family(const supervisor *k)
{
    for (bool any = k->before.n < FAMILY_MOST; any;) {
        const family f = children();
        any = false;
        for (int i = 0; i < f.n; i++) {
            if (supervisor_holds(&k->before, f.pid[i])) continue;
            kill(f.pid[i], SIGKILL);
            any = waitpid(f.pid[i], NULL, 0) == f.pid[i] || any;
        }
    }
}
#else
static int adopt(int yes)
{
    return yes;
}

static family children(void)
{
    return (family){0};
}

static void end_family(const supervisor *k)
{
    kill(-k->child, SIGKILL);
}
#endif

/* ---- reading and waiting ------------------------------------------------- */

/* Every complete piece of the buffer into the report. */
static void take_pieces(supervisor *k)
{
    mirror_frame f;
    size_t at = 0;
    while (k->held - at >= sizeof f) {
        memcpy(&f, k->buffer + at, sizeof f);
        const size_t whole = sizeof f + (size_t)f.size;
        if (k->held - at < whole) break;
        if (!mirror_take(k->report, &f, k->buffer + at + sizeof f, &k->end))
            k->ended = true;
        at += whole;
    }
    memmove(k->buffer, k->buffer + at, k->held - at);
    k->held -= at;
}

/* What there is to read within `ms`. */
static void listen_once(supervisor *k, int ms)
{
    struct pollfd p = {.fd = k->events, .events = POLLIN};
    if (poll(&p, 1, ms) <= 0 || k->events < 0) return;
    const ssize_t n = read(k->events, k->buffer + k->held,
                           sizeof k->buffer - k->held);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
        close(k->events);
        k->events = -1;
        return;
    }
    k->held += (size_t)n;
    take_pieces(k);
}

static bool wants_end(const supervisor *k)
{
    return k->ctx->interrupt && *k->ctx->interrupt;
}

static double supervisor_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Stop a child that is too long in one call, prints without end, or goes on
 * when the user wants an end. Time in which this process stood still too
 * (Ctrl-Z) does not count. */
static void look_at_child(supervisor *k, double passed)
{
    const int64_t call = atomic_load(&k->w.board->calls);
    struct stat st;
    const bool counts = k->reported || (call == k->call && call % 2);
    k->waited = counts ? k->waited + (passed < 1 ? passed : 1) : 0;
    k->call = call;
    const double limit = k->reported ? PATIENCE : k->seconds;
    k->late = limit > 0 && k->waited > limit;
    k->loud = !fstat(k->w.prints, &st) && st.st_size > PRINTS_MOST;
    if (k->late || k->loud) kill(k->child, SIGKILL);
}

/* The other process writes that text meanwhile: a copy is shown. */
static void show_place(const supervisor *k)
{
    char path[sizeof k->w.board->path];
    if (!k->report->place) return;
    memcpy(path, k->w.board->path, sizeof path);
    path[sizeof path - 1] = '\0';
    k->report->place(k->report->place_user, path);
}

/* Until the child is gone; its wait status. */
static int wait_for_child(supervisor *k)
{
    int status = 0;
    bool gone = false;
    double last = supervisor_now(), end = 0;
    while (!gone) {
        listen_once(k, k->events < 0 ? 1 : TICK_MS);
        const double at = supervisor_now();
        if (!k->late && !k->loud) look_at_child(k, at - last);
        show_place(k);
        if (k->ended && end == 0) end = at;
        if (end > 0 && (at - end) * 1000 > GOODBYE_MS) kill(k->child, SIGKILL);
        if (!k->reported && wants_end(k)) {
            k->reported = true;          /* the other one ends by itself */
            k->waited = 0;
            kill(k->child, SIGTERM);
        }
        last = at;
        const pid_t who = waitpid(k->child, &status, WNOHANG);
        gone = who > 0 || (who < 0 && errno != EINTR);
    }
    end_family(k);
    for (size_t before = 0; k->events >= 0 && before != k->held + 1;) {
        before = k->held + 1;
        listen_once(k, 0);
    }
    return status;
}

/* ---- what a death means -------------------------------------------------- */

/* "killed by signal 11 (Segmentation fault)" */
static void say_how(const supervisor *k, int status, char *out, size_t n)
{
    const int64_t beyond = k->w.board->beyond;
    if (k->late)
        snprintf(out, n, "did not return within %g seconds", k->seconds);
    else if (k->loud)
        snprintf(out, n, "printed more than %d bytes in one call", PRINTS_MOST);
    else if (beyond)
        snprintf(out, n, "reached outside its output, %lld bytes %s it",
                 (long long)(beyond < 0 ? -beyond : beyond),
                 beyond < 0 ? "before" : "after");
    else if (WIFSIGNALED(status))
        snprintf(out, n, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, n, "ended the process with exit status %d",
                 WEXITSTATUS(status));
}

static const char *name_of(op_kind op)
{
    return op < OP_KINDS ? op_name(op) : "the backend";
}

/* It is not called again: the report says so once. */
static void supervisor_give_up(supervisor *k, op_kind op)
{
    tt_verdict v = {.op = name_of(op), .outcome = TT_UNCHECKED};
    k->w.given_up[op] = true;
    snprintf(v.path, sizeof v.path, "%s", name_of(op));
    snprintf(v.hint, sizeof v.hint, "not judged: its process %s %d time%s; %s "
             "is not called again", k->late || k->loud ? "was ended" : "ended",
             k->w.deaths[op], k->w.deaths[op] == 1 ? "" : "s", name_of(op));
    report_put(k->report, &v, NULL);
}

/* The verdict over a process that died, and where the next one begins. */
static void check_death(supervisor *k, int status)
{
    watch_board *b = k->w.board;
    const bool inside = atomic_load(&b->calls) % 2;
    const op_kind op = b->op < OP_KINDS ? b->op : OP_KINDS;
    char how[120];
    b->path[sizeof b->path - 1] = '\0';  /* the backend can write here too */
    b->said[sizeof b->said - 1] = '\0';
    tt_verdict v = {.op = op < OP_KINDS ? op_name(op) : "",
                    .outcome = TT_MISMATCH, .ratio = INFINITY};
    say_how(k, status, how, sizeof how);
    if (b->unit < WATCH_UNIT(PART_OPERATORS, 0)) {
        tt_fail(k->ctx, TT_EUNSUPPORTED, "%s: %s while it was opened; start it "
                "with --no-isolate under a debugger", k->report->title, how);
        return;
    }
    const bool bench = b->unit >= WATCH_UNIT(PART_BENCH, 0)
                       && b->unit < WATCH_UNIT(PART_CALLS, 0);
    const bool closing = b->unit >= WATCH_UNIT(PART_CLOSE, 0);
    if (bench) snprintf(v.path, sizeof v.path, "bench.%s", v.op);
    else snprintf(v.path, sizeof v.path, "%s", b->path);
    snprintf(v.hint, sizeof v.hint, "%s%s%s", inside ? "" : "after the call: ",
             how, closing ? " when it was closed" : "");
    if (closing) k->report->only = NULL;
    report_put(k->report, &v, NULL);
    k->w.resume = b->unit + 1;
    k->w.deaths[op]++;
    if (op < OP_KINDS && !k->w.given_up[op]
        && (k->late || k->loud || k->w.deaths[op] >= WATCH_DEATHS))
        supervisor_give_up(k, op);
}

/* Ready the board for another child. */
static void clear_board(supervisor *k)
{
    watch_board *b = k->w.board;
    atomic_store(&b->calls, 0);
    b->op = OP_KINDS;
    b->unit = b->out = b->beyond = 0;
    snprintf(b->path, sizeof b->path, "the backend");
    k->call = 0;
    k->waited = 0;
    k->late = k->loud = false;
    k->held = 0;
}

/* What the end of a child means. */
static void take_end(supervisor *k, int status)
{
    if (!k->ended && wants_end(k))
        tt_check_interrupt(k->ctx);
    else if (!k->ended)
        check_death(k, status);
    else if (status)
        tt_report_note(k->report, "the backend's process ended badly after its "
                       "work: %s %d", WIFSIGNALED(status) ? "signal"
                       : "exit status", WIFSIGNALED(status)
                       ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* One child after the other until the work is done. */
static void supervisor_keep(supervisor *k, tt_isolated_fn work, void *user)
{
    while (!k->ended && !k->ctx->status) {
        clear_board(k);
        if (supervisor_start(k, work, user)) return;
        const int status = wait_for_child(k);
        if (k->events >= 0) close(k->events);
        watch_prints(k->w.board, k->w.prints, k->w.board->op);
        take_end(k, status);
        if (!k->ended && k->w.resume > WATCH_UNIT(PART_CHUNKS, 0)) break;
    }
    if (k->ended && k->end.status)
        tt_fail(k->ctx, k->end.status, "%s", k->end.message);
}

static void say_prints(supervisor *k)
{
    const watch_board *b = k->w.board;
    if (b->printed)
        tt_report_note(k->report, "%s prints, %lld bytes in all, kept out of "
                       "this report; they begin \"%s\"", name_of(b->printed_by),
                       (long long)b->printed, b->said);
}

static int nameless_in(const char *dir, char *path, size_t n)
{
    snprintf(path, n, "%s/tether-prints-XXXXXX", dir);
    const int fd = mkstemp(path);
    if (fd >= 0) unlink(path);
    return fd;
}

/* A file without a name, where TMPDIR says, or else in /tmp. */
static FILE *supervisor_nameless(tt_ctx *ctx)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    int fd = tmp && *tmp ? nameless_in(tmp, path, sizeof path) : -1;
    if (fd < 0) fd = nameless_in("/tmp", path, sizeof path);
    if (fd < 0)
        tt_fail(ctx, TT_EIO, "%s: no file for what a backend prints: %s", path,
                strerror(errno));
    return fd < 0 ? NULL : fdopen(fd, "w+");
}

tt_status tt_validate_isolated(tt_ctx *ctx, tt_report *r, tt_isolated_fn work,
                               void *user, double seconds)
{
    TT_TRY(ctx->status);
    signal(SIGCHLD, SIG_DFL);            /* ignored: no one to be waited for */
    supervisor *k = calloc(1, sizeof *k);
    void *board = mmap(NULL, sizeof(watch_board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *prints = supervisor_nameless(ctx);
    if (ctx->status) {
        ;
    } else if (!k || board == MAP_FAILED || !prints) {
        tt_fail(ctx, TT_EIO, "cannot prepare a process for a backend: %s",
                strerror(errno));
    } else {
        *k = (supervisor){.ctx = ctx, .report = r, .seconds = seconds,
                          .prints = prints, .events = -1};
        k->w.board = board;
        k->w.prints = fileno(prints);
        k->before = children();
        r->apart = true;                 /* as in the child */
        const int adopts = adopt(1);
        supervisor_keep(k, work, user);
        adopt(adopts);
        if (!ctx->status) say_prints(k);
    }
    if (prints) fclose(prints);
    if (board != MAP_FAILED) munmap(board, sizeof(watch_board));
    free(k);
    return ctx->status;
}
