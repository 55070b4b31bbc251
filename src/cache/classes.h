/* classes.h: what the built-in policies share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CACHE_CLASSES_H
#define TT_CACHE_CLASSES_H

#include <math.h>

#include "cache/policy.h"

/* Frames, budgets and tokens per frame stay below this, so that token counts
 * fit an int64_t and frame numbers an int32_t. */
#define CACHE_MAX_FRAMES ((int64_t)1 << 24)

/* Rows of knob tables that several policies have. Limits of K, S, M and R
 * depend on each other: they are rules of the classes' `check`. */
#define KNOB_FRAMES(name, text, member, usual)                                 \
    {name, text, TT_AT(member), TT_KNOB_COUNT, usual, -INFINITY, INFINITY, NULL}
#define KNOB_BUDGET(k, text) KNOB_FRAMES("budget", text, K, k)
#define KNOB_SINK(s) KNOB_FRAMES("sink", "first frames that never leave", S, s)
#define KNOB_END {NULL, NULL, 0, TT_KNOB_COUNT, 0, 0, 0, NULL}
#define FRAMES_IN_CACHE "latent frames in the cache"

/* A geometry a cache can be built for. */
tt_status cache_check_geometry(tt_ctx *ctx, const tt_geometry *geo);
/* S >= 0 and K within bounds; K = -1 is the caller's business. */
tt_status cache_check_budget(tt_ctx *ctx, const tt_policy_options *opt);
/* The same, and K >= S + chunk: a chunk fits after the sinks. */
tt_status cache_check_window(tt_ctx *ctx, tt_policy_options *opt,
                             const tt_geometry *geo);

/* The same, but K = -1 means no window. */
tt_status cache_check_fifo(tt_ctx *ctx, tt_policy_options *opt,
                           const tt_geometry *geo);

/* Frames that a pass may bring: a chunk's, or all that are live. */
int64_t cache_pass_frames(const tt_cache *c, const tt_pass *p);

/* The chunk's keys and values into n slots that have their metadata, as
 * tt_geometry.bf16 says. */
void cache_put_bf16(tt_ctx *ctx, tt_layer *y, int64_t slot, int64_t n,
                    const tt_qkv *x);

/* CausVid's steps: its list ends with a 0 that is dropped (policies/causvid.c).
 */
extern const tt_policy_schedule cache_causvid_schedule;

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
/* K frames of L tokens, or all frames of the video without a window. */
int64_t cache_slots(const tt_policy_options *o, const tt_geometry *geo);

#endif
