/* room.c: see room.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/room.h"

#include "ops/exact/bf16.h"
#include "ops/exact/exact.h"
#include "ops/exact/tc.h"

#ifndef TT_REAL_DOUBLE

int64_t ops_linear_room(tt_ctx *ctx, const tt_ops *ops, const tt_linear_args *a)
{
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
    return ops->conv == exact_conv ? exact_conv_room(ctx, a) : 0;
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
