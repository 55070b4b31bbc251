/* ffmpeg.c: the `ffmpeg` program as a child process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No shell is involved. Its standard input or output is a socket rather than a
 * pipe, because send() can be told not to raise SIGPIPE when ffmpeg dies, and
 * a library must not change how its program handles signals. ffmpeg runs in
 * its own process group: ^C on the terminal is for us, and we decide what
 * becomes of the file. */
#include "io/ffmpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool ffmpeg_found(void)
{
    const char *p = getenv("PATH");
    char name[4096];
    while (p && *p) {
        size_t n = strcspn(p, ":");
        int len = snprintf(name, sizeof name, "%.*s/ffmpeg", (int)n,
                           n ? p : ".");
        if (len > 0 && (size_t)len < sizeof name && access(name, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* In the child: wire up (-1: /dev/null) and become ffmpeg; reports errno
 * through `report`. */
static void become_ffmpeg(char *const *argv, int in, int out, int said,
                          int report)
{
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    if (dup2(in >= 0 ? in : null, 0) >= 0 && dup2(out >= 0 ? out : null, 1) >= 0
        && dup2(said, 2) >= 0)
        execvp("ffmpeg", argv);
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
        become_ffmpeg(argv, in, out, said, report[1]);
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

tt_status ffmpeg_start(tt_ctx *ctx, ffmpeg *e, const char *verb,
                       const char *path, const char *const *argv)
{
    int pair[2] = {-1, -1}, error = 0;
    const bool reads = verb[0] == 'r';
    memset(e, 0, sizeof *e);
    e->fd = -1;
    e->path = path;
    e->verb = verb;
    e->said = tmpfile();
    if (!e->said || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return tt_fail(ctx, TT_EIO, "cannot start ffmpeg to %s %s: %s", verb,
                       path, strerror(errno));
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    setsockopt(pair[0], SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    shutdown(pair[1], reads ? SHUT_RD : SHUT_WR);
    e->pid = spawn((char *const *)(uintptr_t)argv, reads ? -1 : pair[1],
                   reads ? pair[1] : -1, fileno(e->said), &error);
    close(pair[1]);
    e->fd = pair[0];
    if (error) {
        ffmpeg_abort(e);
        return tt_fail(ctx, TT_EIO, "cannot start ffmpeg to %s %s: %s", verb,
                       path, strerror(error));
    }
    return TT_OK;
}

/* The last non-empty line ffmpeg wrote, without the newline. */
static const char *last_words(ffmpeg *e, char *buf, size_t n)
{
    buf[0] = 0;
    if (!e->said) return buf;
    fseek(e->said, 0, SEEK_END);
    long size = ftell(e->said);
    fseek(e->said, size > (long)n - 1 ? size - ((long)n - 1) : 0, SEEK_SET);
    size_t got = fread(buf, 1, n - 1, e->said);
    while (got && (buf[got - 1] == '\n' || buf[got - 1] == '\r')) got--;
    buf[got] = 0;
    const char *line = strrchr(buf, '\n');
    return line ? line + 1 : buf;
}

/* Wait for it to end; its wait status. */
static int reap(ffmpeg *e)
{
    int status = 0;
    while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR) continue;
    e->pid = 0;
    return status;
}

tt_status ffmpeg_wait(tt_ctx *ctx, const ffmpeg *e, short events)
{
    struct pollfd p = {.fd = e->fd, .events = events};
    while (poll(&p, 1, 100) <= 0) TT_TRY(tt_check_interrupt(ctx));
    return ctx->status;
}

/* Let it end by itself, unless the user asks to stop. */
static void let_it_end(tt_ctx *ctx, ffmpeg *e, int *status)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    pid_t got;
    while ((got = waitpid(e->pid, status, WNOHANG)) == 0
           || (got < 0 && errno == EINTR)) {
        if (tt_check_interrupt(ctx)) return;
        nanosleep(&pause, NULL);
    }
    e->pid = 0;
}

/* Are these the words of ffmpeg about a file that it could not write? Some
 * versions say them and exit with 0, as on a full disk. Others' words, as of a
 * library that could not be preloaded, harm no video. */
static bool says_failure(const char *words)
{
    static const char *const sign[] = {
        "No space left", "Disk quota", "File too large", "Input/output error",
        "Error writing", "Error muxing", "Error while", "Conversion failed"};
    for (size_t i = 0; i < sizeof sign / sizeof *sign; i++)
        if (strstr(words, sign[i])) return true;
    return false;
}

tt_status ffmpeg_finish(tt_ctx *ctx, ffmpeg *e)
{
    int status = 0;
    if (!e->pid) return ctx->status;
    if (e->fd >= 0) close(e->fd);
    e->fd = -1;
    let_it_end(ctx, e, &status);
    char buf[512];
    const char *line = last_words(e, buf, sizeof buf);
    const bool writes = e->verb[0] == 'w';
    const bool bad = !WIFEXITED(status) || WEXITSTATUS(status)
                  || (writes && says_failure(buf));
    if (e->pid) {
        /* interrupted: ffmpeg_abort ends it */
    } else if (bad) {
        tt_fail(ctx, TT_EIO, "cannot %s %s: ffmpeg failed (%s %d)%s%.300s",
                e->verb, e->path, WIFEXITED(status) ? "exit status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                *line ? ": " : "", line);
    } else if (writes && *line) {
        tt_warn(ctx, "ffmpeg wrote %s, and said: %.300s", e->path, line);
    }
    ffmpeg_abort(e);
    return ctx->status;
}

void ffmpeg_leave(ffmpeg *e)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int status;
    if (e->pid > 0 && e->fd >= 0) {
        close(e->fd);
        e->fd = -1;
        for (int i = 0; i < 300 && e->pid > 0; i++) {
            if (waitpid(e->pid, &status, WNOHANG) == e->pid) e->pid = 0;
            else nanosleep(&pause, NULL);
        }
    }
    ffmpeg_abort(e);
}

void ffmpeg_abort(ffmpeg *e)
{
    if (e->pid > 0) {
        kill(e->pid, SIGKILL);
        reap(e);
    }
    if (e->said && e->fd >= 0) close(e->fd);
    if (e->said) fclose(e->said);
    e->said = NULL;
    e->fd = -1;
    e->pid = 0;
}
