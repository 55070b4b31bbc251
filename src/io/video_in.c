/* video_in.c: frames out of whatever file holds them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the first bytes tell what a file is, not its name; only a name with
 *         a frame number in it (and no file of exactly that name) stands for
 *         a sequence of pictures.
 * Holds   every frame has the size of the first one.
 * Next    y4m.c, picture.c, ffmpeg_in.c */
#include <string.h>
#include <unistd.h>

#include "io/ffmpeg.h"
#include "io/ffmpeg_in.h"
#include "io/map.h"
#include "io/picture.h"
#include "io/y4m.h"
#include "io/video.h"

enum { PNG_CHUNK_MAX = 1 << 20 }; /* of one before the picture's data       */

typedef enum source { SOURCE_Y4M, SOURCE_PICTURES, SOURCE_FFMPEG } source;

struct tt_video_in {
    tt_ctx *ctx;
    tt_arena mem, picture;  /* the reader; the picture that is waiting        */
    source source;
    char *path, *name;      /* name: of the latest picture                    */
    size_t name_size;
    int64_t width, height;
    int64_t frames;         /* handed out so far                              */
    bool waiting;           /* the next frame's beginning has been read       */
    io_stream in;           /* y4m                                            */
    y4m y4m;
    ffmpeg_in ffmpeg;
    bool pattern;           /* pictures: numbered, else just one              */
    int64_t first, number;  /* number of the first picture, of the next one   */
    uint8_t *rgb;           /* the picture that is waiting                    */
};

/* ---- pictures ------------------------------------------------------------ */

static bool name_picture(tt_video_in *v, int64_t number)
{
    return tt_pattern_name(v->name, v->name_size, v->path, number);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Read the next picture, if there is one, and let it wait. */
static tt_status next_picture(tt_video_in *v)
{
    tt_ctx *ctx = v->ctx;
    int64_t width, height;
    v->waiting = false;
    tt_arena_free(&v->picture);
    if (!v->pattern && v->number > v->first) return TT_OK;
    if (v->pattern) {
        name_picture(v, v->number + 1);
        const bool later = exists(v->name);
        name_picture(v, v->number);
        if (!exists(v->name)) {
            if (!later) return TT_OK; /* the end */
            return tt_fail(ctx, TT_EIO, "%s is missing, but a later frame is "
                           "there", v->name);
        }
    }
    const char *path = v->pattern ? v->name : v->path;
    TT_TRY(tt_picture_read(ctx, &v->picture, &v->rgb, &width, &height, path));
    if (v->width && (width != v->width || height != v->height))
        return tt_fail(ctx, TT_EFORMAT, "%s has %lldx%lld pixels, but the "
                       "frames before it have %lldx%lld", path,
                       (long long)width, (long long)height,
                       (long long)v->width, (long long)v->height);
    v->width = width;
    v->height = height;
    v->number++;
    v->waiting = true;
    return TT_OK;
}

static tt_status open_pattern(tt_video_in *v)
{
    v->pattern = true;
    name_picture(v, 0);
    if (!exists(v->name)) {
        v->first = 1; /* many programs count from 1 */
        name_picture(v, 1);
    }
    if (!exists(v->name))
        return tt_fail(v->ctx, TT_EIO, "cannot read %s: there is no frame 0 "
                       "or 1 (%s)", v->path, v->name);
    v->number = v->first;
    return next_picture(v);
}

/* ---- open ---------------------------------------------------------------- */

static tt_status open_y4m(tt_video_in *v)
{
    v->source = SOURCE_Y4M;
    TT_TRY(y4m_open(v->ctx, &v->mem, &v->y4m, &v->in));
    v->width = v->y4m.width;
    v->height = v->y4m.height;
    return TT_OK;
}

static tt_status open_ffmpeg(tt_video_in *v, const char *format)
{
    v->source = SOURCE_FFMPEG;
    TT_TRY(ffmpeg_in_start(v->ctx, &v->ffmpeg, v->path, format));
    TT_TRY(ffmpeg_in_header(v->ctx, &v->ffmpeg, &v->width, &v->height,
                            &v->waiting));
    if (v->waiting) return TT_OK;
    return tt_fail(v->ctx, TT_EFORMAT, "%s: ffmpeg finds no frame in it",
                   v->path);
}

/* A video, or a picture that is neither PNG nor JPEG. Whether ffmpeg applies
 * the EXIF orientation of those depends on its version. */
static tt_status open_other(tt_video_in *v)
{
    io_map f;
    TT_TRY(io_map_open(v->ctx, &f, v->path));
    const int o = picture_orientation_other(f.data, (size_t)f.size);
    io_map_close(&f);
    if (o == 1) return open_ffmpeg(v, NULL);
    return tt_fail(v->ctx, TT_EUNSUPPORTED, "%s has the EXIF orientation %d, "
                   "which is applied to PNG and JPEG pictures alone; save it "
                   "as one of these", v->path, o);
}

static uint32_t video_in_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8
         | p[3];
}

/* Does this PNG hold several frames? It says so before the first one. */
static bool is_animated(const io_map *f)
{
    for (int64_t at = 8; at + 12 <= f->size;) { /* after the signature */
        const uint8_t *c = f->data + at;
        const uint32_t n = video_in_be32(c);
        if (!memcmp(c + 4, "acTL", 4)) return video_in_be32(c + 8) > 1;
        if (!memcmp(c + 4, "IDAT", 4) || n > PNG_CHUNK_MAX) break;
        at += (int64_t)n + 12;
    }
    return false;
}

/* Rectangles drawn over each other: ffmpeg's work, where it is there. */
static tt_status open_animation(tt_video_in *v)
{
    if (ffmpeg_found()) return open_ffmpeg(v, "apng");
    return tt_fail(v->ctx, TT_EUNSUPPORTED, "%s is an animated PNG, whose "
                   "frames are read through the `ffmpeg` program, which was "
                   "not found on PATH; install it, or write the video as .y4m "
                   "or frames/%%05d.png", v->path);
}

static tt_status open_png(tt_video_in *v)
{
    io_map f;
    TT_TRY(io_map_open(v->ctx, &f, v->path));
    const bool animated = is_animated(&f);
    io_map_close(&f);
    if (animated) return open_animation(v);
    v->source = SOURCE_PICTURES;
    return next_picture(v);
}

static tt_status open_any(tt_video_in *v)
{
    tt_ctx *ctx = v->ctx;
    uint8_t head[9];
    const bool once = stream_once(v->path);
    if (!once && !exists(v->path) && name_picture(v, 0)) {
        v->source = SOURCE_PICTURES;
        return open_pattern(v);
    }
    TT_TRY(stream_open(ctx, &v->in, v->path));
    const size_t n = stream_read(&v->in, head, sizeof head);
    TT_TRY(ctx->status);
    if (n == sizeof head && !memcmp(head, Y4M_MAGIC, sizeof head))
        return open_y4m(v);
    if (once)
        return tt_fail(ctx, TT_EFORMAT, "%s does not begin with %s: only y4m "
                       "can be read from it", v->in.name, Y4M_MAGIC);
    if (n == 0)
        return tt_fail(ctx, TT_EFORMAT, "%s is empty", v->path);
    if (picture_sniff(head, n) == PICTURE_NONE) return open_other(v);
    if (picture_sniff(head, n) == PICTURE_PNG) return open_png(v);
    v->source = SOURCE_PICTURES;
    return next_picture(v);
}

tt_status tt_video_in_open(tt_ctx *ctx, tt_video_in **out, const char *path)
{
    tt_arena mem = {0};
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_video_in *v = tt_alloc0(ctx, &mem, 1, sizeof *v, "video input");
    if (!v) return ctx->status;
    v->ctx = ctx;
    v->in.fd = -1;
    v->mem = mem;
    v->path = tt_strdup(ctx, &v->mem, path);
    v->name_size = strlen(path) + 64;
    v->name = tt_alloc(ctx, &v->mem, (int64_t)v->name_size, 1, "name");
    if (!ctx->status) open_any(v);
    if (ctx->status)
        tt_video_in_close(v);
    else
        *out = v;
    return ctx->status;
}

int64_t tt_video_in_width(const tt_video_in *v)
{
    return v ? v->width : 0;
}

int64_t tt_video_in_height(const tt_video_in *v)
{
    return v ? v->height : 0;
}

/* ---- frames -------------------------------------------------------------- */

static tt_status ffmpeg_frame(tt_video_in *v, uint8_t *rgb, bool *more)
{
    int64_t width = v->width, height = v->height;
    if (!v->waiting)
        TT_TRY(ffmpeg_in_header(v->ctx, &v->ffmpeg, &width, &height,
                                &v->waiting));
    *more = v->waiting;
    v->waiting = false;
    if (!*more) return TT_OK;
    if (width != v->width || height != v->height)
        return tt_fail(v->ctx, TT_EFORMAT, "%s: frame %lld has %lldx%lld "
                       "pixels, but the first has %lldx%lld", v->path,
                       (long long)v->frames, (long long)width,
                       (long long)height, (long long)v->width,
                       (long long)v->height);
    return ffmpeg_in_pixels(v->ctx, &v->ffmpeg, rgb,
                            (size_t)(3 * width * height));
}

tt_status tt_video_in_frame(tt_video_in *v, uint8_t *rgb, bool *more)
{
    *more = false;
    if (!v) return TT_EINVAL;
    tt_ctx *ctx = v->ctx;
    *more = false;
    if (ctx->status) return ctx->status;
    if (v->source == SOURCE_Y4M) {
        y4m_next(ctx, &v->y4m, rgb, more);
    } else if (v->source == SOURCE_FFMPEG) {
        ffmpeg_frame(v, rgb, more);
    } else if (v->waiting) {
        memcpy(rgb, v->rgb, (size_t)(3 * v->width * v->height));
        *more = true;
        next_picture(v);
    }
    if (ctx->status) *more = false;
    v->frames += *more;
    return ctx->status;
}

void tt_video_in_close(tt_video_in *v)
{
    if (!v) return;
    ffmpeg_abort(&v->ffmpeg.child);
    stream_close(&v->in);
    tt_arena_free(&v->picture);
    tt_arena mem = v->mem;
    tt_arena_free(&mem);
}
