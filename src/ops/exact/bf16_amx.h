/* bf16_amx.h: class amx on AMX tiles, 32 rows x 48 lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Compiled twice: with the instructions (kernels_bf16_amx.c) and with a model
 * of them in C (kernels_bf16_amx_model.c), so that all but the hardware itself
 * (and VCVTNE2PS2BF16 in the softmax, integers there) is tested on any AVX-512
 * machine. Before including: TILE_STATE,
 * TILE_ZERO(t), TILE_LOAD(t, at, stride), TILE_DOT(c, a, b), TILE_STORE(t, at,
 * stride), begin and end.
 *
 * A tile is 16 rows of 64 bytes. A group of 16 rows is one, packed or stored,
 * and in the packing of bf16_pairs.h 16 lanes of a group are a tile of stride
 * 4*NR bytes. TDPBF16PS then is one group of the class:
 *     e, o = 0; e[n] = fma(a[2k], b[k][2n], e[n]), o[n] likewise, k = 0..15;
 *     c[n] = c[n] + (e[n] + o[n])       with results flushed at every step. */
#define FILL 0
#include "ops/exact/bf16_pairs.h"
#include "ops/exact/bf16_softmax.h"

#define MR 32
#define TILE_ROWS 16

/* Tiles 0-2 and 3-5 are the results of the upper and lower 16 rows, 6 holds
 * rows, 7 lanes. Going back through the lanes saves one load in eight. */
static void tile(float *c, const void *rows_at, bf16_rows rows,
                 const void *lanes, int64_t groups, bool add)
{
    const char *a = rows_at, *b = lanes;
    const int64_t row = 2 * rows.row;
    char *up = (char *)c, *low = (char *)(c + TILE_ROWS * NR);
    const int64_t step = NR * (int64_t)sizeof *c;
    TILE_STATE;
    if (add) {
        TILE_LOAD(0, up, step);
        TILE_LOAD(1, up + 64, step);
        TILE_LOAD(2, up + 128, step);
        TILE_LOAD(3, low, step);
        TILE_LOAD(4, low + 64, step);
        TILE_LOAD(5, low + 128, step);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        TILE_ZERO(4);
        TILE_ZERO(5);
    }
    for (int64_t g = 0; g < groups; g++) {
        TILE_LOAD(6, a, row);
        TILE_LOAD(7, b, 4 * NR);
        TILE_DOT(0, 6, 7);
        TILE_LOAD(7, b + 64, 4 * NR);
        TILE_DOT(1, 6, 7);
        TILE_LOAD(7, b + 128, 4 * NR);
        TILE_DOT(2, 6, 7);
        TILE_LOAD(6, a + TILE_ROWS * row, row);
        TILE_DOT(5, 6, 7);
        TILE_LOAD(7, b + 64, 4 * NR);
        TILE_DOT(4, 6, 7);
        TILE_LOAD(7, b, 4 * NR);
        TILE_DOT(3, 6, 7);
        a += 2 * rows.group;
        b += PAIRS * 4 * NR;
    }
    TILE_STORE(0, up, step);
    TILE_STORE(1, up + 64, step);
    TILE_STORE(2, up + 128, step);
    TILE_STORE(3, low, step);
    TILE_STORE(4, low + 64, step);
    TILE_STORE(5, low + 128, step);
}

#define BF16_AMX                                                               \
    .level = EXACT_AMX, .mr = MR, .nr = NR, .stored = true, .tile = tile,      \
    .softmax = softmax, BF16_PACKING
