/* decode.c: latents through the VAE into every output that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   every frame is kept (frames_file.h) and then goes to all outputs. To
 *         go on, those kept go there again, and the VAE begins as many latents
 *         before the next as its convolutions look back. Latents may come while
 *         we decode: a turn ends where there are no more of them yet.
 * Holds   memory does not depend on the number of frames, except for
 *         --raw-out, whose layout [1, 3, F, H, W] needs the whole video.
 * Next    frames_file.c */
#include "cli/generate/decode.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/generate/ledger.h"
#include "cli/ui/outputs.h"
#include "io/shows.h"
#include "run/identity.h"
#include "ops/backend.h"
#include "io/outfile.h"
#include "team/team.h"
#include "tether/version.h"
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

/* "frames/%05d.png" -> "frames.%05d.png": the folder is made with the first
 * picture. One of dots alone has no name to build on. */
static void beside_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path || !strchr(slash, '%')) return;
    const char *name = slash;
    while (name > path && name[-1] != '/') name--;
    if (strspn(name, ".") < (size_t)(slash - name)) *slash = '.';
}

const char *decode_frames_name(tt_ctx *ctx, tt_arena *mem,
                               const decode_outputs *o, const char *latents)
{
    const bool piped = o->video && !strcmp(o->video, "-");
    const char *base = o->video && !piped ? o->video : o->animation;
    if (!base) base = o->sheet ? o->sheet : o->raw ? o->raw
                    : piped ? latents : NULL;
    if (!base) return NULL;
    const size_t n = strlen(base) + 8;
    char *out = tt_alloc(ctx, mem, (int64_t)n, 1, "file name");
    if (!out) return NULL;
    snprintf(out, n, "%s", base);
    beside_folder(out);
    strcat(out, ".frames");
    return out;
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
    tt_arena mem = {0};
    const char *frames = decode_frames_name(ctx, &mem, o, NULL);
    const output_name all[] = {{"-o", o->video}, {"--animation", o->animation},
                               {"--contact-sheet", o->sheet},
                               {"--raw-out", o->raw},
                               {"the frames so far", frames},
                               {"the list of outputs so far",
                                ledger_name(ctx, &mem, frames)}};
    outputs_differ(ctx, all, sizeof all / sizeof *all);
    tt_arena_free(&mem);
    TT_TRY(ctx->status);
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
    uint8_t *rgb;                  /* [height, width, 3], what is kept of a   */
    float *values;                 /* frame: behind it the same before        */
                                   /* clamping, or NULL: --raw-out alone      */
    float *raw;                    /* [3, frames, height, width] or NULL      */
    const char *raw_path, *source;
    tt_sha256 latents;             /* of those up to this frame               */
    frames_file *keep;             /* NULL: none is kept                      */
    const char *command;           /* what goes on with them, in words        */
    const char *unfinished;        /* the video until it is complete, or NULL */
    const char *pictures;          /* gone on with: their pattern, or NULL    */
    int64_t sure;                  /* pictures that are certainly its own     */
    tt_video *video, *animation;
    tt_sheet *sheet;
} sinks;

/* Of a frame as it is kept; 3 * width * height is a multiple of 4. */
static size_t frame_bytes(const sinks *s)
{
    const size_t n = (size_t)(3 * s->width * s->height);
    return n + (s->raw_path ? n * sizeof(float) : 0);
}

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
    s->keep = o->keep;
    s->command = o->command ? o->command : "the same command with --resume";
    tt_sha256_init(&s->latents);
    s->rgb = tt_alloc(ctx, &s->mem, (int64_t)frame_bytes(s), 1,
                      "a video frame");
    if (o->raw) {
        const int64_t dim[4] = {3, s->frames, s->height, s->width};
        int64_t bytes;
        if (!tt_checked_size(&bytes, dim, 4, sizeof(float)))
            return tt_fail(ctx, TT_ENOMEM, "--raw-out %s: %lld frames are too "
                           "many to hold in memory", o->raw,
                           (long long)s->frames);
        s->raw = tt_alloc(ctx, &s->mem, bytes, 1, "the video of --raw-out");
        if (s->rgb)
            s->values = (float *)(void *)(s->rgb + 3 * s->width * s->height);
    }
    if (o->sheet)
        tt_sheet_open(ctx, &s->sheet, o->sheet, s->width, s->height,
                      s->frames);
    if (s->sheet) tt_sheet_comment(s->sheet, o->comment);
    return ctx->status;
}

/* Where the video ends: of a link what it points to, on whose file system the
 * unfinished one must lie. */
static const char *linked(sinks *s, const char *video)
{
    struct stat st;
    return !lstat(video, &st) && S_ISLNK(st.st_mode)
         ? tt_out_target(s->ctx, &s->mem, video) : video;
}

/* "cat.mp4" -> "cat.unfinished.mp4". NULL: frames are not kept, so that nobody
 * will go on; or the name is too long; or a file has it that is somebody's, or
 * of a decoding whose frames were removed. */
static const char *unfinished_name(sinks *s, const char *output)
{
    enum { LONGEST = 240 };
    const char *video = linked(s, output);
    if (!video) return NULL;
    const char *slash = strrchr(video, '/'), *base = slash ? slash + 1 : video;
    const char *dot = strrchr(base, '.');
    if (!s->keep || !s->keep->path || !dot || dot == base
        || strlen(base) > LONGEST || strchr(base, '%')
        || !strcasecmp(dot, ".png") || !strcasecmp(dot, ".apng")) return NULL;
    const size_t n = strlen(video) + 16;
    char *name = tt_alloc(s->ctx, &s->mem, (int64_t)n, 1, "file name");
    if (!name) return NULL;
    snprintf(name, n, "%.*s.unfinished%s", (int)(dot - video), video, dot);
    if (s->keep->there || access(name, F_OK)) return name;
    tt_warn(s->ctx, "%s is there without %s and may be anybody's: it stays, "
            "and this video can be seen when it is complete", name,
            s->keep->path);
    return NULL;
}

/* Going on with numbered pictures? The last frame that is kept may be one that
 * could not be written, as somebody's file had the name. */
static void find_pictures(sinks *s, const char *video)
{
    const size_t n = strlen(video);
    const frames_file *f = s->keep;
    if (!f || !f->path || !f->done || s->ctx->overwrite || n < 4
        || strcasecmp(video + n - 4, ".png") || !strchr(video, '%')) return;
    s->pictures = video;
    s->sure = f->done - 1;
}

/* When it is known whether frames are kept. */
static tt_status open_videos(sinks *s, const decode_outputs *o)
{
    tt_video_format f = {.width = s->width, .height = s->height,
                         .fps = o->fps, .frames = s->frames,
                         .title = o->title, .comment = o->comment};
    if (o->animation)
        tt_video_open(s->ctx, &s->animation, o->animation, &f);
    if (o->video) f.unfinished = s->unfinished = unfinished_name(s, o->video);
    if (o->video) find_pictures(s, o->video);
    if (o->video) tt_video_open(s->ctx, &s->video, o->video, &f);
    return s->ctx->status;
}

/* Does this picture show the frame in s->rgb? */
static bool shows_frame(sinks *s, const char *name)
{
    tt_arena mem = {0};
    uint8_t *rgb;
    int64_t w, h;
    const bool same = !tt_picture_read(s->ctx, &mem, &rgb, &w, &h, name)
        && w == s->width && h == s->height
        && !memcmp(rgb, s->rgb, (size_t)(3 * w * h));
    tt_clear(s->ctx);
    tt_arena_free(&mem);
    return same;
}

/* Numbered pictures that are gone on with: one that shows another frame is
 * somebody's. */
static tt_status keep_picture(sinks *s)
{
    char name[4096];
    if (s->ctx->status || !s->pictures || s->done < s->sure
        || !tt_pattern_name(name, sizeof name, s->pictures, s->done)
        || access(name, F_OK) || shows_frame(s, name)) return s->ctx->status;
    return tt_fail(s->ctx, TT_EIO, "cannot write %s: a file of that name is "
                   "there that shows another frame, and it stays; give another "
                   "name, or --overwrite", name);
}

/* One frame, in s->rgb and s->values, to every output. */
static tt_status show(sinks *s)
{
    const int64_t pixels = s->height * s->width;
    TT_TRY(keep_picture(s));
    for (int64_t c = 0; s->raw && c < 3; c++)
        for (int64_t i = 0; i < pixels; i++)
            s->raw[(c * s->frames + s->done) * pixels + i] =
                s->values[3 * i + c];
    s->done++;
    if (s->video) tt_video_frame(s->video, s->rgb);
    if (s->animation) tt_video_frame(s->animation, s->rgb);
    if (s->sheet) tt_sheet_frame(s->sheet, s->rgb);
    return s->ctx->status;
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
    for (int64_t i = 0; s->values && i < 3 * pixels; i++)
        s->values[i] = (float)rgb[i];
    if (s->keep) frames_file_add(s->keep, &s->latents, s->rgb);
    return show(s);
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

/* A place in latents [clips, n, C, h, w]. */
typedef struct place {
    int64_t clip, frame;
} place;

struct decoding {
    sinks s;
    tt_arena own;                  /* this very structure                     */
    const tt_vae *vae;
    tt_tensor latents;             /* those to come have their room           */
    tt_real *z;                    /* one of them                             */
    place next;                    /* whose frames are to come                */
    bool taking;                   /* frames that are kept may come first     */
    double before;                 /* latents whose frames were kept          */
    double spent;                  /* seconds in turns that are over          */
    tt_vae_decoder *decoder;       /* of clip next.clip; NULL: none yet       */
    int64_t fed;                   /* the latent frame that it is given next  */
    char words[4400];              /* said at a second signal                 */
};

static int64_t number_of(const decoding *d, place p)
{
    return p.clip * d->latents.dim[1] + p.frame;
}

static int64_t latents_of(const decoding *d)
{
    return d->latents.dim[0] * d->latents.dim[1];
}

/* Latent frame p into d->z. */
static tt_status read_latent(decoding *d, place p)
{
    const int64_t *dim = d->latents.dim, size = dim[2] * dim[3] * dim[4];
    const int64_t i = number_of(d, p);
    tt_widen_at(d->z, &d->latents, i * size, size);
    return check_latent(&d->s, d->z, size, i);
}

/* It counts from here on: frames that are kept belong to it and to all before
 * it. */
static void count_latent(decoding *d)
{
    const int64_t *dim = d->latents.dim, size = dim[2] * dim[3] * dim[4];
    tt_sha256_add(&d->s.latents, d->z, (size_t)size * sizeof *d->z);
}

/* ---- what is there ------------------------------------------------------- */

/* Frames shown of everything before p. */
static int64_t shown_before(const sinks *s, place p)
{
    const int64_t n = decode_frames(p.frame);
    return p.clip * s->each + (n < s->each ? n : s->each);
}

/* Are all frames of the next latent kept? Then it counts, and is passed. */
static bool pass_kept(decoding *d)
{
    sinks *s = &d->s;
    const tt_sha256 before = s->latents;
    const int64_t first = shown_before(s, d->next);
    place next = {d->next.clip, d->next.frame + 1};
    const int64_t end = shown_before(s, next);
    if (s->ctx->status || read_latent(d, d->next)) return false;
    count_latent(d);
    for (int64_t i = first; i < end; i++)
        if (!frames_file_holds(s->keep, i, &s->latents, s->rgb)) {
            s->latents = before;
            return false;
        }
    if (next.frame == d->latents.dim[1]) next = (place){next.clip + 1, 0};
    d->next = next;
    return true;
}

/* Of the frames that are kept n are of these latents: no more of them go to
 * the outputs. */
static tt_status end_kept(decoding *d, int64_t n)
{
    sinks *s = &d->s;
    frames_file *f = s->keep;
    const int64_t there = f->done;
    d->taking = false;
    if (!n && !f->overwrite)
        return tt_fail(s->ctx, TT_EINVAL, "%s holds no frame of these latents: "
                       "give --overwrite as well to lose what it holds, or "
                       "move it away", f->path);
    if (there - n >= FRAMES) /* fewer are the latent that was under way */
        tt_warn(s->ctx, "%s: of %lld frames %lld are damaged or of other "
                "latents; they are made again", f->path, (long long)there,
                (long long)(there - n));
    frames_file_cut(f, n);
    progress_say(s->progress, "%lld of %lld frames are there; going on after "
                 "them", (long long)n, (long long)s->frames);
    return TT_OK;
}

/* The outputs of the frames that are kept, as far as `ready` latents tell whose
 * they are. */
static tt_status take_kept(decoding *d, int64_t ready)
{
    sinks *s = &d->s;
    frames_file *f = s->keep;
    if (!f || !f->path || !f->done) {
        d->taking = false;
        return s->ctx->status;
    }
    while (number_of(d, d->next) < ready && pass_kept(d)) continue;
    TT_TRY(s->ctx->status);
    const int64_t n = shown_before(s, d->next);
    if (n >= f->done || number_of(d, d->next) < ready) TT_TRY(end_kept(d, n));
    while (s->done < n && !tt_check_interrupt(s->ctx))
        if (frames_file_read(f, s->done, s->rgb)) show(s);
        else tt_fail(s->ctx, TT_EIO, "cannot read %s", f->path);
    return s->ctx->status;
}

/* Rank 0 keeps them: the others go by what it found. */
static tt_status go_past_kept(decoding *d, int64_t ready)
{
    take_kept(d, ready);
    int64_t turn[3] = {d->next.clip, d->next.frame, d->taking};
    TT_TRY(tt_team_broadcast(d->s.ctx, turn, sizeof turn));
    d->next = (place){turn[0], turn[1]};
    d->taking = turn[2] != 0;
    d->before = (double)number_of(d, d->next);
    return TT_OK;
}

/* What frames are made with. The latents are in the digests of the frames: so
 * those of a video that is made longer still count. */
static tt_status open_kept(decoding *d)
{
    sinks *s = &d->s;
    const int64_t clips = d->latents.dim[0];
    char what[400], bits[64], hex[65], cut[32] = "", own[32] = "";
    const tt_class cls = tt_vae_class(d->vae);
    tt_sha256 weights;
    if (!s->keep) return s->ctx->status;
    tt_sha256_init(&weights);
    identity_vae(&weights, d->vae);
    tt_sha256_hex(&weights, hex);
    if (clips > 1) snprintf(cut, sizeof cut, " each %lld", (long long)s->each);
    if (cls != TT_CLASS_F32)
        snprintf(own, sizeof own, " in %s", tt_class_saved(cls));
    snprintf(what, sizeof what, "1 type %s class %s vae %.32s%s size "
             "%lldx%lld raw %d%s", tt_real_name(),
             tt_bits_name(s->ctx->ops, bits, sizeof bits), hex, own,
             (long long)s->width, (long long)s->height, s->raw_path != NULL,
             cut);
    return frames_file_open(s->keep, what, frame_bytes(s), s->frames);
}

/* Worth keeping: what is not the fault of the latents or the weights. */
static void close_kept(sinks *s)
{
    const tt_status status = s->ctx->status;
    frames_file *f = s->keep;
    if (!f || !f->path) return;
    const bool keep = status == TT_EINTR || status == TT_EIO
                   || status == TT_ENOMEM || status == TT_EINVAL;
    /* it may be complete already, and have its final name */
    const char *seen = s->unfinished && shows_picture(s->unfinished)
                     ? s->unfinished : NULL;
    if (keep && f->opened && f->done)
        progress_say(s->progress, "tether: %lld of %lld frames are kept in %s"
                     "%s%s; %s goes on after them",
                     (long long)f->done, (long long)s->frames, f->path,
                     seen ? ", and can be seen in " : "", seen ? seen : "",
                     s->command);
    if (status && s->unfinished && !(keep && f->done)) unlink(s->unfinished);
    frames_file_close(f, keep);
}

/* ---- decoding ------------------------------------------------------------ */

/* From the next latent on. Latents before it give no frames, and the decoder
 * remembers them. */
static tt_status open_decoder(decoding *d)
{
    const int64_t *dim = d->latents.dim, at = d->next.frame;
    TT_TRY(tt_vae_decoder_open(d->s.ctx, &d->decoder, d->vae, dim[3], dim[4]));
    d->fed = at ? tt_vae_decoder_seek(d->decoder, at) : 0;
    d->s.seen = decode_frames(at);
    return TT_OK;
}

static void close_decoder(decoding *d)
{
    tt_vae_decoder_close(d->decoder);
    d->decoder = NULL;
}

static tt_status run_decoder(decoding *d)
{
    tt_ctx *ctx = d->s.ctx;
    const size_t scope = d->latents.dim[0] == 1 ? strlen(ctx->path)
                       : tt_scope(ctx, "clip.%lld", (long long)d->next.clip);
    tt_vae_decode_next(ctx, d->decoder, d->z, take_frame, &d->s);
    tt_scope_end(ctx, scope);
    return ctx->status;
}

/* Give the decoder one latent frame: the next one, or one before it. */
static tt_status decode_latent(decoding *d)
{
    sinks *s = &d->s;
    const int64_t n = d->latents.dim[1], all = latents_of(d);
    if (!d->decoder) TT_TRY(open_decoder(d));
    const place p = {d->next.clip, d->fed};
    const bool shown = p.frame == d->next.frame;
    const int64_t i = number_of(d, p);
    TT_TRY(read_latent(d, p));
    TT_TRY(tt_check_interrupt(s->ctx));
    if (shown) count_latent(d);
    TT_TRY(run_decoder(d));
    d->fed++;
    progress_update(s->progress, (double)(i + 1), (double)all,
                    tt_now() - s->start, shown ? "decoding latent %lld/%lld"
                    : "looking back at latent %lld/%lld", (long long)(i + 1),
                    (long long)all);
    if (!shown) return TT_OK;
    log_latent(s, i + 1, all);
    d->next.frame++;
    if (d->next.frame < n) return TT_OK;
    d->next = (place){p.clip + 1, 0};
    close_decoder(d);
    return TT_OK;
}

tt_status decode_up_to(decoding *d, int64_t ready)
{
    sinks *s = &d->s;
    tt_ctx *ctx = s->ctx;
    TT_TRY(ctx->status);
    s->start = tt_now();
    if (d->taking) TT_TRY(go_past_kept(d, ready));
    s->start = tt_now() - d->spent;
    s->progress->before = d->before;
    while (number_of(d, d->next) < ready && !ctx->status) decode_latent(d);
    s->progress->before = 0;
    d->spent = tt_now() - s->start;
    return ctx->status;
}

double decode_seconds(const decoding *d)
{
    return d->spent;
}

void decode_stop_words(decoding *d)
{
    const frames_file *f = d->s.keep;
    if (!f || !f->path) return;
    snprintf(d->words, sizeof d->words, "stopped at once; the frames done are "
             "kept in %.4200s, and %s goes on after them", f->path,
             d->s.command);
    cli_stop_words(NULL, d->words);
}

static tt_status begin(decoding *d, progress *p, const decode_outputs *o)
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
    TT_TRY(open_kept(d));
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
    *d = (decoding){.s = {.ctx = ctx, .progress = p, .keep = o->keep},
                    .own = mem, .vae = vae, .latents = *latents,
                    .taking = true};
    if (begin(d, p, o)) return decode_end(d);
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
    close_kept(s);
    tt_arena_free(&s->mem);
    tt_arena own = d->own;
    tt_arena_free(&own);
    return ctx->status;
}

/* Of `tether decode`; after latents that were made just now it is no news. */
static void say_nothing_there(const sinks *s)
{
    const frames_file *f = s->keep;
    if (f && f->path && f->resume && !f->done)
        progress_say(s->progress, "nothing to resume in %s; starting from the "
                     "beginning", f->path);
}

tt_status decode_run(tt_ctx *ctx, progress *p, const tt_vae *vae,
                     const tt_tensor *latents, const int64_t *split,
                     int nsplit, const decode_outputs *o)
{
    decoding *d;
    if (!decode_begin(ctx, &d, p, vae, latents, o)) {
        const int64_t all = latents_of(d);
        say_nothing_there(&d->s);
        decode_stop_words(d);
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
