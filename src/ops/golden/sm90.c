/* sm90.c: class sm90, products of bf16 numbers as the tensor cores of
 * Hopper and Blackwell sum them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * sm_90, sm_100, sm_103, sm_120: H100, H200, B200, RTX 50.
 * 16 products a step, 25 fraction bits, cut towards zero: ops/tensor_core.h.
 * linear     chain from +0 over ascending k, then the bias in plain float32
 * attention  golden_tensor_core_attend: blocks of 128 keys, one chain that goes
 *            on through all of them */
#include "ops/golden/tensor_core.h"

#ifndef TT_REAL_DOUBLE

static float sm90_chain(float c, const float *a, int64_t step, const float *b,
                        int64_t n)
{
    return tc_chain(tc_sm90, c, a, step, b, n);
}

const golden_class golden_sm90 = {
    .block = 16, .factor = tc_factor, .chain = sm90_chain,
    .attend = golden_tensor_core_attend,
};

void golden_sm90_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    golden_factors_linear(ctx, a, &golden_sm90);
}

void golden_sm90_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    golden_factors_attention(ctx, a, &golden_sm90);
}

#else
typedef int tt_no_golden_sm90;
#endif
