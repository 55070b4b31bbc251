/* kernels_vdp_avx512bf16.c: class vdp by its own instruction, 8 rows x 48
 * lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * VDPBF16PS treats subnormals as zero, rounds to nearest even and flushes
 * whatever MXCSR says. */
#include "ops/exact/bf16.h"

#if defined(TT_HAVE_AVX512BF16) && !defined(TT_REAL_DOUBLE)

#include <immintrin.h>
#include <time.h>

#define FILL 0x8000u /* -0 */
#include "ops/exact/bf16_pairs.h"

#define MR 8
#define ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define V __m512
#define DP(c, v, b) _mm512_dpbf16_ps(c, (__m512bh)(v), (__m512bh)(b))

#define DECLARE(r)                                                             \
    V x##r = add ? _mm512_loadu_ps(c + r * ldc) : _mm512_setzero_ps();         \
    V y##r = add ? _mm512_loadu_ps(c + r * ldc + 16) : _mm512_setzero_ps();    \
    V z##r = add ? _mm512_loadu_ps(c + r * ldc + 32) : _mm512_setzero_ps();
/* The next pair of row r. Three pointers reach eight rows. */
#define PAIR(r) word(ROW_##r)
#define ROW_0 a
#define ROW_1 (a + row)
#define ROW_2 (a + 2 * row)
#define ROW_3 a3
#define ROW_4 (a3 + row)
#define ROW_5 (a3 + 2 * row)
#define ROW_6 a6
#define ROW_7 (a6 + row)
#define STEP(r)                                                                \
    {                                                                          \
        __m512i v = _mm512_set1_epi32(PAIR(r));                                \
        x##r = DP(x##r, v, b0);                                                \
        y##r = DP(y##r, v, b1);                                                \
        z##r = DP(z##r, v, b2);                                                \
    }
#define GIVE(r)                                                                \
    _mm512_storeu_ps(c + r * ldc, x##r);                                       \
    _mm512_storeu_ps(c + r * ldc + 16, y##r);                                  \
    _mm512_storeu_ps(c + r * ldc + 32, z##r);

static int32_t word(const char *at)
{
    int32_t w;
    memcpy(&w, at, sizeof w);
    return w;
}

static void tile(float *c, int64_t ldc, bf16_rows rows, const void *lanes,
                 int64_t groups, bool add)
{
    const int32_t *b = lanes;
    const char *a = rows.at;
    const int64_t row = 2 * rows.row, next = 2 * (rows.group - BF16_GROUP);
    ROWS(DECLARE)
    for (int64_t g = 0; g < groups; g++, a += next)
        for (int k = 0; k < PAIRS; k++, a += 4, b += NR) {
            const char *a3 = a + 3 * row, *a6 = a + 6 * row;
            __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 16);
            __m512i b2 = _mm512_loadu_si512(b + 32);
            ROWS(STEP)
        }
    ROWS(GIVE)
}

static unsigned begin(void)
{
    return 0;
}

static void end(unsigned state)
{
    (void)state;
}

const tt_bf16_kernels tt_vdp_avx512bf16 = {
    .name = "avx512bf16", .mr = MR, .nr = NR, .tile = tile, .begin = begin,
    .end = end, .stored = true, BF16_PACKING,
};

bool vdp_present(void)
{
    __builtin_cpu_init();
    return exact_kernels_up_to(EXACT_AVX512) == &tt_kernels_avx512 &&
           __builtin_cpu_supports("avx512bf16");
}

/* Nanoseconds of one product of these kernels, tiles of 512 products. */
static double cost(const tt_bf16_kernels *kn, float *c, const float *zeros)
{
    struct timespec from, to;
    enum { TILES = 8, GROUPS = 16 };
    const unsigned state = kn->begin();
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < TILES; i++)
        kn->tile(c, kn->nr, bf16_packed(zeros, kn->mr, 0, kn->size), zeros,
                 GROUPS, false);
    clock_gettime(CLOCK_MONOTONIC, &to);
    kn->end(state);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 +
            (double)(to.tv_nsec - from.tv_nsec)) / (kn->mr * kn->nr);
}

bool vdp_faster(void)
{
    static const float zeros[512 * 48];
    float c[BF16_MAX_MR * BF16_MAX_NR];
    double pairs = 1e30, sums = 1e30;
    for (int i = 0; i < 6; i++) {
        const double p = cost(&tt_vdp_avx512bf16, c, zeros);
        const double s = cost(&tt_vdp_avx512, c, zeros);
        pairs = p < pairs ? p : pairs;
        sums = s < sums ? s : sums;
    }
    return pairs < sums;
}

#else
typedef int tt_no_vdp_avx512bf16;
#endif
