/* golden.h: the definitions, and what a class is made of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_GOLDEN_H
#define TT_OPS_GOLDEN_H

#include "ops/backends.h"

#define GOLDEN_DECLARED(op, OP)                                                \
    void golden_##op(tt_ctx *ctx, const tt_##op##_args *a);
TT_OPS_ROWS(GOLDEN_DECLARED)
GOLDEN_DECLARED(conv, CONV) /* in class f32                                   */
/* A table's entry. */
#define GOLDEN(op, OP) .op = golden_##op,

/* All rows of w widened into scratch; NULL when memory is short. */
const tt_real *golden_widened(tt_ctx *ctx, const tt_tensor *w);

/* ---- classes: one file each, NAME.c -------------------------------------- */

typedef struct golden_class golden_class;

/* One head for a class of rounded factors: q [T, D], k and v [N, D] hold
 * factors. */
typedef struct golden_head {
    const golden_class *class;
    const tt_attention_args *a;
    int64_t h;
    const tt_real *q, *k, *v;
} golden_head;

struct golden_class {
    int block;    /* products that the order of a sum takes together          */
    /* A number as it enters a product. */
    tt_real (*factor)(tt_real x);
    /* c + sum over k < n of a[k * step] b[k], both factors, in the class's
     * order. n may be any number; what fills the last block is the class's. */
    tt_real (*chain)(tt_real c, const tt_real *a, int64_t step,
                     const tt_real *b, int64_t n);
    /* Query i of one head into o [D]; scratch [D]. NULL in f32, which rounds
     * no factor. */
    void (*attend)(const golden_head *r, int64_t i, tt_real *o,
                   tt_real *scratch);
};

#define GOLDEN_CLASS_DECLARED(name, NAME, ...)                                 \
    extern const golden_class golden_##name;                                   \
    void golden_##name##_linear(tt_ctx *ctx, const tt_linear_args *a);         \
    void golden_##name##_attention(tt_ctx *ctx, const tt_attention_args *a);   \
    void golden_##name##_conv(tt_ctx *ctx, const tt_conv_args *p);
TT_CLASSES(GOLDEN_CLASS_DECLARED)
/* Those that this build has. */
#ifdef TT_REAL_DOUBLE
#define GOLDEN_BUILT(X) X(f32, F32, golden)
#else
#define GOLDEN_BUILT(X) TT_CLASSES(X)
#endif

/* What a class is made of; NULL in a double build but for f32. */
const golden_class *golden_class_of(tt_class cls);

/* ---- what classes of rounded factors share: factors.c -------------------- */

/* y = chain(+0, x, w) + b: the bias last, in plain float32. */
void golden_factors_linear(tt_ctx *ctx, const tt_linear_args *a,
                           const golden_class *class);
/* Rounds q, k and v, and calls attend for every query. */
void golden_factors_attention(tt_ctx *ctx, const tt_attention_args *a,
                              const golden_class *class);

/* Logit of query i and key j: chain(+0, q, k) * scale, bias and mask, the
 * latter three in plain float32. */
tt_real golden_logit(const golden_head *r, int64_t i, int64_t j);

/* An `attend`: key blocks of TT_KEY_BLOCK with maximum, exp and denominator as
 * in class f32. p enters the products rounded and the denominator unrounded. A
 * block's sum is chain(+0, v, p); blocks are merged by fma(acc, alpha, block).
 */
void golden_attend_blocks(const golden_head *r, int64_t i, tt_real *o,
                          tt_real *acc);

#endif
