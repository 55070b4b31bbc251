/* video.c: frames into a video file, whatever the target.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   a y4m or encoded file is written under a temporary name; of a PNG
 *         pattern every frame is complete by itself as soon as it is there.
 * Next    encoder.c */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/apng.h"
#include "io/encoder.h"
#include "io/place.h"
#include "io/outfile.h"
#include "io/video.h"

typedef enum target {
    TARGET_Y4M, TARGET_STDOUT, TARGET_PNG, TARGET_PATTERN, TARGET_APNG,
    TARGET_ENCODER
} target;

struct tt_video {
    tt_ctx *ctx;
    tt_arena mem;
    target target;
    char *path;
    tt_video_format format;
    int64_t frames;         /* written so far                                 */
    tt_out out;             /* y4m, encoder                                   */
    ffmpeg encoder;
    apng animation;
    uint8_t *planes;        /* y4m: one 4:4:4 frame                           */
    char *name;             /* pattern: the frame's file name                 */
    bool is_new;            /* pattern: no first picture was there            */
};

enum { NUMBER_MAX = 24 };

/* ---- what is asked for --------------------------------------------------- */

static void lower_ending(char *out, size_t n, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    size_t i = 0;
    for (; dot && dot[i] && i + 1 < n; i++)
        out[i] = (char)tolower((unsigned char)dot[i]);
    out[i] = 0;
}

/* A pattern is a name with exactly one %d, %5d or %05d; fills its width and
 * the span of the conversion. */
static bool parse_pattern(const char *path, int *width, bool *zeros,
                          size_t *begin, size_t *end)
{
    const char *p = strchr(path, '%');
    if (!p || strchr(p + 1, '%')) return false;
    *begin = (size_t)(p - path);
    p++;
    *zeros = *p == '0';
    *width = 0;
    while (isdigit((unsigned char)*p)) {
        *width = *width * 10 + (*p++ - '0');
        if (*width > NUMBER_MAX - 4) return false;
    }
    *end = (size_t)(p - path) + 1;
    return *p == 'd';
}

static tt_status find_target(tt_ctx *ctx, target *out, const char *path)
{
    char ending[16];
    int width;
    bool zeros;
    size_t b, e;
    lower_ending(ending, sizeof ending, path);
    if (!strcmp(path, "-"))
        *out = TARGET_STDOUT;
    else if (!strcmp(ending, ".y4m"))
        *out = TARGET_Y4M;
    else if (!strcmp(ending, ".apng"))
        *out = TARGET_APNG;
    else if (encoder_knows(ending))
        *out = TARGET_ENCODER;
    else if (!strcmp(ending, ".png") && !strchr(path, '%'))
        *out = TARGET_PNG;
    else if (!strcmp(ending, ".png")
             && parse_pattern(path, &width, &zeros, &b, &e))
        *out = TARGET_PATTERN;
    else if (!strcmp(ending, ".png"))
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: a PNG pattern has "
                       "exactly one frame number, as in frames/%%05d.png",
                       path);
    else
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: the name must end in "
                       ".apng, .mp4, .mov, .webm, .mkv, .gif, .y4m or .png "
                       "(a pattern like frames/%%05d.png), or be - for y4m on "
                       "standard output",
                       path);
    return TT_OK;
}

/* The directory part of `path` without the slash; "." without one. */
static void video_folder_of(char *out, size_t n, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (slash && len == 0) len = 1; /* the root */
    snprintf(out, n, "%.*s", slash ? (int)len : 1, slash ? path : ".");
}

/* Check a pattern's directory, or whether its parent can take it. */
static tt_status check_folder(tt_ctx *ctx, const char *path)
{
    char folder[4096];
    struct stat st;
    video_folder_of(folder, sizeof folder, path);
    if (stat(folder, &st) == 0) {
        if (!S_ISDIR(st.st_mode) || access(folder, W_OK | X_OK))
            return tt_fail(ctx, TT_EIO, "cannot write %s: %s is not a "
                           "directory that can be written to", path, folder);
        return TT_OK;
    }
    return tt_out_check(ctx, folder);
}

static tt_status video_make_folder(tt_ctx *ctx, const char *path)
{
    char folder[4096];
    video_folder_of(folder, sizeof folder, path);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return tt_fail(ctx, TT_EIO, "cannot write %s: cannot create %s: %s",
                       path, folder, strerror(errno));
    return check_folder(ctx, path);
}

static tt_status check_format(tt_ctx *ctx, const char *path, target t,
                              const tt_video_format *f)
{
    if (f->width < 1 || f->height < 1 || f->width > TT_PICTURE_SIDE_MAX
        || f->height > TT_PICTURE_SIDE_MAX
        || f->width * f->height > TT_PICTURE_AREA_MAX)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: frames of %lldx%lld "
                       "pixels are outside what video output takes (sides 1 "
                       "to %d, at most %lld pixels)", path,
                       (long long)f->width, (long long)f->height,
                       TT_PICTURE_SIDE_MAX, (long long)TT_PICTURE_AREA_MAX);
    if (f->fps < 1 || f->fps > 1000)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: %d frames per second "
                       "is outside 1 to 1000", path, f->fps);
    if (t == TARGET_PNG && f->frames > 1)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: one .png holds one "
                       "frame and the video has %lld; use .apng, or a "
                       "pattern like frames/%%05d.png", path,
                       (long long)f->frames);
    return TT_OK;
}

/* The number of frames stands at the beginning and is known at the end. */
static tt_status check_seekable(tt_ctx *ctx, const char *path)
{
    struct stat st;
    if (stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "cannot write %s: an animated PNG needs a "
                   "file, and this is a pipe or a device", path);
}

tt_status tt_video_check(tt_ctx *ctx, const char *path,
                         const tt_video_format *f)
{
    target t;
    if (ctx->status) return ctx->status;
    TT_TRY(find_target(ctx, &t, path));
    TT_TRY(check_format(ctx, path, t, f));
    if (t == TARGET_STDOUT) return TT_OK;
    if (t == TARGET_PATTERN) return check_folder(ctx, path);
    if (t == TARGET_ENCODER) TT_TRY(encoder_check(ctx, path));
    if (t == TARGET_APNG) TT_TRY(check_seekable(ctx, path));
    return tt_out_check(ctx, path);
}

/* ---- writing ------------------------------------------------------------- */

static tt_status y4m_begin(tt_video *v)
{
    char head[160];
    int n = snprintf(head, sizeof head, "YUV4MPEG2 W%lld H%lld F%d:1 Ip A1:1 "
                     "C444 XCOLORRANGE=LIMITED\n", (long long)v->format.width,
                     (long long)v->format.height, v->format.fps);
    v->planes = tt_alloc(v->ctx, &v->mem, v->format.width * v->format.height,
                         3, "y4m frame");
    return tt_out_write(v->ctx, &v->out, head, (size_t)n);
}

static tt_status y4m_frame(tt_video *v, const uint8_t *rgb)
{
    int64_t n = v->format.width * v->format.height;
    tt_yuv_from_rgb(v->planes, v->planes + n, v->planes + 2 * n, rgb, n);
    tt_out_write(v->ctx, &v->out, "FRAME\n", 6);
    TT_TRY(tt_out_write(v->ctx, &v->out, v->planes, (size_t)(3 * n)));
    if (!fflush(v->out.file)) return TT_OK; /* to who looks on */
    return tt_fail(v->ctx, TT_EIO, "cannot write %s: %s", v->out.path,
                   strerror(errno));
}

bool tt_pattern_name(char *buf, size_t n, const char *pattern, int64_t index)
{
    int width = 0;
    bool zeros = false;
    size_t b = 0, e = 0;
    if (strlen(pattern) + NUMBER_MAX > n
        || !parse_pattern(pattern, &width, &zeros, &b, &e)) return false;
    snprintf(buf, n, zeros ? "%.*s%0*lld%s" : "%.*s%*lld%s", (int)b, pattern,
             width, (long long)index, pattern + e);
    return true;
}

static tt_status video_begin(tt_video *v)
{
    tt_ctx *ctx = v->ctx;
    char ending[16];
    switch (v->target) {
    case TARGET_STDOUT:
        v->out.file = stdout;
        v->out.path = tt_strdup(ctx, &v->mem, "standard output");
        return y4m_begin(v);
    case TARGET_Y4M:
        TT_TRY(place_open(ctx, &v->out, v->path, v->format.unfinished));
        return y4m_begin(v);
    case TARGET_APNG:
        TT_TRY(tt_out_open(ctx, &v->out, v->path));
        return apng_begin(ctx, &v->mem, &v->animation, &v->out, &v->format);
    case TARGET_ENCODER:
        TT_TRY(place_open(ctx, &v->out, v->path, v->format.unfinished));
        fclose(v->out.file); /* it said early when it cannot work */
        v->out.file = NULL;
        lower_ending(ending, sizeof ending, v->path);
        return encoder_start(ctx, &v->encoder, v->path,
                             v->out.temporary ? v->out.temporary
                                              : v->out.final,
                             ending, &v->format);
    case TARGET_PATTERN:
        v->name = tt_alloc(ctx, &v->mem,
                           (int64_t)strlen(v->path) + NUMBER_MAX, 1, "name");
        return video_make_folder(ctx, v->path);
    case TARGET_PNG: break;
    }
    return ctx->status;
}

static const char *picture_name(tt_video *v, int64_t index)
{
    tt_pattern_name(v->name, strlen(v->path) + NUMBER_MAX, v->path, index);
    return v->name;
}

/* Pictures that are all to be new never replace one: another run writes the
 * same names, or a longer video has left it. */
static tt_status keep_picture(const tt_video *v)
{
    if (!v->is_new || place_is_new(v->ctx, v->name))
        return v->ctx->status;
    return tt_fail(v->ctx, TT_EIO, "cannot write %s: a file of that name is "
                   "there, and it stays; give another name, or --overwrite",
                   v->name);
}

tt_status tt_video_open(tt_ctx *ctx, tt_video **out, const char *path,
                        const tt_video_format *f)
{
    target t;
    *out = NULL;
    if (ctx->status) return ctx->status;
    TT_TRY(find_target(ctx, &t, path));
    TT_TRY(check_format(ctx, path, t, f));

    tt_arena mem = {0};
    tt_video *v = tt_alloc0(ctx, &mem, 1, sizeof *v, "video output");
    if (!v) return ctx->status;
    v->ctx = ctx;
    v->mem = mem;
    v->target = t;
    v->format = *f;
    v->path = tt_strdup(ctx, &v->mem, path);
    if (f->title) v->format.title = tt_strdup(ctx, &v->mem, f->title);
    if (f->comment) v->format.comment = tt_strdup(ctx, &v->mem, f->comment);
    if (f->unfinished)
        v->format.unfinished = tt_strdup(ctx, &v->mem, f->unfinished);
    if (!ctx->status) video_begin(v);
    if (t == TARGET_PATTERN && !ctx->status)
        v->is_new = place_is_new(ctx, picture_name(v, 0));
    if (ctx->status)
        tt_video_abort(v);
    else
        *out = v;
    return ctx->status;
}

tt_status tt_video_frame(tt_video *v, const uint8_t *rgb)
{
    if (!v) return TT_EINVAL;
    tt_ctx *ctx = v->ctx;
    const int64_t w = v->format.width, h = v->format.height;
    if (ctx->status) return ctx->status;
    int64_t index = v->frames++;
    switch (v->target) {
    case TARGET_STDOUT:
    case TARGET_Y4M: return y4m_frame(v, rgb);
    case TARGET_APNG: return apng_frame(ctx, &v->animation, &v->out, rgb);
    case TARGET_ENCODER:
        return encoder_write(ctx, &v->encoder, rgb, (size_t)(3 * w * h));
    case TARGET_PATTERN:
        picture_name(v, index);
        TT_TRY(keep_picture(v));
        return tt_png_write_text(ctx, v->name, rgb, w, h, v->format.comment);
    case TARGET_PNG: break;
    }
    if (index)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: one .png holds one "
                       "frame; use .apng, or a pattern like frames/%%05d.png",
                       v->path);
    return tt_png_write_text(ctx, v->path, rgb, w, h, v->format.comment);
}

/* A copy with an index in the place of the file; false: there is none. */
static bool replace_indexed(tt_video *v, const char *ending,
                            const char *file)
{
    char copy[4200];
    struct stat st;
    if ((size_t)snprintf(copy, sizeof copy, "%s.index", file) >= sizeof copy)
        return false;
    const int fd = place_create(copy);
    if (fd < 0) return false;
    close(fd);
    encoder_index(v->ctx, v->path, ending, file, copy);
    if (!v->ctx->status && !stat(copy, &st) && st.st_size
        && !rename(copy, file)) return true;
    unlink(copy);
    return false;
}

/* Of an mp4 or mov in fragments an ordinary one, where it can be made. */
static void make_index(tt_video *v)
{
    char ending[16];
    const char *file = v->out.temporary;
    lower_ending(ending, sizeof ending, v->path);
    if ((strcmp(ending, ".mp4") && strcmp(ending, ".mov")) || !file
        || v->ctx->status) return;
    if (!replace_indexed(v, ending, file) && !v->ctx->status)
        tt_warn(v->ctx, "%s stays in fragments: no copy of it with an index "
                "could be made, for which there must be room; all its frames "
                "are there", v->path);
}

/* ffmpeg says that all is well: is anything there? */
static tt_status check_written(const tt_video *v)
{
    struct stat st;
    if (v->ctx->status || !v->out.temporary || stat(v->out.temporary, &st)
        || st.st_size) return v->ctx->status;
    return tt_fail(v->ctx, TT_EIO, "cannot write %s: ffmpeg ended with exit "
                   "status 0 and has written nothing", v->path);
}

tt_status tt_video_finish(tt_video *v)
{
    if (!v) return TT_EINVAL;
    tt_ctx *ctx = v->ctx;
    if (ctx->status) {
        tt_video_abort(v);
        return ctx->status;
    }
    if (v->target == TARGET_STDOUT) {
        if (fflush(stdout))
            tt_fail(ctx, TT_EIO, "cannot write standard output: %s",
                    strerror(errno));
    } else if (v->target == TARGET_ENCODER) {
        ffmpeg_finish(ctx, &v->encoder);
        if (!check_written(v)) make_index(v);
        if (!ctx->status) tt_out_finish(ctx, &v->out);
    } else if (v->target == TARGET_APNG) {
        apng_end(ctx, &v->animation, &v->out);
        tt_out_finish(ctx, &v->out);
    } else if (v->target == TARGET_Y4M) {
        tt_out_finish(ctx, &v->out);
    }
    tt_video_abort(v);
    return ctx->status;
}

void tt_video_abort(tt_video *v)
{
    if (!v) return;
    if (v->format.unfinished) {
        ffmpeg_leave(&v->encoder);
        if (v->out.file) fflush(v->out.file);
        v->out.temporary = NULL; /* it stays */
    }
    ffmpeg_abort(&v->encoder);
    if (v->target != TARGET_STDOUT) tt_out_abort(&v->out);
    tt_arena mem = v->mem;
    tt_arena_free(&mem);
}
