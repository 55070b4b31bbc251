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

/* A sum v, its bias added, with what follows: x is the number it is added to,
 * gate its factor. */
DEVICE float followed(const cuda_epilogue &e, float v, float x, float gate)
{
    if (e.kind == CUDA_GELU) return gelu_f32(v);
    if (e.kind == CUDA_GATE) return fma_rn(v, gate, x);
    return e.kind == CUDA_ADD ? add_rn(x, v) : v;
}

/* The same of four side by side. */
DEVICE float4 followed4(const cuda_epilogue &e, float4 v, float4 x, float4 gate)
{
    return four(followed(e, v.x, x.x, gate.x), followed(e, v.y, x.y, gate.y),
                followed(e, v.z, x.z, gate.z), followed(e, v.w, x.w, gate.w));
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
