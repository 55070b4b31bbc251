/* start.c: other programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No shell is involved. The standard input or output is a socket rather than a
 * pipe, because send() can be told not to raise SIGPIPE when the program dies,
 * and a library must not change how its program handles signals. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/socket.h>
#include <unistd.h>

#include "os/os.h"

bool os_has_program(const char *name)
{
    const char *p = getenv("PATH");
    char path[4096];
    while (p && *p) {
        size_t n = strcspn(p, ":");
        int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, n ? p : ".",
                           name);
        if (len > 0 && (size_t)len < sizeof path && access(path, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* In the child: wire up (-1: /dev/null) and become the program; reports errno
 * through `report`. */
static void become(char *const *argv, int in, int out, int said,
                          int report)
{
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    if (dup2(in >= 0 ? in : null, 0) >= 0 && dup2(out >= 0 ? out : null, 1) >= 0
        && dup2(said, 2) >= 0)
        execvp(argv[0], argv);
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

/* Fork; *error is the child's errno when exec failed, 0 when it runs. */
static pid_t spawn(char *const *argv, int in, int out, int said, int *error)
{
    int report[2];
    *error = 0;
    if (pipe(report)) {
        *error = errno;
        return -1;
    }
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        close(report[0]);
        become(argv, in, out, said, report[1]);
    }
    if (pid < 0) *error = errno;
    close(report[1]);
    int code = 0;
    ssize_t n;
    while ((n = read(report[0], &code, sizeof code)) < 0 && errno == EINTR)
        continue;
    close(report[0]);
    if (n == (ssize_t)sizeof code) *error = code;
    return pid;
}

int os_start(const char *const *argv, bool reads, int said, pid_t *pid,
             int *ours)
{
    int pair[2], error = 0;
    *ours = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return errno;
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    setsockopt(pair[0], SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    shutdown(pair[1], reads ? SHUT_RD : SHUT_WR);
    *pid = spawn((char *const *)(uintptr_t)argv, reads ? -1 : pair[1],
                 reads ? pair[1] : -1, said, &error);
    close(pair[1]);
    *ours = pair[0];
    return error;
}

void os_end_with_parent(void)
{
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}
