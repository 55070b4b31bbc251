/* tc_attention.c: softmax attention of the classes of tensor cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The walk is that of attention.c, in key blocks of TC_KEY_BLOCK: a group of
 * query panels shares each packed block of keys and values.
 *     scores  s [keys, TC_NR] = keys (rows) times queries (lanes), from zero
 *     values  acc [D, TC_NR] goes on: channels (rows) times weights (lanes) */
#include "ops/exact/tc.h"

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
    const tt_tc_kernels *kn;
    int unit;
    int64_t Dk;                   /* D in whole groups: products of QK        */
} plan;

/* One thread's memory. */
typedef struct work {
    float *k;          /* rows  [Dk/16, TC_KEY_BLOCK, 16]                     */
    float *v;          /* rows  [TC_KEY_BLOCK/16, D, 16]                      */
    float *q;          /* lanes [GROUP][Dk, TC_NR]                            */
    float *p;          /* lanes [TC_KEY_BLOCK, TC_NR]                         */
    float *acc;        /* [GROUP, D, TC_NR]                                   */
    float *m;          /* [GROUP, TC_NR]                                      */
    float *l;          /* [GROUP, TC_LANES, TC_NR]                            */
    float *s;          /* [TC_KEY_BLOCK, TC_NR]                               */
} work;

static float *take(float *p, int64_t *at, int64_t n)
{
    float *mine = p ? p + *at : NULL;
    *at += n;
    return mine;
}

/* Lay out one thread's memory at p and say how many floats that is (p NULL:
 * only count). */
static int64_t work_at(work *w, float *p, const plan *e)
{
    int64_t at = 0, D = e->a->D;
    w->k = take(p, &at, TC_ROWS_FLOATS(TC_KEY_BLOCK, e->Dk));
    w->v = take(p, &at, TC_ROWS_FLOATS(D, TC_KEY_BLOCK));
    w->q = take(p, &at, GROUP * TC_LANES_FLOATS(e->Dk));
    w->p = take(p, &at, TC_LANES_FLOATS(TC_KEY_BLOCK));
    w->acc = take(p, &at, GROUP * D * TC_NR);
    w->m = take(p, &at, GROUP * TC_NR);
    w->l = take(p, &at, GROUP * TC_LANES * TC_NR);
    w->s = take(p, &at, TC_KEY_BLOCK * TC_NR);
    return at;
}

static tc_rows rows_at(float *p, int64_t m, int64_t K)
{
    return (tc_rows){p, (int32_t *)(p + m * K)};
}

static tc_lanes lanes_at(float *p, int64_t K)
{
    return (tc_lanes){p, (int32_t *)(p + TC_NR * K)};
}

static bool adds(const tt_attention_args *a)
{
    return a->rel_bias || a->key_mask;
}

/* Scale, bias and mask in place; only the text encoder has the latter two. */
static void add_bias(const plan *e, int64_t h, int64_t i0, int64_t j0,
                     int64_t n, float *s)
{
    const tt_attention_args *a = e->a;
    const float *bias = a->rel_bias;
    if (bias) bias += h * (2 * a->N - 1) + a->N - 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < TC_NR; i++) {
            float *v = &s[j * TC_NR + i];
            *v *= a->scale;
            if (a->key_mask && !a->key_mask[j0 + j])
                *v += -FLT_MAX;
            else if (bias && i0 + i < a->T)
                *v += bias[j0 + j - i0 - i];
        }
}

/* Queries [i0, i0 + TC_NR) of panel g against the n keys of the block in w. */
static void panel_block(const plan *e, int64_t h, int64_t g, int64_t i0,
                        int64_t j0, int64_t n, work *w)
{
    const tt_attention_args *a = e->a;
    int64_t D = a->D, up = round_up(n, TC_GROUP);
    float alpha[TC_NR], *acc = w->acc + g * D * TC_NR;
    float scale = adds(a) ? TC_LOG2E : a->scale * TC_LOG2E;
    tc_lanes p = lanes_at(w->p, up);
    memset(w->s, 0, (size_t)(n * TC_NR) * sizeof *w->s);
    e->kn->tile[e->unit](w->s, n, rows_at(w->k, n, e->Dk),
                         lanes_at(w->q + g * TC_LANES_FLOATS(e->Dk), e->Dk),
                         e->Dk / TC_GROUP);
    if (adds(a)) add_bias(e, h, i0, j0, n, w->s);
    e->kn->soften(p, w->s, n, scale, w->m + g * TC_NR,
                  w->l + g * TC_LANES * TC_NR, alpha, j0 == 0);
    e->kn->shrink(acc, alpha, D);
    e->kn->tile[e->unit](acc, D, rows_at(w->v, D, up), p, up / TC_GROUP);
}

static void write_out(const plan *e, int64_t h, int64_t t, int64_t at,
                      const work *w)
{
    const tt_attention_args *a = e->a;
    int64_t g = at / TC_NR, i = at % TC_NR;
    const float *acc = w->acc + g * a->D * TC_NR + i;
    float *o = a->o + (t * a->H + h) * a->D, l[TC_LANES];
    for (int s = 0; s < TC_LANES; s++)
        l[s] = w->l[(g * TC_LANES + s) * TC_NR + i];
    const float sum = tc_join(l);
    for (int64_t d = 0; d < a->D; d++) o[d] = (acc[d * TC_NR] + 0.0f) / sum;
}

/* Queries [i0, i1) of head h: at most GROUP panels. */
static void run_group(const plan *e, int64_t h, int64_t i0, int64_t i1, work *w)
{
    const tt_attention_args *a = e->a;
    int64_t D = a->D, panels = (i1 - i0 + TC_NR - 1) / TC_NR;
    for (int64_t g = 0; g < panels; g++)
        e->kn->pack_lanes(lanes_at(w->q + g * TC_LANES_FLOATS(e->Dk), e->Dk),
                          a->q + (i0 + g * TC_NR) * a->q_stride + h * D,
                          a->q_stride, least(i1 - i0 - g * TC_NR, TC_NR), D);
    memset(w->acc, 0, (size_t)(panels * D * TC_NR) * sizeof *w->acc);
    for (int64_t j0 = 0; j0 < a->N; j0 += TC_KEY_BLOCK) {
        int64_t n = least(a->N - j0, TC_KEY_BLOCK), up = round_up(n, TC_GROUP);
        int64_t at = j0 * a->kv_stride + h * D;
        e->kn->pack_rows(rows_at(w->k, n, e->Dk), n, a->k + at, a->kv_stride, n,
                         D);
        e->kn->pack_cols(rows_at(w->v, D, up), D, a->v + at, a->kv_stride, D,
                         n);
        for (int64_t g = 0; g < panels; g++)
            panel_block(e, h, g, i0 + g * TC_NR, j0, n, w);
    }
    for (int64_t t = i0; t < i1; t++) write_out(e, h, t, t - i0, w);
}

void exact_tc_attention(tt_ctx *ctx, const tt_attention_args *a, int unit)
{
    plan e = {.a = a, .kn = exact_tc_kernels(), .unit = unit,
              .Dk = round_up(a->D, TC_GROUP)};
    int64_t panels = (a->T + TC_NR - 1) / TC_NR;
    /* as many groups as keep all threads busy to the end */
    int64_t groups = round_up((panels + GROUP - 1) / GROUP, ctx->nthreads);
    int64_t size = (panels + groups - 1) / groups * TC_NR;
    groups = (a->T + size - 1) / size;
    work counted;
    int64_t per = round_up(work_at(&counted, NULL, &e), 16);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *memory = tt_scratch(ctx, per * ctx->nthreads);
    if (memory) {
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->H * a->T * a->N * a->D / 4)
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
typedef int tt_no_exact_tc_attention;
#endif
