/* sampler.c: one chunk, from noise to clean latents in the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, eq. 2: a few denoising passes, then one clean pass.
 * Source  pipeline/causal_inference.py
 * Model   every pass writes the chunk's keys and values to the same slots; the
 *         clean pass writes last, and what it wrote is what later chunks see.
 *         The last chunk of a run that `ends` has none. No guidance, no
 *         negative prompt.
 * Next    dit/dit.c */
#include "rollout/run.h"
#include "core/device.h"
#include "team/team.h"

static void denoise(tt_ctx *ctx, tt_rollout *r, const tt_pass *pass);
static void clean_pass(tt_ctx *ctx, tt_rollout *r, int64_t f, int step,
                       double t, bool context);
static void sampler_report(tt_rollout *r, int step, int steps);

/* Steps of the next chunk. */
static const tt_schedule *steps_of(const tt_rollout *r)
{
    const bool first = r->rollout == 0 && r->done == r->opt.initial_frames;
    return first ? &r->first : &r->schedule;
}

/* Is the next chunk the last, and no one interested in what it leaves? */
static bool needs_no_context(tt_ctx *ctx, const tt_rollout *r)
{
    return r->opt.ends && r->chunk + 1 == r->chunks
        && !tt_team_any(ctx, ctx->tap || ctx->inject);
}

tt_status sampler_chunk(tt_ctx *ctx, tt_rollout *r, int64_t f)
{
    const tt_schedule *s = steps_of(r);
    tt_pass pass = rollout_pass(r, f);
    const bool ends = needs_no_context(ctx, r);
    const int steps = s->nsteps + !ends;

    noise_chunk(r->x, r, f, 0);
    for (int j = 0; j < s->nsteps; j++) {
        TT_TRY(tt_check_interrupt(ctx));
        pass.step = j;
        denoise(ctx, r, &pass);
        TT_TRY(ctx->status);
        sampler_report(r, j + 1, steps);
        if (j == s->nsteps - 1) break;
        noise_chunk(r->noise, r, f, j + 1);
        tt_add_noise(s, r->x, r->x0, r->noise, s->t[j + 1],
                     f * r->frame_size);
    }
    if (ends) {
        r->unclean = true;
        return TT_OK;
    }
    TT_TRY(tt_check_interrupt(ctx));
    clean_pass(ctx, r, f, s->nsteps, (double)r->opt.context_noise, true);
    sampler_report(r, steps, steps);
    return ctx->status;
}

/* flow = net(x, t); flow may be NULL. */
static void run_network(tt_ctx *ctx, tt_rollout *r, tt_host *flow,
                        const tt_host *x, double t, const tt_pass *pass)
{
    tt_dit_forward(ctx, r->model, flow, x, &(tt_dit_call){
        .h = r->opt.h, .w = r->opt.w, .t = &t, .nt = 1,
        .prompt = rollout_prompt(r), .cache = r->cache, .pass = pass});
}

/* x0 = x - sigma flow for one noise level; scope chunk.<i>/step.<j>. */
static void denoise(tt_ctx *ctx, tt_rollout *r, const tt_pass *pass)
{
    const int64_t f = pass->frames, h = r->opt.h, w = r->opt.w;
    const double t = steps_of(r)->t[pass->step];
    const size_t scope = tt_scope(ctx, "chunk.%lld/step.%d",
                                  (long long)pass->chunk, pass->step);
    TT_TAP_HOST(ctx, "x", r->x, f, r->C, h, w);
    run_network(ctx, r, r->flow, r->x, t, pass);
    if (!ctx->status)
        tt_flow_to_x0(&r->schedule, r->x0, r->x, r->flow, t,
                      f * r->frame_size);
    TT_TAP_HOST(ctx, "x0", r->x0, f, r->C, h, w);
    tt_scope_end(ctx, scope);
}

static void sampler_report(tt_rollout *r, int step, int steps)
{
    if (r->progress)
        r->progress(r->progress_user, &(tt_progress){
            .chunk = r->chunk, .chunks = r->chunks, .step = step,
            .steps = steps, .seconds = tt_now() - r->opened });
}

/* Given latents run at t = 0, whatever the context noise. Code: a pass commits
 * when its timestep equals the context noise; with another context noise, and
 * in ours too, given chunks are cached but never scored. */
tt_status sampler_given(tt_ctx *ctx, tt_rollout *r, int64_t f)
{
    TT_TRY(tt_check_interrupt(ctx));
    clean_pass(ctx, r, f, 0, 0, r->opt.context_noise == 0);
    sampler_report(r, 1, 1);
    return ctx->status;
}

tt_status sampler_clean(tt_ctx *ctx, tt_rollout *r, int64_t f)
{
    TT_TRY(tt_check_interrupt(ctx));
    clean_pass(ctx, r, f, steps_of(r)->nsteps, (double)r->opt.context_noise,
               true);
    sampler_report(r, 1, 1);
    return ctx->status;
}

/* n tokens of all heads. */
static void show_tokens(tt_ctx *ctx, const char *name, const tt_real *x,
                        int64_t n, const tt_geometry *g)
{
    const int64_t dim[] = {n, g->heads, g->D};
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *held = tt_get(ctx, x, n * g->H * g->D);
    const tt_host *all = tt_team_all_heads(ctx, held, n, g->heads,
                                           (size_t)g->D * sizeof *all);
    if (all)
        tt_tap_show(ctx, name, sizeof *all == 8 ? TT_F64 : TT_F32, all, 3, dim);
    tt_arena_reset(&ctx->scratch, m);
}

/* What the KV cache holds now, as chunk.<i>/cache.<layer>/k, v [n, H, D] and
 * the frame every token came from and its position, -1 and below as in
 * policy.h; without k and v where slots hold bf16 numbers. Shown only: nothing
 * that is injected here would be used under this name. */
static void show_cache(tt_ctx *ctx, tt_rollout *r)
{
    if (!ctx->tap || !ctx->tap_cache || ctx->status) return;
    const tt_geometry *g = tt_cache_geometry(r->cache);
    for (int64_t i = 0; i < g->layers; i++) {
        const tt_layer *y = tt_cache_look(r->cache, i);
        const size_t scope = tt_scope(ctx, "chunk.%lld/cache.%lld",
                                      (long long)r->chunk, (long long)i);
        tt_tap_show(ctx, "frame", TT_I32, y->src_frame, 1, &y->len);
        tt_tap_show(ctx, "position", TT_I32, y->tpos, 1, &y->len);
        if (!g->bf16) show_tokens(ctx, "k", y->k, y->len, g);
        if (!g->bf16) show_tokens(ctx, "v", y->v, y->len, g);
        tt_scope_end(ctx, scope);
    }
}

/* Run the network on the clean latents r->x0 for its keys and values alone.
 * The flow is computed only for a tap, and x0 from it only for the record. */
static void clean_pass(tt_ctx *ctx, tt_rollout *r, int64_t f, int step,
                       double t, bool context)
{
    const int64_t n = f * r->frame_size, h = r->opt.h, w = r->opt.w;
    tt_pass pass = rollout_pass(r, f);
    pass.step = step;
    pass.context = context;
    pass.last = true;
    const size_t scope = tt_scope(ctx, "chunk.%lld/step.%d",
                                  (long long)r->chunk, step);
    TT_TAP_HOST(ctx, "x", r->x0, f, r->C, h, w);
    run_network(ctx, r, ctx->tap ? r->flow : NULL, r->x0, t, &pass);
    if (ctx->tap && !ctx->status) {
        tt_flow_to_x0(&r->schedule, r->noise, r->x0, r->flow, t, n);
        const int64_t dim[] = {f, r->C, h, w};
        tt_tap_show(ctx, "x0", sizeof(tt_real) == 8 ? TT_F64 : TT_F32,
                    r->noise, 4, dim);
    }
    tt_scope_end(ctx, scope);
    show_cache(ctx, r);
}

tt_status sampler_recache(tt_ctx *ctx, tt_rollout *r, int64_t n)
{
    tt_pass pass = rollout_pass(r, n);
    const tt_host *x = r->clip + (r->done - n) * r->frame_size;
    TT_TRY(tt_check_interrupt(ctx));
    pass.start -= n;
    pass.last = pass.recache = true;
    const size_t scope = tt_scope(ctx, "chunk.%lld/recache",
                                  (long long)r->chunk);
    run_network(ctx, r, NULL, x, (double)r->opt.context_noise, &pass);
    tt_scope_end(ctx, scope);
    return ctx->status;
}
