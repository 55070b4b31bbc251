/* test_mathfn.c: accuracy and bits of our elementary functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Double functions are checked by true values: those stored in
 * ref_data/mathfn/values.txt always, and by MPFR on more inputs where the
 * build found it. Float functions are checked by the C library's double ones,
 * on a sample of all floats and on the worst inputs of the scan of all 2^32
 * (tools/math_scan.c). Bits are checked by hashes over fixed inputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/mathfn.h"
#include "tests/harness.h"
#include "tools/lib/math_ref.h"

static uint64_t hash;

static void mix(uint64_t word)
{
    hash = (hash ^ word) * 0x100000001b3u;
}

static void mix_double(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    mix(u);
}

/* ---- double -------------------------------------------------------------- */

static math_id find(const char *name)
{
    int f = 0;
    while (f < MATH_COUNT && strcmp(math_table[f].name, name) != 0) f++;
    return (math_id)f;
}

/* "function x hi rest" per line, hexadecimal floats. */
static void test_stored(void)
{
    double worst[MATH_COUNT] = {0};
    int rows[MATH_COUNT] = {0};
    char line[256], name[32];
    FILE *file = fopen(ref_path("mathfn/values.txt"), "r");
    if (!expect(file != NULL, "ref_data/mathfn/values.txt opens")) return;
    while (fgets(line, sizeof line, file)) {
        double x, hi, rest;
        if (line[0] == '#') continue;
        int n = sscanf(line, "%31s %la %la %la", name, &x, &hi, &rest);
        math_id f = n == 4 ? find(name) : MATH_COUNT;
        if (!expect(f != MATH_COUNT, "a row of values.txt: %s", line)) break;
        worst[f] = fmax(worst[f], math_ulps(math_own(f, x), hi, rest));
        rows[f]++;
    }
    fclose(file);
    for (int f = 0; f < MATH_COUNT; f++)
        expect(rows[f] > 100 && worst[f] <= math_table[f].limit,
               "%s: %.3f ulp in %d stored values, limit %g",
               math_table[f].name, worst[f], rows[f], math_table[f].limit);
}

#ifdef TT_HAVE_MPFR
static void test_mpfr(void)
{
    math_mpfr m;
    math_mpfr_init(&m);
    for (int f = 0; f < MATH_COUNT; f++) {
        double worst = 0, at = 0;
        for (uint64_t i = 0; i < 30000; i++) {
            double x = math_input((math_id)f, i), hi, rest;
            math_true(&m, (math_id)f, x, &hi, &rest);
            double err = math_ulps(math_own((math_id)f, x), hi, rest);
            if (!(err <= worst)) {
                worst = err;
                at = x;
            }
        }
        expect(worst <= math_table[f].limit, "%s: %.3f ulp at %a, limit %g",
               math_table[f].name, worst, at, math_table[f].limit);
    }
    math_mpfr_clear(&m);
}
#else
static void test_mpfr(void)
{
    skip("no comparison with MPFR (libmpfr-dev is not installed); the stored "
         "values were checked");
}
#endif

static void test_double_bits(void)
{
    hash = 0xcbf29ce484222325u;
    for (int f = 0; f < MATH_COUNT; f++)
        for (uint64_t i = 0; i < 100000; i++)
            mix_double(math_own((math_id)f, math_input((math_id)f, i)));
    expect(hash == 0x11c4f7b4310dbd54u, "hash of the double results is 0x%llxu",
           (unsigned long long)hash);
}

static void test_specials(void)
{
    double s, c;
    expect(tt_exp(0) == 1 && tt_exp(-INFINITY) == 0 && isinf(tt_exp(INFINITY))
           && tt_exp(NAN) != tt_exp(NAN), "exp specials");
    expect(isinf(tt_log(0)) && tt_log(-1) != tt_log(-1) && tt_log(1) == 0,
           "log specials");
    expect(tt_tanh(1e300) == 1 && tt_tanh(-0.0) == 0 && signbit(tt_tanh(-0.0))
           && tt_tanh(NAN) != tt_tanh(NAN), "tanh specials");
    tt_sincos_turn(0, &s, &c);
    expect(s == 0 && c == 1, "turn 0");
    tt_sincos_turn(0x40000000u, &s, &c);
    expect(s == 1 && c == 0, "quarter turn");
    tt_sincos_turn(0x80000000u, &s, &c);
    expect(s == 0 && c == -1, "half turn");
    bool same = true;
    for (uint64_t i = 0; i < 100000; i++) {
        double s2, c2;
        uint32_t b = (uint32_t)math_word(i);
        tt_sincos_turn(b, &s, &c);
        tt_sincos_turn(b + 0xc0000000u, &s2, &c2);   /* minus a quarter */
        same &= s2 == -c && c2 == s;
    }
    expect(same, "quarter turns exchange sine and cosine exactly");
}

/* ---- float --------------------------------------------------------------- */

/* Error in units of the last place of a float near want. */
static double float_ulps(float y, double want)
{
    if (want != want) return y != y ? 0 : INFINITY;
    if (fabs(want) >= 0x1.ffffffp127) return isinf(y) ? 0 : INFINITY;
    int e;
    frexp(want, &e);
    double err = fabs((double)y - want)
                 / ldexp(1, e - 24 < -149 ? -149 : e - 24);
    return err >= 0 ? err : INFINITY;
}

static void test_float(const char *name, float (*own)(float),
                       double (*check)(double), double limit, float worst_at,
                       double worst_is, uint64_t bits)
{
    double worst = 0;
    hash = 0xcbf29ce484222325u;
    for (uint64_t u = 0; u < 0x100000000u; u += 1021) { /* specials included */
        uint32_t word = (uint32_t)u;
        float x;
        memcpy(&x, &word, 4);
        float y = own(x);
        worst = fmax(worst, float_ulps(y, check((double)x)));
        if (y != y) y = 0;   /* payloads of NaN are not part of the contract */
        memcpy(&word, &y, 4);
        mix(word);
    }
    expect(worst <= limit, "%s: %.4f ulp in the sample, limit %g", name, worst,
           limit);
    worst = float_ulps(own(worst_at), check((double)worst_at));
    expect(fabs(worst - worst_is) < 1e-4, "%s at its worst input %a: %.4f ulp, "
           "the scan of all floats found %.4f", name, (double)worst_at, worst,
           worst_is);
    expect(hash == bits, "%s: hash of the sample is 0x%llxu", name,
           (unsigned long long)hash);
    expect(own(0) == (float)check(0) && own(INFINITY) == (float)check(INFINITY)
           && own(-INFINITY) == (float)check(-INFINITY) && own(NAN) != own(NAN),
           "%s specials", name);
}

int main(void)
{
    test_begin("core/mathfn");
    test_stored();
    test_mpfr();
    test_double_bits();
    test_specials();
    test_float("expf", tt_expf, exp, 1.0, -0x1.759aa2p+2f, 0.9785,
               0xe7b3a5a0e887caaau);
    test_float("exp_f32", exp_f32, exp, 1.0, -0x1.759aa2p+2f, 0.9785,
               0xe7b3a5a0e887caaau);   /* of kernels; equal for every float  */
    test_float("tanhf", tt_tanhf, tanh, 1.0, 0x1.86fbc4p-10f, 0.5,
               0xc75bb3aa15db4a90u);
    return test_end();
}
