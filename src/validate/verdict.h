/* verdict.h: shared by all that checks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_VERDICT_H
#define VALIDATE_VERDICT_H

#include "validate/validate.h"

/* Write v->where from v->m.worst. */
void verdict_place(tt_verdict *v);

/* tt_verdict_check of the result of one operator. Where products or results are
 * of 16 bits it is also checked by its slope and its columns:
 *   slope   of got on want, row by row. Errors of rounding have either sign
 *           and leave next to none; numbers that are cut err by a third of a
 *           unit towards 0. It may be half a relative error of the arithmetic,
 *           and what chance makes of as many values, away from 1 or from that
 *           of emul.
 *   column  of at least 16 rows: its rms error may be `slack` times that of
 *           emul there, so that a small channel is not hidden by large ones.
 * slack   TT_SLACK/2 for one operator; TT_SLACK for a segment, inside which
 *         programs round at other places. */
void verdict_check_columns(tt_verdict *v, const tt_arith *arith,
                           const double *got, const double *want,
                           const double *emul, int64_t n, int64_t c,
                           double slack);
void verdict_check_call(tt_verdict *v, const tt_arith *arith, const double *got,
                        const double *want, const double *emul, int64_t n,
                        int64_t c);

/* |a - b|; 0 for the same NaN or infinity, infinite when one of them alone is
 * not finite. */
double value_distance(double a, double b);
/* The same bits, whatever those of a NaN are. */
bool value_same_bits(double a, double b);

#endif
