/* bf16_pack.h: packing for kernels that compute with float, written once and
 * compiled once per instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packed rows are [K/32][m][32] and packed lanes [K][NR], both of bf16 numbers
 * stored as float. `filler` is what a row has in the products between K, made
 * even by a +0, and the end of its group: 0 in class amx and -0 in class vdp.
 * Before including: NR, and TURN(dst, dst_ld, src, src_ld), the transpose of
 * BLOCK x BLOCK floats (BLOCK 1: none). */
#include "ops/exact/bf16.h"

static void round_all(float *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = bf16_round(x[i]);
}

static void round_here(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = bf16_round(x[i]);
}

/* What follows the n products of a row in its group. */
static void fill(float *y, int64_t n, float filler)
{
    for (int64_t k = n; k < BF16_GROUP; k++)
        y[k] = k & 1 && k == n ? 0 : filler;
}

static void rows_filled(void *a, int64_t m, const float *x, int64_t ld,
                        int64_t rows, int64_t K, float filler)
{
    float *to = a;
    for (int64_t r = 0; r < m; r++)
        for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP) {
            float *y = to + k0 * m + r * BF16_GROUP;
            int64_t n = r >= rows ? 0
                        : K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
            if (n == BF16_GROUP) {
                round_all(y, x + r * ld + k0, BF16_GROUP);
                continue;
            }
            for (int64_t k = 0; k < n; k++)
                y[k] = bf16_round(x[r * ld + k0 + k]);
            fill(y, n, filler);
        }
}

/* dst[c][r] = src[r][c] for r < rows, c < cols; zero up to rup and cup. */
static void bf16_pack_transpose(float *dst, int64_t dst_ld, const float *src,
                                int64_t src_ld, int64_t rows, int64_t cols,
                                int64_t rup, int64_t cup)
{
    int64_t c0 = 0;
    for (; BLOCK > 1 && c0 + BLOCK <= cols; c0 += BLOCK) {
        int64_t r = 0;
        for (; r + BLOCK <= rows; r += BLOCK)
            TURN(dst + c0 * dst_ld + r, dst_ld, src + r * src_ld + c0, src_ld);
        for (int64_t c = c0; r < rup && c < c0 + BLOCK; c++)
            for (int64_t i = r; i < rup; i++)
                dst[c * dst_ld + i] = i < rows ? src[i * src_ld + c] : 0;
    }
    for (int64_t c = c0; c < cup; c++)
        for (int64_t r = 0; r < rup; r++)
            dst[c * dst_ld + r] =
                r < rows && c < cols ? src[r * src_ld + c] : 0;
}

static void cols_filled(void *a, int64_t m, const float *x, int64_t ld,
                        int64_t rows, int64_t K, float filler)
{
    float *to = a;
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP, to += m * BF16_GROUP) {
        int64_t n = K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
        bf16_pack_transpose(to, BF16_GROUP, x + k0 * ld, ld, n, rows,
                            BF16_GROUP, m);
        round_here(to, m * BF16_GROUP);
        for (int64_t r = 0; n < BF16_GROUP && r < m; r++)
            fill(to + r * BF16_GROUP, n, filler);
    }
}

static int64_t bf16_pack_padded(int64_t K)
{
    return (K + BF16_GROUP - 1) / BF16_GROUP * BF16_GROUP;
}

static void pack_lanes(void *b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K)
{
    bf16_pack_transpose(b, NR, x, ld, lanes, K, NR, bf16_pack_padded(K));
    round_here(b, bf16_pack_padded(K) * NR);
}

static void pack_weights(void *b, const float *p, int64_t K)
{
    round_all(b, p, K * NR);
    memset((float *)b + K * NR, 0,
           (size_t)((bf16_pack_padded(K) - K) * NR) * sizeof *p);
}

#define FILLED(class, filler)                                                  \
    static void rows_##class(void *a, int64_t m, const float *x, int64_t ld,   \
                             int64_t rows, int64_t K)                          \
    {                                                                          \
        rows_filled(a, m, x, ld, rows, K, filler);                             \
    }                                                                          \
    static void cols_##class(void *a, int64_t m, const float *x, int64_t ld,   \
                             int64_t rows, int64_t K)                          \
    {                                                                          \
        cols_filled(a, m, x, ld, rows, K, filler);                             \
    }
FILLED(amx, 0.0f)
FILLED(vdp, -0.0f)

/* The kernels of a class that are written with float multiply-adds. */
#define BF16_KERNELS(way, class, name_, level_)                                \
    {                                                                          \
        .name = name_, .level = EXACT_##level_, .mr = MR, .nr = NR,            \
        .size = sizeof(float),                                                 \
        .pack_rows = rows_##class, .pack_cols = cols_##class,                  \
        .pack_lanes = pack_lanes, .pack_weights = pack_weights,                \
        .tile = way##_tile_##class, .begin = way##_begin, .end = way##_end,    \
    }
