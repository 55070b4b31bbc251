/* tile.h: the products of a tile in class f32: linear, conv, logits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CUDA_TILE_H
#define TT_CUDA_TILE_H

#include "ops/cuda/kernel.h"

/* Where the outputs of a thread lie in a tile: rows 8 apart, columns in two
 * groups of four, so that what 8 lanes read at once lies in different banks. */
DEVICE int tile_row(int i) { return 8 * i; }
DEVICE int tile_col(int j) { return (j & 3) + 16 * (j >> 2); }

/* Number e of four. */
DEVICE float entry(float4 v, int e)
{
    return e == 0 ? v.x : e == 1 ? v.y : e == 2 ? v.z : v.w;
}

/* Four products of R rows of x, which lie XP apart. */
template <int XP, int R> DEVICE void fetch(float4 (&p)[R], const float *x)
{
    UNROLL
    for (int i = 0; i < R; i++) p[i] = load4(x + tile_row(i) * XP);
}

/* The chains of R x 8 outputs go on over four products of rows of x and w. */
template <int WP, int R>
DEVICE void four_products(float (&acc)[R][8], const float4 (&p)[R],
                          const float *w)
{
    UNROLL
    for (int j = 0; j < 8; j++) {
        const float4 q = load4(w + tile_col(j) * WP);
        UNROLL
        for (int e = 0; e < 4; e++)
            UNROLL
            for (int i = 0; i < R; i++)
                acc[i][j] = fma_rn(entry(p[i], e), entry(q, e), acc[i][j]);
    }
}

/* The same over K products. */
template <int K, int XP, int WP, int R>
DEVICE void products(float (&acc)[R][8], const float *x, const float *w)
{
    UNROLL
    for (int k = 0; k < K; k += 4) {
        float4 p[R];
        fetch<XP>(p, x + k);
        four_products<WP>(acc, p, w + k);
    }
}

#endif
