/* tc_attention.c: softmax attention of the classes of tensor cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In the walk of walk.h, in key blocks of TC_KEY_BLOCK:
 *     scores  s [keys, TC_NR] = keys (rows) times queries (lanes), from zero
 *     values  acc [D + 1, TC_NR] goes on: channels (rows) times weights
 *             (lanes). The last channel is all ones: its sums are the
 *             denominators */
#include "ops/exact/tc.h"
#include "ops/exact/walk.h"

#ifndef TT_REAL_DOUBLE

typedef struct plan {
    exact_walk walk;
    const tt_tc_kernels *kn;
    int64_t Dk;                   /* D in whole groups: products of QK        */
} plan;

/* One thread's memory. */
typedef struct work {
    float *q;          /* lanes [group][Dk, TC_NR]                           */
    float *p;          /* lanes [TC_KEY_BLOCK, TC_NR]                         */
    float *acc;        /* [group, D + 1, TC_NR]                              */
    float *m;          /* [group, TC_NR]                                     */
    float *s;          /* [TC_KEY_BLOCK, TC_NR]                               */
} work;

static const plan *tc_attention_plan_of(const exact_walk *w)
{
    return (const plan *)(const void *)w;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). */
static int64_t tc_attention_work_of(work *w, float *p, const plan *e,
                                    int64_t keys, int64_t group)
{
    int64_t at = 0, D = e->walk.a->D;
    w->q = exact_take(p, &at, group * TC_LANES_FLOATS(e->Dk));
    w->p = exact_take(p, &at, TC_LANES_FLOATS(keys));
    w->acc = exact_take(p, &at, group * (D + 1) * TC_NR);
    w->m = exact_take(p, &at, group * TC_NR);
    w->s = exact_take(p, &at, keys * TC_NR);
    return at;
}

static int64_t tc_attention_work_at(work *w, float *p, const plan *e)
{
    return tc_attention_work_of(w, p, e, TC_KEY_BLOCK, e->walk.tuned->group);
}

static tc_rows rows_at(float *p, int64_t m, int64_t K)
{
    return (tc_rows){p, (int32_t *)(p + m * K)};
}

static tc_lanes lanes_at(float *p, int64_t K)
{
    return (tc_lanes){p, (int32_t *)(p + TC_NR * K)};
}

static void tc_attention_queries(const exact_walk *walk, float *memory,
                                 exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = tc_attention_plan_of(walk);
    work w;
    tc_attention_work_at(&w, memory, e);
    e->kn->pack_lanes(lanes_at(w.q + at.g * TC_LANES_FLOATS(e->Dk), e->Dk),
                      a->q + at.i0 * a->q_stride + at.h * a->D, a->q_stride,
                      at.live, a->D);
    const int64_t sums = (a->D + 1) * TC_NR;
    memset(w.acc + at.g * sums, 0, (size_t)sums * sizeof *w.acc);
    for (int i = 0; i < TC_NR; i++) w.m[at.g * TC_NR + i] = TC_LEAST_MAX;
}

/* The packed form of a block of n keys: k as rows [Dk/16, n, 16], then v and
 * the ones as rows [n/16, D + 1, 16]. */
static int64_t tc_attention_floats(const exact_walk *walk, int64_t n)
{
    return TC_ROWS_FLOATS(n, tc_attention_plan_of(walk)->Dk) +
           TC_ROWS_FLOATS(walk->a->D + 1, exact_round_up(n, TC_GROUP));
}

static tc_rows tc_attention_values_at(const plan *e, float *packed, int64_t n)
{
    return rows_at(packed + TC_ROWS_FLOATS(n, e->Dk), e->walk.a->D + 1,
                   exact_round_up(n, TC_GROUP));
}

static void tc_attention_keys(const exact_walk *walk, float *packed,
                              exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = tc_attention_plan_of(walk);
    e->kn->pack_rows(rows_at(packed, at.n, e->Dk), at.n,
                     at.k, at.stride, at.n, a->D);
    const tc_rows v = tc_attention_values_at(e, packed, at.n);
    e->kn->pack_cols(v, a->D + 1, at.v, at.stride, a->D, at.n);
    for (int64_t j = 0; j < exact_round_up(at.n, TC_GROUP); j++) {
        const int64_t one = (j / TC_GROUP * (a->D + 1) + a->D) * TC_GROUP +
                            j % TC_GROUP;
        v.x[one] = 1;
        v.e[one] = 0;
    }
}

/* Logits of hidden keys: s [n, TC_NR]. */
static void hide(const tt_attention_args *a, exact_place at, float *s)
{
    for (int64_t j = 0; j < at.n; j++)
        for (int i = 0; i < TC_NR && !a->key_mask[at.j0 + j]; i++)
            s[j * TC_NR + i] = TC_HIDDEN;
}

static void tc_attention_panel(const exact_walk *walk, float *memory,
                               float *packed, exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = tc_attention_plan_of(walk);
    int64_t D = a->D, up = exact_round_up(at.n, TC_GROUP);
    float scale = exact_adds(a) ? TC_LOG2E : a->scale * TC_LOG2E;
    float alpha[TC_NR];
    work w;
    tc_attention_work_at(&w, memory, e);
    float *acc = w.acc + at.g * (D + 1) * TC_NR;
    tc_lanes p = lanes_at(w.p, up);
    memset(w.s, 0, (size_t)(at.n * TC_NR) * sizeof *w.s);
    e->kn->tile(w.s, at.n, rows_at(packed, at.n, e->Dk),
                         lanes_at(w.q + at.g * TC_LANES_FLOATS(e->Dk), e->Dk),
                         e->Dk / TC_GROUP);
    if (exact_adds(a)) exact_add_bias(walk, at, w.s);
    if (a->key_mask) hide(a, at, w.s);
    e->kn->weights(p, w.s, at.n, scale, w.m + at.g * TC_NR, alpha);
    e->kn->shrink(acc, alpha, D + 1);
    e->kn->tile(acc, D + 1, tc_attention_values_at(e, packed, at.n), p,
                up / TC_GROUP);
}

/* o [D] of query i of panel g. */
static void give_one(const exact_walk *walk, const work *w, int64_t g,
                     int64_t i, float *o)
{
    int64_t D = walk->a->D;
    const float *acc = w->acc + g * (D + 1) * TC_NR + i;
    for (int64_t d = 0; d < D; d++)
        o[d] = acc[d * TC_NR] / acc[D * TC_NR];
}

static void tc_attention_give(const exact_walk *walk, float *memory,
                              exact_place at)
{
    const tt_attention_args *a = walk->a;
    work w;
    tc_attention_work_at(&w, memory, tc_attention_plan_of(walk));
    for (int64_t i = 0; i < at.live; i++)
        give_one(walk, &w, at.g, i,
                 a->o + ((at.i0 + i) * a->H + at.h) * a->D);
}

static plan tc_attention_plan_for(const tt_attention_args *a, int unit)
{
    plan e = {.walk = {.a = a, .tuned = exact_tuned(exact_kernels()->level),
                       .nr = TC_NR, .block = TC_KEY_BLOCK,
                       .queries = tc_attention_queries,
                       .packed_floats = tc_attention_floats,
                       .keys = tc_attention_keys,
                       .panel = tc_attention_panel, .give = tc_attention_give},
              .kn = exact_tc_kernels(unit),
              .Dk = exact_round_up(a->D, TC_GROUP)};
    work counted;
    e.walk.floats = tc_attention_work_at(&counted, NULL, &e);
    return e;
}

int64_t exact_tc_attention_packed(const tt_attention_args *a)
{
    const plan e = tc_attention_plan_for(a, 0);
    return exact_walk_packed(&e.walk);
}

void exact_tc_attention(tt_ctx *ctx, const tt_attention_args *a, int unit)
{
    const plan e = tc_attention_plan_for(a, unit);
    exact_walk_all(ctx, &e.walk);
}

#else
typedef int tt_no_exact_tc_attention;
#endif
