/* encoder.c: the `ffmpeg` program as a sink of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No shell is involved. Its standard input is a socket rather than a pipe,
 * because send() can be told not to raise SIGPIPE when ffmpeg dies, and a
 * library must not change how its program handles signals. ffmpeg runs in its
 * own process group: ^C on the terminal is for us, and we decide what becomes
 * of the file. */
#include "io/encoder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SO_NOSIGPIPE on the socket instead */
#endif

typedef struct container {
    const char *ending, *format;
    const char *codec[10];      /* NULL-terminated arguments                  */
} container;

static const container containers[] = {
    {".mp4", "mp4", {"-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p",
                     "-movflags", "+faststart", NULL}},
    {".mkv", "matroska", {"-c:v", "libx264", "-crf", "18", "-pix_fmt",
                          "yuv420p", NULL}},
    {".webm", "webm", {"-c:v", "libvpx-vp9", "-crf", "24", "-b:v", "0",
                       "-pix_fmt", "yuv420p", NULL}},
    /* one palette per frame, so that nothing has to be held back */
    {".gif", "gif", {"-vf", "split[a][b];[a]palettegen=stats_mode=single[p];"
                     "[b][p]paletteuse=new=1", "-loop", "0", NULL}},
};
enum { NCONTAINERS = sizeof containers / sizeof containers[0] };

static const container *find_container(const char *ending)
{
    for (int i = 0; i < NCONTAINERS; i++)
        if (!strcmp(containers[i].ending, ending)) return &containers[i];
    return NULL;
}

bool encoder_knows(const char *ending)
{
    return find_container(ending) != NULL;
}

/* Is there an executable `ffmpeg` in a directory of PATH? */
static bool on_path(void)
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

tt_status encoder_check(tt_ctx *ctx, const char *path)
{
    if (on_path()) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "cannot write %s: the `ffmpeg` "
                   "program was not found on PATH; install it, or use an "
                   "output that needs none: a name ending in .y4m, or a PNG "
                   "pattern like frames/%%05d.png", path);
}

/* In the child: wire up and become ffmpeg; reports errno through `report`. */
static void become_ffmpeg(char *const *argv, int in, int out, int report)
{
    setpgid(0, 0);
    int null = open("/dev/null", O_WRONLY);
    if (dup2(in, 0) >= 0 && dup2(null, 1) >= 0 && dup2(out, 2) >= 0)
        execvp("ffmpeg", argv);
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

/* Fork; *error is the child's errno when exec failed, 0 when it runs. */
static pid_t spawn(char *const *argv, int in, int out, int *error)
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
        become_ffmpeg(argv, in, out, report[1]);
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

tt_status encoder_start(tt_ctx *ctx, encoder *e, const char *path,
                        const char *target, const char *ending,
                        const tt_video_format *f)
{
    memset(e, 0, sizeof *e);
    e->fd = -1;
    e->path = path;
    TT_TRY(encoder_check(ctx, path));

    const container *c = find_container(ending);
    char size[48], rate[16], url[4200];
    snprintf(size, sizeof size, "%lldx%lld", (long long)f->width,
             (long long)f->height);
    snprintf(rate, sizeof rate, "%d", f->fps);
    /* "file:" keeps a name like "a:b.mp4" from being read as a protocol. */
    if ((size_t)snprintf(url, sizeof url, "file:%s", target) >= sizeof url)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: the name is too long",
                       path);
    const char *argv[40] = {
        "ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y",
        "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", rate,
        "-i", "pipe:0", "-an"};
    int n = 17;
    for (int i = 0; c->codec[i]; i++) argv[n++] = c->codec[i];
    argv[n++] = "-f";
    argv[n++] = c->format;
    argv[n++] = url;

    int pair[2], error;
    e->said = tmpfile();
    if (!e->said || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return tt_fail(ctx, TT_EIO, "cannot start ffmpeg for %s: %s", path,
                       strerror(errno));
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    setsockopt(pair[0], SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    shutdown(pair[1], SHUT_WR);
    e->pid = spawn((char *const *)(uintptr_t)argv, pair[1], fileno(e->said),
                   &error);
    close(pair[1]);
    e->fd = pair[0];
    if (error) {
        encoder_abort(e);
        return tt_fail(ctx, TT_EIO, "cannot start ffmpeg for %s: %s", path,
                       strerror(error));
    }
    return TT_OK;
}

/* The last non-empty line ffmpeg wrote, without the newline. */
static const char *last_words(encoder *e, char *buf, size_t n)
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
static int reap(encoder *e)
{
    int status = 0;
    while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR) continue;
    e->pid = 0;
    return status;
}

tt_status encoder_finish(tt_ctx *ctx, encoder *e)
{
    if (!e->pid) return ctx->status;
    if (e->fd >= 0) close(e->fd);
    e->fd = -1;
    int status = reap(e);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        char buf[512];
        const char *line = last_words(e, buf, sizeof buf);
        tt_fail(ctx, TT_EIO, "cannot write %s: ffmpeg failed (%s %d)%s%.300s",
                e->path, WIFEXITED(status) ? "exit status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                *line ? ": " : "", line);
    }
    encoder_abort(e);
    return ctx->status;
}

tt_status encoder_write(tt_ctx *ctx, encoder *e, const void *data, size_t n)
{
    const char *p = data;
    if (ctx->status) return ctx->status;
    while (n) {
        ssize_t sent = send(e->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) {
            const char *why = strerror(errno);
            if (encoder_finish(ctx, e) == TT_OK) /* it says why, if it can */
                tt_fail(ctx, TT_EIO, "cannot write %s: ffmpeg stopped reading"
                        " (%s)", e->path, why);
            return ctx->status;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return TT_OK;
}

void encoder_abort(encoder *e)
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
