/* reward.c: Reward-Forcing's cache, a window whose sink follows it slowly.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  JaydenLyh/Reward-Forcing, wan/modules/causal_model.py,
 *         CausalWanSelfAttention.forward ("EMA sink").
 * Model   S sink frames and the newest frames, read at positions 0..K-1. What
 *         leaves the window enters the sink, token by token:
 *             sink = keep sink + (1 - keep) what leaves
 *         where as many frames leave as the sink has. Code: where fewer or more
 *         do, they replace its first ones. We: as the code.
 * Prompt  at a change everything stays.
 * Holds   frames after the sink are in chronological order. */
#include "cache/classes.h"
#include "core/parallel.h"
#include "core/device.h"

enum { KEEP };

static const tt_knob knobs[] = {
    KNOB_BUDGET(9, FRAMES_IN_CACHE),
    KNOB_SINK(3),
    {"sink-keep", "what the sink keeps of itself when frames enter it",
     TT_OWN(KEEP), TT_KNOB_REAL, 0.999, 0, 1, NULL},
    KNOB_END,
};

/* x = a x + b y, of n values; rounded thrice. */
static void reward_blend(tt_ctx *ctx, tt_real *x, const tt_real *y, double keep,
                         int64_t n)
{
    const tt_host a = (tt_host)keep, b = (tt_host)(1 - keep);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *to = tt_get(ctx, x, n);
    const tt_host *from = tt_get(ctx, y, n);
    TT_PARALLEL_FOR_WORK(ctx, to && from ? n : 0)
    for (int64_t i = 0; i < (to && from ? n : 0); i++) {
        const tt_host kept = a * to[i], added = b * from[i];
        to[i] = kept + added;
    }
    if (to && from) tt_put(ctx, x, to, n);
    tt_arena_reset(&ctx->scratch, m);
}

static void reward_enter_sink(tt_ctx *ctx, tt_layer *y, int64_t sink,
                              int64_t leaves)
{
    const int64_t c = y->geo->H * y->geo->D;
    const int64_t n = leaves < sink ? leaves : sink;
    if (leaves == sink) {
        const double keep = y->opt->own[KEEP].x;
        reward_blend(ctx, y->k, y->k + sink * c, keep, n * c);
        reward_blend(ctx, y->v, y->v + sink * c, keep, n * c);
    } else {
        tt_layer_move(ctx, y, 0, sink, n);
    }
    for (int64_t i = 0; i < n; i++) y->src_frame[i] = TT_SRC_LONG;
}

static void reward_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_qkv *x)
{
    (void)x;
    const int64_t L = y->geo->L, n = p->frames * L, sink = y->opt->S * L;
    const int64_t leaves = y->len + n - y->cap;
    if (leaves > 0 && sink > 0) reward_enter_sink(ctx, y, sink, leaves);
    if (!ctx->status) tt_layer_roll(ctx, y, sink, n);
}

/* Code: chunks before the sink is full see slots that were never written. */
static tt_status reward_check(tt_ctx *ctx, tt_policy_options *o,
                              const tt_geometry *geo)
{
    TT_TRY(cache_check_window(ctx, o, geo));
    if (o->S <= geo->first_chunk) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "reward: the sink S must be at most the "
                   "first chunk's %lld frames, not %lld",
                   (long long)geo->first_chunk, (long long)o->S);
}

const tt_policy_class cache_reward = {
    .name = "reward",
    .summary = "a window at positions from 0 after a sink that follows it "
               "(Reward-Forcing)",
    .knobs = knobs,
    .check = reward_check,
    .slots = cache_slots,
    .begin = reward_begin,
    .plan = cache_plan_window,
    .positions = cache_positions_window,
};
