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

/* What a backend prints goes where messages do: standard output is that of the
 * report. */
static void be_child(const child_of *k)
{
    os_end_with_parent();                /* no supervisor, no limit of time */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);    /* a crash loses no line */
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

void child_end_family(pid_t child)
{
    kill(-child, SIGKILL);
}
