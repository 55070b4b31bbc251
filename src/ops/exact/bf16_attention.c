/* bf16_attention.c: softmax attention of classes amx and vdp.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The walk is that of attention.c: a group of query panels shares each packed
 * block of keys and values. Both products go through the tile of the class,
 *     scores  s [keys, nr] = keys (rows) times queries (lanes)
 *     values  o [D, nr]    = channels (rows) times weights (lanes)
 * and the softmax between them is the float class's own. */
#include "ops/exact/bf16.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>

#include "core/parallel.h"

#define GROUP 8     /* query panels that share a key block */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* What is the same for every unit. */
typedef struct plan {
    const tt_attention_args *a;
    const tt_kernels *soft;       /* soften and merge                         */
    const tt_bf16_kernels *kn;
    int64_t nr;
    int64_t Dk;                   /* D in whole groups: products of QK        */
    int64_t Dm;                   /* D in whole tiles: rows of PV             */
} plan;

/* One thread's memory. */
typedef struct work {
    float *k;          /* rows  [Dk/32, TT_KEY_BLOCK, 32]                     */
    float *v;          /* rows  [TT_KEY_BLOCK/32, Dm, 32]                     */
    float *q;          /* lanes [GROUP][Dk, nr]                               */
    float *p;          /* lanes [TT_KEY_BLOCK, nr]                            */
    float *acc;        /* [GROUP, Dm, nr]                                     */
    float *m, *l;      /* [GROUP, nr]                                         */
    float *s;          /* [TT_KEY_BLOCK, nr]                                  */
    float *block;      /* [Dm, nr]                                            */
} work;

static float *take(float *p, int64_t *at, int64_t n)
{
    float *mine = p ? p + *at : NULL;
    *at += n;
    return mine;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). Packed values take at most a float each. */
static int64_t work_at(work *w, float *p, const plan *e)
{
    int64_t at = 0, nr = e->nr;
    w->k = take(p, &at, TT_KEY_BLOCK * e->Dk);
    w->v = take(p, &at, TT_KEY_BLOCK * e->Dm);
    w->q = take(p, &at, GROUP * e->Dk * nr);
    w->p = take(p, &at, TT_KEY_BLOCK * nr);
    w->acc = take(p, &at, GROUP * e->Dm * nr);
    w->m = take(p, &at, GROUP * nr);
    w->l = take(p, &at, GROUP * nr);
    w->s = take(p, &at, TT_KEY_BLOCK * nr);
    w->block = take(p, &at, e->Dm * nr);
    return at;
}

/* Scale, bias and mask in place; only the text encoder has the latter two. */
static void add_bias(const plan *e, int64_t h, int64_t i0, int64_t j0,
                     int64_t n, float *s)
{
    const tt_attention_args *a = e->a;
    const float *bias = a->rel_bias;
    if (bias) bias += h * (2 * a->N - 1) + a->N - 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < e->nr; i++) {
            float *v = &s[j * e->nr + i];
            *v *= a->scale;
            if (a->key_mask && !a->key_mask[j0 + j])
                *v += -FLT_MAX;
            else if (bias && i0 + i < a->T)
                *v += bias[j0 + j - i0 - i];
        }
}

/* c [m, nr] = m packed rows (whole tiles, of `of`) times K products of lanes */
static void product(const plan *e, float *c, const float *rows, int64_t m,
                    int64_t of, const float *lanes, int64_t K)
{
    const tt_bf16_kernels *kn = e->kn;
    unsigned state = kn->begin();
    for (int64_t r = 0; r < m; r += kn->mr)
        kn->tile(c + r * e->nr, e->nr,
                 (const char *)rows + r * BF16_GROUP * kn->size, of, lanes,
                 round_up(K, BF16_GROUP) / BF16_GROUP, false);
    kn->end(state);
}

/* Queries [i0, i0 + nr) of panel g against the block in w. */
static void panel_block(const plan *e, int64_t h, int64_t g, int64_t i0,
                        int64_t j0, int64_t n, work *w)
{
    const tt_attention_args *a = e->a;
    float alpha[BF16_MAX_NR];
    bool first = j0 == 0, plain = !a->rel_bias && !a->key_mask;
    int64_t up = round_up(n, e->kn->mr);
    product(e, w->s, w->k, up, up, w->q + g * e->Dk * e->nr, a->D);
    if (!plain) add_bias(e, h, i0, j0, n, w->s);
    e->soft->soften(w->s, n, plain ? a->scale : 1.0f, w->m + g * e->nr,
                    w->l + g * e->nr, alpha, first);
    e->kn->pack_weights(w->p, w->s, n);
    product(e, w->block, w->v, e->Dm, e->Dm, w->p, n);
    e->soft->merge(w->acc + g * e->Dm * e->nr, w->block, alpha, e->Dm, first);
}

/* Queries [i0, i1) of head h: at most GROUP panels. */
static void run_group(const plan *e, int64_t h, int64_t i0, int64_t i1, work *w)
{
    const tt_attention_args *a = e->a;
    const tt_bf16_kernels *kn = e->kn;
    int64_t D = a->D, nr = e->nr, panels = (i1 - i0 + nr - 1) / nr;
    for (int64_t g = 0; g < panels; g++)
        kn->pack_lanes(w->q + g * e->Dk * nr,
                       a->q + (i0 + g * nr) * a->q_stride + h * D, a->q_stride,
                       least(i1 - i0 - g * nr, nr), D);
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t n = least(a->N - j0, TT_KEY_BLOCK);
        int64_t at = j0 * a->kv_stride + h * D;
        kn->pack_rows(w->k, round_up(n, kn->mr), a->k + at, a->kv_stride, n, D);
        kn->pack_cols(w->v, e->Dm, a->v + at, a->kv_stride, D, n);
        for (int64_t g = 0; g < panels; g++)
            panel_block(e, h, g, i0 + g * nr, j0, n, w);
    }
    for (int64_t t = i0; t < i1; t++) {
        int64_t g = (t - i0) / nr, i = (t - i0) % nr;
        const float *acc = w->acc + g * e->Dm * nr + i;
        float *o = a->o + (t * a->H + h) * D;
        for (int64_t d = 0; d < D; d++) o[d] = acc[d * nr] / w->l[g * nr + i];
    }
}

void bf16_attention(tt_ctx *ctx, const tt_attention_args *a,
                    const tt_bf16_kernels *kn)
{
    plan e = {.a = a, .soft = exact_kernels(), .kn = kn};
    e.nr = e.kn->nr;
    TT_ASSERT(e.nr == e.soft->aq && TT_KEY_BLOCK % e.kn->mr == 0);
    e.Dk = round_up(a->D, BF16_GROUP);
    e.Dm = round_up(a->D, e.kn->mr);
    int64_t panels = (a->T + e.nr - 1) / e.nr;
    /* as many groups as keep all threads busy to the end */
    int64_t groups = round_up((panels + GROUP - 1) / GROUP, ctx->nthreads);
    int64_t size = (panels + groups - 1) / groups * e.nr;
    groups = (a->T + size - 1) / size;
    work counted;
    int64_t per = round_up(work_at(&counted, NULL, &e), 16);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *memory = tt_scratch(ctx, per * ctx->nthreads);
    if (memory) {
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->H * a->T * a->N * a->D / 16)
        for (int64_t u = 0; u < a->H * groups; u++) {
            work w;
            work_at(&w, memory + per * tt_thread_id(), &e);
            int64_t i0 = u % groups * size;
            run_group(&e, u / groups, i0, least(a->T, i0 + size), &w);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_bf16_attention;
#endif
