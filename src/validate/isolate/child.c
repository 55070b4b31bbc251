/* child.c: see child.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/isolate/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "validate/isolate/mirror.h"

bool child_possible(const child_of *k)
{
    (void)k;
    signal(SIGCHLD, SIG_DFL);            /* ignored: no one to be waited for */
    return true;
}

watch_board *child_board(void)
{
    void *p = mmap(NULL, sizeof(watch_board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

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

static void be_child(const child_of *k)
{
    tt_ctx *ctx = k->ctx;
    int outside = dup(STDERR_FILENO);
    os_end_with_parent();                /* no supervisor, no limit of time */
    signal(SIGINT, SIG_IGN);             /* a terminal says them to both; */
    signal(SIGHUP, SIG_IGN);             /* the supervisor says SIGTERM */
    dup2(k->w->prints, STDOUT_FILENO);
    dup2(k->w->prints, STDERR_FILENO);
    if (!ctx->warn) {
        ctx->warn = warn_outside;
        ctx->warn_user = &outside;
    }
    listen_for_faults(k->w->board);
    child_work(k);
    exit(0);
}

tt_status child_start(const child_of *k, pid_t *pid, int *events)
{
    int ends[2];
    fflush(NULL);                        /* or both would write it */
    if (pipe(ends))
        return tt_fail(k->ctx, TT_EIO, "no pipe for the process of a backend: "
                       "%s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    k->w->events = ends[1];
    *pid = fork();
    if (*pid == 0) {
        close(ends[0]);
        be_child(k);
    }
    const int error = errno;
    close(ends[1]);
    *events = ends[0];
    if (*pid > 0) return TT_OK;
    close(ends[0]);
    return tt_fail(k->ctx, TT_EIO, "no process for a backend: %s",
                   strerror(error));
}

/* ---- what a backend has started ------------------------------------------ */

/* Processes that a backend leaves are ours when its own is gone: where the
 * system can, they become children of this one, elsewhere they are in a group
 * with it. Ones that were there before belong to the program that called us. */
int child_adopt(int yes)
{
    return os_adopt(yes);
}

child_family child_family_now(void)
{
    child_family f;
    f.n = os_children(f.pid, FAMILY_MOST);
    return f;
}

static bool holds_child(const child_family *f, pid_t pid)
{
    int i = 0;
    while (i < f->n && f->pid[i] != pid) i++;
    return i < f->n;
}

/* The children of one that is ended come to us: until there are none. */
void child_end_family(const child_family *before, pid_t child)
{
    if (before->n < 0) kill(-child, SIGKILL);
    for (bool any = before->n >= 0 && before->n < FAMILY_MOST; any;) {
        const child_family f = child_family_now();
        any = false;
        for (int i = 0; i < f.n; i++) {
            if (holds_child(before, f.pid[i])) continue;
            kill(f.pid[i], SIGKILL);
            any = waitpid(f.pid[i], NULL, 0) == f.pid[i] || any;
        }
    }
}
