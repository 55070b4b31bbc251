/* arithmetic.h: what the modules use of tether/arith.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_ARITHMETIC_H
#define TT_OPS_ARITHMETIC_H

#include "ops/backend.h"
#include "tether/arith.h"

/* What a backend may say besides, of the machine or of its kernels: "f32+ftz",
 * "tf32+winograd+ftz". Limits of operator calls know it; the emulated program
 * is the same but for time32.
 *   ftz       subnormal float32 numbers are 0, as inputs, on the way, as
 *             results
 *   winograd  convolutions of 3 x 3 taps and stride 1 by Winograd's method, in
 *             tiles of up to 4 x 4
 *   bias      biases of linear and conv are rounded as inputs of products are
 *   saturate  what f16 cannot hold, infinity too, becomes 65504 where inputs of
 *             products are rounded
 *   time32    the sinusoid of the time is computed in float32: angles, and the
 *             frequencies before them. No operator has it; the emulated program
 *             does the same
 *   fused     no word of a backend: an operator is one kernel, which stores its
 *             result alone */
typedef enum tt_allow {
    TT_ALLOW_FTZ = 1, TT_ALLOW_WINOGRAD = 2, TT_ALLOW_BIAS = 4,
    TT_ALLOW_SATURATE = 8, TT_ALLOW_TIME32 = 16, TT_ALLOW_ALL = 31,
    TT_ALLOW_FUSED = 32
} tt_allow;

/* "f32", "tf32", "f16", "bf16", "f16-stored", "bf16-stored", then the classes
 * but f32 (classes.h); NULL past the end or when unknown. */
const tt_arith *tt_arith_at(int i);
/* The same and what `allow` says besides; NULL for a class. */
const tt_arith *tt_arith_allow(const tt_arith *arith, unsigned allow);
/* After a name that is none: " (did you mean f16+ftz?)" of fp16+ftz, what may
 * follow a +, or "". */
#define TT_ARITH_HINT 200
const char *tt_arith_hint(char buf[TT_ARITH_HINT], const char *name);
/* The same checked by its bits: of a class, for a candidate that says that it
 * computes that class. NULL when it is no class ("tf32"). */
const tt_arith *tt_arith_bits(const tt_arith *arith);
/* Distance between 1 and the next value: 2^-23, 2^-10, 2^-10, 2^-7. */
double tt_format_epsilon(tt_format f);
/* A table that computes in the declared arithmetic (plain loops). */
const tt_ops *tt_arith_ops(const tt_arith *arith);

#endif
