/* bf16_attention.c: softmax attention of classes amx and vdp.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In the walk of walk.h both products go through the tile of the class,
 *     scores  s [keys, nr] = keys (rows) times queries (lanes)
 *     values  o [D, nr]    = channels (rows) times weights (lanes)
 * and the softmax between them is the float class's own. */
#include "ops/exact/bf16.h"
#include "ops/exact/walk.h"

#ifndef TT_REAL_DOUBLE

typedef struct plan {
    exact_walk walk;
    const tt_kernels *soft;       /* softmax and merge                        */
    const tt_bf16_kernels *kn;
    int64_t Dk;                   /* D in whole groups: products of QK        */
    int64_t Dm;                   /* D in whole tiles: rows of PV             */
} plan;

/* One thread's memory. */
typedef struct work {
    float *q;          /* lanes [group][Dk, nr]                              */
    float *p;          /* lanes [TT_KEY_BLOCK, nr]                            */
    float *acc;        /* [group, Dm, nr]                                    */
    float *m, *l;      /* [group, nr]                                        */
    float *s;          /* [TT_KEY_BLOCK, nr]                                  */
    float *block;      /* [Dm, nr]                                            */
} work;

static const plan *bf16_attention_plan_of(const exact_walk *w)
{
    return (const plan *)(const void *)w;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). Packed values take at most a float each. */
static int64_t bf16_attention_work_of(work *w, float *p, const plan *e,
                                      int64_t keys, int64_t group)
{
    int64_t at = 0, nr = e->walk.nr;
    w->q = exact_take(p, &at, group * e->Dk * nr);
    w->p = exact_take(p, &at, keys * nr);
    w->acc = exact_take(p, &at, group * e->Dm * nr);
    w->m = exact_take(p, &at, group * nr);
    w->l = exact_take(p, &at, group * nr);
    w->s = exact_take(p, &at, keys * nr);
    w->block = exact_take(p, &at, e->Dm * nr);
    return at;
}

static int64_t bf16_attention_work_at(work *w, float *p, const plan *e)
{
    return bf16_attention_work_of(w, p, e, TT_KEY_BLOCK, e->walk.tuned->group);
}

static void bf16_attention_queries(const exact_walk *walk, float *memory,
                                   exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = bf16_attention_plan_of(walk);
    work w;
    bf16_attention_work_at(&w, memory, e);
    e->kn->pack_lanes(w.q + at.g * e->Dk * walk->nr,
                      a->q + at.i0 * a->q_stride + at.h * a->D, a->q_stride,
                      at.live, a->D);
}

/* Floats of packed values. */
static int64_t floats(const plan *e, int64_t n)
{
    return n * e->kn->size / (int64_t)sizeof(float);
}

/* What is packed of a block of n keys: k as rows [Dk/32, n in whole tiles,
 * 32], and after it v as rows [n/32, Dm, 32]. */
static int64_t bf16_attention_values_at(const plan *e, int64_t n)
{
    return floats(e, exact_round_up(n, e->kn->mr) * e->Dk);
}

static int64_t bf16_attention_floats(const exact_walk *walk, int64_t n)
{
    const plan *e = bf16_attention_plan_of(walk);
    return bf16_attention_values_at(e, n)
           + floats(e, exact_round_up(n, BF16_GROUP) * e->Dm);
}

static void bf16_attention_keys(const exact_walk *walk, float *packed,
                                exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = bf16_attention_plan_of(walk);
    e->kn->pack_rows(packed, exact_round_up(at.n, e->kn->mr),
                     at.k, at.stride, at.n, a->D);
    e->kn->pack_cols(packed + bf16_attention_values_at(e, at.n), e->Dm, at.v,
                     at.stride, a->D, at.n);
}

/* c [m, nr] = m packed rows (whole tiles) times K products of lanes, of which
 * `live` count */
static void bf16_attention_product(const plan *e, float *c, const float *rows,
                                   int64_t m, const float *lanes, int64_t K,
                                   int64_t live)
{
    const tt_bf16_kernels *kn = e->kn;
    unsigned state = kn->begin();
    for (int64_t r = 0; r < m; r += kn->mr)
        BF16_TILE(kn, live)(c + r * kn->nr, bf16_row(rows, r, kn->size),
                            bf16_packed(m), lanes, exact_parts(K, BF16_GROUP),
                            false);
    kn->end(state);
}

static void bf16_attention_panel(const exact_walk *walk, float *memory,
                                 float *packed, exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = bf16_attention_plan_of(walk);
    const int64_t nr = walk->nr;
    float alpha[BF16_MAX_NR];
    bool first = at.j0 == 0, plain = !exact_adds(a);
    work w;
    bf16_attention_work_at(&w, memory, e);
    bf16_attention_product(e, w.s, packed, exact_round_up(at.n, e->kn->mr),
                           w.q + at.g * e->Dk * nr, a->D, at.live);
    if (!plain) exact_add_bias(walk, at, w.s);
    float *m = w.m + at.g * nr, *l = w.l + at.g * nr;
    if (!plain || !e->kn->softmax ||
        !e->kn->softmax(w.p, w.s, at.n, a->scale, m, l, alpha, first)) {
        e->soft->softmax(w.s, at.n, plain ? a->scale : 1.0f, NULL, m, l, alpha,
                        first);
        e->kn->pack_weights(w.p, w.s, at.n);
    }
    bf16_attention_product(e, w.block,
                           packed + bf16_attention_values_at(e, at.n), e->Dm,
                           w.p, at.n, at.live);
    e->soft->merge(w.acc + at.g * e->Dm * nr, w.block, first ? NULL : alpha,
                   e->Dm);
}

static void bf16_attention_give(const exact_walk *walk, float *memory,
                                exact_place at)
{
    const plan *e = bf16_attention_plan_of(walk);
    const int64_t nr = walk->nr;
    work w;
    bf16_attention_work_at(&w, memory, e);
    exact_give(walk, e->soft, w.acc + at.g * e->Dm * nr, w.l + at.g * nr, at);
}

static plan bf16_attention_plan_for(const tt_attention_args *a,
                                    const tt_bf16_kernels *kn)
{
    plan e = {.walk = {.a = a, .tuned = exact_tuned(kn->level),
                       .nr = kn->nr, .block = TT_KEY_BLOCK,
                       .queries = bf16_attention_queries,
                       .packed_floats = bf16_attention_floats,
                       .keys = bf16_attention_keys,
                       .panel = bf16_attention_panel,
                       .give = bf16_attention_give},
              .soft = exact_kernels(), .kn = kn,
              .Dk = exact_round_up(a->D, BF16_GROUP),
              .Dm = exact_round_up(a->D, kn->mr)};
    TT_ASSERT(kn->nr == e.soft->aq && TT_KEY_BLOCK % kn->mr == 0);
    work counted;
    e.walk.floats = bf16_attention_work_at(&counted, NULL, &e);
    return e;
}

int64_t bf16_attention_packed(const tt_attention_args *a,
                              const tt_bf16_kernels *kn)
{
    const plan e = bf16_attention_plan_for(a, kn);
    return exact_walk_packed(&e.walk);
}

void bf16_attention(tt_ctx *ctx, const tt_attention_args *a,
                    const tt_bf16_kernels *kn)
{
    const plan e = bf16_attention_plan_for(a, kn);
    exact_walk_all(ctx, &e.walk);
}

#else
typedef int tt_no_exact_bf16_attention;
#endif
