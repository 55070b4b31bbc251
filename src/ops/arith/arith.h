/* arith.h: what the module shares, and validation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_ARITH_H
#define TT_OPS_ARITH_H

#include "ops/arithmetic.h"

/* After those that can be declared: tf32 by rounding to nearest, the other
 * thing that honest programs do. */
enum { ARITH_COUNT = 6, ARITH_TF32_ROUNDED = ARITH_COUNT };
extern const tt_arith arith_list[ARITH_COUNT + 1];

/* That whose plain program an arithmetic has: bf16 for the classes of such
 * products, itself else. */
const tt_arith *arith_plain(const tt_arith *a);
/* A table that gives, in place of a result, what an honest program may err at
 * every element whatever the order of its sums (bound.c). */
const tt_ops *arith_bounds(const tt_arith *a);

/* x without the 13 fraction bits that tf32 has not: what matrix units do with
 * a float32 input. */
float arith_cut_tf32(float x);

#endif
