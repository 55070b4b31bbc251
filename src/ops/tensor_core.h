/* tensor_core.h: what one step of a tensor core adds up, and the exponential
 * of the classes sm80 and sm90.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A portable statement with integers: src/ops/golden/tensor_core.md.
 * Sources  sm90: an H100, in 3,840,000 sums of 16 kinds; an H200, in 10^8 sums
 *          of each instruction (tools/gpu/steps.cu). sm80: the models of Xie et
 *          al., arXiv 2511.10909 (MMA-Sim 2.1.1), and of Khattak and Mikaitis,
 *          arXiv 2512.07004. */
#ifndef TT_OPS_TENSOR_CORE_H
#define TT_OPS_TENSOR_CORE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/fma.h"
#include "ops/frozen.h"

#define TC_LOG2E 0x1.715476p+0f

/* A kind of tensor core: products of one step, fraction bits that they keep,
 * the least exponent that the step goes by. */
typedef struct tc_unit {
    int block, bits, least;
} tc_unit;
static const tc_unit tc_sm80 = TC_SM80, tc_sm90 = TC_SM90;

static inline uint32_t tc_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float tc_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* x rounded to bf16, nearest even. Subnormal numbers stay what they are. */
static inline float tc_factor(float x)
{
    uint32_t u = tc_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return tc_float(0x7fff0000u);
    return tc_float((u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u);
}

/* ---- one step ------------------------------------------------------------ */

/* x = *m * 2^(*e - 23). A zero and a subnormal number have exponent -126. */
static inline void tc_split(float x, int64_t *m, int *e)
{
    uint32_t u = tc_bits(x), field = u >> 23 & 255u;
    int64_t size = (int64_t)(u & 0x7fffffu) + (field ? 0x800000 : 0);
    *m = u >> 31 ? -size : size;
    *e = (int)(field ? field : 1) - 127;
}

/* s * 2^e cut towards zero to a float; beyond the largest one it is infinite.
 */
static inline float tc_cut(int64_t s, int e)
{
    int64_t m = s < 0 ? -s : s;
    for (; m >= 0x1000000 || e < -149; e++) m >>= 1;
    float x = ldexpf((float)m, e);
    return s < 0 ? -x : x;
}

/* tc(a, b, c): c plus n <= unit.block products of bf16 numbers, a[k * step]
 * times b[k]. Products left out of a whole block count as zeros, which change
 * nothing. */
static inline float tc_step(tc_unit unit, float c, const float *a, int64_t step,
                            const float *b, int n)
{
    int64_t m[TC_MAX_BLOCK + 1], ma, mb, sum = 0;
    int e[TC_MAX_BLOCK + 1], ea, eb, top = unit.least;
    float special = isfinite(c) ? 0 : c;
    tc_split(c, &m[n], &e[n]);
    m[n] *= 0x800000;                   /* every term is m * 2^(e - 46)       */
    for (int k = 0; k < n; k++) {
        if (!isfinite(a[k * step]) || !isfinite(b[k]))
            special += a[k * step] * b[k];
        tc_split(a[k * step], &ma, &ea);
        tc_split(b[k], &mb, &eb);
        m[k] = ma * mb;
        e[k] = ea + eb;
    }
    if (isnan(special)) return tc_float(0x7fffffffu);
    if (isinf(special)) return special;
    for (int k = 0; k <= n; k++)
        if (m[k] && e[k] > top) top = e[k];
    for (int k = 0; k <= n; k++) {
        int drop = 46 - unit.bits + top - e[k];
        if (m[k] && drop < 63) sum += m[k] / ((int64_t)1 << drop);
    }
    return tc_cut(sum, top - unit.bits) + 0;    /* -0 + 0 = +0                */
}

/* c and n products in steps of whole blocks, k ascending. */
static inline float tc_chain(tc_unit unit, float c, const float *a,
                             int64_t step, const float *b, int64_t n)
{
    for (int64_t k = 0; k < n; k += unit.block)
        c = tc_step(unit, c, a + k * step, step, b + k,
                    (int)(n - k < unit.block ? n - k : unit.block));
    return c;
}

/* ---- weights of attention ------------------------------------------------ */

/* Exponents are multiples of 2^-10, relative to an integer m. So weights have
 * 1024 significands, and none of those is within 2^-19 of itself of a midpoint
 * of two bf16 numbers: whatever computes 2^x with a relative error of at most
 * 2^-20 rounds to these weights. */
#define TC_TO_QUANTUM 0x1.8p13f       /* added: rounds to a multiple of 2^-10 */
#define TC_TO_INTEGER 0x1.8p23f       /* added: rounds to an integer          */
#define TC_LEAST_MAX (-0x1p22f)       /* m before the first key               */
#define TC_HIDDEN (-0x1p20f)          /* the logit of a key that is hidden    */

/* The integer that exponents are relative to: the larger one of m and the
 * largest logit of a block times scale, rounded. scale > 0. */
static inline float tc_max(float m, float top, float scale)
{
    const float n = fma_f32(top, scale, TC_TO_INTEGER) - TC_TO_INTEGER;
    return n > m ? n : m;
}

/* 2^(before - m), what sums before a block are multiplied by; +0 below 2^-126.
 * The exponent's field of a float is in the low bits of the sum. */
static inline float tc_alpha(float before, float m)
{
    const float e = before - m;
    return tc_float(tc_bits((e > -127 ? e : -127) + (TC_TO_INTEGER + 127))
                    << 23);
}

/* 2^x correctly rounded to bf16 for multiples x of 2^-10; +0 below -126.
 * The Taylor polynomial of degree 10 has an error below 2^-40. */
static inline float tc_exp2(float x)
{
    if (x < -126) return 0;
    if (!(x < 128)) return x + INFINITY;         /* NaN stays NaN             */
    const double n = rint((double)x), f = (x - n) * 0x1.62e42fefa39efp-1;
    double p = 1;
    for (int k = 10; k > 0; k--) p = 1 + p * f / k;
    return tc_factor((float)ldexp(p, (int)n));
}

/* The weight of logit z, a bf16 number. */
static inline float tc_weight(float z, float scale, float m)
{
    return tc_exp2(fma_f32(z, scale, TC_TO_QUANTUM - m) - TC_TO_QUANTUM);
}

#endif
