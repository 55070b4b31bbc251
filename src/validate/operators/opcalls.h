/* opcalls.h: operator calls made of a few sizes and a seed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_OPCALLS_H
#define TT_VALIDATE_OPCALLS_H

#include <stdio.h>

#include "validate/operators/call.h"

/* What the inputs look like. */
typedef enum op_input {
    IN_NORMAL, IN_ZERO, IN_DENORMAL, IN_HUGE, IN_TINY, IN_ONE_HOT, IN_CONSTANT,
    IN_OFFSET,      /* normal values far from zero                            */
    IN_MIXED,       /* rows, or elements of the only row, of different size   */
    IN_NONFINITE,   /* one NaN and one infinity                               */
    IN_KINDS
} op_input;
const char *input_name(op_input in);
/* False where the result is not defined (a softmax over NaN, ...). */
bool input_applies(op_kind op, op_input in);

/* Sizes of a call: what they mean depends on the operator. */
enum { SIZES_MAX = 7 };
typedef struct op_sizes {
    int n;
    int64_t v[SIZES_MAX];
    int64_t least[SIZES_MAX];   /* the smallest sensible values               */
    const char *name[SIZES_MAX];
} op_sizes;
/* Sizes drawn for a round: some tiny, some odd, some past the blocks of the
 * definition (512) and past vector widths. */
void sizes_draw(op_sizes *s, op_kind op, uint64_t *rng);
/* The i-th sizes beyond those that are drawn: heads as wide as a model's, more
 * rows, keys and elements than 9, 16 and 17 bits count, no key that is seen;
 * and how its arrays lie. False past the end. */
bool sizes_large(op_sizes *s, int *lay, op_kind op, int64_t i);
/* "n=3 i=513 o=7" */
const char *sizes_string(char *buf, size_t n, const op_sizes *s);

/* How the arrays of a call lie: any of the first, each by itself. */
enum {
    LAY_ODD = 1,        /* one element after an aligned address               */
    LAY_WIDE = 2,       /* rows wider than what is read of them               */
    LAY_IN_PLACE = 4,   /* norms and rope: the output is the input            */
    LAYS = 8,
    /* of large sizes alone */
    LAY_SCALED = 8,     /* weights of 8 bits with a scale                     */
    LAY_HEAVY = 16      /* weights beyond what 8 bits hold                    */
};

/* Fill q with inputs in ctx->scratch; weights are f32, bf16 or f16. NaN stands
 * in front of and after what is floating point. */
void call_make(tt_ctx *ctx, op_call *q, op_kind op, op_input in,
               const op_sizes *s, uint64_t seed, int lay);

/* Case i of `each` per operator, ordinary values; its own seed is returned. */
uint64_t case_make(tt_ctx *ctx, op_call *q, op_sizes *s, uint64_t seed,
                   int64_t each, int64_t i);

/* The call of a case folder: inputs.safetensors, and its numbers, members of
 * case.json after others. */
tt_status case_write_inputs(tt_ctx *ctx, const char *path, const op_call *q);
void case_write_numbers(FILE *f, const op_call *q);
/* The call of a case folder whose result has this shape, made again from its
 * name in ctx->scratch; false: it is none of the operator checks. */
bool case_read(tt_ctx *ctx, op_call *q, const char *dir, const int64_t *dim,
               int rank);

int64_t rng_below(uint64_t *state, int64_t n);  /* 0 .. n-1                   */

#endif
