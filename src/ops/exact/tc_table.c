/* tc_table.c: the operators of the classes of tensor cores, and which kernels
 * this CPU runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/tc.h"

#ifndef TT_REAL_DOUBLE

const tt_tc_kernels *exact_tc_kernels(int unit)
{
#if defined(__x86_64__)
    const tt_kernels *f32 = exact_kernels();
    if (f32 == &tt_kernels_avx512) return &tt_tc_avx512[unit];
    if (f32 == &tt_kernels_avx2) return &tt_tc_avx2[unit];
#endif
    return &tt_tc_generic[unit];
}

void exact_sm80_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    exact_tc_linear(ctx, a, 0);
}

void exact_sm90_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    exact_tc_linear(ctx, a, 1);
}

void exact_sm80_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    exact_tc_attention(ctx, a, 0);
}

void exact_sm90_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    exact_tc_attention(ctx, a, 1);
}

#else
typedef int tt_no_exact_tc;
#endif
