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
#define AHEAD 4 /* rows: each is a stream, too short to be foreseen           */

static int64_t padded(int64_t K)
{
    return (K + BF16_GROUP - 1) / BF16_GROUP * BF16_GROUP;
}

/* As bf16 in the upper half of each lane; the lower one holds what is left. A
 * subnormal stays: these instructions read it as zero. */
static inline __m512i rounded(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(u, 16),
                                          _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_add_epi32(u, up), nan, u,
                                _mm512_set1_epi32(0x400000));
}

/* n <= 32 values of a row: the upper halves of two vectors. */
static inline void round_row(uint16_t *y, const float *x, int64_t n)
{
    static const uint16_t upper[BF16_GROUP] = {
        1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
        33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63,
    };
    const __m512i to = _mm512_loadu_si512(upper);
    if (n == BF16_GROUP) {
        const __m512i a = rounded(_mm512_loadu_ps(x));
        const __m512i b = rounded(_mm512_loadu_ps(x + 16));
        _mm512_storeu_si512(y, _mm512_permutex2var_epi16(a, to, b));
        return;
    }
    const __mmask32 here = (__mmask32)((UINT64_C(1) << n) - 1);
    const __m512i a = rounded(_mm512_maskz_loadu_ps((__mmask16)here, x));
    const __m512i b = rounded(_mm512_maskz_loadu_ps((__mmask16)(here >> 16),
                                                    n > 16 ? x + 16 : x));
    _mm512_mask_storeu_epi16(y, here, _mm512_permutex2var_epi16(a, to, b));
}

/* Pairs of products of 16 lanes: (even, odd). */
static inline __m512i pairs_of(__m512 even, __m512 odd)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa,
                                   _mm512_srli_epi32(rounded(even), 16),
                                   rounded(odd));
}

/* Of n <= 16 lanes: y[i] = (even[i], odd[i]). What is stored through a mask
 * cannot be read before it has reached the cache. */
static inline void round_pairs(uint32_t *y, const float *even, const float *odd,
                               int64_t n)
{
    const __mmask16 here = (__mmask16)((1u << n) - 1);
    if (n == BLOCK)
        _mm512_storeu_si512(y, pairs_of(_mm512_loadu_ps(even),
                                        _mm512_loadu_ps(odd)));
    else
        _mm512_mask_storeu_epi32(y, here,
                                 pairs_of(_mm512_maskz_loadu_ps(here, even),
                                          _mm512_maskz_loadu_ps(here, odd)));
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
            if (r + AHEAD < rows) {
                __builtin_prefetch(x + (r + AHEAD) * ld + k0);
                __builtin_prefetch(x + (r + AHEAD) * ld + k0 + 16);
            }
            if (n > 0) round_row(y, x + r * ld + k0, n);
            for (int64_t k = n; k < BF16_GROUP; k++)
                y[k] = k & 1 && k == n ? 0 : FILL;
        }
}

/* 16 channels at a time: pairs of products side by side, then transposed. */
static void pack_cols(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    static const float zeros[BLOCK];
    uint32_t pair[PAIRS][BLOCK];
    float transposed[BLOCK * PAIRS];
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP)
        for (int64_t r = 0; r < m; r += BLOCK) {
            int64_t n = rows - r < BLOCK ? rows - r : BLOCK;
            for (int64_t i = 0; i < PAIRS; i++) {
                int64_t k = k0 + 2 * i;
                const float *at = x + k * ld + r;
                if (n < BLOCK || k >= K)
                    for (int64_t j = 0; j < BLOCK; j++)
                        pair[i][j] = FILL * 0x10001u;
                if (k < K && n > 0)
                    round_pairs(pair[i], at, k + 1 < K ? at + ld : zeros, n);
            }
            float *to = (float *)a + (k0 * m / 2 + r * PAIRS);
            const bool whole = m - r >= BLOCK;
            transpose16(whole ? to : transposed, PAIRS, (const float *)pair,
                        BLOCK);
            if (!whole)
                memcpy(to, transposed, (size_t)((m - r) * PAIRS) * sizeof *to);
        }
}

static void pair_lanes(void *b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K)
{
    uint16_t row[NR][BF16_GROUP];
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP) {
        int64_t n = K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
        if (n < BF16_GROUP || lanes < NR) memset(row, 0, sizeof row);
        for (int64_t j = 0; j < lanes; j++) {
            const float *at = x + j * ld + k0;
            if (k0 + 2 * BF16_GROUP <= K) { /* too many streams to foresee */
                __builtin_prefetch(at + BF16_GROUP, 0, 2);
                __builtin_prefetch(at + BF16_GROUP + 16, 0, 2);
            }
            round_row(row[j], at, n);
        }
        for (int64_t j = 0; j < NR; j += BLOCK)
            transpose16((float *)b + k0 / 2 * NR + j, NR,
                        (const float *)row[j], PAIRS);
    }
}

static void pair_weights(void *b, const float *p, int64_t K)
{
    static const float zeros[BLOCK];
    uint32_t *to = b;
    for (int64_t k = 0; k < padded(K); k += 2, to += NR)
        for (int i = 0; i < NR; i += BLOCK)
            round_pairs(to + i, k < K ? p + k * NR + i : zeros,
                        k + 1 < K ? p + (k + 1) * NR + i : zeros, BLOCK);
}

#define BF16_PACKING                                                           \
    .size = 2, .pack_rows = pack_rows, .pack_cols = pack_cols,                 \
    .pack_lanes = pair_lanes, .pack_weights = pair_weights
