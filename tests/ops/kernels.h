/* kernels.h: comparing the kernels of classes with their definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Equal bits for every instruction set of this CPU and 1 and 3 threads, in
 * linear layers, convolutions and attention, over the values and shapes of a
 * test (struct kernels_test). A NaN equals a NaN: its sign and payload are not part of a
 * class. Included by one file each, which says what `test` is. */
#ifndef TT_TESTS_OPS_KERNELS_H
#define TT_TESTS_OPS_KERNELS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/exact/exact.h"
#include "tests/harness.h"
#include "ops/backend.h"

#define KERNELS_LEVELS 5

typedef struct kernels_test {
    tt_class cls[2];
    const char *levels[2][KERNELS_LEVELS];   /* of TT_CPU                     */
    int kinds;                /* of values, from 0 (ordinary ones) on         */
    int zeros, one_hot;       /* two that the frame itself asks for           */
    /* One number; `side` tells the two factors of a product apart. */
    float (*value)(int kind, int side);
    /* Factor on the queries of a kind: weights of every size. */
    float (*spread)(int kind);
    const int64_t (*linear)[3];              /* rows, outputs, inputs; 0 ends */
    const int64_t (*attention)[4];           /* T, N, H, D                    */
    int64_t square;           /* T and N with a bias or mask, at most         */
} kernels_test;

static const kernels_test test;
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

static float *fill(tt_arena *a, int64_t n, int kind, int side)
{
    float *x = tt_alloc(ctx, a, n + 1, sizeof *x, "a test input");
    int64_t hot = (int64_t)(uniform() * (double)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = kind == test.one_hot ? (float)(i == hot)
                                    : test.value(kind, side);
    return x;
}

/* ---- comparison ---------------------------------------------------------- */

static void one_nan(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i])) x[i] = NAN;
}

typedef void (*call_fn)(void *user, float *out);

static void compare_in(int c, const char *what, call_fn call, void *user,
                       int64_t n)
{
    const tt_ops *golden = tt_ops_find("golden"), *exact = tt_ops_find("exact");
    const tt_class cls = test.cls[c];
    tt_arena arena = {0};
    float *want = tt_alloc0(ctx, &arena, n, sizeof *want, "want");
    float *got = tt_alloc(ctx, &arena, n, sizeof *got, "got");
    int threads = ctx->nthreads;
    ctx->ops = tt_ops_class(golden, cls);
    call(user, want);
    one_nan(want, n);
    ctx->ops = tt_ops_class(exact, cls);
    for (int l = 0; l < KERNELS_LEVELS && test.levels[c][l]; l++)
        for (int t = 1; t <= 3; t += 2) {
            char name[160];
            snprintf(name, sizeof name, "%s %s: %s, %d threads",
                     tt_class_name(cls), what, test.levels[c][l], t);
            setenv("TT_CPU", test.levels[c][l], 1);
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
    compare_in(0, what, call, user, n);
    compare_in(1, what, call, user, n);
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

static void one_linear(const int64_t *shape, int kind, int odd)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16};
    tt_arena a = {0};
    int64_t n = shape[0], o = shape[1], i = shape[2];
    tt_dtype t = types[(odd + kind) % 2];
    float *w = fill(&a, o * i, kind, 1);
    char *raw = (char *)tt_alloc(ctx, &a, o * i + 1, 4, "w") + n % 2;
    for (int64_t k = 0; k < o * i; k++) {
        uint16_t h = tt_bf16_from_f32(w[k]);
        if (t == TT_F32) memcpy(raw + 4 * k, &w[k], 4);
        else memcpy(raw + 2 * k, &h, 2);
    }
    linear_case c = {.x = fill(&a, n * i, kind, 0),
                     .b = odd ? fill(&a, o, kind, 0) : NULL,
                     .w = tt_tensor_make(raw, t, 2, (int64_t[]){o, i}),
                     .n = n};
    char name[96];
    snprintf(name, sizeof name, "linear %lldx%lldx%lld %s kind %d",
             (long long)n, (long long)o, (long long)i, tt_dtype_name(t), kind);
    compare(name, call_linear, &c, n * o);
    tt_arena_free(&a);
}

static void test_linear(void)
{
    for (int s = 0; test.linear[s][0]; s++)
        for (int kind = 0; kind < test.kinds; kind++)
            one_linear(test.linear[s], kind, s % 2);
}

/* ---- convolutions -------------------------------------------------------- */

/* Hi, Wi, Cin, Cout, kt, kh, kw, stride, up, pad, frames that are not there:
 * channels that a tile reads in place and others, blocks that end with a line
 * and a column, all that the VAE has. */
static const int conv[][11] = {
    {3, 5, 32, 50, 3, 3, 3, 1, 1, 1, 0}, {19, 21, 32, 7, 1, 3, 3, 1, 2, 1, 0},
    {6, 4, 64, 96, 3, 1, 1, 1, 1, 0, 1}, {7, 9, 32, 33, 1, 3, 3, 2, 1, 0, 0},
    {9, 90, 320, 1, 1, 1, 3, 1, 1, 1, 0}, {5, 6, 5, 49, 2, 3, 2, 1, 1, 1, 1},
    {1, 1, 32, 1, 3, 3, 3, 1, 1, 1, 2}, {12, 9, 32, 33, 1, 3, 3, 2, 2, 1, 0},
};

static void call_conv(void *user, float *out)
{
    tt_conv_args c = *(tt_conv_args *)user;
    c.y = out;
    tt_conv(ctx, &c);
}

static void one_conv(const int *v, int kind, bool bf16)
{
    tt_arena a = {0};
    const int64_t size = v[0] * v[1] * v[2], K = v[4] * v[5] * v[6] * v[2];
    const float *frame[3] = {NULL};
    for (int i = v[10]; i < v[4]; i++) {
        float *x = fill(&a, size, kind, 0);
        uint16_t *h = (uint16_t *)(void *)x;
        for (int64_t k = 0; bf16 && k < size; k++) {
            const uint16_t half = tt_bf16_from_f32(x[k]);
            memcpy(h + k, &half, sizeof half);
        }
        frame[i] = x;
    }
    const int halo = bf16 ? v[9] : 0; /* a line of the rank above is there */
    const tt_tensor w = tt_tensor_make(fill(&a, K * v[3], kind, 1), TT_F32, 5,
                                       (int64_t[]){v[3], v[4], v[5], v[6],
                                                   v[2]});
    tt_conv_args c = {.frame = frame, .w = &w, .Hi = v[0], .Wi = v[1],
                      .b = kind % 2 ? fill(&a, v[3], kind, 0) : NULL,
                      .Cin = v[2], .Cout = v[3], .kt = v[4], .kh = v[5],
                      .kw = v[6], .stride = v[7], .up = v[8],
                      .pad_top = v[9] - halo * v[8], .pad_left = v[9],
                      .by_class = true, .bf16 = bf16};
    c.Ho = (v[0] * v[8] + 2 * v[9] - halo * v[8] - v[5]) / v[7] + 1;
    c.Wo = (v[1] * v[8] + 2 * v[9] - v[6]) / v[7] + 1;
    if (v[7] == 2) c.Ho = v[0] / 2, c.Wo = v[1] / 2;
    char name[96];
    snprintf(name, sizeof name, "conv %dx%dx%d to %d kind %d%s", v[0], v[1],
             v[2], v[3], kind, bf16 ? " of bf16" : "");
    if (c.Ho > 0) compare(name, call_conv, &c, c.Ho * c.Wo * v[3]);
    tt_arena_free(&a);
}

static void test_conv(void)
{
    for (size_t s = 0; s < sizeof conv / sizeof *conv; s++)
        for (int kind = 0; kind < test.kinds; kind++)
            one_conv(conv[s], kind, (kind + s) % 2);
}

/* ---- attention ----------------------------------------------------------- */

static void call_attention(void *user, float *out)
{
    tt_attention_args c = *(tt_attention_args *)user;
    c.o = out;
    tt_attention(ctx, &c);
}

/* The same numbers rounded to bf16, packed. */
static const float *halved(tt_arena *a, const float *x, int64_t n)
{
    uint16_t *half = tt_alloc(ctx, a, n, sizeof *half, "numbers");
    for (int64_t i = 0; half && i < n; i++) half[i] = tt_bf16_from_f32(x[i]);
    return (const float *)(const void *)half;
}

static void one_attention(const int64_t *shape, int kind, int mode, int odd)
{
    tt_arena a = {0};
    tt_attention_args c = {.T = shape[0], .N = shape[1], .H = shape[2],
                           .D = shape[3]};
    if (mode) c.T = c.N = shape[1] < test.square ? shape[1] : test.square;
    c.q_stride = c.H * c.D + (odd ? 0 : 5);
    c.kv_stride = c.H * c.D + (odd ? 3 : 0);
    c.scale = (float)(mode == 2 ? 1 : 1 / sqrt((double)c.D));
    float *q = fill(&a, c.T * c.q_stride, kind, 0);
    c.k = fill(&a, c.N * c.kv_stride, kind, 1);
    for (int64_t i = 0; i < c.T * c.q_stride; i++) q[i] *= test.spread(kind);
    c.q = q;
    c.v = fill(&a, c.N * c.kv_stride, kind, 1);
    c.bf16 = (kind + mode) % 2 && ctx->ops->cls != TT_CLASS_F32;
    if (c.bf16) c.k = halved(&a, c.k, c.N * c.kv_stride);
    if (c.bf16) c.v = halved(&a, c.v, c.N * c.kv_stride);
    if (mode) c.rel_bias = fill(&a, c.H * (2 * c.N - 1), 0, 0);
    uint8_t mask[160];
    for (int i = 0; i < 160; i++)
        mask[i] = kind != test.zeros && (i < 5 || i % 3);
    if (mode == 2) c.key_mask = mask;
    char name[96];
    snprintf(name, sizeof name, "attention%s T%lld N%lld H%lld D%lld kind %d "
             "mode %d", c.bf16 ? " of bf16" : "", (long long)c.T, (long long)c.N, (long long)c.H,
             (long long)c.D, kind, mode);
    compare(name, call_attention, &c, c.T * c.H * c.D);
    tt_arena_free(&a);
}

static void test_attention(void)
{
    for (int s = 0; test.attention[s][0]; s++)
        for (int kind = 0; kind < test.kinds; kind++)
            for (int mode = 0; mode < 3; mode++)
                one_attention(test.attention[s], kind, mode, s % 2);
}

#endif
