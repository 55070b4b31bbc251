/* conv.c: convolution, the sum of class f32 in every class.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/parallel.h"
#include "ops/gather.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"

const tt_real *golden_widened(tt_ctx *ctx, const tt_tensor *w)
{
    tt_real *wide = tt_scratch(ctx, tt_tensor_count(w));
    if (wide) tt_widen_at(wide, w, 0, tt_tensor_count(w));
    return wide;
}

void golden_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = golden_widened(ctx, p->w);
    tt_real *window = tt_scratch(ctx, k * p->Ho);
    if (window) {
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < p->Ho; i++)
            for (int64_t j = 0; j < p->Wo; j++) {
                tt_real *x = window + i * k;
                conv_gather(x, p, i, j);
                tt_real *y = p->y + (i * p->Wo + j) * p->Cout;
                for (int64_t o = 0; o < p->Cout; o++) {
                    tt_real s = dot_real(x, w + o * k, k);
                    y[o] = p->b ? s + p->b[o] : s;
                }
            }
    }
    tt_arena_reset(&ctx->scratch, mark);
}
