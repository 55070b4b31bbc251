/* verdict.h: shared by all that checks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_VERDICT_H
#define VALIDATE_VERDICT_H

#include "validate/validate.h"

/* Write v->where from v->m.worst. */
void verdict_place(tt_verdict *v);

/* |a - b|; 0 for the same NaN or infinity, infinite when one of them alone is
 * not finite. */
double value_distance(double a, double b);
/* The same bits, whatever those of a NaN are. */
bool value_same_bits(double a, double b);

#endif
