/* plan.c: what a run will take, from its stages.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    stages.c, fit.c */
#include "run/plan.h"

#include <stdio.h>
#include <string.h>

#include "tether/team.h"

/* What the program and the C library's heap hold beside the blocks of a plan,
 * at least, as measured; and the gaps that the decoder's blocks leave there. */
enum { BESIDE = 200000 };

static int64_t decoder_gaps(const tt_needs *n)
{
    const int64_t gaps = n->decoding.held / 40, most = 1 << 20;
    return gaps < most ? gaps : most;
}

static int64_t peak_of(tt_stage *stage, int64_t held, int64_t kept)
{
    if (!stage->held) return 0;
    stage->peak = held + stage->held + larger(kept - stage->kept, 0) + BESIDE;
    return stage->peak;
}

/* Both are held at once, with one scratch and the same latents. */
static void join_peaks(tt_needs *n, int64_t held, int64_t latents)
{
    int64_t kept = larger(n->latents.kept, n->decoding.kept);
    if (!n->during || !n->decoding.held) return;
    kept = larger(kept, n->text.kept);
    n->decoding.peak = held + n->latents.held - n->latents.kept + kept
                     + n->decoding.held - n->decoding.kept - latents;
    n->decoding.peak += BESIDE + decoder_gaps(n);
    n->latents.peak = n->decoding.peak;
}

/* Rank 0, which has its part of the heads, writes those of all. */
static int64_t whole_cache(const tt_run *run, const tt_needs *n)
{
    const int64_t heads = tt_dit_get_config(run->dit)->heads;
    const int64_t all = n->cache + n->cache_files;
    return n->heads ? all / n->heads * heads : all;
}

/* Of a y4m file, at most: three bytes a pixel (C444), a word before a frame,
 * and a header. */
static int64_t video_bytes(int64_t frames, const tt_rollout_options *o)
{
    enum { WORD = 6, HEADER = 128 };
    return frames * (3 * 8 * o->h * 8 * o->w + WORD) + HEADER;
}

void plan_sum(const tt_run *run, const tt_rollout_options *o, tt_needs *n)
{
    const int64_t before = n->before + run->restart_bytes;
    const int64_t held = before + plan_text_bytes(run);
    n->peak = peak_of(&n->text, before, 0);
    n->peak = larger(n->peak, peak_of(&n->latents, held, n->text.kept));
    n->peak = larger(n->peak, peak_of(&n->decoding, held + decoder_gaps(n),
                                      larger(n->text.kept, n->latents.kept)));
    join_peaks(n, held, plan_latent_bytes(run, o));
    n->peak = larger(n->peak, n->decoding.peak);
    n->latents_file = plan_latent_bytes(run, o);
    n->states = run->s.checkpoint_every ? 2 * whole_cache(run, n) : 0;
    n->video = run->s.no_decode ? 0 : video_bytes(tt_run_frames(run), o);
    const plan_limit l = plan_memory(n->before);
    n->available = l.bytes;
    snprintf(n->limit, sizeof n->limit, "%s", l.who);
}

tt_needs plan_nothing(const tt_run *run, int64_t before)
{
    return (tt_needs){.before = before, .during = !run->s.no_decode
                      && !strcmp(run->s.decode, "during")};
}

static void silent(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

/* What is tried for a plan records its failures elsewhere. */
static tt_ctx aside(const tt_ctx *ctx)
{
    return (tt_ctx){.ops = ctx->ops, .nthreads = ctx->nthreads,
                    .matrix_unit = ctx->matrix_unit, .warn = silent,
                    .interrupt = ctx->interrupt, .team = ctx->team};
}

/* The latents planned anew without kept keys. */
static void drop_keys(tt_ctx *c, tt_run *run, tt_needs *n)
{
    run->opt.keep_keys = false;
    n->latents = (tt_stage){0};
    plan_latents(c, run, &run->opt, 0, n);
    plan_sum(run, &run->opt, n);
}

/* Rotated keys alone stay on a device only: on the host that saves nothing. */
static bool may_keep(const tt_ctx *ctx, const tt_run *run)
{
    return !run->opt.kv_dir && (ctx->device || ctx->ops->laid);
}

/* What the user leaves to us. */
static void settle_keys(const tt_ctx *ctx, tt_ctx *c, tt_run *run,
                        tt_needs *n)
{
    if (!run->opt.keep_keys || strcmp(run->s.keep_keys, "auto")) return;
    if (c->status || !plan_keeps(ctx, n)) drop_keys(c, run, n);
}

/* What planning `c` has found out, or nothing. */
static void take_needs(tt_run *run, const tt_needs *n, const tt_ctx *c)
{
    run->needs = *n;
    if (c->status) run->needs = (tt_needs){0};
}

tt_status plan_begin(tt_ctx *ctx, tt_run *run)
{
    tt_needs n = plan_nothing(run, plan_anonymous());
    tt_ctx c = aside(ctx);
    TT_TRY(plan_memory_check(ctx));
    if (!strcmp(run->s.keep_keys, "auto") && !may_keep(ctx, run))
        run->opt.keep_keys = false;
    run->mapped = plan_mapped() + plan_stacks(ctx->nthreads);
    plan_text(&c, run, 0, &n);
    tt_clear(&c);                /* it may be missing: said later */
    plan_latents(&c, run, &run->opt, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    if (run->s.resume && !run->s.no_decode) return TT_OK; /* with the decoder */
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_decoder(tt_ctx *ctx, tt_run *run, const tt_vae *vae,
                       int64_t before)
{
    tt_needs n = run->needs;
    tt_ctx c = aside(ctx);
    if (ctx->status || !n.peak) return ctx->status;
    plan_decoding(&c, run, &run->opt, vae, before, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_restarts(tt_ctx *ctx, tt_run *run)
{
    tt_needs n = run->needs;
    tt_ctx c = aside(ctx);
    if (ctx->status || !n.peak) return ctx->status;
    n.latents = (tt_stage){0};
    plan_latents(&c, run, &run->opt, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_agree(tt_ctx *ctx, tt_run *run)
{
    const bool keep = run->opt.keep_keys;
    if (tt_team_size(ctx) == 1 || !tt_team_any(ctx, !keep) || !keep)
        return ctx->status;
    tt_needs n = run->needs;
    run->opt.keep_keys = false;
    if (!n.peak) return ctx->status;      /* it could not be planned */
    tt_ctx c = aside(ctx);
    drop_keys(&c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return ctx->status;
}

tt_status tt_run_plan(tt_ctx *ctx, const tt_run *run, tt_needs *out)
{
    *out = (tt_needs){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    *out = run->needs;
    out->text.seconds = out->latents.seconds = out->decoding.seconds = 0;
    if (out->peak) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "the run could not be planned");
}

static tt_status time_decoding(tt_ctx *ctx, const tt_run *run, double budget,
                               tt_needs *n)
{
    tt_vae *vae = NULL;
    const int64_t before = plan_anonymous();
    const plan_clock now = plan_clock_of(ctx);
    if (run->s.no_decode) return ctx->status;
    const double begin = now();
    const bool there = !tt_run_open_vae(ctx, run, &vae);
    const double opening = now() - begin;
    if (there) plan_decoding(ctx, run, &run->opt, vae, before, budget, n);
    n->decoding.seconds += opening;
    tt_vae_close(vae);
    return ctx->status;
}

tt_status tt_run_time(tt_ctx *ctx, const tt_run *run, double seconds,
                      tt_needs *out)
{
    tt_needs n;
    *out = (tt_needs){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    if (ctx->device || tt_team_size(ctx) > 1)
        return tt_fail(ctx, TT_EUNSUPPORTED, "time is planned on one rank, "
                       "with values in memory of the host");
    n = plan_nothing(run, run->needs.before);
    n.reading = run->opening;
    TT_TRY(plan_text(ctx, run, 0.2 * seconds, &n));
    TT_TRY(plan_latents(ctx, run, &run->opt, 0.5 * seconds, &n));
    TT_TRY(time_decoding(ctx, run, 0.3 * seconds, &n));
    plan_sum(run, &run->opt, &n);
    *out = n;
    return TT_OK;
}
