/* causvid.c: CausVid's long videos, clips that restart with an overlap.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   every rollout makes a clip of W frames with an empty cache and times
 *         from 0. It begins with the last o frames of the clip before, given
 *         to it as latents:
 *           start = [ E(p), z_{W-o+1}, ..., z_{W-1} ].
 *         The first one cannot be the latent z_{W-o} itself: the first latent
 *         of a clip stands for one video frame, every other for four. So the
 *         clip is decoded and its frame p, the last of those z_{W-o} stands
 *         for, is encoded again on its own.
 * Noise   a rollout has noise of its own for all W frames; that of the o given
 *         ones is not used. The generator numbers the frames through all
 *         rollouts.
 * Holds   written from a description of the method. */
#include "rollout/run.h"
#include "team/team.h"

#include <string.h>

#define MAX_ROLLOUTS ((int64_t)1 << 20)

tt_status causvid_check(tt_ctx *ctx, const tt_rollout_options *o)
{
    if (o->rollouts < 1 || o->rollouts > MAX_ROLLOUTS)
        return tt_fail(ctx, TT_EINVAL, "%lld rollouts: expected 1..%lld",
                       (long long)o->rollouts, (long long)MAX_ROLLOUTS);
    if (o->rollouts == 1) return TT_OK;
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    if (!cls || !(cls->flags & TT_RESTARTS))
        return tt_fail(ctx, TT_EINVAL, "several rollouts belong to the policy "
                       "causvid; %s goes on without restarts",
                       o->policy.name ? o->policy.name : "");
    if (o->initial_frames > 0 || o->independent_first_frame)
        return tt_fail(ctx, TT_EINVAL, "several rollouts cannot begin with "
                       "given frames or an independent first frame");
    if (o->overlap < 1 || o->overlap >= o->latents
        || o->overlap % o->chunk != 0)
        return tt_fail(ctx, TT_EINVAL, "an overlap of %lld frames: it must be "
                       "a multiple of the chunk of %lld and below the %lld "
                       "frames of a rollout", (long long)o->overlap,
                       (long long)o->chunk, (long long)o->latents);
    return TT_OK;
}

/* ---- noise --------------------------------------------------------------- */

int64_t causvid_denoised(const tt_rollout_options *o)
{
    return o->latents + (o->rollouts - 1) * (o->latents - o->overlap);
}

int64_t causvid_denoised_before(const tt_rollout *r)
{
    const tt_rollout_options *o = &r->opt;
    const int64_t earlier = r->rollout == 0 ? 0 : o->latents
        + (r->rollout - 1) * (o->latents - o->overlap);
    return earlier + r->done - r->ngiven;
}

/* ---- the frame between two clips ----------------------------------------- */

/* One frame of a decoded clip, clamped. */
typedef struct pick {
    int64_t wanted, seen;
    tt_host *rgb;                /* [8h, 8w, 3] in [-1, 1]                    */
} pick;

static tt_status causvid_take_frame(void *user, const tt_host *rgb,
                                    int64_t height, int64_t width)
{
    pick *p = user;
    if (p->seen++ != p->wanted) return TT_OK;
    for (int64_t i = 0; i < 3 * height * width; i++) {
        /* To [0, 1] and back: what a video file would hold. */
        tt_real x = rgb[i] * (tt_real)0.5 + (tt_real)0.5;
        x = x < 0 ? 0 : x > 1 ? 1 : x;
        p->rgb[i] = x * 2 - 1;
    }
    return TT_OK;
}

/* Decode the clip from its beginning up to latent W-o, whose last frame is the
 * one: frame 4 (W-o) of the clip. */
static void decode_frame(tt_ctx *ctx, const tt_rollout *r, tt_host *rgb)
{
    const int64_t last = r->opt.latents - r->opt.overlap;
    pick p = { .wanted = 4 * last, .rgb = rgb };
    tt_vae_decoder *d = NULL;
    tt_vae_decoder_open(ctx, &d, r->opt.vae, r->opt.h, r->opt.w);
    for (int64_t i = 0; i <= last && !ctx->status; i++) {
        if (tt_check_interrupt(ctx)) break;
        tt_vae_decode_next(ctx, d, r->clip + i * r->frame_size,
                           causvid_take_frame, &p);
    }
    tt_vae_decoder_close(d);
    TT_ASSERT(ctx->status || tt_team_rank(ctx) || p.seen == p.wanted + 1);
}

static void encode_frame(tt_ctx *ctx, const tt_rollout *r, tt_host *z,
                         const tt_host *rgb)
{
    bool ready = false;
    tt_vae_encoder *e = NULL;
    tt_vae_encoder_open(ctx, &e, r->opt.vae, 8 * r->opt.h, 8 * r->opt.w);
    if (!ctx->status) tt_vae_encode_next(ctx, e, z, &ready, rgb);
    tt_vae_encoder_close(e);
    TT_ASSERT(ctx->status || ready);
}

static tt_status causvid_reencode(tt_ctx *ctx, tt_rollout *r, tt_host *z)
{
    if (tt_vae_z(r->opt.vae) != r->C)
        return tt_fail(ctx, TT_ESHAPE, "the VAE has %lld latent channels, the "
                       "transformer %lld", (long long)tt_vae_z(r->opt.vae),
                       (long long)r->C);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const size_t scope = tt_scope(ctx, "restart.%lld",
                                  (long long)r->rollout + 1);
    tt_host *rgb = tt_scratch(ctx, 3 * 64 * r->opt.h * r->opt.w);
    if (!ctx->status) decode_frame(ctx, r, rgb);
    if (!ctx->status && tt_team_rank(ctx) == 0) encode_frame(ctx, r, z, rgb);
    tt_scope_end(ctx, scope);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status causvid_make_start(tt_ctx *ctx, tt_rollout *r)
{
    const tt_rollout_options *o = &r->opt;
    const int64_t size = r->frame_size;
    const tt_host *tail = r->clip + (o->latents - o->overlap) * size;
    memcpy(r->start, tail, (size_t)(o->overlap * size) * sizeof *r->start);
    if (o->start_frame)
        memcpy(r->start, o->start_frame + r->rollout * size,
               (size_t)size * sizeof *r->start);
    else if (!o->latent_restart)
        causvid_reencode(ctx, r, r->start);
    return tt_team_broadcast(ctx, r->start,
                             size * (int64_t)sizeof *r->start);
}

void causvid_restart(tt_ctx *ctx, tt_rollout *r)
{
    tt_cache_reset(ctx, r->cache);
    r->rollout++;
    r->done = 0;
    r->given = r->start;
    r->ngiven = r->opt.overlap;
}
