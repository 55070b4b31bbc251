/* opcase.h: a case of the operator checks and its name, from which it can be
 * made again: "op.linear.normal n=1 i=3 o=2 seed 7 unaligned".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_OPCASE_H
#define TT_VALIDATE_OPCASE_H

#include "validate/operators/opcalls.h"

typedef struct op_case {
    op_kind op;
    op_input in;
    op_sizes sizes;
    uint64_t seed;
    int lay;             /* the part that makes a difference to the operator  */
} op_case;

enum { OP_CASE_NAME = 224 };   /* bytes of a name, at most */

void op_case_name(char *out, size_t n, const op_case *c);
/* False: no case has this name. */
bool op_case_read(op_case *c, const char *name);

/* Round i of a kind of input, by default settings; with `large` the i-th of its
 * large sizes, false past the last. */
bool op_case_round(op_case *c, op_kind op, op_input in, uint64_t seed,
                   bool large, int64_t i);

/* A failing call as a case folder, with what the candidate made of it, where
 * the report wants that. */
void case_keep(tt_ctx *ctx, struct tt_report *r, const op_call *q,
               const tt_verdict *v, const double *got);

#endif
