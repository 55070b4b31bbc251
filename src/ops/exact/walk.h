/* walk.h: how attention walks through queries and keys, in every class.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The keys and values of a head are packed once, by all threads, block after
 * block of the definition. Then a unit of work is a group of query panels (nr
 * queries each, along the vector) that walks the blocks together, so that a
 * block serves every panel of the group from a core's own cache (units.h).
 * Where a head has too few groups for all threads, several heads are taken at
 * a time. Threads that find no group of these any more lay out the next ones.
 * What a layout and a block's sums are is the class's. What is packed may
 * stay for later calls, which then lay out the blocks after it alone; all
 * heads are taken at once then.
 */
#ifndef TT_OPS_EXACT_WALK_H
#define TT_OPS_EXACT_WALK_H

#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

/* Where a step of the walk stands. */
typedef struct exact_place {
    int64_t h;           /* head                                              */
    int64_t g, i0, live; /* panel of the group, its first query, its queries  */
    int64_t j0, n;       /* first key of the block, its keys                  */
    const float *k, *v;  /* where `keys` finds them, `stride` apart           */
    int64_t stride;
} exact_place;

/* A class's part; a driver has it as its first member. `memory` is that of one
 * thread, `floats` long, and `packed` that of a block's keys and values;
 * neither is set to anything. */
typedef struct exact_walk exact_walk;
struct exact_walk {
    const tt_attention_args *a;
    const exact_tuning *tuned;
    int64_t nr;          /* queries of a panel                                */
    int64_t block;       /* keys of a block                                   */
    int64_t floats;
    /* Lay out the queries (at most nr) of panel g, whose sums begin. */
    void (*queries)(const exact_walk *w, float *memory, exact_place at);
    /* Floats that n keys and values take when they are packed. */
    int64_t (*packed_floats)(const exact_walk *w, int64_t n);
    /* Lay out the block's keys and values. */
    void (*keys)(const exact_walk *w, float *packed, exact_place at);
    /* Panel g against the block. */
    void (*panel)(const exact_walk *w, float *memory, float *packed,
                  exact_place at);
    /* The answers of panel g after the last block. */
    void (*give)(const exact_walk *w, float *memory, exact_place at);
};

void exact_walk_all(tt_ctx *ctx, const exact_walk *w);

/* Floats of the keys and values of a head. */
int64_t exact_walk_packed(const exact_walk *w);

/* How queries are cut into groups. */
typedef struct exact_cut {
    int64_t all;             /* panels of a head                              */
    int64_t panels;          /* of a group, at most                           */
    int64_t heads;           /* taken at a time                               */
    int64_t threads;         /* that may get a group                          */
    bool ahead;              /* the next heads are packed meanwhile           */
    int64_t packed;          /* floats of the keys and values of those heads,
                                unless they stay in a->packed                 */
} exact_cut;
exact_cut exact_walk_cut(const tt_ctx *ctx, const exact_walk *w);

/* Is more than a scale put on the logits? Only the text encoder has that. */
static inline bool exact_adds(const tt_attention_args *a)
{
    return a->rel_bias || a->key_mask;
}

/* Scale, bias and mask in place: s [n, nr]. */
void exact_add_bias(const exact_walk *w, exact_place at, float *s);

/* Answers of the queries of a panel from their sums acc [D, nr], divided by
 * l [nr]; acc is used up. */
void exact_give(const exact_walk *w, const tt_kernels *kn, float *acc,
                const float *l, exact_place at);

/* The next n floats of memory p (NULL: only counted); *at of it are taken. */
static inline float *exact_take(float *p, int64_t *at, int64_t n)
{
    float *mine = p ? p + *at : NULL;
    *at += n;
    return mine;
}

#endif
#endif
