/* arith.h: shared by the two files about declared arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_ARITH_H
#define TT_VALIDATE_ARITH_H

#include "tether/validate.h"

/* Behind those that can be declared: tf32 by rounding to nearest, the other
 * thing that honest programs do. */
enum { ARITH_COUNT = 6, ARITH_TF32_ROUNDED = ARITH_COUNT };
extern const tt_arith arith_list[ARITH_COUNT + 1];

#endif
