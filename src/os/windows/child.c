/* child.c: the process of a backend, which is the program once more.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A process cannot be copied here. The new one has the same words and so comes
 * to the same place; a variable says to it where it finds the board, and that
 * it is not the first. It must lie at the same address (mirror.h), as programs
 * do of which a process runs already. */
#include "os/windows/private.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "validate/isolate/child.h"
#include "validate/isolate/mirror.h"

/* In memory that both see; the board is first, where munmap gets it. */
typedef struct shared {
    watch_board board;
    watch w;
    void *base;                /* where the program lies                      */
} shared;

#define VARIABLE L"TETHER_CHILD_OF"

static HANDLE section, job;
static shared *seen;
static bool counted;           /* the first call alone finds its place again  */

static watch_board *volatile board_here;

/* A touch next to the output says how far. */
static LONG CALLBACK win_fault(EXCEPTION_POINTERS *e)
{
    const EXCEPTION_RECORD *r = e->ExceptionRecord;
    watch_board *b = board_here;
    if (r->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || !b->out)
        return EXCEPTION_CONTINUE_SEARCH;
    const int64_t at = (int64_t)r->ExceptionInformation[1];
    if (at < b->out && at >= b->out - 2 * WATCH_MARGIN)
        b->beyond = at - b->out;
    if (at >= b->out + b->bytes && at < b->out + b->bytes + 2 * WATCH_MARGIN)
        b->beyond = at - b->out - b->bytes + 1;
    return EXCEPTION_CONTINUE_SEARCH;
}

/* The handles of `section` and of the pipe. */
static void win_child_main(const child_of *k, const wchar_t *handles)
{
    wchar_t *end;
    section = (HANDLE)(uintptr_t)_wcstoui64(handles, &end, 16);
    const intptr_t events = (intptr_t)_wcstoui64(end, &end, 16);
    shared *s = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof *s);
    if (!s) return;                      /* a variable of another program */
    if (s->base != (void *)GetModuleHandleW(NULL)) exit(3);
    watch w = s->w;
    w.board = &s->board;
    w.events = _open_osfhandle(events, 0);
    board_here = w.board;
    AddVectoredExceptionHandler(1, win_fault);
    k->report->apart = true;
    const child_of own = {k->ctx, k->report, &w, k->work, k->user};
    child_work(&own);
    exit(0);
}

bool child_possible(const child_of *k)
{
    char path[4096];
    wchar_t handles[64];
    const DWORD n = GetEnvironmentVariableW(VARIABLE, handles, 64);
    SetEnvironmentVariableW(VARIABLE, NULL);
    if (n && n < 64) win_child_main(k, handles);
    const char *slash = os_program_path(path, sizeof path) ? strrchr(path, '/')
                                                           : NULL;
    const bool first = !counted;
    counted = true;
    return first && slash && !_strnicmp(slash, "/tether", 7);
}

watch_board *child_board(void)
{
    SECURITY_ATTRIBUTES s = {sizeof s, NULL, TRUE};
    section = CreateFileMappingW(INVALID_HANDLE_VALUE, &s, PAGE_READWRITE, 0,
                                 sizeof(shared), NULL);
    seen = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof *seen)
                   : NULL;
    if (!seen) win_failed();
    return seen ? &seen->board : NULL;
}

/* They end with the first process, however that ends, and with one another. */
static void win_join(HANDLE process)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = {
        .BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
    job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limit,
                            sizeof limit);
    AssignProcessToJobObject(job, process);
}

/* The same words in a new process. */
static HANDLE start_again(int events)
{
    const HANDLE to = (HANDLE)_get_osfhandle(events);
    const HANDLE said = GetStdHandle(STD_ERROR_HANDLE);
    const HANDLE std[3] = {NULL, said, said};
    wchar_t handles[64];
    SetHandleInformation(to, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    SetHandleInformation(said, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    swprintf(handles, 64, L"%llx %llx", (unsigned long long)(uintptr_t)section,
             (unsigned long long)(uintptr_t)to);
    SetEnvironmentVariableW(VARIABLE, handles);
    const HANDLE h = win_start(NULL, std);
    SetEnvironmentVariableW(VARIABLE, NULL);
    return h;
}

tt_status child_start(const child_of *k, pid_t *pid, int *events)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends))
        return tt_fail(k->ctx, TT_EIO, "no pipe for the process of a backend: "
                       "%s", strerror(errno));
    seen->w = *k->w;
    seen->base = (void *)GetModuleHandleW(NULL);
    const HANDLE h = start_again(ends[1]);
    const int error = errno;
    close(ends[1]);
    *events = ends[0];
    if (h) win_join(h);
    *pid = h ? (pid_t)win_child(h) : -1;
    if (*pid > 0) return TT_OK;
    close(ends[0]);
    return tt_fail(k->ctx, TT_EIO, "no process for a backend: %s",
                   strerror(error));
}

void child_end_family(pid_t child)
{
    (void)child;
    TerminateJobObject(job, 1);
    CloseHandle(job);
}
