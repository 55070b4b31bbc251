/* test_mathfn.c: accuracy and bits of our elementary functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Accuracy is judged against the C library's long double functions (64-bit
 * mantissa on x86; where long double is double the limits are wider). Bits are
 * judged by a hash over a fixed input set: the same on every machine. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/mathfn.h"

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double uniform(double lo, double hi)
{
    return lo + (hi - lo) * ((double)(next() >> 11) * 0x1p-53);
}

/* Error of got in units of the last place of want. */
static double ulps(double got, long double want)
{
    if (want == 0) return got == 0 ? 0 : 1e9;
    int e;
    frexpl(want, &e);
    long double ulp = ldexpl(1, e - 53 < -1074 ? -1074 : e - 53);
    return (double)fabsl(((long double)got - want) / ulp);
}

static uint64_t hash;

static void mix(const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
}

static void mix64(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    unsigned char b[8];
    for (int i = 0; i < 8; i++) b[i] = (unsigned char)(u >> (8 * i));
    mix(b, 8);
}

static void mix32(float f)
{
    uint32_t u;
    if (f != f) f = 0;   /* payloads of NaN are not part of the contract */
    memcpy(&u, &f, 4);
    unsigned char b[4];
    for (int i = 0; i < 4; i++) b[i] = (unsigned char)(u >> (8 * i));
    mix(b, 4);
}

static void test_double(void)
{
    bool wide = LDBL_MANT_DIG >= 64;
    double slack = wide ? 0.01 : 1.0;
    double e_exp = 0, e_log = 0, e_sin = 0, e_tanh = 0;
    for (int i = 0; i < 400000; i++) {
        double x = i % 2 ? uniform(-740, 709) : uniform(-1, 1), s, c;
        double y = tt_exp(x);
        e_exp = fmax(e_exp, ulps(y, expl(x)));
        mix64(y);
        int e = (int)(next() % 2000) - 1000;
        x = i % 3 ? ldexp(uniform(0.5, 2), e) : uniform(0.9, 1.1);
        y = tt_log(x);
        e_log = fmax(e_log, ulps(y, logl(x)));
        mix64(y);
        x = i % 2 ? uniform(-1100, 1100) : uniform(-4, 4);
        tt_sincos(x, &s, &c);
        e_sin = fmax(e_sin, fmax(ulps(s, sinl(x)), ulps(c, cosl(x))));
        mix64(s);
        mix64(c);
        x = i % 2 ? uniform(-20, 20) : uniform(-0.5, 0.5);
        y = tt_tanh(x);
        e_tanh = fmax(e_tanh, ulps(y, tanhl(x)));
        mix64(y);
        tt_sincos_turn((uint32_t)next(), &s, &c);
        mix64(s);
        mix64(c);
    }
    expect(e_exp <= 1 + slack, "exp: %.3f ulp", e_exp);
    expect(e_log <= 1 + slack, "log: %.3f ulp", e_log);
    expect(e_sin <= 1 + slack, "sin, cos: %.3f ulp", e_sin);
    expect(e_tanh <= 2.5 + slack, "tanh: %.3f ulp", e_tanh);
}

static void test_turn(void)
{
    /* exact octants, and the reduced angle against long double */
    double s, c, worst = 0;
    tt_sincos_turn(0, &s, &c);
    expect(s == 0 && c == 1, "turn 0");
    tt_sincos_turn(0x40000000u, &s, &c);
    expect(s == 1 && c == 0, "quarter turn");
    tt_sincos_turn(0x80000000u, &s, &c);
    expect(s == 0 && c == -1, "half turn");
    for (int i = 0; i < 200000; i++) {
        uint32_t b = (uint32_t)next() >> 3;      /* first octant */
        long double a = 0x1.921fb54442d1846ap-1L * (long double)b / 0x1p29L;
        tt_sincos_turn(b, &s, &c);
        worst = fmax(worst, fmax(ulps(s, sinl(a)), ulps(c, cosl(a))));
        double s2, c2;
        tt_sincos_turn(b + 0xc0000000u, &s2, &c2);   /* minus a quarter */
        if (s2 != -c || c2 != s) worst = 1e9;
    }
    expect(worst <= (LDBL_MANT_DIG >= 64 ? 1.01 : 2), "turn: %.3f ulp", worst);
}

static void test_float(void)
{
    double worst = 0;
    /* every 1021st float, specials included; all 2^32 were run once: 0.97 */
    for (uint64_t u = 0; u < 0x100000000u; u += 1021) {
        uint32_t bits = (uint32_t)u;
        float x;
        memcpy(&x, &bits, 4);
        float y = tt_expf(x);
        mix32(y);
        double want = exp((double)x);
        if (x != x) {
            if (y == y) worst = 1e9;
        } else if (want > 3.4028235677973366e38) {
            if (!isinf(y)) worst = 1e9;
        } else {
            int e;
            frexp(want, &e);
            double ulp = ldexp(1, e - 24 < -149 ? -149 : e - 24);
            worst = fmax(worst, fabs((double)y - want) / ulp);
        }
    }
    expect(worst <= 1.0, "expf: %.3f ulp", worst);
    expect(tt_expf(0) == 1 && tt_expf(-INFINITY) == 0 && isinf(tt_expf(INFINITY)),
           "expf specials");
    expect(tt_exp(0) == 1 && tt_exp(-INFINITY) == 0 && isinf(tt_exp(INFINITY)) &&
           tt_exp(NAN) != tt_exp(NAN), "exp specials");
    expect(isinf(tt_log(0)) && tt_log(-1) != tt_log(-1) && tt_log(1) == 0,
           "log specials");
    expect(tt_tanh(1e300) == 1 && tt_tanh(-0.0) == 0, "tanh specials");
}

int main(void)
{
    test_begin("core/mathfn");
    hash = 0xcbf29ce484222325u;
    test_double();
    test_turn();
    test_float();
    expect(hash == 0xbca763264d43d222u, "hash of all results is 0x%llxu",
           (unsigned long long)hash);
    return test_end();
}
