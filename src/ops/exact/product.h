/* product.h: how a linear layer walks through its outputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rows of x lie along the lanes, and the rows of weights are broadcast,
 * from where they are stored if a kernel can read them there: y^T = w x^T. A
 * weight then needs no layout of its own, which would cost as much as fifty
 * rows do; x gets one, for every block of rows once, and it serves all outputs.
 * (A class may do otherwise for the few rows after the last full vector, and
 * class f32 does for many rows: linear_transposed.c transposes weights once.)
 * Weights that must be widened, rounded or transposed are, tile by tile, for
 * every block (but for few rows, where kernels take bf16 numbers as they are,
 * and for many, where classes amx and vdp round and class f32 turns all of them
 * once). Threads take units of outputs and of rows; the outputs of a unit are
 * transposed and get their bias at its end, unless tiles have given them.
 * Blocking is free to change: it moves whole chains, never splits one. */
#ifndef TT_OPS_EXACT_PRODUCT_H
#define TT_OPS_EXACT_PRODUCT_H

#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

/* Where a step of the walk stands. */
typedef struct exact_slice {
    int64_t o0;          /* first output of mr; past the last they count as 0 */
    int64_t k0, kc;      /* products [k0, k0 + kc)                            */
    int64_t n;           /* rows of x, in whole panels                        */
    int64_t live;        /* of them; sums of the others are not read          */
    int64_t apart;       /* floats between the sums of two panels             */
    int64_t after[2];    /* the o0 and k0 of the step after this one          */
    float *y;            /* where the output of o0 and the first row belongs  */
    bool far;            /* no cache will keep y until it is read             */
} exact_slice;

/* A class's part; a driver has it as its first member. */
typedef struct exact_product exact_product;
struct exact_product {
    const tt_linear_args *a;
    const exact_tuning *tuned;
    int64_t mr, nr;      /* outputs and rows of x of a tile                   */
    int64_t group;       /* products are packed in multiples of it            */
    int64_t size;        /* bytes of a value of x that is packed              */
    int64_t kc;          /* products taken together, at most K                */
    int64_t tiles;       /* of outputs in a unit of work, at most             */
    int64_t copy;        /* floats for the weights of a tile, for a slice()   */
    bool packs;          /* weights go there in whole                         */
    bool gives;          /* the last slice puts outputs where they belong,
                          * with their bias                                   */
    /* Lay out n rows of x (at most nr; [n, ld]), kc products; past n they are
     * zero, or any numbers if nothing comes of them. Of the thread's own:
     * nr * kc floats. */
    void (*rows)(const exact_product *p, void *panel, const float *x,
                 int64_t ld, int64_t n, int64_t kc, float *own);
    /* out [n / nr], mr * nr sums each = what is there (from k0 > 0 on) and a
     * slice of products, with panels of x that lie in a row. */
    void (*slice)(const exact_product *p, float *out, const char *panels,
                  exact_slice at, float *copy);
};

/* Products of a row that are taken together, of K. */
static inline int64_t exact_slice_of(const exact_tuning *tuned, int64_t K)
{
    return exact_least(K, tuned->slice * TT_DOT_BLOCK);
}

/* Bytes of a panel of kc products. */
static inline int64_t exact_panel_bytes(const exact_product *p, int64_t kc)
{
    return (kc + p->group - 1) / p->group * p->group * p->nr * p->size;
}

/* The weights of the next tile will be wanted: of each of mr rows so many bytes
 * of a slice. Its first lines are asked for; CPUs foresee the rest, and to ask
 * for all of it holds up what is being computed. (A macro: gcc drops a function
 * that does nothing else.) */
#define EXACT_ASKED (2 * 64)
#define EXACT_ASK_WEIGHTS(p, row, stride, bytes)                               \
    for (int64_t j_ = 0; j_ < (p)->mr; j_++)                                   \
        for (int64_t at_ = 0; at_ < exact_least(bytes, EXACT_ASKED);           \
             at_ += 64)                                                        \
            __builtin_prefetch((row) + j_ * (stride) + at_, 0, 2)

/* y = x w^T + b; K > 0. */
void exact_product_all(tt_ctx *ctx, const exact_product *p);

/* Is a linear layer of class f32 one of linear_transposed.c? Then K > 0. */
bool exact_turns(const tt_ctx *ctx, const tt_linear_args *a);
void exact_transposed_linear(tt_ctx *ctx, const tt_linear_args *a);

#endif
#endif
