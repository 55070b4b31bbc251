/* decode.c: latents through the VAE into every output that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   memory does not depend on the number of frames, except for
 *         --raw-out, whose layout [1, 3, F, H, W] needs the whole video. */
#include "cli/generate/decode.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "cli/ui/outputs.h"
#include "tether/outfile.h"
#include "tether/video.h"

int64_t decode_frames(int64_t n)
{
    return n > 0 ? 1 + 4 * (n - 1) : 0;
}

/* Frames of all clips together; 0 when nothing is left of them. */
static int64_t shown_frames(const decode_outputs *o, int64_t clips, int64_t n)
{
    const int64_t each = decode_frames(n) - o->drop;
    return each > 0 ? clips * each : 0;
}

static tt_status check_animation(tt_ctx *ctx, const char *path,
                                 const tt_video_format *f)
{
    const size_t n = strlen(path);
    if (n < 5 || strcasecmp(path + n - 5, ".apng"))
        return tt_fail(ctx, TT_EINVAL, "--animation %s: what is written is an "
                       "animated PNG; give a name that ends in .apng", path);
    return tt_video_check(ctx, path, f);
}

tt_status decode_check(tt_ctx *ctx, const decode_outputs *o, int64_t clips,
                       int64_t n, int64_t h, int64_t w)
{
    tt_video_format f = {.width = 8 * w, .height = 8 * h, .fps = o->fps,
                         .frames = shown_frames(o, clips, n)};
    if (!f.frames)
        return tt_fail(ctx, TT_EINVAL, "clips of %lld frames have none left "
                       "without the last %lld", (long long)decode_frames(n),
                       (long long)o->drop);
    const output_name all[] = {{"-o", o->video}, {"--animation", o->animation},
                               {"--contact-sheet", o->sheet},
                               {"--raw-out", o->raw}};
    TT_TRY(outputs_differ(ctx, all, sizeof all / sizeof *all));
    if (o->video) TT_TRY(tt_video_check(ctx, o->video, &f));
    if (o->animation) TT_TRY(check_animation(ctx, o->animation, &f));
    if (o->sheet) TT_TRY(tt_out_check(ctx, o->sheet));
    if (o->raw) TT_TRY(tt_out_check(ctx, o->raw));
    return ctx->status;
}

/* Everything a decoded frame goes to. */
typedef struct sinks {
    tt_ctx *ctx;
    progress *progress;
    double start;
    int64_t width, height, frames; /* pixels, frames of the video             */
    int64_t done;                  /* frames taken                            */
    int64_t keep, seen;            /* frames taken of a clip; decoded of it   */
    tt_arena mem;
    uint8_t *rgb;                  /* [height, width, 3]                      */
    float *raw;                    /* [3, frames, height, width] or NULL      */
    const char *raw_path, *source;
    tt_video *video, *animation;
    tt_sheet *sheet;
} sinks;

static tt_status sinks_open(tt_ctx *ctx, sinks *s, const decode_outputs *o,
                            int64_t clips, int64_t n, int64_t h, int64_t w)
{
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    s->width = 8 * w;
    s->height = 8 * h;
    s->frames = shown_frames(o, clips, n);
    s->keep = decode_frames(n) - o->drop;
    s->raw_path = o->raw;
    s->source = o->source;
    tt_video_format f = {.width = s->width, .height = s->height,
                         .fps = o->fps, .frames = s->frames,
                         .title = o->title, .comment = o->comment};
    s->rgb = tt_alloc(ctx, &s->mem, s->width * s->height, 3, "a video frame");
    if (o->raw) {
        const int64_t dim[4] = {3, s->frames, s->height, s->width};
        int64_t bytes;
        if (!tt_checked_size(&bytes, dim, 4, sizeof(float)))
            return tt_fail(ctx, TT_ENOMEM, "--raw-out %s: %lld frames are too "
                           "many to hold in memory", o->raw,
                           (long long)s->frames);
        s->raw = tt_alloc(ctx, &s->mem, bytes, 1, "the video of --raw-out");
    }
    if (o->sheet)
        tt_sheet_open(ctx, &s->sheet, o->sheet, s->width, s->height,
                      s->frames);
    if (s->sheet) tt_sheet_comment(s->sheet, o->comment);
    if (o->video) tt_video_open(ctx, &s->video, o->video, &f);
    if (o->animation) tt_video_open(ctx, &s->animation, o->animation, &f);
    return ctx->status;
}

/* Receives decoder output, [height, width, 3] before clamping. */
static tt_status take_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    sinks *s = user;
    tt_ctx *ctx = s->ctx;
    const int64_t pixels = height * width;
    if (s->seen++ >= s->keep) return ctx->status;
    for (int64_t i = 0; i < 3 * pixels; i++)
        if (!isfinite(rgb[i]))
            return tt_fail(ctx, TT_EFORMAT, "decoded frame %lld contains "
                           "values that are not finite: the VAE weights or "
                           "the latents are damaged", (long long)s->done);
    tt_rgb8_from_real(s->rgb, rgb, pixels, 3, 1);
    if (s->raw)
        for (int64_t c = 0; c < 3; c++)
            for (int64_t i = 0; i < pixels; i++)
                s->raw[(c * s->frames + s->done) * pixels + i] =
                    (float)rgb[3 * i + c];
    s->done++;
    if (s->video) tt_video_frame(s->video, s->rgb);
    if (s->animation) tt_video_frame(s->animation, s->rgb);
    if (s->sheet) tt_sheet_frame(s->sheet, s->rgb);
    return ctx->status;
}

static tt_status write_raw(sinks *s)
{
    const int64_t dim[5] = {1, 3, s->frames, s->height, s->width};
    tt_st_writer *w;
    TT_TRY(tt_st_create(s->ctx, &w, s->raw_path));
    if (tt_st_add(w, "video_raw", TT_F32, 5, dim, s->raw)) {
        tt_st_abort(w);
        return s->ctx->status;
    }
    return tt_st_finish(w);
}

/* Finish every sink, or with a failure recorded give all of them up. */
static tt_status sinks_close(sinks *s)
{
    tt_ctx *ctx = s->ctx;
    if (s->video && !ctx->status) {
        tt_video_finish(s->video);
        s->video = NULL;
    }
    if (s->animation && !ctx->status) {
        tt_video_finish(s->animation);
        s->animation = NULL;
    }
    if (s->sheet && !ctx->status) {
        tt_sheet_finish(s->sheet);
        s->sheet = NULL;
    }
    if (s->raw && !ctx->status) write_raw(s);
    tt_video_abort(s->video);
    tt_video_abort(s->animation);
    tt_sheet_abort(s->sheet);
    tt_arena_free(&s->mem);
    return ctx->status;
}

static tt_status check_latent(const sinks *s, const tt_real *z, int64_t size,
                              int64_t frame)
{
    int64_t i = 0;
    while (i < size && isfinite(z[i])) i++;
    if (i == size) return TT_OK;
    return tt_fail(s->ctx, TT_EFORMAT, "%s%slatent frame %lld holds NaN or "
                   "infinite values, which cannot be decoded",
                   s->source ? s->source : "", s->source ? ": " : "",
                   (long long)frame);
}

static void log_latent(sinks *s, int64_t done, int64_t all)
{
    json_out j;
    if (!progress_log(s->progress, &j, "decode")) return;
    json_int(&j, "latents_done", done);
    json_int(&j, "latents", all);
    json_int(&j, "frames_done", s->done);
    json_int(&j, "frames", s->frames);
    json_real(&j, "decode_seconds", tt_now() - s->start);
    progress_logged(s->progress, &j);
}

/* Clip `clip` of latents [clips, n, C, h, w]; z holds one frame. */
static tt_status decode_clip(sinks *s, tt_vae_decoder *d, tt_real *z,
                             const tt_tensor *latents, int64_t clip,
                             const int64_t *split, int nsplit)
{
    tt_ctx *ctx = s->ctx;
    const int64_t n = latents->dim[1], all = latents->dim[0] * n;
    const int64_t size = latents->dim[2] * latents->dim[3] * latents->dim[4];
    int64_t f = 0;
    s->seen = 0;
    for (int turn = 0; f < n && !ctx->status; turn++) {
        int64_t stop = f + split[turn % nsplit];
        for (; f < n && f < stop && !ctx->status; f++) {
            const int64_t i = clip * n + f;
            tt_widen_at(z, latents, i * size, size);
            TT_TRY(check_latent(s, z, size, i));
            TT_TRY(tt_check_interrupt(ctx));
            TT_TRY(tt_vae_decode_next(ctx, d, z, take_frame, s));
            progress_update(s->progress, (double)(i + 1), (double)all,
                            tt_now() - s->start, "decoding latent %lld/%lld",
                            (long long)(i + 1), (long long)all);
            log_latent(s, i + 1, all);
        }
    }
    return ctx->status;
}

static tt_status decode_all(sinks *s, const tt_vae *vae,
                            const tt_tensor *latents, const int64_t *split,
                            int nsplit)
{
    tt_ctx *ctx = s->ctx;
    const int64_t C = latents->dim[2], h = latents->dim[3];
    const int64_t w = latents->dim[4];
    tt_real *z = tt_alloc(ctx, &s->mem, C * h * w, sizeof *z,
                          "a latent frame");
    s->start = tt_now();
    for (int64_t i = 0; i < latents->dim[0] && !ctx->status; i++) {
        tt_vae_decoder *d = NULL;
        TT_TRY(tt_vae_decoder_open(ctx, &d, vae, h, w));
        const size_t scope = latents->dim[0] == 1 ? strlen(ctx->path)
                           : tt_scope(ctx, "clip.%lld", (long long)i);
        decode_clip(s, d, z, latents, i, split, nsplit);
        tt_scope_end(ctx, scope);
        tt_vae_decoder_close(d);
    }
    return ctx->status;
}

tt_status decode_run(tt_ctx *ctx, progress *p, const tt_vae *vae,
                     const tt_tensor *latents, const int64_t *split,
                     int nsplit, const decode_outputs *o)
{
    const int64_t n = latents->dim[1], C = latents->dim[2];
    const int64_t h = latents->dim[3], w = latents->dim[4];
    char memory[32];
    sinks s;
    if (C != tt_vae_z(vae))
        return tt_fail(ctx, TT_ESHAPE, "the latents have %lld channels and "
                       "the VAE takes %lld: they belong to different models",
                       (long long)C, (long long)tt_vae_z(vae));
    progress_note(p, "decoder needs about %s",
                  progress_bytes(memory, sizeof memory,
                                 tt_vae_decoder_bytes(vae, h, w)));
    sinks_open(ctx, &s, o, latents->dim[0], n, h, w);
    s.progress = p;
    if (!ctx->status) decode_all(&s, vae, latents, split, nsplit);
    sinks_close(&s);
    if (ctx->status && o->after) progress_say(p, "tether: %s", o->after);
    return ctx->status;
}
