/* deep_sink.c: Deep Forcing's deep sink, a long sink that moves along in time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Deep Forcing (arXiv 2512.05081), "Deep Sink".
 * Source  its attention code as redistributed in Relax-Forcing (Apache-2.0).
 * Model   the fifo window with absolute positions; at every chunk that evicts,
 *         the sinks' positions move on by as much as the window did, so their
 *         distance to it stays what it was.
 * Paper: the last sink is followed by the first recent frame. Code: the first
 * eviction moves nothing, so a gap of C frames stays between them (K a
 * multiple of C). We: as the code.
 * Differs Code: rotates the stored keys again at every move. We: change the
 *         position and rotate once, on reading (at most 1.5e-6 apart).
 * Prompt  at a change everything stays; sinks hold the first prompt forever.
 * Next    deep_forcing.c */
#include "cache/classes.h"

typedef struct state {
    int64_t moving;              /* something was evicted before              */
    int64_t start;               /* first frame of the chunk that did so last */
} state;

/* Paper: 10 to 14 sinks. Code: its script for this mode takes 14. */
static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE),
    KNOB_SINK(14),
    KNOB_END,
};

/* Sinks lie before the chunk they last moved for. */
static bool deep_sink_valid(const tt_layer *y)
{
    const state *s = y->state;
    const int64_t sink = y->opt->S * y->geo->L;
    if (s->start < 0 || s->start >= y->geo->frames) return false;
    for (int64_t i = 0; s->moving && i < sink; i++)
        if (y->tpos[i] >= s->start) return false;
    return true;
}

static void deep_sink_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                            const tt_qkv *x)
{
    (void)x;
    const int64_t sink = y->opt->S * y->geo->L;
    state *s = y->state;
    if (!tt_layer_roll(ctx, y, sink, p->frames * y->geo->L)) return;
    if (s->moving)
        for (int64_t i = 0; i < sink; i++)
            y->tpos[i] += (int32_t)(p->start - s->start);
    s->moving = 1;
    s->start = p->start;
}

const tt_policy_class cache_deep_sink = {
    .name = "deep-sink",
    .summary = "a long sink that moves along in time, recent frames "
               "(Deep Forcing)",
    .knobs = knobs,
    .check = cache_check_window,
    .slots = cache_slots,
    .state_bytes = sizeof(state),
    .state_flags = 1,
    .valid = deep_sink_valid,
    .begin = deep_sink_begin,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
