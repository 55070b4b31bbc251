/* wgmma_linear.cu: y = x w^T + b in class sm90, by the instructions that only
 * sm_90 has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads takes tiles of 128 rows
 * and COLS columns, one after the other. Each of two warpgroups has 64 of the
 * rows, whose sums never leave registers until they are done. A third one
 * brings the factors of a step as soon as both are done with those in its
 * place; it goes on with the next tile while they store.
 *
 * Holds   k ascends in steps of 16, each output is one chain. Rows and columns
 *         past the end are zeros, whose sums are not stored. */
#include "ops/cuda/rows.h"
#include "ops/cuda/wgmma.h"

#if HAS_WGMMA
#define WARPS (WGMMA_THREADS / 32 - 4)               /* that multiply        */
#define TILES_DOWN 8                     /* rows of tiles that share columns  */

/* Step s of all tiles of a block of threads lies at place s % WGMMA_STAGES, for
 * the turn s / WGMMA_STAGES. */
DEVICE int place(int s) { return s % WGMMA_STAGES; }
DEVICE int turn(int s) { return s / WGMMA_STAGES; }

/* In shared memory: a block of x and COLS rows of w a step, a part of a warp's
 * sums on their way to y; what arrives, and who needs it no more. */
template <int COLS> struct places {
    static const int step = BLOCK_FACTORS + COLS * BLOCK_K;
    bf16 *mem;
    float *sums;
    arrivals *full, *empty;
};

template <int COLS> DEVICE places<COLS> lay_out()
{
    SHARED(bf16, mem);
    places<COLS> p;
    p.mem = mem;
    p.sums = (float *)(mem + WGMMA_STAGES * places<COLS>::step);
    p.full = (arrivals *)(p.sums + BLOCK_ROWS * WGMMA_PITCH);
    p.empty = p.full + WGMMA_STAGES;
    return p;
}

/* Tiles of all layers, and which one a number is of: down some rows of tiles,
 * then to the next columns, so that factors are asked for again while they are
 * in the second cache. */
struct tile {
    int row, layer, col;
};

template <int COLS> DEVICE int columns(const cuda_wgmma_linear_args &a)
{
    return (int)((a.o + COLS - 1) / COLS);
}

DEVICE int rows(const cuda_wgmma_linear_args &a)
{
    return (int)((a.n + BLOCK_ROWS - 1) / BLOCK_ROWS);
}

template <int COLS> DEVICE int tiles(const cuda_wgmma_linear_args &a)
{
    return rows(a) * columns<COLS>(a) * (int)a.layers;
}

template <int COLS> DEVICE tile tile_of(const cuda_wgmma_linear_args &a, int n)
{
    const int across = columns<COLS>(a) * (int)a.layers;
    const int first = n / (TILES_DOWN * across) * TILES_DOWN;
    const int down = least(TILES_DOWN, rows(a) - first);
    const int in = n % (TILES_DOWN * across), col = in / down;
    return {first + in % down, col / columns<COLS>(a), col % columns<COLS>(a)};
}

/* COLS rows of w from row c on: rows of a block, and of the next ones. Those
 * past the last block are of no output: any others take their place. */
template <int COLS>
DEVICE void bring_weights(const cuda_wgmma_linear_args &a, bf16 *to,
                          const bf16 *w, int c, int s, arrivals *full)
{
    const int64_t steps = a.k / BLOCK_K, last = (a.o - 1) / BLOCK_ROWS;
    for (int left = COLS; left > 0;) {
        const int in = c % BLOCK_ROWS, n = least(left, BLOCK_ROWS - in);
        const int64_t block = least((int64_t)(c / BLOCK_ROWS), last);
        copy_block(to, w + (block * steps + s) * BLOCK_FACTORS + in * BLOCK_K,
                   n * BLOCK_K * 2, full);
        to += n * BLOCK_K;
        c += n;
        left -= n;
    }
}

/* All factors in the order in which they are needed, by one thread. */
template <int COLS>
DEVICE void bring_all(const cuda_wgmma_linear_args &a, const places<COLS> &p)
{
    const int steps = (int)(a.k / BLOCK_K);
    int at = 0;
    for (int n = blockIdx.x; n < tiles<COLS>(a); n += gridDim.x) {
        const tile t = tile_of<COLS>(a, n);
        const bf16 *x = a.x + (int64_t)t.row * steps * BLOCK_FACTORS;
        for (int s = 0; s < steps; s++, at++) {
            arrivals *const full = p.full + place(at);
            bf16 *const to = p.mem + place(at) * places<COLS>::step;
            await(p.empty + place(at), turn(at) - 1);
            arrive_and(full, places<COLS>::step * 2);
            copy_block(to, x + (int64_t)s * BLOCK_FACTORS, BLOCK_BYTES, full);
            bring_weights<COLS>(a, to + BLOCK_FACTORS, a.layer[t.layer].w,
                                t.col * COLS, s, full);
        }
    }
}

/* The chains of 64 rows and COLS columns over all of k. */
template <int COLS>
DEVICE void multiply(sums (&acc)[COLS / 8], const places<COLS> &p, int steps,
                     int at)
{
    const int own = (int)threadIdx.x / 128 * 64;
    for (int s = 0; s < steps; s++, at++) {
        const bf16 *const x = p.mem + place(at) * places<COLS>::step;
        const uint64_t rows = matrix_at(x + own * BLOCK_K, 0);
        const uint64_t cols = matrix_at(x + BLOCK_FACTORS, 0);
        await(p.full + place(at), turn(at));
        wgmma_begin();
        UNROLL
        for (int k = 0; k < BLOCK_K / 16; k++)
            wgmma(acc, rows + 2 * k, cols + 2 * k, s > 0 || k > 0);
        wgmma_commit();
        if (s > 0) {
            wgmma_wait<1>();
            release(p.empty + place(at - 1));
        }
    }
    wgmma_wait<0>();
    wgmma_tie(acc);
    release(p.empty + place(at - 1));
}

/* 16 rows and WGMMA_PART columns of GELU's outputs as factors in blocks; their
 * sums lie in shared memory. Those of rows past the end are of no output. */
DEVICE void put_blocks(const cuda_wgmma_linear_args &a, const float *b,
                       const float *sum, int row0, int64_t col0)
{
    const int l = threadIdx.x & 31, row = l / 4;
    const int64_t col = col0 + l % 4 * 8;
    float v[16];
    if (col >= a.o) return;
    UNROLL
    for (int i = 0; i < 16; i += 4) {        /* 8 of a row, 8 of another one  */
        const int at = (row + i / 8 * 8) * WGMMA_PITCH + l % 4 * 8 + i % 8;
        const quad s = quad_of(load4(sum + at));
        const quad c = quad_of(b ? load4(b + col + i % 8)
                                 : four(0.0f, 0.0f, 0.0f, 0.0f));
        UNROLL
        for (int j = 0; j < 4; j++) v[i + j] = biased(s.v[j], c.v[j], b);
    }
    gelu_all(v);
    UNROLL
    for (int i = 0; i < 16; i += 8)
        store16(a.blocks + in_blocks(row0 + row + i, col, a.o / BLOCK_K),
                eight_of(four(v[i], v[i + 1], v[i + 2], v[i + 3]),
                         four(v[i + 4], v[i + 5], v[i + 6], v[i + 7])));
}

/* The outputs of a warp, some columns after the other. */
template <int COLS, bool GELU>
DEVICE void store(const cuda_wgmma_linear_args &a, const places<COLS> &p,
                  const sums (&acc)[COLS / 8], tile t)
{
    const int warp = threadIdx.x / 32, row0 = t.row * BLOCK_ROWS + 16 * warp;
    const cuda_wgmma_layer &own = a.layer[t.layer];
    float *const mem = p.sums + 16 * warp * WGMMA_PITCH;
    UNROLL
    for (int c = 0; c < COLS; c += WGMMA_PART) {
        const int64_t col0 = (int64_t)t.col * COLS + c;
        UNROLL
        for (int j = 0; j < WGMMA_PART / 8; j++)
            put_sums<WGMMA_PITCH>(mem + 8 * j, acc[c / 8 + j]);
        __syncwarp();
        if (GELU && a.blocks)
            put_blocks(a, own.b, mem, row0, col0);
        else
            put_four<WGMMA_PART, GELU>({own.y, own.b, a.n, a.o, a.then}, mem,
                                       row0, col0);
        __syncwarp();
    }
}

template <int COLS, bool GELU>
DEVICE void all_tiles(const cuda_wgmma_linear_args &a)
{
    const places<COLS> p = lay_out<COLS>();
    const int steps = (int)(a.k / BLOCK_K);
    if (threadIdx.x == 0) {
        for (int i = 0; i < WGMMA_STAGES; i++) {
            arrivals_of(p.full + i, 1);
            arrivals_of(p.empty + i, WARPS);
        }
        arrivals_show();
    }
    __syncthreads();
    if (threadIdx.x < 32 * WARPS) {
        registers_take<232>();
        sums acc[COLS / 8];
        int at = 0;
        for (int n = blockIdx.x; n < tiles<COLS>(a); n += gridDim.x) {
            multiply<COLS>(acc, p, steps, at);
            store<COLS, GELU>(a, p, acc, tile_of<COLS>(a, n));
            at += steps;
        }
    } else {
        registers_leave<40>();
        if (threadIdx.x == 32 * WARPS) bring_all<COLS>(a, p);
    }
}
#endif

/* Outputs four columns of which lie together. */
KERNEL(wgmma_linear, cuda_wgmma_linear_args, WGMMA_THREADS, 1)
{
#if HAS_WGMMA
    all_tiles<WGMMA_COLS, false>(a);
#else
    nothing_here();
#endif
}

/* The same, where GELU follows. */
KERNEL(wgmma_linear_gelu, cuda_wgmma_linear_args, WGMMA_THREADS, 1)
{
#if HAS_WGMMA
    all_tiles<WGMMA_GELU_COLS, true>(a);
#else
    nothing_here();
#endif
}
