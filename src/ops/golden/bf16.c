/* bf16.c: the bf16 class: matrix products of bf16 numbers, summed in float32.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order is that of the AMX instruction TDPBF16PS (32 products per step, one
 * chain over the even ones and one over the odd ones), so that a matrix unit
 * and these loops give the same bits. What is not a product of linear, QK or PV
 * is computed as in the float class. */
#include "ops/bf16.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"
#include "tether/mathfn.h"

/* sum over k of a[k] b[k], both already bf16; a[k] is at a[k * step]. */
static float dot_bf16(const float *a, int64_t step, const float *b, int64_t n)
{
    float c = 0;
    for (int64_t k0 = 0; k0 < n; k0 += BF16_GROUP) {
        float half[2] = {0, 0};
        for (int64_t k = k0; k < k0 + BF16_GROUP; k++) {
            float x = k < n ? a[k * step] : 0; /* zeros are added too: they  */
            float y = k < n ? b[k] : 0;        /* turn a sum of -0 into +0   */
            half[k % 2] = bf16_fma(x, y, half[k % 2]);
        }
        c = bf16_add(c, bf16_add(half[0], half[1]));
    }
    return c;
}

static void round_all(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = bf16_round(x[i]);
}

void golden_bf16_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    int64_t o = a->w->dim[0], i = a->w->dim[1];
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *wide = tt_scratch(ctx, o * i);
    float *own = tt_scratch(ctx, i * ctx->nthreads);
    if (own) {
        tt_widen_at(wide, a->w, 0, o * i);
        round_all(wide, wide, o * i);
        TT_PARALLEL_FOR(ctx)
        for (int64_t r = 0; r < a->n; r++) {
            float *row = own + i * tt_thread_id();
            round_all(row, a->x + r * i, i);
            for (int64_t c = 0; c < o; c++) {
                float s = dot_bf16(row, 1, wide + c * i, i);
                a->y[r * o + c] = a->b ? s + a->b[c] : s;
            }
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* q, k and v of one head rounded: [T, D], [N, D], [N, D]. */
typedef struct head {
    const float *q, *k, *v;
} head;

/* Logit of query i and key j of head h. */
static float logit(const tt_attention_args *a, const head *r, int64_t h,
                   int64_t i, int64_t j)
{
    float s = dot_bf16(r->q + i * a->D, 1, r->k + j * a->D, a->D) * a->scale;
    if (a->key_mask && !a->key_mask[j]) return s - FLT_MAX;
    if (a->rel_bias)
        s += a->rel_bias[h * (2 * a->N - 1) + j - i + a->N - 1];
    return s;
}

/* One query of one head; acc [D] is scratch. As in attention.c but for the
 * products: the weights p enter them rounded, the sum l unrounded. */
static void attend(const tt_attention_args *a, const head *r, int64_t h,
                   int64_t i, float *acc)
{
    float m = 0, l = 0, p[TT_KEY_BLOCK];
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t n = a->N - j0 < TT_KEY_BLOCK ? a->N - j0 : TT_KEY_BLOCK;
        float top = j0 ? m : logit(a, r, h, i, 0), sum = 0;
        for (int64_t j = 0; j < n; j++) {
            p[j] = logit(a, r, h, i, j0 + j);
            if (p[j] > top) top = p[j];
        }
        for (int64_t j = 0; j < n; j++) {
            p[j] = tt_exp_real(p[j] - top);
            sum += p[j];
            p[j] = bf16_round(p[j]);
        }
        float alpha = j0 ? tt_exp_real(m - top) : 0;
        l = j0 ? fmaf(l, alpha, sum) : sum;
        for (int64_t d = 0; d < a->D; d++) {
            float block = dot_bf16(r->v + j0 * a->D + d, a->D, p, n);
            acc[d] = j0 ? fmaf(acc[d], alpha, block) : block;
        }
        m = top;
    }
    float *o = a->o + (i * a->H + h) * a->D;
    for (int64_t d = 0; d < a->D; d++) o[d] = acc[d] / l;
}

void golden_bf16_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    int64_t D = a->D;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *q = tt_scratch(ctx, a->T * D);
    float *k = tt_scratch(ctx, a->N * D);
    float *v = tt_scratch(ctx, a->N * D);
    float *acc = tt_scratch(ctx, D * ctx->nthreads);
    head r = {.q = q, .k = k, .v = v};
    for (int64_t h = 0; acc && h < a->H; h++) {
        for (int64_t t = 0; t < a->T; t++)
            round_all(q + t * D, a->q + t * a->q_stride + h * D, D);
        for (int64_t j = 0; j < a->N; j++) {
            round_all(k + j * D, a->k + j * a->kv_stride + h * D, D);
            round_all(v + j * D, a->v + j * a->kv_stride + h * D, D);
        }
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < a->T; i++)
            attend(a, &r, h, i, acc + D * tt_thread_id());
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_golden_bf16;
#endif
