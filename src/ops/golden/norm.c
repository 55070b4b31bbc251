/* norm.c: the three normalisations, and per-channel statistics over rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Statistics are double in the lane order of reduce.h; the result is rounded
 * to the compute type once before any weight is applied. */
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
        lane[i % TT_LANES] = fma(d, d, lane[i % TT_LANES]);
    }
    return join_lanes(lane);
}

void golden_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                       int64_t c, const tt_real *w, const tt_real *b,
                       double eps)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++) {
        const tt_real *in = x + r * c;
        double mean = row_mean(in, c);
        double var = row_moment(in, c, mean) / (double)c;
        double scale = 1.0 / sqrt(var + eps);
        for (int64_t i = 0; i < c; i++) {
            tt_real xhat = (tt_real)(((double)in[i] - mean) * scale);
            y[r * c + i] = w ? fma_real(xhat, w[i], b[i]) : xhat;
        }
    }
}

void golden_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *w, double eps)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++) {
        const tt_real *in = x + r * c;
        double ms = row_moment(in, c, 0.0) / (double)c;
        double scale = 1.0 / sqrt(ms + eps);
        for (int64_t i = 0; i < c; i++)
            y[r * c + i] = (tt_real)((double)in[i] * scale) * w[i];
    }
}

void golden_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                         int64_t c, const tt_real *gamma)
{
    (void)ctx;
    tt_real root = (tt_real)sqrt((double)c);
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++) {
        const tt_real *in = x + r * c;
        double norm = sqrt(row_moment(in, c, 0.0));
        if (norm < 1e-12) norm = 1e-12;   /* a floor, not an addition */
        double scale = 1.0 / norm;
        for (int64_t i = 0; i < c; i++)
            y[r * c + i] = (tt_real)((double)in[i] * scale) * root * gamma[i];
    }
}

void golden_col_mean(tt_ctx *ctx, double *mean, const tt_real *x, int64_t n,
                     int64_t c)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < c; i++) {
        double s = 0;
        for (int64_t r = 0; r < n; r++) s += (double)x[r * c + i];
        mean[i] = s / (double)n;
    }
}

void golden_col_moment(tt_ctx *ctx, double *m2, const tt_real *x,
                       const double *mean, int64_t n, int64_t c)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < c; i++) {
        double s = 0;
        for (int64_t r = 0; r < n; r++) {
            double d = (double)x[r * c + i] - mean[i];
            s = fma(d, d, s);
        }
        m2[i] = s;
    }
}

void golden_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                      const double *mean, const double *gain,
                      const double *target, double tau)
{
    (void)ctx;
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < c; i++) {
            double v = (double)x[r * c + i];
            double a = fma(gain[i], v - mean[i], target[i]);
            x[r * c + i] = (tt_real)fma(tau, a, (1 - tau) * v);
        }
}
