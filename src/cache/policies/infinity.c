/* infinity.c: infinity-RoPE, a short window whose positions start at 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   infinity-RoPE: block-relativistic RoPE, KV flush, RoPE cut.
 * Model   the fifo window after S sink frames, read at positions 0, 1, ... of
 *         the cache: the model never sees a time it was not trained on. A new
 *         scene forgets nearly everything (flush); a cut also tells the model
 *         that time has jumped.
 * Prompt  at a change frame slot 0 and copies of the last two frame slots
 *         stay, the rest is forgotten.
 * Holds   slots are in chronological order except after a flush, whose frames
 *         1 and 2 may be any the buffer held last. */
#include "cache/classes.h"

/* Whether the latest write evicted; see plan. */
typedef struct state {
    int64_t rolled;
} state;

enum { CUT_AT, RAW_SLOT0 };

static const tt_knob knobs[] = {
    KNOB_BUDGET(6, FRAMES_IN_CACHE),
    KNOB_SINK(1),
    {"cut-at", "frame position a chunk jumps to at a cut", TT_OWN(CUT_AT),
     TT_KNOB_COUNT, 45, 0, CACHE_MAX_FRAMES, NULL},
    {"raw-slot0", "allow a sink of 0 the way the released code does it, with "
     "the oldest frame not rotated", TT_OWN(RAW_SLOT0), TT_KNOB_SWITCH, 0, 0,
     1, NULL},
    KNOB_END,
};

/* ---- begin and write ----------------------------------------------------- */

/* KV flush: frame slot 0, and the last two frame slots of the *buffer* moved
 * after it. Paper (as summarised): the sink and one last frame. Code: slots
 * K-2 and K-1 whether or not they hold anything: before the cache was full
 * they are zeros, after an earlier flush stale frames. We: as the code. */
static void flush(tt_ctx *ctx, tt_layer *y)
{
    const int64_t L = y->geo->L;
    tt_layer_move(ctx, y, L, y->cap - 2 * L, 2 * L);
    y->len = 3 * L;
}

static void infinity_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                           const tt_qkv *x)
{
    (void)x;
    const int64_t L = y->geo->L;
    state *s = y->state;
    if (p->prompt_changed) flush(ctx, y);
    s->rolled = tt_layer_roll(ctx, y, y->opt->S * L, p->frames * L);
    /* In a replay the clean pass makes room, but in the run it stands for the
     * noisy first pass did. */
    if (p->step > 0) s->rolled = 0;
}

static void infinity_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                           const tt_qkv *x)
{
    state *s = y->state;
    if (!y->first) s->rolled = 0;
    tt_layer_put(ctx, y, p, x);
}

/* ---- plan ---------------------------------------------------------------- */

/* Where the chunk's queries stand. Code: K - C in the pass that evicts; else
 * at their true time as long as that is below K, and at K - C from then on.
 * The two differ for the later passes of the first evicting chunk when C does
 * not divide K; and after a flush, while the cache refills, neither is the
 * place of the chunk's own keys. We: as the code. */
static int64_t query_position(const tt_layer *y, const tt_pass *p)
{
    const int64_t K = y->opt->K;
    const state *s = y->state;
    return !s->rolled && p->start < K ? p->start : K - p->frames;
}

/* Code: frame slot 0 is stored rotated (at t = 0) when chunk 0 is written and
 * never rotated on read. With a sink that is the same as everybody else's
 * treatment; without one, whatever comes to lie there after an eviction is
 * read without any rotation. We: refuse S = 0 unless raw_slot0 asks for it. */
static bool slot0_is_raw(const tt_layer *y)
{
    return y->opt->S == 0 && y->src_frame[0] != 0;
}

/* Paper (as summarised): a cut moves the chunk's own frames to the end of a
 * position range of 21 and collapses the old ones. Code: for one chunk its
 * keys and queries stand at 45, 46, 47, older keys where they are. We: as the
 * code; `cut-at` is the 45. */
static void infinity_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                          tt_plan *out)
{
    (void)ctx;
    const int64_t L = y->geo->L, n = p->frames * L;
    const int64_t old = p->cut ? y->len - n : y->len;
    const int64_t raw = slot0_is_raw(y) ? L : 0;
    tt_segment *s = out->segment;
    if (raw) *s++ = (tt_segment){ 0, L, TT_T_NONE };
    if (old > raw) *s++ = (tt_segment){ raw, old - raw, raw / L };
    if (p->cut) *s++ = (tt_segment){ old, n, y->opt->own[CUT_AT].n };
    out->nsegments = (int)(s - out->segment);
    out->q_t0 = p->cut ? y->opt->own[CUT_AT].n : query_position(y, p);
}

static int64_t infinity_positions(const tt_policy_options *o,
                                  const tt_geometry *geo)
{
    const int64_t late = o->K - 1 + geo->chunk;      /* a query just below K */
    const int64_t cut = geo->scenes > 1 ? o->own[CUT_AT].n + geo->chunk : 0;
    return late > cut ? late : cut;
}

/* ---- options ------------------------------------------------------------- */

static tt_status policies_infinity_check(tt_ctx *ctx, tt_policy_options *o,
                                         const tt_geometry *geo)
{
    TT_TRY(cache_check_window(ctx, o, geo));
    if (o->S < 1 && !o->own[RAW_SLOT0].n)
        return tt_fail(ctx, TT_EINVAL,
                       "infinity: the sink S must be at least 1; with S = 0 "
                       "the released code reads its oldest frame without "
                       "rotation, which only the compatibility switch "
                       "reproduces");
    /* Below 5 the flush would copy frames over each other. */
    if (geo->scenes > 1 && o->K < 5)
        return tt_fail(ctx, TT_EINVAL,
                       "infinity: scenes need a budget K of at least 5 frames, "
                       "not %lld: a flush keeps frame slot 0 and the last two",
                       (long long)o->K);
    if (geo->scenes > 1 && o->K < 3 + geo->chunk)
        return tt_fail(ctx, TT_EINVAL,
                       "infinity: scenes need a budget K of at least 3 + chunk "
                       "= %lld frames, not %lld", (long long)(3 + geo->chunk),
                       (long long)o->K);
    return TT_OK;
}

const tt_policy_class cache_infinity = {
    .name = "infinity",
    .summary = "a short window at positions from 0, flushed at scene changes "
               "(infinity-RoPE)",
    .knobs = knobs,
    .flags = TT_HAS_CUTS,
    .check = policies_infinity_check,
    .slots = cache_slots,
    .state_bytes = sizeof(state),
    .state_flags = 1,
    .begin = infinity_begin,
    .write = infinity_write,
    .plan = infinity_plan,
    .positions = infinity_positions,
};
