/* mma_linear.cu: y = x w^T + b in the classes sm80 and sm90, and the rounding
 * of factors.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads owns 128 x 128 outputs,
 * a warp 64 x 32: four by four fragments, whose sums never leave registers.
 * While one step of MMA_K products is computed the next ones are on their way.
 *
 * Holds   k ascends in steps of 16, each output is one chain. A tail of k is
 *         filled up with zeros on both sides, which change nothing but the sign
 *         of a zero, and the + 0 at the end makes that +. Rows and columns
 *         behind the end are computed from the last one and not stored. */
#include "ops/cuda/epilogue.h"
#include "ops/cuda/mma.h"

/* ---- factors ------------------------------------------------------------- */

KERNEL(factors, cuda_factors_args, ELEMENT_THREADS, 1)
{
    const int64_t eights = a.width / 8, all = a.n * a.heads * eights;
    for (int64_t e = grid_thread(); e < all; e += grid_threads()) {
        const int64_t head = e / eights, k = e % eights * 8;
        const float *x = a.from + head / a.heads * a.stride +
                         head % a.heads * a.k;
        uint32_t two[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int64_t at = k + 2 * i;
            two[i] = two_factors(at < a.k ? x[at] : 0.0f,
                                 at + 1 < a.k ? x[at + 1] : 0.0f);
        }
        *(uint4 *)(a.to + 8 * e) = uint4{two[0], two[1], two[2], two[3]};
    }
}

/* ---- linear -------------------------------------------------------------- */

#define SIZE ((TILE_ROWS + TILE_COLS) * MMA_PITCH)    /* numbers of a stage   */

/* Products [MMA_K * step, ...) of all rows and columns of the tile. */
DEVICE void stage(const cuda_mma_linear_args &a, bf16 *to, int row0, int col0,
                  int step)
{
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
    const int64_t k = (int64_t)step * MMA_K + c;
    to += r * MMA_PITCH + c;
    UNROLL
    for (int h = 0; h < 128; h += 64) {
        const int64_t row = least((int64_t)row0 + r + h, a.n - 1);
        const int64_t col = least((int64_t)col0 + r + h, a.o - 1);
        stage8(to + h * MMA_PITCH, a.x + row * a.k + k, k < a.k);
        stage8(to + (TILE_ROWS + h) * MMA_PITCH, a.w + col * a.k + k, k < a.k);
    }
}

DEVICE void store(const cuda_mma_linear_args &a, const sums (&acc)[4][4],
                  int row0, int64_t col0)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < 4; j++)
            UNROLL
            for (int e = 0; e < 4; e++) {
                const int row = row0 + 16 * i + sum_row(l, e);
                const int64_t col = col0 + 8 * j + sum_col(l, e);
                if (row >= a.n || col >= a.o) continue;
                const float s = add_rn(acc[i][j].r[e], 0.0f);
                put(a.then, a.y, row, col, a.o, a.b ? add_rn(s, a.b[col]) : s);
            }
}

KERNEL(mma_linear, cuda_mma_linear_args, TILE_THREADS, 1)
{
    SHARED(bf16, mem);
    const int row0 = blockIdx.y * TILE_ROWS, col0 = blockIdx.x * TILE_COLS;
    const int warp = threadIdx.x / 32;
    const int row = warp / 4 * 64, col = warp % 4 * 32;
    const int steps = (int)((a.k + MMA_K - 1) / MMA_K);
    /* a warp whose outputs lie behind the end brings factors only */
    const bool live = row0 + row < a.n && col0 + col < a.o;
    sums acc[4][4];
    UNROLL
    for (int i = 0; i < 4; i++) clear(acc[i]);
    for (int s = 0; s < MMA_STAGES - 1; s++) {
        if (s < steps) stage(a, mem + s * SIZE, row0, col0, s);
        copy_commit();
    }
    for (int s = 0; s < steps; s++) {
        const int ahead = s + MMA_STAGES - 1;
        copy_wait<MMA_STAGES - 2>();
        __syncthreads();
        if (ahead < steps)
            stage(a, mem + ahead % MMA_STAGES * SIZE, row0, col0, ahead);
        copy_commit();
        const bf16 *x = mem + s % MMA_STAGES * SIZE + row * MMA_PITCH;
        const bf16 *w = mem + s % MMA_STAGES * SIZE +
                        (TILE_ROWS + col) * MMA_PITCH;
        if (live) multiply(acc, x, w);
    }
    store(a, acc, row0 + row, col0 + col);
}
