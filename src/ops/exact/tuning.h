/* tuning.h: block sizes that may be tuned, a row per instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * None of them changes a bit: they say which outputs are computed together, in
 * what order outputs come, how many products of a chain are packed at a time
 * (between them its sum waits in memory, as the float that it is) and how an
 * output is stored. The chain of an output stays as it is.
 * tests/ops/test_tuning.c takes every one to its ends. Those that are part of
 * the bits are ops/frozen.h. tools/tune finds a row; shapes of tiles, which are
 * code, stand in the kernels (mr, nr, am, aq). */
#ifndef TT_OPS_EXACT_TUNING_H
#define TT_OPS_EXACT_TUNING_H

#include <stdint.h>

#include "ops/exact/level.h"
#include "ops/ops.h"

typedef struct exact_tuning {
    /* Linear layers of classes f32, amx and vdp (product.c). */
    int64_t rows;        /* of x, packed at a time, about: a slice of them,
                          * the weights of a tile and the outputs of a unit fit
                          * a core's second cache                             */
    int64_t packed_rows; /* the same where weights are packed, which is done for
                          * every block of rows; for more than two of them
                          * classes amx and vdp may round all weights once    */
    int64_t slice;       /* products taken together, in TT_DOT_BLOCK; of
                          * transposed weights always one of them             */
    int64_t tiles;       /* of outputs in a unit of work, at most; a quarter of
                          * it of transposed weights, whose tiles are wider   */
    int64_t units;       /* of work per thread, at least                      */
    int64_t bf16_rows;   /* of x, at most, for which weights that are stored as
                          * bf16 are taken as they are and not widened first
                          * (f32, where kernels can)                          */
    int64_t transposed_rows; /* of x, at least, for which weights are transposed
                          * (linear_transposed.c, where kernels can: class f32,
                          * so the rows of avx2 and avx512)                   */
    int64_t once_rows;   /* of x, at least, for which they are transposed
                          * once, into scratch memory, and not by block       */
    int64_t far;         /* bytes of outputs that no cache keeps until all are
                          * there; whole tiles of them are stored around the
                          * caches, if their rows begin where lines do        */
    /* Attention of every class (walk.c). */
    int64_t group;       /* query panels that share a block of keys, at most  */
    int64_t head_groups; /* per thread in the heads of a time, at least       */
    int64_t value_keys;  /* keys whose values are taken together (class f32, as
                          * above): their weights of a panel stay in a core's
                          * first cache                                       */
    /* Convolutions (conv.c, bf16_conv.c). */
    int64_t conv_inputs; /* bytes of them in a unit of work, about: next to
                          * weights of one panel they fit a core's second
                          * cache                                             */
    int64_t conv_slice;  /* products taken together in class f32, in
                          * TT_DOT_BLOCK                                      */
    /* Linear layers of the classes of tensor cores (tc_linear.c). */
    int64_t tc_slice;    /* groups of products packed at a time               */
    int64_t tc_panels;   /* of outputs packed at a time                       */
    int64_t tc_rows;     /* of a unit of work, at most EXACT_MAX_TC_ROWS      */
    /* Rows and elements (rows.c). */
    int64_t piece;       /* elements per unit of work                         */
    int64_t cols;        /* channels per unit of statistics, at least         */
} exact_tuning;

#define EXACT_MAX_TC_ROWS 128

/* Every field and its ends, for tools and tests: X(name, least, most). */
#define EXACT_TUNING(X)                                                        \
    X(rows, 1, 1 << 20)                                                        \
    X(packed_rows, 1, 1 << 20)                                                 \
    X(slice, 1, 64)                                                            \
    X(tiles, 1, 1 << 20)                                                       \
    X(units, 1, 1024)                                                          \
    X(bf16_rows, 0, 1 << 20)                                                   \
    X(transposed_rows, 1, 1 << 20)                                             \
    X(once_rows, 1, 1 << 20)                                                   \
    X(far, 0, INT64_MAX)                                                       \
    X(group, 1, 64)                                                            \
    X(head_groups, 1, 1024)                                                    \
    X(value_keys, 1, TT_DOT_BLOCK)                                             \
    X(conv_inputs, 1, 1 << 28)                                                 \
    X(conv_slice, 1, 64)                                                       \
    X(tc_slice, 1, 1024)                                                       \
    X(tc_panels, 1, 1 << 20)                                                   \
    X(tc_rows, 1, EXACT_MAX_TC_ROWS)                                           \
    X(piece, 1, 1 << 30)                                                       \
    X(cols, 1, 1 << 20)

/* The row of a level. */
const exact_tuning *exact_tuned(exact_level level);

/* From now on `row` for all levels; NULL: the table again. For tools and tests:
 * no operator may be running. */
void exact_tune(const exact_tuning *row);

#endif
