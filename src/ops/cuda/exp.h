/* exp.h: the float exponential, as core/mathfn.h has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The same operations in the same order; the reasons stand there. */
#ifndef TT_CUDA_EXP_H
#define TT_CUDA_EXP_H

#include "ops/cuda/kernel.h"

/* n = rint(c / ln 2) and 1.5 * 2^23: n in the low bits. */
DEVICE float exp_shifted(float c)
{
    return fma_rn(c, 1.44269502e+00f, 12582912.0f);
}

/* e^c / 2^n */
DEVICE float exp_rest(float c, float shifted)
{
    const float n = add_rn(shifted, -12582912.0f);
    float r = fma_rn(n, -0x1.62e400p-1f, c);
    r = fma_rn(n, -0x1.7f7d1cp-20f, r);
    float p = 2.48015873e-5f;
    p = fma_rn(p, r, 1.98412698e-4f);
    p = fma_rn(p, r, 1.38888889e-3f);
    p = fma_rn(p, r, 8.33333333e-3f);
    p = fma_rn(p, r, 4.16666667e-2f);
    p = fma_rn(p, r, 1.66666667e-1f);
    p = fma_rn(p, r, 0.5f);
    p = fma_rn(p, mul_rn(r, r), r);
    return add_rn(1.0f, p);
}

DEVICE float exp_f32(float x)
{
    float c = x;
    c = c > 89.0f ? 89.0f : c;
    c = c < -104.0f ? -104.0f : c;
    const float shifted = exp_shifted(c), p = exp_rest(c, shifted);
    int32_t k = (int32_t)(bits_of(shifted) - 0x4b400000u);
    k = c != c ? 0 : k;
    const int32_t k1 = k >> 1, k2 = k - k1;
    const float s1 = float_of((uint32_t)(k1 + 127) << 23);
    const float s2 = float_of((uint32_t)(k2 + 127) << 23);
    return mul_rn(mul_rn(p, s1), s2);
}

#endif
