/* system.h: what the program asks of POSIX and Windows lacks, or has otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The headers of this directory have the names of those of POSIX, come before
 * those of the compiler, and include this one. Names that the C library of
 * Windows has, but not so, begin with os_: it knows text files, names that are
 * not UTF-8, and files that cannot be renamed while they are open. */
#pragma GCC system_header
#ifndef TT_OS_WINDOWS_SYSTEM_H
#define TT_OS_WINDOWS_SYSTEM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/* ---- files: names are UTF-8, with slashes of either kind ----------------- */

#define O_CLOEXEC 0x0080           /* _O_NOINHERIT                            */
#define O_NONBLOCK 0x10000000
#define O_NOFOLLOW 0x20000000
#ifndef F_OK
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#endif
enum { F_GETFL = 3, F_SETFL = 4, F_SETFD = 2, F_DUPFD_CLOEXEC = 1030 };
enum { FD_CLOEXEC = 1 };
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };
#define PIPE_BUF 4096
#define S_IFLNK 0xA000
#define S_ISLNK(m) (((m) & 0xF000) == S_IFLNK)
#define S_ISSOCK(m) 0
struct os_stat {
    uint64_t st_dev, st_ino;
    unsigned st_mode, st_nlink;
    int64_t st_size;
    struct timespec st_mtim, st_ctim;
};
int os_open(const char *path, int flags, ...);
int os_stat(const char *path, struct os_stat *st);
int os_lstat(const char *path, struct os_stat *st);
int os_fstat(int fd, struct os_stat *st);
int os_mkdir(const char *path, int mode);
int os_rmdir(const char *path);
int os_unlink(const char *path);
int os_access(const char *path, int how);
int os_ftruncate(int fd, int64_t size);
int64_t os_lseek(int fd, int64_t at, int from);
int fcntl(int fd, int what, ...);
int flock(int fd, int how);
int fsync(int fd);
int link(const char *from, const char *to);
int symlink(const char *to, const char *path);
int pipe(int ends[2]);
int posix_fallocate(int fd, off_t at, off_t n);
ssize_t pread(int fd, void *p, size_t n, off_t at);
ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t readlink(const char *path, char *to, size_t n);

FILE *os_fopen(const char *path, const char *mode);
FILE *os_freopen(const char *path, const char *mode, FILE *f);
FILE *os_tmpfile(void);
FILE *open_memstream(char **text, size_t *size); /* there after os_fclose     */
int os_fclose(FILE *f);
int os_fflush(FILE *f);            /* EPIPE where a reader is gone            */
int os_rename(const char *from, const char *to);
int os_remove(const char *path);
int dprintf(int fd, const char *fmt, ...);
ssize_t getline(char **line, size_t *room, FILE *f);
char *realpath(const char *path, char *out);
int mkstemp(char *pattern);
char *mkdtemp(char *pattern);

struct dirent { char d_name[1024]; };
typedef struct os_dir DIR;
DIR *opendir(const char *path);
struct dirent *readdir(DIR *d);
int closedir(DIR *d);
int alphasort(const struct dirent **a, const struct dirent **b);
int scandir(const char *path, struct dirent ***list,
            int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **));

int fnmatch(const char *pattern, const char *name, int flags);
struct statvfs { uint64_t f_bavail, f_frsize; };
int statvfs(const char *path, struct statvfs *v);

enum { POLLIN = 1, POLLOUT = 4, POLLHUP = 16 };
struct pollfd { int fd; short events, revents; };
int poll(struct pollfd *p, unsigned n, int ms);

/* ---- memory -------------------------------------------------------------- */

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2 };
#define MAP_ANONYMOUS 32
#define MAP_FAILED ((void *)-1)
enum { MADV_WILLNEED = 3, MADV_DONTNEED = 4 };
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from);
int munmap(void *p, size_t n);
int mprotect(void *p, size_t n, int protection);
int madvise(void *p, size_t n, int advice);

/* ---- the process --------------------------------------------------------- */

struct rusage {
    struct { int64_t tv_sec, tv_usec; } ru_utime, ru_stime;
    int64_t ru_maxrss;             /* KiB                                     */
    long ru_minflt;
};
typedef uint64_t rlim_t;
struct rlimit { rlim_t rlim_cur, rlim_max; };
struct utsname { char sysname[32], release[32], machine[32], nodename[64]; };
#define RLIM_INFINITY UINT64_MAX
enum { RUSAGE_SELF, RLIMIT_AS, RLIMIT_STACK, RLIMIT_NOFILE };
enum { _SC_PAGESIZE = 1, _SC_PHYS_PAGES, _SC_NPROCESSORS_ONLN };
long sysconf(int name);
int getrusage(int who, struct rusage *u);
int getrlimit(int what, struct rlimit *l);
int uname(struct utsname *u);
int setenv(const char *name, const char *value, int over);
int unsetenv(const char *name);

enum { SIGHUP = 1, SIGBUS = 7, SIGKILL = 9, SIGUSR1 = 10, SIGPIPE = 13,
       SIGALRM = 14, SIGXFSZ = 25 };
enum { SA_RESTART = 0 };
struct sigaction {
    void (*sa_handler)(int);
    int sa_flags;
};
int sigaction(int number, const struct sigaction *now, struct sigaction *was);
void (*os_signal(int number, void (*f)(int)))(int);
const char *strsignal(int number);

enum { WNOHANG = 1 };
#define WIFEXITED(s) (((s) & 127) == 0)
#define WEXITSTATUS(s) ((s) >> 8 & 255)
#define WIFSIGNALED(s) (((s) & 127) != 0)
#define WTERMSIG(s) ((s) & 127)
extern char **os_environ;          /* for posix_spawn, which hands on our own */
pid_t fork(void);                  /* fails                                   */
int posix_spawn(pid_t *pid, const char *path, const void *actions,
                const void *attributes, char *const *argv, char *const *env);
pid_t waitpid(pid_t pid, int *status, int how);
int kill(pid_t pid, int number);

enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0 };
void *dlopen(const char *path, int how);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
const char *dlerror(void);

#endif
