/* mathfn.c: elementary functions with one set of bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They are defined in src/golden/math.c, but for tanh. */
#include "tether/mathfn.h"

#include "core/mathfn.h"

#undef TT_REAL_DOUBLE   /* the compute type is no matter here */
#include "core/golden_names.h"
#include "golden/math.c"

double tt_exp(double x)
{
    return golden_exp(x);
}

double tt_log(double x)
{
    return golden_log(x);
}

double tt_pow(double base, double y)
{
    return golden_pow(base, y);
}

void tt_sincos(double x, double *s, double *c)
{
    golden_sincos(x, s, c);
}

void tt_sincos_turn(uint32_t b, double *s, double *c)
{
    golden_turn(b, s, c);
}

float tt_expf(float x)
{
    return golden_expf(x);
}

/* a + b = *sum + the value returned, exactly. */
static double add_exact(double a, double b, double *sum)
{
    *sum = a + b;
    const double bb = *sum - a;
    return (a - (*sum - bb)) + (b - bb);
}

/* e / (e + 2) with e = exp(2|x|) - 1. Both are kept as a sum of two doubles,
 * and the quotient is corrected once by its remainder. */
double tt_tanh(double x)
{
    const double a = fabs(x);
    if (a != a) return x;
    if (a > 22) return x < 0 ? -1 : 1;
    int n;
    double r, h, e, d;
    const double rest = exp_parts(2 * a, &n, &r), s = power_of_two(n);
    const double h_lo = add_exact(s - 1, s * r, &h) + s * rest;
    const double e_lo = add_exact(h, h_lo, &e);
    const double d_lo = add_exact(e, 2, &d) + e_lo;
    const double q = e / d;
    const double t = q + (fma(-q, d, e) + (e_lo - q * d_lo)) / d;
    return copysign(t, x);
}

float tt_tanhf(float x)
{
    return (float)tt_tanh((double)x);
}
