/* judge.h: shared by the rooms that judge.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_JUDGE_H
#define VALIDATE_JUDGE_H

#include "tether/validate.h"

/* Write v->where from v->m.worst. */
void verdict_place(tt_verdict *v);

/* |a - b|; 0 for the same NaN or infinity, infinite when one of them alone is
 * not finite. */
double value_distance(double a, double b);
/* The same bits, whatever those of a NaN are. */
bool value_same_bits(double a, double b);
/* Ascending, for qsort. */
int value_order(const void *a, const void *b);

#endif
