/* wgmma_linear.cu: y = x w^T + b in class sm90, by the instructions that only
 * sm_90 has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads owns 128 x 128 outputs,
 * each of its two warpgroups 64 x 128, whose sums never leave registers. Of the
 * WGMMA_STAGES steps in shared memory one is multiplied, one may still be, and
 * the others are on their way.
 *
 * Holds   as mma_linear.cu: k ascends in steps of 16. */
#include "ops/cuda/epilogue.h"
#include "ops/cuda/wgmma.h"

#define SIZE ((TILE_ROWS + TILE_COLS) * SWIZZLED_K)   /* numbers of a stage   */
#define AHEAD (WGMMA_STAGES - 2)

#if HAS_WGMMA
/* Products [64 step, 64 step + 64) of all rows and columns of the tile. */
DEVICE void stage(const cuda_mma_linear_args &a, bf16 *to, int step)
{
    const int chunk = threadIdx.x % 8;
    const int64_t k = (int64_t)step * SWIZZLED_K + 8 * chunk;
    UNROLL
    for (int h = 0; h < TILE_ROWS; h += TILE_THREADS / 8) {
        const int r = threadIdx.x / 8 + h;
        const int64_t row = least((int64_t)blockIdx.y * TILE_ROWS + r, a.n - 1);
        const int64_t col = least((int64_t)blockIdx.x * TILE_COLS + r, a.o - 1);
        stage8(to + swizzled(r, chunk), a.x + row * a.k + k, k < a.k);
        stage8(to + swizzled(TILE_ROWS + r, chunk), a.w + col * a.k + k,
               k < a.k);
    }
}

/* The sums of warpgroup rows [row0, row0 + 64) into y. */
DEVICE void store(const cuda_mma_linear_args &a, const float (&acc)[64],
                  int row0)
{
    const int l = threadIdx.x & 31, warp = threadIdx.x / 32 % 4;
    UNROLL
    for (int i = 0; i < 64; i++) {
        const int row = row0 + 16 * warp + sum_row(l, i % 4);
        const int64_t col = (int64_t)blockIdx.x * TILE_COLS + i / 4 * 8 +
                            sum_col(l, i % 4);
        if (row >= a.n || col >= a.o) continue;
        const float s = add_rn(acc[i], 0.0f);
        put(a.then, a.y, row, col, a.o, a.b ? add_rn(s, a.b[col]) : s);
    }
}
#endif

KERNEL(wgmma_linear, cuda_mma_linear_args, TILE_THREADS, 1)
{
#if HAS_WGMMA
    SHARED(bf16, mem);
    const int own = threadIdx.x / 128 * 64;       /* rows of the warpgroup    */
    const int steps = (int)((a.k + SWIZZLED_K - 1) / SWIZZLED_K);
    float acc[64];
    UNROLL
    for (int i = 0; i < 64; i++) acc[i] = 0.0f;
    for (int s = 0; s < AHEAD; s++) {
        if (s < steps) stage(a, mem + s * SIZE, s);
        copy_commit();
    }
    for (int s = 0; s < steps; s++) {
        const int next = s + AHEAD;
        copy_wait<AHEAD - 1>();
        wgmma_show();
        __syncthreads();
        if (next < steps) stage(a, mem + next % WGMMA_STAGES * SIZE, next);
        copy_commit();
        const bf16 *x = mem + s % WGMMA_STAGES * SIZE + own * SWIZZLED_K;
        const bf16 *w = mem + s % WGMMA_STAGES * SIZE + TILE_ROWS * SWIZZLED_K;
        wgmma_begin();
        UNROLL
        for (int k = 0; k < SWIZZLED_K; k += 16)
            wgmma(acc, matrix_at(x, k), matrix_at(w, k));
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    wgmma_end(acc);
    store(a, acc, blockIdx.y * TILE_ROWS + own);
#endif
}
