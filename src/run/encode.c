/* encode.c: pictures, videos or raw frames through the VAE encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   memory does not depend on the number of frames. */
#include "run/parts.h"

#include <math.h>
#include <string.h>

#include "io/inputs.h"
#include "io/stream.h"
#include "io/video.h"

/* ---- frames, wherever they come from ------------------------------------- */

typedef struct frames {
    tt_ctx *ctx;
    const tt_encode_input *in;
    tt_arena mem;
    int64_t width, height;      /* of what is handed out                      */
    int64_t at;                 /* number of the next frame of the input      */
    tt_video_in *video;
    int64_t own_width, own_height;
    uint8_t *rgb, *sized;       /* a frame as stored; resized                 */
    tt_file *file;
    tt_tensor raw;              /* [1, 3, F, H, W]                            */
} frames;

static int64_t nearest_16(int64_t v)
{
    return v < 24 ? 16 : (v + 8) / 16 * 16;
}

static tt_status check_own_size(const frames *f)
{
    if (f->width % 16 == 0 && f->height % 16 == 0) return TT_OK;
    return tt_fail(f->ctx, TT_EINVAL, "%s has %lldx%lld pixels, but both sides "
                   "must be multiples of 16; -W %lld -H %lld resizes it to the "
                   "nearest size", f->in->path, (long long)f->width,
                   (long long)f->height, (long long)nearest_16(f->width),
                   (long long)nearest_16(f->height));
}

static tt_status open_video(frames *f)
{
    tt_ctx *ctx = f->ctx;
    TT_TRY(tt_video_in_open(ctx, &f->video, f->in->path));
    f->width = f->own_width = tt_video_in_width(f->video);
    f->height = f->own_height = tt_video_in_height(f->video);
    if (f->in->width) f->width = f->in->width;
    if (f->in->height) f->height = f->in->height;
    TT_TRY(check_own_size(f));
    f->rgb = tt_alloc(ctx, &f->mem, f->own_width * f->own_height, 3, "frame");
    f->sized = f->rgb;
    if (f->width != f->own_width || f->height != f->own_height)
        f->sized = tt_alloc(ctx, &f->mem, f->width * f->height, 3, "frame");
    return ctx->status;
}

static tt_status frames_open(tt_ctx *ctx, frames *f, const tt_encode_input *in)
{
    const int64_t dim[5] = {1, 3, -1, -1, -1};
    *f = (frames){.ctx = ctx, .in = in};
    if (in->path) return open_video(f);
    TT_TRY(input_open(ctx, &f->file, &f->raw, in->raw, "video", 5, dim));
    f->height = f->raw.dim[3];
    f->width = f->raw.dim[4];
    if (f->height >= 8 && f->width >= 8) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "%s: frames of %lldx%lld pixels; the VAE "
                   "needs at least 8x8", in->raw, (long long)f->width,
                   (long long)f->height);
}

static void frames_close(frames *f)
{
    tt_video_in_close(f->video);
    if (f->file) tt_file_close(f->file);
    tt_arena_free(&f->mem);
}

/* Frame f->at of a raw video, channels last. */
static tt_status raw_frame(const frames *f, tt_real *x)
{
    const int64_t pixels = f->height * f->width, F = f->raw.dim[2];
    const size_t stored = tt_dtype_size(f->raw.dtype);
    tt_arena_mark mark = tt_arena_here(&f->ctx->scratch);
    tt_real *plane = tt_scratch(f->ctx, pixels);
    for (int64_t c = 0; plane && c < 3; c++) {
        const char *at = (const char *)f->raw.data
                       + (size_t)((c * F + f->at) * pixels) * stored;
        tt_widen(plane, at, f->raw.dtype, pixels);
        for (int64_t i = 0; i < pixels; i++) {
            x[3 * i + c] = plane[i];
            if (!isfinite(plane[i]))
                tt_fail(f->ctx, TT_EFORMAT, "%s: frame %lld of `video` holds "
                        "NaN or infinite values", f->in->raw,
                        (long long)f->at);
        }
    }
    tt_arena_reset(&f->ctx->scratch, mark);
    return f->ctx->status;
}

/* The next frame, [height, width, 3] in [-1, 1]; x NULL: only step over it. */
static tt_status frames_next(frames *f, tt_real *x, bool *more)
{
    tt_ctx *ctx = f->ctx;
    *more = false;
    if (ctx->status) return ctx->status;
    if (f->in->take && f->at >= f->in->skip + f->in->take) return TT_OK;
    if (f->file) {
        *more = f->at < f->raw.dim[2];
        if (*more && x) raw_frame(f, x);
    } else {
        tt_video_in_frame(f->video, f->rgb, more);
        if (*more && x && f->sized != f->rgb)
            tt_rgb_resize(ctx, f->sized, f->width, f->height, f->rgb,
                          f->own_width, f->own_height);
        if (*more && x)
            tt_real_from_rgb8(x, f->sized, 3 * f->width * f->height);
    }
    f->at += *more;
    return ctx->status;
}

/* Step over in->skip frames; fewer than that is an error. */
static tt_status frames_skip(frames *f)
{
    bool more = true;
    while (f->at < f->in->skip && more) {
        TT_TRY(tt_check_interrupt(f->ctx));
        TT_TRY(frames_next(f, NULL, &more));
    }
    return f->ctx->status;
}

/* ---- measuring ----------------------------------------------------------- */

/* Fill in what follows from the number of frames. */
static tt_status encode_complete(const frames *f, tt_encode_size *s)
{
    const tt_encode_input *in = f->in;
    const int64_t found = f->at;
    const char *name = in->path ? in->path : in->raw;
    s->width = f->width;
    s->height = f->height;
    s->frames = found - in->skip;
    if (s->frames < 1 || (in->take && s->frames < in->take))
        return tt_fail(f->ctx, TT_EINVAL, "%s has %lld frames, but %lld are to "
                       "be left out and at least %lld taken", name,
                       (long long)found, (long long)in->skip,
                       (long long)(in->take ? in->take : 1));
    s->latents = 1 + (s->frames - 1) / 4;
    s->dropped = (s->frames - 1) % 4;
    return TT_OK;
}

static tt_status encode_count(frames *f, tt_encode_size *s)
{
    bool more = true;
    while (more) {
        TT_TRY(tt_check_interrupt(f->ctx));
        TT_TRY(frames_next(f, NULL, &more));
    }
    return encode_complete(f, s);
}

tt_status tt_encode_measure(tt_ctx *ctx, tt_encode_size *s,
                            const tt_encode_input *in)
{
    frames f;
    *s = (tt_encode_size){0};
    if (ctx->status || (in->path && stream_once(in->path)))
        return ctx->status;
    frames_open(ctx, &f, in);
    if (!ctx->status) encode_count(&f, s);
    frames_close(&f);
    return ctx->status;
}

/* ---- encoding ------------------------------------------------------------ */

static tt_status encode_all(frames *f, const tt_run_events *events,
                            tt_vae_encoder *e, const tt_vae *vae,
                            const tt_encode_size *s, tt_encode_fn emit,
                            void *user)
{
    tt_ctx *ctx = f->ctx;
    const double start = tt_now();
    tt_real *x = tt_alloc(ctx, &f->mem, 3 * f->width * f->height, sizeof *x,
                          "frame");
    const int64_t C = tt_vae_z(vae), h = f->height / 8, w = f->width / 8;
    tt_real *z = tt_alloc(ctx, &f->mem, C * h * w, sizeof *z, "latent frame");
    bool more = true, ready = false;
    TT_TRY(frames_skip(f));
    for (int64_t n = 1; !ctx->status; n++) {
        TT_TRY(tt_check_interrupt(ctx));
        TT_TRY(frames_next(f, x, &more));
        if (!more) break;
        TT_TRY(tt_vae_encode_next(ctx, e, z, &ready, x));
        if (ready) TT_TRY(emit(user, z, C, h, w));
        if (s->frames)
            run_work(events, (tt_run_work){.done = (double)n,
                                           .total = (double)s->frames,
                                           .seconds = tt_now() - start},
                     "encoding frame %lld/%lld", (long long)n,
                     (long long)s->frames);
        else if (ready)
            run_say(events, true, "encoded frame %lld", (long long)n);
    }
    return ctx->status;
}

tt_status tt_encode_run(tt_ctx *ctx, const tt_run_events *events,
                        const tt_vae *vae, const tt_encode_input *in,
                        tt_encode_size *s, tt_encode_fn emit, void *user)
{
    frames f;
    tt_vae_encoder *e = NULL;
    if (ctx->status) return ctx->status;
    frames_open(ctx, &f, in);
    if (!ctx->status)
        tt_vae_encoder_open(ctx, &e, vae, f.height, f.width);
    if (!ctx->status) encode_all(&f, events, e, vae, s, emit, user);
    if (!ctx->status) encode_complete(&f, s);
    if (!ctx->status && s->dropped)
        tt_warn(ctx, "the last %lld of %lld frames do not fill a group of 4 "
                "and were dropped (after the first frame, 4 make a latent)",
                (long long)s->dropped, (long long)s->frames);
    if (e) tt_vae_encoder_close(e);
    frames_close(&f);
    return ctx->status;
}
