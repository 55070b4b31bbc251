/* bf16_amx.h: the bf16 class on AMX tiles, 32 rows x 48 lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Compiled twice: with the instructions (kernels_bf16_amx.c) and with a model
 * of them in C (kernels_bf16_amx_model.c), so that everything but the hardware
 * itself is tested on any AVX-512 machine. Before including: TILE_STATE,
 * TILE_ZERO(t), TILE_LOAD(t, at, stride), TILE_DOT(c, a, b), TILE_STORE(t, at,
 * stride), begin and end.
 *
 * A tile is 16 rows of 64 bytes. Packed rows are [K/32][m][32] bf16, so a
 * group of 16 rows is one tile as it stands. Packed lanes are
 * [K/2][NR][2] bf16, the pairs of products together: 16 lanes of a group are a
 * tile of stride 4*NR bytes. TDPBF16PS then is one group of the class:
 *     e, o = 0; e[n] = fma(a[2k], b[k][2n], e[n]), o[n] likewise, k = 0..15;
 *     c[n] = c[n] + (e[n] + o[n])       with results flushed at every step. */
#include "ops/exact/transpose_avx512.h"

#define NR 48
#define MR 32
#define PAIRS (BF16_GROUP / 2)
#define TILE_ROWS 16
#define TILE_BYTES (TILE_ROWS * 64)

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
            if (n < BF16_GROUP) memset(y, 0, BF16_GROUP * sizeof *y);
            if (n > 0) round_row(y, x + r * ld + k0, n);
        }
}

/* 16 channels at a time: pairs of products side by side, then turned. */
static void pack_cols(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    static const float zeros[TILE_ROWS];
    uint32_t pair[PAIRS][TILE_ROWS];
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP)
        for (int64_t r = 0; r < m; r += TILE_ROWS) {
            int64_t n = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
            memset(pair, 0, sizeof pair);
            for (int64_t i = 0; n > 0 && i < PAIRS; i++) {
                int64_t k = k0 + 2 * i;
                const float *at = x + k * ld + r;
                if (k < K)
                    round_pairs(pair[i], at, k + 1 < K ? at + ld : zeros, n);
            }
            transpose16((float *)a + (k0 * m / 2 + r * PAIRS), PAIRS,
                        (const float *)pair, TILE_ROWS);
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
        for (int64_t j = 0; j < NR; j += TILE_ROWS)
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

/* Tiles 0-2 and 3-5 are the results of the upper and lower 16 rows, 6 holds
 * rows, 7 lanes. Going back through the lanes saves one load in eight. */
static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const char *a = rows, *b = lanes;
    char *up = (char *)c, *low = (char *)(c + TILE_ROWS * ldc);
    int64_t step = ldc * (int64_t)sizeof *c;
    TILE_STATE;
    if (add) {
        TILE_LOAD(0, up, step);
        TILE_LOAD(1, up + 64, step);
        TILE_LOAD(2, up + 128, step);
        TILE_LOAD(3, low, step);
        TILE_LOAD(4, low + 64, step);
        TILE_LOAD(5, low + 128, step);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        TILE_ZERO(4);
        TILE_ZERO(5);
    }
    for (int64_t g = 0; g < groups; g++) {
        TILE_LOAD(6, a, 64);
        TILE_LOAD(7, b, 4 * NR);
        TILE_DOT(0, 6, 7);
        TILE_LOAD(7, b + 64, 4 * NR);
        TILE_DOT(1, 6, 7);
        TILE_LOAD(7, b + 128, 4 * NR);
        TILE_DOT(2, 6, 7);
        TILE_LOAD(6, a + TILE_BYTES, 64);
        TILE_DOT(5, 6, 7);
        TILE_LOAD(7, b + 64, 4 * NR);
        TILE_DOT(4, 6, 7);
        TILE_LOAD(7, b, 4 * NR);
        TILE_DOT(3, 6, 7);
        a += m * 2 * BF16_GROUP;
        b += PAIRS * 4 * NR;
    }
    TILE_STORE(0, up, step);
    TILE_STORE(1, up + 64, step);
    TILE_STORE(2, up + 128, step);
    TILE_STORE(3, low, step);
    TILE_STORE(4, low + 64, step);
    TILE_STORE(5, low + 128, step);
}

#define BF16_AMX                                                               \
    .mr = MR, .nr = NR, .size = 2, .pack_rows = pack_rows,                     \
    .pack_cols = pack_cols, .pack_lanes = pack_lanes,                          \
    .pack_weights = pack_weights, .tile = tile, .begin = begin, .end = end
