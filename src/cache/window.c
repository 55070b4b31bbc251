/* window.c: how most policies place their window in time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every policy but infinity reads all of its slots as one segment; there are
 * two ways to give the keys in it a time:
 *   absolute  by the frame a key came from, as in training; positions grow with
 *             the video (Self-Forcing, CausVid, Deep Forcing)
 *   window    by the slot it lies in, 0..K-1, as if the cache were the whole
 *             video (MemRoPE, TetherCache) */
#include "cache/classes.h"

void cache_plan_absolute(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                         tt_plan *out)
{
    (void)ctx;
    out->nsegments = 1;
    out->segment[0] = (tt_segment){ 0, y->len, TT_T_PER_TOKEN };
    out->q_t0 = p->start;
}

void cache_plan_window(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                       tt_plan *out)
{
    (void)ctx;
    out->nsegments = 1;
    out->segment[0] = (tt_segment){ 0, y->len, 0 };
    out->q_t0 = y->len / y->geo->L - p->frames;
}

int64_t cache_positions_video(const tt_policy_options *o,
                              const tt_geometry *geo)
{
    (void)o;
    return geo->frames;
}

int64_t cache_positions_window(const tt_policy_options *o,
                               const tt_geometry *geo)
{
    (void)geo;
    return o->K;
}

int64_t cache_slots(const tt_policy_options *o, const tt_geometry *geo)
{
    return (o->K < 0 ? geo->frames : o->K) * geo->L;
}
