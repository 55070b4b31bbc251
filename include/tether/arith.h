/* arith.h: the arithmetic that a program declares.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A declared arithmetic is looser than a class (classes.h): it says in which
 * format products and results are, and leaves the order of sums open. Its table
 * of operators is a plain program of that arithmetic; the error that program
 * makes against float64 is what others may make too (validate.h). */
#ifndef TETHER_ARITH_H
#define TETHER_ARITH_H

#include "tether/api.h"
#include "tether/backend.h"

TT_API_BEGIN

/* What a backend says it computes with. Inputs of matrix products (linear,
 * attention, convolution) are rounded to `product` (tf32: the bits behind it
 * are cut off, as matrix units do; programs that round err less), sums are
 * float32; with `stored` every operator's result is rounded to that type as
 * well. */
typedef enum tt_format {
    TT_FMT_F32, TT_FMT_TF32, TT_FMT_F16, TT_FMT_BF16,
    /* by a program that cuts where it should round: a mistake to be imitated */
    TT_FMT_F16_CUT, TT_FMT_BF16_CUT
} tt_format;
typedef struct tt_arith {
    const char *name, *summary;
    tt_format product, stored;
    tt_class cls;        /* whose golden results stand beside the candidate's */
    bool bits;           /* every bit must be that class's: no limits         */
    unsigned allows;     /* tt_allow, added up                                */
} tt_arith;

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
 *             does the same */
typedef enum tt_allow {
    TT_ALLOW_FTZ = 1, TT_ALLOW_WINOGRAD = 2, TT_ALLOW_BIAS = 4,
    TT_ALLOW_SATURATE = 8, TT_ALLOW_TIME32 = 16, TT_ALLOW_ALL = 31
} tt_allow;

/* "f32", "tf32", "f16", "bf16", "f16-stored", "bf16-stored", then the classes
 * but f32 (classes.h); NULL past the end or when unknown. */
const tt_arith *tt_arith_at(int i);
/* By name; the first six also with what they allow, "bf16+bias". */
const tt_arith *tt_arith_find(const char *name);
/* The same and what `allow` says besides; NULL for a class. */
const tt_arith *tt_arith_allow(const tt_arith *arith, unsigned allow);
/* "f32, tf32, ...", for messages. */
const char *tt_arith_names(void);
/* Behind a name that is none: " (did you mean f16+ftz?)" of fp16+ftz, what may
 * follow a +, or "". */
#define TT_ARITH_HINT 200
const char *tt_arith_hint(char buf[TT_ARITH_HINT], const char *name);
/* The same judged by its bits: of a class, for a candidate that says that it
 * computes that class. NULL when it is no class ("tf32"). */
const tt_arith *tt_arith_bits(const tt_arith *arith);
/* x rounded to nearest even in the format, or cut. tf32 has 10 fraction bits
 * and the range of f32; what overflows f16 becomes infinite, or 65504. */
float tt_format_round(tt_format f, float x);
/* Distance between 1 and the next value: 2^-23, 2^-10, 2^-10, 2^-7. */
double tt_format_epsilon(tt_format f);
/* A table that computes in the declared arithmetic (plain loops). */
const tt_ops *tt_arith_ops(const tt_arith *arith);

TT_API_END

#endif
