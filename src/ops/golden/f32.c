/* f32.c: class f32, the compute type throughout.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * dot     blocks of 256, one chain of fused multiply-adds in each (reduce.h)
 * linear  dot, then the bias
 * attention over blocks of keys; a logit is one chain, however wide the head
 *
 * The blocks of keys are part of the definition: a running maximum over blocks
 * of TT_KEY_BLOCK keys needs one pass over K and V and no score matrix, and
 * every optimised kernel walks the same blocks. */
#include <float.h>

#include "core/parallel.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"
#include "tether/mathfn.h"

#ifdef TT_REAL_DOUBLE
#define REAL_LOWEST (-DBL_MAX)
#else
#define REAL_LOWEST (-FLT_MAX)
#endif

static tt_real same(tt_real x)
{
    return x;
}

static tt_real chain(tt_real c, const tt_real *a, int64_t step,
                     const tt_real *b, int64_t n)
{
    for (int64_t k = 0; k < n; k += TT_DOT_BLOCK)
        c += dot_strided(a + k * step, step, b + k,
                         n - k < TT_DOT_BLOCK ? n - k : TT_DOT_BLOCK);
    return c;
}

const golden_class golden_f32 = {
    .block = TT_DOT_BLOCK, .factor = same, .chain = chain,
};

void golden_f32_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    int64_t o = a->w->dim[0], i = a->w->dim[1];
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *row = golden_widened(ctx, a->w);
    if (row) {
        TT_PARALLEL_FOR(ctx)
        for (int64_t r = 0; r < a->n; r++)
            for (int64_t c = 0; c < o; c++) {
                tt_real s = dot_real(a->x + r * i, row + c * i, i);
                a->y[r * o + c] = a->b ? s + a->b[c] : s;
            }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* Logit of query i and key j of head h. */
static tt_real logit(const tt_attention_args *a, int64_t h, int64_t i,
                     int64_t j)
{
    const tt_real *q = a->q + i * a->q_stride + h * a->D;
    const tt_real *k = a->k + j * a->kv_stride + h * a->D;
    tt_real s = 0;
    for (int64_t d = 0; d < a->D; d++) s = fma_real(q[d], k[d], s);
    s *= a->scale;
    if (a->key_mask && !a->key_mask[j]) return s + REAL_LOWEST;
    if (a->rel_bias)
        s += a->rel_bias[h * (2 * a->N - 1) + j - i + a->N - 1];
    return s;
}

/* One query of one head; acc [D] and block [D] are scratch. */
static void attend(const tt_attention_args *a, int64_t h, int64_t i,
                   tt_real *acc, tt_real *block)
{
    tt_real m = 0, l = 0, p[TT_KEY_BLOCK];
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t n = a->N - j0 < TT_KEY_BLOCK ? a->N - j0 : TT_KEY_BLOCK;
        tt_real top = j0 ? m : logit(a, h, i, 0);
        for (int64_t j = 0; j < n; j++) {
            p[j] = logit(a, h, i, j0 + j);
            if (p[j] > top) top = p[j];
        }
        tt_real sum = 0;
        for (int64_t j = 0; j < n; j++) {
            p[j] = tt_exp_real(p[j] - top);
            sum += p[j];
        }
        for (int64_t d = 0; d < a->D; d++)
            block[d] = dot_strided(a->v + j0 * a->kv_stride + h * a->D + d,
                                   a->kv_stride, p, n);
        if (j0 == 0) {
            l = sum;
            for (int64_t d = 0; d < a->D; d++) acc[d] = block[d];
        } else {
            tt_real alpha = tt_exp_real(m - top);
            l = fma_real(l, alpha, sum);
            for (int64_t d = 0; d < a->D; d++)
                acc[d] = fma_real(acc[d], alpha, block[d]);
        }
        m = top;
    }
    tt_real *o = a->o + (i * a->H + h) * a->D;
    for (int64_t d = 0; d < a->D; d++) o[d] = acc[d] / l;
}

void golden_f32_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *acc = tt_scratch(ctx, 2 * a->D * ctx->nthreads);
    if (acc) {
        TT_PARALLEL_FOR(ctx)
        for (int64_t t = 0; t < a->H * a->T; t++) {
            tt_real *mine = acc + 2 * a->D * tt_thread_id();
            attend(a, t / a->T, t % a->T, mine, mine + a->D);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}
