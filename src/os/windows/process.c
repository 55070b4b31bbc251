/* process.c: memory, what the process is and has, libraries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/windows/private.h"

#include <dlfcn.h>
#include <io.h>
#include <psapi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------- */

/* Files that go when their memory does. */
enum { MAPPINGS = 1024 };
static struct { const void *at; HANDLE going; } mapping[MAPPINGS];
static SRWLOCK mapping_lock = SRWLOCK_INIT;

/* From `from` to `to`, each of them something or nothing: a new row, or none
 * any more. */
static void keep_file(const void *from, const void *to, HANDLE going)
{
    AcquireSRWLockExclusive(&mapping_lock);
    int i = 0;
    while (i < MAPPINGS && mapping[i].at != from) i++;
    if (i < MAPPINGS && from) CloseHandle(mapping[i].going);
    if (i < MAPPINGS) {
        mapping[i].at = to;
        mapping[i].going = going;
    }
    ReleaseSRWLockExclusive(&mapping_lock);
}

static DWORD protection_of(int protection)
{
    return protection & PROT_WRITE ? PAGE_READWRITE
         : protection ? PAGE_READONLY : PAGE_NOACCESS;
}

static void *map_file(size_t n, bool writes, int fd, off_t from)
{
    HANDLE m = CreateFileMappingW(win_handle(fd), NULL, writes ? PAGE_READWRITE
                                  : PAGE_READONLY, 0, 0, NULL);
    if (!m) return win_failed(), MAP_FAILED;
    void *p = MapViewOfFile(m, writes ? FILE_MAP_WRITE : FILE_MAP_READ,
                            (DWORD)((uint64_t)from >> 32), (DWORD)from, n);
    if (!p) win_failed();
    CloseHandle(m);
    const HANDLE going = p ? win_going(fd) : NULL;
    if (going) keep_file(NULL, p, going);
    return p ? p : MAP_FAILED;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from)
{
    (void)at;
    if (!(flags & MAP_ANONYMOUS))
        return map_file(n, protection & PROT_WRITE, fd, from);
    void *p = VirtualAlloc(NULL, n, MEM_RESERVE | MEM_COMMIT,
                           protection_of(protection));
    return p ? p : (win_failed(), MAP_FAILED);
}

/* Of memory that is no file a part may go. */
int munmap(void *p, size_t n)
{
    MEMORY_BASIC_INFORMATION i;
    if (!VirtualQuery(p, &i, sizeof i)) return win_failed();
    if (i.Type == MEM_MAPPED) {
        const int bad = win_as(UnmapViewOfFile(p));
        if (!bad) keep_file(p, NULL, NULL);
        return bad;
    }
    return win_as(i.AllocationBase == p ? VirtualFree(p, 0, MEM_RELEASE)
                                    : VirtualFree(p, n, MEM_DECOMMIT));
}

int mprotect(void *p, size_t n, int protection)
{
    DWORD before;
    return win_as(VirtualProtect(p, n, protection_of(protection), &before));
}

int madvise(void *p, size_t n, int advice)
{
    (void)p, (void)n, (void)advice;
    return 0;
}

/* ---- the process --------------------------------------------------------- */

long sysconf(int name)
{
    SYSTEM_INFO s;
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    GetSystemInfo(&s);
    if (name == _SC_PAGESIZE) return (long)s.dwPageSize;
    if (name == _SC_NPROCESSORS_ONLN) return (long)s.dwNumberOfProcessors;
    GlobalMemoryStatusEx(&m);
    return (long)(m.ullTotalPhys / s.dwPageSize);
}

int getrusage(int who, struct rusage *u)
{
    PROCESS_MEMORY_COUNTERS c;
    (void)who;
    *u = (struct rusage){0};
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &c, sizeof c))
        return win_failed();
    u->ru_maxrss = (int64_t)(c.PeakWorkingSetSize / 1024);
    u->ru_minflt = (long)c.PageFaultCount;
    return 0;
}

int getrlimit(int what, struct rlimit *l)
{
    (void)what;
    *l = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return 0;
}

int uname(struct utsname *u)
{
    *u = (struct utsname){"Windows", "10", "x86_64", ""};
    return 0;
}

int setenv(const char *name, const char *value, int over)
{
    return !over && getenv(name) ? 0 : _putenv_s(name, value);
}

int unsetenv(const char *name)
{
    return _putenv_s(name, "");
}

void *dlopen(const char *path, int how)
{
    win_name w;
    const bool blas = !strcmp(path, "libopenblas.so");
    const wchar_t *name = win_wide(&w, blas ? "libopenblas.dll" : path);
    (void)how;
    if (!name) return NULL;
    const DWORD from = wcschr(name, '\\') ? LOAD_WITH_ALTERED_SEARCH_PATH
                                          : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    win_name whole;
    if (from == LOAD_WITH_ALTERED_SEARCH_PATH
        && GetFullPathNameW(name, 4096, whole.text, NULL)) name = whole.text;
    return (void *)LoadLibraryExW(name, NULL, from);
}

void *dlsym(void *library, const char *name)
{
    return (void *)(uintptr_t)GetProcAddress((HMODULE)library, name);
}

int dlclose(void *library)
{
    return !FreeLibrary((HMODULE)library);
}

const char *dlerror(void)
{
    static char text[64];
    snprintf(text, sizeof text, "error %lu of Windows", GetLastError());
    return text;
}
