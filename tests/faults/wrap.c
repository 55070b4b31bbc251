/* wrap.c: the n-th call for memory or a file fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Linked with --wrap=NAME for every name of calls.txt: what our objects call
 * NAME comes here. Calls inside the C library do not.
 *
 * TT_FAULT=N        call N fails, counted from 1
 * TT_FAULT_FROM=1   and so do all that follow
 * TT_FAULT_KILL=1   it is not made: the program is killed in its place
 * TT_FAULT_LOG=FILE the number of calls, and the name of call N, at the end
 * TT_FAULT_PATHS=FILE  without a fault: the number of the first call of every
 *                   path, a line each. A path is where the call is made, and
 *                   where each function that leads to it is called (glibc) */
#include <dirent.h>
#include <errno.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static long wanted, from;
static bool kills;
static const char *log_name;
static atomic_long calls;
static const char *failed = "none";
static FILE *paths;
static bool over;                /* libgcov's own calls come last             */

FILE *__real_fopen64(const char *path, const char *mode);

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("TT_FAULT");
    wanted = n ? atol(n) : 0;
    from = getenv("TT_FAULT_FROM") != NULL;
    kills = getenv("TT_FAULT_KILL") != NULL;
    log_name = getenv("TT_FAULT_LOG");
    const char *list = getenv("TT_FAULT_PATHS");
    paths = list && !wanted ? __real_fopen64(list, "w") : NULL;
}

__attribute__((destructor)) static void end(void)
{
    char text[100];
    over = true;
    if (paths) (fclose)(paths);
    if (!log_name) return;
    const int n = snprintf(text, sizeof text, "%ld %s\n",
                           (long)atomic_load(&calls), failed);
    FILE *f = (fopen)(log_name, "w");
    if (f) fprintf(f, "%.*s", n, text), (fclose)(f);
}

#ifdef __GLIBC__

/* A hash of the places that lead to this call. */
static uint64_t path_here(void)
{
    void *at[64];
    const int n = backtrace(at, 64);
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < n; i++) h = (h ^ (uintptr_t)at[i]) * 1099511628211u;
    return h | 1;
}

/* Call n goes into the list when no call before it had its path. */
static void note_path(long n)
{
    enum { MOST = 1 << 16 };
    static uint64_t seen[MOST];
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    const uint64_t h = path_here();
    pthread_mutex_lock(&one);
    size_t i = h % MOST;
    for (int k = 0; k < MOST && seen[i] && seen[i] != h; k++)
        i = (i + 1) % MOST;
    if (!seen[i]) fprintf(paths, "%ld\n", n);
    seen[i] = h;
    pthread_mutex_unlock(&one);
}

#else

static void note_path(long n)
{
    fprintf(paths, "%ld\n", n);
}

#endif

static bool fails(const char *name)
{
    if (over) return false;
    const long n = atomic_fetch_add(&calls, 1) + 1;
    if (paths) note_path(n);
    if (!wanted || (from ? n < wanted : n != wanted)) return false;
    if (n == wanted) failed = name;
    if (kills) kill(getpid(), SIGKILL);
    return true;
}

/* __wrap_NAME: `what` is in errno and `result` returned when the turn has come,
 * else the true NAME is called. */
#define WRAP(type, name, params, args, what, result)                           \
    type __real_##name params;                                                 \
    type __wrap_##name params;                                                 \
    type __wrap_##name params                                                  \
    {                                                                          \
        if (!fails(#name)) return __real_##name args;                          \
        errno = what;                                                          \
        return result;                                                         \
    }

/* The same, but what is to be closed is: the call fails and has an effect. */
#define WRAP_CLOSE(name, argument, what, result)                               \
    int __real_##name(argument a);                                             \
    int __wrap_##name(argument a);                                             \
    int __wrap_##name(argument a)                                              \
    {                                                                          \
        const bool bad = fails(#name);                                         \
        const int got = __real_##name(a);                                      \
        if (bad) errno = what;                                                 \
        return bad ? result : got;                                             \
    }

/* ---- memory -------------------------------------------------------------- */

WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n), ENOMEM, NULL)
WRAP(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd,
                      off_t off), (at, n, prot, flags, fd, off), ENOMEM,
     MAP_FAILED)

/* ---- files --------------------------------------------------------------- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    if (!fails("open64")) return __real_open64(path, flags, mode);
    errno = EMFILE;
    return -1;
}

WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), EIO, -1)
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), ENOSPC, -1)
WRAP(ssize_t, pread64, (int fd, void *p, size_t n, off_t at), (fd, p, n, at),
     EIO, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t at),
     (fd, p, n, at), ENOSPC, -1)
WRAP(off_t, lseek64, (int fd, off_t at, int whence), (fd, at, whence), EIO, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n), EIO, -1)
WRAP(int, fstat64, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, stat64, (const char *path, struct stat *st), (path, st), EIO, -1)
WRAP(int, lstat64, (const char *path, struct stat *st), (path, st), EIO, -1)
WRAP(int, rename, (const char *a, const char *b), (a, b), EIO, -1)
WRAP(int, renameat2, (int fa, const char *a, int fb, const char *b,
                      unsigned flags), (fa, a, fb, b, flags), EIO, -1)
WRAP(int, link, (const char *a, const char *b), (a, b), EIO, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(struct dirent *, readdir64, (DIR *d), (d), EIO, NULL)
WRAP(int, flock, (int fd, int what), (fd, what), ENOLCK, -1)
WRAP(char *, realpath, (const char *path, char *to), (path, to), EIO, NULL)
WRAP_CLOSE(close, int, EIO, -1)

/* ---- streams ------------------------------------------------------------- */

WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode),
     EMFILE, NULL)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
WRAP(FILE *, tmpfile64, (void), (), ENOSPC, NULL)
WRAP(FILE *, open_memstream, (char **p, size_t *n), (p, n), ENOMEM, NULL)
WRAP(int, fseeko64, (FILE *f, off_t at, int whence), (f, at, whence), EIO, -1)

/* A stream remembers that it has failed: ferror. */
static void set_error(FILE *f)
{
#ifdef __GLIBC__
    if (f) f->_flags |= 0x20;
#else
    (void)f;
#endif
}
WRAP(size_t, fread, (void *p, size_t size, size_t n, FILE *f), (p, size, n, f),
     (set_error(f), EIO), 0)
WRAP(size_t, fwrite, (const void *p, size_t size, size_t n, FILE *f),
     (p, size, n, f), (set_error(f), ENOSPC), 0)
WRAP(int, fflush, (FILE *f), (f), (set_error(f), ENOSPC), EOF)
WRAP_CLOSE(fclose, FILE *, ENOSPC, EOF)
