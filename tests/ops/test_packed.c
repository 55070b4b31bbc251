/* test_packed.c: keys and values that stay packed from call to call.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: for every class, level and number of threads, attention that takes
 * up what an earlier call has packed gives the bits of one that begins anew,
 * whatever now is where the keys and values of those blocks were, and of a
 * class that rounds also where the others are bf16 numbers; and it stays within the memory that the table asks for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/exact/level.h"
#include "tests/harness.h"
#include "ops/backend.h"
#include "core/device.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;

enum { T = 50, N = 1300, H = 3, D = 40, WIDTH = H * D, CANARY = 64 };

/* Heads side by side, keys at 0, values after them. */
static struct {
    float q[T * WIDTH], kv[2][N * WIDTH], want[T * WIDTH], got[T * WIDTH];
} in;

static tt_attention_args call(int64_t n, float *o)
{
    return (tt_attention_args){
        .o = o, .q = in.q, .k = in.kv[0], .v = in.kv[1], .T = T, .N = n, .H = H,
        .D = D, .q_stride = WIDTH, .kv_stride = WIDTH,
        .scale = (float)(1 / sqrt((double)D))};
}

static void refill(float *x, int64_t from, int64_t to, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 12345u;
    for (int64_t i = from * WIDTH; i < to * WIDTH; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)((double)s / 2147483648.0 - 1);
    }
}

/* Rows from `n_packed` on are others; there are none before it. */
static void later_call(const char *what, float *packed, int64_t n, int64_t good)
{
    static float rest[2][N * WIDTH];
    const size_t bytes = (size_t)((n - good) * WIDTH) * sizeof **rest;
    const bool half = ctx->ops->cls != TT_CLASS_F32 && good / TT_KEY_BLOCK != 1;
    for (int i = 0; i < 2; i++) {
        refill(in.kv[i], good, n, (uint32_t)(good + i + 5));
        memcpy(rest[i], in.kv[i] + good * WIDTH, bytes);
        if (half) tt_narrow(ctx, rest[i], in.kv[i] + good * WIDTH,
                            (n - good) * WIDTH);
    }
    tt_attention_args a = call(n, in.want);
    tt_attention(ctx, &a);
    a = call(n, in.got);
    a.k = good < n ? rest[0] : NULL;
    a.v = good < n ? rest[1] : NULL;
    a.packed = packed;
    a.n_packed = good;
    a.bf16 = half;
    tt_attention(ctx, &a);
    expect(!memcmp(in.got, in.want, sizeof in.got), "%s: %lld of %lld keys are "
           "there", what, (long long)good, (long long)n);
}

/* With queries, then without: both lay out everything. */
static void calls(const char *what, int64_t n)
{
    tt_arena mem = {0};
    const int64_t each = ctx->ops->packed(ctx, n, D);
    expect(each > 0 && each <= ctx->ops->packed(ctx, n + 1, D), "%s: room",
           what);
    float *packed = tt_alloc(ctx, &mem, H * each + CANARY, sizeof *packed,
                             "laid");
    if (!packed) return;
    for (int64_t i = 0; i < CANARY; i++) packed[H * each + i] = 7;
    for (int queries = 0; queries < 2; queries++) {
        for (int i = 0; i < 2; i++) refill(in.kv[i], 0, n, (uint32_t)(i + 1));
        tt_attention_args a = call(n, in.got);
        a.packed = packed;
        if (!queries) a.T = 0;
        tt_attention(ctx, &a);
        later_call(what, packed, n, n);
        for (int64_t good = n / TT_KEY_BLOCK * TT_KEY_BLOCK; good >= 0;
             good -= TT_KEY_BLOCK)
            later_call(what, packed, n, good);
    }
    for (int64_t i = 0; i < CANARY; i++)
        expect(packed[H * each + i] == 7, "%s: value %d after it", what,
               (int)i);
    tt_arena_free(&mem);
}

static void class_of(const char *level, tt_class cls)
{
    static const int64_t lengths[] = {1, 511, 512, 513, 1024, 1300};
    char what[80];
    ctx->ops = tt_ops_class(tt_ops_find("exact"), cls);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        ctx->nthreads = i % 2 ? 3 : 1;
        snprintf(what, sizeof what, "%s, %s", level, tt_class_name(cls));
        calls(what, lengths[i]);
    }
}

int main(void)
{
    static const char *const levels[] = {"generic", "avx2", "avx512",
                                         "avx512bf16", "amx-model", "amx"};
    ctx = test_begin("ops/packed");
    refill(in.q, 0, T, 99);
    for (int l = 0; l < 6; l++) {
        setenv("TT_CPU", levels[l], 1);
        exact_level_reread();
        for (int c = 0; c < TT_CLASS_COUNT; c++)
            class_of(levels[l], (tt_class)c);
    }
    unsetenv("TT_CPU");
    exact_level_reread();
    return test_end();
}

#else

int main(void)
{
    test_begin("ops/packed");
    expect(!tt_ops_find("exact"), "a double build has no exact backend");
    return test_end();
}

#endif
