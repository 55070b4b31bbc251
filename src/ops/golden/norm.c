/* norm.c: the three normalisations, and per-channel statistics over rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Statistics are double in the lane order of reduce.h; the result is rounded
 * to the compute type once before any weight is applied. */
#include "core/fma.h"
#include "core/parallel.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"

static double row_mean(const tt_real *x, int64_t c)
{
    double lane[TT_LANES] = {0};
    for (int64_t i = 0; i < c; i++) lane[i % TT_LANES] += (double)x[i];
    return join_lanes(lane) / (double)c;
}

/* sum of (x - mean)^2 */
static double row_moment(const tt_real *x, int64_t c, double mean)
{
    double lane[TT_LANES] = {0};
    for (int64_t i = 0; i < c; i++) {
        double d = (double)x[i] - mean;
        lane[i % TT_LANES] = fma_f64(d, d, lane[i % TT_LANES]);
    }
    return join_lanes(lane);
}

void golden_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        const tt_real *x = a->x + r * a->c;
        tt_real *y = a->y + r * a->c;
        double mean = row_mean(x, a->c);
        double var = row_moment(x, a->c, mean) / (double)a->c;
        double scale = 1.0 / sqrt(var + a->eps);
        for (int64_t i = 0; i < a->c; i++) {
            tt_real xhat = (tt_real)(((double)x[i] - mean) * scale);
            y[i] = a->w ? fma_real(xhat, a->w[i], a->b[i]) : xhat;
        }
    }
}

void golden_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        const tt_real *x = a->x + r * a->c;
        tt_real *y = a->y + r * a->c;
        double ms = row_moment(x, a->c, 0.0) / (double)a->c;
        double scale = 1.0 / sqrt(ms + a->eps);
        for (int64_t i = 0; i < a->c; i++)
            y[i] = (tt_real)((double)x[i] * scale) * a->w[i];
    }
}

void golden_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    tt_real root = (tt_real)sqrt((double)a->c);
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        const tt_real *x = a->x + r * a->c;
        tt_real *y = a->y + r * a->c;
        double norm = sqrt(row_moment(x, a->c, 0.0));
        if (norm < 1e-12) norm = 1e-12;   /* a floor, not an addition */
        double scale = 1.0 / norm;
        for (int64_t i = 0; i < a->c; i++)
            y[i] = (tt_real)((double)x[i] * scale) * root * a->gamma[i];
    }
}

void golden_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->c; i++) {
        double s = 0;
        for (int64_t r = 0; r < a->n; r++) s += (double)a->x[r * a->c + i];
        a->mean[i] = s / (double)a->n;
    }
}

void golden_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < a->c; i++) {
        double s = 0;
        for (int64_t r = 0; r < a->n; r++) {
            double d = (double)a->x[r * a->c + i] - a->mean[i];
            s = fma_f64(d, d, s);
        }
        a->m2[i] = s;
    }
}

void golden_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        tt_real *x = a->x + r * a->c;
        for (int64_t i = 0; i < a->c; i++) {
            double v = (double)x[i];
            double rest = (1 - a->tau) * v;
            if (!a->gain) {                       /* a moving average */
                x[i] = (tt_real)(a->tau * a->target[i] + rest);
                continue;
            }
            double edit = fma_f64(a->gain[i], v - a->mean[i], a->target[i]);
            x[i] = (tt_real)fma_f64(a->tau, edit, rest);
        }
    }
}
