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
 * attention, convolution) are rounded to `product` (tf32: the bits after it
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
    tt_class cls;        /* whose golden results are next to the other's      */
    bool bits;           /* every bit must be that class's: no limits         */
    unsigned allows;     /* tt_allow, added up                                */
} tt_arith;

/* By name; the first six also with what they allow, "bf16+bias". */
const tt_arith *tt_arith_find(const char *name);
/* "f32, tf32, ...", for messages. */
const char *tt_arith_names(void);
/* x rounded to nearest even in the format, or cut. tf32 has 10 fraction bits
 * and the range of f32; what overflows f16 becomes infinite, or 65504. */
float tt_format_round(tt_format f, float x);

TT_API_END

#endif
