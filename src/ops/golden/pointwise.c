/* pointwise.c: element-wise operators.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/fma.h"
#include "core/parallel.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"
#include "tether/mathfn.h"

void golden_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        tt_real *x = a->x + r * a->c;
        const tt_real *s = a->scale + r / a->rows * a->stride;
        const tt_real *t = a->shift + r / a->rows * a->stride;
        for (int64_t i = 0; i < a->c; i++)
            x[i] = fma_real(x[i], 1 + s[i], t[i]);
    }
}

void golden_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        tt_real *x = a->x + r * a->c;
        const tt_real *y = a->y + r * a->c;
        const tt_real *g = a->gate + r / a->rows * a->stride;
        for (int64_t i = 0; i < a->c; i++) x[i] = fma_real(y[i], g[i], x[i]);
    }
}

void golden_add(tt_ctx *ctx, const tt_add_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->n; i++) a->x[i] += a->y[i];
}

void golden_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->n; i++) a->x[i] *= a->y[i];
}

void golden_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    const tt_real k = (tt_real)-1.5957691216057308;   /* -2 sqrt(2/pi) */
    const tt_real cubic = (tt_real)0.044715;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->n; i++) {
        tt_real v = a->x[i];
        tt_real u = fma_real(cubic * (v * v), v, v) * k;   /* -2u */
        a->x[i] = v / (1 + tt_exp_real(u));
    }
}

void golden_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->n; i++)
        a->x[i] = a->x[i] / (1 + tt_exp_real(-a->x[i]));
}

void golden_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    const tt_rope_table *table = a->table;
    int64_t pairs = a->D / 2, row0 = table->pairs[0];
    int64_t col0 = row0 + table->pairs[1];
    TT_PARALLEL_FOR(ctx)
    for (int64_t t = 0; t < a->T; t++)
        for (int64_t j = 0; j < pairs; j++) {
            int64_t p = a->pos[3 * t + (j >= row0) + (j >= col0)];
            TT_ASSERT(p >= 0 && p < table->npos);
            double c = table->cos[p * pairs + j];
            double s = table->sin[p * pairs + j];
            for (int64_t h = 0; h < a->H; h++) {
                int64_t at = (t * a->H + h) * a->D + 2 * j;
                double re = (double)a->x[at], im = (double)a->x[at + 1];
                a->y[at] = (tt_real)fma_f64(re, c, -(im * s));
                a->y[at + 1] = (tt_real)fma_f64(re, s, im * c);
            }
        }
}
