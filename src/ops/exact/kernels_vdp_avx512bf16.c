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

#include "ops/exact/bf16_softmax.h"

#define MR 8
#define ROWS(X, P)                                                             \
    X(0, P) X(1, P) X(2, P) X(3, P) X(4, P) X(5, P) X(6, P) X(7, P)
#define V __m512
#define DP(c, v, b) _mm512_dpbf16_ps(c, (__m512bh)(v), (__m512bh)(b))

#define DECLARE(r, P)                                                          \
    V x##r = add ? _mm512_loadu_ps(c + r * NR) : _mm512_setzero_ps();          \
    V y##r = add ? _mm512_loadu_ps(c + r * NR + 16) : _mm512_setzero_ps();     \
    LAST##P z##r = add ? P##_loadu_ps(c + r * NR + 32) : P##_setzero_ps();
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
#define STEP(r, P)                                                             \
    {                                                                          \
        __m512i v = _mm512_set1_epi32(PAIR(r));                                \
        x##r = DP(x##r, v, b0);                                                \
        y##r = DP(y##r, v, b1);                                                \
        z##r = P##_dpbf16_ps(z##r, (LAST##P##bh)LOW##P(v), (LAST##P##bh)b2);   \
    }
#define GIVE(r, P)                                                             \
    _mm512_storeu_ps(c + r * NR, x##r);                                        \
    _mm512_storeu_ps(c + r * NR + 16, y##r);                                   \
    _mm512_storeu_ps(c + r * NR + 32, WHOLE##P(z##r));
/* The last third of the lanes: in whole vectors, in halves, or not at all. What
 * is left of it is 0. */
#define LAST_mm512 __m512
#define LAST_mm256 __m256
#define LAST_mm512bh __m512bh
#define LAST_mm256bh __m256bh
#define LAST_none int
#define LAST_nonebh int
#define LAST_nonei int
#define LAST_mm512i __m512i
#define LAST_mm256i __m256i
#define LOW_mm512(v) (v)
#define LOW_mm256(v) _mm512_castsi512_si256(v)
#define LOW_none(v) 0
#define _none_setzero_ps() 0
#define _none_loadu_ps(c) 0
#define _none_dpbf16_ps(z, v, b) ((void)(v), (void)(b), z)
#define WHOLE_mm512(z) (z)
#define WHOLE_mm256(z) _mm512_zextps256_ps512(z)
#define WHOLE_none(z) ((void)(z), _mm512_setzero_ps())
#define LOAD_mm512(b) _mm512_loadu_si512(b)
#define LOAD_mm256(b) _mm256_loadu_si256((const void *)(b))
#define LOAD_none(b) 0

static int32_t word(const char *at)
{
    int32_t w;
    memcpy(&w, at, sizeof w);
    return w;
}

/* `parts` of the products, each of `pairs`; rows and parts of a row lie `row`
 * and `part` bytes apart. After packed rows (but weights that were packed for
 * one tile) lie those of the next tile: 32 bytes of them are asked for with
 * every pair, 28 more than `a` goes on. */
#define SUMS(name, P)                                                          \
    INLINE void name(float *c, const char *a, int64_t row, int64_t part,       \
                     const int32_t *b, int64_t parts, int64_t pairs, bool add) \
    {                                                                          \
        ROWS(DECLARE, P)                                                       \
        for (int64_t g = 0; g < parts; g++, a += part - 4 * pairs)             \
            for (int64_t k = 0; k < pairs; k++, a += 4, b += NR) {             \
                const char *a3 = a + 3 * row, *a6 = a + 6 * row;               \
                __m512i b0 = _mm512_loadu_si512(b);                            \
                __m512i b1 = _mm512_loadu_si512(b + 16);                       \
                LAST##P##i b2 = LOAD##P(b + 32);                               \
                if (row == 2 * BF16_GROUP) prefetch_at(a, MR * row + 28 * k);  \
                ROWS(STEP, P)                                                  \
            }                                                                  \
        ROWS(GIVE, P)                                                          \
    }
SUMS(sums, _mm512)
SUMS(sums_few, _mm256)
SUMS(sums_half, _none)

/* Of 32 lanes and one more: it has the rows along a vector, which is put
 * together from what is broadcast for the others, while they multiply. */
#define BEGIN_MORE(r, P)                                                       \
    V x##r = add ? _mm512_loadu_ps(c + r * NR) : _mm512_setzero_ps();          \
    V y##r = add ? _mm512_loadu_ps(c + r * NR + 16) : _mm512_setzero_ps();     \
    more[r] = add ? c[r * NR + 32] : 0;
#define STEP_MORE(r, P)                                                        \
    {                                                                          \
        __m512i v = _mm512_set1_epi32(PAIR(r));                                \
        x##r = DP(x##r, v, b0);                                                \
        y##r = DP(y##r, v, b1);                                                \
        rows = _mm256_mask_mov_epi32(rows, 1 << r, LOW_mm256(v));              \
    }
#define GIVE_MORE(r, P)                                                        \
    _mm512_storeu_ps(c + r * NR, x##r);                                        \
    _mm512_storeu_ps(c + r * NR + 16, y##r);                                   \
    _mm512_storeu_ps(c + r * NR + 32, vs_all(0));                              \
    c[r * NR + 32] = more[r];
INLINE void sums_more(float *c, const char *a, int64_t row, int64_t part,
                      const int32_t *b, int64_t parts, int64_t pairs, bool add)
{
    float more[MR];
    ROWS(BEGIN_MORE, )
    __m256 z = _mm256_loadu_ps(more);
    for (int64_t g = 0; g < parts; g++, a += part - 4 * pairs)
        for (int64_t k = 0; k < pairs; k++, a += 4, b += NR) {
            const char *a3 = a + 3 * row, *a6 = a + 6 * row;
            const __m512i b0 = _mm512_loadu_si512(b);
            const __m512i b1 = _mm512_loadu_si512(b + 16);
            __m256i rows = _mm256_setzero_si256();
            if (row == 2 * BF16_GROUP) prefetch_at(a, MR * row + 28 * k);
            ROWS(STEP_MORE, )
            z = _mm256_dpbf16_ps(z, (__m256bh)rows,
                                 (__m256bh)_mm256_set1_epi32(b[32]));
        }
    _mm256_storeu_ps(more, z);
    ROWS(GIVE_MORE, )
}

/* Packed rows, and rows in one piece: what is constant of the one and the other
 * leaves registers for all addresses. */
#define TILE(name, sums)                                                       \
    static void name(float *c, const void *a, bf16_rows rows,                  \
                     const void *lanes, int64_t groups, bool add)              \
    {                                                                          \
        if (rows.row == BF16_GROUP)                                            \
            sums(c, a, 2 * BF16_GROUP, 2 * rows.group, lanes, groups, PAIRS,   \
                 add);                                                         \
        else                                                                   \
            sums(c, a, 2 * rows.row, 0, lanes, 1, groups * PAIRS, add);        \
    }
TILE(tile, sums)
TILE(tile_few, sums_few)
TILE(tile_half, sums_half)
TILE(tile_more, sums_more)

static unsigned vdp_avx512bf16_begin(void)
{
    return 0;
}

static void vdp_avx512bf16_end(unsigned state)
{
    (void)state;
}

const tt_bf16_kernels tt_vdp_avx512bf16 = {
    .name = "avx512bf16", .level = EXACT_AVX512BF16, .mr = MR, .nr = NR,
    .tile = tile, .few = 40, .tile_few = tile_few, .half = 32,
    .tile_half = tile_half, .more = 33, .tile_more = tile_more,
    .softmax = softmax,
    .begin = vdp_avx512bf16_begin, .end = vdp_avx512bf16_end,
    .stored = true, BF16_PACKING,
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
        kn->tile(c, zeros, bf16_packed(kn->mr), zeros, GROUPS, false);
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
