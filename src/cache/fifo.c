/* fifo.c: the caches of Self-Forcing, `full` (no window) and `fifo` (a sliding
 * window behind S sink frames).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  wan/modules/causal_model.py, CausalWanSelfAttention.forward.
 * Model   every token keeps the absolute frame position it was written with,
 *         sinks included: their distance to the queries grows without bound.
 *         Eviction happens once per chunk, on its first pass; later passes
 *         overwrite the chunk's slots.
 * Holds   slots are in chronological order. */
#include "cache/classes.h"

static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_real *q,
                  const tt_real *k, const tt_real *v) {
    (void)ctx;
    (void)q;
    const int64_t L = y->geo->L, n = p->frames * L;
    if (p->start + p->frames > y->seen) {
        tt_layer_roll(y, y->opt->S * L, n);
        y->seen = p->start + p->frames;
    }
    tt_layer_put(y, y->len - n, p, k, v);
}

static void plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                 tt_plan *out) {
    (void)ctx;
    out->nsegments = 1;
    out->segment[0] = (tt_segment){ 0, y->len, TT_T_PER_TOKEN };
    out->q_t0 = p->start;
}

static int64_t slots(const tt_policy_options *o, const tt_geometry *geo) {
    return (o->K < 0 ? geo->frames : o->K) * geo->L;
}

static int64_t positions(const tt_policy_options *o, const tt_geometry *geo) {
    (void)o;
    return geo->frames;
}

static tt_status check_fifo(tt_ctx *ctx, tt_policy_options *o,
                            const tt_geometry *geo) {
    if (o->K == -1) {            /* no window: nothing is ever evicted */
        if (o->S < 0)
            return tt_fail(ctx, TT_EINVAL, "%s: the sink S = %lld must not be "
                           "negative", o->name, (long long)o->S);
        o->S = 0;
        return TT_OK;
    }
    TT_TRY(cache_check_budget(ctx, o));
    /* Code: below this, slices go wrong silently. We: refuse. */
    if (o->K - o->S < geo->chunk)
        return tt_fail(ctx, TT_EINVAL,
                       "%s: the budget K = %lld must be at least S + chunk = "
                       "%lld + %lld = %lld frames", o->name, (long long)o->K,
                       (long long)o->S, (long long)geo->chunk,
                       (long long)(o->S + geo->chunk));
    return TT_OK;
}

static tt_status check_full(tt_ctx *ctx, tt_policy_options *o,
                            const tt_geometry *geo) {
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
    .check = check_full,
    .slots = slots,
    .write = write,
    .plan = plan,
    .positions = positions,
};

const tt_policy_class cache_fifo = {
    .name = "fifo",
    .summary = "the newest frames behind S sink frames, absolute positions "
               "(Self-Forcing)",
    .check = check_fifo,
    .slots = slots,
    .write = write,
    .plan = plan,
    .positions = positions,
};
