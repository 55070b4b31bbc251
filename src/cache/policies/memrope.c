/* memrope.c: MemRoPE, two running averages of everything that was evicted.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   MemRoPE: memory tokens by exponential moving average, positions
 *         relative to the cache.
 * Model   once the cache has been full,
 *           [S sink][1 long][1 short][K-S-2-C recent][C of the chunk],
 *         read at positions 0..K-1. What leaves the recent frames is averaged
 *         into the two memory frames, slowly and fast. The chunk that evicts
 *         does it in its first pass, so what is averaged is clean. Layers do
 *         not know of each other.
 *         Method `eviction` drops evicted frames instead: sink and recent.
 * Prompt  at a change everything stays; the averages forget old prompts at
 *         their rates.
 * Holds   frames are chronological outside the two memory frames. */
#include "cache/classes.h"
#include "core/parallel.h"
#include "core/device.h"
#include "team/team.h"

#include <math.h>

typedef struct state {
    int64_t filled;              /* the two memory frames hold averages       */
} state;

enum { METHOD, ALPHA_LONG, ALPHA_SHORT, ADAPTIVE };
enum { EMA, EVICTION };
static const char *const methods[] = {"ema", "eviction", NULL};

static const tt_knob knobs[] = {
    KNOB_BUDGET(12, FRAMES_IN_CACHE),
    KNOB_SINK(3),
    {"memrope-method", "evicted frames enter running averages (ema) or are "
     "dropped (eviction: sink and recent frames)", TT_OWN(METHOD),
     TT_KNOB_WORD, EMA, EMA, EVICTION, methods},
    {"alpha-long", "rate of the slow average", TT_OWN(ALPHA_LONG),
     TT_KNOB_REAL, 0.01, 0, 1, NULL},
    {"alpha-short", "rate of the fast average", TT_OWN(ALPHA_SHORT),
     TT_KNOB_REAL, 0.1, 0, 1, NULL},
    {"adaptive", "fast rate per token, from how far it moved",
     TT_OWN(ADAPTIVE), TT_KNOB_SWITCH, 0, 0, 1, NULL},
    KNOB_END,
};

/* ---- begin --------------------------------------------------------------- */

static void memrope_absorb(tt_ctx *ctx, tt_layer *y, int64_t from, int64_t n);

static void memrope_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                          const tt_qkv *x)
{
    (void)x;
    const int64_t L = y->geo->L, n = p->frames * L;
    const int64_t excess = y->len + n - y->cap;
    int64_t keep = y->opt->S * L;
    if (y->opt->own[METHOD].n == EMA) {
        keep += 2 * L;
        if (excess > 0) memrope_absorb(ctx, y, keep, excess);
    }
    if (!ctx->status) tt_layer_roll(ctx, y, keep, n);
}

/* ---- the averages -------------------------------------------------------- */

/* far [L * heads held] = ||mean - short|| of the keys of a token and head. */
static void distances(tt_ctx *ctx, double *far, const double *mean,
                      const tt_host *k, const tt_geometry *geo)
{
    TT_PARALLEL_FOR_WORK(ctx, geo->L * geo->H * geo->D)
    for (int64_t r = 0; r < geo->L * geo->H; r++) {
        double sum = 0;
        for (int64_t i = r * geo->D; i < (r + 1) * geo->D; i++) {
            const double d = mean[i] - (double)k[i];
            sum += d * d;
        }
        far[r] = sqrt(sum);
    }
}

/* From the distances far [L, heads], in place of its first L numbers: m = mean
 * over heads; with the largest m of all as 1, rates from low to high. */
static void rates(double *far, int64_t L, int64_t heads, double low,
                  double high)
{
    double top = 0;
    for (int64_t r = 0; r < L; r++) {
        double sum = 0;
        for (int64_t i = 0; i < heads; i++) sum += far[r * heads + i];
        far[r] = sum / (double)heads;
        if (far[r] > top) top = far[r];
    }
    for (int64_t r = 0; r < L; r++)
        far[r] = low + far[r] / (top + 1e-8) * (high - low);
}

/* x = rate mean + (1 - rate) x, token by token. */
static void follow(tt_ctx *ctx, tt_real *x, const double *mean,
                   const double *rate, int64_t L, int64_t width)
{
    tt_host *h = tt_get(ctx, x, L * width);
    if (!h) return;
    TT_PARALLEL_FOR_WORK(ctx, L * width)
    for (int64_t r = 0; r < L; r++)
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            h[i] = (tt_host)(rate[r] * mean[i]
                             + (1 - rate[r]) * (double)h[i]);
    tt_put(ctx, x, h, L * width);
}

/* The short keys and values at slot `at`, where tokens whose mean key is far
 * from their short key follow faster: at rates from 0.1 alpha to 5 alpha. */
static void blend_adaptive(tt_ctx *ctx, tt_layer *y, int64_t at,
                           const tt_wide *mean)
{
    const tt_geometry *geo = y->geo;
    const int64_t L = geo->L, width = geo->H * geo->D;
    const double alpha = y->opt->own[ALPHA_SHORT].x;
    tt_real *k = y->k + at * width, *v = y->v + at * width;
    const double *m = tt_get_wides(ctx, mean, 2 * L * width);
    const tt_host *keys = tt_get(ctx, k, L * width);
    double *far = tt_alloc(ctx, &ctx->scratch, L * geo->H, sizeof *far,
                           "distances");
    if (ctx->status) return;
    distances(ctx, far, m, keys, geo);
    double *all = tt_team_all_heads(ctx, far, L, geo->heads, sizeof *far);
    if (!all) return;
    rates(all, L, geo->heads, 0.1 * alpha, 5 * alpha);
    follow(ctx, k, m, all, L, width);
    follow(ctx, v, m + L * width, all, L, width);
}

/* Keys and values of the memory frame at slot `at`: x = rate * mean +
 * (1 - rate) * x, in double, rounded once. A mean has c values: per channel,
 * or (adaptive) one per position and channel. */
static void memrope_blend(tt_ctx *ctx, tt_layer *y, int64_t at,
                          const tt_wide *mean, int64_t c, double rate)
{
    const int64_t width = y->geo->H * y->geo->D, n = y->geo->L * width / c;
    tt_col_blend(ctx, y->k + at * width, n, c, NULL, NULL, mean, rate);
    tt_col_blend(ctx, y->v + at * width, n, c, NULL, NULL, mean + c, rate);
}

/* Average the n tokens at slot `from` into the two memory frames before it.
 * Code: the first time the two frames that stood there are overwritten and
 * lost, not averaged. We: as the code. */
static void memrope_absorb(tt_ctx *ctx, tt_layer *y, int64_t from, int64_t n)
{
    const int64_t L = y->geo->L, width = y->geo->H * y->geo->D;
    const bool adaptive = y->opt->own[ADAPTIVE].n;
    /* Over all evicted tokens, space and time; adaptive: over frames only. */
    const int64_t rows = adaptive ? n / L : n, c = adaptive ? L * width : width;
    const int64_t at_long = from - 2 * L, at_short = from - L;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    state *s = y->state;
    tt_wide *mean = tt_wides(ctx, 2 * c);
    if (!mean) return;
    tt_col_mean(ctx, mean, y->k + from * width, rows, c);
    tt_col_mean(ctx, mean + c, y->v + from * width, rows, c);
    memrope_blend(ctx, y, at_long, mean, c,
                  s->filled ? y->opt->own[ALPHA_LONG].x : 1);
    if (adaptive && s->filled) blend_adaptive(ctx, y, at_short, mean);
    else
        memrope_blend(ctx, y, at_short, mean, c,
                      s->filled ? y->opt->own[ALPHA_SHORT].x : 1);
    if (ctx->status) return;
    for (int64_t i = 0; i < L; i++) {
        y->src_frame[at_long + i] = TT_SRC_LONG;
        y->src_frame[at_short + i] = TT_SRC_SHORT;
    }
    s->filled = 1;
    tt_arena_reset(&ctx->scratch, m);
}

/* ---- options ------------------------------------------------------------- */

static tt_status policies_memrope_check(tt_ctx *ctx, tt_policy_options *o,
                                        const tt_geometry *geo)
{
    TT_TRY(cache_check_window(ctx, o, geo));
    const bool ema = o->own[METHOD].n == EMA;
    if (ema && o->K - 2 - geo->chunk < o->S)
        return tt_fail(ctx, TT_EINVAL,
                       "memrope: the budget K = %lld must be at least S + 2 + "
                       "chunk = %lld + 2 + %lld = %lld frames",
                       (long long)o->K, (long long)o->S, (long long)geo->chunk,
                       (long long)(o->S + 2 + geo->chunk));
    /* Code: later passes may not overwrite sink slots after the first chunk;
     * a sink that reaches into the second one would keep its noisiest keys
     * and values. We: refuse. */
    if (o->S > geo->first_chunk)
        return tt_fail(ctx, TT_EINVAL,
                       "memrope: the sink S = %lld must fit the first chunk of "
                       "%lld frame(s)", (long long)o->S,
                       (long long)geo->first_chunk);
    if (o->own[ADAPTIVE].n && !ema)
        return tt_fail(ctx, TT_EINVAL, "memrope: adaptive rates need the "
                       "method ema; eviction averages nothing");
    return TT_OK;
}

const tt_policy_class cache_memrope = {
    .name = "memrope",
    .summary = "sink, a slow and a fast average of evicted frames, recent "
               "frames (MemRoPE)",
    .knobs = knobs,
    .check = policies_memrope_check,
    .slots = cache_slots,
    .state_bytes = sizeof(state),
    .state_flags = 1,
    .begin = memrope_begin,
    .plan = cache_plan_window,
    .positions = cache_positions_window,
};
