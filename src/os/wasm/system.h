/* system.h: what the program asks of POSIX and WASI lacks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One process, one thread, no signals, no links, no libraries. What can be had
 * is in wasm.c; the rest fails with ENOSYS. The headers of this directory have
 * the names of those of POSIX, come before WASI's, and include this one. Names
 * that WASI's C library has, but not so, begin with os_. */
#pragma GCC system_header
#ifndef TT_OS_WASM_SYSTEM_H
#define TT_OS_WASM_SYSTEM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct _IO_FILE;

/* Is the relaxed multiply-add of this engine fused? The standard leaves that
 * open; an engine always does the same. */
bool os_fuses(void);

/* ---- files --------------------------------------------------------------- */

#define F_DUPFD_CLOEXEC 1030
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };
struct os_statvfs { uint64_t f_bavail, f_frsize; };
int os_open(const char *path, int flags, ...);
int os_fcntl(int fd, int what, ...);
int dup(int fd);                   /* opens the file once more               */
int dup2(int fd, int to);
int pipe(int ends[2]);
int flock(int fd, int how);        /* always succeeds                        */
int os_statvfs(const char *path, struct os_statvfs *v);
char *os_realpath(const char *path, char *out);
int os_mkstemp(char *pattern);
char *os_mkdtemp(char *pattern);
ssize_t os_send(int fd, const void *p, size_t n, int flags);
#define MSG_NOSIGNAL 0
#define MSG_DONTWAIT 0
#define PIPE_BUF 4096

/* ---- memory: files are read, not mapped ---------------------------------- */

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };
/* MAP_ANONYMOUS is no macro, so that arenas take no address space in advance,
 * parts of which they unmap. */
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32 };
enum { MADV_WILLNEED = 3, MADV_DONTNEED = 4 };
#define MAP_FAILED ((void *)-1)
void *os_mmap(void *at, size_t n, int protection, int flags, int fd,
              off_t from);
int os_munmap(void *p, size_t n);
int os_mprotect(void *p, size_t n, int protection);
int os_madvise(void *p, size_t n, int advice);

/* ---- the process --------------------------------------------------------- */

struct rusage { int64_t ru_maxrss; };
struct rlimit { uint64_t rlim_cur, rlim_max; };
struct utsname { char sysname[32], release[32], machine[32], nodename[64]; };
#define RLIM_INFINITY UINT64_MAX
enum { RUSAGE_SELF, RLIMIT_AS, RLIMIT_STACK, RLIMIT_NOFILE };
int os_getrusage(int who, struct rusage *u);
int os_getrlimit(int what, struct rlimit *l);
int os_uname(struct utsname *u);

enum { SIGHUP = 1, SIGINT = 2, SIGABRT = 6, SIGKILL = 9, SIGUSR1 = 10,
       SIGSEGV = 11, SIGPIPE = 13, SIGTERM = 15, SIGXFSZ = 25 };
enum { SA_RESTART = 0 };
#define SIG_IGN ((void (*)(int))1)
#define SIG_DFL ((void (*)(int))0)
struct os_sigaction {
    void (*sa_handler)(int);
    int sa_flags;
};
int os_sigaction(int number, const struct os_sigaction *now,
                 struct os_sigaction *was);
void (*os_signal(int number, void (*f)(int)))(int);

enum { WNOHANG = 1 };
#define WIFEXITED(s) ((s) == 0)
#define WEXITSTATUS(s) (s)
#define WIFSIGNALED(s) 0
#define WTERMSIG(s) 0
pid_t os_waitpid(pid_t pid, int *status, int how);

enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0 };
void *os_dlopen(const char *path, int how);
void *os_dlsym(void *library, const char *name);
int os_dlclose(void *library);
const char *os_dlerror(void);

/* ---- threads: one, which never waits ------------------------------------- */

#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER {0}
#define PTHREAD_COND_INITIALIZER {0}
#define pthread_create(t, a, f, u) ((void)(t), (void)(f), (void)(u), EAGAIN)
#define pthread_join(t, r) ((void)(t), 0)
#define pthread_atfork(a, b, c) ((void)(a), (void)(b), (void)(c), 0)
#define pthread_mutex_init(m, a) ((void)(m), 0)
#define pthread_mutex_destroy(m) ((void)(m), 0)
#define pthread_mutex_lock(m) ((void)(m), 0)
#define pthread_mutex_unlock(m) ((void)(m), 0)
#define pthread_cond_init(c, a) ((void)(c), 0)
#define pthread_cond_destroy(c) ((void)(c), 0)
#define pthread_cond_broadcast(c) ((void)(c), 0)
#define pthread_cond_signal(c) ((void)(c), 0)
#define pthread_cond_wait(c, m) ((void)(c), (void)(m), EDEADLK)
#define pthread_cond_timedwait(c, m, t)                                        \
    ((void)(c), (void)(m), (void)(t), ETIMEDOUT)
#define pthread_condattr_init(a) ((void)(a), 0)
#define pthread_condattr_setclock(a, c) ((void)(a), 0)
#define pthread_condattr_destroy(a) ((void)(a), 0)
static inline int pthread_once(pthread_once_t *once, void (*f)(void))
{
    if (!*once) *once = 1, f();
    return 0;
}

/* A jump would leave what was half read: the program ends. */
typedef int jmp_buf[1];
#define setjmp(b) ((b)[0] = 0)
#define longjmp(b, n) __builtin_trap()

#endif
