/* tether_options.c: TetherCache's knobs, with parts switched off by name, and
 * which sink, memory and recent frames are possible.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, ablations and retention figure.
 * Source  tethercache/ (its configuration class)
 * Paper: tau 0.6, admission frame by frame. Code: tau 0.35, whole chunks. We:
 * the preset `official` is the code, `paper` the paper; the other presets
 * change one thing of the official settings. */
#include "cache/tether_state.h"

#include <float.h>
#include <stdio.h>

static const char *const pools[] = {"chunk", "frame", NULL};

const tt_knob tether_knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE),
    KNOB_SINK(3),
    KNOB_FRAMES("memory", "selected frames kept; -1: K-S-R", M, -1),
    KNOB_FRAMES("recent", "latest frames kept; -1: K-S-M", R, 4),
    {"alpha", "weight of diversity in the selection (eq. 5)",
     TT_OWN(TETHER_ALPHA), TT_KNOB_REAL, 0.35, 0, 1e6, NULL},
    {"tau", "strength of the statistics edit (eq. 13)", TT_OWN(TETHER_TAU),
     TT_KNOB_REAL, 0.35, 0, 1, NULL},
    {"score-temperature", "of the importance softmax, above 0",
     TT_OWN(TETHER_TEMPERATURE), TT_KNOB_REAL, 1, DBL_MIN, 1e6, NULL},
    {"pool", "evicted frames compete as a whole chunk or frame by frame",
     TT_OWN(TETHER_POOL), TT_KNOB_WORD, TETHER_BY_CHUNK, TETHER_BY_CHUNK,
     TETHER_BY_FRAME, pools},
    KNOB_END,
};

const tt_policy_preset tether_presets[] = {
    {"official", "chunks compete as a whole, tau 0.35", "pool=chunk:tau=0.35"},
    {"paper", "frames compete one by one, tau 0.6", "pool=frame:tau=0.6"},
    {"grab-only", "selection without the edit (tau 0)", "tau=0"},
    {"attention-only", "selection without diversity (alpha 0)", "alpha=0"},
    {"recency-only", "no sink, no memory: the last K frames",
     "sink=0:memory=0:recent=-1"},
    {"sink-recent", "no memory, recent frames take its room",
     "memory=0:recent=-1"},
    {"no-memory", "no memory, and a budget of S + R only",
     "memory=0:budget=7"},
    {NULL, NULL, NULL},
};

/* R of what is left for it, and what cannot be right whatever M is. */
static tt_status check_recent(tt_ctx *ctx, tt_policy_options *o,
                              const tt_geometry *geo)
{
    const bool default_memory = o->M == -1;
    if (o->R == -1 && o->M >= 0 && o->M <= o->K && o->S <= o->K)
        o->R = o->K - o->S - o->M;
    int64_t both = INT64_MAX;    /* S + R, unless that is even more */
    if (o->R >= 0) tt_checked_add(&both, o->S, o->R);
    if (default_memory && o->R >= 0 && both > o->K)
        return tt_fail(ctx, TT_EINVAL, "tether: the budget K = %lld holds "
                       "fewer frames than the sink and the recent ones, "
                       "S + R = %lld + %lld: raise it to %lld or lower those",
                       (long long)o->K, (long long)o->S, (long long)o->R,
                       (long long)both);
    if (o->S > o->K || o->R > o->K || o->M > o->K || o->M < -1)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: sink S = %lld, memory M = %lld and recent R = "
                       "%lld must not be negative and must fit the budget "
                       "K = %lld", (long long)o->S, (long long)o->M,
                       (long long)o->R, (long long)o->K);
    /* Code: reads past the buffer below this and crashes. We: refuse. */
    if (o->R < geo->chunk)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: recent R = %lld must hold at least one chunk "
                       "of %lld frames", (long long)o->R,
                       (long long)geo->chunk);
    return TT_OK;
}

static tt_status check_regions(tt_ctx *ctx, tt_policy_options *o,
                               const tt_geometry *geo)
{
    TT_TRY(cache_check_budget(ctx, o));
    TT_TRY(check_recent(ctx, o, geo));
    if (o->M == -1) o->M = o->K - o->S - o->R;
    if (o->S + o->M + o->R != o->K)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: the budget K = %lld must equal S + M + R = "
                       "%lld + %lld + %lld = %lld", (long long)o->K,
                       (long long)o->S, (long long)o->M, (long long)o->R,
                       (long long)(o->S + o->M + o->R));
    return TT_OK;
}

/* A warm-up that does not end exactly at K leaves never-written frames in the
 * cache and shifts frame indices; see evict(). */
static void warn_about_warm_up(tt_ctx *ctx, const tt_policy_options *o,
                               const tt_geometry *geo)
{
    const int64_t over = (o->K - geo->first_chunk) % geo->chunk;
    if (o->K >= geo->frames || over == 0) return;
    char lower[32] = "";
    if (o->K - over >= o->S + o->R)
        snprintf(lower, sizeof lower, "%lld or ", (long long)(o->K - over));
    tt_warn(ctx, "tether: chunks of %lld frames (the first of %lld) do not "
            "fill K = %lld exactly: %lld never-written frame(s) of zeros enter "
            "the cache and frame indices shift, as in the official code; "
            "K = %s%lld avoids this", (long long)geo->chunk,
            (long long)geo->first_chunk, (long long)o->K,
            (long long)over, lower, (long long)(o->K - over + geo->chunk));
}

tt_status tether_check(tt_ctx *ctx, tt_policy_options *o,
                       const tt_geometry *geo)
{
    TT_TRY(check_regions(ctx, o, geo));
    warn_about_warm_up(ctx, o, geo);
    return TT_OK;
}
