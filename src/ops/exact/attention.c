/* attention.c: softmax attention with queries along the vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In the walk of walk.h a panel meets a block of keys as
 *     scores  s [keys, aq]     score_tile or score_top  (dot over D)
 *     soften  weights, running maximum and sum, all lane by lane
 *     values  acc = acc * alpha + (x[0] + x[1])
 *                              value_tile     (dot over TT_DOT_BLOCK keys each)
 * With queries along the lanes every chain of the definition is one lane. */
#include "ops/exact/walk.h"

#ifndef TT_REAL_DOUBLE

#include <math.h>

#define MAX_AQ 64
_Static_assert(TT_KEY_BLOCK <= 2 * TT_DOT_BLOCK, "at most two chains");

typedef struct plan {
    exact_walk walk;
    const tt_kernels *kn;
    int64_t Dup;         /* D in whole tiles, in everything indexed by d      */
} plan;

/* One thread's memory. */
typedef struct work {
    float *q;            /* [group, D, aq]                                   */
    float *acc;          /* [group, Dup, aq]                                 */
    float *m, *l;        /* [group, aq]                                      */
    float *s;            /* [TT_KEY_BLOCK, aq]                                */
    float *tops;         /* [aq]: the largest of each column of s; or NULL    */
    float *part;         /* [Dup, aq]: values of a block's first TT_DOT_BLOCK;
                          * or NULL                                           */
} work;

static const plan *plan_of(const exact_walk *w)
{
    return (const plan *)(const void *)w;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). */
static int64_t work_of(work *w, float *p, const plan *e, int64_t keys,
                       int64_t group)
{
    int64_t at = 0, D = e->walk.a->D, Dup = e->Dup, aq = e->kn->aq;
    w->q = exact_take(p, &at, group * D * aq);
    w->acc = exact_take(p, &at, group * Dup * aq);
    w->m = exact_take(p, &at, group * aq);
    w->l = exact_take(p, &at, group * aq);
    w->s = exact_take(p, &at, keys * aq);
    w->tops = e->kn->score_top ? exact_take(p, &at, aq) : NULL;
    w->part = keys > TT_DOT_BLOCK ? exact_take(p, &at, Dup * aq) : NULL;
    return at;
}

static int64_t work_at(work *w, float *p, const plan *e)
{
    return work_of(w, p, e, TT_KEY_BLOCK, e->walk.tuned->group);
}

static void queries(const exact_walk *walk, float *memory, exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = plan_of(walk);
    int64_t D = a->D, aq = e->kn->aq;
    work w;
    work_at(&w, memory, e);
    float *q = w.q + at.g * D * aq;
    e->kn->turn(q, aq, a->q + at.i0 * a->q_stride + at.h * D, a->q_stride, D,
                at.live, NULL, false);
    for (int64_t d = 0; at.live < aq && d < D; d++)
        memset(q + d * aq + at.live, 0, (size_t)(aq - at.live) * sizeof *q);
}

/* What is laid out of a block of n keys: k [n in whole tiles, D], zero past n,
 * so that full score tiles can be computed; behind it v, for every TT_DOT_BLOCK
 * keys [Dup / am, keys, am]. Every tile finds its part behind that of the one
 * before. */
static int64_t room(const exact_walk *walk, int64_t n)
{
    const plan *e = plan_of(walk);
    return exact_round_up(n, e->kn->am) * walk->a->D + n * e->Dup;
}

static int64_t values_at(const exact_walk *walk, int64_t n)
{
    return exact_round_up(n, plan_of(walk)->kn->am) * walk->a->D;
}

/* n of the am channels of a tile, the others zero; whole tiles at once. */
static inline void put(float *to, const float *from, int64_t n, int64_t am)
{
    if (n == 8 && am == 8) {
        memcpy(to, from, 8 * sizeof *to);
    } else {
        for (int64_t i = 0; i < am; i++) to[i] = i < n ? from[i] : 0;
    }
}

static void keys(const exact_walk *walk, float *laid, exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = plan_of(walk);
    const int64_t D = a->D, am = e->kn->am;
    const float *kj = exact_first_key(walk, at);
    const float *vj = exact_first_value(walk, at);
    float *v = laid + values_at(walk, at.n);
    for (int64_t j = 0; j < at.n; j++) {
        memcpy(laid + j * D, kj, (size_t)D * sizeof *laid);
        const int64_t first = j / TT_DOT_BLOCK * TT_DOT_BLOCK;
        const int64_t n = exact_least(at.n - first, TT_DOT_BLOCK);
        float *to = v + first * e->Dup + (j - first) * am;
        for (int64_t d = 0; d < e->Dup; d += am)
            put(to + d * n, vj + d, exact_least(D - d, am), am);
        kj += a->kv_stride;
        vj += a->kv_stride;
    }
    memset(laid + at.n * D, 0,
           (size_t)(values_at(walk, at.n) - at.n * D) * sizeof *laid);
}

/* acc [Dup, aq] = fma(acc, alpha, values of the block's keys with the weights
 * in s); alpha NULL: those values. Of every TT_DOT_BLOCK keys a chain. */
static void values(const plan *e, work *w, float *acc, const float *v,
                   exact_place at, const float *alpha)
{
    const tt_kernels *kn = e->kn;
    const int64_t am = kn->am, aq = kn->aq;
    const int64_t one = exact_least(at.n, TT_DOT_BLOCK), two = at.n - one;
    float *to = two ? w->part : acc;
    for (int64_t d = 0; d < e->Dup; d += am)
        kn->value_tile(to + d * aq, NULL, v + d * one, w->s, one, at.live,
                       two ? NULL : alpha);
    v += one * e->Dup;
    for (int64_t d = 0; two && d < e->Dup; d += am)
        kn->value_tile(acc + d * aq, to + d * aq, v + d * two, w->s + one * aq,
                       two, at.live, alpha);
}

/* s [n in whole tiles, aq] = dot of keys with the queries. Their maxima too, if
 * they are of use and no key of a tile is padding. */
static bool scores(const plan *e, work *w, const float *laid, const float *q,
                   exact_place at)
{
    const tt_kernels *kn = e->kn;
    const tt_attention_args *a = e->walk.a;
    const int64_t D = a->D, aq = kn->aq, n = at.n;
    const bool tops = kn->score_top && !exact_adds(a) && a->scale > 0
                      && n % kn->am == 0;
    for (int64_t i = 0; tops && i < aq; i++) w->tops[i] = -INFINITY;
    for (int64_t j = 0; j < n; j += kn->am) {
        if (j > 0 && a->same && at.j0 + j - kn->am >= a->same)
            memcpy(w->s + j * aq, w->s + (j - kn->am) * aq,
                   (size_t)(kn->am * aq) * sizeof(float));
        else if (tops)
            kn->score_top(w->s + j * aq, laid + j * D, q, D, at.live, w->tops);
        else
            kn->score_tile(w->s + j * aq, laid + j * D, q, D, at.live);
    }
    return tops;
}

static void panel(const exact_walk *walk, float *memory, float *laid,
                  exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = plan_of(walk);
    const tt_kernels *kn = e->kn;
    int64_t D = a->D, aq = kn->aq;
    float alpha[MAX_AQ];
    bool first = at.j0 == 0, plain = !exact_adds(a);
    work w;
    work_at(&w, memory, e);
    const bool tops = scores(e, &w, laid, w.q + at.g * D * aq, at);
    if (!plain) exact_add_bias(walk, at, w.s);
    kn->soften(w.s, at.n, plain ? a->scale : 1.0f, tops ? w.tops : NULL,
               w.m + at.g * aq, w.l + at.g * aq, alpha, first);
    values(e, &w, w.acc + at.g * e->Dup * aq, laid + values_at(walk, at.n), at,
           first ? NULL : alpha);
}

static void give(const exact_walk *walk, float *memory, exact_place at)
{
    const plan *e = plan_of(walk);
    const int64_t aq = e->kn->aq;
    work w;
    work_at(&w, memory, e);
    exact_give(walk, e->kn, w.acc + at.g * e->Dup * aq, w.l + at.g * aq, at);
}

static plan plan_for(const tt_attention_args *a)
{
    const tt_kernels *kn = exact_kernels();
    plan e = {.walk = {.a = a, .tuned = exact_tuned(kn->level),
                       .nr = kn->aq, .block = TT_KEY_BLOCK,
                       .queries = queries, .room = room, .keys = keys,
                       .panel = panel, .give = give},
              .kn = kn, .Dup = exact_round_up(a->D, kn->am)};
    work counted;
    e.walk.floats = work_at(&counted, NULL, &e);
    return e;
}

int64_t exact_f32_attention_laid(const tt_attention_args *a)
{
    const plan e = plan_for(a);
    return exact_walk_laid(&e.walk);
}

int64_t exact_f32_attention_room(const tt_ctx *ctx, const tt_attention_args *a)
{
    const plan e = plan_for(a);
    const exact_cut cut = exact_walk_cut(ctx, &e.walk);
    work counted;
    return cut.laid +
           cut.threads * work_of(&counted, NULL, &e,
                                 exact_least(exact_round_up(a->N, e.kn->am),
                                             TT_KEY_BLOCK), cut.panels);
}

void exact_f32_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const plan e = plan_for(a);
    exact_walk_all(ctx, &e.walk);
}

#else
typedef int tt_no_exact_attention;
#endif
