/* candidate.h: one call on someone else's operator, watched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_CANDIDATE_H
#define VALIDATE_CANDIDATE_H

#include "validate/operators/call.h"

/* How an operator behaved. */
typedef struct candidate_tally {
    int64_t calls, twice;    /* in all; made again with the same inputs       */
    int64_t unsteady;        /* ... and gave other bits                       */
    int64_t refused;         /* it said that it does not do them              */
} candidate_tally;
/* What of that is to be told; `calls` is a word for them. */
void candidate_note(tt_report *r, op_kind op, const candidate_tally *t,
                    const char *calls);

typedef struct candidate_call {
    /* asked for */
    const tt_ops *ops;   /* of watched_make                                   */
    bool odd;            /* the output one element after an aligned address   */
    bool twice;          /* call it again with the same inputs                */
    int threads;         /* of ctx->nthreads then; 0: as many                 */
    struct watch *watch; /* who looks on; NULL: no one                        */
    const char *path;    /* for him, and of the verdict                       */
    uint64_t seed;       /* of the rows that are checked of a large call      */
    bool cuts;           /* a pass must not cut where it should round         */
    bool hint;           /* the verdict's is found: it takes many runs        */
    candidate_tally *tally;
    /* found */
    double *got;         /* [n] its result, in ctx->scratch                   */
    bool unsteady;       /* the second call gave other bits; `got` is the one
                            of the two that is farther from ours              */
    bool unsupported;    /* it says so (TT_EUNSUPPORTED), and why             */
    char why[192];       /* it did what no operator may: a mismatch, however
                            right the values are; "" else                     */
    const double *rows, *want;   /* of the verdict's shape: got, and right    */
    bool sampled;        /* they are not all rows                             */
} candidate_call;

/* Run q and check it, v->dim[0] rows of it. The output starts as garbage, with
 * 64 KiB and a row of canaries on both sides, and after these memory that
 * cannot be touched; inputs are read-only. ours: [n] as double.
 * False when there is nothing to check: ctx has failed by itself. */
bool candidate_check(tt_ctx *ctx, candidate_call *c, const op_call *q,
                     const tt_arith *arith, const double *ours, tt_verdict *v);

#endif
