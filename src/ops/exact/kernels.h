/* kernels.h: row and element kernels, written once in C and compiled
 * once per instruction set (kernels_*.c include this file).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The compiler vectorises across outputs or across the 16 statistic lanes; it
 * has no licence to reorder a sum (no -ffast-math), so every flavour performs
 * the operations of ops/golden/ in their order. AQ is the number of queries
 * along the lanes of the attention kernels. */
#include "core/fma.h"
#include "ops/exact/exact.h"
#include "ops/exact/kernels_norm.h"

#ifndef AQ
#error "kernels.h: define AQ before including"
#endif
#include "ops/exact/kernels_softmax.h"

/* ---- attention ----------------------------------------------------------- */

/* Of n / SOFT keys: weights for logits. No logit is above its `top` but next to
 * a NaN, which makes all of that query NaN. */
INLINE void k_weigh(float *s, float scale, const vs *top, vs *sum, int n)
{
    vs p[SIDE];
    EACH(n) p[i] = vs_load(s + i * VS) * scale - top[i % SOFT];
    vs_exp_below(p, n);
    EACH(n) vs_store(s + i * VS, p[i]);
    EACH(n) sum[i % SOFT] += p[i];
}

static void k_softmax(float *restrict s, int64_t n, float scale,
                     const float *tops, float *restrict m, float *restrict l,
                     float *restrict alpha, bool first)
{
    vs top[SOFT], sum[SOFT];
    int64_t j = 0;
    if (tops) EACH(SOFT) top[i] = vs_load(tops + i * VS) * scale;
    else largest(top, s, n, scale);
    for (int i = 0; i < SOFT; i++) {
        if (!first) top[i] = VS_MORE(top[i], vs_load(m + i * VS));
        sum[i] = vs_all(0);
    }
    for (; j + AT_ONCE <= n; j += AT_ONCE)
        k_weigh(s + j * AQ, scale, top, sum, AT_ONCE * SOFT);
    for (; j < n; j++) k_weigh(s + j * AQ, scale, top, sum, SOFT);
    softmax_end(top, sum, m, l, alpha, first);
}

/* The end of value_tile (exact.h): one vector x of a chain; o, part and alpha
 * where it begins. */
INLINE void join(float *o, const float *part, vs x, const float *alpha)
{
    if (part) x = vs_load(part) + x;
    if (alpha) x = VS_FMA(vs_load(o), vs_load(alpha), x);
    vs_store(o, x);
}

/* The same of row r from lane `at` on, in a function that has o, part and
 * alpha. */
#define JOIN_ROW(r, at, x)                                                     \
    join(o + (r) * AQ + (at), part ? part + (r) * AQ + (at) : NULL, (vs)(x),   \
         alpha ? alpha + (at) : NULL);

INLINE void merge_all(float *restrict acc, const float *restrict block,
                      const float *restrict alpha, int64_t D)
{
    for (int64_t d = 0; d < D; d++)
        for (int64_t i = 0; i < AQ; i++) {
            const int64_t at = d * AQ + i;
            acc[at] = alpha ? fma_f32(acc[at], alpha[i], block[at])
                            : block[at];
        }
}

static void k_merge(float *acc, const float *block, const float *alpha,
                    int64_t D)
{
    if (alpha) merge_all(acc, block, alpha, D);
    else merge_all(acc, block, NULL, D);
}

static void k_divide(float *restrict acc, const float *restrict l, int64_t D)
{
    for (int64_t d = 0; d < D; d++)
        for (int i = 0; i < AQ; i++) acc[d * AQ + i] /= l[i];
}

/* Columns [k0, kc) of a panel, for the ends that a vector transpose leaves. */
static inline void pack_columns(float *restrict panel,
                                const float *restrict src, int64_t ld,
                                int64_t k0, int64_t kc, int nr)
{
    for (int64_t k = k0; k < kc; k++)
        for (int j = 0; j < nr; j++) panel[k * nr + j] = src[j * ld + k];
}

/* ---- linear -------------------------------------------------------------- */

/* A block of y; TURN(dst, dst_ld, src, src_ld) transposes VS x VS. */
INLINE void turn_block(float *restrict y, int64_t ldy, const float *src,
                       int64_t ld, int64_t rows, int64_t cols,
                       const float *bias, bool far)
{
#ifdef TURN
    if (rows >= VS && cols >= VS) {
        float t[VS * VS];
        const vs b = bias ? vs_load(bias) : vs_all(0);
        TURN(t, VS, src, ld);
        for (int r = 0; r < VS; r++, y += ldy) {
            const vs v = vs_load(t + r * VS);
            if (far) VS_AROUND(y, bias ? v + b : v);
            else vs_store(y, bias ? v + b : v);
        }
        return;
    }
#endif
    (void)far;
    for (int64_t r = 0; r < rows && r < VS; r++)
        for (int64_t c = 0; c < cols && c < VS; c++)
            y[r * ldy + c] = bias ? src[c * ld + r] + bias[c] : src[c * ld + r];
}

static void k_turn(float *y, int64_t ldy, const float *src, int64_t ld,
                   int64_t rows, int64_t cols, const float *bias, bool far)
{
    /* lines must begin where a vector does */
    const uintptr_t at = (uintptr_t)y | (uintptr_t)ldy * sizeof *y;
    far = far && at % sizeof(vs) == 0;
    for (int64_t r = 0; r < rows; r += VS) {
        /* a last block that is no whole one begins earlier, and stores again
         * what is there */
        const bool back = !far && cols >= VS && rows - r >= VS;
        for (int64_t k = 0; k < cols; k += VS) {
            const int64_t c = back && k + VS > cols ? cols - VS : k;
            turn_block(y + r * ldy + c, ldy, src + c * ld + r, ld, rows - r,
                       cols - c, bias ? bias + c : NULL, far);
        }
    }
    if (far) VS_AROUND_END();
}

/* ---- elements ------------------------------------------------------------ */

static void k_modulate(float *restrict x, int64_t c,
                       const float *restrict scale, const float *restrict shift)
{
    for (int64_t i = 0; i < c; i++)
        x[i] = fma_f32(x[i], 1 + scale[i], shift[i]);
}

static void k_gate_add(float *restrict x, const float *restrict y, int64_t c,
                       const float *restrict gate)
{
    for (int64_t i = 0; i < c; i++) x[i] = fma_f32(y[i], gate[i], x[i]);
}

static void k_add(float *restrict x, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] += y[i];
}

static void k_mul(float *restrict x, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= y[i];
}

/* x / (1 + exp(u)) with u = -x or GELU's; n vectors. */
INLINE void gate_vectors(float *x, int n, bool gelu)
{
    const float k = (float)-1.5957691216057308, cubic = (float)0.044715;
    vs v[SIDE], u[SIDE];
    EACH(n) v[i] = vs_load(x + i * VS);
    EACH(n) ask_ahead(x + i * VS);
    EACH(n) u[i] = gelu ? VS_FMA(cubic * (v[i] * v[i]), v[i], v[i]) * k : -v[i];
    vs_exp(u, n);
    EACH(n) vs_store(x + i * VS, v[i] / (1.0f + u[i]));
}

INLINE void gate_all(float *x, int64_t n, bool gelu)
{
    float rest[VS] = {0};
    for (; n >= SIDE * VS; n -= SIDE * VS, x += SIDE * VS)
        gate_vectors(x, SIDE, gelu);
    for (; n >= VS; n -= VS, x += VS) gate_vectors(x, 1, gelu);
    memcpy(rest, x, (size_t)n * sizeof *x);
    gate_vectors(rest, 1, gelu);
    memcpy(x, rest, (size_t)n * sizeof *x);
}

static void k_gelu_tanh(float *x, int64_t n)
{
    gate_all(x, n, true);
}

static void k_silu(float *x, int64_t n)
{
    gate_all(x, n, false);
}

static void k_rope(float *y, const float *x, int64_t H, int64_t D,
                   const double *restrict cs, const double *restrict sn)
{
    for (int64_t h = 0; h < H; h++, x += D, y += D)
        for (int64_t j = 0; j < D / 2; j++) {
            double a = (double)x[2 * j], b = (double)x[2 * j + 1];
            double c = cs[j], s = sn[j];
            y[2 * j] = (float)fma_f64(a, c, -(b * s));
            y[2 * j + 1] = (float)fma_f64(a, s, b * c);
        }
}

#define KERNELS_COMMON                                                         \
    .turn = k_turn, .softmax = k_softmax, .merge = k_merge,                    \
    .divide = k_divide,                                                        \
    .layer_norm = k_layer_norm, .rms_norm = k_rms_norm,                        \
    .channel_norm = k_channel_norm, .modulate = k_modulate,                    \
    .gate_add = k_gate_add, .add = k_add, .mul = k_mul,                        \
    .gelu_tanh = k_gelu_tanh, .silu = k_silu, .rope = k_rope,                  \
    .col_mean = k_col_mean, .col_moment = k_col_moment,                        \
    .col_blend = k_col_blend
