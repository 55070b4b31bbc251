/* fifo.c: the caches of Self-Forcing, `full` (no window) and `fifo` (a sliding
 * window behind S sink frames), and `causvid-rolling`, the same window as
 * others run CausVid with.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  wan/modules/causal_model.py, CausalWanSelfAttention.forward.
 * Model   every token keeps the absolute frame position it was written with,
 *         sinks included: their distance to the queries grows without bound.
 *         Eviction happens once per chunk, on its first pass; later passes
 *         overwrite the chunk's slots.
 * Prompt  at a change everything stays: frames of the old prompt leave through
 *         the window, sinks never.
 * Holds   slots are in chronological order. */
#include "cache/classes.h"

static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_real *q,
                  const tt_real *k, const tt_real *v)
{
    (void)ctx;
    (void)q;
    tt_layer_append(y, p, y->opt->S * y->geo->L, k, v);
}

static int64_t slots(const tt_policy_options *o, const tt_geometry *geo)
{
    return (o->K < 0 ? geo->frames : o->K) * geo->L;
}

static tt_status check(tt_ctx *ctx, tt_policy_options *o,
                       const tt_geometry *geo)
{
    if (o->K == -1) {            /* no window: nothing is ever evicted */
        if (o->S < 0)
            return tt_fail(ctx, TT_EINVAL, "%s: the sink S = %lld must not be "
                           "negative", o->name, (long long)o->S);
        o->S = 0;
        return TT_OK;
    }
    return cache_check_window(ctx, o, geo);
}

static void full_defaults(tt_policy_options *o)
{
    o->K = -1;
    o->S = 0;
}

static tt_status check_full(tt_ctx *ctx, tt_policy_options *o,
                            const tt_geometry *geo)
{
    if (o->K != -1 && o->K < geo->frames)
        return tt_fail(ctx, TT_EINVAL,
                       "full keeps all %lld frames, so a budget of %lld has no "
                       "meaning; leave it out, or use the policy fifo",
                       (long long)geo->frames, (long long)o->K);
    o->K = -1;
    o->S = 0;
    return TT_OK;
}

const tt_policy_class cache_full = {
    .name = "full",
    .summary = "no window: every frame stays, at its absolute position",
    .defaults = full_defaults,
    .check = check_full,
    .slots = slots,
    .write = write,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};

const tt_policy_class cache_fifo = {
    .name = "fifo",
    .summary = "the newest frames behind S sink frames, absolute positions "
               "(Self-Forcing)",
    .check = check,
    .slots = slots,
    .write = write,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};

/* CausVid's own long videos restart (causvid.c); comparisons by others run its
 * weights through this window. Its schedule goes with it:
 * tt_rollout_use_schedule. */
static void rolling_defaults(tt_policy_options *o)
{
    o->S = 0;
}

const tt_policy_class cache_causvid_rolling = {
    .name = "causvid-rolling",
    .summary = "CausVid's schedule with a sliding window, absolute positions",
    .defaults = rolling_defaults,
    .check = check,
    .slots = slots,
    .write = write,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
