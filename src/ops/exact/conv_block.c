/* conv_block.c: see conv_block.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/conv_block.h"

#ifndef TT_REAL_DOUBLE

#define CACHE_LINE 64

void conv_block_inputs(conv_block *b)
{
    const tt_conv_args *p = b->p;
    const int64_t each = CACHE_LINE / b->size;
    b->tall = (b->lines - 1) * p->stride + p->kh;
    b->line = ((b->cols - 1) * p->stride + p->kw) * p->Cin;
    if (b->down) b->line = (exact_parts(b->line, each) | 1) * each;
}

int64_t conv_block_values(const conv_block *b)
{
    return b->p->kt * b->tall * b->line;
}

/* A line of inputs, columns [s, end), `line` of the picture that is seen. */
static void conv_block_take_line(const conv_block *b, char *to,
                                 const tt_real *frame, int64_t line, int64_t s,
                                 int64_t end)
{
    const tt_conv_args *p = b->p;
    const int64_t C = p->Cin, W = p->Wi * p->up;
    const int64_t pixel = C * b->size, row = line / p->up * p->Wi;
    int64_t from = s < 0 ? 0 : s, upto = exact_least(end, W);
    if (!frame || line < 0 || line >= p->Hi * p->up || from >= upto)
        from = upto = end;
    memset(to, 0, (size_t)((from - s) * pixel));
    if (upto < end)
        memset(to + (upto - s) * pixel, 0, (size_t)((end - upto) * pixel));
    if (p->up == 1 && from < upto)
        b->take(b, to + (from - s) * pixel, frame, (row + from) * C,
                (upto - from) * C);
    for (int64_t i = from; p->up > 1 && i < upto; i++)
        b->take(b, to + (i - s) * pixel, frame, (row + i / p->up) * C, C);
}

void conv_block_take(const conv_block *b, void *to, int64_t i, int64_t j,
                     int64_t lines, int64_t cols)
{
    const tt_conv_args *p = b->p;
    const int64_t line = b->line * b->size;
    const int64_t top = i * p->stride - p->pad_top;
    const int64_t left = j * p->stride - p->pad_left;
    const int64_t tall = (lines - 1) * p->stride + p->kh;
    const int64_t wide = (cols - 1) * p->stride + p->kw;
    for (int a = 0; a < p->kt; a++)
        for (int64_t r = 0; r < tall; r++)
            conv_block_take_line(b, (char *)to + (a * b->tall + r) * line,
                                 p->frame[a], top + r, left, left + wide);
}

#else
typedef int tt_no_exact_conv_block;
#endif
