/* kernels.h: row and element kernels, written once in plain C and compiled
 * once per instruction set (kernels_*.c include this file).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The compiler vectorises across outputs or across the 16 statistic lanes; it
 * has no licence to reorder a sum (no -ffast-math), so every flavour performs
 * the operations of ops/golden/ in their order. AQ is the number of queries
 * along the lanes of the attention kernels. */
#include <math.h>

#include "core/mathfn.h"
#include "ops/exact/exact.h"
#include "ops/reduce.h"

#ifndef AQ
#error "kernels.h: define AQ before including"
#endif

static void k_soften(float *restrict s, int64_t n, float scale,
                     float *restrict m, float *restrict l,
                     float *restrict alpha, bool first)
{
    float top[AQ], sum[AQ];
    for (int i = 0; i < AQ; i++) {
        top[i] = first ? s[i] * scale : m[i];
        sum[i] = 0;
    }
    for (int64_t j = 0; j < n; j++)
        for (int i = 0; i < AQ; i++) {
            float v = s[j * AQ + i] * scale;
            s[j * AQ + i] = v;
            top[i] = v > top[i] ? v : top[i];
        }
    for (int64_t j = 0; j < n; j++)
        for (int i = 0; i < AQ; i++) {
            float p = exp_f32(s[j * AQ + i] - top[i]);
            s[j * AQ + i] = p;
            sum[i] += p;
        }
    for (int i = 0; i < AQ; i++) {
        float a = first ? 0.0f : exp_f32(m[i] - top[i]);
        alpha[i] = a;
        l[i] = first ? sum[i] : __builtin_fmaf(l[i], a, sum[i]);
        m[i] = top[i];
    }
}

static void k_merge(float *restrict acc, const float *restrict block,
                    const float *restrict alpha, int64_t D, bool first)
{
    if (first) {
        for (int64_t i = 0; i < D * AQ; i++) acc[i] = block[i];
        return;
    }
    for (int64_t d = 0; d < D; d++)
        for (int i = 0; i < AQ; i++)
            acc[d * AQ + i] = __builtin_fmaf(acc[d * AQ + i], alpha[i],
                                             block[d * AQ + i]);
}

/* Columns [k0, kc) of a panel, for the ends that a vector transpose leaves. */
static inline void pack_columns(float *restrict panel,
                                const float *restrict src, int64_t ld,
                                int64_t k0, int64_t kc, int nr)
{
    for (int64_t k = k0; k < kc; k++)
        for (int j = 0; j < nr; j++) panel[k * nr + j] = src[j * ld + k];
}

/* ---- statistics ------------------------------------------------------------ */

static double k_row_mean(const float *x, int64_t c)
{
    double lane[TT_LANES] = {0};
    int64_t i = 0;
    for (; i + TT_LANES <= c; i += TT_LANES)
        for (int l = 0; l < TT_LANES; l++) lane[l] += (double)x[i + l];
    for (int l = 0; i + l < c; l++) lane[l] += (double)x[i + l];
    return join_lanes(lane) / (double)c;
}

static double k_row_moment(const float *x, int64_t c, double mean)
{
    double lane[TT_LANES] = {0};
    int64_t i = 0;
    for (; i + TT_LANES <= c; i += TT_LANES)
        for (int l = 0; l < TT_LANES; l++) {
            double d = (double)x[i + l] - mean;
            lane[l] = __builtin_fma(d, d, lane[l]);
        }
    for (int l = 0; i + l < c; l++) {
        double d = (double)x[i + l] - mean;
        lane[l] = __builtin_fma(d, d, lane[l]);
    }
    return join_lanes(lane);
}

static void k_layer_norm(float *y, const float *x, int64_t c, const float *w,
                         const float *b, double eps)
{
    double mean = k_row_mean(x, c);
    double var = k_row_moment(x, c, mean) / (double)c;
    double scale = 1.0 / sqrt(var + eps);
    if (w)
        for (int64_t i = 0; i < c; i++)
            y[i] = __builtin_fmaf((float)(((double)x[i] - mean) * scale), w[i],
                                  b[i]);
    else
        for (int64_t i = 0; i < c; i++)
            y[i] = (float)(((double)x[i] - mean) * scale);
}

static void k_rms_norm(float *y, const float *x, int64_t c, const float *w,
                       double eps)
{
    double scale = 1.0 / sqrt(k_row_moment(x, c, 0.0) / (double)c + eps);
    for (int64_t i = 0; i < c; i++) y[i] = (float)((double)x[i] * scale) * w[i];
}

static void k_channel_norm(float *y, const float *x, int64_t c,
                           const float *gamma)
{
    float root = (float)sqrt((double)c);
    double norm = sqrt(k_row_moment(x, c, 0.0));
    if (norm < 1e-12) norm = 1e-12;
    double scale = 1.0 / norm;
    for (int64_t i = 0; i < c; i++)
        y[i] = (float)((double)x[i] * scale) * root * gamma[i];
}

/* Four rows per sweep over the sums: the additions keep their order. */
static void k_col_mean(double *restrict mean, const float *restrict x,
                       int64_t n, int64_t stride, int64_t c)
{
    int64_t r = 0;
    for (int64_t i = 0; i < c; i++) mean[i] = 0;
    for (; r + 4 <= n; r += 4, x += 4 * stride)
        for (int64_t i = 0; i < c; i++) {
            double s = mean[i];
            s += (double)x[i];
            s += (double)x[stride + i];
            s += (double)x[2 * stride + i];
            s += (double)x[3 * stride + i];
            mean[i] = s;
        }
    for (; r < n; r++, x += stride)
        for (int64_t i = 0; i < c; i++) mean[i] += (double)x[i];
    for (int64_t i = 0; i < c; i++) mean[i] /= (double)n;
}

static inline double add_square(double sum, float x, double mean)
{
    double d = (double)x - mean;
    return __builtin_fma(d, d, sum);
}

static void k_col_moment(double *restrict m2, const float *restrict x,
                         const double *restrict mean, int64_t n,
                         int64_t stride, int64_t c)
{
    int64_t r = 0;
    for (int64_t i = 0; i < c; i++) m2[i] = 0;
    for (; r + 4 <= n; r += 4, x += 4 * stride)
        for (int64_t i = 0; i < c; i++) {
            double s = add_square(m2[i], x[i], mean[i]);
            s = add_square(s, x[stride + i], mean[i]);
            s = add_square(s, x[2 * stride + i], mean[i]);
            m2[i] = add_square(s, x[3 * stride + i], mean[i]);
        }
    for (; r < n; r++, x += stride)
        for (int64_t i = 0; i < c; i++)
            m2[i] = add_square(m2[i], x[i], mean[i]);
}

static void k_col_blend(float *restrict x, int64_t c,
                        const double *restrict mean,
                        const double *restrict gain,
                        const double *restrict target, double tau)
{
    for (int64_t i = 0; i < c; i++) {
        double v = (double)x[i];
        double a = __builtin_fma(gain[i], v - mean[i], target[i]);
        x[i] = (float)__builtin_fma(tau, a, (1 - tau) * v);
    }
}

/* ---- elements --------------------------------------------------------------- */

static void k_modulate(float *restrict x, int64_t c,
                       const float *restrict scale, const float *restrict shift)
{
    for (int64_t i = 0; i < c; i++)
        x[i] = __builtin_fmaf(x[i], 1 + scale[i], shift[i]);
}

static void k_gate_add(float *restrict x, const float *restrict y, int64_t c,
                       const float *restrict gate)
{
    for (int64_t i = 0; i < c; i++) x[i] = __builtin_fmaf(y[i], gate[i], x[i]);
}

static void k_add(float *restrict x, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] += y[i];
}

static void k_mul(float *restrict x, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
}

static void k_gelu_tanh(float *x, int64_t n)
{
    const float k = (float)-1.5957691216057308, cubic = (float)0.044715;
    for (int64_t i = 0; i < n; i++) {
        float v = x[i];
        float u = __builtin_fmaf(cubic * (v * v), v, v) * k;
        x[i] = v / (1 + exp_f32(u));
    }
}

static void k_silu(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = x[i] / (1 + exp_f32(-x[i]));
}

static void k_rope(float *y, const float *x, int64_t H, int64_t D,
                   const double *restrict cs, const double *restrict sn)
{
    for (int64_t h = 0; h < H; h++, x += D, y += D)
        for (int64_t j = 0; j < D / 2; j++) {
            double a = (double)x[2 * j], b = (double)x[2 * j + 1];
            double c = cs[j], s = sn[j];
            y[2 * j] = (float)__builtin_fma(a, c, -(b * s));
            y[2 * j + 1] = (float)__builtin_fma(a, s, b * c);
        }
}

#define KERNELS_COMMON                                                         \
    .soften = k_soften, .merge = k_merge, .layer_norm = k_layer_norm,          \
    .rms_norm = k_rms_norm, .channel_norm = k_channel_norm,                    \
    .modulate = k_modulate, .gate_add = k_gate_add, .add = k_add,              \
    .mul = k_mul, .gelu_tanh = k_gelu_tanh, .silu = k_silu, .rope = k_rope,    \
    .col_mean = k_col_mean, .col_moment = k_col_moment,             \
    .col_blend = k_col_blend
