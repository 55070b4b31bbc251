/* blocks.cu: factors in the blocks that wgmma reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of threads writes one block of factors, a thread 8 factors of a row
 * at a time. */
#include "ops/cuda/wgmma.h"

/* get(row, k): factors [k, k + 8) of a row, zeros from a.k on. */
template <class GET> DEVICE void fill(const cuda_blocks_args &a, GET get)
{
    const int row_of = (int)(a.k > BLOCK_K ? (a.k + BLOCK_K - 1) / BLOCK_K : 1);
    const int c = threadIdx.x % 8, first = threadIdx.x / 8;
    const int64_t row0 = (int64_t)((int)blockIdx.x / row_of) * BLOCK_ROWS;
    const int64_t k = (int64_t)((int)blockIdx.x % row_of) * BLOCK_K + 8 * c;
    bf16 *const to = a.to + (int64_t)blockIdx.x * BLOCK_FACTORS;
    UNROLL
    for (int r = first; r < first + BLOCK_ROWS; r += BLOCKS_THREADS / 8)
        store16(to + swizzled(r, c),
                row0 + r < a.n ? get(row0 + r, k) : uint4{0, 0, 0, 0});
}

/* Are 8 numbers of `size` bytes read at once, wherever they begin? */
DEVICE bool whole(const cuda_blocks_args &a, int size)
{
    return a.k % 8 == 0 && ((uintptr_t)a.from | a.stride * size) % 16 == 0;
}

KERNEL(blocks, cuda_blocks_args, BLOCKS_THREADS, 1)
{
    const float *const from = (const float *)a.from;
    const bool at_once = whole(a, 4);
    fill(a, [&](int64_t row, int64_t k) {
        const float *x = from + row * a.stride + k;
        if (at_once && k < a.k) return eight_of(load4(x), load4(x + 4));
        float v[8];
        UNROLL
        for (int i = 0; i < 8; i++) v[i] = k + i < a.k ? x[i] : 0.0f;
        return eight_of(four(v[0], v[1], v[2], v[3]),
                        four(v[4], v[5], v[6], v[7]));
    });
}

KERNEL(blocks_bf16, cuda_blocks_args, BLOCKS_THREADS, 1)
{
    const bf16 *const from = (const bf16 *)a.from;
    const bool at_once = whole(a, 2);
    fill(a, [&](int64_t row, int64_t k) {
        const bf16 *x = from + row * a.stride + k;
        if (at_once && k < a.k) return load16(x);
        uint32_t v[4] = {0, 0, 0, 0};
        UNROLL
        for (int i = 0; i < 8; i++)
            if (k + i < a.k) v[i / 2] |= (uint32_t)x[i] << i % 2 * 16;
        return uint4{v[0], v[1], v[2], v[3]};
    });
}
