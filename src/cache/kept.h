/* kept.h: what attention needs of a layer's window, kept from pass to pass of a
 * chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a chunk's passes read one window, and only the chunk's own keys are
 *         others in each: the rest is rotated once. Rows lie in the order of
 *         the plan. Where the backend lays out keys and values (tt_ops.packed)
 *         and a window is longer than a block of that, these stay instead, in
 *         whole blocks of tokens before the chunk's own; what lies after them
 *         is rotated in each pass.
 * Holds   rows are taken as they are only while plan, sources, places and
 *         times of all live tokens are those they were rotated with. Keys and
 *         values that a policy edits where they lie cannot be seen: it may do
 *         so in `begin` and `commit` alone, after which all is rotated again
 *         (policy.h). */
#ifndef TT_CACHE_KEPT_H
#define TT_CACHE_KEPT_H

#include "cache/policy.h"

typedef struct cache_kept {
    tt_real *k;                  /* [capacity, H, D], or NULL                 */
    tt_real *packed;             /* [H, each], or NULL                      */
    int64_t each, D;
    int64_t touched;             /* values of `packed` so far; of layer 0, for
                                    all layers                                */
    const tt_ops *ops;           /* that packed them ...                    */
    bool unit;                   /* ... and whether for the matrix unit       */
    int64_t capacity;            /* tokens a plan may have                */
    int32_t *meta[3];            /* [cap] src_frame, sidx, tpos as they were  */
    tt_plan plan;
    int64_t len;                 /* of the layer then                         */
    bool noted, valid;           /* of the pass that is going on; of one that
                                    has ended                                 */
} cache_kept;

/* NULL: this cache keeps none. */
cache_kept *cache_kept_of(tt_cache *c, int64_t layer);
/* The layer, whose kept keys stay good: for those who look only, and for the
 * verbs of a pass. */
tt_layer *cache_layer(const tt_cache *c, int64_t layer);

/* Values kept of a layer, and whether they are what is packed. */
int64_t kept_values(tt_ctx *ctx, const tt_policy_class *cls,
                    const tt_policy_options *opt, const tt_geometry *geo,
                    bool *packed);
void kept_make(tt_ctx *ctx, tt_arena *a, cache_kept *s, const tt_layer *y);
/* What is kept is of another time; s may be NULL. */
void kept_forget(cache_kept *s);
/* Can it hold what operators of `ctx` need of a plan of n tokens? */
bool kept_takes(tt_ctx *ctx, const cache_kept *s, int64_t n);
/* A plan of n tokens will be packed, and soon one like it in every layer:
 * where there was never one so long, all threads touch the new pages of all
 * layers first (tt_zero_all). */
void kept_touch(tt_ctx *ctx, cache_kept *s, const tt_geometry *geo, int64_t n);
/* Are the rows of this plan there, but for the chunk's own? */
bool kept_holds(tt_ctx *ctx, const cache_kept *s, const tt_layer *y,
                const tt_plan *plan);
/* They will be when this pass is done with the layer. */
void kept_note(tt_ctx *ctx, cache_kept *s, const tt_layer *y,
               const tt_plan *plan, const tt_pass *p);
void kept_done(cache_kept *s);

#endif
