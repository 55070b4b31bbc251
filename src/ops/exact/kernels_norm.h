/* kernels_norm.h: norms and statistics of columns, for every vector width.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A norm reads a row once or twice for its statistics and once to write it. If
 * it does so one after the other, memory waits while it computes. So one loop
 * writes row r and gathers the statistics of the rows that follow: memory sees
 * one even stream, and the few long chains of a sum (16 lanes by definition,
 * ops/reduce.h) have something next to them. No addition moves. */
#ifndef TT_OPS_KERNELS_NORM_H
#define TT_OPS_KERNELS_NORM_H

#include <math.h>

#include "ops/exact/kernels_vector.h"
#include "ops/reduce.h"

#define GROUPS (TT_LANES / VD)   /* vectors that hold the lanes of one sum */

/* ---- sums over a row ----------------------------------------------------- */

/* One vector more of a sum, or of a sum of squares about `mean`. */
INLINE vd more(vd sum, const float *x)
{
    return sum + VD_WIDEN(vf_load(x));
}

INLINE vd more_squares(vd sum, const float *x, double mean)
{
    vd d = VD_WIDEN(vf_load(x)) - mean;
    return VD_FMA(d, d, sum);
}

/* The tree over the lanes, after the n < 16 last elements of the row. */
INLINE double join_groups(const vd *group, const float *rest, int64_t n,
                          double mean, bool square)
{
    double lane[TT_LANES];
    vd half[GROUPS / 2];
    memcpy(lane, group, sizeof lane);
    for (int64_t l = 0; l < n; l++) {
        double d = (double)rest[l] - mean;
        lane[l] = square ? fma_f64(d, d, lane[l]) : lane[l] + d;
    }
    EACH(GROUPS / 2) half[i] = vd_load(lane + i * VD) +
                               vd_load(lane + TT_LANES / 2 + i * VD);
    memcpy(lane, half, sizeof half);
    for (int h = TT_LANES / 4; h > 0; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

static double row_mean(const float *x, int64_t c)
{
    vd sum[GROUPS] = {{0}};
    int64_t k = 0;
    for (; k + TT_LANES <= c; k += TT_LANES)
        EACH(GROUPS) sum[i] = more(sum[i], x + k + i * VD);
    return join_groups(sum, x + k, c - k, 0.0, false) / (double)c;
}

static double row_moment(const float *x, int64_t c, double mean)
{
    vd sum[GROUPS] = {{0}};
    int64_t k = 0;
    for (; k + TT_LANES <= c; k += TT_LANES)
        EACH(GROUPS) sum[i] = more_squares(sum[i], x + k + i * VD, mean);
    return join_groups(sum, x + k, c - k, mean, true);
}

/* ---- norms --------------------------------------------------------------- */

/* y = xhat * w or, with `middle` (sqrt of c, as a float), xhat * middle * w,
 * where xhat = x * scale. Returns the sum of squares of `next`, which may be
 * anything of c values; when it is x itself and y overwrites it, the result is
 * of no use. */
INLINE double scale_row(float *y, const float *x, int64_t c, const float *w,
                        const float *middle, double scale, const float *next)
{
    vd sum[GROUPS] = {{0}};
    int64_t k = 0;
    for (; k + TT_LANES <= c; k += TT_LANES)
        EACH(GROUPS) {
            int64_t at = k + i * VD;
            vf xhat = narrow(VD_WIDEN(vf_load(x + at)) * scale);
            ask_ahead(next + at);
            sum[i] = more_squares(sum[i], next + at, 0.0);
            if (middle) xhat *= *middle;
            vf_store(y + at, xhat * vf_load(w + at));
        }
    double m2 = join_groups(sum, next + k, c - k, 0.0, true);
    for (; k < c; k++) {
        float xhat = (float)((double)x[k] * scale);
        y[k] = (middle ? xhat * *middle : xhat) * w[k];
    }
    return m2;
}

static void k_rms_norm(float *y, const float *x, int64_t n, int64_t c,
                       const float *w, double eps)
{
    double m2 = n > 0 ? row_moment(x, c, 0.0) : 0;
    for (int64_t r = 0; r < n; r++, x += c, y += c)
        m2 = scale_row(y, x, c, w, NULL, 1.0 / sqrt(m2 / (double)c + eps),
                       r + 1 < n ? x + c : x);
}

static void k_channel_norm(float *y, const float *x, int64_t n, int64_t c,
                           const float *gamma)
{
    const float root = (float)sqrt((double)c);
    double m2 = n > 0 ? row_moment(x, c, 0.0) : 0;
    for (int64_t r = 0; r < n; r++, x += c, y += c) {
        double norm = sqrt(m2);
        if (norm < 1e-12) norm = 1e-12;
        m2 = scale_row(y, x, c, gamma, &root, 1.0 / norm,
                       r + 1 < n ? x + c : x);
    }
}

/* A row of a layer norm that is written, and what else is read meanwhile: of
 * `next` the squares about its mean, of `after` the mean. Both may be x, with
 * results of no use. */
typedef struct norm_row {
    const float *x, *next, *after; /* [c] each                                */
    double mean, scale;            /* of x                                    */
    double next_mean, after_mean;  /* after_mean is set                       */
} norm_row;

/* Returns the sum of squares of `next`. */
INLINE double layer_row(float *y, norm_row *q, int64_t c, const float *w,
                        const float *b)
{
    const float *x = q->x, *next = q->next, *after = q->after;
    const double mean = q->mean, scale = q->scale, next_mean = q->next_mean;
    vd sum[GROUPS] = {{0}}, m2[GROUPS] = {{0}};
    int64_t k = 0;
    for (; k + TT_LANES <= c; k += TT_LANES)
        EACH(GROUPS) {
            int64_t at = k + i * VD;
            vf xhat = narrow((VD_WIDEN(vf_load(x + at)) - mean) * scale);
            m2[i] = more_squares(m2[i], next + at, next_mean);
            ask_ahead(after + at);
            sum[i] = more(sum[i], after + at);
            vf_store(y + at, w ? VF_FMA(xhat, vf_load(w + at), vf_load(b + at))
                               : xhat);
        }
    q->after_mean = join_groups(sum, after + k, c - k, 0.0, false) / (double)c;
    double moment = join_groups(m2, next + k, c - k, next_mean, true);
    for (; k < c; k++) {
        float xhat = (float)(((double)x[k] - mean) * scale);
        y[k] = w ? fma_f32(xhat, w[k], b[k]) : xhat;
    }
    return moment;
}

INLINE void layer_rows(float *y, const float *x, int64_t n, int64_t c,
                       const float *w, const float *b, double eps)
{
    if (n == 0) return;
    double mean = row_mean(x, c), m2 = row_moment(x, c, mean);
    double next_mean = n > 1 ? row_mean(x + c, c) : 0;
    for (int64_t r = 0; r < n; r++, x += c, y += c) {
        norm_row q = {.x = x, .next = r + 1 < n ? x + c : x,
                      .after = r + 2 < n ? x + 2 * c : x, .mean = mean,
                      .scale = 1.0 / sqrt(m2 / (double)c + eps),
                      .next_mean = next_mean};
        m2 = layer_row(y, &q, c, w, b);
        mean = next_mean;
        next_mean = q.after_mean;
    }
}

static void k_layer_norm(float *y, const float *x, int64_t n, int64_t c,
                         const float *w, const float *b, double eps)
{
    if (w) layer_rows(y, x, n, c, w, b, eps);
    else layer_rows(y, x, n, c, NULL, NULL, eps);
}

/* ---- columns ------------------------------------------------------------- */

/* Rows per sweep over the sums: additions keep their order. So many rows at
 * once are more streams than a CPU foresees; a sweep asks for the next one. */
#define SWEEP 8
#define BLEND 4

/* How far ahead row r's values are asked for; 0 (no further) near the end. */
INLINE int64_t look_ahead(int64_t r, int64_t n, int64_t rows, int64_t stride)
{
    return r + 2 * rows <= n ? rows * stride : 0;
}

static void k_col_mean(double *restrict mean, const float *restrict x,
                       int64_t n, int64_t stride, int64_t c)
{
    for (int64_t i = 0; i < c; i++) mean[i] = 0;
    for (int64_t r = 0; r < n; r += SWEEP, x += SWEEP * stride) {
        int64_t rows = n - r < SWEEP ? n - r : SWEEP, i = 0;
        int64_t ahead = look_ahead(r, n, SWEEP, stride);
        if (rows == SWEEP)
            for (; i + VD <= c; i += VD) {
                vd s = vd_load(mean + i);
                UNROLL
                for (int k = 0; k < SWEEP; k++) {
                    const float *at = x + k * stride + i;
                    __builtin_prefetch(at + ahead);
                    s = more(s, at);
                }
                vd_store(mean + i, s);
            }
        for (; i < c; i++)
            for (int64_t k = 0; k < rows; k++)
                mean[i] += (double)x[k * stride + i];
    }
    for (int64_t i = 0; i < c; i++) mean[i] /= (double)n;
}

static void k_col_moment(double *restrict m2, const float *restrict x,
                         const double *restrict mean, int64_t n,
                         int64_t stride, int64_t c)
{
    for (int64_t i = 0; i < c; i++) m2[i] = 0;
    for (int64_t r = 0; r < n; r += SWEEP, x += SWEEP * stride) {
        int64_t rows = n - r < SWEEP ? n - r : SWEEP, i = 0;
        int64_t ahead = look_ahead(r, n, SWEEP, stride);
        if (rows == SWEEP)
            for (; i + VD <= c; i += VD) {
                vd s = vd_load(m2 + i), m = vd_load(mean + i);
                UNROLL
                for (int k = 0; k < SWEEP; k++) {
                    const float *at = x + k * stride + i;
                    __builtin_prefetch(at + ahead);
                    vd d = VD_WIDEN(vf_load(at)) - m;
                    s = VD_FMA(d, d, s);
                }
                vd_store(m2 + i, s);
            }
        for (; i < c; i++)
            for (int64_t k = 0; k < rows; k++) {
                double d = (double)x[k * stride + i] - mean[i];
                m2[i] = fma_f64(d, d, m2[i]);
            }
    }
}

INLINE void blend_rows(float *x, int64_t c, const double *mean,
                       const double *gain, const double *target, double tau,
                       int rows, int64_t ahead)
{
    vd t = vd_all(tau);
    int64_t i = 0;
    for (; i + VD <= c; i += VD) {
        vd m = vd_load(mean + i), g = vd_load(gain + i);
        vd to = vd_load(target + i);
        UNROLL
        for (int r = 0; r < rows; r++) {
            float *at = x + r * c + i;
            __builtin_prefetch(at + ahead, 1);
            vd v = VD_WIDEN(vf_load(at));
            vd a = VD_FMA(g, v - m, to);
            vf_store(at, narrow(VD_FMA(t, a, (1 - tau) * v)));
        }
    }
    for (; i < c; i++)
        for (int r = 0; r < rows; r++) {
            double v = (double)x[r * c + i];
            double a = fma_f64(gain[i], v - mean[i], target[i]);
            x[r * c + i] = (float)fma_f64(tau, a, (1 - tau) * v);
        }
}

/* A moving average of one row. */
INLINE void average_row(float *x, int64_t c, const double *target, double tau)
{
    int64_t i = 0;
    for (; i + VD <= c; i += VD) {
        vd rest = (1 - tau) * VD_WIDEN(vf_load(x + i));
        vf_store(x + i, narrow(tau * vd_load(target + i) + rest));
    }
    for (; i < c; i++)
        x[i] = (float)(tau * target[i] + (1 - tau) * (double)x[i]);
}

static void k_col_blend(float *x, int64_t n, int64_t c, const double *mean,
                        const double *gain, const double *target, double tau)
{
    int64_t r = 0;
    for (; !gain && r < n; r++, x += c) average_row(x, c, target, tau);
    for (; r + BLEND <= n; r += BLEND, x += BLEND * c)
        blend_rows(x, c, mean, gain, target, tau, BLEND,
                   look_ahead(r, n, BLEND, c));
    for (; r < n; r++, x += c)
        blend_rows(x, c, mean, gain, target, tau, 1, 0);
}

#endif
