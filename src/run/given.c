/* given.c: pictures and videos as given frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rollout continues latents. Here they come from --image (one frame) or
 * --initial-video, through the VAE encoder. Measuring comes first and is
 * cheap; encoding waits until everything else has been checked. */
#include <string.h>

#include "run/parts.h"
#include "io/picture.h"
#include "io/stream.h"

/* Frames of the video that make whole chunks of given latents: the largest
 * number <= frames, or the smallest >= frames. 0 when there is none. */
static int64_t whole_frames(const tt_rollout_options *o, int64_t frames,
                            bool above)
{
    const int64_t first = o->independent_first_frame ? 1 : o->chunk;
    int64_t n = frames < 1 ? 0 : 1 + (frames - 1) / 4; /* latents, rounded up */
    if (above && frames > 1) n = 1 + (frames + 2) / 4;
    if (n < first) return above ? 4 * first - 3 : 0;
    n = first + (n - first + (above ? o->chunk - 1 : 0)) / o->chunk * o->chunk;
    return 4 * n - 3;
}

static tt_status given_check_whole(tt_ctx *ctx, const char *path,
                                   int64_t frames, const tt_rollout_options *o)
{
    const int64_t low = whole_frames(o, frames, false);
    const int64_t high = whole_frames(o, frames, true);
    if (low == frames) return TT_OK;
    if (!low)
        return tt_fail(ctx, TT_EINVAL, "%s: %lld frames are less than one "
                       "chunk of given latents; %lld are needed", path,
                       (long long)frames, (long long)high);
    return tt_fail(ctx, TT_EINVAL, "%s: %lld frames do not make whole chunks "
                   "of given latents; the nearest that do are %lld and %lld "
                   "(--initial-frames %lld takes the last %lld)", path,
                   (long long)frames, (long long)low, (long long)high,
                   (long long)low, (long long)low);
}

static tt_status plan_video(tt_ctx *ctx, given_frames *v, const tt_settings *g,
                            tt_rollout_options *o)
{
    if (stream_once(v->in.path))
        return tt_fail(ctx, TT_EINVAL, "--initial-video cannot be standard "
                       "input or a pipe, because it is read twice");
    TT_TRY(tt_encode_measure(ctx, &v->size, &v->in));
    if (g->initial_frames) {
        if (g->initial_frames > v->size.frames)
            return tt_fail(ctx, TT_EINVAL, "--initial-frames %lld: %s has only "
                           "%lld frames", (long long)g->initial_frames,
                           v->in.path, (long long)v->size.frames);
        v->in.skip = v->size.frames - g->initial_frames;
        v->in.take = g->initial_frames;
        v->size.frames = g->initial_frames;
        v->size.latents = 1 + (g->initial_frames - 1) / 4;
    }
    TT_TRY(given_check_whole(ctx, v->in.path, v->size.frames, o));
    o->w = v->size.width / 8;
    o->h = v->size.height / 8;
    return TT_OK;
}

/* A file that is no picture would be taken for a video. */
static tt_status check_picture(tt_ctx *ctx, const char *path)
{
    uint8_t head[16];
    io_stream in;
    if (stream_once(path))
        return tt_fail(ctx, TT_EINVAL, "--image cannot be a pipe, because it "
                       "is read twice; write it to a file first");
    TT_TRY(stream_open(ctx, &in, path));
    const size_t n = stream_read(&in, head, sizeof head);
    stream_close(&in);
    TT_TRY(ctx->status);
    if (picture_sniff(head, n) != PICTURE_NONE) return TT_OK;
    const char *other = picture_unread(head, n);
    if (other)
        return tt_fail(ctx, TT_EFORMAT, "--image: %s is a %s picture, and "
                       "neither a PNG nor a JPEG, which are read; convert it",
                       path, other);
    return tt_fail(ctx, TT_EFORMAT, "--image: %s is neither a PNG nor a JPEG "
                   "picture", path);
}

tt_status given_plan(tt_ctx *ctx, given_frames *v, const tt_settings *g,
                     tt_rollout_options *o)
{
    *v = (given_frames){.in = {.path = g->image ? g->image : g->initial_video,
                               .width = 8 * o->w, .height = 8 * o->h}};
    if (!v->in.path || ctx->status) return ctx->status;
    if (g->image) TT_TRY(check_picture(ctx, g->image));
    if (g->image) { /* resized to the video's size, which may come later */
        v->in.take = 1;
        v->size = (tt_encode_size){.frames = 1, .latents = 1};
    } else {
        TT_TRY(plan_video(ctx, v, g, o));
    }
    o->initial_frames = v->size.latents;
    return TT_OK;
}

typedef struct sink {
    tt_real *at;
    int64_t size;
} sink;

static tt_status given_take_latent(void *user, const tt_real *z, int64_t C,
                                   int64_t h, int64_t w)
{
    sink *s = user;
    TT_ASSERT(C * h * w == s->size);
    memcpy(s->at, z, (size_t)s->size * sizeof *z);
    s->at += s->size;
    return TT_OK;
}

tt_status given_encode(tt_ctx *ctx, tt_run *run, tt_model_source *source)
{
    const int64_t C = tt_dit_get_config(run->dit)->in_dim;
    given_frames *v = &run->given;
    tt_rollout_options *o = &run->opt;
    tt_vae *vae = NULL;
    if (!v->in.path || ctx->status) return ctx->status;
    v->in.width = 8 * o->w;
    v->in.height = 8 * o->h;
    sink s = {.size = C * o->h * o->w};
    tt_real *z = tt_alloc(ctx, &run->mem, o->initial_frames * s.size, sizeof *z,
                          "given latents");
    s.at = z;
    if (!tt_model_open_vae_part(ctx, &vae, &run->s.model, TT_VAE_ENCODER,
                                source)) {
        if (tt_vae_z(vae) != C)
            tt_fail(ctx, TT_ESHAPE, "the transformer takes %lld latent "
                    "channels and the VAE makes %lld: they belong to "
                    "different models", (long long)C,
                    (long long)tt_vae_z(vae));
        tt_encode_run(ctx, &run->events, vae, &v->in, &v->size,
                      given_take_latent, &s);
        tt_vae_close(vae);
    }
    o->initial = z;
    return ctx->status;
}
