/* window.h: where the factors of a convolution's window lie.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/conv.c, conv_by; k = (frame, u, v, channel). */
#ifndef TT_CUDA_WINDOW_H
#define TT_CUDA_WINDOW_H

#include "ops/cuda/mma.h"

/* The first row and column that the window of a pixel reads. */
struct corner { int i, j; };

DEVICE corner corner_of(const cuda_mma_conv_args &a, int pixel)
{
    const int wo = (int)a.Wo, stride = (int)a.stride;
    return {pixel / wo * stride - (int)a.pad_top,
            pixel % wo * stride - (int)a.pad_left};
}

/* A number of a window; behind the last one frame is kt or more. */
struct tap { int frame, u, v, channel; };

/* The number n further on. */
DEVICE void go_on(const cuda_mma_conv_args &a, tap &t, int n)
{
    for (t.channel += n; t.channel >= (int)a.Cin; t.channel -= (int)a.Cin) {
        if (++t.v < (int)a.kw) continue;
        t.v = 0;
        if (++t.u < (int)a.kh) continue;
        t.u = 0;
        t.frame++;
    }
}

/* The numbers of a tap's frame, of its first pixel; NULL: they are 0. */
DEVICE const bf16 *frame_at(const cuda_mma_conv_args &a, tap t)
{
    if (t.frame >= (int)a.kt || !a.frame[t.frame]) return nullptr;
    return a.frame[t.frame] + t.channel;
}

/* The pixel that a tap of the window at p meets, as in ops/gather.h; -1: none.
 */
DEVICE int pixel_at(const cuda_mma_conv_args &a, corner p, tap t)
{
    const int row = p.i + t.u, col = p.j + t.v;
    const int twice = (int)a.up - 1;                 /* up is 1 or 2          */
    if (row < 0 || row >= (int)a.Hi << twice ||
        col < 0 || col >= (int)a.Wi << twice)
        return -1;
    return (row >> twice) * (int)a.Wi + (col >> twice);
}

/* Where a number of the window at p lies; NULL: it is 0. */
DEVICE const bf16 *factor_at(const cuda_mma_conv_args &a, corner p, tap t)
{
    const bf16 *x = frame_at(a, t);
    const int pixel = pixel_at(a, p, t);
    return x && pixel >= 0 ? x + pixel * a.Cin : nullptr;
}

#endif
