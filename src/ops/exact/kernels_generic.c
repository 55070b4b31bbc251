/* kernels_generic.c: portable kernels for any CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain loops over lanes. Where the base instruction set has a fused
 * multiply-add (AArch64, POWER, RISC-V) the compiler vectorises them; where it
 * has none (x86-64 baseline) it becomes a call: right, but slow. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define AQ 16
#include "ops/exact/kernels.h"

#define MR 4
#define NR 16
#define AM 4

static void generic_conv_tile(float *c, int64_t ldc, const exact_window *w,
                              int64_t at, const float *restrict b, int64_t kc,
                              bool add, const float *bias)
{
    float s[MR][NR] = {{0}};
    for (int64_t n; kc > 0; at += n, b += n * NR, kc -= n) {
        n = kc;
        const float *a = exact_piece(w, at, &n);
        for (int64_t k = 0; k < n; k++)
            for (int r = 0; r < MR; r++)
                for (int i = 0; i < NR; i++)
                    s[r][i] = fma_f32(a[r * w->ld + k], b[k * NR + i],
                                             s[r][i]);
    }
    for (int r = 0; r < MR; r++)
        for (int i = 0; i < NR; i++) {
            float v = add ? c[r * ldc + i] + s[r][i] : s[r][i];
            c[r * ldc + i] = bias ? v + bias[i] : v;
        }
}

static void generic_linear_tile(float *c, int64_t ldc, const float *a,
                                int64_t ld, const float *b, int64_t kc,
                                bool add, const float *bias)
{
    const exact_window rows = exact_rows(a, ld);
    generic_conv_tile(c, ldc, &rows, 0, b, kc, add, bias);
}

static void generic_pack(float *panel, const float *src, int64_t ld, int64_t kc)
{
    pack_columns(panel, src, ld, 0, kc, NR);
}

static void generic_score_tile(float *s, const float *k,
                               const float *restrict q, int64_t D, int64_t live)
{
    (void)live;
    float t[AM][AQ] = {{0}};
    for (int64_t d = 0; d < D; d++)
        for (int r = 0; r < AM; r++)
            for (int i = 0; i < AQ; i++)
                t[r][i] = fma_f32(k[r * D + d], q[d * AQ + i], t[r][i]);
    memcpy(s, t, sizeof t);
}

static void generic_value_tile(float *o, const float *begun, const float *part,
                               const float *v, const float *restrict p,
                               int64_t n, int64_t live, const float *alpha)
{
    (void)live;
    float t[AM][AQ] = {{0}};
    if (begun) memcpy(t, begun, sizeof t);
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < AM; r++)
            for (int i = 0; i < AQ; i++)
                t[r][i] = fma_f32(v[j * AM + r], p[j * AQ + i], t[r][i]);
    for (int r = 0; r < AM; r++)
        for (int i = 0; i < AQ; i += VS) JOIN_ROW(r, i, vs_load(&t[r][i]))
}

static double generic_fma_loop(int64_t n)
{
    float s[NR];
    volatile float seed = 0.001f;
    for (int i = 0; i < NR; i++) s[i] = (float)i;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < NR; i++)
            s[i] = fma_f32(0.999f, s[i], 0.001f);
    for (int i = 0; i < NR; i++) seed = s[i];
    return 2.0 * NR * (double)n + 0 * (double)seed;
}

const tt_kernels tt_kernels_generic = {
    .name = "generic", .level = EXACT_GENERIC,
    .mr = MR, .nr = NR, .linear_tile = generic_linear_tile,
        .pack = generic_pack,
    .conv_tile = generic_conv_tile,
    .am = AM, .aq = AQ, .score_tile = generic_score_tile,
        .value_tile = generic_value_tile,
    .fma_loop = generic_fma_loop,
    KERNELS_COMMON,
};

#else
typedef int tt_no_exact_generic;
#endif
