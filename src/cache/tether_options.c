/* tether_options.c: which sink, memory and recent frames are possible.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  tethercache/ (its configuration class) */
#include "cache/tether_state.h"

#include <stdio.h>

static tt_status check_regions(tt_ctx *ctx, tt_policy_options *o,
                               const tt_geometry *geo)
{
    TT_TRY(cache_check_budget(ctx, o));
    if (o->R == -1 && o->M >= 0 && o->M <= o->K && o->S <= o->K)
        o->R = o->K - o->S - o->M;
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
    if (o->M == -1) {
        o->M = o->K - o->S - o->R;
        if (o->M < 0)
            return tt_fail(ctx, TT_EINVAL,
                           "tether: the budget K = %lld leaves no room for "
                           "memory: it must be at least S + R = %lld + %lld",
                           (long long)o->K, (long long)o->S, (long long)o->R);
    }
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
    if (!(o->tau >= 0 && o->tau <= 1))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: tau = %g must lie in 0..1", o->tau);
    if (!(o->alpha >= 0 && o->alpha <= 1e6))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: alpha = %g must lie in 0..1e6", o->alpha);
    if (!(o->temperature > 0 && o->temperature <= 1e6))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: the score temperature %g must be positive (at "
                       "most 1e6)", o->temperature);
    warn_about_warm_up(ctx, o, geo);
    return TT_OK;
}
