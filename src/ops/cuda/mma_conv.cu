/* mma_conv.cu: convolution in the classes sm80 and sm90: mma_linear.cu over
 * windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/conv.c, conv_by. Blocks, warps and steps are those of
 * mma_tile.h; its rows are the windows of pixels. No window is written down:
 * 8 factors of one tap lie together in a frame, and are copied from there.
 *
 * Holds   k = (frame, u, v, channel). Zeros of padding and of NULL frames are
 *         factors as all others are. A step may end inside of a tap; only
 *         after the last one it is filled up, as a tail in mma_linear.cu.
 *         Pixels after the end read what their windows meet, columns the last
 *         one: neither is stored. */
#include "ops/cuda/mma_tile.h"
#include "ops/cuda/window.h"

/* ---- windows ------------------------------------------------------------- */

/* Windows written down, for channels that are not whole eights. */
KERNEL(windows, cuda_windows_args, ELEMENT_THREADS, 1)
{
    const int64_t eights = a.width / 8, all = a.n * eights;
    for (int64_t e = grid_thread(); e < all; e += grid_threads()) {
        const corner p = corner_of(a.of, (int)(a.first + e / eights));
        tap t = {0, 0, 0, 0};
        go_on(a.of, t, (int)(e % eights * 8));
        uint32_t two[4] = {0, 0, 0, 0};
        UNROLL
        for (int i = 0; i < 8; i++, go_on(a.of, t, 1)) {
            const bf16 *x = factor_at(a.of, p, t);
            if (x) two[i / 2] |= (uint32_t)*x << i % 2 * 16;
        }
        *(uint4 *)(a.to + 8 * e) = uint4{two[0], two[1], two[2], two[3]};
    }
}

/* ---- convolution --------------------------------------------------------- */

/* What a thread brings of every step: the 8 factors at `at` of two pixels and
 * of two rows of weights. */
struct bringer {
    corner p[2];
    const bf16 *w[2];
    tap at;
    int64_t k;
};

DEVICE bringer bringer_of(const cuda_mma_conv_args &a, int64_t K)
{
    const int row0 = blockIdx.y * TILE_ROWS, col0 = blockIdx.x * TILE_COLS;
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
    bringer b;
    UNROLL
    for (int h = 0; h < 2; h++) {
        const int64_t col = least((int64_t)col0 + r + 64 * h, a.Cout - 1);
        b.p[h] = corner_of(a, row0 + r + 64 * h);
        b.w[h] = a.w + col * K;
    }
    b.at = {0, 0, 0, 0};
    go_on(a, b.at, c);
    b.k = c;
    return b;
}

/* The next MMA_K products of all rows and columns of the tile. */
DEVICE void stage(const cuda_mma_conv_args &a, bf16 *to, bringer &b, int64_t K)
{
    to += threadIdx.x / 4 * MMA_PITCH + threadIdx.x % 4 * 8;
    UNROLL
    for (int h = 0; h < 2; h++) {
        const bf16 *x = factor_at(a, b.p[h], b.at);
        stage8(to + 64 * h * MMA_PITCH, x, x != nullptr);
        stage8(to + (TILE_ROWS + 64 * h) * MMA_PITCH, b.w[h] + b.k, b.k < K);
    }
    go_on(a, b.at, MMA_K);
    b.k += MMA_K;
}

KERNEL(mma_conv, cuda_mma_conv_args, TILE_THREADS, 2)
{
    const int64_t K = a.kt * a.kh * a.kw * a.Cin;
    bringer b = bringer_of(a, K);
    const cuda_epilogue nothing = {CUDA_PLAIN, nullptr, nullptr, 0, 0};
    mma_tile({a.y, a.b, a.Ho * a.Wo, a.Cout, nothing}, K,
             [&](bf16 *to, int) { stage(a, to, b, K); });
}
