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

/* y [n, o] with its bias, or NULL, and what follows. */
struct outputs {
    float *y;
    const float *b;
    int64_t n, o;
    cuda_epilogue then;
};

/* A fragment of sums to shared memory, its first row and column at `to`. */
template <int PITCH = SUM_PITCH> DEVICE void put_sums(float *to, const sums &s)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int e = 0; e < 4; e += 2)
        *(float2 *)(to + sum_row(l, e) * PITCH + sum_col(l, e)) =
            float2{s.r[e], s.r[e + 1]};
}

/* Four outputs side by side, as they lie together. */
struct quad {
    float v[4];
};

DEVICE quad quad_of(float4 v) { return {{v.x, v.y, v.z, v.w}}; }

/* A sum and its bias, where there is one. */
DEVICE float biased(float sum, float b, bool is)
{
    return is ? add_rn(sum, b) : sum;
}

/* Of 16 rows from row0 on and COLS columns from col0 on, whose sums lie in
 * shared memory: those that a lane stores at once, four rows of four columns.
 * The numbers they are added to are asked for first. GELU: may follow. */
template <int COLS, bool GELU = true>
DEVICE void put_four(const outputs &y, const float *sum, int row0, int64_t col0)
{
    const int lanes = COLS / 4, apart = 32 / lanes, l = threadIdx.x & 31;
    const int c = l % lanes * 4;
    const int64_t col = col0 + c;
    const float4 zero = four(0.0f, 0.0f, 0.0f, 0.0f);
    row0 += l / lanes;
    sum += l / lanes * (COLS + 8) + c;
    float *const to = (y.then.x ? y.then.x : y.y) + row0 * y.o + col;
    float v[16];
    float4 x[4], gate[4];
    if (col >= y.o) return;
    const quad b = quad_of(y.b ? load4(y.b + col) : zero);
    UNROLL
    for (int r = 0; r < 4; r++) {
        const bool there = row0 + r * apart < y.n;
        x[r] = y.then.x && there ? load4(to + r * apart * y.o) : zero;
        gate[r] = y.then.kind == CUDA_GATE && there
                      ? load4(gates(y.then, row0 + r * apart) + col) : zero;
        const quad s = quad_of(load4(sum + r * apart * (COLS + 8)));
        UNROLL
        for (int i = 0; i < 4; i++)
            v[4 * r + i] = biased(s.v[i], b.v[i], y.b);
    }
    if (GELU && y.then.kind == CUDA_GELU) gelu_all(v);
    UNROLL
    for (int r = 0; r < 4; r++)
        if (row0 + r * apart < y.n)
            store4(to + r * apart * y.o,
                   added4(y.then, four(v[4 * r], v[4 * r + 1], v[4 * r + 2],
                                       v[4 * r + 3]), x[r], gate[r]));
}

/* One row, where four columns do not lie together. */
template <int COLS>
DEVICE void put_one(const outputs &y, const float *sum, int row, int64_t col0)
{
    if (row >= y.n) return;
    UNROLL_1
    for (int c = threadIdx.x & 31; c < COLS; c += 32) {
        const int64_t col = col0 + c;
        if (col < y.o)
            put(y.then, y.y, row, col, y.o,
                biased(sum[c], y.b ? y.b[col] : 0.0f, y.b));
    }
}

/* 16 rows of y from row0 on, COLS columns from col0 on, by a warp; rows of sums
 * are COLS + 8 apart. */
template <int COLS = TILE_COLS>
DEVICE void put_rows(const outputs &y, const float *sum, int row0, int64_t col0)
{
    const int step = 512 / COLS;
    const bool vec = (y.o | y.then.stride) % 4 == 0 &&
                     ((uintptr_t)y.y | (uintptr_t)y.b | (uintptr_t)y.then.x |
                      (uintptr_t)y.then.gate) % 16 == 0;
    UNROLL_1
    for (int r = 0; vec && r < 16; r += step)
        put_four<COLS>(y, sum + r * (COLS + 8), row0 + r, col0);
    UNROLL_1
    for (int r = 0; !vec && r < 16; r++)
        put_one<COLS>(y, sum + r * (COLS + 8), row0 + r, col0);
}

#endif
