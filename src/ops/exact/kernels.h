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

/* ---- vectors of doubles ---------------------------------------------------- */

/* VD doubles, and as many floats. A file that includes this one may set VD,
 * VD_FMA, VF_FMA and VD_WIDEN (which compilers make badly themselves); operations on whole vectors are those of the elements. Explicit
 * vectors because in-place calls (y == x) keep the compiler from making them. */
#ifndef VD
#define VD 2
#define VD_PLAIN
#define VD_FMA vd_fma
#define VF_FMA vf_fma
#define VD_WIDEN(v) __builtin_convertvector(v, vd)
#endif
typedef double vd __attribute__((vector_size(8 * VD)));
typedef float vf __attribute__((vector_size(4 * VD)));
#define GROUPS (TT_LANES / VD)
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

static inline vd vd_all(double x)
{
    vd v = {0};
    return v + x;
}

static inline vd vd_load(const double *x)
{
    vd v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void vd_store(double *x, vd v)
{
    memcpy(x, &v, sizeof v);
}

static inline vf vf_load(const float *x)
{
    vf v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void vf_store(float *x, vf v)
{
    memcpy(x, &v, sizeof v);
}

static inline vf narrow(vd v)
{
    return __builtin_convertvector(v, vf);
}

#ifdef VD_PLAIN
static inline vd vd_fma(vd a, vd b, vd c)
{
    for (int i = 0; i < VD; i++) c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    for (int i = 0; i < VD; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
#endif

/* ---- statistics ------------------------------------------------------------ */

static inline double join_groups(const vd *group, const float *rest, int64_t n,
                                 double mean, bool square)
{
    double lane[TT_LANES];
    memcpy(lane, group, sizeof lane);
    for (int64_t l = 0; l < n; l++) {
        double d = (double)rest[l] - mean;
        lane[l] = square ? __builtin_fma(d, d, lane[l]) : lane[l] + d;
    }
    return join_lanes(lane);
}

static inline double k_row_mean(const float *x, int64_t c)
{
    vd sum[GROUPS] = {{0}};
    int64_t i = 0;
    for (; i + TT_LANES <= c; i += TT_LANES)
        UNROLL
        for (int g = 0; g < GROUPS; g++) sum[g] += VD_WIDEN(vf_load(x + i + g * VD));
    return join_groups(sum, x + i, c - i, 0.0, false) / (double)c;
}

static inline double k_row_moment(const float *x, int64_t c, double mean)
{
    vd sum[GROUPS] = {{0}}, m = vd_all(mean);
    int64_t i = 0;
    for (; i + TT_LANES <= c; i += TT_LANES)
        UNROLL
        for (int g = 0; g < GROUPS; g++) {
            vd d = VD_WIDEN(vf_load(x + i + g * VD)) - m;
            sum[g] = VD_FMA(d, d, sum[g]);
        }
    return join_groups(sum, x + i, c - i, mean, true);
}

static void k_layer_norm(float *y, const float *x, int64_t c, const float *w,
                         const float *b, double eps)
{
    double mean = k_row_mean(x, c);
    double var = k_row_moment(x, c, mean) / (double)c;
    double scale = 1.0 / sqrt(var + eps);
    int64_t i = 0;
    if (!w)
        for (; i + VD <= c; i += VD)
            vf_store(y + i, narrow((VD_WIDEN(vf_load(x + i)) - mean) * scale));
    for (; i + VD <= c; i += VD) {
        vf xhat = narrow((VD_WIDEN(vf_load(x + i)) - mean) * scale);
        vf_store(y + i, VF_FMA(xhat, vf_load(w + i), vf_load(b + i)));
    }
    for (; i < c; i++) {
        float xhat = (float)(((double)x[i] - mean) * scale);
        y[i] = w ? __builtin_fmaf(xhat, w[i], b[i]) : xhat;
    }
}

static void k_rms_norm(float *y, const float *x, int64_t c, const float *w,
                       double eps)
{
    double scale = 1.0 / sqrt(k_row_moment(x, c, 0.0) / (double)c + eps);
    int64_t i = 0;
    for (; i + VD <= c; i += VD)
        vf_store(y + i, narrow(VD_WIDEN(vf_load(x + i)) * scale) * vf_load(w + i));
    for (; i < c; i++) y[i] = (float)((double)x[i] * scale) * w[i];
}

static void k_channel_norm(float *y, const float *x, int64_t c,
                           const float *gamma)
{
    float root = (float)sqrt((double)c);
    double norm = sqrt(k_row_moment(x, c, 0.0));
    if (norm < 1e-12) norm = 1e-12;
    double scale = 1.0 / norm;
    int64_t i = 0;
    for (; i + VD <= c; i += VD)
        vf_store(y + i, narrow(VD_WIDEN(vf_load(x + i)) * scale) * root *
                            vf_load(gamma + i));
    for (; i < c; i++)
        y[i] = (float)((double)x[i] * scale) * root * gamma[i];
}

#define SWEEP 8 /* rows per sweep over the sums: additions keep their order */

static void k_col_mean(double *restrict mean, const float *restrict x,
                       int64_t n, int64_t stride, int64_t c)
{
    for (int64_t i = 0; i < c; i++) mean[i] = 0;
    for (int64_t r = 0; r < n; r += SWEEP, x += SWEEP * stride) {
        int64_t rows = n - r < SWEEP ? n - r : SWEEP, i = 0;
        if (rows == SWEEP)
            for (; i + VD <= c; i += VD) {
                vd s = vd_load(mean + i);
                UNROLL
                for (int k = 0; k < SWEEP; k++)
                    s += VD_WIDEN(vf_load(x + k * stride + i));
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
        if (rows == SWEEP)
            for (; i + VD <= c; i += VD) {
                vd s = vd_load(m2 + i), m = vd_load(mean + i);
                UNROLL
                for (int k = 0; k < SWEEP; k++) {
                    vd d = VD_WIDEN(vf_load(x + k * stride + i)) - m;
                    s = VD_FMA(d, d, s);
                }
                vd_store(m2 + i, s);
            }
        for (; i < c; i++)
            for (int64_t k = 0; k < rows; k++) {
                double d = (double)x[k * stride + i] - mean[i];
                m2[i] = __builtin_fma(d, d, m2[i]);
            }
    }
}

static void k_col_blend(float *restrict x, int64_t c,
                        const double *restrict mean,
                        const double *restrict gain,
                        const double *restrict target, double tau)
{
    vd t = vd_all(tau), rest = vd_all(1 - tau);
    int64_t i = 0;
    for (; i + VD <= c; i += VD) {
        vd v = VD_WIDEN(vf_load(x + i));
        vd a = VD_FMA(vd_load(gain + i), v - vd_load(mean + i),
                      vd_load(target + i));
        vf_store(x + i, narrow(VD_FMA(t, a, rest * v)));
    }
    for (; i < c; i++) {
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
