/* tc_vector.h: the kernels of the classes of tensor cores, written once and
 * compiled once per instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lanes are different outputs. A step has two passes.
 *   1 the largest exponent E of each lane: 16-bit additions and maxima
 *   2 every product, exact in float32, is scaled by 2^(F-E) and converted to an
 *     integer. The conversion cuts towards zero, as the definition asks. The
 *     integers are added, and the sum is converted back and scaled.
 * Floats hold all that where -100 <= E <= 120: products do not overflow, and
 * one that underflows lies below the last bit that counts. A lane with another
 * E, or with a sum beyond 32 bits, is computed by the definition. */
#include "ops/exact/kernels_vector.h"
#include "ops/exact/tc.h"

#define W VS
#define EACH_LANE(j) for (int j = 0; j < TC_NR; j += W)
#if defined(__clang__)
#define UNROLL_ALL _Pragma("unroll")
#else
#define UNROLL_ALL _Pragma("GCC unroll 16")
#endif

typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef int16_t vh __attribute__((vector_size(4 * W)));
typedef int16_t vhalf __attribute__((vector_size(2 * W)));

/* VH_MORE(a, b): the larger of 16-bit integers. VI_MORE: of 32 bits.
 * ANY_NEGATIVE(v): is a lane of v below zero? VS_CUT(v): integers as floats,
 * cut towards zero. */
#if defined(__AVX512BW__)
#define VH_MORE(a, b) (vh)_mm512_max_epi16((__m512i)(a), (__m512i)(b))
#define VI_MORE(a, b) (vi)_mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define ANY_NEGATIVE(v) (_mm512_movepi32_mask((__m512i)(v)) != 0)
#define VS_CUT(v)                                                              \
    (vs)_mm512_cvt_roundepi32_ps((__m512i)(v),                                 \
                                 _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#elif defined(__AVX2__)
#define VH_MORE(a, b) (vh)_mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define VI_MORE(a, b) (vi)_mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define ANY_NEGATIVE(v) (_mm256_movemask_ps((__m256)(v)) != 0)
#elif defined(__SSE2__)
#include <immintrin.h>
#define VH_MORE(a, b) (vh)_mm_max_epi16((__m128i)(a), (__m128i)(b))
#define ANY_NEGATIVE(v) (_mm_movemask_ps((__m128)(v)) != 0)
#endif
#ifndef VH_MORE
#define VH_MORE vh_more
INLINE vh vh_more(vh a, vh b)
{
    vh m = (vh)(a > b);
    return (a & m) | (b & ~m);
}
#endif
#ifndef VI_MORE
#define VI_MORE vi_more
INLINE vi vi_more(vi a, vi b)
{
    vi m = a > b;
    return (a & m) | (b & ~m);
}
#endif
#ifndef ANY_NEGATIVE
#define ANY_NEGATIVE any_negative
INLINE bool any_negative(vi v)
{
    int32_t any = 0;
    for (int i = 0; i < W; i++) any |= v[i];
    return any < 0;
}
#endif
#ifndef VS_CUT
#define VS_CUT vs_cut
/* Bits beyond the 24 highest are cleared first: x becomes as many ones. */
INLINE vs vs_cut(vi v)
{
    vi sign = v >> 31, m = (v ^ sign) - sign;
    vu x = (vu)m >> 24;
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    vs f = __builtin_convertvector(m & ~(vi)x, vs);
    return (vs)((vi)f | (sign & INT32_MIN));
}
#endif

INLINE vh vh_load(const int16_t *x)
{
    vh v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Both halves of an exponent of rows, in all lanes. */
INLINE vh vh_all(int32_t both)
{
    vi v = {0};
    return (vh)(v + both);
}

INLINE vi vi_widen(const int16_t *x)
{
#if defined(__AVX512BW__)
    return (vi)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)x));
#endif
    vhalf v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, vi);
}

/* ---- the tile ------------------------------------------------------------ */

/* Lanes of `bad` by the definition. Zeros, of which rows and lanes can be full,
 * are seen at once. */
static __attribute__((noinline)) void
by_definition(tc_unit unit, float *c, const float *before, vi bad,
              const float *a, const float *b, const vi e)
{
    bool nothing = true;
    for (int k = 0; k < unit.block; k++) nothing = nothing && a[k] == 0;
    for (int i = 0; i < W; i++) {
        if (bad[i] >= 0) continue;
        if (nothing && before[i] == 0 && e[i] < TC_NOT_FINITE / 2) c[i] = 0;
        else c[i] = tc_step(unit, before[i], b + i, TC_NR, a, unit.block);
    }
}

/* One step of one row: c [TC_NR]. */
INLINE void step(tc_unit unit, float *c, const float *a, const int32_t *ea,
                 const float *b, const int16_t *eb)
{
    const int F = unit.bits;
    int16_t top[TC_NR];
    for (int j = 0; j < TC_NR; j += 2 * W) {
        vh t = vh_load(eb + j) + vh_all(ea[0]);
        UNROLL_ALL
        for (int k = 1; k < unit.block; k++)
            t = VH_MORE(t, vh_load(eb + k * TC_NR + j) + vh_all(ea[k]));
        memcpy(top + j, &t, sizeof t);
    }
    EACH_LANE(j) {
        const vs before = vs_load(c + j);
        vi e = VI_MORE(vi_widen(top + j), (vi)(((vu)before << 1) >> 24));
        vs scale = (vs)((254 + F - e) << 23);
        vi own = __builtin_convertvector(before * scale, vi), sum = {0};
        UNROLL_ALL
        for (int k = 0; k < unit.block; k++)
            sum += __builtin_convertvector(
                vs_load(b + k * TC_NR + j) * a[k] * scale, vi);
        vi all = (vi)((vu)sum + (vu)own);
        vi bad = (e - 27) | (247 - e) | ((sum ^ all) & (own ^ all));
        vs_store(c + j, VS_CUT(all) * (vs)((e - F) << 23));
        if (__builtin_expect(ANY_NEGATIVE(bad), 0)) {
            float kept[W];
            vs_store(kept, before);
            by_definition(unit, c + j, kept, bad, a, b + j, e);
        }
    }
}

INLINE void tile(tc_unit unit, float *c, int64_t m, tc_rows a, tc_lanes b,
                 int64_t groups)
{
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t r = 0; r < m; r++)
            for (int k = 0; k < TC_GROUP; k += unit.block)
                step(unit, c + r * TC_NR, a.x + r * TC_GROUP + k,
                     a.e + r * TC_GROUP + k, b.x + k * TC_NR, b.e + k * TC_NR);
        a.x += m * TC_GROUP;
        a.e += m * TC_GROUP;
        b.x += TC_NR * TC_GROUP;
        b.e += TC_NR * TC_GROUP;
    }
}

static void tile_sm80(float *c, int64_t m, tc_rows a, tc_lanes b,
                      int64_t groups)
{
    tile((tc_unit){8, 24}, c, m, a, b, groups);
}

static void tile_sm90(float *c, int64_t m, tc_rows a, tc_lanes b,
                      int64_t groups)
{
    tile((tc_unit){16, 25}, c, m, a, b, groups);
}

/* ---- packing ------------------------------------------------------------- */

/* The exponent and 127 of a factor. */
INLINE int32_t exponent(float x)
{
    int32_t field = (int32_t)(tc_bits(x) >> 23 & 255u);
    return field == 255 ? TC_NOT_FINITE : field ? field : 1;
}

INLINE void put_row(tc_rows a, int64_t at, float x)
{
    a.x[at] = tc_factor(x);
    uint32_t e = (uint32_t)(exponent(a.x[at]) - 127) & 0xffffu;
    a.e[at] = (int32_t)(e * 0x10001u);
}

INLINE void pack(tc_rows a, int64_t m, const float *x, int64_t row,
                 int64_t product, int64_t rows, int64_t K)
{
    for (int64_t k0 = 0; k0 < K; k0 += TC_GROUP)
        for (int64_t r = 0; r < m; r++)
            for (int64_t k = k0; k < k0 + TC_GROUP; k++)
                put_row(a, k0 * m + r * TC_GROUP + k - k0,
                        r < rows && k < K ? x[r * row + k * product] : 0);
}

static void pack_rows(tc_rows a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    pack(a, m, x, ld, 1, rows, K);
}

static void pack_cols(tc_rows a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K)
{
    pack(a, m, x, 1, ld, rows, K);
}

/* A lane that nobody reads is full of zeros that have exponent 0: its sums are
 * never out of range. */
static void pack_lanes(tc_lanes b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K)
{
    for (int64_t k = 0; k < (K + TC_GROUP - 1) / TC_GROUP * TC_GROUP; k++)
        for (int64_t j = 0; j < TC_NR; j++) {
            float v = tc_factor(j < lanes && k < K ? x[j * ld + k] : 0);
            b.x[k * TC_NR + j] = v;
            b.e[k * TC_NR + j] = j < lanes ? (int16_t)exponent(v) : 127;
        }
}

/* ---- attention ----------------------------------------------------------- */

/* tc_exp2 of every lane. */
INLINE vs vs_exp2(vs d, float scale, float least)
{
    const float magic = 0x1.8p23f + 127;
    d = VS_MORE(vs_all(least), d);
    vs n = VS_FMA(d, vs_all(scale), vs_all(magic));
    vs f = VS_FMA(d, vs_all(scale), magic - n);
    vs p = VS_FMA(vs_all(0x1.409104p-7f), f, vs_all(0x1.ca9008p-5f));
    p = VS_FMA(p, f, vs_all(0x1.ebf1b4p-3f));
    p = VS_FMA(p, f, vs_all(0x1.62dfcap-1f));
    p = VS_FMA(p, f, vs_all(1));
    return p * (vs)((vi)n << 23);
}

/* A weight, normal and at most 1, rounded and packed. */
INLINE void put_weights(tc_lanes p, int64_t at, vs w)
{
    vu u = (vu)w;
    u = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
    vhalf e = __builtin_convertvector((vi)((u << 1) >> 24), vhalf);
    memcpy(p.x + at, &u, sizeof u);
    memcpy(p.e + at, &e, sizeof e);
}

static void soften(tc_lanes p, const float *s, int64_t n, float scale, float *m,
                   float *l, float *alpha, bool first)
{
    const float least = -125.0f / scale;
    EACH_LANE(i) {
        vs before = first ? vs_load(s + i) : vs_load(m + i), top = before;
        for (int64_t j = 0; j < n; j++)
            top = VS_MORE(vs_load(s + j * TC_NR + i), top);
        vs shrunk = vs_exp2(before - top, scale, least), sum[TC_LANES];
        vs_store(alpha + i, shrunk);
        vs_store(m + i, top);
        for (int t = 0; t < TC_LANES; t++)
            sum[t] = first ? vs_all(0) * shrunk
                           : vs_load(l + t * TC_NR + i) * shrunk;
        for (int64_t j = 0; j < n; j++) {
            vs w = vs_exp2(vs_load(s + j * TC_NR + i) - top, scale, least);
            sum[j % TC_LANES] += w;
            put_weights(p, j * TC_NR + i, w);
        }
        for (int t = 0; t < TC_LANES; t++)
            vs_store(l + t * TC_NR + i, sum[t]);
    }
    int64_t up = (n + TC_GROUP - 1) / TC_GROUP * TC_GROUP;
    for (int64_t at = n * TC_NR; at < up * TC_NR; at++) {
        p.x[at] = 0;
        p.e[at] = 1;
    }
}

static void shrink(float *acc, const float *alpha, int64_t D)
{
    for (int64_t d = 0; d < D; d++)
        EACH_LANE(i)
            vs_store(acc + d * TC_NR + i,
                     vs_load(acc + d * TC_NR + i) * vs_load(alpha + i));
}

#define TC_KERNELS(name_)                                                      \
    {                                                                          \
        .name = name_, .tile = {tile_sm80, tile_sm90},                         \
        .pack_rows = pack_rows, .pack_cols = pack_cols,                        \
        .pack_lanes = pack_lanes, .soften = soften, .shrink = shrink,          \
    }
