/* conv_block.h: the inputs of a block of a convolution's outputs, with padding.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The windows of neighbours overlap: in a line of channels-last pixels the
 * kw * Cin numbers that one of them reads of it stand in one piece, and those
 * of the next one begin stride * Cin further. So a tile can read its windows
 * from where they lie, and no window is ever written down. What is copied is a
 * block of lines, with zeros where it is outside the picture. */
#ifndef TT_OPS_EXACT_CONV_BLOCK_H
#define TT_OPS_EXACT_CONV_BLOCK_H

#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

typedef struct conv_block conv_block;
struct conv_block {
    const tt_conv_args *p;
    int64_t lines, cols; /* outputs                                           */
    int64_t tall;        /* lines of its inputs, of one frame                 */
    bool down;           /* tiles go down a column: the lines of inputs are an
                          * odd number of cache lines apart, so that no address
                          * meets another one's place in the first cache      */
    int64_t line;        /* values from a line of inputs to the next          */
    int64_t size;        /* bytes of a value                                  */
    /* n values of a frame from number `at` on. */
    void (*take)(const conv_block *b, void *to, const tt_real *frame,
                 int64_t at, int64_t n);
    const void *own;     /* what take() knows                                 */
};

/* Does line i of the outputs read, with line u of its windows, the same as the
 * line before? Of a doubled picture lines 2 j and 2 j + 1 are the same. */
static inline bool conv_reads_again(const tt_conv_args *p, int64_t i, int64_t u)
{
    return p->up == 2 && p->stride == 1 && (i + u - p->pad_top) % 2;
}

/* What so many outputs read; p, lines, cols, down and size are given. */
void conv_block_inputs(conv_block *b);
/* Values of the inputs: [kt, tall, line]. */
int64_t conv_block_values(const conv_block *b);
/* The inputs of the outputs that begin with line i, column j: so many of the
 * block's lines and columns. */
void conv_block_take(const conv_block *b, void *to, int64_t i, int64_t j,
                     int64_t lines, int64_t cols);

#endif
#endif
