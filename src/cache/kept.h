/* kept.h: rotated keys of a layer's window, kept from pass to pass of a chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a chunk's passes read one window, and only the chunk's own keys are
 *         others in each: the rest is rotated once. Rows lie in the order of
 *         the plan.
 * Holds   rows are taken as they are only while plan, sources, places and
 *         times of all live tokens are those they were rotated with. Keys that
 *         a policy edits where they lie cannot be seen: it may do so in `begin`
 *         and `commit` alone, behind which all is rotated again (policy.h). */
#ifndef TT_CACHE_KEPT_H
#define TT_CACHE_KEPT_H

#include "tether/policy.h"

typedef struct cache_kept {
    tt_real *k;                  /* [room, H, D]                              */
    int64_t room;                /* tokens a plan may have                    */
    int32_t *meta[3];            /* [cap] src_frame, sidx, tpos as they were  */
    tt_plan plan;
    int64_t len;                 /* of the layer then                         */
    bool good;
} cache_kept;

/* NULL: this cache keeps none. */
cache_kept *cache_kept_of(tt_cache *c, int64_t layer);
/* The layer, whose kept keys stay good: for those who look only, and for the
 * verbs of a pass. */
tt_layer *cache_layer(const tt_cache *c, int64_t layer);

void kept_make(tt_ctx *ctx, tt_arena *a, cache_kept *s, const tt_layer *y);
/* What is kept is of another time; s may be NULL. */
void kept_forget(cache_kept *s);
/* Are the rows of this plan there, but for the chunk's own? */
bool kept_holds(const cache_kept *s, const tt_layer *y, const tt_plan *plan);
/* They are now. */
void kept_note(cache_kept *s, const tt_layer *y, const tt_plan *plan,
               const tt_pass *p);

#endif
