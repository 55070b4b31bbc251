/* rollout.c: a video, chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  pipeline/causal_inference.py, inference_long.py
 * Model   given latents first (one pass each), then generated chunks. All
 *         chunks have `chunk` frames, the very first one 1 frame with an
 *         independent first frame, whether it is given or generated.
 * Next    sampler.c */
#include "rollout/run.h"

#include <string.h>

#define MAX_FRAMES ((int64_t)1 << 24)
#define MAX_SIDE ((int64_t)1 << 20)      /* latent height and width */

tt_rollout_options tt_rollout_defaults(void) {
    return (tt_rollout_options){
        .latents = 21, .h = 60, .w = 104, .chunk = 3,
        .context_noise = 0,
        .steps = { 1000, 750, 500, 250 }, .nsteps = 4,
        .warp = true, .shift = 5,
        .policy = tt_policy_defaults("tether"),
    };
}

/* ---- checks -------------------------------------------------------------- */

/* value = base + a whole number of chunks? The sentence names the nearest two
 * values that are. */
static tt_status check_chunks(tt_ctx *ctx, const char *what, int64_t value,
                              int64_t base, int64_t chunk) {
    if (value >= base && (value - base) % chunk == 0) return TT_OK;
    int64_t low = value < base ? base : value - (value - base) % chunk;
    int64_t high = low + chunk;
    const char *plus = base ? "1 frame plus " : "";
    if (low < 1)
        return tt_fail(ctx, TT_EINVAL, "%lld %s: %sa whole number of chunks of "
                       "%lld frames is needed, %lld at least",
                       (long long)value, what, plus, (long long)chunk,
                       (long long)high);
    return tt_fail(ctx, TT_EINVAL, "%lld %s: not %sa whole number of chunks of "
                   "%lld frames; the nearest that are: %lld and %lld",
                   (long long)value, what, plus, (long long)chunk,
                   (long long)low, (long long)high);
}

static tt_status check_options(tt_ctx *ctx, const tt_rollout_options *o) {
    const int64_t lead = o->independent_first_frame ? 1 : 0;
    if (o->h < 2 || o->w < 2 || o->h % 2 || o->w % 2 || o->h > MAX_SIDE ||
        o->w > MAX_SIDE)
        return tt_fail(ctx, TT_EINVAL, "latent size %lld x %lld: height and "
                       "width must be even and at least 2", (long long)o->h,
                       (long long)o->w);
    if (o->chunk < 1 || o->chunk > MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL, "chunks of %lld frames: at least 1 is "
                       "needed", (long long)o->chunk);
    if (o->latents < 1 || o->latents > MAX_FRAMES ||
        o->initial_frames < 0 || o->initial_frames > MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL, "%lld latent frames after %lld given "
                       "ones: expected 1..%lld and 0..%lld",
                       (long long)o->latents, (long long)o->initial_frames,
                       (long long)MAX_FRAMES, (long long)MAX_FRAMES);
    if (o->initial_frames > 0 && !o->initial)
        return tt_fail(ctx, TT_EINVAL, "%lld given frames, but no latents",
                       (long long)o->initial_frames);
    if (o->noise.noise && o->nsteps > 1 && !o->noise.renoise)
        return tt_fail(ctx, TT_EINVAL, "noise from a file needs the re-noise "
                       "of the same run as well");
    if (o->initial_frames > 0)
        TT_TRY(check_chunks(ctx, "given latent frames", o->initial_frames, lead,
                            o->chunk));
    return check_chunks(ctx, "latent frames", o->latents,
                        o->initial_frames > 0 ? 0 : lead, o->chunk);
}

static tt_geometry geometry(const tt_dit *m, const tt_rollout_options *o) {
    const tt_dit_config *c = tt_dit_get_config(m);
    return (tt_geometry){
        .layers = c->layers, .H = c->heads, .D = c->dim / c->heads,
        .grid_h = o->h / 2, .grid_w = o->w / 2,
        .L = (o->h / 2) * (o->w / 2),
        .chunk = o->chunk,
        .first_chunk = o->independent_first_frame ? 1 : o->chunk,
        .frames = o->initial_frames + o->latents,
    };
}

static void silent(void *user, const char *sentence) {
    (void)user;
    (void)sentence;
}

int64_t tt_rollout_bytes(const tt_dit *m, const tt_rollout_options *opt) {
    tt_ctx probe = { .warn = silent };
    tt_policy_options policy = opt->policy;
    const tt_policy_class *cls = tt_policy_find(policy.name);
    if (!cls || check_options(&probe, opt)) return -1;
    const tt_geometry geo = geometry(m, opt);
    const tt_dit_config *c = tt_dit_get_config(m);
    if (cls->check(&probe, &policy, &geo)) return -1;
    const int64_t cache = tt_cache_bytes(cls, &policy, &geo);
    /* Per token of a chunk: the residual stream, its normed copy, q, k, v, the
     * attention's output and two temporaries, or the feed-forward's hidden
     * values; per cached token a rotated key. */
    const int64_t token[] = { geo.chunk, geo.L, 8 * c->dim + c->ffn_dim };
    const int64_t window[] = { cls->slots(&policy, &geo), c->dim };
    int64_t a, b, all;
    if (!tt_checked_size(&a, token, 3, sizeof(tt_real)) ||
        !tt_checked_size(&b, window, 2, sizeof(tt_real)) ||
        !tt_checked_add(&all, a, b) || !tt_checked_add(&all, all, cache))
        return INT64_MAX;
    return all;
}

/* ---- open and close ------------------------------------------------------ */

static void allocate(tt_ctx *ctx, tt_rollout *r) {
    int64_t n;
    const int64_t dim[] = { r->opt.chunk, r->C, r->opt.h, r->opt.w };
    if (!tt_checked_size(&n, dim, 4, 1)) {
        tt_fail(ctx, TT_EINVAL, "a chunk of %lld x %lld x %lld x %lld latent "
                "values is too large", (long long)dim[0], (long long)dim[1],
                (long long)dim[2], (long long)dim[3]);
        return;
    }
    r->x = tt_alloc(ctx, &r->arena, n, sizeof *r->x, "latents");
    r->flow = tt_alloc(ctx, &r->arena, n, sizeof *r->flow, "latents");
    r->x0 = tt_alloc(ctx, &r->arena, n, sizeof *r->x0, "latents");
    r->noise = tt_alloc(ctx, &r->arena, n, sizeof *r->noise, "noise");
    r->words = tt_alloc(ctx, &r->arena, n / r->opt.chunk, sizeof *r->words,
                        "noise");
}

tt_status tt_rollout_open(tt_ctx *ctx, tt_rollout **out, const tt_dit *m,
                          const tt_prompt *prompt,
                          const tt_rollout_options *opt) {
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_schedule schedule;
    TT_TRY(check_options(ctx, opt));
    TT_TRY(tt_schedule_init(ctx, &schedule, opt->shift, opt->steps, opt->nsteps,
                            opt->warp, opt->context_noise));
    tt_arena arena = { 0 };
    tt_rollout *r = tt_alloc0(ctx, &arena, 1, sizeof *r, "rollout");
    if (!r) return ctx->status;
    *r = (tt_rollout){ .arena = arena, .opt = *opt, .model = m,
                       .prompt = prompt, .schedule = schedule,
                       .opened = tt_now() };
    r->C = tt_dit_get_config(m)->in_dim;
    r->frame_size = r->C * opt->h * opt->w;
    const tt_geometry geo = geometry(m, opt);
    r->chunks = 1 + (geo.frames - geo.first_chunk) / geo.chunk;
    r->opt.policy.context_noise = opt->context_noise;
    tt_cache_open(ctx, &r->cache, NULL, &r->opt.policy, &geo);
    allocate(ctx, r);
    if (!ctx->status) r->identity = state_identity(ctx, r);
    if (ctx->status) {
        tt_rollout_close(r);
        return ctx->status;
    }
    *out = r;
    return TT_OK;
}

void tt_rollout_close(tt_rollout *r) {
    if (!r) return;
    tt_cache_close(r->cache);
    tt_arena arena = r->arena;   /* r itself lives in it */
    tt_arena_free(&arena);
}

void tt_rollout_on_progress(tt_rollout *r, tt_progress_fn fn, void *user) {
    r->progress = fn;
    r->progress_user = user;
}

tt_cache *tt_rollout_cache(tt_rollout *r) { return r->cache; }
int64_t tt_rollout_chunks(const tt_rollout *r) { return r->chunks; }
int64_t tt_rollout_frames_done(const tt_rollout *r) { return r->done; }

int64_t tt_rollout_chunk_frames(const tt_rollout *r, int64_t i) {
    return i == 0 && r->opt.independent_first_frame ? 1 : r->opt.chunk;
}

/* ---- the chunks ---------------------------------------------------------- */

static void advance(tt_rollout *r, int64_t f) {
    r->chunk++;
    r->done += f;
}

tt_status tt_rollout_next(tt_ctx *ctx, tt_rollout *r, const tt_real **out,
                          int64_t *frames) {
    TT_TRY(ctx->status);
    if (r->chunk == r->chunks) return TT_END;
    const int64_t f = tt_rollout_chunk_frames(r, r->chunk);
    if (r->done < r->opt.initial_frames) {
        memcpy(r->x0, r->opt.initial + r->done * r->frame_size,
               (size_t)(f * r->frame_size) * sizeof *r->x0);
        TT_TRY(sampler_given(ctx, r, f));
    } else {
        TT_TRY(sampler_chunk(ctx, r, f));
    }
    advance(r, f);
    *out = r->x0;
    *frames = f;
    return TT_OK;
}

tt_status tt_rollout_replay(tt_ctx *ctx, tt_rollout *r, const tt_real *latents,
                            int64_t frames) {
    TT_TRY(ctx->status);
    const int64_t end = r->done + frames;
    while (r->done < end && r->chunk < r->chunks) {
        const int64_t f = tt_rollout_chunk_frames(r, r->chunk);
        if (r->done + f > end) break;
        memcpy(r->x0, latents, (size_t)(f * r->frame_size) * sizeof *r->x0);
        TT_TRY(r->done < r->opt.initial_frames ? sampler_given(ctx, r, f)
                                               : sampler_clean(ctx, r, f));
        latents += f * r->frame_size;
        advance(r, f);
    }
    if (r->done != end)
        return tt_fail(ctx, TT_EINVAL, "%lld frames cannot be replayed: chunks "
                       "end after %lld", (long long)frames,
                       (long long)r->done);
    return TT_OK;
}
