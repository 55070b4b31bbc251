/* full.c: no window. Nothing is ever evicted; what a bounded cache is compared
 * with.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   slot, frame and position of a token are the same number. */
#include "cache/classes.h"

static tt_status full_check(tt_ctx *ctx, tt_policy_options *o,
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
    .flags = TT_ONLY_MOVES,
    .check = full_check,
    .slots = cache_slots,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
