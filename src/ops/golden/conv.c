/* conv.c: convolution: the sum of class f32 in every class, or by the class.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/gather.h"
#include "ops/golden/golden.h"

const tt_real *golden_widened(tt_ctx *ctx, const tt_tensor *w)
{
    tt_real *wide = tt_scratch(ctx, tt_tensor_count(w));
    if (wide) tt_widen_at(wide, w, 0, tt_tensor_count(w));
    return wide;
}

/* The class's linear layer over the windows of a line. Zeros of padding and of
 * NULL frames are factors as all others are. */
static void conv_by(tt_ctx *ctx, const tt_conv_args *p,
                    void (*linear)(tt_ctx *ctx, const tt_linear_args *a))
{
    int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_tensor w = tt_tensor_reshape(p->w, 2, (int64_t[]){p->Cout, k});
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *x = tt_scratch(ctx, p->Wo * k);
    for (int64_t i = 0; x && i < p->Ho; i++) {
        tt_real *y = p->y + i * p->Wo * p->Cout;
        for (int64_t j = 0; j < p->Wo; j++) conv_gather(x + j * k, p, i, j);
        linear(ctx, &(tt_linear_args){y, x, p->Wo, &w, p->b});
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#define CONV(name, ...)                                                        \
    void golden_##name##_conv(tt_ctx *ctx, const tt_conv_args *p)              \
    {                                                                          \
        if (p->by_class)                                                       \
            conv_by(ctx, p, golden_##name##_linear);                           \
        else                                                                   \
            golden_conv(ctx, p);                                               \
    }
GOLDEN_BUILT(CONV)
