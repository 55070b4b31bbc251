/* room.c: see room.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/room.h"

#include "ops/exact/bf16.h"
#include "ops/exact/exact.h"
#include "ops/exact/tc.h"

#ifdef TT_CUDA
#include "ops/cuda/cuda.h"
#define IF_CUDA(op)                                                            \
    if (ops->op == cuda_mma_##op) return cuda_mma_##op##_room(a);              \
    if (ops->op == cuda_##op) return cuda_##op##_room(a);
#else
#define IF_CUDA(op)
#endif

#ifndef TT_REAL_DOUBLE

int64_t ops_linear_room(tt_ctx *ctx, const tt_ops *ops, const tt_linear_args *a)
{
    IF_CUDA(linear)
    if (ops->linear == exact_f32_linear) return exact_f32_linear_room(ctx, a);
    if (ops->linear == exact_amx_linear)
        return bf16_linear_room(ctx, a, exact_bf16_kernels(ctx));
    if (ops->linear == exact_vdp_linear)
        return bf16_linear_room(ctx, a, exact_vdp_kernels(ctx));
    if (ops->linear == exact_sm80_linear || ops->linear == exact_sm90_linear)
        return exact_tc_linear_room(ctx, a);
    return 0;
}

int64_t ops_attention_room(tt_ctx *ctx, const tt_ops *ops,
                           const tt_attention_args *a)
{
    IF_CUDA(attention)
    if (ops->attention == exact_f32_attention)
        return exact_f32_attention_room(ctx, a);
    if (ops->attention == exact_amx_attention)
        return bf16_attention_room(ctx, a, exact_bf16_kernels(ctx));
    if (ops->attention == exact_vdp_attention)
        return bf16_attention_room(ctx, a, exact_vdp_kernels(ctx));
    if (ops->attention == exact_sm80_attention
        || ops->attention == exact_sm90_attention)
        return exact_tc_attention_room(ctx, a);
    return 0;
}

int64_t ops_conv_room(tt_ctx *ctx, const tt_ops *ops, const tt_conv_args *a)
{
    IF_CUDA(conv)
    const bool amx = ops->conv == exact_amx_conv;
    const bool vdp = ops->conv == exact_vdp_conv;
    const bool tc = ops->conv == exact_sm80_conv
                 || ops->conv == exact_sm90_conv;
    if (ops->conv == exact_f32_conv || ((amx || vdp || tc) && !a->by_class))
        return exact_f32_conv_room(ctx, a);
    if (!amx && !vdp && !tc) return 0;
    const tt_bf16_kernels *kn = amx ? exact_bf16_kernels(ctx)
                              : vdp ? exact_vdp_kernels(ctx) : NULL;
    if (kn && bf16_conv_takes(a, kn)) return bf16_conv_room(ctx, a, kn);
    const int64_t dim[2] = {a->Cout, (int64_t)a->kt * a->kh * a->kw * a->Cin};
    const tt_tensor w = tt_tensor_reshape(a->w, 2, dim);
    const int64_t n = exact_windows(a), all = a->Ho * a->Wo;
    const tt_linear_args rows = {.n = n, .w = &w};
    const tt_linear_args rest = {.n = n > 0 ? all % n : 0, .w = &w};
    const int64_t most = ops_linear_room(ctx, ops, &rows);
    const int64_t last = ops_linear_room(ctx, ops, &rest);
    return exact_windows_room(a) + (most > last ? most : last);
}

#else

int64_t ops_linear_room(tt_ctx *ctx, const tt_ops *ops, const tt_linear_args *a)
{
    (void)ctx, (void)ops, (void)a;
    return 0;
}

int64_t ops_attention_room(tt_ctx *ctx, const tt_ops *ops,
                           const tt_attention_args *a)
{
    (void)ctx, (void)ops, (void)a;
    return 0;
}

int64_t ops_conv_room(tt_ctx *ctx, const tt_ops *ops, const tt_conv_args *a)
{
    (void)ctx, (void)ops, (void)a;
    return 0;
}

#endif
