/* test_bf16_exact.c: every kernel of classes amx and vdp against the plain
 * loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Equal bits for every instruction set of this CPU and 1 and 3 threads, over
 * shapes that leave ends of tiles, groups and slices, and over values chosen to
 * hurt: subnormal factors, products and sums below the normal range, the
 * hair-thin cases around FLT_MIN, infinities and NaN. A NaN equals a NaN: its
 * sign and payload are not part of the class. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/exact/bf16.h"

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

enum { NORMAL, ZEROS, SUBNORMAL, SMALL, HAIR, HUGE_VALUES, WIDE, ONE_HOT,
       CONSTANT, SPECIAL, KINDS };

/* One number; `side` tells the two factors of a product apart. */
static float value(int kind, int side)
{
    static const float hair[2][4] = {
        {0x1p-63f, 0x1p-100f, -0x1p-100f, -0x1.8p-100f},
        {0x1p-63f, 0x1p-50f, 0x1p-51f, 0x1.02p-51f},
    };
    static const float special[4] = {INFINITY, -INFINITY, NAN, -0.0f};
    float u = (float)(2 * uniform() - 1);
    switch (kind) {
    case ZEROS: return bits() % 3 ? 0.0f : -0.0f;
    case SUBNORMAL: return u * 0x1p-125f;
    case SMALL: return u * (side ? 0x1p-70f : 0x1p-52f);
    case HAIR: return bits() % 4 ? 0 : hair[side][bits() % 4];
    case HUGE_VALUES: return u * 0x1p66f;
    case WIDE: return ldexpf(u, (int)(bits() % 150) - 90);
    case CONSTANT: return 0.7f;
    case SPECIAL: return bits() % 64 ? u : special[bits() % 4];
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

static void compare_in(tt_class cls, const char *what, call_fn call,
                       void *user, int64_t n)
{
    /* with what each class has of its own last */
    static const char *const levels[][5] = {
        [TT_CLASS_AMX] = {"generic", "avx2", "avx512", "amx-model", "amx"},
        [TT_CLASS_VDP] = {"generic", "avx2", "avx512", "avx512bf16"},
    };
    const tt_ops *golden = tt_ops_find("golden"), *exact = tt_ops_find("exact");
    tt_arena arena = {0};
    float *want = tt_alloc0(ctx, &arena, n, sizeof *want, "want");
    float *got = tt_alloc(ctx, &arena, n, sizeof *got, "got");
    int threads = ctx->nthreads;
    ctx->ops = tt_ops_class(golden, cls);
    call(user, want);
    one_nan(want, n);
    ctx->ops = tt_ops_class(exact, cls);
    for (int l = 0; l < 5 && levels[cls][l]; l++)
        for (int t = 1; t <= 3; t += 2) {
            char name[160];
            snprintf(name, sizeof name, "%s %s: %s, %d threads",
                     tt_class_name(cls), what, levels[cls][l], t);
            setenv("TT_CPU", levels[cls][l], 1);
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

static void compare(const char *what, call_fn call, void *user, int64_t n)
{
    compare_in(TT_CLASS_AMX, what, call, user, n);
    compare_in(TT_CLASS_VDP, what, call, user, n);
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
    static const int64_t shape[][3] = {
        {1, 1, 1},    {1, 33, 7},   {8, 48, 32},   {9, 49, 33}, {3, 5, 513},
        {33, 97, 64}, {31, 24, 95}, {170, 40, 96}, {2, 2100, 40},
        {163, 70, 1100},
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
            compare(name, call_linear, &c, n * o);
            tt_arena_free(&a);
        }
}

/* The first group leaves 2^-112 + 2^-130 and the second, of larger products
 * alone, takes 2^-112 away: what remains is flushed. */
static void test_carried(void)
{
    float x[64] = {0x1p-65f, 0x1p-56f, [32] = -0x1p-56f};
    const float w[64] = {0x1p-65f, 0x1p-56f, [32] = 0x1p-56f};
    linear_case c = {.x = x, .n = 1,
                     .w = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, 64})};
    compare("what a group leaves", call_linear, &c, 1);
}

/* The values above do reach the cases they are meant for: a sum that flushes
 * what fmaf leaves below FLT_MIN, and nothing else, gives other results. */
static void test_hair(void)
{
    int naive_differs = 0, unflushed_differs = 0;
    for (int round = 0; round < 20000; round++) {
        float true_sum = 0, naive = 0, plain = 0;
        for (int k = 0; k < 16; k++) {
            float a = value(HAIR, 0), b = value(HAIR, 1);
            true_sum = bf16_fma(a, b, true_sum);
            plain = fmaf(a, b, plain);
            naive = fmaf(a, b, naive);
            if (fabsf(naive) < FLT_MIN) naive = copysignf(0, naive);
        }
        naive_differs += naive != true_sum;
        unflushed_differs += plain != true_sum;
    }
    expect(naive_differs > 20 && unflushed_differs > 20,
           "HAIR is too kind: %d and %d differences", naive_differs,
           unflushed_differs);
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
    if (mode) c.T = c.N = shape[1] < 40 ? shape[1] : 40;
    c.q_stride = c.H * c.D + (odd ? 0 : 5);
    c.kv_stride = c.H * c.D + (odd ? 3 : 0);
    c.scale = (float)(mode == 2 ? 1 : 1 / sqrt((double)c.D));
    c.q = fill(&a, c.T * c.q_stride, kind, 0);
    c.k = fill(&a, c.N * c.kv_stride, kind, 1);
    /* weights of every size: queries that spread the logits widely */
    if (kind == SMALL)
        for (int64_t i = 0; i < c.T * c.q_stride; i++)
            ((float *)(uintptr_t)c.q)[i] *= 0x1p124f;
    c.v = fill(&a, c.N * c.kv_stride, kind, 1);
    if (mode) c.rel_bias = fill(&a, c.H * (2 * c.N - 1), NORMAL, 0);
    uint8_t mask[64];
    for (int i = 0; i < 64; i++) mask[i] = kind == ZEROS ? 0 : i < 5 || i % 3;
    if (mode == 2) c.key_mask = mask;
    char name[96];
    snprintf(name, sizeof name, "attention T%lld N%lld H%lld D%lld kind %d "
             "mode %d", (long long)c.T, (long long)c.N, (long long)c.H,
             (long long)c.D, kind, mode);
    compare(name, call_attention, &c, c.T * c.H * c.D);
    tt_arena_free(&a);
}

static void test_attention(void)
{
    static const int64_t shape[][4] = { /* T, N, H, D */
        {1, 1, 1, 1},   {5, 7, 2, 3},     {49, 513, 1, 16}, {50, 1030, 2, 40},
        {96, 512, 1, 32}, {13, 13, 4, 16}, {400, 77, 1, 10},
    };
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int mode = 0; mode < 3; mode++)
                one_attention(shape[s], kind, mode, s % 2);
}

/* ---- the question a matrix unit is asked --------------------------------- */

/* The portable tile on its packed floats, with faults on request. */
static bool fault_flush, fault_order;

static void faulty_tile(float *c, int64_t ldc, const void *rows, int64_t m,
                        const void *lanes, int64_t groups, bool add)
{
    const float *a = rows, *b = lanes;
    const tt_bf16_kernels *kn = &tt_bf16_generic;
    for (int r = 0; r < kn->mr; r++)
        for (int i = 0; i < kn->nr; i++)
            for (int64_t g = 0; g < groups; g++) {
                float half[2] = {0, 0};
                for (int k = 0; k < 32; k++) {
                    float *s = &half[fault_order ? k / 16 : k % 2];
                    float x = a[(g * m + r) * 32 + k];
                    float y = b[(g * 32 + k) * kn->nr + i];
                    float plain = fmaf(x, y, *s);
                    *s = !fault_flush ? bf16_fma(x, y, *s)
                         : fabsf(plain) < FLT_MIN ? copysignf(0, plain) : plain;
                }
                float *to = &c[r * ldc + i];
                *to = bf16_add(g || add ? *to : 0, bf16_add(half[0], half[1]));
            }
}

static void test_question(void)
{
    tt_bf16_kernels faulty = tt_bf16_generic;
    faulty.tile = faulty_tile;
    expect(bf16_same_answer(&faulty, &tt_bf16_generic), "without a fault");
    fault_flush = true;
    expect(!bf16_same_answer(&faulty, &tt_bf16_generic), "hair-thin sums");
    fault_flush = false;
    fault_order = true;
    expect(!bf16_same_answer(&faulty, &tt_bf16_generic), "another order");
#if defined(__x86_64__)
    if (exact_kernels() == &tt_kernels_avx512)
        expect(bf16_same_answer(&tt_bf16_amx_model, &tt_bf16_generic),
               "the model of AMX");
#endif
    expect(!bf16_same_answer(&tt_vdp_generic, &tt_bf16_generic),
           "amx and vdp are two classes");
#if defined(TT_HAVE_AVX512BF16)
    if (vdp_present())
        expect(bf16_same_answer(&tt_vdp_avx512bf16, &tt_vdp_generic),
               "VDPBF16PS");
    else
        skip("this CPU has no VDPBF16PS");
#else
    skip("this compiler does not know VDPBF16PS");
#endif
    const char *name = exact_bf16_kernels(ctx)->name;
    if (strcmp(name, "amx"))
        skip("this CPU has no AMX (best here: %s); its kernel ran on a model "
             "of the instructions where there is AVX-512", name);
}

int main(void)
{
    ctx = test_begin("ops/bf16_exact");
    test_hair();
    test_question();
    test_linear();
    test_carried();
    test_attention();
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/bf16_exact");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_BF16),
           "a double build has no bf16 class");
    return test_end();
}

#endif
