/* mathfn.h: our own elementary functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libm differs between systems, and even between CPUs inside one glibc, so no
 * golden path calls it. These use only +, -, *, /, sqrt, fma and conversions
 * in a fixed order, so they give the same bits everywhere. The errors are the
 * largest measured in tests/core/test_mathfn.c, which fails above the limit. */
#ifndef TETHER_MATHFN_H
#define TETHER_MATHFN_H

#include <stdint.h>
#include "tether/api.h"

TT_API_BEGIN

double tt_exp(double x);             /* 0.79 ulp                             */
double tt_log(double x);             /* 0.83 ulp; x < 0: NaN; 0: -inf        */
double tt_tanh(double x);            /* 0.72 ulp                             */
/* exp(y*log(base)) by definition, base > 0: the rounded product makes the
 * error grow with |y*log(base)|; 16 ulp for 10000^y, -1 <= y <= 0 */
double tt_pow(double base, double y);
void tt_sincos(double x, double *s, double *c);  /* 0.78 ulp, |x| <= 2^30    */
/* sin and cos of 2*pi*b/2^32, argument reduction exact in b; 0.79 ulp */
void tt_sincos_turn(uint32_t b, double *s, double *c);

/* 0.98 ulp over all floats; NaN in, NaN out; overflow to inf, gradual
 * underflow */
float tt_expf(float x);
float tt_tanhf(float x);             /* tt_tanh, rounded: 0.50 ulp           */

/* the same in the compute type */
#ifdef TT_REAL_DOUBLE
#define tt_exp_real tt_exp
#define tt_tanh_real tt_tanh
#else
#define tt_exp_real tt_expf
#define tt_tanh_real tt_tanhf
#endif

TT_API_END

#endif
