/* arith.h: shared by the two files about declared arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_ARITH_H
#define TT_VALIDATE_ARITH_H

#include "tether/validate.h"

enum { ARITH_COUNT = 6 };
extern const tt_arith arith_list[ARITH_COUNT];

#endif
