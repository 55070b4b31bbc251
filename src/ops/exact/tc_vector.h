/* tc_vector.h: the kernels of the classes of tensor cores, written once and
 * compiled once per instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lanes are different outputs. A step has two passes.
 *   1 the largest exponent E of each lane: 16-bit additions and maxima. Two
 *     vectors have theirs in the halves of one, so that a shift parts them.
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

typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef int16_t vh __attribute__((vector_size(4 * W)));

/* VH_MORE(a, b): the larger of 16-bit integers. ANY_NEGATIVE(v): is a lane of v
 * below zero? ANY_BEYOND(d, range): is a 16-bit integer of d below zero or
 * above that of range? VS_CUT(v): integers as floats, cut towards zero.
 * KEEP(v): this constant stays in a register; compilers make it anew in every
 * step. */
#define E_LOW 27
#define E_HIGH 247
#if defined(__AVX512BW__)
#define VH_MORE(a, b) (vh)_mm512_max_epi16((__m512i)(a), (__m512i)(b))
#define ANY_NEGATIVE(v) (_mm512_movepi32_mask((__m512i)(v)) != 0)
#define ANY_BEYOND(d, range)                                                   \
    (_mm512_cmpgt_epu16_mask((__m512i)(d), (__m512i)(range)) != 0)
#define KEEP(v) __asm__("" : "+v"(v))
#define VS_CUT(v)                                                              \
    (vs)_mm512_cvt_roundepi32_ps((__m512i)(v),                                 \
                                 _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#elif defined(__AVX2__)
#define VH_MORE(a, b) (vh)_mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define ANY_NEGATIVE(v) (_mm256_movemask_ps((__m256)(v)) != 0)
#define ANY_BEYOND(d, range)                                                   \
    ((_mm256_movemask_epi8((__m256i)((d) | ((range) - (d)))) &                 \
      (int)0xaaaaaaaa) != 0)
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
#ifndef ANY_NEGATIVE
#define ANY_NEGATIVE any_negative
INLINE bool any_negative(vi v)
{
    int32_t any = 0;
    for (int i = 0; i < W; i++) any |= v[i];
    return any < 0;
}
#endif
#ifndef ANY_BEYOND
#define ANY_BEYOND any_beyond
INLINE bool any_beyond(vh d, vh range)
{
    vi v = (vi)(d | (range - d));
    int32_t any = 0;
    for (int i = 0; i < W; i++) any |= v[i];
    return any & (int32_t)0x80008000;
}
#endif
#ifndef KEEP
#define KEEP(v) ((void)0)
#endif
#ifndef VS_CUT
#define VS_CUT vs_cut
/* Bits beyond the 24 highest are cleared first: x becomes as many ones. */
INLINE vs vs_cut(vi v)
{
    vi sign = v >> 31, m = (vi)((vu)(v ^ sign) - (vu)sign);
    vu x = (vu)m >> 24;
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    vs f = __builtin_convertvector(m & ~(vi)x, vs);
    return (vs)((vi)f | (sign & INT32_MIN));
}
#endif

INLINE vi vi_load(const int32_t *x)
{
    vi v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Both halves of an exponent of rows next to those of two vectors of lanes. */
INLINE vh exponents(int32_t row, const int32_t *lanes)
{
    vi both = {0};
    return (vh)(both + row) + (vh)vi_load(lanes);
}

/* The exponents of two vectors of sums, each with 127, in the halves of one. */
INLINE vh sum_exponents(vs low, vs high)
{
    vu both = ((vu)high & 0xffff0000u) | ((vu)low >> 16);
    return (vh)((both >> 7) & 0x00ff00ffu);
}

/* ---- the tile ------------------------------------------------------------ */

/* Two vectors of lanes before a step, and what the step found. */
typedef struct two_vectors {
    float c[2 * W];
    int32_t e[W];        /* exponents, in the halves                          */
    int32_t beyond[2 * W];   /* below 0: the sum does not fit 32 bits         */
} two_vectors;

/* Lanes that need it, by the definition. Zeros, of which rows and lanes can be
 * full, are seen at once. */
static __attribute__((noinline)) void
by_definition(tc_unit unit, float *c, const two_vectors *before, const float *a,
              const float *b)
{
    bool nothing = true;
    for (int k = 0; k < unit.block; k++) nothing = nothing && a[k] == 0;
    for (int i = 0; i < 2 * W; i++) {
        uint32_t both = (uint32_t)before->e[i % W];
        int e = (int16_t)(i < W ? both & 0xffffu : both >> 16);
        if (e >= E_LOW && e <= E_HIGH && before->beyond[i] >= 0) continue;
        if (nothing && before->c[i] == 0 && e < TC_NOT_FINITE / 2) c[i] = 0;
        else c[i] = tc_step(unit, before->c[i], b + i, TC_NR, a, unit.block);
    }
}

/* Do `block` products and the old sum, each below 2^(F+2), fit 32 bits? */
INLINE bool always_fits(tc_unit unit)
{
    return unit.block + 1 <= 1 << (29 - unit.bits);
}

/* Pass 2 for one vector of lanes; e is E + 127, where a float has its exponent.
 * Below 0: the sum does not fit 32 bits. */
INLINE vi add_up(tc_unit unit, float *c, vs before, vi e, const float *a,
                 const float *b)
{
    const int F = unit.bits;
    const vs scale = (vs)(((uint32_t)(254 + F) << 23) - (vu)e);
    const vu own = (vu)__builtin_convertvector(before * scale, vi);
    vu sum = {0};
    UNROLL_ALL
    for (int k = 0; k < unit.block; k++)
        sum += (vu)__builtin_convertvector(
            vs_load(b + k * TC_NR) * a[k] * scale, vi);
    const vu all = sum + own;
    vs_store(c, VS_CUT((vi)all) * (vs)((vu)e - ((uint32_t)F << 23)));
    return (vi)((sum ^ all) & (own ^ all));
}

/* E_LOW and E_HIGH - E_LOW in all lanes. */
typedef struct limits {
    vh low, range;
} limits;

/* One step of one row and two vectors of lanes: c [2 * W]. */
INLINE void step(tc_unit unit, const limits *at, float *c, const float *a,
                 const int32_t *ea, const float *b, const int32_t *eb)
{
    const vs low = vs_load(c), high = vs_load(c + W);
    vh t = exponents(ea[0], eb);
    UNROLL_ALL
    for (int k = 1; k < unit.block; k++)
        t = VH_MORE(t, exponents(ea[k], eb + k * TC_NR / 2));
    t = VH_MORE(t, sum_exponents(low, high));
    vi beyond[2];
    beyond[0] = add_up(unit, c, low, (vi)((vu)t << 23), a, b);
    beyond[1] = add_up(unit, c + W, high, (vi)(((vu)t & 0xffff0000u) << 7), a,
                       b + W);
    if (always_fits(unit)) beyond[0] = beyond[1] = (vi){0};
    if (__builtin_expect(ANY_BEYOND(t - at->low, at->range) ||
                             (!always_fits(unit) &&
                              ANY_NEGATIVE(beyond[0] | beyond[1])), 0)) {
        two_vectors before;
        vs_store(before.c, low);
        vs_store(before.c + W, high);
        memcpy(before.e, &t, sizeof t);
        memcpy(before.beyond, beyond, sizeof beyond);
        by_definition(unit, c, &before, a, b);
    }
}

/* Steps of different rows do not wait for each other: rows run inside. */
INLINE void tile(tc_unit unit, float *c, int64_t m, tc_rows a, tc_lanes b,
                 int64_t groups)
{
    limits at = {(vh){0} + E_LOW, (vh){0} + (E_HIGH - E_LOW)};
    KEEP(at.low);
    KEEP(at.range);
    for (int64_t g = 0; g < groups; g++) {
        for (int k = 0; k < TC_GROUP; k += unit.block)
            for (int64_t r = 0; r < m; r++)
                for (int j = 0; j < TC_NR; j += 2 * W)
                    step(unit, &at, c + r * TC_NR + j, a.x + r * TC_GROUP + k,
                         a.e + r * TC_GROUP + k, b.x + k * TC_NR + j,
                         b.e + (k * TC_NR + j) / 2);
        a.x += m * TC_GROUP;
        a.e += m * TC_GROUP;
        b.x += TC_NR * TC_GROUP;
        b.e += TC_NR * TC_GROUP / 2;
    }
}

/* ---- packing ------------------------------------------------------------- */

/* Factors, and their exponents with 127. */
INLINE vs factors(vs x)
{
    const vu u = (vu)x, even = u + 0x7fffu + ((u >> 16) & 1u);
    const vu nan = (vu)((u & 0x7fffffffu) > 0x7f800000u);
    return (vs)((even & 0xffff0000u & ~nan) | (nan & 0x7fff0000u));
}

INLINE vi factor_exponents(vs x)
{
    const vu size = (vu)x << 1;
    const vi field = (vi)(size >> 24);
    const vi e = (field - (vi)(field == 0)) |
                 ((vi)(field == 255) & TC_NOT_FINITE);
    const vi none = (vi)(size == 0);
    return (e & ~none) | (none & TC_NO_EXPONENT);
}

/* Row r, product k: x[r * row + k * product]. */
INLINE void pack(tc_rows a, int64_t m, const float *x, const int64_t step[2],
                 int64_t rows, int64_t K)
{
    for (int64_t k0 = 0; k0 < K; k0 += TC_GROUP)
        for (int64_t r = 0; r < m; r++) {
            const int64_t n = r >= rows ? 0
                              : K - k0 < TC_GROUP ? K - k0 : TC_GROUP;
            float group[TC_GROUP] = {0};
            for (int64_t k = 0; k < n; k++)
                group[k] = x[r * step[0] + (k0 + k) * step[1]];
            for (int64_t k = 0; k < TC_GROUP; k += W) {
                const vs f = factors(vs_load(group + k));
                const vu e = (vu)(factor_exponents(f) - 127) & 0xffffu;
                const vi both = (vi)(e | e << 16);
                vs_store(a.x + k0 * m + r * TC_GROUP + k, f);
                memcpy(a.e + k0 * m + r * TC_GROUP + k, &both, sizeof both);
            }
        }
}

/* One product of two vectors of lanes, whose exponents are e. */
INLINE void put_lanes(tc_lanes b, int64_t at, const vs f[2], const vi e[2])
{
    const vi both = (e[0] & 0xffff) | (vi)((vu)e[1] << 16);
    vs_store(b.x + at, f[0]);
    vs_store(b.x + at + W, f[1]);
    memcpy(b.e + at / 2, &both, sizeof both);
}

/* A lane that no one reads is full of zeros that have exponent 0: its sums are
 * out of range with a row of zeros or tiny numbers alone. */
static void tc_vector_pack_lanes(tc_lanes b, const float *x, int64_t ld,
                                 int64_t live, int64_t K)
{
    vi read[TC_NR / W];
    for (int j = 0; j < TC_NR; j++) read[j / W][j % W] = -(j < live);
    for (int64_t k = 0; k < (K + TC_GROUP - 1) / TC_GROUP * TC_GROUP; k++) {
        float line[TC_NR] = {0};
        for (int64_t j = 0; k < K && j < live; j++) line[j] = x[j * ld + k];
        for (int j = 0; j < TC_NR; j += 2 * W) {
            vs f[2];
            vi e[2];
            for (int i = 0; i < 2; i++) {
                const vi r = read[j / W + i];
                f[i] = factors(vs_load(line + j + i * W));
                e[i] = (factor_exponents(f[i]) & r) | (127 & ~r);
            }
            put_lanes(b, k * TC_NR + j, f, e);
        }
    }
}

/* ---- attention ----------------------------------------------------------- */

/* 2^x of every lane with an error below 2^-20, and so tc_exp2 when it is
 * rounded to bf16. The polynomial is that of degree 5 with the least error and
 * p(0) = 1. */
INLINE vs vs_exp2(vs x)
{
    const vs c = VS_LESS(x, vs_all(128)), n = c + vs_all(TC_TO_INTEGER);
    const vs f = c - (n - vs_all(TC_TO_INTEGER));
    vs p = VS_FMA(vs_all(0x1.23a604p-10f), f, vs_all(0x1.3cbea8p-7f));
    p = VS_FMA(p, f, vs_all(0x1.c74322p-5f));
    p = VS_FMA(p, f, vs_all(0x1.ebfa4ep-3f));
    p = VS_FMA(p, f, vs_all(0x1.62e39ep-1f));
    p = VS_FMA(p, f, vs_all(1));
    const vi y = (vi)((vu)p + ((vu)n << 23));
    return (vs)((y & ~(vi)(x < vs_all(-126))) | (vi)(x != x));
}

/* Weights of two vectors of queries: w [2 * W] for one key. */
INLINE void put_weights(tc_lanes p, int64_t at, const vs w[2])
{
    vs f[2];
    vi e[2];
    for (int i = 0; i < 2; i++) {
        f[i] = factors(w[i]);
        e[i] = factor_exponents(f[i]);
    }
    put_lanes(p, at, f, e);
}

/* tc_max and tc_alpha of one vector of queries; s [n], TC_NR apart. Gives what
 * is added to exponents before they are rounded. */
INLINE vs begin_weights(const float *s, int64_t n, float scale, float *m,
                        float *alpha)
{
    const vs before = vs_load(m), integer = vs_all(TC_TO_INTEGER);
    vs top = vs_all(-INFINITY);
    for (int64_t j = 0; j < n; j++) top = VS_MORE(vs_load(s + j * TC_NR), top);
    top = VS_FMA(top, vs_all(scale), integer) - integer;
    top = VS_MORE(top, before);
    vs e = before - top;
    e = VS_MORE(e, vs_all(-127)) + vs_all(TC_TO_INTEGER + 127);
    vs_store(alpha, (vs)((vu)e << 23));
    vs_store(m, top);
    return vs_all(TC_TO_QUANTUM) - top;
}

static void weights(tc_lanes p, const float *s, int64_t n, float scale,
                    float *m, float *alpha)
{
    int64_t up = (n + TC_GROUP - 1) / TC_GROUP * TC_GROUP;
    for (int j0 = 0; j0 < TC_NR; j0 += 2 * W) {
        vs from[2], w[2];
        for (int i = 0; i < 2; i++) {
            const int at = j0 + i * W;
            from[i] = begin_weights(s + at, n, scale, m + at, alpha + at);
        }
        for (int64_t j = 0; j < up; j++) {
            for (int i = 0; i < 2; i++) {
                if (j >= n) {
                    w[i] = vs_all(0);
                    continue;
                }
                const vs z = vs_load(s + j * TC_NR + j0 + i * W);
                w[i] = vs_exp2(VS_FMA(z, vs_all(scale), from[i]) -
                               vs_all(TC_TO_QUANTUM));
            }
            put_weights(p, j * TC_NR + j0, w);
        }
    }
}

static void shrink(float *acc, const float *alpha, int64_t D)
{
    for (int64_t d = 0; d < D; d++)
        EACH_LANE(i)
            vs_store(acc + d * TC_NR + i,
                     vs_load(acc + d * TC_NR + i) * vs_load(alpha + i));
}

static void tc_vector_pack_rows(tc_rows a, int64_t m, const float *x,
                                int64_t ld, int64_t rows, int64_t K)
{
    pack(a, m, x, (const int64_t[]){ld, 1}, rows, K);
}

static void tc_vector_pack_cols(tc_rows a, int64_t m, const float *x,
                                int64_t ld, int64_t rows, int64_t K)
{
    pack(a, m, x, (const int64_t[]){1, ld}, rows, K);
}

/* ---- both classes -------------------------------------------------------- */

#define CLASS(name_, ...)                                                      \
    static void tile_##name_(float *c, int64_t m, tc_rows a, tc_lanes b,       \
                             int64_t groups)                                   \
    {                                                                          \
        tile((tc_unit)__VA_ARGS__, c, m, a, b, groups);                        \
    }
CLASS(sm80, TC_SM80)
CLASS(sm90, TC_SM90)

#define TC_OF(name_, class)                                                    \
    {                                                                          \
        .name = name_, .tile = tile_##class, .pack_rows = tc_vector_pack_rows, \
        .pack_cols = tc_vector_pack_cols, .pack_lanes = tc_vector_pack_lanes,  \
        .weights = weights, .shrink = shrink,                                  \
    }
#define TC_KERNELS(name_) {TC_OF(name_, sm80), TC_OF(name_, sm90)}
