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

#define AQ NR
#include "ops/exact/kernels_soften.h"
_Static_assert(BESIDE >= 2, "a pair of keys");

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
 * and `part` bytes apart. Behind packed rows (but weights that were packed for
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
                if (row == 2 * BF16_GROUP) ask_behind(a, MR * row + 28 * k);   \
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
            if (row == 2 * BF16_GROUP) ask_behind(a, MR * row + 28 * k);
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

/* The largest and the smallest logit of every query; n > 0. From the last key
 * to the first: the last ones are in the first cache still, and the first ones
 * will be when the weights begin with them. */
INLINE void range(vs *top, vs *low, const float *s, int64_t n)
{
    EACH(SOFT) top[i] = low[i] = vs_load(s + (n - 1) * NR + i * VS);
    for (int64_t j = n - 2; j >= 0; j--)
        EACH(SOFT) {
            const vs v = vs_load(s + j * NR + i * VS);
            top[i] = VS_MORE(v, top[i]);
            low[i] = VS_LESS(v, low[i]);
        }
}

/* Is low * scale - top at least -87 for every query? */
INLINE bool all_near(const vs *low, float scale, const vs *top)
{
    __mmask16 far = 0;
    EACH(SOFT)
        far |= _mm512_cmp_ps_mask((__m512)(low[i] * scale - top[i]),
                                  _mm512_set1_ps(-87.0f), _CMP_NGE_UQ);
    return !far;
}

/* The weights of n / SOFT keys. */
INLINE void weigh(vs *p, vs *sum, const float *s, float scale, const vs *top,
                  int n)
{
    EACH(n) p[i] = vs_load(s + i * VS) * scale - top[i % SOFT];
    vs_exp_near(p, n);
    EACH(n) sum[i % SOFT] += p[i];
}

/* VCVTNE2PS2BF16 rounds as the class does, but for numbers near FLT_MIN. */
INLINE void give_pairs(uint16_t *y, const vs *even, const vs *odd)
{
    static const uint16_t beside[BF16_GROUP] = {
        0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31,
    };
    const __m512i to = _mm512_loadu_si512(beside);
    EACH(SOFT) {
        __m512bh both = _mm512_cvtne2ps_pbh((__m512)odd[i], (__m512)even[i]);
        _mm512_storeu_si512(y + i * BF16_GROUP,
                            _mm512_permutexvar_epi16(to, (__m512i)both));
    }
}

/* Weights go from registers to lanes. A NaN logit is a bf16 number still, so
 * that its lowest bits are zero as vs_exp_near asks. */
static bool soften(void *lanes, const float *s, int64_t n, float scale,
                   float *restrict m, float *restrict l, float *restrict alpha,
                   bool first)
{
    vs top[SOFT], low[SOFT], sum[SOFT], p[2 * SOFT]; /* of a pair of keys */
    uint16_t *y = lanes;
    int64_t j = 0;
    if (!(scale > 0)) return false;
    range(top, low, s, n);
    EACH(SOFT) top[i] *= scale;
    EACH(SOFT) if (!first) top[i] = VS_MORE(top[i], vs_load(m + i * VS));
    if (!all_near(low, scale, top)) return false;
    EACH(SOFT) sum[i] = vs_all(0);
    for (; j + 2 <= n; j += 2, s += 2 * NR, y += 2 * NR) {
        weigh(p, sum, s, scale, top, 2 * SOFT);
        give_pairs(y, p, p + SOFT);
    }
    if (j < n) {
        weigh(p, sum, s, scale, top, SOFT);
        EACH(SOFT) p[SOFT + i] = vs_all(0);
        give_pairs(y, p, p + SOFT);
        j += 2, y += 2 * NR;
    }
    memset(y, 0, (size_t)((padded(n) - j) * NR) * sizeof *y);
    soften_end(top, sum, m, l, alpha, first);
    return true;
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
    .name = "avx512bf16", .level = EXACT_AVX512BF16, .mr = MR, .nr = NR,
    .tile = tile, .few = 40, .tile_few = tile_few, .half = 32,
    .tile_half = tile_half, .more = 33, .tile_more = tile_more,
    .soften = soften,
    .begin = begin, .end = end,
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
