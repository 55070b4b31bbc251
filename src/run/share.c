/* share.c: what one rank of several has of a run, in shadow.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    stages.c */
#include "run/plan.h"

#include <string.h>

#include "tether/team.h"

/* What the shadow has counted is that of a chunk. */
static void take_share(tt_share *out, const shadow *s)
{
    for (int i = 0; i < s->ncalls; i++) {
        const shadow_call *c = &s->call[i];
        out->operations += c->flops;
        if (c->op != SHADOW_EXCHANGE) continue;
        out->exchanges += c->calls;
        out->messages += c->calls * (double)c->dim[0];
        out->sent += c->sent;
        out->moved += c->size;
    }
    out->held = s->peak;
}

/* The mean of the first STEADY chunks with a full window, or of the last ones
 * where there are none; seconds of the host's own work. */
static double roll_share(rolling *r, plan_clock now)
{
    tt_ctx *c = &r->s->ctx;
    const tt_host *x;
    int64_t frames;
    const int64_t chunks = tt_rollout_chunks(r->rollout);
    int64_t from = rolling_steady(r), n = STEADY;
    double begin = 0;
    if (n > chunks) n = chunks;
    if (from > chunks - n) from = chunks - n;
    for (int64_t i = 0; i < from + n && !c->status; i++) {
        if (i == from) shadow_mark(r->s);
        if (i == from) begin = now();
        tt_rollout_next(c, r->rollout, &x, &frames);
    }
    shadow_keep(r->s, 1.0 / (double)n);
    return (now() - begin) / (double)n;
}

static tt_status share_latents(tt_ctx *ctx, const tt_run *run,
                               const tt_share_of *of, tt_share *out)
{
    const plan_clock now = of->cpu ? plan_cpu : tt_now;
    const tt_weights *w = tt_dit_weights(run->dit);
    rolling r = {.s = shadow_open(ctx), .opt = run->opt};
    if (!r.s) return ctx->status;
    if (strcmp(run->s.keep_keys, "yes")) r.opt.keep_keys = false; /* least */
    if (!rolling_open(&r, run, 0)) {
        out->cache = r.s->held;
        out->heads = rolling_layer(&r)->geo->H;
        out->seconds = roll_share(&r, now);
        take_share(out, r.s);
    }
    if (!plan_hand_over(ctx, &r.s->ctx) && of->seconds > 0)
        out->seconds += calibrate(ctx, r.s, ctx->ops,
                                  tt_weights_crowded(w) ? w : NULL, now,
                                  of->seconds);
    rolling_close(&r);
    return ctx->status;
}

/* The third latent frame, which is like all later ones, as often as a chunk has
 * frames. */
static tt_status share_decoding(tt_ctx *ctx, const tt_run *run,
                                const tt_share_of *of, tt_share *out)
{
    const plan_clock now = of->cpu ? plan_cpu : tt_now;
    tt_rollout_options o = run->opt;
    tt_vae *vae = NULL;
    shadow *s = shadow_open(ctx);
    o.initial_frames = 0;
    o.latents = 3;
    o.rollouts = 1;
    if (s && !tt_run_open_vae(ctx, run, &vae)) {
        plan_decode_some(s, vae, &o);
        shadow_keep(s, (double)o.chunk);
        take_share(out, s);
        if (!plan_hand_over(ctx, &s->ctx) && of->seconds > 0)
            out->seconds = calibrate(ctx, s, tt_ops_class(ctx->ops,
                                                          tt_vae_class(vae)),
                                     NULL, now, of->seconds);
    }
    shadow_close(s);
    tt_vae_close(vae);
    return ctx->status;
}

tt_status tt_run_share(tt_ctx *ctx, const tt_run *run, const tt_share_of *of,
                       bool decoding, tt_share *out)
{
    tt_team team;
    *out = (tt_share){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    if (of->size < 1 || of->size > TT_TEAM_MAX || of->rank < 0
        || of->rank >= of->size)
        return tt_fail(ctx, TT_EINVAL, "rank %d of %d: 1 to %d ranks can be "
                       "planned", of->rank, of->size, TT_TEAM_MAX);
    tt_team *own = ctx->team;
    team_init(&team, of->rank, of->size);
    ctx->team = &team;           /* it is only looked at */
    if (decoding) share_decoding(ctx, run, of, out);
    else share_latents(ctx, run, of, out);
    ctx->team = own;
    return ctx->status;
}
