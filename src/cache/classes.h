/* classes.h: the built-in policies, and what they share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CACHE_CLASSES_H
#define TT_CACHE_CLASSES_H

#include "tether/policy.h"

extern const tt_policy_class cache_full;
extern const tt_policy_class cache_fifo;
extern const tt_policy_class cache_causvid;
extern const tt_policy_class cache_causvid_rolling;
extern const tt_policy_class cache_infinity;
extern const tt_policy_class cache_memrope;
extern const tt_policy_class cache_deep_sink;
extern const tt_policy_class cache_deep_forcing;
extern const tt_policy_class cache_tether;

/* Frames, budgets and tokens per frame stay below this, so that token counts
 * fit an int64_t and frame numbers an int32_t. */
#define CACHE_MAX_FRAMES ((int64_t)1 << 24)

/* A geometry a cache can be built for. */
tt_status cache_check_geometry(tt_ctx *ctx, const tt_geometry *geo);
/* S >= 0 and K within bounds; K = -1 is the caller's business. */
tt_status cache_check_budget(tt_ctx *ctx, const tt_policy_options *opt);
/* The same, and K >= S + chunk: a chunk fits behind the sinks. */
tt_status cache_check_window(tt_ctx *ctx, tt_policy_options *opt,
                             const tt_geometry *geo);

/* Members of tt_policy_class that several policies have (window.c). */
void cache_plan_absolute(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                         tt_plan *out);
void cache_plan_window(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                       tt_plan *out);
/* Positions up to the end of the video; 0..K-1. */
int64_t cache_positions_video(const tt_policy_options *o,
                              const tt_geometry *geo);
int64_t cache_positions_window(const tt_policy_options *o,
                               const tt_geometry *geo);
/* K frames of L tokens. */
int64_t cache_slots(const tt_policy_options *o, const tt_geometry *geo);

#endif
