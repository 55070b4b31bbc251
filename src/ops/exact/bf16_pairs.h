/* bf16_pairs.h: packing for instructions that take pairs of bf16 numbers, with
 * AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packed rows are [K/32][m][32] bf16, packed lanes [K/2][NR][2] bf16, the pairs
 * of products together. Before including: FILL, the bits of what a row has in
 * the products between K, made even by a +0, and the end of its group. */
#include "ops/exact/transpose_avx512.h"

#define NR 48
#define PAIRS (BF16_GROUP / 2)
#define BLOCK 16

static int64_t padded(int64_t K)
{
    return (K + BF16_GROUP - 1) / BF16_GROUP * BF16_GROUP;
}

static uint32_t as_bf16(float x)
{
    uint32_t u;
    x = bf16_round(x);
    memcpy(&u, &x, 4);
    return u >> 16;
}

static void round_row(uint16_t *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (uint16_t)as_bf16(x[i]);
}

/* Pairs of products of n lanes: y[i] = (even[i], odd[i]). */
static void round_pairs(uint32_t *restrict y, const float *restrict even,
                        const float *restrict odd, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = as_bf16(even[i]) | as_bf16(odd[i]) << 16;
}

static void pack_rows(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    uint16_t *to = a;
    for (int64_t r = 0; r < m; r++)
        for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP) {
            uint16_t *y = to + k0 * m + r * BF16_GROUP;
            int64_t n = r >= rows ? 0
                        : K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
            if (n > 0) round_row(y, x + r * ld + k0, n);
            for (int64_t k = n; k < BF16_GROUP; k++)
                y[k] = k & 1 && k == n ? 0 : FILL;
        }
}

/* 16 channels at a time: pairs of products side by side, then turned. */
static void pack_cols(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    static const float zeros[BLOCK];
    uint32_t pair[PAIRS][BLOCK];
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP)
        for (int64_t r = 0; r < m; r += BLOCK) {
            int64_t n = rows - r < BLOCK ? rows - r : BLOCK;
            for (int64_t i = 0; i < PAIRS; i++) {
                int64_t k = k0 + 2 * i;
                const float *at = x + k * ld + r;
                for (int64_t j = 0; j < BLOCK; j++)
                    pair[i][j] = FILL * 0x10001u;
                if (k < K && n > 0)
                    round_pairs(pair[i], at, k + 1 < K ? at + ld : zeros, n);
            }
            transpose16((float *)a + (k0 * m / 2 + r * PAIRS), PAIRS,
                        (const float *)pair, BLOCK);
        }
}

static void pack_lanes(void *b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K)
{
    uint16_t row[NR][BF16_GROUP];
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP) {
        int64_t n = K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
        if (n < BF16_GROUP || lanes < NR) memset(row, 0, sizeof row);
        for (int64_t j = 0; j < lanes; j++)
            round_row(row[j], x + j * ld + k0, n);
        for (int64_t j = 0; j < NR; j += BLOCK)
            transpose16((float *)b + k0 / 2 * NR + j, NR,
                        (const float *)row[j], PAIRS);
    }
}

static void pack_weights(void *b, const float *p, int64_t K)
{
    static const float zeros[NR];
    uint32_t *to = b;
    for (int64_t k = 0; k < padded(K); k += 2, to += NR)
        round_pairs(to, k < K ? p + k * NR : zeros,
                    k + 1 < K ? p + (k + 1) * NR : zeros, NR);
}

#define BF16_PACKING                                                           \
    .size = 2, .pack_rows = pack_rows, .pack_cols = pack_cols,                 \
    .pack_lanes = pack_lanes, .pack_weights = pack_weights
