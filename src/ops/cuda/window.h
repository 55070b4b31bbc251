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

/* A number of a window; after the last one frame is kt or more. */
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

/* Is it of no frame, or of one that is NULL? */
DEVICE bool no_frame(const cuda_mma_conv_args &a, tap t)
{
    return t.frame >= (int)a.kt || !a.frame[t.frame];
}

/* Is there no such row or column in the frames, 1 or 2 times as large? */
DEVICE bool outside(const cuda_mma_conv_args &a, int row, int col)
{
    const int twice = (int)a.up - 1;
    return row < 0 || col < 0 || row >= (int)a.Hi << twice ||
           col >= (int)a.Wi << twice;
}

/* Where a number of the window at p lies, as in ops/gather.h; NULL: it is 0. */
DEVICE const bf16 *factor_at(const cuda_mma_conv_args &a, corner p, tap t)
{
    const int row = p.i + t.u, col = p.j + t.v, twice = (int)a.up - 1;
    if (no_frame(a, t) || outside(a, row, col)) return nullptr;
    return a.frame[t.frame] +
           ((row >> twice) * a.Wi + (col >> twice)) * a.Cin + t.channel;
}

/* The same without its frame: which pixel, or -1. */
DEVICE int pixel_at(const cuda_mma_conv_args &a, corner p, tap t)
{
    const int row = p.i + t.u, col = p.j + t.v, twice = (int)a.up - 1;
    if (outside(a, row, col)) return -1;
    return (row >> twice) * (int)a.Wi + (col >> twice);
}

#endif
