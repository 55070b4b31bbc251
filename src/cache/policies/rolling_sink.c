/* rolling_sink.c: Rolling Sink, the first frames come by again and again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Rolling Sink: a sink whose content and time both roll.
 * Model   the window of K frames at absolute positions, and an archive of the
 *         video's first K frames. Once the cache has been full, the chunk
 *         before the newest one is overwritten with archived frames when the
 *         newest is clean: they sweep through the first K - C frames forwards,
 *         then backwards in reverse order, and take the times of the frames
 *         they replace. So all of the window but the newest chunk is sink.
 * Slots   [ archive 0..K-1 | window K..2K-1 ]; until the cache is full there
 *         is no window and attention reads the archive itself.
 * Prompt  at a change everything stays; the archive holds the first prompt.
 * Differs Code: stores rotated keys and turns the archived ones at every move.
 *         We: change the position and rotate once, on reading.
 * Memory  2K frames. */
#include "cache/classes.h"

static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE ", as many again in an archive"),
    KNOB_END,
};

static int64_t rolling_sink_slots(const tt_policy_options *o,
                                  const tt_geometry *geo)
{
    return 2 * o->K * geo->L;
}

static int64_t rolling_sink_reads(const tt_policy_options *o,
                                  const tt_geometry *geo)
{
    return o->K * geo->L;
}

/* First slot of what attention reads. */
static int64_t rolling_sink_window(const tt_layer *y)
{
    const int64_t archive = y->opt->K * y->geo->L;
    return y->len > archive ? archive : 0;
}

static bool rolling_sink_valid(const tt_layer *y)
{
    const int64_t archive = y->opt->K * y->geo->L;
    return y->len % y->geo->L == 0 && (y->len <= archive || y->len == y->cap);
}

/* The first chunk that does not fit begins the window with a copy of the
 * archive. */
static void rolling_sink_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                               const tt_qkv *x)
{
    (void)x;
    const int64_t L = y->geo->L, n = p->frames * L, archive = y->opt->K * L;
    if (y->len == archive) {
        tt_layer_move(ctx, y, archive, 0, archive);
        y->len = y->cap;
    }
    tt_layer_roll(ctx, y, y->len > archive ? archive : 0, n);
}

/* First archived frame of the sweep, in 0..K-2C, and its direction. */
static int64_t sweep(const tt_layer *y, const tt_pass *p, bool *backwards)
{
    const int64_t C = y->geo->chunk, width = y->opt->K - C;
    const int64_t gone = p->start - C, at = gone % width;
    *backwards = gone / width % 2 == 1;
    return *backwards ? width - at - C : at;
}

/* The clean pass has read: its predecessor becomes sink. */
static void done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    const int64_t L = y->geo->L, C = y->geo->chunk;
    bool backwards;
    if (!p->context || p->start < y->opt->K) return;
    const int64_t from = sweep(y, p, &backwards);
    const int64_t to = y->len / L - p->frames - C;
    for (int64_t i = 0; i < C; i++) {
        const int64_t frame = from + (backwards ? C - 1 - i : i);
        tt_layer_move(ctx, y, (to + i) * L, frame * L, L);
        for (int64_t t = (to + i) * L; t < (to + i + 1) * L; t++)
            y->tpos[t] = (int32_t)(p->start - C + i);
    }
}

static void rolling_sink_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                              tt_plan *out)
{
    (void)ctx;
    const int64_t at = rolling_sink_window(y);
    out->nsegments = 1;
    out->segment[0] = (tt_segment){at, y->len - at, TT_T_PER_TOKEN};
    out->q_t0 = p->start;
}

static tt_status rolling_sink_check(tt_ctx *ctx, tt_policy_options *o,
                                    const tt_geometry *geo)
{
    TT_TRY(cache_check_budget(ctx, o));
    if (o->K < 2 * geo->chunk)
        return tt_fail(ctx, TT_EINVAL, "rolling-sink: the budget K = %lld must "
                       "hold two chunks of %lld frames", (long long)o->K,
                       (long long)geo->chunk);
    /* Code: assumes it. We: refuse what its sweep cannot divide. */
    if (o->K % geo->chunk || geo->first_chunk != geo->chunk)
        return tt_fail(ctx, TT_EINVAL, "rolling-sink: the budget K = %lld must "
                       "be a multiple of the chunk of %lld frames, and the "
                       "first chunk a whole one", (long long)o->K,
                       (long long)geo->chunk);
    return TT_OK;
}

const tt_policy_class cache_rolling_sink = {
    .name = "rolling-sink",
    .summary = "the first frames sweep by, older than the newest chunk, at the "
               "times they replace (Rolling Sink)",
    .knobs = knobs,
    .check = rolling_sink_check,
    .slots = rolling_sink_slots,
    .reads = rolling_sink_reads,
    .valid = rolling_sink_valid,
    .begin = rolling_sink_begin,
    .plan = rolling_sink_plan,
    .done = done,
    .positions = cache_positions_video,
};
