/* sm80.c: class sm80, products of bf16 numbers as the tensor cores of
 * Ampere and Ada sum them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * sm_80, sm_86, sm_87, sm_89: A100, RTX 30, RTX 40, L40S.
 * 8 products a step, 24 fraction bits, cut towards zero: ops/tensor_core.h.
 * linear     chain from +0 over ascending k, then the bias in plain float32
 * attention  golden_tensor_core_attend: blocks of 128 keys, one chain that goes
 *            on through all of them */
#include "ops/golden/tensor_core.h"

#ifndef TT_REAL_DOUBLE

static float sm80_chain(float c, const float *a, int64_t step, const float *b,
                        int64_t n)
{
    return tc_chain(tc_sm80, c, a, step, b, n);
}

const golden_class golden_sm80 = {
    .block = 8, .factor = tc_factor, .chain = sm80_chain,
    .attend = golden_tensor_core_attend,
};

void golden_sm80_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    golden_factors_linear(ctx, a, &golden_sm80);
}

void golden_sm80_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    golden_factors_attention(ctx, a, &golden_sm80);
}

#else
typedef int tt_no_golden_sm80;
#endif
