/* ffmpeg.c: the `ffmpeg` program as a child process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It has a process group of its own (os_start): ^C on the terminal is for us,
 * and we decide what becomes of the file. */
#include "io/ffmpeg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

bool ffmpeg_found(void)
{
    return os_has_program("ffmpeg");
}

tt_status ffmpeg_start(tt_ctx *ctx, ffmpeg *e, const char *verb,
                       const char *path, const char *const *argv)
{
    int error = 0;
    memset(e, 0, sizeof *e);
    e->fd = -1;
    e->path = path;
    e->verb = verb;
    e->said = tmpfile();
    if (e->said)
        error = os_start(argv, verb[0] == 'r', fileno(e->said), &e->pid,
                         &e->fd);
    if (e->said && !error) return TT_OK;
    if (!e->said) error = errno;
    ffmpeg_abort(e);
    return tt_fail(ctx, TT_EIO, "cannot start ffmpeg to %s %s: %s", verb,
                   path, strerror(error));
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
