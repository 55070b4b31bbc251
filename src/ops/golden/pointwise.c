/* pointwise.c: element-wise operators.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/parallel.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"
#include "tether/mathfn.h"

void golden_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                     const tt_real *scale, const tt_real *shift,
                     int64_t stride, int64_t rows)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++) {
        const tt_real *s = scale + r / rows * stride;
        const tt_real *t = shift + r / rows * stride;
        for (int64_t i = 0; i < c; i++)
            x[r * c + i] = fma_real(x[r * c + i], 1 + s[i], t[i]);
    }
}

void golden_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                     int64_t c, const tt_real *gate, int64_t stride,
                     int64_t rows)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++) {
        const tt_real *g = gate + r / rows * stride;
        for (int64_t i = 0; i < c; i++)
            x[r * c + i] = fma_real(y[r * c + i], g[i], x[r * c + i]);
    }
}

void golden_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < n; i++) x[i] += y[i];
}

void golden_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
}

void golden_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n)
{
    (void)ctx;
    const tt_real k = (tt_real)-1.5957691216057308;   /* -2 sqrt(2/pi) */
    const tt_real cubic = (tt_real)0.044715;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < n; i++) {
        tt_real v = x[i];
        tt_real u = fma_real(cubic * (v * v), v, v) * k;   /* -2u */
        x[i] = v / (1 + tt_exp_real(u));
    }
}

void golden_silu(tt_ctx *ctx, tt_real *x, int64_t n)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < n; i++) x[i] = x[i] / (1 + tt_exp_real(-x[i]));
}

void golden_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T,
                 int64_t H, int64_t D, const tt_rope_table *table,
                 const int32_t *pos)
{
    (void)ctx;
    int64_t pairs = D / 2, row0 = table->pairs[0];
    int64_t col0 = row0 + table->pairs[1];
    TT_PARALLEL_FOR(ctx)
    for (int64_t t = 0; t < T; t++)
        for (int64_t j = 0; j < pairs; j++) {
            int64_t p = pos[3 * t + (j >= row0) + (j >= col0)];
            TT_ASSERT(p >= 0 && p < table->npos);
            double c = table->cos[p * pairs + j];
            double s = table->sin[p * pairs + j];
            for (int64_t h = 0; h < H; h++) {
                int64_t at = (t * H + h) * D + 2 * j;
                double a = (double)x[at], b = (double)x[at + 1];
                y[at] = (tt_real)fma(a, c, -(b * s));
                y[at + 1] = (tt_real)fma(a, s, b * c);
            }
        }
}
