/* shown.h: what a layer of TetherCache shows, for tests that ask for it by
 * name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_CACHE_SHOWN_H
#define TT_TESTS_CACHE_SHOWN_H

#include "cache/policy.h"

typedef struct tether_layer {
    bool filled;                   /* the cache has been full                 */
    int64_t M;
    const int64_t *memory_index;   /* [M] global frames, -1 before            */
    int64_t admissions, rejections, edits;
} tether_layer;

/* False when the policy shows no memory. */
static inline bool tether_look(tt_cache *c, int64_t layer, tether_layer *out)
{
    tt_event e;
    int64_t n;
    tt_cache_show(c, layer, &e);
    *out = (tether_layer){.filled = tt_event_int(&e, "cache_filled")};
    out->memory_index = tt_event_values(&e, "memory_index", TT_I64, &out->M);
    const int64_t *count = tt_event_values(&e, "counters", TT_I64, &n);
    if (!count || n != 3) return false;
    out->admissions = count[0];
    out->rejections = count[1];
    out->edits = count[2];
    return true;
}

#endif
