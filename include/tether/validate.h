/* validate.h: is someone else's backend right; if not, where, and how?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three ways in: a shared object that fills an operator table (plug-in), files
 * of tensors dumped by another program, and case folders. All three end in
 * verdicts, one per tensor, collected in a report.
 *
 * How a tensor is checked. Three numbers are known of every element: what the
 * candidate computed, what float64 gives (the oracle), and what our own
 * emulation of the arithmetic the candidate *declares* gives. The last two
 * differ by the error that arithmetic must have; the candidate may err a small
 * multiple of it (TT_SLACK), measured per row, and not more. No table of
 * tolerances exists. */
#ifndef TETHER_VALIDATE_H
#define TETHER_VALIDATE_H

#include "tether/api.h"
#include "tether/arith.h"
#include "tether/backend.h"
#include "tether/plugin.h"
#include "tether/rollout.h"

TT_API_BEGIN

/* ---- verdicts ------------------------------------------------------------ */

typedef enum tt_outcome {
    TT_PASS, TT_TIE,   /* a selection flipped inside the arithmetic's error   */
    TT_MISMATCH, TT_MISSING, TT_MISSHAPEN,
    TT_UNCHECKED,      /* nothing says what it should be: no pass, no failure */
    TT_EXPECTED,       /* a failure that was expected (--xfail)               */
    TT_UNSUPPORTED     /* the candidate set TT_EUNSUPPORTED for this shape    */
} tt_outcome;
const char *tt_outcome_name(tt_outcome o);

/* ---- report -------------------------------------------------------------- */

typedef struct tt_report tt_report;

/* An empty report; arith NULL: candidates say nothing of their arithmetic. */
tt_status tt_report_new(tt_ctx *ctx, tt_report **out, const char *title,
                        const tt_arith *arith);
void tt_report_free(tt_report *r);

/* True when something was compared and everything passed or tied. */
bool tt_report_passed(const tt_report *r);

/* Short text, versioned JSON ("schema": "tether-validate/2"), JUnit XML, one
 * self-contained HTML page. `path` "-" is standard output. */
tt_status tt_report_text(tt_ctx *ctx, const tt_report *r, const char *path,
                         bool all);
tt_status tt_report_json(tt_ctx *ctx, const tt_report *r, const char *path);

/* ---- operator checks ----------------------------------------------------- */

typedef struct tt_opcheck_options {
    const tt_arith *arith;
    uint64_t seed;
    int64_t rounds;          /* random shapes per operator and kind of input  */
    const char *only;        /* NULL or an operator's name                    */
    bool small;              /* leave the large sizes out                     */
    const char *one;         /* NULL or a case: that one alone, as it is      */
} tt_opcheck_options;
/* Every operator of `ops`, but not ours in its gaps unless `only` names it, on
 * random and pathological inputs, odd and tiny sizes, canaries around outputs
 * and NaN around inputs, every call made twice. Arrays aligned to an element
 * only, rows wider than what is read of them, norms and rope in place: each
 * with and without the others in 8 rounds. A failure is reduced to the smallest
 * failing shape. One verdict per case that failed, one per operator and kind of
 * input that passed. Other bits at the second call, both right, are a note. */
tt_status tt_opcheck(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const tt_opcheck_options *opt);

/* ---- the model, operator by operator ------------------------------------- */

/* A table that runs every call on our operators (whose result goes on), and
 * those of the candidate's own on it, the oracle and the emulation, and adds a
 * verdict. Of a linear, attention or conv of more than some 17 million
 * multiply-adds rows are checked: the first, the last, those farthest from
 * ours, and some between. One at a time per context. */
typedef struct tt_shadow tt_shadow;
tt_status tt_shadow_open(tt_ctx *ctx, tt_shadow **out, tt_report *report,
                         const tt_ops *candidate, const tt_arith *arith);
/* Sets ctx->ops back. */
void tt_shadow_close(tt_ctx *ctx, tt_shadow *s);

TT_API_END

#endif
