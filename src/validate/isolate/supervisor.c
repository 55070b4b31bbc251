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
 * operator that ends three of them, or hangs once, is called once more at most,
 * in whole chunks. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "validate/isolate/child.h"
#include "validate/isolate/mirror.h"

enum {
    TICK_MS = 50,
    PATIENCE = 2,          /* seconds when the user wants an end              */
    GOODBYE_MS = 10000     /* from the end of the work to that of the process */
};

typedef struct supervisor {
    tt_ctx *ctx;
    tt_report *report;
    watch w;
    double seconds;            /* a call may take; 0: any time                */
    pid_t child;
    int events;                /* the end that is read; -1: closed            */
    int64_t call;              /* the one in progress at the last look        */
    double waited;             /* for it, or since the user wants an end      */
    bool late;                 /* it was stopped for that                     */
    bool reported;             /* that the user wants an end              */
    bool ended;                /* MIRROR_END came                             */
    mirror_end end;
    size_t held;
    char buffer[MIRROR_MOST];  /* pieces that are not complete                */
} supervisor;

void child_work(const child_of *k)
{
    k->report->watch = k->w;
    watch_enter(k->w, PART_OPEN, 0);
    watch_begin(k->w, OP_KINDS);         /* until its arithmetic is known */
    k->work(k->ctx, k->report, k->user);
    mirror_finish(k->w, k->ctx);
}

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

/* Stop a child that is too long in one call, or goes on when the user wants an
 * end. Time in which this process stood still too (Ctrl-Z) does not count. */
static void look_at_child(supervisor *k, double passed)
{
    const int64_t call = atomic_load(&k->w.board->calls);
    const bool counts = k->reported || (call == k->call && call % 2);
    k->waited = counts ? k->waited + (passed < 1 ? passed : 1) : 0;
    k->call = call;
    const double limit = k->reported ? PATIENCE : k->seconds;
    k->late = limit > 0 && k->waited > limit;
    if (k->late) kill(k->child, SIGKILL);
}

/* The other process writes that text meanwhile: a copy is shown. */
static void show_place(const supervisor *k)
{
    char path[sizeof k->w.board->path];
    if (!k->report->wish.place) return;
    memcpy(path, k->w.board->path, sizeof path);
    path[sizeof path - 1] = '\0';
    k->report->wish.place(k->report->wish.user, path);
}

/* Until the child is gone; its wait status. */
static int wait_for_child(supervisor *k)
{
    int status = 0;
    bool gone = false;
    double last = tt_now(), end = 0;
    while (!gone) {
        listen_once(k, k->events < 0 ? 1 : TICK_MS);
        const double at = tt_now();
        if (!k->late) look_at_child(k, at - last);
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
    child_end_family(k->child);
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
    snprintf(v.hint, sizeof v.hint, "not checked: its process %s %d time%s; %s "
             "is not called again", k->late ? "was ended" : "ended",
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
    tt_verdict v = {.op = op < OP_KINDS ? op_name(op) : "",
                    .outcome = TT_MISMATCH, .ratio = INFINITY};
    say_how(k, status, how, sizeof how);
    if (b->unit < WATCH_UNIT(PART_OPERATORS, 0)) {
        tt_fail(k->ctx, TT_EUNSUPPORTED, "%s: %s while it was opened; start it "
                "with --no-isolate under a debugger", k->report->title, how);
        return;
    }
    const bool closing = b->unit >= WATCH_UNIT(PART_CLOSE, 0);
    snprintf(v.path, sizeof v.path, "%s", b->path);
    snprintf(v.hint, sizeof v.hint, "%s%s%s", inside ? "" : "after the call: ",
             how, closing ? " when it was closed" : "");
    if (closing) k->report->wish.only = NULL;
    report_put(k->report, &v, NULL);
    k->w.resume = b->unit + 1;
    k->w.deaths[op]++;
    if (op < OP_KINDS && !k->w.given_up[op]
        && (k->late || k->w.deaths[op] >= WATCH_DEATHS))
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
    k->late = false;
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
        const child_of own = {k->ctx, k->report, &k->w, work, user};
        if (child_start(&own, &k->child, &k->events)) return;
        const int status = wait_for_child(k);
        if (k->events >= 0) close(k->events);
        take_end(k, status);
        if (!k->ended && k->w.resume > WATCH_UNIT(PART_CHUNKS, 0)) break;
    }
    if (k->ended && k->end.status)
        tt_fail(k->ctx, k->end.status, "%s", k->end.message);
}

tt_status tt_validate_isolated(tt_ctx *ctx, tt_report *r, tt_isolated_fn work,
                               void *user, double seconds)
{
    TT_TRY(ctx->status);
    const child_of own = {ctx, r, NULL, work, user};
    if (!child_possible(&own)) {
        tt_report_note(r, "the backend ran in this process: this system starts "
                       "no other for a program that is not tether");
        return work(ctx, r, user);
    }
    supervisor *k = calloc(1, sizeof *k);
    watch_board *board = child_board();
    if (!k || !board) {
        tt_fail(ctx, TT_EIO, "cannot prepare a process for a backend: %s",
                strerror(errno));
    } else {
        *k = (supervisor){.ctx = ctx, .report = r, .seconds = seconds,
                          .events = -1};
        k->w.board = board;
        r->apart = true;                 /* as in the child */
        supervisor_keep(k, work, user);
    }
    if (board) munmap(board, sizeof *board);
    free(k);
    return ctx->status;
}
