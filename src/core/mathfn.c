/* mathfn.c: elementary functions with one set of bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Method  argument reduction with constants split in two or three parts, then
 *         Taylor polynomials by Horner with fma. No table, no libm beyond
 *         exactly rounded sqrt and rint. */
#include "tether/mathfn.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/mathfn.h"

static double from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static uint64_t to_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

static double pow2(int n)   /* -1022 <= n <= 1023 */
{
    return from_bits((uint64_t)(n + 1023) << 52);
}

/* a + b = *sum + the value returned, exactly. */
static double add_exact(double a, double b, double *sum)
{
    *sum = a + b;
    double bb = *sum - a;
    return (a - (*sum - bb)) + (b - bb);
}

#define LOG2E 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42fefa0000p-1   /* 36 bits: n*LN2_HI is exact         */
#define LN2_LO 0x1.cf79abc9e3b3ap-40

/* exp(r + tail) - 1 - r for |r| <= ln2/2: r^2 q(r) + tail, q to degree 12. */
static double expm1_rest(double r, double tail)
{
    static const double q[] = {
        1.0 / 87178291200.0, 1.0 / 6227020800.0, 1.0 / 479001600.0,
        1.0 / 39916800.0,    1.0 / 3628800.0,    1.0 / 362880.0,
        1.0 / 40320.0,       1.0 / 5040.0,       1.0 / 720.0,
        1.0 / 120.0,         1.0 / 24.0,         1.0 / 6.0,
        0.5,
    };
    double p = q[0];
    for (size_t i = 1; i < sizeof q / sizeof q[0]; i++) p = fma_f64(p, r, q[i]);
    /* exp(r + tail) - 1 = exp(r) - 1 + tail (1 + r) + ... */
    return fma_f64(p, r * r, fma_f64(tail, r, tail));
}

/* x = n ln2 + r + tail */
static double reduce_ln2(double x, double *r, double *tail)
{
    double n = rint(x * LOG2E);
    double hi = fma_f64(n, -LN2_HI, x);   /* exact */
    double lo = n * LN2_LO;
    *r = hi - lo;
    *tail = (hi - *r) - lo;
    return n;
}

double tt_exp(double x)
{
    if (x != x) return x;
    if (x > 710.0) return (double)INFINITY;
    if (x < -746.0) return 0.0;
    double r, tail;
    int n = (int)reduce_ln2(x, &r, &tail);
    double y = 1.0 + (r + expm1_rest(r, tail));
    int n1 = n / 2;
    return y * pow2(n1) * pow2(n - n1);
}

/* e / (e + 2) with e = exp(2|x|) - 1. Both are kept as a sum of two doubles,
 * and the quotient is corrected once by its remainder. */
double tt_tanh(double x)
{
    double a = fabs(x);
    if (a != a) return x;
    if (a > 22.0) return x < 0 ? -1.0 : 1.0;
    double r, tail, h, e, d;
    double s = pow2((int)reduce_ln2(2.0 * a, &r, &tail));
    double h_lo = add_exact(s - 1.0, s * r, &h) + s * expm1_rest(r, tail);
    double e_lo = add_exact(h, h_lo, &e);
    double d_lo = add_exact(e, 2.0, &d) + e_lo;
    double q = e / d;
    double t = q + (fma_f64(-q, d, e) + (e_lo - q * d_lo)) / d;
    return copysign(t, x);
}

double tt_log(double x)
{
    if (x != x || x < 0.0) return (double)NAN;
    if (x == 0.0) return -(double)INFINITY;
    if (x > 1.7976931348623157e308) return x;
    int k = 0;
    if (x < 2.2250738585072014e-308) {
        x *= 0x1p54;
        k = -54;
    }
    uint64_t u = to_bits(x);
    k += (int)(u >> 52) - 1023;
    u = (u & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m = from_bits(u);                 /* [1, 2) */
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    /* log(1+f) = f - s (f - R), s = f/(2+f), R = 2 (s^2/3 + s^4/5 + ...) */
    double f = m - 1.0, s = f / (2.0 + f), z = s * s;
    static const double c[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15,
                               2.0 / 13, 2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,
                               2.0 / 3};
    double R = c[0];
    for (size_t i = 1; i < sizeof c / sizeof c[0]; i++) R = fma_f64(R, z, c[i]);
    R *= z;
    /* the large term f - f^2/2 is kept apart:
     * s (f - R) = f^2/2 - s(f^2/2 + R) */
    double h = 0.5 * f * f, kd = k;
    double low = fma_f64(s, h + R, kd * 0x1.ef35793c76730p-45);
    return fma_f64(kd, 0x1.62e42fefa3800p-1, f - (h - low));
}

double tt_pow(double base, double y)
{
    return tt_exp(y * tt_log(base));
}

/* ---- sine and cosine ----------------------------------------------------- */

/* |x| <= pi/4, true argument x + tail */
static double sin_small(double x, double tail)
{
    static const double c[] = {
        1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0,
        -1.0 / 39916800.0,       1.0 / 362880.0,         -1.0 / 5040.0,
        1.0 / 120.0,             -1.0 / 6.0,
    };
    double z = x * x, p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof c[0]; i++) p = fma_f64(p, z, c[i]);
    return x + fma_f64(p * z, x, fma_f64(tail, -0.5 * z, tail));
}

static double cos_small(double x, double tail)
{
    static const double c[] = {
        -1.0 / 6402373705728000.0, 1.0 / 20922789888000.0,
        -1.0 / 87178291200.0,      1.0 / 479001600.0,
        -1.0 / 3628800.0,          1.0 / 40320.0,
        -1.0 / 720.0,              1.0 / 24.0,
    };
    double z = x * x, p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof c[0]; i++) p = fma_f64(p, z, c[i]);
    double h = 0.5 * z, w = 1.0 - h;
    /* 1 - z/2 loses (1 - w) - h; give it back with the small terms */
    return w + (((1.0 - w) - h) + fma_f64(p * z, z, -(x * tail)));
}

void tt_sincos(double x, double *s, double *c)
{
    static const double p1 = 0x1.921fb54442d18p+0; /* pi/2 in three parts */
    static const double p2 = 0x1.1a62633145c07p-54;
    static const double p3 = -0x1.f1976b7ed8fbcp-110;
    double n = rint(x * 0x1.45f306dc9c883p-1 /* 2/pi */);
    double h = n * p1, l = fma_f64(n, p1, -h);   /* n*p1 = h + l exactly */
    double t = x - h;                        /* exact */
    double m = n * p2, low;
    double lowest = add_exact(l, m, &low) + fma_f64(n, p3, fma_f64(n, p2, -m));
    double r = t - low, tail = ((t - r) - low) - lowest;
    double sr = sin_small(r, tail), cr = cos_small(r, tail);
    switch ((int64_t)n & 3) {
    case 0: *s = sr; *c = cr; break;
    case 1: *s = cr; *c = -sr; break;
    case 2: *s = -sr; *c = -cr; break;
    default: *s = -cr; *c = sr; break;
    }
}

void tt_sincos_turn(uint32_t b, double *s, double *c)
{
    /* octant from the top three bits; the rest counts 2^29-ths of pi/4 */
    uint32_t octant = b >> 29, rest = b & 0x1fffffffu;
    double f = (octant & 1) ? (double)(0x20000000u - rest) : (double)rest;
    static const double step = 0x1.921fb54442d18p-30;  /* pi/4 / 2^29 */
    static const double step_lo = 0x1.1a62633145c07p-84;
    double x = f * step, tail = fma_f64(f, step, -x) + f * step_lo;
    double sr = sin_small(x, tail), cr = cos_small(x, tail);
    /* octants 1,2 and 5,6 are nearer to the axis of the cosine */
    bool swap = ((octant + 1) & 2) != 0;
    double ss = swap ? cr : sr, cc = swap ? sr : cr;
    *s = octant >= 4 ? -ss : ss;
    *c = (octant >= 2 && octant <= 5) ? -cc : cc;
}

/* ---- float --------------------------------------------------------------- */

float tt_expf(float x)
{
    return exp_f32(x);
}

float tt_tanhf(float x)
{
    return (float)tt_tanh((double)x);
}
