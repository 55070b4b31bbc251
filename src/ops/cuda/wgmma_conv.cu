/* wgmma_conv.cu: convolution in class sm90, by the instructions that only sm_90
 * has: wgmma_linear.cu over windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/conv.c, conv_by. A block of threads owns 256 pixels and
 * 96 or 192 channels, each of two consumer warpgroups 128 of the pixels. Their
 * sums stay in registers until they are done. The producer warpgroup copies
 * windows, 8 factors at a time, to the swizzled places that a block would
 * have; weights come in blocks.
 *
 * Holds   k = (frame, u, v, channel) ascends in steps of 16, each output is one
 *         chain. Past the last tap all factors are zeros. Sums of pixels and
 *         channels past the end are not stored. */
#include "ops/cuda/wgmma.h"
#include "ops/cuda/window.h"

#if HAS_WGMMA
#define ROWS WGMMA_CONV_ROWS
#define STAGES WGMMA_CONV_STAGES
#define STAGE(COLS) ((ROWS + COLS) * BLOCK_K)
#define PRODUCERS 128                    /* the last threads of a block       */
#define CONSUMERS (WGMMA_CONV_THREADS - PRODUCERS)

/* Step s lies at place s % STAGES, for the turn s / STAGES. */
DEVICE int place(int s) { return s % STAGES; }
DEVICE int turn(int s) { return s / STAGES; }

/* Stages in shared memory, a step's factors of pixels and then its weights; the
 * barriers of full and of empty stages; the window of each pixel. */
struct places {
    bf16 *mem;
    arrivals *full, *empty;
    corner *windows;
};

template <int COLS> DEVICE places lay_out()
{
    SHARED(bf16, mem);
    arrivals *const first = (arrivals *)(mem + STAGES * STAGE(COLS));
    return {mem, first, first + STAGES, (corner *)(first + 2 * STAGES)};
}

DEVICE int steps_of(const cuda_mma_conv_args &a)
{
    return (int)((a.kt * a.kh * a.kw * a.Cin + BLOCK_K - 1) / BLOCK_K);
}

/* ---- factors ------------------------------------------------------------- */

/* Weights of step s, of the tile's channels, by one thread. Their rows lie in
 * parts of blocks of 128. */
template <int COLS>
DEVICE void copy_weights(const cuda_mma_conv_args &a, bf16 *to, int s,
                         arrivals *full)
{
    const int first = blockIdx.x * COLS, steps = steps_of(a);
    const int rows = ((int)a.Cout + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    const int end = least(first + COLS, rows);
    arrive_and(full, (end - first) * BLOCK_K * 2);
    for (int row = first, next; row < end; row = next) {
        const int64_t block = (int64_t)(row / BLOCK_ROWS) * steps + s;
        next = least((row / BLOCK_ROWS + 1) * BLOCK_ROWS, end);
        copy_block(to + (row - first) * BLOCK_K,
                   a.w + block * BLOCK_FACTORS + row % BLOCK_ROWS * BLOCK_K,
                   (next - row) * BLOCK_K * 2, full);
    }
}

/* 8 factors of each window from the tap `at` on: 8 threads a window, 16 windows
 * at a time. All addresses come first, so that they do not wait for copies. */
DEVICE void copy_pixels(const cuda_mma_conv_args &a, const places &p, bf16 *to,
                        tap at)
{
    const int t = threadIdx.x - CONSUMERS, first = t / 8, c = t % 8;
    const int eights = (int)a.Cin / 8;
    const bool some = !no_frame(a, at);
    const uint4 *const x =
        (const uint4 *)(some ? a.frame[at.frame] + at.channel : a.w);
    int n[ROWS / 16];
    UNROLL
    for (int i = 0; i < ROWS / 16; i++)
        n[i] = pixel_at(a, p.windows[first + 16 * i], at);
    UNROLL
    for (int i = 0; i < ROWS / 16; i++)
        copy16_or_zeros(to + swizzled(first + 16 * i, c),
                        x + (n[i] < 0 ? 0 : n[i]) * eights, some && n[i] >= 0);
}

/* All steps, by the producers. */
template <int COLS>
DEVICE void produce(const cuda_mma_conv_args &a, const places &p)
{
    const int t = threadIdx.x - CONSUMERS, steps = steps_of(a);
    tap at = {0, 0, 0, 0};
    go_on(a, at, t % 8 * 8);
    for (int s = 0; s < steps; s++) {
        bf16 *const to = p.mem + place(s) * STAGE(COLS);
        await(p.empty + place(s), turn(s) - 1);
        if (t == 0)
            copy_weights<COLS>(a, to + ROWS * BLOCK_K, s, p.full + place(s));
        copy_pixels(a, p, to, at);
        arrive_after_copies(p.full + place(s));
        go_on(a, at, BLOCK_K);
    }
}

/* ---- products ------------------------------------------------------------ */

/* The first pixel of a warpgroup in the tile. */
DEVICE int own_row() { return threadIdx.x / 128 * 128; }

/* The chains of 128 x COLS outputs go on over one step. */
template <int COLS>
DEVICE void step(sums (&acc)[2][COLS / 8], const places &p, int s)
{
    const bf16 *w = p.mem + place(s) * STAGE(COLS) + ROWS * BLOCK_K;
    const bf16 *x = p.mem + place(s) * STAGE(COLS) + own_row() * BLOCK_K;
    await(p.full + place(s), turn(s));
    fence_async_proxy();
    wgmma_begin();
    UNROLL
    for (int k = 0; k < BLOCK_K; k += 16)
        UNROLL
        for (int h = 0; h < 2; h++)
            wgmma(acc[h], matrix_at(x + 64 * h * BLOCK_K, k), matrix_at(w, k));
    wgmma_commit();
}

/* 16 pixels of y by a warp: through shared memory, so that lanes side by side
 * store channels side by side. */
template <int N>
DEVICE void store(const cuda_mma_conv_args &a, float *mem, const sums (&acc)[N],
                  int pixel)
{
    const int l = threadIdx.x % 32, pitch = 8 * N + 8;
    const int col0 = blockIdx.x * 8 * N;
    const int rows = (int)(a.Ho * a.Wo) - pixel;
    const int cols = least(8 * N, (int)a.Cout - col0);
    float *const y = a.y + pixel * a.Cout + col0;
    UNROLL
    for (int j = 0; j < N; j++)
        UNROLL
        for (int e = 0; e < 4; e += 2)
            *(float2 *)(mem + sum_row(l, e) * pitch + 8 * j + sum_col(l, e)) =
                float2{acc[j].r[e], acc[j].r[e + 1]};
    __syncwarp();
    UNROLL_1
    for (int c = l; c < cols; c += 32) {
        const float b = a.b ? a.b[col0 + c] : 0.0f;
        UNROLL
        for (int r = 0; r < 16; r++)
            if (r < rows)
                y[r * a.Cout + c] = add_rn(mem[r * pitch + c], b);
    }
    __syncwarp();
}

/* The outputs of a consumer warpgroup. */
template <int COLS>
DEVICE void consume(const cuda_mma_conv_args &a, const places &p)
{
    const int warp = threadIdx.x / 32, steps = steps_of(a);
    sums acc[2][COLS / 8];
    clear(acc[0]);
    clear(acc[1]);
    wgmma_tie(acc[0]);
    wgmma_tie(acc[1]);
    step<COLS>(acc, p, 0);
    for (int s = 1; s < steps; s++) {
        step<COLS>(acc, p, s);
        wgmma_wait<1>();
        release(p.empty + place(s - 1));
    }
    wgmma_wait<0>();
    wgmma_tie(acc[0]);
    wgmma_tie(acc[1]);
    __syncthreads();                   /* all factors: sums take their place  */
    float *const mem = (float *)p.mem + 16 * warp * (COLS + 8);
    const int pixel = blockIdx.y * ROWS + own_row() + warp % 4 * 16;
    store(a, mem, acc[0], pixel);
    store(a, mem, acc[1], pixel + 64);
}

template <int COLS> DEVICE void conv_tile(const cuda_mma_conv_args &a)
{
    const places p = lay_out<COLS>();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            arrivals_of(p.full + i, PRODUCERS + 1);
            arrivals_of(p.empty + i, CONSUMERS / 32);
        }
        arrivals_show();
    }
    if (threadIdx.x < ROWS)
        p.windows[threadIdx.x] = corner_of(a, blockIdx.y * ROWS + threadIdx.x);
    __syncthreads();
    if (threadIdx.x < CONSUMERS) {
        registers_take<232>();
        consume<COLS>(a, p);
    } else {
        registers_leave<40>();
        produce<COLS>(a, p);
        __syncthreads();
    }
}
#endif

/* Of up to 96 channels, and of more. */
KERNEL(wgmma_conv_96, cuda_mma_conv_args, WGMMA_CONV_THREADS, 1)
{
#if HAS_WGMMA
    conv_tile<96>(a);
#else
    nothing_here();
#endif
}

KERNEL(wgmma_conv_192, cuda_mma_conv_args, WGMMA_CONV_THREADS, 1)
{
#if HAS_WGMMA
    conv_tile<192>(a);
#else
    nothing_here();
#endif
}
