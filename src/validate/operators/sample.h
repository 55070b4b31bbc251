/* sample.h: which rows of a large call are checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_SAMPLE_H
#define VALIDATE_SAMPLE_H

#include "validate/operators/call.h"

/* Rows are those of axis 0 of the output. */
typedef struct sample {
    const op_call *call;     /* the whole one                                 */
    op_call part;            /* that gives the chosen rows alone, or (conv, and
                                attention with a bias) the last one of them   */
    int64_t rows, all, width; /* chosen; of the output; values of a row       */
    int64_t *row;            /* [rows] ascending; NULL: all                   */
} sample;

/* Small calls whole; of a linear, attention or conv that is more work than
 * SAMPLE_WORK: the first and the last row, the ones where `got` is farthest
 * from `ours` (absolutely, and next to the row's size), and as many more,
 * spread over the rest by `seed`, as the work allows. got, ours: [n] of the
 * call. */
#define SAMPLE_WORK ((int64_t)1 << 24)   /* multiply-adds                     */
enum { SAMPLE_LEAST = 8 };
void sample_take(tt_ctx *ctx, sample *s, const op_call *q, const double *got,
                 const double *ours, uint64_t seed);

/* Values of the chosen rows. */
const double *sample_cut(tt_ctx *ctx, const sample *s, const double *x);
/* [rows, width] in float64, as call_wanted does, or with want and ours, of the
 * chosen rows, in that arithmetic, as call_emulate does. */
void sample_compute(tt_ctx *ctx, const sample *s, const tt_arith *arith,
                    const double *want, const double *ours, double *out);
/* The part for one chosen row, into s->part. False: s->part is all of them. */
bool sample_single(tt_ctx *ctx, sample *s, int64_t i);

/* v->where of a verdict over the chosen rows in the indices of the whole. */
void sample_place(const sample *s, tt_verdict *v);

#endif
