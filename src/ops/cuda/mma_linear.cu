/* mma_linear.cu: y = x w^T + b in the classes sm80 and sm90, and the rounding
 * of factors.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. Blocks, warps and steps are those of
 * mma_tile.h.
 *
 * Holds   A tail of k is filled up with zeros on both sides, which change
 *         nothing. Rows and columns past the end are computed from the last
 *         one and not stored. */
#include "ops/cuda/mma_tile.h"

/* ---- factors ------------------------------------------------------------- */

DEVICE uint32_t factors_of_two(float low, float high)
{
    return two_factors(low, high);
}

DEVICE uint32_t factors_of_two(bf16 low, bf16 high)
{
    return (uint32_t)high << 16 | low;
}

template <class NUMBER> DEVICE void fill_rows(const cuda_factors_args &a)
{
    const int64_t eights = a.width / 8, all = a.n * a.heads * eights;
    for (int64_t e = grid_thread(); e < all; e += grid_threads()) {
        const int64_t head = e / eights, k = e % eights * 8;
        const NUMBER *x = (const NUMBER *)a.from +
                          head / a.heads * a.stride + head % a.heads * a.k;
        uint32_t two[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int64_t at = k + 2 * i;
            two[i] = factors_of_two(at < a.k ? x[at] : NUMBER(),
                                    at + 1 < a.k ? x[at + 1] : NUMBER());
        }
        *(uint4 *)(a.to + 8 * e) = uint4{two[0], two[1], two[2], two[3]};
    }
}

KERNEL(factors, cuda_factors_args, ELEMENT_THREADS, 1)
{
    fill_rows<float>(a);
}

KERNEL(factors_bf16, cuda_factors_args, ELEMENT_THREADS, 1)
{
    fill_rows<bf16>(a);
}

/* ---- linear -------------------------------------------------------------- */

/* Products [MMA_K * step, ...) of all rows and columns of the tile. */
DEVICE void stage(const cuda_mma_linear_args &a, bf16 *to, int step)
{
    const int row0 = blockIdx.y * TILE_ROWS, col0 = blockIdx.x * TILE_COLS;
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

KERNEL(mma_linear, cuda_mma_linear_args, TILE_THREADS, 2)
{
    mma_tile({a.y, a.b, a.n, a.o, a.then}, a.k,
             [&](bf16 *to, int step) { stage(a, to, step); });
}
