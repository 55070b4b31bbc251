/* start.c: main, signals, and other programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/windows/private.h"

#include <cpuid.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"

/* ---- main ---------------------------------------------------------------- */

int main(int argc, char **argv);
int wmain(int argc, wchar_t **wide);

int _dowildcard = 0;                     /* a '*' in a prompt is a '*' */

/* What __builtin_cpu_supports reads, in the compiler's library. That of zig
 * leaves it empty, and then it is filled here: SSE2; with the registers that
 * the system keeps, AVX, AVX2 and FMA; those of AVX-512 that kernels take. */
extern struct { unsigned vendor, type, subtype, features[1]; } __cpu_model;

static void find_instructions(void)
{
    enum { SSE2 = 4, AVX = 9, AVX2, FMA = 14, AVX512F, VL = 20, BW, DQ };
    unsigned a, b, c, d, kept, high, *f = __cpu_model.features;
    __builtin_cpu_init();
    if (*f || !__get_cpuid(1, &a, &b, &c, &d)) return;
    *f |= 1u << SSE2;
    if (!(c & bit_OSXSAVE) || !(c & bit_AVX)) return;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if ((kept & 6) != 6) return;
    *f |= 1u << AVX | (c & bit_FMA ? 1u << FMA : 0);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    if (b & bit_AVX2) *f |= 1u << AVX2;
    if ((kept & 0xE6) != 0xE6) return;
    if (b & bit_AVX512F) *f |= 1u << AVX512F;
    if (b & bit_AVX512VL) *f |= 1u << VL;
    if (b & bit_AVX512BW) *f |= 1u << BW;
    if (b & bit_AVX512DQ) *f |= 1u << DQ;
}

/* A wrong descriptor is an error, as elsewhere, not the end. */
static void go_on(const wchar_t *expression, const wchar_t *function,
                  const wchar_t *file, unsigned line, uintptr_t reserved)
{
    (void)expression, (void)function, (void)file, (void)line, (void)reserved;
}

/* Who is told of a crash is who waits for the process, and no one else. */
static LONG WINAPI end_quietly(EXCEPTION_POINTERS *e)
{
    TerminateProcess(GetCurrentProcess(), e->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
}

/* The C library's start: arguments come in UTF-16, and files would be text. */
int wmain(int argc, wchar_t **wide)
{
    char **argv = calloc((size_t)argc + 1, sizeof *argv);
    find_instructions();
    _set_invalid_parameter_handler(go_on);
    _fmode = _O_BINARY;
    for (int fd = 0; fd < 3; fd++) _setmode(fd, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    SetUnhandledExceptionFilter(end_quietly);
    for (int i = 0; argv && i < argc; i++) {
        const int n = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0,
                                          NULL, NULL);
        argv[i] = malloc((size_t)n);
        if (!argv[i]) return 1;
        WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, argv[i], n, NULL, NULL);
    }
    return argv ? main(argc, argv) : 1;
}

/* ---- signals ------------------------------------------------------------- */

static void (*volatile on_stop)(int);

/* In a thread of its own. When a window is closed, the process ends with this
 * function: the program has some seconds to stop by itself. */
static BOOL WINAPI heard(DWORD event)
{
    const bool closed = event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT;
    if (!on_stop) return FALSE;
    on_stop(closed ? SIGHUP : event == CTRL_C_EVENT ? SIGINT : SIGTERM);
    if (closed) Sleep(60000);
    return TRUE;
}

int sigaction(int number, const struct sigaction *now, struct sigaction *was)
{
    if (was) was->sa_handler = SIG_DFL;
    if (!now || number != SIGINT) return 0;
    on_stop = now->sa_handler;
    return SetConsoleCtrlHandler(heard, TRUE) ? 0 : win_failed();
}

#undef signal
void (*os_signal(int number, void (*f)(int)))(int)
{
    const bool known = number == SIGTERM || number == SIGSEGV
                    || number == SIGABRT || number == SIGFPE;
    return known ? signal(number, f) : SIG_DFL;
}

const char *strsignal(int number)
{
    return number == SIGSEGV ? "Segmentation fault"
         : number == SIGFPE ? "Floating point exception"
         : number == SIGILL ? "Illegal instruction"
         : number == SIGABRT ? "Aborted"
         : number == SIGKILL ? "Killed" : "a signal";
}

/* ---- other programs ------------------------------------------------------ */

/* An argument with the marks that a program takes off again: backslashes count
 * in front of a quotation mark alone. */
static char *quote(char *out, const char *word)
{
    *out++ = '"';
    for (const char *c = word;; c++) {
        size_t slashes = strspn(c, "\\");
        c += slashes;
        if (*c == '"') slashes = 2 * slashes + 1;
        else if (!*c) slashes *= 2;
        memset(out, '\\', slashes);
        out += slashes;
        if (!*c) break;
        *out++ = *c;
    }
    *out++ = '"';
    return out;
}

/* All of them as one line, in UTF-16. */
static wchar_t *win_line(const char *const *argv)
{
    size_t n = 1;
    for (int i = 0; argv[i]; i++) n += 2 * strlen(argv[i]) + 3;
    char *line = malloc(n), *at = line;
    wchar_t *wide = malloc(n * sizeof *wide);
    for (int i = 0; line && argv[i]; i++) {
        if (i) *at++ = ' ';
        at = quote(at, argv[i]);
    }
    if (line) *at = '\0';
    if (line && wide
        && !MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, (int)n)) *wide = 0;
    free(line);
    if (!line) free(wide);
    return line ? wide : NULL;
}

/* Leave out of a PATH what is not whole: an empty entry is the folder where we
 * are. */
static void keep_whole(wchar_t *path)
{
    wchar_t *to = path;
    for (const wchar_t *from = path; *from;) {
        const size_t n = wcscspn(from, L";");
        const bool whole = n > 2 && (from[1] == ':' || *from == '\\'
                                     || *from == '/');
        const wchar_t *next = from + n + (from[n] == ';');
        if (whole) {
            memmove(to, from, n * sizeof *to);
            to += n;
            *to++ = ';';
        }
        from = next;
    }
    if (to > path) to--;
    *to = 0;
}

/* The file of a program: on PATH alone, not in the folder where we are. */
static wchar_t *win_find(const char *name)
{
    enum { MOST = 32768 };
    wchar_t *found = malloc(MOST * sizeof *found), *path = NULL, wide[4096];
    const DWORD n = GetEnvironmentVariableW(L"PATH", NULL, 0);
    path = malloc((n + 2) * sizeof *path);
    if (path && !GetEnvironmentVariableW(L"PATH", path, n)) *path = 0;
    if (path) keep_whole(path);
    const bool ok = found && path
        && MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 4096)
        && SearchPathW(path, wide, L".exe", MOST, found, NULL);
    if (!ok) win_failed();
    if (!ok) free(found);
    free(path);
    return ok ? found : NULL;
}

static wchar_t *win_self(void)
{
    enum { MOST = 32768 };
    wchar_t *path = malloc(MOST * sizeof *path);
    if (path) GetModuleFileNameW(NULL, path, MOST);
    return path;
}

HANDLE win_start(const char *const *argv, const HANDLE std[3])
{
    STARTUPINFOW s = {.cb = sizeof s, .dwFlags = STARTF_USESTDHANDLES,
                      .hStdInput = std[0], .hStdOutput = std[1],
                      .hStdError = std[2]};
    PROCESS_INFORMATION p;
    wchar_t *line = argv ? win_line(argv) : _wcsdup(GetCommandLineW());
    for (int i = 0; i < 3; i++)
        if (std[i]) SetHandleInformation(std[i], HANDLE_FLAG_INHERIT,
                                         HANDLE_FLAG_INHERIT);
    wchar_t *program = argv ? win_find(argv[0]) : win_self();
    const bool ok = line && program && CreateProcessW(program, line, NULL,
        NULL, TRUE, CREATE_NEW_PROCESS_GROUP, NULL, NULL, &s, &p);
    if (!ok && program) win_failed();
    free(line);
    free(program);
    if (ok) CloseHandle(p.hThread);
    return ok ? p.hProcess : NULL;
}

enum { CHILDREN = 64 };
static struct { HANDLE process; pid_t pid; } child[CHILDREN];

long long win_child(HANDLE process)
{
    for (int i = 0; i < CHILDREN; i++) {
        if (child[i].process) continue;
        child[i].process = process;
        return child[i].pid = (pid_t)GetProcessId(process);
    }
    errno = EAGAIN;
    return -1;
}

static int find_child(pid_t pid)
{
    int i = 0;
    while (i < CHILDREN && (!child[i].process || child[i].pid != pid)) i++;
    return i;
}

/* A process that kill ended exits with this and the number of the signal. */
#define KILLED 0xE0000000u

/* What POSIX would say of an end: a signal, or a status. */
static int status_of(DWORD code)
{
    switch (code) {
    case EXCEPTION_ACCESS_VIOLATION: case EXCEPTION_STACK_OVERFLOW:
    case EXCEPTION_IN_PAGE_ERROR: case EXCEPTION_DATATYPE_MISALIGNMENT:
        return SIGSEGV;
    case EXCEPTION_FLT_DIVIDE_BY_ZERO: case EXCEPTION_INT_DIVIDE_BY_ZERO:
    case EXCEPTION_FLT_INVALID_OPERATION: return SIGFPE;
    case EXCEPTION_ILLEGAL_INSTRUCTION: return SIGILL;
    case 0xC0000374: case 0xC0000409: return SIGABRT; /* heap, fast fail */
    case CONTROL_C_EXIT: return SIGINT;
    default:
        if ((code & ~127u) == KILLED) return (int)(code & 127);
        return (code && !(code & 255) ? 1 : (int)(code & 255)) << 8;
    }
}

pid_t fork(void)
{
    errno = ENOSYS;
    return -1;
}

pid_t waitpid(pid_t pid, int *status, int how)
{
    const int i = find_child(pid);
    DWORD code = 0;
    if (i == CHILDREN) return errno = ECHILD, -1;
    if (WaitForSingleObject(child[i].process, how & WNOHANG ? 0 : INFINITE)
        == WAIT_TIMEOUT) return 0;
    GetExitCodeProcess(child[i].process, &code);
    CloseHandle(child[i].process);
    child[i].process = NULL;
    if (status) *status = status_of(code);
    return pid;
}

int kill(pid_t pid, int number)
{
    const int i = find_child(pid);
    if (i == CHILDREN) return errno = ESRCH, -1;
    /* it leads a group: to a program of ours this is SIGTERM, see `heard` */
    if (number == SIGTERM
        && GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, (DWORD)pid)) return 0;
    if (TerminateProcess(child[i].process, KILLED | (unsigned)number)) return 0;
    return win_failed();
}

char **os_environ;

int posix_spawn(pid_t *pid, const char *path, const void *actions,
                const void *attributes, char *const *argv, char *const *env)
{
    const HANDLE std[3] = {GetStdHandle(STD_INPUT_HANDLE),
                           GetStdHandle(STD_OUTPUT_HANDLE),
                           GetStdHandle(STD_ERROR_HANDLE)};
    (void)path, (void)actions, (void)attributes, (void)env;
    fflush(NULL);
    const HANDLE h = win_start((const char *const *)argv, std);
    if (!h) return errno;
    *pid = win_child(h);
    return *pid < 0 ? errno : 0;
}

/* ---- os.h ---------------------------------------------------------------- */

bool os_has_program(const char *name)
{
    wchar_t *file = win_find(name);
    free(file);
    return file != NULL;
}

/* Our end of what is written to it never waits: a stop must be heard. */
int os_start(const char *const *argv, bool reads, int said, pid_t *pid,
             int *ours)
{
    int ends[2];
    *ours = -1;
    if (_pipe(ends, 1 << 18, _O_BINARY | _O_NOINHERIT)) return errno;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const HANDLE none = (HANDLE)_get_osfhandle(nothing);
    const HANDLE theirs = (HANDLE)_get_osfhandle(ends[reads]);
    const HANDLE std[3] = {reads ? none : theirs, reads ? theirs : none,
                           (HANDLE)_get_osfhandle(said)};
    const HANDLE h = win_start(argv, std);
    const int error = errno;
    _close(nothing);
    _close(ends[reads]);
    *ours = ends[!reads];
    if (!h) return error;
    DWORD mode = PIPE_NOWAIT;
    if (!reads) SetNamedPipeHandleState((HANDLE)_get_osfhandle(*ours), &mode,
                                        NULL, NULL);
    *pid = win_child(h);
    return *pid < 0 ? errno : 0;
}
