/* encoder.c: the `ffmpeg` program as a sink of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/encoder.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SO_NOSIGPIPE on the socket instead */
#endif

typedef struct container {
    const char *ending, *format;
    const char *codec[28];      /* NULL-terminated arguments                  */
} container;

/* BT.709, limited range: converted so and described so. What has no
 * description is taken as BT.601 by some players and as BT.709 by others. */
#define COLOURS                                                                \
    "-vf", "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",         \
    "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc",         \
    "bt709", "-color_range", "tv"

/* In fragments of two seconds, which can be played before the end is there;
 * encoder_index makes an ordinary file of it. */
#define FRAGMENTS                                                              \
    "-c:v", "libx264", "-crf", "18", COLOURS, "-g", "32", "-movflags",         \
    "+frag_keyframe+empty_moov+default_base_moof+write_colr"

/* bitexact: Matroska has a random number in every file otherwise. */
static const container containers[] = {
    {".mp4", "mp4", {FRAGMENTS, NULL}},
    {".mov", "mov", {FRAGMENTS, NULL}},
    {".mkv", "matroska", {"-c:v", "libx264", "-crf", "18", COLOURS, "-fflags",
                          "+bitexact", NULL}},
    {".webm", "webm", {"-c:v", "libvpx-vp9", "-crf", "24", "-b:v", "0",
                       COLOURS, "-fflags", "+bitexact", NULL}},
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

tt_status encoder_check(tt_ctx *ctx, const char *path)
{
    if (ffmpeg_found()) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "cannot write %s: the `ffmpeg` "
                   "program was not found on PATH; install it, or use an "
                   "output that needs none: a name ending in .apng (browsers "
                   "show it) or .y4m, or a PNG pattern like frames/%%05d.png",
                   path);
}

/* "title=a cat", in ctx->scratch; NULL without a text, or with one that would
 * not fit among the arguments of a program. */
static const char *labelled(tt_ctx *ctx, const char *label, const char *text)
{
    enum { TEXT_MAX = 32768 };
    if (text && strlen(text) > TEXT_MAX) return NULL;
    const size_t n = strlen(label) + (text ? strlen(text) : 0) + 1;
    char *out = text ? tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1, "metadata")
                     : NULL;
    if (out) snprintf(out, n, "%s%s", label, text);
    return out;
}

tt_status encoder_start(tt_ctx *ctx, ffmpeg *e, const char *path,
                        const char *target, const char *ending,
                        const tt_video_format *f)
{
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
    const char *title = labelled(ctx, "title=", f->title);
    const char *comment = labelled(ctx, "comment=", f->comment);
    const char *argv[56] = {
        "ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-xerror",
        "-y",
        "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", rate,
        "-i", "pipe:0", "-an"};
    int n = 18;
    for (int i = 0; c->codec[i]; i++) argv[n++] = c->codec[i];
    if (title) argv[n++] = "-metadata";
    if (title) argv[n++] = title;
    if (comment) argv[n++] = "-metadata";
    if (comment) argv[n++] = comment;
    TT_TRY(ctx->status);
    argv[n++] = "-f";
    argv[n++] = c->format;
    argv[n++] = url;
    return ffmpeg_start(ctx, e, "write", path, argv);
}

void encoder_index(tt_ctx *ctx, const char *path, const char *ending,
                   const char *from, const char *to)
{
    const char *format = find_container(ending)->format;
    char in[4200], out[4200];
    ffmpeg e;
    if (ctx->status
        || (size_t)snprintf(in, sizeof in, "file:%s", from) >= sizeof in
        || (size_t)snprintf(out, sizeof out, "file:%s", to) >= sizeof out)
        return;
    const char *const argv[] = {
        "ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-xerror",
        "-y", "-f", "mp4", "-i", in, "-c", "copy", "-map_metadata", "0",
        "-movflags", "+faststart+write_colr", "-f", format, out, NULL};
    if (ffmpeg_start(ctx, &e, "write", path, argv) == TT_OK)
        ffmpeg_finish(ctx, &e);
    ffmpeg_abort(&e);
    if (ctx->status) unlink(to); /* ffmpeg leaves what it has written */
    if (ctx->status && ctx->status != TT_EINTR) tt_clear(ctx);
}

tt_status encoder_write(tt_ctx *ctx, ffmpeg *e, const void *data, size_t n)
{
    const char *p = data;
    if (ctx->status) return ctx->status;
    while (n) {
        TT_TRY(ffmpeg_wait(ctx, e, POLLOUT));
        ssize_t sent = send(e->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (sent < 0) {
            const char *why = strerror(errno);
            if (ffmpeg_finish(ctx, e) == TT_OK) /* it says why, if it can */
                tt_fail(ctx, TT_EIO, "cannot write %s: ffmpeg stopped reading"
                        " (%s)", e->path, why);
            return ctx->status;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return TT_OK;
}
