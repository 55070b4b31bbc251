/* wasm.c: see system.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wasm_simd128.h>

static int none(void)
{
    errno = ENOSYS;
    return -1;
}

/* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, and 0 when the product is rounded. */
bool os_fuses(void)
{
    static volatile float a = 1 + 0x1p-12f, c = -(1 + 0x1p-11f);
    const v128_t x = wasm_f32x4_splat(a), z = wasm_f32x4_splat(c);
    return wasm_f32x4_extract_lane(wasm_f32x4_relaxed_madd(x, x, z), 0)
           == 0x1p-24f;
}

/* ---- memory -------------------------------------------------------------- */

void *os_mmap(void *at, size_t n, int protection, int flags, int fd,
              off_t from)
{
    (void)at, (void)protection;
    char *p = aligned_alloc(64, (n + 63) / 64 * 64);
    if (!p) return errno = ENOMEM, MAP_FAILED;
    if (flags & MAP_ANONYMOUS) return memset(p, 0, n);
    for (size_t got = 0; got < n;) {
        const ssize_t k = pread(fd, p + got, n - got, from + (off_t)got);
        if (k <= 0) return free(p), MAP_FAILED;
        got += (size_t)k;
    }
    return p;
}

int os_munmap(void *p, size_t n)
{
    (void)n;
    free(p);
    return 0;
}

int os_mprotect(void *p, size_t n, int protection)
{
    (void)p, (void)n, (void)protection;
    return 0;
}

int os_madvise(void *p, size_t n, int advice)
{
    (void)p, (void)n, (void)advice;
    return 0;
}

/* ---- files --------------------------------------------------------------- */

/* What was opened, by its descriptor, to be opened once more. */
enum { FILES = 64, LONGEST = 256 };
static char names[FILES][LONGEST];
static int ways[FILES];

#undef open
int os_open(const char *path, int flags, ...)
{
    const int fd = open(path, flags, 0666);
    if (fd < 0 || fd >= FILES) return fd;
    names[fd][0] = '\0';
    if (strlen(path) < LONGEST) strcpy(names[fd], path);
    ways[fd] = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    return fd;
}

int dup(int fd)
{
    const bool known = fd >= 0 && fd < FILES && *names[fd];
    return known ? os_open(names[fd], ways[fd]) : none();
}

int os_fcntl(int fd, int what, ...)
{
    return what == F_DUPFD_CLOEXEC ? dup(fd) : 0;
}

int dup2(int fd, int to)
{
    (void)fd, (void)to;
    return none();
}

int pipe(int ends[2])
{
    (void)ends;
    return none();
}

int flock(int fd, int how)
{
    (void)fd, (void)how;
    return 0;
}

int os_statvfs(const char *path, struct statvfs *v)
{
    (void)path;
    *v = (struct statvfs){UINT64_C(1) << 40, 1};
    return 0;
}

char *os_realpath(const char *path, char *out)
{
    struct stat st;
    if (stat(path, &st)) return NULL;
    return out ? strcpy(out, path) : strdup(path);
}

static void wasm_fill(char *pattern)
{
    static uint32_t state = 12345;
    for (char *c = pattern + strlen(pattern) - 6; *c; c++) {
        state = state * 69069 + 1;
        *c = "abcdefghijklmnopqrstuvwxyz012345"[state >> 27];
    }
}

int os_mkstemp(char *pattern)
{
    wasm_fill(pattern);
    return os_open(pattern, O_RDWR | O_CREAT | O_EXCL);
}

char *os_mkdtemp(char *pattern)
{
    wasm_fill(pattern);
    return mkdir(pattern, 0700) ? NULL : pattern;
}

ssize_t os_send(int fd, const void *p, size_t n, int flags)
{
    (void)flags;
    return write(fd, p, n);
}

/* ---- the process --------------------------------------------------------- */

int os_getrusage(int who, struct rusage *u)
{
    (void)who;
    u->ru_maxrss = (int64_t)__builtin_wasm_memory_size(0) * 64;   /* KiB */
    return 0;
}

int os_getrlimit(int what, struct rlimit *l)
{
    (void)what;
    *l = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return 0;
}

int os_uname(struct utsname *u)
{
    *u = (struct utsname){"WASI", "1", "wasm32", ""};
    return 0;
}

int os_sigaction(int number, const struct os_sigaction *now,
                 struct os_sigaction *was)
{
    (void)number, (void)now;
    if (was) was->sa_handler = SIG_DFL;
    return 0;
}

void (*os_signal(int number, void (*f)(int)))(int)
{
    (void)number, (void)f;
    return SIG_DFL;
}

pid_t os_waitpid(pid_t pid, int *status, int how)
{
    (void)pid, (void)status, (void)how;
    return none();
}

int posix_spawn(pid_t *pid, const char *path, const void *actions,
                const void *attributes, char *const *argv, char *const *env)
{
    (void)pid, (void)path, (void)actions, (void)attributes, (void)argv;
    (void)env;
    return ENOSYS;
}

void *os_dlopen(const char *path, int how)
{
    (void)path, (void)how;
    return NULL;
}

void *os_dlsym(void *library, const char *name)
{
    (void)library, (void)name;
    return NULL;
}

int os_dlclose(void *library)
{
    (void)library;
    return 0;
}

const char *os_dlerror(void)
{
    return "this system loads no libraries";
}
