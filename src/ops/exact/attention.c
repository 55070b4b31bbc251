/* attention.c: softmax attention with queries along the vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A unit of work is one head and a group of query panels (aq queries each).
 * The group walks the key blocks of the definition together, so that a block
 * of K and V is copied into contiguous memory once and then serves every panel
 * of the group from cache:
 *     scores  s [keys, aq]     score_tile     (dot over D)
 *     soften  weights, running maximum and sum, all lane by lane
 *     values  o [D, aq]        value_tile     (dot over the block's keys)
 *     merge   acc = acc * alpha + o
 * With queries along the lanes every chain of the definition is one lane. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>

#include "core/parallel.h"

#define GROUP 8     /* query panels that share a key block */
#define MAX_AQ 64

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* One thread's memory. D is rounded up to am in everything indexed by d. */
typedef struct work {
    float *k, *v;      /* [TT_KEY_BLOCK, D], [TT_KEY_BLOCK, Dup]              */
    float *q;          /* [GROUP, D, aq]                                      */
    float *acc;        /* [GROUP, Dup, aq]                                    */
    float *m, *l;      /* [GROUP, aq]                                         */
    float *s;          /* [TT_KEY_BLOCK, aq]                                  */
    float *block;      /* [2, Dup, aq]                                        */
} work;

static int64_t work_floats(const tt_kernels *kn, int64_t D)
{
    int64_t Dup = round_up(D, kn->am);
    return TT_KEY_BLOCK * (D + Dup) + GROUP * kn->aq * (D + Dup + 2) +
           TT_KEY_BLOCK * kn->aq + 2 * Dup * kn->aq + 64;
}

static work work_at(float *p, const tt_kernels *kn, int64_t D)
{
    int64_t Dup = round_up(D, kn->am);
    work w;
    w.k = p;
    w.v = w.k + TT_KEY_BLOCK * D;
    w.q = w.v + TT_KEY_BLOCK * Dup;
    w.acc = w.q + GROUP * D * kn->aq;
    w.m = w.acc + GROUP * Dup * kn->aq;
    w.l = w.m + GROUP * kn->aq;
    w.s = w.l + GROUP * kn->aq;
    w.block = w.s + TT_KEY_BLOCK * kn->aq;
    return w;
}

/* Contiguous copies of one block of keys and values of head h; keys past n are
 * zero so that full score tiles can be computed. */
static void copy_block(work *w, const tt_kernels *kn,
                       const tt_attention_args *a, int64_t h, int64_t j0,
                       int64_t n)
{
    int64_t D = a->D, Dup = round_up(D, kn->am);
    size_t nbytes = (size_t)D * sizeof *w->k;
    for (int64_t j = 0; j < n; j++) {
        int64_t at = (j0 + j) * a->kv_stride + h * D;
        memcpy(w->k + j * D, a->k + at, nbytes);
        memcpy(w->v + j * Dup, a->v + at, nbytes);
        for (int64_t d = D; d < Dup; d++) w->v[j * Dup + d] = 0;
    }
    for (int64_t j = n; j < round_up(n, kn->am); j++)
        memset(w->k + j * D, 0, nbytes);
}

/* Scale, bias and mask in place; only the text encoder has the latter two. */
static void add_bias(const tt_kernels *kn, const tt_attention_args *a,
                     int64_t h, int64_t i0, int64_t j0, int64_t n, float *s)
{
    const float *bias = a->rel_bias;
    if (bias) bias += h * (2 * a->N - 1) + a->N - 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < kn->aq; i++) {
            float *v = &s[j * kn->aq + i];
            *v *= a->scale;
            if (a->key_mask && !a->key_mask[j0 + j])
                *v += -FLT_MAX;
            else if (bias && i0 + i < a->T)
                *v += bias[j0 + j - i0 - i];
        }
}

/* block [Dup, aq] = dot of the n weights in s with the channels of v. */
static void values(const tt_kernels *kn, work *w, int64_t D, int64_t n)
{
    int64_t Dup = round_up(D, kn->am), aq = kn->aq;
    float one[MAX_AQ];
    for (int64_t i = 0; i < aq; i++) one[i] = 1.0f;
    for (int64_t j = 0; j < n; j += TT_DOT_BLOCK) {
        float *part = w->block + (j > 0) * Dup * aq;
        for (int64_t d = 0; d < D; d += kn->am)
            kn->value_tile(part + d * aq, w->v + j * Dup + d, w->s + j * aq,
                           Dup, least(n - j, TT_DOT_BLOCK));
        /* fma(block, 1, part) is block + part */
        if (j > 0) kn->merge(w->block, part, one, Dup, false);
    }
}

/* Queries [i0, i0 + aq) of panel g against the block in w. */
static void panel_block(const tt_kernels *kn, const tt_attention_args *a,
                        int64_t h, int64_t g, int64_t i0, int64_t j0,
                        int64_t n, work *w)
{
    int64_t D = a->D, Dup = round_up(D, kn->am), aq = kn->aq;
    float alpha[MAX_AQ];
    bool first = j0 == 0, plain = !a->rel_bias && !a->key_mask;
    for (int64_t j = 0; j < n; j += kn->am)
        kn->score_tile(w->s + j * aq, w->k + j * D, w->q + g * D * aq, D);
    if (!plain) add_bias(kn, a, h, i0, j0, n, w->s);
    kn->soften(w->s, n, plain ? a->scale : 1.0f, w->m + g * aq, w->l + g * aq,
               alpha, first);
    values(kn, w, D, n);
    kn->merge(w->acc + g * Dup * aq, w->block, alpha, Dup, first);
}

/* Queries [i0, i1) of head h: at most GROUP panels. */
static void run_group(const tt_kernels *kn, const tt_attention_args *a,
                      int64_t h, int64_t i0, int64_t i1, work *w)
{
    int64_t D = a->D, Dup = round_up(D, kn->am), aq = kn->aq;
    int64_t panels = (i1 - i0 + aq - 1) / aq;
    for (int64_t g = 0; g < panels; g++)
        for (int64_t d = 0; d < D; d++)
            for (int64_t i = 0; i < aq; i++) {
                int64_t t = i0 + g * aq + i;
                w->q[(g * D + d) * aq + i] =
                    t < i1 ? a->q[t * a->q_stride + h * D + d] : 0.0f;
            }
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t n = least(a->N - j0, TT_KEY_BLOCK);
        copy_block(w, kn, a, h, j0, n);
        for (int64_t g = 0; g < panels; g++)
            panel_block(kn, a, h, g, i0 + g * aq, j0, n, w);
    }
    for (int64_t t = i0; t < i1; t++) {
        int64_t g = (t - i0) / aq, i = (t - i0) % aq;
        const float *acc = w->acc + g * Dup * aq + i;
        float *o = a->o + (t * a->H + h) * D;
        for (int64_t d = 0; d < D; d++) o[d] = acc[d * aq] / w->l[g * aq + i];
    }
}

void exact_f32_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const tt_kernels *kn = exact_kernels();
    int64_t panels = (a->T + kn->aq - 1) / kn->aq;
    /* as many groups as keep all threads busy to the end */
    int64_t groups = round_up((panels + GROUP - 1) / GROUP, ctx->nthreads);
    int64_t size = (panels + groups - 1) / groups * kn->aq;
    groups = (a->T + size - 1) / size;
    int64_t per = round_up(work_floats(kn, a->D), 16);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *memory = tt_scratch(ctx, per * ctx->nthreads);
    if (memory) {
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->H * a->T * a->N * a->D / 16)
        for (int64_t u = 0; u < a->H * groups; u++) {
            work w = work_at(memory + per * tt_thread_id(), kn, a->D);
            int64_t i0 = u % groups * size;
            run_group(kn, a, u / groups, i0, least(a->T, i0 + size), &w);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_attention;
#endif
