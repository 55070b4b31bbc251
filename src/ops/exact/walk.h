/* walk.h: how attention walks through queries and keys, in every class.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A unit of work is one head and a group of query panels (nr queries each,
 * along the vector). The group walks the key blocks of the definition together,
 * so that a block of K and V is laid out once and then serves every panel of
 * the group from cache. What a layout and a block's sums are is the class's. */
#ifndef TT_OPS_EXACT_WALK_H
#define TT_OPS_EXACT_WALK_H

#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define WALK_GROUP 8     /* query panels that share a key block, at most      */

/* Where a step of the walk stands. */
typedef struct exact_place {
    int64_t h;           /* head                                              */
    int64_t g, i0;       /* panel of the group, its first query               */
    int64_t j0, n;       /* first key of the block, its keys                  */
} exact_place;

/* A class's part; a driver has it as its first member. `memory` is that of one
 * thread, `floats` long and not set to anything. */
typedef struct exact_walk exact_walk;
struct exact_walk {
    const tt_attention_args *a;
    int64_t nr;          /* queries of a panel                                */
    int64_t block;       /* keys of a block                                   */
    int64_t floats;
    /* Lay out `here` queries (at most nr) of panel g, whose sums begin. */
    void (*queries)(const exact_walk *w, float *memory, exact_place at,
                    int64_t here);
    /* Lay out the block's keys and values. */
    void (*keys)(const exact_walk *w, float *memory, exact_place at);
    /* Panel g against the block. */
    void (*panel)(const exact_walk *w, float *memory, exact_place at);
    /* o [D] of query i of panel g, after the last block. */
    void (*give)(const exact_walk *w, float *memory, int64_t g, int64_t i,
                 float *o);
};

void exact_walk_all(tt_ctx *ctx, const exact_walk *w);

/* How queries are cut into groups. */
typedef struct exact_cut {
    int64_t size, groups;    /* queries of a group; groups of a head          */
    int64_t panels;          /* of a group                                    */
    int64_t threads;         /* that get one                                  */
} exact_cut;
exact_cut exact_walk_cut(const tt_ctx *ctx, const exact_walk *w);

/* Is more than a scale put on the logits? Only the text encoder has that. */
static inline bool exact_adds(const tt_attention_args *a)
{
    return a->rel_bias || a->key_mask;
}

/* Scale, bias and mask in place: s [n, nr]. */
void exact_add_bias(const exact_walk *w, exact_place at, float *s);

/* The next n floats of memory p (NULL: only counted); *at of it are taken. */
static inline float *exact_take(float *p, int64_t *at, int64_t n)
{
    float *mine = p ? p + *at : NULL;
    *at += n;
    return mine;
}

static inline int64_t exact_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t exact_round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

#endif
#endif
