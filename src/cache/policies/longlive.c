/* longlive.c: LongLive's cache, fifo that is computed anew at a new prompt.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  NVlabs/LongLive v1.0, pipeline/interactive_causal_inference.py
 *         (_recache_after_switch), wan/modules/causal_model.py.
 * Model   fifo with a sink of 3 in a window of 12. Before the first chunk of a
 *         new prompt the last K clean frames run once more, all in one pass, at
 *         t = context noise, with the new prompt: every frame of them sees all
 *         others (there is no mask), and the sink.
 * Prompt  at a change all keys and values are those of that pass, but for the
 *         sink: it stays what it was, once frames have left the window. With
 *         global-sink 0 the first frames of the window become the sink. */
#include "cache/classes.h"

enum { GLOBAL_SINK };

static const tt_knob knobs[] = {
    KNOB_BUDGET(12, FRAMES_IN_CACHE "; -1: no window"),
    KNOB_SINK(3),
    {"global-sink", "keep the sink at a new prompt, as LongLive's own settings "
     "do", TT_OWN(GLOBAL_SINK), TT_KNOB_SWITCH, 1, 0, 1, NULL},
    KNOB_END,
};

/* With a sink longer than a chunk, later passes of the code leave the part of
 * a chunk that lies in it as the first, noisy pass wrote it. */
static tt_status longlive_check(tt_ctx *ctx, tt_policy_options *o,
                                const tt_geometry *geo)
{
    TT_TRY(cache_check_fifo(ctx, o, geo));
    if (o->S <= geo->first_chunk) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "longlive: the sink S must be at most the "
                   "first chunk's %lld frames, not %lld",
                   (long long)geo->first_chunk, (long long)o->S);
}

/* The pass at a new prompt brings as many frames as are live. Code: its keys
 * and values go after the sink, unless the window still begins with the
 * video's first frame. */
static void longlive_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                           const tt_qkv *x)
{
    const int64_t keep = p->recache && p->start > 0
                      && y->opt->own[GLOBAL_SINK].n ? y->opt->S : 0;
    const int64_t skip = keep * y->geo->L * y->geo->H * y->geo->D;
    tt_pass rest = *p;
    rest.start += keep;
    rest.frames -= keep;
    tt_layer_put(ctx, y, &rest, &(tt_qkv){x->q + skip, x->k + skip,
                                            x->v + skip});
}

const tt_policy_class cache_longlive = {
    .name = "longlive",
    .summary = "fifo whose frames are computed anew at a new prompt (LongLive)",
    .knobs = knobs,
    .flags = TT_RECACHES | TT_ONLY_MOVES,
    .check = longlive_check,
    .slots = cache_slots,
    .write = longlive_write,
    .plan = cache_plan_absolute,
    .positions = cache_positions_video,
};
