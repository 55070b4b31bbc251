/* bf16.h: the operations that classes amx and vdp are made of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A portable statement of what matrix units do (DAZ, FTZ, nearest even): every
 * CPU gives these bits, whatever its own flush modes are. */
#ifndef TT_OPS_BF16_H
#define TT_OPS_BF16_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/fma.h"
#include "ops/frozen.h"
#include "ops/ops.h"

/* x rounded to bf16, nearest even; what is subnormal as bf16 counts as zero
 * with its sign. NaN stays NaN, large values become infinite. */
static inline float bf16_round(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    uint32_t nan = (u & 0x7fffffffu) > 0x7f800000u;
    uint32_t r = nan ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u);
    r &= (r & 0x7f800000u) ? 0xffff0000u : 0x80000000u;
    memcpy(&x, &r, 4);
    return x;
}

/* a*b + c with one rounding; a result below the normal range is a zero of its
 * sign. a and b are bf16, c is not subnormal.
 * "Below" is checked after rounding to 24 bits with unbounded exponent (x86's
 * rule): fmaf, whose last bit is coarser there, can round up to FLT_MIN what
 * this rule leaves below it. Scaled by 2^64 both round alike. Nothing that
 * matters overflows: when |r| <= FLT_MIN and r is not an exact zero, c and a*b
 * cancel almost fully, so both are below 2^-90 and a below 2^36. */
static inline float bf16_fma(float a, float b, float c)
{
    float r = fma_f32(a, b, c);
    if (!(fabsf(r) <= FLT_MIN)) return r;
    float scaled = fma_f32(a * 0x1p64f, b, c * 0x1p64f);
    return fabsf(scaled) < FLT_MIN * 0x1p64f ? copysignf(0.0f, r) : r;
}

/* A sum that comes from elsewhere, as the units read it (DAZ). */
static inline float bf16_flush(float c)
{
    return fabsf(c) < FLT_MIN ? copysignf(0.0f, c) : c;
}

/* a + b, the same. A sum of two floats that is this small is exact. */
static inline float bf16_add(float a, float b)
{
    float r = a + b;
    return fabsf(r) < FLT_MIN ? copysignf(0.0f, r) : r;
}

#endif
