/* causvid.c: the cache of one CausVid clip.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   frame f lives in slot f at position f; nothing is ever evicted, so a
 *         clip has at most K frames (21, the length it was trained on). Longer
 *         videos are several clips: rollout/causvid.c restarts with the last
 *         frames of the one before.
 * Prompt  at a change everything stays, until the next restart empties the
 *         cache.
 * Differs The released code leaves the previous clip in the memory and reads
 *         only what the new one has written; a restart here zeroes it. */
#include "cache/classes.h"

static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE),
    KNOB_END,
};

/* Shift 8 whatever the configuration says; steps taken as they are. */
const tt_policy_schedule cache_causvid_schedule = {
    .text = "1000,757,522", .nsteps = 3, .steps = {1000, 757, 522},
    .warp = false, .shift = 8,
};

static tt_status policies_causvid_check(tt_ctx *ctx, tt_policy_options *o,
                                        const tt_geometry *geo)
{
    TT_TRY(cache_check_window(ctx, o, geo));
    if (geo->frames > o->K)
        return tt_fail(ctx, TT_EINVAL,
                       "causvid: a clip of %lld frames does not fit the budget "
                       "K = %lld, and nothing is ever evicted; make longer "
                       "videos of several rollouts",
                       (long long)geo->frames, (long long)o->K);
    if (o->context_noise != 0)
        return tt_fail(ctx, TT_EINVAL,
                       "causvid: its clean pass always runs at timestep 0, not "
                       "at a context noise of %lld",
                       (long long)o->context_noise);
    return TT_OK;
}

const tt_policy_class cache_causvid = {
    .name = "causvid",
    .summary = "clips without eviction, each restarted from the end of the "
               "one before (CausVid)",
    .knobs = knobs,
    .schedule = &cache_causvid_schedule,
    .flags = TT_RESTARTS | TT_ONLY_MOVES,
    .check = policies_causvid_check,
    .slots = cache_slots,
    .plan = cache_plan_absolute,
    .positions = cache_positions_window,
};
