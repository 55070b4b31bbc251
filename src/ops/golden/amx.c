/* amx.c: class amx, products of bf16 numbers summed as AMX does.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order is that of the instruction TDPBF16PS: 32 products a step, one chain
 * over the even ones and one over the odd ones. Factors are bf16, flushed;
 * every sum is float32, nearest even, flushed (ops/bf16.h).
 * linear     chain from +0, then the bias in plain float32
 * attention  golden_attend_blocks: blocks of keys as in class f32 */
#include "ops/golden/golden.h"

#ifndef TT_REAL_DOUBLE

#include "ops/bf16.h"

static float amx_chain(float c, const float *a, int64_t step, const float *b,
                       int64_t n)
{
    c = bf16_flush(c);
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

const golden_class golden_amx = {
    .block = BF16_GROUP, .factor = bf16_round, .chain = amx_chain,
    .attend = golden_attend_blocks,
};

void golden_amx_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    golden_factors_linear(ctx, a, &golden_amx);
}

void golden_amx_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    golden_factors_attention(ctx, a, &golden_amx);
}

#else
typedef int tt_no_golden_amx;
#endif
