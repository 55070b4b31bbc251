/* epilogue.h: what follows the sums of linear in the same kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/pointwise.c. The roundings are those of the operators
 * called one after the other; only the number between them is not stored. */
#ifndef TT_CUDA_EPILOGUE_H
#define TT_CUDA_EPILOGUE_H

#include "ops/cuda/exp.h"
#include "ops/cuda/kernel.h"

DEVICE float gelu_f32(float v)
{
    const float k = -0x1.988454p+0f, cubic = 0x1.6e4e26p-5f;
    const float u = mul_rn(fma_rn(mul_rn(cubic, mul_rn(v, v)), v, v), k);
    return div_rn(v, add_rn(1.0f, exp_f32(u)));
}

/* Is gelu_close(v) gelu_f32(v)? Its quotient must be far from the subnormal
 * numbers, its denominator neither beyond 2^64 nor 2 - 2^-23, where the
 * correction of a reciprocal can end at the wrong neighbour. */
DEVICE bool gelu_is_close(float v)
{
    return v > -7.5f && v < 0x1p60f && (v > 0x1p-22f || v < -0x1p-22f);
}

/* gelu_f32 without a branch. 2^n in one piece, since below -64 a power changes
 * nothing of 1; v / d by a reciprocal, Newton's step and two remainders, which
 * round as a division does (Markstein, IBM J. Res. Dev. 34, 1990). */
DEVICE float gelu_close(float v)
{
    const float k = -0x1.988454p+0f, cubic = 0x1.6e4e26p-5f;
    const float u = mul_rn(fma_rn(mul_rn(cubic, mul_rn(v, v)), v, v), k);
    const float c = more(u, -64.0f);
    const float shifted = exp_shifted(c);
    const float power = float_of((bits_of(shifted) << 23) + 0x3f800000u);
    const float d = add_rn(1.0f, mul_rn(exp_rest(c, shifted), power));
    float r = reciprocal_near(d);
    r = fma_rn(r, fma_rn(-d, r, 1.0f), r);
    float q = mul_rn(v, r);
    q = fma_rn(fma_rn(-d, q, v), r, q);
    return fma_rn(fma_rn(-d, q, v), r, q);
}

/* gelu_f32 of several numbers. Where one needs the division all take it, one
 * after the other: the text of it is long, and it is rare. */
template <int N> DEVICE void gelu_all(float (&v)[N])
{
    float y[N];
    bool close = true;
    UNROLL
    for (int i = 0; i < N; i++) {
        y[i] = gelu_close(v[i]);
        close = close && gelu_is_close(v[i]);
    }
    UNROLL_1
    for (int n = 0; n < N && !close; n++) {
        float x = 0.0f;
        UNROLL
        for (int i = 0; i < N; i++) x = i == n ? v[i] : x;
        x = gelu_f32(x);
        UNROLL
        for (int i = 0; i < N; i++) y[i] = i == n ? x : y[i];
    }
    UNROLL
    for (int i = 0; i < N; i++) v[i] = y[i];
}

/* v as it is, or added to x. */
DEVICE float added(const cuda_epilogue &e, float v, float x, float gate)
{
    if (e.kind == CUDA_GATE) return fma_rn(v, gate, x);
    return e.kind == CUDA_ADD ? add_rn(x, v) : v;
}

/* A sum v, its bias added, with what follows: x is the number it is added to,
 * gate its factor. */
DEVICE float followed(const cuda_epilogue &e, float v, float x, float gate)
{
    return e.kind == CUDA_GELU ? gelu_f32(v) : added(e, v, x, gate);
}

/* The same of four side by side. */
DEVICE float4 added4(const cuda_epilogue &e, float4 v, float4 x, float4 gate)
{
    return four(added(e, v.x, x.x, gate.x), added(e, v.y, x.y, gate.y),
                added(e, v.z, x.z, gate.z), added(e, v.w, x.w, gate.w));
}

/* The same with whatever follows. */
DEVICE float4 followed4(const cuda_epilogue &e, float4 v, float4 x, float4 gate)
{
    float y[4] = {v.x, v.y, v.z, v.w};
    if (e.kind == CUDA_GELU) gelu_all(y);
    return added4(e, four(y[0], y[1], y[2], y[3]), x, gate);
}

/* The gates of a row; fewer than 2^31 rows. */
DEVICE const float *gates(const cuda_epilogue &e, int row)
{
    return e.gate + (int64_t)(row / (int)e.rows) * e.stride;
}

/* y [row, col] of rows of o is v, or what follows. */
DEVICE void put(const cuda_epilogue &e, float *y, int row, int64_t col,
                int64_t o, float v)
{
    const int64_t at = row * o + col;
    float *to = e.x ? e.x + at : y + at;
    *to = followed(e, v, e.x ? *to : 0.0f,
                   e.kind == CUDA_GATE ? gates(e, row)[col] : 0.0f);
}

#endif
