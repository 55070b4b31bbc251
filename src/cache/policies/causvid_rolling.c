/* causvid_rolling.c: CausVid's schedule with the sliding window of fifo.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * CausVid's own long videos restart (causvid.c); comparisons by others run its
 * weights through this window. */
#include "cache/classes.h"

static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE "; -1: no window"),
    KNOB_SINK(0),
    KNOB_END,
};

const tt_policy_class cache_causvid_rolling = {
    .name = "causvid-rolling",
    .summary = "CausVid's schedule with a sliding window, absolute positions",
    .knobs = knobs,
    .schedule = &cache_causvid_schedule,
    .flags = TT_ONLY_MOVES,
    .check = cache_check_fifo,
    .slots = cache_slots,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
