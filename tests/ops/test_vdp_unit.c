/* test_vdp_unit.c: is class vdp what VDPBF16PS of this CPU computes?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: test_vdp_unit [PRODUCTS]     (make check-vdp: 10^9, else 2 * 10^7)
 *
 * The chain of src/ops/golden/vdp.c against the instruction, bit by bit, from
 * c to c: 16 chains side by side, which go on for eight pairs. The values are
 * chosen to hurt; counters say that they do, so that every part of the rule is
 * tested: a rule without that part gives other results. NaN equals NaN.
 * Sources  Intel's manual (Instruction Set Reference, VDPBF16PS): the odd
 *          element first, then the even one, each a fused multiply-add with
 *          nearest even; subnormal inputs are zero, subnormal results flushed;
 *          MXCSR neither read nor written. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/golden/golden.h"

/* On every CPU: the odd product comes first, else 2^24 + 1 is 2^24. */
static void test_known(void)
{
    const float a[] = {1, -0x1p12f}, b[] = {1, 0x1p12f};
    const float c = golden_vdp.chain(0x1p24f, a, 1, b, 2);
    expect(c == 1, "2^24 + (1 - 2^24), the odd product first: %a", c);
}

#endif

#if defined(TT_HAVE_AVX512BF16) && !defined(TT_REAL_DOUBLE)

#include <immintrin.h>

#include "ops/exact/bf16.h"

#define UNIT __attribute__((target("avx512f,avx512bf16")))

enum { LANES = 16, PAIRS = 8 };
enum { ORDINARY, WIDE, SUBNORMAL, SMALL, HAIR, HUGE_VALUES, SPECIAL, ANY,
       KINDS };
static const char *const kind_names[KINDS] = {
    "ordinary", "wide", "subnormal", "small", "hair-thin", "huge", "special",
    "any bits"};

static uint64_t state = 88172645463325252u;

static uint32_t bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static uint16_t as_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)(u >> 16);
}

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* Sign, `exponent` and seven random bits of significand. */
static uint16_t number(int exponent)
{
    const uint32_t u = bits();
    return (uint16_t)((u & 0x807fu) | (uint32_t)(exponent + 127) << 7);
}

/* A factor; `side` tells the two of a product apart. */
static uint16_t factor(int kind, int side)
{
    static const float hair[2][4] = {
        {0x1p-63f, 0x1p-100f, -0x1p-100f, -0x1.8p-100f},
        {0x1p-63f, 0x1p-50f, 0x1p-51f, 0x1.02p-51f},
    };
    static const float special[] = {INFINITY, -INFINITY, NAN, -0.0f, 0, 1};
    const uint32_t u = bits();
    switch (kind) {
    case WIDE: return number((int)(u % 150) - 90);
    case SUBNORMAL: return u % 3 ? u & 0x807f : number((int)(u % 254) - 126);
    case SMALL: return number((int)(u % 12) - (side ? 70 : 62));
    case HAIR: return u % 4 ? as_bf16(hair[side][u >> 30]) : 0;
    case HUGE_VALUES: return number((int)(u % 70) + 58);
    case SPECIAL: return u % 4 ? number((int)(u >> 28) - 8)
                               : as_bf16(special[u / 4 % 6]);
    case ANY: return (uint16_t)(u >> 8);
    default: return number((int)(u % 8) - 7);
    }
}

/* What a chain goes on from. */
static float start(int kind)
{
    const uint32_t u = bits();
    switch (kind) {
    case HAIR: return u % 4 ? copysignf(FLT_MIN, u % 8 < 4 ? 1.0f : -1.0f) : 0;
    case SUBNORMAL: return from_bits(u & 0x80ffffffu);
    case ANY: return from_bits(u);
    case SPECIAL: return u % 8 ? -0.0f : INFINITY;
    default: return 0;
    }
}

/* One step of 16 chains: c = VDPBF16PS(c, a, b). */
UNIT static void step(float *c, const uint16_t *a, const uint16_t *b)
{
    const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    _mm512_storeu_ps(c, _mm512_dpbf16_ps(_mm512_loadu_ps(c), (__m512bh)x,
                                         (__m512bh)y));
}

static bool same(float x, float y)
{
    return !memcmp(&x, &y, 4) || (isnan(x) && isnan(y));
}

/* Rules that lack a part: how often each gives something else. */
enum { EVEN_FIRST, NO_FLUSH, FLUSH_AFTER_FMAF, NO_FLUSH_BETWEEN, ROUNDED,
       OTHERS };
static const char *const other_names[OTHERS] = {
    "the even product first", "no flush", "a flush of what fmaf gives",
    "no flush between the products", "products rounded"};
static int64_t differs[OTHERS];

static float naive(float a, float b, float c)
{
    const float r = fmaf(a, b, c);
    return fabsf(r) < FLT_MIN ? copysignf(0, r) : r;
}

static void count_others(float c, const float *a, const float *b, float right)
{
    c = bf16_flush(c);
    const float other[OTHERS] = {
        bf16_fma(a[1], b[1], bf16_fma(a[0], b[0], c)),
        fmaf(a[0], b[0], fmaf(a[1], b[1], c)),
        naive(a[0], b[0], naive(a[1], b[1], c)),
        bf16_fma(a[0], b[0], fmaf(a[1], b[1], c)),
        bf16_flush(a[0] * b[0] + bf16_flush(a[1] * b[1] + c)),
    };
    for (int i = 0; i < OTHERS; i++) differs[i] += !same(other[i], right);
}

/* PAIRS steps of 16 chains; how many results differ. */
static int64_t chains(int kind, bool count)
{
    float c[LANES], want[LANES];
    int64_t wrong = 0;
    for (int i = 0; i < LANES; i++) c[i] = want[i] = start(kind);
    for (int k = 0; k < PAIRS; k++) {
        uint16_t a[2 * LANES], b[2 * LANES];
        for (int i = 0; i < 2 * LANES; i++) {
            a[i] = factor(kind, 0);
            b[i] = factor(kind, 1);
        }
        step(c, a, b);
        for (int i = 0; i < LANES; i++) {
            float x[2], y[2];
            for (int j = 0; j < 2; j++) {
                x[j] = golden_vdp.factor(tt_f32_from_bf16(a[2 * i + j]));
                y[j] = golden_vdp.factor(tt_f32_from_bf16(b[2 * i + j]));
            }
            const float before = want[i];
            want[i] = golden_vdp.chain(before, x, 1, y, 2);
            if (count) count_others(before, x, y, want[i]);
            if (same(c[i], want[i])) continue;
            if (!wrong++)
                expect(false, "%s: %a + (%a %a, %a %a): %a, the unit gives %a",
                       kind_names[kind], (double)before, (double)x[0],
                       (double)y[0], (double)x[1], (double)y[1],
                       (double)want[i], (double)c[i]);
            c[i] = want[i];
        }
    }
    return wrong;
}

/* The conversions of the same extension round as the class does but for one
 * range: they take a subnormal float for zero before they round. */
UNIT static void test_rounding(uint32_t stride)
{
    int64_t wrong = 0, edge = 0;
    for (uint64_t u = 0; u < 1ull << 32; u += 16 * (uint64_t)stride) {
        float x[16];
        uint16_t y[16];
        for (uint32_t i = 0; i < 16; i++)
            x[i] = from_bits((uint32_t)u + i * stride);
        const __m256bh h = _mm512_cvtneps_pbh(_mm512_loadu_ps(x));
        memcpy(y, &h, sizeof y);
        for (int i = 0; i < 16; i++) {
            const bool rounds_up = fabsf(x[i]) < FLT_MIN &&
                                   fabsf(bf16_round(x[i])) == FLT_MIN;
            const float got = tt_f32_from_bf16(y[i]);
            edge += rounds_up;
            wrong += !same(got, rounds_up ? copysignf(0, x[i])
                                          : bf16_round(x[i]));
        }
    }
    expect(wrong == 0 && edge > 0, "VCVTNEPS2BF16: %lld differences, %lld of "
           "the range below FLT_MIN", (long long)wrong, (long long)edge);
}

static void test_unit(int64_t products)
{
    const int64_t each = products / (KINDS * LANES * PAIRS * 2) + 1;
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t wrong = 0;
        for (int64_t i = 0; i < each; i++) wrong += chains(kind, i < 20000);
        expect(wrong == 0, "%s: %lld of %lld results differ", kind_names[kind],
               (long long)wrong, (long long)(each * LANES * PAIRS));
    }
    for (int i = 0; i < OTHERS; i++)
        expect(differs[i] > 1000, "%s: the values show it %lld times",
               other_names[i], (long long)differs[i]);
    printf("class vdp is VDPBF16PS in %lld products of %d kinds\n",
           (long long)(each * KINDS * LANES * PAIRS * 2), KINDS);
}

int main(int argc, char **argv)
{
    const double products = argc > 1 ? atof(argv[1]) : 2e7;
    test_begin("ops/vdp_unit");
    test_known();
    if (vdp_present()) {
        test_unit((int64_t)products);
        test_rounding(argc > 1 ? 1 : 251);
    } else {
        skip("this CPU has no VDPBF16PS");
    }
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/vdp_unit");
#ifdef TT_REAL_DOUBLE
    expect(!tt_ops_class(ctx->ops, TT_CLASS_VDP),
           "a double build has class f32 alone");
#else
    (void)ctx;
    test_known();
    skip("this build has no VDPBF16PS");
#endif
    return test_end();
}

#endif
