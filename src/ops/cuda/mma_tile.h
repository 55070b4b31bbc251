/* mma_tile.h: the outputs of a block of linear and conv on tensor cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of threads owns 128 x 128 outputs, a warp 64 x 32: four by four
 * fragments, whose sums stay in registers until they are done. While one step
 * of MMA_K products is computed the next ones are on their way.
 *
 * Holds   k ascends in steps of 16, each output is one chain. */
#ifndef TT_CUDA_MMA_TILE_H
#define TT_CUDA_MMA_TILE_H

#include "ops/cuda/rows.h"

/* The chains of 64 x 32 outputs go on over MMA_K products of x and w. */
DEVICE void multiply(sums (&acc)[4][4], const bf16 *x, const bf16 *w)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int k = 0; k < MMA_K; k += 16) {
        factors_of p[4], q[2];
        UNROLL
        for (int i = 0; i < 4; i++)
            p[i] = load4x(x + (16 * i + a_row(l)) * MMA_PITCH + k + a_col(l));
        UNROLL
        for (int j = 0; j < 2; j++)
            q[j] = load4x(w + (16 * j + b_row(l)) * MMA_PITCH + k + b_col(l));
        UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
            for (int j = 0; j < 4; j++)
                mma(acc[i][j], p[i], q[j / 2].r[j % 2 * 2],
                    q[j / 2].r[j % 2 * 2 + 1]);
    }
}

/* The block's tile of y, of K products each. stage(to, step) brings products
 * [MMA_K * step, ...) of its rows and columns to shared memory, a step after
 * the other. */
template <class STAGE>
DEVICE void mma_tile(const outputs &y, int64_t K, STAGE stage)
{
    SHARED(bf16, mem);
    const int row0 = blockIdx.y * TILE_ROWS, col0 = blockIdx.x * TILE_COLS;
    const int size = (TILE_ROWS + TILE_COLS) * MMA_PITCH;     /* of a stage   */
    const int warp = threadIdx.x / 32;
    const int row = warp / 4 * 64, col = warp % 4 * 32;
    const int steps = (int)((K + MMA_K - 1) / MMA_K);
    /* a warp whose outputs lie after the end brings factors only */
    const bool live = row0 + row < y.n && col0 + col < y.o;
    sums acc[4][4];
    UNROLL
    for (int i = 0; i < 4; i++) clear(acc[i]);
    for (int s = 0; s < MMA_STAGES - 1; s++) {
        if (s < steps) stage(mem + s * size, s);
        copy_commit();
    }
    for (int s = 0; s < steps; s++) {
        const int ahead = s + MMA_STAGES - 1;
        copy_wait<MMA_STAGES - 2>();
        __syncthreads();
        if (ahead < steps) stage(mem + ahead % MMA_STAGES * size, ahead);
        copy_commit();
        const bf16 *x = mem + s % MMA_STAGES * size + row * MMA_PITCH;
        const bf16 *w = mem + s % MMA_STAGES * size +
                        (TILE_ROWS + col) * MMA_PITCH;
        if (live) multiply(acc, x, w);
    }
    __syncthreads();                   /* all factors: sums take their place  */
    float *const sum = (float *)mem;
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < 4; j++)
            put_sums(sum + (row + 16 * i) * SUM_PITCH + col + 8 * j, acc[i][j]);
    __syncthreads();
    put_rows(y, sum + 16 * warp * SUM_PITCH, row0 + 16 * warp,
             (int64_t)blockIdx.x * TILE_COLS);
}

#endif
