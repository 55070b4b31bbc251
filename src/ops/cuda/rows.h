/* rows.h: the sums of a tile on tensor cores into y, row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fragments have outputs of many rows. Through shared memory, lanes side by
 * side get outputs side by side, which are stored 16 bytes at a time; and the
 * text of what follows a sum is short. A block of threads goes through it only
 * once: written down for every fragment it took longer to fetch than to
 * execute. */
#ifndef TT_CUDA_ROWS_H
#define TT_CUDA_ROWS_H

#include "ops/cuda/epilogue.h"
#include "ops/cuda/mma.h"
#include "ops/cuda/tile.h"

/* y [n, o] with its bias, or NULL, and what follows. A block of threads has the
 * columns from blockIdx.x * TILE_COLS on. */
struct outputs {
    float *y;
    const float *b;
    int64_t n, o;
    cuda_epilogue then;
};

/* A fragment of sums to shared memory, its first row and column at `to`. */
DEVICE void put_sums(float *to, const sums &s)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int e = 0; e < 4; e += 2)
        *(float2 *)(to + sum_row(l, e) * SUM_PITCH + sum_col(l, e)) =
            float2{s.r[e], s.r[e + 1]};
}

/* What four sums side by side become, from column col on. */
DEVICE float4 finished4(const outputs &y, int row, int64_t col, float4 sum,
                        float4 x)
{
    const float4 zero = four(0.0f, 0.0f, 0.0f, 0.0f);
    const float4 b = y.b ? load4(y.b + col) : zero;
    const float4 gate = y.then.kind == CUDA_GATE
                            ? load4(gates(y.then, row) + col) : zero;
    float v[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = entry(sum, i);
        if (y.b) v[i] = add_rn(v[i], entry(b, i));
    }
    return followed4(y.then, four(v[0], v[1], v[2], v[3]), x, gate);
}

/* Four rows of y from row0 on; their sums lie in shared memory. The numbers
 * they are added to are asked for first. */
DEVICE void put_four(const outputs &y, const float *sum, int row0)
{
    const int c = (threadIdx.x & 31) * 4;
    const int64_t col = (int64_t)blockIdx.x * TILE_COLS + c;
    float *const to = (y.then.x ? y.then.x : y.y) + row0 * y.o + col;
    float4 x[4];
    if (col >= y.o) return;
    UNROLL
    for (int r = 0; r < 4; r++)
        x[r] = y.then.x && row0 + r < y.n ? load4(to + r * y.o)
                                          : four(0.0f, 0.0f, 0.0f, 0.0f);
    UNROLL
    for (int r = 0; r < 4; r++)
        if (row0 + r < y.n)
            store4(to + r * y.o, finished4(y, row0 + r, col,
                                           load4(sum + r * SUM_PITCH + c),
                                           x[r]));
}

/* One row, where four columns do not lie together. */
DEVICE void put_one(const outputs &y, const float *sum, int row)
{
    if (row >= y.n) return;
    UNROLL_1
    for (int c = threadIdx.x & 31; c < TILE_COLS; c += 32) {
        const int64_t col = (int64_t)blockIdx.x * TILE_COLS + c;
        if (col < y.o)
            put(y.then, y.y, row, col, y.o,
                y.b ? add_rn(sum[c], y.b[col]) : sum[c]);
    }
}

/* 16 rows of y from row0 on, by a warp. */
DEVICE void put_rows(const outputs &y, const float *sum, int row0)
{
    const bool vec = (y.o | y.then.stride) % 4 == 0 &&
                     ((uintptr_t)y.y | (uintptr_t)y.b | (uintptr_t)y.then.x |
                      (uintptr_t)y.then.gate) % 16 == 0;
    UNROLL_1
    for (int r = 0; vec && r < 16; r += 4)
        put_four(y, sum + r * SUM_PITCH, row0 + r);
    UNROLL_1
    for (int r = 0; !vec && r < 16; r++)
        put_one(y, sum + r * SUM_PITCH, row0 + r);
}

#endif
