/* kernels_avx2.c: AVX2 + FMA kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * linear     6 rows x 16 lanes: 12 accumulators. Rows are those of x, packed
 *            side by side (transposed_tile, and 3 of them); or, for few rows of
 *            x, those of the weights, broadcast in place.
 * attention  4 rows x 24 queries: 12 accumulators. */
#include "ops/exact/exact.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

#include "ops/exact/transpose_avx2.h"

#define AQ 24
#define TURN transpose8
#include "ops/exact/kernels.h"

#define ROWS6(X)                                                               \
    X(0, p0[k]) X(1, p0[k + ld]) X(2, p0[k + 2 * ld])                          \
    X(3, p1[k]) X(4, p1[k + ld]) X(5, p1[k + 2 * ld])
#define BEGIN6(r, at) __m256 s##r = _mm256_setzero_ps(), t##r = s##r;
#define STEP6(r, at)                                                           \
    {                                                                          \
        __m256 x = _mm256_set1_ps(at);                                         \
        s##r = _mm256_fmadd_ps(x, b0, s##r);                                   \
        t##r = _mm256_fmadd_ps(x, b1, t##r);                                   \
    }
#define PRODUCT6                                                               \
    {                                                                          \
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);           \
        ROWS6(STEP6)                                                           \
        k++, b += 16;                                                          \
    }
#define GIVE6(r, at)                                                           \
    {                                                                          \
        float *y = c + r * ldc;                                                \
        if (add) {                                                             \
            s##r = _mm256_add_ps(_mm256_loadu_ps(y), s##r);                    \
            t##r = _mm256_add_ps(_mm256_loadu_ps(y + 8), t##r);                \
        }                                                                      \
        if (bias) {                                                            \
            s##r = _mm256_add_ps(s##r, _mm256_loadu_ps(bias));                 \
            t##r = _mm256_add_ps(t##r, _mm256_loadu_ps(bias + 8));             \
        }                                                                      \
        _mm256_storeu_ps(y, s##r);                                             \
        _mm256_storeu_ps(y + 8, t##r);                                         \
    }

static void avx2_conv_tile(float *c, int64_t ldc, const exact_window *w,
                           int64_t k0, const float *b, int64_t kc, bool add,
                           const float *bias)
{
    const int64_t ld = w->ld;
    exact_ask ask = w->ask;
    ROWS6(BEGIN6)
    for (int64_t n; kc > 0; k0 += n, kc -= n) {
        n = kc;
        const float *p0 = exact_piece(w, k0, &n), *p1 = p0 + 3 * ld;
        int64_t k = 0;
        while (k + 2 <= n) {
            prefetch_at((const void *)ask.next, 0);
            ask.next += 2 * ask.each;
            PRODUCT6
            PRODUCT6
        }
        if (k < n) PRODUCT6
    }
    ROWS6(GIVE6)
}

/* Of few rows, whose weights come from memory: one product a round. */
static void avx2_linear_tile(float *c, int64_t ldc, const float *a, int64_t ld,
                             const float *b, int64_t kc, bool add,
                             const float *bias)
{
    const float *p0 = a, *p1 = a + 3 * ld;
    ROWS6(BEGIN6)
    for (int64_t k = 0; k < kc;) {
        prefetch_at(b, AHEAD);
        PRODUCT6
    }
    ROWS6(GIVE6)
}

#define V __m256
#define W 8
#define P(op) _mm256_##op##_ps
#define MR 6
#define NEAR 16
#include "ops/exact/kernels_transposed.h"

#define SIDE3(X) X(0) X(1) X(2)
#define SIDE6(X) SIDE3(X) X(3) X(4) X(5)
TRANSPOSED_TILE(transposed_tile, SIDE6, GIVE_SIDE)
TRANSPOSED_TILE(transposed_half, SIDE3, GIVE_SIDE)
TRANSPOSED_TILE(transposed_far, SIDE6, GIVE_FAR)

static void transposed_rows(float *x, const float *rows, int64_t ld, int64_t n,
                            int64_t kc)
{
    float side[64], at[64];
    int64_t k = 0;
    for (; k + 8 <= kc; k += 8, x += 8 * 6) {
        for (int64_t r = 0; r < 8; r++)
            memcpy(at + r * 8, rows + (r < n ? r : 0) * ld + k, 32);
        transpose8(side, 8, at, 8);
        for (int i = 0; i < 8; i++) memcpy(x + i * 6, side + i * 8, 24);
    }
    for (; k < kc; k++, x += 6)
        for (int64_t r = 0; r < 6; r++) x[r] = rows[(r < n ? r : 0) * ld + k];
}

static void avx2_pack(float *panel, const float *src, int64_t ld, int64_t kc)
{
    int64_t k = 0;
    for (; k + 8 <= kc; k += 8)
        for (int j = 0; j < 16; j += 8)
            transpose8(panel + k * 16 + j, 16, src + j * ld + k, ld);
    pack_columns(panel, src, ld, k, kc, 16);
}

/* Four broadcast rows against 24 lanes; `at(r)` is the scalar of row r. The
 * rows lie in `count` * 4 floats, and after them are those of the next tile
 * (of a block's last tile: of the next block), which are asked for. The
 * products join the sums xr, yr, zr, which were 0 or, where `from` is given,
 * what lies there. */
#define STEPS_4x24(lanes, count, at, rows)                                     \
    for (int64_t k = 0; k < (count); k++) {                                    \
        __m256 b0 = _mm256_loadu_ps((lanes) + k * 24);                         \
        __m256 b1 = _mm256_loadu_ps((lanes) + k * 24 + 8);                     \
        __m256 b2 = _mm256_loadu_ps((lanes) + k * 24 + 16);                    \
        prefetch_at(rows, 16 * ((count) + k));                                 \
        FOUR(STEP, at)                                                         \
    }
#define FOUR(X, y) X(0, y) X(1, y) X(2, y) X(3, y)
#define DECLARE(r, at)                                                         \
    __m256 x##r = _mm256_setzero_ps(), y##r = x##r, z##r = x##r;
#define BEGUN(r, from, i)                                                      \
    ((from) ? _mm256_loadu_ps((from) + r * 24 + i) : _mm256_setzero_ps())
#define GO_ON(r, from)                                                         \
    __m256 x##r = BEGUN(r, from, 0), y##r = BEGUN(r, from, 8),                 \
           z##r = BEGUN(r, from, 16);
#define STEP(r, at)                                                            \
    {                                                                          \
        __m256 v = _mm256_set1_ps(at(r));                                      \
        x##r = _mm256_fmadd_ps(v, b0, x##r);                                   \
        y##r = _mm256_fmadd_ps(v, b1, y##r);                                   \
        z##r = _mm256_fmadd_ps(v, b2, z##r);                                   \
    }
#define STORE(r, out)                                                          \
    _mm256_storeu_ps((out) + r * 24, x##r);                                    \
    _mm256_storeu_ps((out) + r * 24 + 8, y##r);                                \
    _mm256_storeu_ps((out) + r * 24 + 16, z##r);

static void avx2_score_tile(float *s, const float *key, const float *q,
                            int64_t D, int64_t live)
{
    (void)live;
#define KEY(r) key[r * D + k]
    FOUR(DECLARE, 0)
    STEPS_4x24(q, D, KEY, key)
    FOUR(STORE, s)
}

static void avx2_value_tile(float *o, const float *begun, const float *part,
                            const float *v4, const float *p, int64_t n,
                            int64_t live, const float *alpha)
{
#define VALUE(r) v4[k * 4 + r]
#define GIVE(r, at)                                                            \
    JOIN_ROW(r, 0, x##r) JOIN_ROW(r, 8, y##r) JOIN_ROW(r, 16, z##r)
    (void)live;
    FOUR(GO_ON, begun)
    STEPS_4x24(p, n, VALUE, v4)
    FOUR(GIVE, 0)
}

/* 4 x 3 accumulators as in the attention tile, nothing loaded. */
static double avx2_fma_loop(int64_t n)
{
#define START(r, at)                                                           \
    __m256 x##r = _mm256_set1_ps(r), y##r = _mm256_set1_ps(r + 0.25f),         \
           z##r = _mm256_set1_ps(r + 0.5f);
#define JOIN(r, at) x##r = _mm256_fmadd_ps(x##r, y##r, z##r);
#define SAME(r) 0.999f
    volatile float seed = 0.001f;
    __m256 b0 = _mm256_set1_ps(seed), b1 = b0, b2 = b0;
    FOUR(START, 0)
    for (int64_t k = 0; k < n; k++) {
        FOUR(STEP, SAME)
    }
    FOUR(JOIN, 0)
    float out[8];
#define KEEP(r, at) _mm256_storeu_ps(out, x##r); seed = out[0];
    FOUR(KEEP, 0)
    return 2.0 * 4 * 3 * 8 * (double)n;
}

const tt_kernels tt_kernels_avx2 = {
    .name = "avx2", .level = EXACT_AVX2,
    .mr = 6, .nr = 16, .linear_tile = avx2_linear_tile, .pack = avx2_pack,
    .transposed_tile = transposed_tile, .transposed_half = transposed_half,
    .transposed_far = transposed_far, .transposed_end = transposed_end,
    .transposed_rows = transposed_rows, .conv_tile = avx2_conv_tile,
    .am = 4, .aq = AQ, .score_tile = avx2_score_tile,
        .value_tile = avx2_value_tile,
    .fma_loop = avx2_fma_loop,
    KERNELS_COMMON,
};

#else
typedef int tt_no_exact_avx2;
#endif
