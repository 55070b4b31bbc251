/* math.c: exp, log, powers, sine and cosine with one set of bits.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions of a C library differ from version to version, and inside one library from CPU to
 * CPU. These use only what IEEE 754 rounds exactly: + - * /, fma, rint, conversions. The method is
 * always the same: reduce the argument with constants in two or three parts, then a Taylor
 * polynomial by Horner's rule. Errors are below 1 ulp. */
#include "golden.h"

/* 2^n, -1022 <= n <= 1023. */
static double power_of_two(int n) {
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* c[0] x^(n-1) + c[1] x^(n-2) + ... + c[n-1]. */
static double horner(const double *c, int n, double x) {
    double p = c[0];
    for (int i = 1; i < n; i++) p = fma(p, x, c[i]);
    return p;
}

/* x = n ln 2 + r + tail, where the high part of ln 2 has 36 bits, so that n times it is exact.
 * Returns exp(r + tail) - 1 - r: the Taylor series from r^2 on. */
static double exp_parts(double x, int *n, double *r) {
    static const double q[] = {
        1.0 / 87178291200.0, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
        1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0,
        1.0 / 24.0, 1.0 / 6.0, 0.5};
    const double k = rint(x * 0x1.71547652b82fep+0), low = k * 0x1.cf79abc9e3b3ap-40;
    const double high = fma(k, -0x1.62e42fefa0000p-1, x);
    *n = (int)k;
    *r = high - low;
    const double tail = (high - *r) - low;
    return fma(horner(q, 13, *r), *r * *r, fma(tail, *r, tail));
}

double golden_exp(double x) {
    int n;
    double r;
    if (x != x || x > 710) return x != x ? x : (double)INFINITY;
    if (x < -746) return 0;
    const double rest = exp_parts(x, &n, &r), y = 1 + (r + rest);
    return y * power_of_two(n / 2) * power_of_two(n - n / 2);
}

/* x = 2^k m with m near 1, f = m - 1, s = f / (2 + f):
 *     log m = f - (f^2/2 - s (f^2/2 + R)),  R = 2 (s^2/3 + s^4/5 + ...)
 * and ln 2 in two parts for 2^k. */
double golden_log(double x) {
    static const double c[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                               2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
    int k;
    if (!(x > 0)) return x == 0 ? -(double)INFINITY : (double)NAN;
    if (x > DBL_MAX) return x;
    double m = frexp(x, &k);                     /* [0.5, 1), exact */
    if (2 * m <= 1.4142135623730951) m *= 2, k--;
    const double f = m - 1, s = f / (2 + f), z = s * s;
    const double R = horner(c, 11, z) * z, half = 0.5 * f * f;
    const double low = fma(s, half + R, k * 0x1.ef35793c76730p-45);
    return fma(k, 0x1.62e42fefa3800p-1, f - (half - low));
}

double golden_pow(double base, double y) { return golden_exp(y * golden_log(base)); }

/* Of x + tail, |x| <= pi / 4. */
static double sin_small(double x, double tail) {
    static const double c[] = {
        1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
        1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0};
    const double z = x * x, p = horner(c, 8, z);
    return x + fma(p * z, x, fma(tail, -0.5 * z, tail));
}

static double cos_small(double x, double tail) {
    static const double c[] = {
        -1.0 / 6402373705728000.0, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
        -1.0 / 3628800.0,          1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0};
    const double z = x * x, p = horner(c, 8, z), half = 0.5 * z, w = 1 - half;
    return w + (((1 - w) - half) + fma(p * z, z, -(x * tail)));
}

/* x = n pi/2 + r + tail, with pi/2 in three parts. */
void golden_sincos(double x, double *s, double *c) {
    const double p1 = 0x1.921fb54442d18p0, p2 = 0x1.1a62633145c07p-54, p3 = -0x1.f1976b7ed8fbcp-110;
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    const double high = n * p1, exact = fma(n, p1, -high), m = n * p2;
    const double low = exact + m, part = low - exact, lost = (exact - (low - part)) + (m - part);
    const double t = x - high, r = t - low;
    const double tail = ((t - r) - low) - (lost + fma(n, p3, fma(n, p2, -m)));
    const double sr = sin_small(r, tail), cr = cos_small(r, tail);
    const int quarter = (int64_t)n & 3;
    *s = quarter == 0 ? sr : quarter == 1 ? cr : quarter == 2 ? -sr : -cr;
    *c = quarter == 0 ? cr : quarter == 1 ? -sr : quarter == 2 ? -cr : sr;
}

/* The top three bits are the octant, the others count 2^-29 of pi/4. */
void golden_turn(uint32_t b, double *s, double *c) {
    static const double step = 0x1.921fb54442d18p-30, step_low = 0x1.1a62633145c07p-84;
    const uint32_t octant = b >> 29, rest = b & 0x1fffffff;
    const double f = octant & 1 ? (double)(0x20000000 - rest) : (double)rest;
    const double x = f * step, tail = fma(f, step, -x) + f * step_low;
    const double sr = sin_small(x, tail), cr = cos_small(x, tail);
    const bool swap = (octant + 1) & 2;          /* nearer to the other axis */
    *s = swap ? cr : sr;
    *c = swap ? sr : cr;
    if (octant >= 4) *s = -*s;
    if (octant >= 2 && octant <= 5) *c = -*c;
}

/* n = rint(x / ln 2), r = x - n ln 2 in two parts, a polynomial of degree 8, times 2^n in two exact
 * halves, so that results below the normal range round once. Adding 1.5 * 2^23 rounds to an
 * integer. Comparisons are written so that NaN falls through. */
float golden_expf(float x) {
    static const float c[] = {2.48015873e-5f, 1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                              4.16666667e-2f, 1.66666667e-1f, 0.5f};
    float y = x > 89 ? 89 : x, p = c[0], s1, s2;
    if (y < -104) y = -104;
    const float n = fmaf(y, 1.44269502f, 12582912.0f) - 12582912.0f;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, y));
    for (int i = 1; i < 7; i++) p = fmaf(p, r, c[i]);
    const int k = x != x ? 0 : (int)n, half = k < 0 ? (k - 1) / 2 : k / 2;
    const uint32_t b1 = (uint32_t)(half + 127) << 23, b2 = (uint32_t)(k - half + 127) << 23;
    memcpy(&s1, &b1, sizeof s1);
    memcpy(&s2, &b2, sizeof s2);
    return (1 + fmaf(p, r * r, r)) * s1 * s2;
}
