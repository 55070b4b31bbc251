/* gather.h: the receptive field of one convolution output.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A causal convolution is tt_linear over these vectors; no frame is ever
 * unrolled as a whole. */
#ifndef TT_OPS_GATHER_H
#define TT_OPS_GATHER_H

#include <string.h>

#include "ops/ops.h"

/* x = n numbers of an array from number `at` on: values, or packed bf16. */
static inline void take_numbers(tt_real *x, const tt_real *from, int64_t at,
                                int64_t n, bool bf16)
{
    const char *stored = (const char *)from + 2 * at;
    if (!bf16) {
        memcpy(x, from + at, (size_t)n * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, stored + 2 * i, sizeof half);
        const uint32_t bits = (uint32_t)half << 16;
        float wide;
        memcpy(&wide, &bits, sizeof wide);
        x[i] = (tt_real)wide;
    }
}

/* The window of output pixel (i, j) as one vector x [kt, kh, kw, Cin], zeros
 * where it lies on padding or on a NULL frame. */
static inline void conv_gather(tt_real *x, const tt_conv_args *p, int64_t i,
                               int64_t j)
{
    size_t nbytes = (size_t)p->Cin * sizeof *x;
    for (int a = 0; a < p->kt; a++)
        for (int u = 0; u < p->kh; u++)
            for (int v = 0; v < p->kw; v++, x += p->Cin) {
                int64_t r = i * p->stride + u - p->pad_top;
                int64_t s = j * p->stride + v - p->pad_left;
                if (!p->frame[a] || r < 0 || s < 0 || r >= p->Hi * p->up ||
                    s >= p->Wi * p->up)
                    memset(x, 0, nbytes);
                else
                    take_numbers(x, p->frame[a],
                                 ((r / p->up) * p->Wi + s / p->up) * p->Cin,
                                 p->Cin, p->bf16);
            }
}

#endif
