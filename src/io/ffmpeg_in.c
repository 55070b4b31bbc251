/* ffmpeg_in.c: the `ffmpeg` program as a source of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   ffmpeg is asked for a stream of binary PPM pictures, because each
 *         says its size before its rgb24 bytes.
 * Holds   ffmpeg may open the named file and nothing else: of formats that name
 *         other files, playlists and lists of parts, it gets none to read. */
#include "io/ffmpeg_in.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "io/picture.h"

/* Containers that hold what they show, by the names of their readers. */
static const char containers[] =
    "mov,matroska,webm,avi,gif,apng,flv,mpeg,mpegts,mpegvideo,ogg,asf,ivf,obu,"
    "av1,h264,hevc,vvc,m4v,mjpeg,dv,mxf,nut,rm,webp_pipe,bmp_pipe,tiff_pipe";

/* Every picture gets a tick of its own, longer than any picture is shown, and
 * so comes once: the option that says so has another name in each version. */
tt_status ffmpeg_in_start(tt_ctx *ctx, ffmpeg_in *v, const char *path,
                          const char *format)
{
    char url[4200];
    *v = (ffmpeg_in){.child = {.fd = -1}};
    if (!ffmpeg_found())
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s is not a y4m, PNG or JPEG "
                       "file, and the `ffmpeg` program, which reads other "
                       "formats, was not found on PATH; install it, or "
                       "convert the video to .y4m or frames/%%05d.png", path);
    if ((size_t)snprintf(url, sizeof url, "file:%s", path) >= sizeof url)
        return tt_fail(ctx, TT_EINVAL, "cannot read %s: the name is too long",
                       path);
    const char *const argv[] = {
        "ffmpeg", "-f", format ? format : "ffmpeg", /* or from the third on */
        "-nostdin", "-hide_banner", "-loglevel", "error",
        "-protocol_whitelist", "file", "-format_whitelist", containers,
        "-i", url, "-map", "0:v:0", "-an", "-sn",
        "-vf", "settb=1000,setpts=N", "-r", "1/1000", "-f", "image2pipe",
        "-c:v", "ppm", "-pix_fmt", "rgb24",
        "-protocol_whitelist", "pipe", "pipe:1", NULL};
    return ffmpeg_start(ctx, &v->child, "read", path, argv + (format ? 0 : 2));
}

/* Up to n bytes; fewer only at the end of the stream. */
static tt_status read_some(tt_ctx *ctx, ffmpeg_in *v, uint8_t *out, size_t n,
                           size_t *got)
{
    for (*got = 0; *got < n;) {
        TT_TRY(ffmpeg_wait(ctx, &v->child, POLLIN));
        const ssize_t r = read(v->child.fd, out + *got, n - *got);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0)
            return tt_fail(ctx, TT_EIO, "cannot read %s through ffmpeg: %s",
                           v->child.path, strerror(errno));
        if (r == 0) break;
        *got += (size_t)r;
    }
    return TT_OK;
}

static tt_status strange(tt_ctx *ctx, ffmpeg_in *v)
{
    if (ffmpeg_finish(ctx, &v->child)) return ctx->status; /* it says why */
    return tt_fail(ctx, TT_EFORMAT, "%s: ffmpeg sent something else than "
                   "whole PPM pictures of one size", v->child.path);
}

/* "P6\nWIDTH HEIGHT\n255\n" and nothing else, as ffmpeg writes it. */
tt_status ffmpeg_in_header(tt_ctx *ctx, ffmpeg_in *v, int64_t *width,
                           int64_t *height, bool *more)
{
    char head[64];
    size_t n = 0, got = 0;
    int lines = 0, used = 0;
    long w = 0, h = 0;
    *more = false;
    while (n < sizeof head - 1 && lines < 3) {
        TT_TRY(read_some(ctx, v, (uint8_t *)head + n, 1, &got));
        if (!got) break;
        lines += head[n++] == '\n';
    }
    head[n] = 0;
    if (n == 0) return ffmpeg_finish(ctx, &v->child);
    if (lines != 3 || sscanf(head, "P6\n%7ld %7ld\n255\n%n", &w, &h, &used) != 2
        || (size_t)used != n) return strange(ctx, v);
    *width = w;
    *height = h;
    *more = true;
    return picture_check_size(ctx, v->child.path, w, h);
}

tt_status ffmpeg_in_pixels(tt_ctx *ctx, ffmpeg_in *v, uint8_t *rgb, size_t n)
{
    size_t got = 0;
    TT_TRY(read_some(ctx, v, rgb, n, &got));
    return got == n ? TT_OK : strange(ctx, v);
}
