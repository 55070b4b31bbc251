/* fifo.c: Self-Forcing's cache, a sliding window after S sink frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  wan/modules/causal_model.py, CausalWanSelfAttention.forward.
 * Model   every token keeps the absolute frame position it was written with,
 *         sinks included: their distance to the queries grows without bound.
 *         Eviction happens once per chunk, on its first pass; later passes
 *         overwrite the chunk's slots. All of that is what cache.c does when a
 *         policy has no function of its own for it.
 * Prompt  at a change everything stays: frames of the old prompt leave through
 *         the window, sinks never.
 * Holds   slots are in chronological order. */
#include "cache/classes.h"

static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE "; -1: no window"),
    KNOB_SINK(3),
    KNOB_END,
};

const tt_policy_class cache_fifo = {
    .name = "fifo",
    .summary = "the newest frames after S sink frames, absolute positions "
               "(Self-Forcing)",
    .knobs = knobs,
    .flags = TT_ONLY_MOVES,
    .check = cache_check_fifo,
    .slots = cache_slots,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
