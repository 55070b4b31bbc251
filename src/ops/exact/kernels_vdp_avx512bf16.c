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
#define STEP(r)                                                                \
    {                                                                          \
        __m512i v = _mm512_set1_epi32(a[r * PAIRS + k]);                       \
        x##r = DP(x##r, v, b0);                                                \
        y##r = DP(y##r, v, b1);                                                \
        z##r = DP(z##r, v, b2);                                                \
    }
#define GIVE(r)                                                                \
    _mm512_storeu_ps(c + r * ldc, x##r);                                       \
    _mm512_storeu_ps(c + r * ldc + 16, y##r);                                  \
    _mm512_storeu_ps(c + r * ldc + 32, z##r);

static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const int32_t *a = rows, *b = lanes;
    ROWS(DECLARE)
    for (int64_t g = 0; g < groups; g++) {
        for (int k = 0; k < PAIRS; k++, b += NR) {
            __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 16);
            __m512i b2 = _mm512_loadu_si512(b + 32);
            ROWS(STEP)
        }
        a += m * PAIRS;
    }
    ROWS(GIVE)
}

/* Stored weights go to the instruction as they are. Their address may be odd,
 * so whole blocks are read as vectors and ends copied by bytes. */
static void pack_stored(void *b, const uint16_t *w, int64_t ld, int64_t lanes,
                        int64_t K)
{
    uint16_t row[NR][BF16_GROUP];
    const char *at = (const char *)w;
    for (int64_t k0 = 0; k0 < K; k0 += BF16_GROUP) {
        int64_t n = K - k0 < BF16_GROUP ? K - k0 : BF16_GROUP;
        if (n < BF16_GROUP || lanes < NR) memset(row, 0, sizeof row);
        for (int64_t j = 0; j < lanes; j++)
            memcpy(row[j], at + 2 * (j * ld + k0), 2 * (size_t)n);
        for (int64_t j = 0; j < NR; j += BLOCK)
            transpose16((float *)b + k0 / 2 * NR + j, NR,
                        (const float *)row[j], PAIRS);
    }
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
    .end = end, .pack_stored = pack_stored, BF16_PACKING,
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
        kn->tile(c, kn->nr, zeros, kn->mr, zeros, GROUPS, false);
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
