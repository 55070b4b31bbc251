/* linear.c: y = x w^T + b, and convolution as the same sum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/parallel.h"
#include "ops/gather.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"

/* All rows of w widened into scratch. */
static const tt_real *widen_all(tt_ctx *ctx, const tt_tensor *w)
{
    tt_real *wide = tt_scratch(ctx, tt_tensor_count(w));
    if (wide) tt_widen_at(wide, w, 0, tt_tensor_count(w));
    return wide;
}

void golden_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    int64_t o = a->w->dim[0], i = a->w->dim[1];
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *row = widen_all(ctx, a->w);
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

void golden_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = widen_all(ctx, p->w);
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
