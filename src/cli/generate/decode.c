/* decode.c: latents through the VAE into every output that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   every frame goes to all outputs as it leaves the VAE. Latents may
 *         come while we decode: a turn ends where there are none yet.
 * Holds   memory does not depend on the number of frames, except for
 *         --raw-out, whose layout [1, 3, F, H, W] needs the whole video.
 * Next    src/vae/decoder.c */
#include "cli/generate/decode.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ui/outputs.h"
#include "io/shows.h"
#include "io/outfile.h"
#include "team/team.h"
#include "io/video.h"

enum { FRAMES = 4 }; /* of every latent frame but the first */

int64_t decode_frames(int64_t n)
{
    return n > 0 ? 1 + FRAMES * (n - 1) : 0;
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

const char *decode_unfinished(tt_ctx *ctx, tt_arena *mem, const char *video)
{
    enum { LONGEST = 240 };
    struct stat st;
    if (!video || ctx->status) return NULL;
    if (!lstat(video, &st) && S_ISLNK(st.st_mode)) /* on its file system */
        video = tt_out_target(ctx, mem, video);
    if (!video || (!stat(video, &st) && !S_ISREG(st.st_mode))) return NULL;
    const char *slash = strrchr(video, '/'), *base = slash ? slash + 1 : video;
    const char *dot = strrchr(base, '.');
    if (!dot || dot == base || strlen(base) > LONGEST || strchr(base, '%')
        || !strcasecmp(dot, ".png") || !strcasecmp(dot, ".apng")) return NULL;
    const size_t n = strlen(video) + 16;
    char *name = tt_alloc(ctx, mem, (int64_t)n, 1, "file name");
    if (name)
        snprintf(name, n, "%.*s.unfinished%s", (int)(dot - video), video, dot);
    return name;
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
    int64_t each, seen;            /* frames taken of a clip; decoded of it   */
    tt_arena mem;
    uint8_t *rgb;                  /* [height, width, 3]                      */
    float *raw;                    /* [3, frames, height, width] or NULL      */
    const char *raw_path, *source;
    const char *unfinished;        /* the video until it is complete, or NULL */
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
    s->each = decode_frames(n) - o->drop;
    s->raw_path = o->raw;
    s->source = o->source;
    s->rgb = tt_alloc(ctx, &s->mem, s->height * s->width, 3, "a video frame");
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
    return ctx->status;
}

static tt_status open_videos(sinks *s, const decode_outputs *o)
{
    tt_video_format f = {.width = s->width, .height = s->height,
                         .fps = o->fps, .frames = s->frames,
                         .title = o->title, .comment = o->comment};
    if (o->animation)
        tt_video_open(s->ctx, &s->animation, o->animation, &f);
    f.unfinished = decode_unfinished(s->ctx, &s->mem, o->video);
    if (!o->video || tt_video_open(s->ctx, &s->video, o->video, &f))
        return s->ctx->status;
    s->unfinished = f.unfinished; /* ours from here on */
    return TT_OK;
}

/* Receives decoder output, [height, width, 3] before clamping. */
static tt_status take_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    sinks *s = user;
    tt_ctx *ctx = s->ctx;
    const int64_t pixels = height * width;
    if (s->seen++ >= s->each) return ctx->status;
    for (int64_t i = 0; i < 3 * pixels; i++)
        if (!isfinite(rgb[i]))
            return tt_fail(ctx, TT_EFORMAT, "decoded frame %lld contains "
                           "values that are not finite: the VAE weights or "
                           "the latents are damaged", (long long)s->done);
    tt_rgb8_from_real(s->rgb, rgb, pixels, 3, 1);
    for (int64_t c = 0; s->raw && c < 3; c++)
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

/* ---- a decoding ---------------------------------------------------------- */

struct decoding {
    sinks s;
    tt_arena own;                  /* this very structure                     */
    const tt_vae *vae;
    tt_tensor latents;             /* those to come have their room           */
    tt_real *z;                    /* one of them                             */
    int64_t next;                  /* the one whose frames are to come        */
    const char *after;             /* said at a second signal                 */
    double spent;                  /* seconds of earlier videos       */
    tt_vae_decoder *decoder;       /* of the clip of `next`; NULL: none yet   */
};

static int64_t latents_of(const decoding *d)
{
    return d->latents.dim[0] * d->latents.dim[1];
}

/* The next latent frame into d->z. */
static tt_status read_latent(decoding *d)
{
    const int64_t *dim = d->latents.dim, size = dim[2] * dim[3] * dim[4];
    tt_widen_at(d->z, &d->latents, d->next * size, size);
    return check_latent(&d->s, d->z, size, d->next);
}

/* What there is to see of a video that was given up stays, where latents and
 * weights are good. */
static void keep_unfinished(sinks *s)
{
    const tt_status status = s->ctx->status;
    if (!status || !s->unfinished) return;
    if (status == TT_EFORMAT || !shows_picture(s->unfinished))
        unlink(s->unfinished);
    else
        progress_say(s->progress, "tether: %lld of %lld frames can be seen in "
                     "%s", (long long)s->done, (long long)s->frames,
                     s->unfinished);
}

/* ---- decoding ------------------------------------------------------------ */

static void close_decoder(decoding *d)
{
    tt_vae_decoder_close(d->decoder);
    d->decoder = NULL;
}

static tt_status run_decoder(decoding *d)
{
    tt_ctx *ctx = d->s.ctx;
    const int64_t *dim = d->latents.dim;
    const size_t scope = dim[0] == 1 ? strlen(ctx->path)
                       : tt_scope(ctx, "clip.%lld",
                                  (long long)(d->next / dim[1]));
    tt_vae_decode_next(ctx, d->decoder, d->z, take_frame, &d->s);
    tt_scope_end(ctx, scope);
    return ctx->status;
}

static tt_status decode_latent(decoding *d)
{
    sinks *s = &d->s;
    const int64_t *dim = d->latents.dim, all = latents_of(d);
    if (!d->decoder)
        TT_TRY(tt_vae_decoder_open(s->ctx, &d->decoder, d->vae, dim[3],
                                   dim[4]));
    TT_TRY(read_latent(d));
    TT_TRY(tt_check_interrupt(s->ctx));
    TT_TRY(run_decoder(d));
    d->next++;
    progress_update(s->progress, (double)d->next, (double)all,
                    tt_now() - s->start, "decoding latent %lld/%lld",
                    (long long)d->next, (long long)all);
    log_latent(s, d->next, all);
    if (d->next % dim[1]) return TT_OK;
    close_decoder(d);
    s->seen = 0;
    return TT_OK;
}

tt_status decode_up_to(decoding *d, int64_t ready)
{
    tt_ctx *ctx = d->s.ctx;
    TT_TRY(ctx->status);
    d->s.start = tt_now() - d->spent;
    while (d->next < ready && !ctx->status) decode_latent(d);
    d->spent = tt_now() - d->s.start;
    return ctx->status;
}

double decode_seconds(const decoding *d)
{
    return d->spent;
}

void decode_stop_words(decoding *d)
{
    cli_stop_words(NULL, d->after);
}

static tt_status generate_decode_begin(decoding *d, progress *p,
                                       const decode_outputs *o)
{
    tt_ctx *ctx = d->s.ctx;
    const int64_t *dim = d->latents.dim;
    char memory[32];
    if (dim[2] != tt_vae_z(d->vae))
        return tt_fail(ctx, TT_ESHAPE, "the latents have %lld channels and "
                       "the VAE takes %lld: they belong to different models",
                       (long long)dim[2], (long long)tt_vae_z(d->vae));
    const char *folder = tt_vae_folder(d->vae);
    progress_note(p, "decoder needs about %s%s%s%s",
                  progress_bytes(memory, sizeof memory,
                                 tt_vae_decoder_bytes(d->vae, dim[3], dim[4])),
                  tt_team_size(ctx) > 1 ? " on all ranks together" : "",
                  folder ? ", and files in " : "", folder ? folder : "");
    TT_TRY(sinks_open(ctx, &d->s, o, dim[0], dim[1], dim[3], dim[4]));
    d->s.progress = p;
    d->z = tt_alloc(ctx, &d->s.mem, dim[2] * dim[3] * dim[4], sizeof *d->z,
                    "a latent frame");
    return open_videos(&d->s, o);
}

tt_status decode_begin(tt_ctx *ctx, decoding **out, progress *p,
                       const tt_vae *vae, const tt_tensor *latents,
                       const decode_outputs *o)
{
    tt_arena mem = {0};
    *out = NULL;
    TT_TRY(ctx->status);
    decoding *d = tt_alloc0(ctx, &mem, 1, sizeof *d, "a decoding");
    if (!d) return ctx->status;
    *d = (decoding){.s = {.ctx = ctx, .progress = p}, .own = mem, .vae = vae,
                    .latents = *latents, .after = o->after};
    if (generate_decode_begin(d, p, o)) return decode_end(d);
    *out = d;
    return TT_OK;
}

tt_status decode_end(decoding *d)
{
    sinks *s = &d->s;
    tt_ctx *ctx = s->ctx;
    close_decoder(d);
    sinks_close(s);
    cli_stop_words(NULL, NULL);
    keep_unfinished(s);
    tt_arena_free(&s->mem);
    tt_arena own = d->own;
    tt_arena_free(&own);
    return ctx->status;
}

tt_status decode_run(tt_ctx *ctx, progress *p, const tt_vae *vae,
                     const tt_tensor *latents, const int64_t *split,
                     int nsplit, const decode_outputs *o)
{
    decoding *d;
    if (!decode_begin(ctx, &d, p, vae, latents, o)) {
        const int64_t all = latents_of(d);
        for (int64_t at = 0, turn = 0; at < all && !ctx->status; turn++) {
            const int64_t n = split[turn % nsplit];
            at = n < all - at ? at + n : all;
            decode_up_to(d, at);
        }
        decode_end(d);
    }
    if (ctx->status && o->after) progress_say(p, "tether: %s", o->after);
    return ctx->status;
}
