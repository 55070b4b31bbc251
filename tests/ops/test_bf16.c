/* test_bf16.c: class amx is what src/ops/golden/README.md says.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers worked out by hand for the rounding of inputs, the order of
 * the sum and the flush of small results; the class leaves everything else
 * alone. test_bf16_exact.c compares the kernels with these definitions. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/mathfn.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/bf16.h"

static tt_ctx *ctx;

static bool same(float a, float b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* ---- rounding ------------------------------------------------------------ */

static void test_round(void)
{
    static const float pair[][2] = { /* x, as a factor */
        {0.0f, 0.0f}, {-0.0f, -0.0f}, {1.0f, 1.0f},
        {0x1.01p0f, 0x1p0f},             /* a tie: to even, down              */
        {0x1.03p0f, 0x1.04p0f},          /* a tie: to even, up                */
        {0x1.010002p0f, 0x1.02p0f},      /* just above the tie                */
        {0x1.fffffep-127f, FLT_MIN},     /* a subnormal that rounds to normal */
        {-0x1.fep-127f, -FLT_MIN},       /* the same, a tie                   */
        {-0x1.fcp-127f, -0.0f},          /* subnormal as bf16: zero           */
        {0x1.fcp-128f, 0.0f}, {0x1p-149f, 0.0f}, {-0x1p-149f, -0.0f},
        {FLT_MIN, FLT_MIN},
        {FLT_MAX, INFINITY}, {-0x1.fep127f, -0x1.fep127f},
        {-0x1.ffp127f, -INFINITY}, {INFINITY, INFINITY}, {NAN, NAN},
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        expect(same(bf16_round(pair[i][0]), pair[i][1]),
               "%a as bf16 is %a, expected %a", (double)pair[i][0],
               (double)bf16_round(pair[i][0]), (double)pair[i][1]);
}

/* ---- single operations --------------------------------------------------- */

static void test_steps(void)
{
    static const float fma4[][4] = { /* a, b, c, a*b + c */
        {0x1p-63f, 0x1p-63f, 0, FLT_MIN},
        {0x1p-64f, 0x1p-63f, 0, 0},
        {0x1p-64f, -0x1p-63f, 0, -0.0f},
        {0x1p-64f, -0x1p-63f, FLT_MIN, 0},
        {0x1p-80f, 0x1p-80f, 0, 0},               /* far below                */
        {-0x1p-80f, 0x1p-80f, -0.0f, -0.0f},
        {0, 0, -0.0f, 0}, {-0.0f, 1, -0.0f, -0.0f}, {-0.0f, 1, 0, 0},
        /* FLT_MIN - 2^-150 has 24 bits and is below: flushed, though fmaf
         * alone rounds it to FLT_MIN */
        {0x1p-100f, -0x1p-50f, FLT_MIN, 0},
        {0x1p-100f, 0x1p-50f, -FLT_MIN, -0.0f},
        {0x1.8p-100f, -0x1p-51f, FLT_MIN, 0},     /* - 0.75 * 2^-150          */
        {0x1p-100f, -0x1p-51f, FLT_MIN, FLT_MIN}, /* a tie: up, to even       */
        {0x1p-100f, -0x1p-60f, FLT_MIN, FLT_MIN},
        {0x1p-100f, 0x1p-60f, FLT_MIN, FLT_MIN},
        {0x1p100f, 0x1p100f, 0, INFINITY}, {INFINITY, 0, 1, NAN},
        {0x1p100f, 0x1p-110f, -0x1p-10f, 0},      /* exact zero, large a      */
        {NAN, 0, 0, NAN}, {1, 1, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof fma4 / sizeof *fma4; i++) {
        const float *t = fma4[i], got = bf16_fma(t[0], t[1], t[2]);
        expect(same(got, t[3]), "%a * %a + %a is %a, expected %a",
               (double)t[0], (double)t[1], (double)t[2], (double)got,
               (double)t[3]);
    }
    expect(same(bf16_add(0x1.8p-126f, -FLT_MIN), 0) &&
           same(bf16_add(-0x1.8p-126f, FLT_MIN), -0.0f) &&
           same(bf16_add(-0.0f, -0.0f), -0.0f) &&
           same(bf16_add(-0.0f, 0), 0) &&
           same(bf16_add(0x1.8p-125f, -FLT_MIN), 0x1p-125f), "additions");
}

/* ---- the order of a sum -------------------------------------------------- */

static float linear(const float *x, const float *w, int64_t n, const float *b)
{
    float y = 77;
    tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, n});
    tt_linear(ctx, &y, x, 1, &t, b);
    return y;
}

/* Values at which every other order gives another result. */
static void test_order(void)
{
    float x[64] = {0}, one[64];
    for (int k = 0; k < 64; k++) one[k] = 1;
    /* The worked example of src/ops/golden/README.md: even products 2^24, 1
     * and 1 in a chain lose both ones; the odd product comes after it. */
    x[0] = 0x1p24f, x[2] = 1, x[4] = 1, x[1] = 2;
    expect(same(linear(x, one, 5, NULL), 0x1.000002p24f), "even and odd: %a",
           (double)linear(x, one, 5, NULL));
    /* 2 + 2^-11 is 2 as bf16 */
    x[1] = 0x1.001p1f;
    expect(same(linear(x, one, 5, NULL), 0x1.000002p24f), "rounded factor");
    /* The second block of 32 is summed on its own: 1 + 1 = 2 survives. */
    memset(x, 0, sizeof x);
    x[0] = 0x1p24f, x[32] = 1, x[34] = 1;
    expect(same(linear(x, one, 35, NULL), 0x1.000002p24f), "second block");
    x[34] = 0, x[33] = 1;
    expect(same(linear(x, one, 35, NULL), 0x1.000002p24f), "e + o, then c");
    /* The bias is added last, to a flushed sum, and is not flushed itself. */
    memset(x, 0, sizeof x);
    x[0] = 0x1p-70f, one[0] = 0x1p-70f;
    float tiny = 0x1p-140f;
    expect(same(linear(x, one, 1, &tiny), tiny), "bias after the flush");
    expect(same(linear(x, one, 1, NULL), 0), "flushed to zero");
    /* -2^-126.. + 2^-126 in e flushes to -0; the padding makes it +0 */
    x[0] = -0x1.8p-63f, one[0] = 0x1p-63f, x[2] = 0x1p-63f, one[2] = 0x1p-63f;
    expect(same(linear(x, one, 3, NULL), 0), "zeros of padding");
    for (int k = 3; k < 32; k++) x[k] = -0.0f;
    expect(same(linear(x, one, 32, NULL), 0), "0 + (-0) is 0");
    expect(same(linear(x, one, 0, &tiny), tiny) &&
           same(linear(x, one, 0, NULL), 0), "an empty sum");
}

/* ---- attention ----------------------------------------------------------- */

/* Weights enter PV rounded and the denominator unrounded. */
static void test_attention(void)
{
    float q[1] = {1}, k[3] = {0, -0.7f, -1.3f}, v[3] = {1, 1, 1}, o = 0;
    tt_attention(ctx, &(tt_attention_args){.o = &o, .q = q, .k = k, .v = v,
                 .T = 1, .N = 3, .H = 1, .D = 1, .q_stride = 1, .kv_stride = 1,
                 .scale = 1});
    float p[3], l = 0;
    for (int j = 0; j < 3; j++) {
        p[j] = tt_expf(bf16_round(k[j]));
        l += p[j];
        p[j] = bf16_round(p[j]);
    }
    expect(same(o, ((p[0] + p[2]) + p[1]) / l) && o != 1,
           "weights rounded for PV alone: %a", (double)o);
}

/* A part that is defined in float is computed in float. */
static void test_scope(void)
{
    const tt_ops *bf16 = ctx->ops;
    float x = 0x1.001p0f, one = 1;
    expect(same(linear(&x, &one, 1, NULL), 1), "rounded in the class");
    const tt_ops *before = tt_class_begin(ctx, TT_CLASS_F32);
    expect(ctx->ops->cls == TT_CLASS_F32 && !strcmp(ctx->ops->name, bf16->name),
           "the same backend in float");
    expect(same(linear(&x, &one, 1, NULL), x), "not rounded in float");
    tt_class_end(ctx, before);
    expect(ctx->ops == bf16, "back");
}

/* A table of the class that comes without one of float. */
static void test_alone(void)
{
    const tt_ops *before = ctx->ops;
    tt_ops alone = *before;
    alone.of_class = NULL;
    alone.name = "alone";
    ctx->ops = &alone;
    const tt_ops *back = tt_class_begin(ctx, TT_CLASS_F32);
    expect(ctx->status == TT_EUNSUPPORTED
           && strstr(tt_message(ctx), "backend alone"), "%s", tt_message(ctx));
    float x = 1, y = 2;
    tt_add(ctx, &x, &y, 1);
    expect(ctx->ops && x == 1, "nothing is computed after that");
    tt_class_end(ctx, back);
    expect(ctx->ops == &alone, "back");
    tt_clear(ctx);
    ctx->ops = before;
}

int main(void)
{
    ctx = test_begin("ops/bf16");
    test_round();
    test_steps();
    static const char *const backends[] = {"golden", "exact"};
    for (int i = 0; i < 2; i++) {
        ctx->ops = tt_ops_class(tt_ops_find(backends[i]), TT_CLASS_BF16);
        test_order();
        test_attention();
        test_scope();
        test_alone();
    }
    expect_ok(ctx->status, "no failure");
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/bf16");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_BF16),
           "a double build has no bf16 class");
    return test_end();
}

#endif
