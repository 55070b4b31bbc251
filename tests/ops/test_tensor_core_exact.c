/* test_tensor_core_exact.c: every kernel of the classes sm80 and sm90 against
 * the plain loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Equal bits for every instruction set of this CPU and 1 and 3 threads, over
 * shapes that leave ends of panels, groups, slices and key blocks, and over
 * values chosen to hurt: both ends of the exponents that floats can hold, sums
 * beyond 32 bits, zeros beside large factors, subnormal, huge, infinite and
 * NaN. A NaN equals a NaN. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/exact/tc.h"

static tt_ctx *ctx;
static uint64_t state = 88172645463325252u;

static uint32_t bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static double uniform(void)
{
    return bits() * 0x1p-32;
}

enum { NORMAL, ZEROS, SUBNORMAL, TINY, LOW_EDGE, HIGH_EDGE, HUGE_VALUES, WIDE,
       CANCEL, ZERO_BIG, ONE_HOT, LARGEST, SPECIAL, ANY, KINDS };

/* One number; `side` tells the two factors of a product apart. */
static float value(int kind, int side)
{
    static const float special[4] = {INFINITY, -INFINITY, NAN, -0.0f};
    float u = (float)(2 * uniform() - 1);
    switch (kind) {
    case ZEROS: return bits() % 3 ? 0.0f : -0.0f;
    case SUBNORMAL: return u * 0x1p-125f;
    case TINY: return ldexpf(u, (side ? -80 : -64) - (int)(bits() % 9));
    case LOW_EDGE: return ldexpf(u, -46 - (int)(bits() % 9));
    case HIGH_EDGE: return ldexpf(u, 56 + (int)(bits() % 9));
    case HUGE_VALUES: return ldexpf(u, 62 + (int)(bits() % 66));
    case WIDE: return ldexpf(u, (int)(bits() % 150) - 90);
    case CANCEL: return ldexpf(bits() % 2 ? 1.25f : -1.25f,
                               side ? 0 : (int)(bits() % 4) * 9);
    case ZERO_BIG: return bits() % 3 ? u * 0x1p-4f : side ? 0x1p127f : 0;
    case LARGEST: return bits() % 512 ? 0x1.fep0f : -0x1.fep0f;
    case SPECIAL: return bits() % 64 ? u : special[bits() % 4];
    case ANY: return tc_float(bits());
    default: return u;
    }
}

static float *fill(tt_arena *a, int64_t n, int kind, int side)
{
    float *x = tt_alloc(ctx, a, n + 1, sizeof *x, "a test input");
    int64_t hot = (int64_t)(uniform() * (double)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = kind == ONE_HOT ? (float)(i == hot) : value(kind, side);
    return x;
}

/* ---- comparison ---------------------------------------------------------- */

static void one_nan(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i])) x[i] = NAN;
}

typedef void (*call_fn)(void *user, float *out);

static void compare(const char *what, tt_class cls, call_fn call, void *user,
                    int64_t n)
{
    static const char *const levels[] = {"generic", "avx2", "avx512"};
    const tt_ops *golden = tt_ops_find("golden"), *exact = tt_ops_find("exact");
    tt_arena arena = {0};
    float *want = tt_alloc0(ctx, &arena, n, sizeof *want, "want");
    float *got = tt_alloc(ctx, &arena, n, sizeof *got, "got");
    int threads = ctx->nthreads;
    ctx->ops = tt_ops_class(golden, cls);
    call(user, want);
    one_nan(want, n);
    ctx->ops = tt_ops_class(exact, cls);
    for (int l = 0; l < 3; l++)
        for (int t = 1; t <= 3; t += 2) {
            char name[160];
            snprintf(name, sizeof name, "%s %s: %s, %d threads",
                     tt_class_name(cls), what, levels[l], t);
            setenv("TT_CPU", levels[l], 1);
            exact_level_reread();
            ctx->nthreads = t;
            memset(got, 0x5a, (size_t)n * sizeof *got);
            call(user, got);
            one_nan(got, n);
            expect_bits(name, got, want, (size_t)n * sizeof *got);
        }
    unsetenv("TT_CPU");
    exact_level_reread();
    ctx->nthreads = threads;
    expect_ok(ctx->status, what);
    tt_arena_free(&arena);
}

static void compare_both(const char *what, call_fn call, void *user, int64_t n)
{
    compare(what, TT_CLASS_SM80, call, user, n);
    compare(what, TT_CLASS_SM90, call, user, n);
}

/* ---- linear -------------------------------------------------------------- */

typedef struct linear_case {
    const float *x, *b;
    tt_tensor w;
    int64_t n;
} linear_case;

static void call_linear(void *user, float *out)
{
    linear_case *c = user;
    tt_linear(ctx, out, c->x, c->n, &c->w, c->b);
}

static void test_linear(void)
{
    static const int64_t shape[][3] = { /* rows, outputs, inputs */
        {1, 1, 1},   {1, 33, 7},  {8, 32, 16},  {9, 65, 33},   {3, 5, 513},
        {65, 40, 8}, {70, 31, 95}, {2, 1100, 40}, {67, 34, 1100},
    };
    static const tt_dtype types[] = {TT_F32, TT_BF16};
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int kind = 0; kind < KINDS; kind++) {
            tt_arena a = {0};
            int64_t n = shape[s][0], o = shape[s][1], i = shape[s][2];
            tt_dtype t = types[(s + (size_t)kind) % 2];
            float *w = fill(&a, o * i, kind, 1);
            char *raw = (char *)tt_alloc(ctx, &a, o * i + 1, 4, "w") + 1;
            for (int64_t k = 0; k < o * i; k++) {
                uint16_t h = tt_bf16_from_f32(w[k]);
                if (t == TT_F32) memcpy(raw + 4 * k, &w[k], 4);
                else memcpy(raw + 2 * k, &h, 2);
            }
            linear_case c = {.x = fill(&a, n * i, kind, 0),
                             .b = s % 2 ? fill(&a, o, kind, 0) : NULL,
                             .w = tt_tensor_make(raw, t, 2, (int64_t[]){o, i}),
                             .n = n};
            char name[96];
            snprintf(name, sizeof name, "linear %lldx%lldx%lld %s kind %d",
                     (long long)n, (long long)o, (long long)i,
                     tt_dtype_name(t), kind);
            compare_both(name, call_linear, &c, n * o);
            tt_arena_free(&a);
        }
}

/* A chain that is just below 2 when a step of the largest products comes: the
 * one way to a sum beyond 32 bits. */
static void test_beyond(void)
{
    enum { N = 40, K = 48 };
    static float x[N * K], w[N * K];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++) {
            x[i * K + k] = k && k < 16 ? 0 : i % 2 ? 0x1.fep0f : -0x1.fep0f;
            w[i * K + k] = k && k < 32 - i % 3 ? 0x1.fep0f : 1;
        }
    linear_case c = {.x = x, .n = N,
                     .w = tt_tensor_make(w, TT_F32, 2, (int64_t[]){N, K})};
    compare_both("beyond 32 bits", call_linear, &c, N * N);
}

/* Kinds do what they are there for: a sum of one step beyond 32 bits, sums that
 * are cut to -0, results of either end. */
static void test_kinds(void)
{
    int beyond = 0, minus = 0, low = 0, high = 0;
    for (int round = 0; round < 4000; round++) {
        float a[16], b[16], c = 0x1.fffffep0f, sum = 0;
        for (int k = 0; k < 16; k++) {
            a[k] = tc_factor(value(LARGEST, 0));
            b[k] = tc_factor(value(LARGEST, 1));
            sum += a[k] * b[k];
        }
        beyond += ((double)sum + (double)c) * 0x1p25 > 0x1p31;
        for (int k = 0; k < 16; k++) {
            a[k] = tc_factor(value(TINY, 0));
            b[k] = tc_factor(value(TINY, 1));
        }
        sum = tc_chain(tc_sm90, 0, a, 1, b, 2);
        minus += sum == 0 && signbit(sum);
        for (int k = 0; k < 2; k++) {
            const float x = fabsf(tc_factor(value(k ? HIGH_EDGE : LOW_EDGE, 0)) *
                                  tc_factor(value(k ? HIGH_EDGE : LOW_EDGE, 1)));
            low += !k && x > 0x1p-102f && x < 0x1p-98f;
            high += k && x > 0x1p118f && x < 0x1p122f;
        }
    }
    expect(beyond > 100 && minus > 20 && low > 100 && high > 100,
           "too kind: %d %d %d %d", beyond, minus, low, high);
}

/* ---- attention ----------------------------------------------------------- */

static void call_attention(void *user, float *out)
{
    tt_attention_args c = *(tt_attention_args *)user;
    c.o = out;
    tt_attention(ctx, &c);
}

static void one_attention(const int64_t *shape, int kind, int mode, int odd)
{
    tt_arena a = {0};
    tt_attention_args c = {.T = shape[0], .N = shape[1], .H = shape[2],
                           .D = shape[3]};
    if (mode) c.T = c.N = shape[1] < 150 ? shape[1] : 150;
    c.q_stride = c.H * c.D + (odd ? 0 : 5);
    c.kv_stride = c.H * c.D + (odd ? 3 : 0);
    c.scale = (float)(mode == 2 ? 1 : 1 / sqrt((double)c.D));
    c.q = fill(&a, c.T * c.q_stride, kind, 0);
    c.k = fill(&a, c.N * c.kv_stride, kind, 1);
    /* weights of every size: queries that spread the logits widely */
    if (kind == TINY || kind == LOW_EDGE)
        for (int64_t i = 0; i < c.T * c.q_stride; i++)
            ((float *)(uintptr_t)c.q)[i] *= kind == TINY ? 0x1p120f : 0x1p100f;
    c.v = fill(&a, c.N * c.kv_stride, kind, 1);
    if (mode) c.rel_bias = fill(&a, c.H * (2 * c.N - 1), NORMAL, 0);
    uint8_t mask[160];
    for (int i = 0; i < 160; i++) mask[i] = kind == ZEROS ? 0 : i < 5 || i % 3;
    if (mode == 2) c.key_mask = mask;
    char name[96];
    snprintf(name, sizeof name, "attention T%lld N%lld H%lld D%lld kind %d "
             "mode %d", (long long)c.T, (long long)c.N, (long long)c.H,
             (long long)c.D, kind, mode);
    compare_both(name, call_attention, &c, c.T * c.H * c.D);
    tt_arena_free(&a);
}

static void test_attention(void)
{
    static const int64_t shape[][4] = { /* T, N, H, D */
        {1, 1, 1, 1},   {5, 7, 2, 3},    {33, 129, 1, 16}, {40, 300, 2, 24},
        {64, 128, 1, 32}, {13, 13, 4, 8}, {300, 77, 1, 10},
    };
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int mode = 0; mode < 3; mode++)
                one_attention(shape[s], kind, mode, s % 2);
}

int main(void)
{
    ctx = test_begin("ops/tensor_core_exact");
    test_kinds();
    test_linear();
    test_beyond();
    test_attention();
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/tensor_core_exact");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_SM90),
           "a double build has class f32 alone");
    return test_end();
}

#endif
