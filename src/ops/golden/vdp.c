/* vdp.c: class vdp, products of bf16 numbers summed as VDPBF16PS does.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The instruction takes a pair of products at a time, the odd one first, into
 * one chain of fused multiply-adds. Factors are bf16, flushed; every sum is
 * float32, nearest even, flushed (ops/bf16.h).
 * linear     chain from +0, then the bias in plain float32
 * attention  golden_attend_blocks: blocks of keys as in class f32 */
#include "ops/golden/golden.h"

#ifndef TT_REAL_DOUBLE

#include "ops/bf16.h"

static float vdp_chain(float c, const float *a, int64_t step, const float *b,
                       int64_t n)
{
    c = bf16_flush(c);
    for (int64_t k = 0; k < n; k += 2) {
        float x = k + 1 < n ? a[(k + 1) * step] : 0; /* (+0, +0) fills a pair */
        float y = k + 1 < n ? b[k + 1] : 0;
        c = bf16_fma(x, y, c);
        c = bf16_fma(a[k * step], b[k], c);
    }
    return c;
}

const golden_class golden_vdp = {
    .block = 2, .factor = bf16_round, .chain = vdp_chain,
    .attend = golden_attend_blocks,
};

void golden_vdp_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    golden_factors_linear(ctx, a, &golden_vdp);
}

void golden_vdp_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    golden_factors_attention(ctx, a, &golden_vdp);
}

#else
typedef int tt_no_golden_vdp;
#endif
