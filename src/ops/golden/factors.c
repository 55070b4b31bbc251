/* factors.c: what the classes of rounded factors share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A class brings the rounding of a factor, the order of a sum and what
 * attention does with it (golden.h). The loops around them are these. */
#include "ops/golden/golden.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>
#include <math.h>

#include "core/fma.h"
#include "core/parallel.h"
#include "ops/gather.h"
#include "tether/mathfn.h"

static void factors_round_all(float *y, const float *x, int64_t n,
                              const golden_class *class)
{
    for (int64_t i = 0; i < n; i++) y[i] = class->factor(x[i]);
}

void golden_factors_linear(tt_ctx *ctx, const tt_linear_args *a,
                           const golden_class *class)
{
    int64_t o = a->w->dim[0], i = a->w->dim[1];
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *wide = tt_scratch(ctx, o * i);
    float *own = tt_scratch(ctx, i * ctx->nthreads);
    if (own) {
        tt_widen_at(wide, a->w, 0, o * i);
        factors_round_all(wide, wide, o * i, class);
        TT_PARALLEL_FOR(ctx)
        for (int64_t r = 0; r < a->n; r++) {
            float *row = own + i * tt_thread_id();
            factors_round_all(row, a->x + r * i, i, class);
            for (int64_t c = 0; c < o; c++) {
                float s = class->chain(0, row, 1, wide + c * i, i);
                a->y[r * o + c] = a->b ? s + a->b[c] : s;
            }
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

float golden_logit(const golden_head *r, int64_t i, int64_t j)
{
    const tt_attention_args *a = r->a;
    float s = r->class->chain(0, r->q + i * a->D, 1, r->k + j * a->D, a->D)
              * a->scale;
    if (a->key_mask && !a->key_mask[j]) return s - FLT_MAX;
    if (a->rel_bias)
        s += a->rel_bias[r->h * (2 * a->N - 1) + j - i + a->N - 1];
    return s;
}

void golden_attend_blocks(const golden_head *r, int64_t i, float *o, float *acc)
{
    const tt_attention_args *a = r->a;
    float m = 0, l = 0, p[TT_KEY_BLOCK];
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t n = a->N - j0 < TT_KEY_BLOCK ? a->N - j0 : TT_KEY_BLOCK;
        float top = j0 ? m : golden_logit(r, i, 0), sum = 0;
        for (int64_t j = 0; j < n; j++) {
            p[j] = golden_logit(r, i, j0 + j);
            if (p[j] > top) top = p[j];
        }
        for (int64_t j = 0; j < n; j++) {
            p[j] = tt_exp_real(p[j] - top);
            sum += p[j];
            p[j] = r->class->factor(p[j]);
        }
        float alpha = j0 ? tt_exp_real(m - top) : 0;
        l = j0 ? fma_f32(l, alpha, sum) : sum;
        for (int64_t d = 0; d < a->D; d++) {
            float block = r->class->chain(0, r->v + j0 * a->D + d, a->D, p, n);
            acc[d] = j0 ? fma_f32(acc[d], alpha, block) : block;
        }
        m = top;
    }
    for (int64_t d = 0; d < a->D; d++) o[d] = acc[d] / l;
}

void golden_factors_attention(tt_ctx *ctx, const tt_attention_args *a,
                              const golden_class *class)
{
    int64_t D = a->D;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *q = tt_scratch(ctx, a->T * D);
    float *k = tt_scratch(ctx, a->N * D);
    float *v = tt_scratch(ctx, a->N * D);
    float *acc = tt_scratch(ctx, D * ctx->nthreads);
    golden_head r = {.class = class, .a = a, .q = q, .k = k, .v = v};
    for (; acc && r.h < a->H; r.h++) {
        for (int64_t t = 0; t < a->T; t++)
            factors_round_all(q + t * D, a->q + t * a->q_stride + r.h * D, D,
                              class);
        for (int64_t j = 0; j < a->N; j++) {
            int64_t at = j * a->kv_stride + r.h * D;
            take_numbers(k + j * D, a->k, at, D, a->bf16);
            take_numbers(v + j * D, a->v, at, D, a->bf16);
        }
        factors_round_all(k, k, a->N * D, class);
        factors_round_all(v, v, a->N * D, class);
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < a->T; i++)
            class->attend(&r, i, a->o + (i * a->H + r.h) * D,
                          acc + D * tt_thread_id());
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_golden_factors;
#endif
