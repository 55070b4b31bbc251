/* math_scan.c: measured errors of the elementary functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   math_scan [FUNCTION ...]         float functions over all 2^32 inputs
 *   math_scan --double [N]           double functions against MPFR, N inputs
 *   math_scan --table N              rows "function x hi rest" for ref_data
 *
 * Float functions are checked by the C library's double functions, whose own
 * error is below 1e-8 of a float's last place: an independent check, which no
 * golden path calls. gelu and silu are the operators built on expf (their
 * formulas round several times, so they have no limit of 1 ulp). Each line:
 * function, largest error in ulp, where, and a hash of all results (FNV over
 * their bits, NaN as zero) that any machine must reproduce. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/math_ref.h"
#include "ops/ops.h"

/* ---- float: everything --------------------------------------------------- */

typedef struct float_fn {
    const char *name;
    void (*own)(tt_ctx *ctx, float *y, const float *x, int64_t n);
    double (*check)(double x);
} float_fn;

#ifndef TT_REAL_DOUBLE
static void own_expf(tt_ctx *ctx, float *y, const float *x, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) y[i] = tt_expf(x[i]);
}

static void own_tanhf(tt_ctx *ctx, float *y, const float *x, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) y[i] = tt_tanhf(x[i]);
}

static void own_gelu(tt_ctx *ctx, float *y, const float *x, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
    tt_gelu_tanh(ctx, y, n);
}

static void own_silu(tt_ctx *ctx, float *y, const float *x, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
    tt_silu(ctx, y, n);
}

static double check_gelu(double x)
{
    double u = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}

static double check_silu(double x)
{
    return x / (1 + exp(-x));
}

static const float_fn float_table[] = {
    {"expf", own_expf, exp}, {"tanhf", own_tanhf, tanh},
    {"silu", own_silu, check_silu}, {"gelu_tanh", own_gelu, check_gelu},
};

/* |y - want| in units of the last place of want; rounding to infinity is right
 * above the largest float plus half its last place. */
static double float_ulps(float y, double want)
{
    if (want != want) return y != y ? 0 : INFINITY;
    if (fabs(want) >= 0x1.ffffffp127) return isinf(y) ? 0 : INFINITY;
    uint64_t u;
    memcpy(&u, &want, 8);
    int e = (int)(u >> 52 & 0x7ff) - 1023 - 23;
    if (e < -149) e = -149;
    u = (uint64_t)(1023 - e) << 52;
    double scale;
    memcpy(&scale, &u, 8);
    double err = fabs((double)y - want) * scale;
    return err >= 0 ? err : INFINITY;
}

#define PIECE 65536

static void scan_float(tt_ctx *ctx, const float_fn *f)
{
    static float x[PIECE], y[PIECE];
    uint64_t hash = 0xcbf29ce484222325u, misrounded = 0;
    double worst = 0;
    float at = 0, got = 0;
    for (uint64_t u = 0; u < 0x100000000u; u += PIECE) {
        for (uint32_t i = 0; i < PIECE; i++) {
            uint32_t bits = (uint32_t)u + i;
            memcpy(&x[i], &bits, 4);
        }
        f->own(ctx, y, x, PIECE);
        for (uint32_t i = 0; i < PIECE; i++) {
            double want = f->check((double)x[i]);
            double err = float_ulps(y[i], want);
            float v = y[i] == y[i] ? y[i] : 0;
            uint32_t bits;
            memcpy(&bits, &v, 4);
            hash = (hash ^ bits) * 0x100000001b3u;
            misrounded += want == want && y[i] != (float)want;
            if (err > worst) {
                worst = err;
                at = x[i];
                got = y[i];
            }
        }
    }
    printf("%-10s %8.4f ulp at %a (gives %a), %.2f %% not correctly rounded, "
           "hash 0x%016" PRIx64 "\n", f->name, worst, (double)at, (double)got,
           (double)misrounded / 0x1p32 * 100, hash);
    fflush(stdout);
}

static int scan_floats(int argc, char **argv)
{
    tt_ctx ctx;
    if (tt_ctx_init(&ctx)) {
        fprintf(stderr, "math_scan: %s\n", tt_message(&ctx));
        return 1;
    }
    ctx.nthreads = 1;
    int found = 0;
    for (size_t f = 0; f < sizeof float_table / sizeof float_table[0]; f++) {
        bool asked = argc < 2;
        for (int i = 1; i < argc; i++)
            asked |= !strcmp(argv[i], float_table[f].name);
        if (asked) scan_float(&ctx, &float_table[f]);
        found += asked;
    }
    tt_ctx_free(&ctx);
    if (!found) {
        fprintf(stderr, "math_scan: no such function; known are:");
        for (size_t f = 0; f < sizeof float_table / sizeof float_table[0]; f++)
            fprintf(stderr, " %s", float_table[f].name);
        fprintf(stderr, "\n");
    }
    return found ? 0 : 2;
}
#else
static int scan_floats(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fprintf(stderr, "math_scan: a double build has no float operators\n");
    return 1;
}
#endif

/* ---- double: against MPFR ------------------------------------------------ */

#ifdef TT_HAVE_MPFR
static void scan_double(math_id f, uint64_t n)
{
    math_mpfr m;
    math_mpfr_init(&m);
    uint64_t hash = 0xcbf29ce484222325u;
    double worst = 0, at = 0, got = 0;
    for (uint64_t i = 0; i < n; i++) {
        double x = math_input(f, i), y = math_own(f, x), hi, rest;
        math_true(&m, f, x, &hi, &rest);
        double err = math_ulps(y, hi, rest);
        uint64_t bits;
        memcpy(&bits, &y, 8);
        hash = (hash ^ bits) * 0x100000001b3u;
        if (err > worst) {
            worst = err;
            at = x;
            got = y;
        }
    }
    math_mpfr_clear(&m);
    printf("%-10s %8.4f ulp at %a (gives %a) of %" PRIu64 " inputs, hash "
           "0x%016" PRIx64 "\n", math_table[f].name, worst, at, got, n, hash);
    fflush(stdout);
}

static int scan_doubles(uint64_t n)
{
    for (int f = 0; f < MATH_COUNT; f++) scan_double((math_id)f, n);
    return 0;
}

/* N rows of each function: hard inputs, random ones, and the worst of a
 * million. */
static int print_table(uint64_t n)
{
    math_mpfr m;
    math_mpfr_init(&m);
    for (int f = 0; f < MATH_COUNT; f++) {
        double worst = 0, at = 0, hi, rest;
        for (uint64_t i = 0; i <= 1000000; i++) {
            bool last = i == 1000000;
            uint64_t step = MATH_HARD * 2 / n + 1;
            double x = last ? at : math_input((math_id)f, i);
            math_true(&m, (math_id)f, x, &hi, &rest);
            double err = math_ulps(math_own((math_id)f, x), hi, rest);
            if (err > worst) {
                worst = err;
                at = x;
            }
            if (last || (i < step * n && i % step == 0))
                printf("%s %a %a %a\n", math_table[f].name, x, hi, rest);
        }
    }
    math_mpfr_clear(&m);
    return 0;
}
#else
static int scan_doubles(uint64_t n)
{
    (void)n;
    fprintf(stderr, "math_scan: not run: needs libmpfr-dev at build time\n");
    return 1;
}
#define print_table scan_doubles
#endif

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--help")) {
        printf("usage: math_scan [FUNCTION ...]    float functions, all 2^32 "
               "inputs\n"
               "       math_scan --double [N]      double functions against "
               "MPFR, N inputs\n"
               "       math_scan --table N         rows for ref_data\n");
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "--double"))
        return scan_doubles(argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000);
    if (argc == 3 && !strcmp(argv[1], "--table"))
        return print_table(strtoull(argv[2], NULL, 10));
    return scan_floats(argc, argv);
}
