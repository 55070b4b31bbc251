/* mma.h: what linear, convolution and attention on tensor cores share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CUDA_MMA_H
#define TT_CUDA_MMA_H

#include "ops/cuda/kernel.h"

/* Which of 16 x 16 factors lane l brings to load4x: rows of a; rows that are
 * columns of b, two b at once. */
DEVICE int a_row(int l) { return l % 16; }
DEVICE int a_col(int l) { return l / 16 * 8; }
DEVICE int b_row(int l) { return l % 8 + l / 16 * 8; }
DEVICE int b_col(int l) { return l / 8 % 2 * 8; }

/* Row and column of number e of a lane's sums. */
DEVICE int sum_row(int l, int e) { return l / 4 + e / 2 * 8; }
DEVICE int sum_col(int l, int e) { return l % 4 * 2 + e % 2; }

/* 8 factors of global memory on their way, or zeros. */
DEVICE void stage8(bf16 *to, const bf16 *from, bool there)
{
    if (there) copy16(to, from);
    else zero16(to);
}

template <int N> DEVICE void clear(sums (&s)[N])
{
    UNROLL
    for (int i = 0; i < N; i++)
        UNROLL
        for (int e = 0; e < 4; e++) s[i].r[e] = 0.0f;
}

#endif
