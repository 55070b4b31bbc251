/* attention.c: softmax attention with queries along the vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In the walk of walk.h a panel meets a block of keys as
 *     scores  s [keys, aq]     score_tile or score_top  (dot over D)
 *     softmax  weights, running maximum and sum, all lane by lane
 *     values  acc = acc * alpha + (x[0] + x[1])
 *                              value_tile     (dot over TT_DOT_BLOCK keys each)
 * The weights of TT_DOT_BLOCK keys may be more than a first cache holds, and
 * every value_tile reads all of them: so values are taken for fewer keys at a
 * time (`value_keys`), a piece of a chain, whose sums wait in memory.
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
    float *sums[2];      /* [Dup, aq] each: of a block's two chains of values,
                          * where they wait; or NULL                          */
} work;

static const plan *attention_plan_of(const exact_walk *w)
{
    return (const plan *)(const void *)w;
}

/* Keys [at, at + n) of a block whose values are taken together. */
typedef struct piece {
    int64_t at, n;
    bool begun, last;        /* not its chain's first; the block's last       */
} piece;

/* The piece that begins with a key, of so many in a block. */
static piece piece_at(const plan *e, int64_t at, int64_t keys)
{
    const int64_t done = at % TT_DOT_BLOCK, left = TT_DOT_BLOCK - done;
    const int64_t most = exact_least(left, e->walk.tuned->value_keys);
    piece p = {.at = at, .n = exact_least(keys - at, most), .begun = done > 0};
    p.last = at + p.n == keys;
    return p;
}

/* Do sums of chain i of a block's values wait for more? */
static bool waits(const plan *e, int64_t keys, int i)
{
    const int64_t first = i * TT_DOT_BLOCK;
    return first < keys && !piece_at(e, first, keys).last;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). */
static int64_t attention_work_of(work *w, float *p, const plan *e, int64_t keys,
                                 int64_t group)
{
    int64_t at = 0, D = e->walk.a->D, Dup = e->Dup, aq = e->kn->aq;
    w->q = exact_take(p, &at, group * D * aq);
    w->acc = exact_take(p, &at, group * Dup * aq);
    w->m = exact_take(p, &at, group * aq);
    w->l = exact_take(p, &at, group * aq);
    w->s = exact_take(p, &at, keys * aq);
    w->tops = e->kn->score_top ? exact_take(p, &at, aq) : NULL;
    for (int i = 0; i < 2; i++)
        w->sums[i] = waits(e, keys, i) ? exact_take(p, &at, Dup * aq) : NULL;
    return at;
}

static int64_t attention_work_at(work *w, float *p, const plan *e)
{
    return attention_work_of(w, p, e, TT_KEY_BLOCK, e->walk.tuned->group);
}

static void attention_queries(const exact_walk *walk, float *memory,
                              exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = attention_plan_of(walk);
    int64_t D = a->D, aq = e->kn->aq;
    work w;
    attention_work_at(&w, memory, e);
    float *q = w.q + at.g * D * aq;
    e->kn->turn(q, aq, a->q + at.i0 * a->q_stride + at.h * D, a->q_stride, D,
                at.live, NULL, false);
    for (int64_t d = 0; at.live < aq && d < D; d++)
        memset(q + d * aq + at.live, 0, (size_t)(aq - at.live) * sizeof *q);
}

/* What is packed of a block of n keys: k [n in whole tiles, D], zero past n,
 * so that full score tiles can be computed; after it v, for every piece of its
 * keys [Dup / am, keys, am]. Every tile finds its part after that of the one
 * before. */
static int64_t attention_floats(const exact_walk *walk, int64_t n)
{
    const plan *e = attention_plan_of(walk);
    return exact_round_up(n, e->kn->am) * walk->a->D + n * e->Dup;
}

static int64_t attention_values_at(const exact_walk *walk, int64_t n)
{
    return exact_round_up(n, attention_plan_of(walk)->kn->am) * walk->a->D;
}

/* n of the am channels of a tile, the others zero; whole tiles at once. */
static inline void attention_put(float *to, const float *from, int64_t n,
                                 int64_t am)
{
    if (n == 8 && am == 8) {
        memcpy(to, from, 8 * sizeof *to);
    } else {
        for (int64_t i = 0; i < am; i++) to[i] = i < n ? from[i] : 0;
    }
}

static void attention_keys(const exact_walk *walk, float *packed,
                           exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = attention_plan_of(walk);
    const int64_t D = a->D, am = e->kn->am;
    const float *kj = at.k, *vj = at.v;
    float *v = packed + attention_values_at(walk, at.n);
    piece p = piece_at(e, 0, at.n);
    for (int64_t j = 0; j < at.n; j++) {
        if (j == p.at + p.n) p = piece_at(e, j, at.n);
        memcpy(packed + j * D, kj, (size_t)D * sizeof *packed);
        float *to = v + p.at * e->Dup + (j - p.at) * am;
        for (int64_t d = 0; d < e->Dup; d += am)
            attention_put(to + d * p.n, vj + d, exact_least(D - d, am), am);
        kj += at.stride;
        vj += at.stride;
    }
    const int64_t values = attention_values_at(walk, at.n);
    memset(packed + at.n * D, 0, (size_t)(values - at.n * D) * sizeof *packed);
}

/* acc [Dup, aq] = fma(acc, alpha, values of the block's keys with the weights
 * in s); alpha NULL: those values. Of every TT_DOT_BLOCK keys a chain. */
static void attention_values(const plan *e, work *w, float *acc, const float *v,
                             exact_place at, const float *alpha)
{
    const int64_t am = e->kn->am, aq = e->kn->aq;
    for (piece p = piece_at(e, 0, at.n);; p = piece_at(e, p.at + p.n, at.n)) {
        const bool second = p.at >= TT_DOT_BLOCK, joins = p.last && second;
        float *sums = w->sums[second], *to = p.last ? acc : sums;
        for (int64_t d = 0; d < e->Dup * aq; d += am * aq)
            e->kn->value_tile(to + d, p.begun ? sums + d : NULL,
                              joins ? w->sums[0] + d : NULL,
                              v + p.at * e->Dup + d / aq * p.n,
                              w->s + p.at * aq, p.n, at.live,
                              p.last ? alpha : NULL);
        if (p.last) return;
    }
}

/* s [n in whole tiles, aq] = dot of keys with the queries. Their maxima too, if
 * they are of use and no key of a tile is padding. */
static bool scores(const plan *e, work *w, const float *packed, const float *q,
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
            kn->score_top(w->s + j * aq, packed + j * D, q, D, at.live,
                          w->tops);
        else
            kn->score_tile(w->s + j * aq, packed + j * D, q, D, at.live);
    }
    return tops;
}

static void attention_panel(const exact_walk *walk, float *memory,
                            float *packed, exact_place at)
{
    const tt_attention_args *a = walk->a;
    const plan *e = attention_plan_of(walk);
    const tt_kernels *kn = e->kn;
    int64_t D = a->D, aq = kn->aq;
    float alpha[MAX_AQ];
    bool first = at.j0 == 0, plain = !exact_adds(a);
    work w;
    attention_work_at(&w, memory, e);
    const bool tops = scores(e, &w, packed, w.q + at.g * D * aq, at);
    if (!plain) exact_add_bias(walk, at, w.s);
    kn->softmax(w.s, at.n, plain ? a->scale : 1.0f, tops ? w.tops : NULL,
               w.m + at.g * aq, w.l + at.g * aq, alpha, first);
    attention_values(e, &w, w.acc + at.g * e->Dup * aq,
                     packed + attention_values_at(walk, at.n), at,
                     first ? NULL : alpha);
}

static void attention_give(const exact_walk *walk, float *memory,
                           exact_place at)
{
    const plan *e = attention_plan_of(walk);
    const int64_t aq = e->kn->aq;
    work w;
    attention_work_at(&w, memory, e);
    exact_give(walk, e->kn, w.acc + at.g * e->Dup * aq, w.l + at.g * aq, at);
}

static plan attention_plan_for(const tt_attention_args *a)
{
    const tt_kernels *kn = exact_kernels();
    plan e = {.walk = {.a = a, .tuned = exact_tuned(kn->level),
                       .nr = kn->aq, .block = TT_KEY_BLOCK,
                       .queries = attention_queries,
                       .packed_floats = attention_floats,
                       .keys = attention_keys,
                       .panel = attention_panel, .give = attention_give},
              .kn = kn, .Dup = exact_round_up(a->D, kn->am)};
    work counted;
    e.walk.floats = attention_work_at(&counted, NULL, &e);
    return e;
}

int64_t exact_f32_attention_packed(const tt_attention_args *a)
{
    const plan e = attention_plan_for(a);
    return exact_walk_packed(&e.walk);
}

void exact_f32_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const plan e = attention_plan_for(a);
    exact_walk_all(ctx, &e.walk);
}

#else
typedef int tt_no_exact_attention;
#endif
