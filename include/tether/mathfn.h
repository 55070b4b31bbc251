/* mathfn.h: our own elementary functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * libm differs between systems, and even between CPUs inside one glibc, so no
 * golden path calls it. These use only +, -, *, /, sqrt, fma and conversions
 * in a fixed order, so they give the same bits everywhere. Measured errors
 * stand above each definition in core/mathfn.c. */
#ifndef TETHER_MATHFN_H
#define TETHER_MATHFN_H

#include "tether/tensor.h"

/* double, target error <= 1 ulp */
double tt_exp(double x);
double tt_log(double x);             /* x < 0: NaN; 0: -inf                  */
double tt_tanh(double x);
double tt_pow(double base, double y);/* exp(y*log(base)), base > 0           */
void tt_sincos(double x, double *s, double *c);  /* |x| <= 2^30              */
/* sin and cos of 2*pi*b/2^32, argument reduction exact in b */
void tt_sincos_turn(uint32_t b, double *s, double *c);

/* float, target error <= 1 ulp; NaN in, NaN out; overflow to inf, gradual
 * underflow */
float tt_expf(float x);
float tt_tanhf(float x);

/* the same in the compute type */
#ifdef TT_REAL_DOUBLE
#define tt_exp_real tt_exp
#define tt_tanh_real tt_tanh
#else
#define tt_exp_real tt_expf
#define tt_tanh_real tt_tanhf
#endif

#endif
