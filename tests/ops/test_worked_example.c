/* test_worked_example.c: the worked examples of src/ops/README.md, of
 * src/ops/golden/README.md and of src/ops/golden/tensor_core.md, read from the
 * pages and computed again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Results come from the operators of every backend with golden bits; what
 * stands between inputs and result, and the rows "not", from the loops of this
 * file, which follow the words of the page. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/tensor_core.h"
#include "core/fma.h"
#include "tests/page.h"
#include "tether/mathfn.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;
static page ops_page, bf16_page, tensor_core_page;
static page *const o = &ops_page, *const b16 = &bf16_page;
static page *const tc = &tensor_core_page;

static float linear(const float *x, const float *w, int64_t n, const float *b)
{
    float y = NAN;
    tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, n});
    tt_linear(ctx, &y, x, 1, &t, b);
    return y;
}

static void three_products(void)
{
    const float x[3] = {0.1f, 0.2f, 0.3f}, w[3] = {0.1f, -0.7f, 0.3f};
    const float b = 0.05f;
    float s[3] = {fma_f32(x[0], w[0], 0)};
    s[1] = fma_f32(x[1], w[1], s[0]);
    s[2] = fma_f32(x[2], w[2], s[1]);
    PAGE_SAYS(o, "x", x[0], x[1], x[2]);
    PAGE_SAYS(o, "w", w[0], w[1], w[2]);
    PAGE_SAYS(o, "b", b);
    PAGE_SAYS(o, "s = fma(x0, w0, 0)", s[0]);
    PAGE_SAYS(o, "s = fma(x1, w1, s)", s[1]);
    PAGE_SAYS(o, "s = fma(x2, w2, s)", s[2]);
    PAGE_SAYS(o, "y = s + b", linear(x, w, 3, &b));
    float rounded = x[0] * w[0] + x[1] * w[1];
    rounded += x[2] * w[2];
    PAGE_SAYS(o, "not: every product rounded", rounded + b);
    float back = fma_f32(x[2], w[2], 0);
    back = fma_f32(x[0], w[0], fma_f32(x[1], w[1], back));
    PAGE_SAYS(o, "not: from the last k to the first", back + b);
}

static void two_blocks(void)
{
    float x[300], s[2] = {0, 0}, chain = 0;
    for (int k = 0; k < 300; k++) {
        x[k] = 0.1f;
        s[k / TT_DOT_BLOCK] = fma_f32(x[k], x[k], s[k / TT_DOT_BLOCK]);
        chain = fma_f32(x[k], x[k], chain);
    }
    PAGE_SAYS(o, "s of the first 256", s[0]);
    PAGE_SAYS(o, "s of the last 44", s[1]);
    PAGE_SAYS(o, "sum of both", linear(x, x, 300, NULL));
    PAGE_SAYS(o, "not: one chain of 300", chain);
    float part[3] = {0};
    for (int k = 0; k < 300; k++)
        part[k / 128] = fma_f32(x[k], x[k], part[k / 128]);
    PAGE_SAYS(o, "not: split at multiples of 128", part[0] + part[1] + part[2]);
}

/* The 16 lanes of the page, joined; sums of x, or of (x - mean)^2. */
static double lanes(const float *x, int n, const double *mean, double *first)
{
    double lane[16] = {0};
    for (int i = 0; i < n; i++) {
        const double d = mean ? (double)x[i] - *mean : 0;
        lane[i % 16] = mean ? fma_f64(d, d, lane[i % 16]) : lane[i % 16] + x[i];
    }
    if (first) *first = lane[0];
    for (int h = 8; h > 0; h /= 2)
        for (int l = 0; l < h; l++) lane[l] += lane[l + h];
    return lane[0];
}

static void norms(void)
{
    enum { N = 17 };
    float x[N], w[N], b[N], y[N];
    double chain = 0, first;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(5 * i * i % 17) / 9;
        w[i] = 1.5f;
        b[i] = -0.5f;
    }
    const double sum = lanes(x, N, NULL, NULL), mean = sum / N;
    const double m = lanes(x, N, &mean, &first), scale = 1 / sqrt(m / N + 1e-6);
    for (int i = 0; i < N; i++) {
        const double d = (double)x[i] - mean;
        chain = fma_f64(d, d, chain);
    }
    PAGE_SAYS(o, "mean", mean);
    PAGE_SAYS(o, "not: sum * (1 / 17)", sum * (1.0 / N));
    PAGE_SAYS(o, "lane 0 of M", first);
    PAGE_SAYS(o, "M", m);
    PAGE_SAYS(o, "not: M as one chain", chain);
    PAGE_SAYS(o, "scale", scale);
    tt_layer_norm(ctx, y, x, 1, N, NULL, NULL, 1e-6);
    PAGE_SAYS(o, "y[0], y[1], y[16]", y[0], y[1], y[16]);
    PAGE_SAYS(o, "not: y[0] with d in float",
              (float)((double)(x[0] - (float)mean) * scale));
    tt_layer_norm(ctx, y, x, 1, N, w, b, 1e-6);
    PAGE_SAYS(o, "layer_norm with w = 1.5, b = -0.5: y[1]", y[1]);
    tt_rms_norm(ctx, y, x, 1, N, w, 1e-6);
    PAGE_SAYS(o, "rms_norm with w = 1.5: y[1]", y[1]);
    tt_channel_norm(ctx, y, x, 1, N, w);
    PAGE_SAYS(o, "channel_norm with gamma = 1.5: y[1]", y[1]);
}

/* ---- attention ----------------------------------------------------------- */

enum { KEYS = 513 };
static const float query[2] = {0.5f, 0.25f};
static float key[KEYS][2], value[KEYS][2];

static void fill_keys(void)
{
    for (int j = 0; j < KEYS; j++) {
        key[j][0] = value[j][0] = 1.0f / (float)(j + 1);
        key[j][1] = (float)j / 64;
        value[j][1] = (float)j * 0.1f;
    }
}

/* dot over the keys [from, to), in blocks of 256 or (step 0) as one chain. */
static float over_keys(const float *p, int d, int from, int to, int step)
{
    float sum = 0, s = 0;
    for (int j = from; j < to; j++) {
        s = fma_f32(value[j][d], p[j], s);
        if (j + 1 == to || (step && (j + 1 - from) % step == 0)) {
            sum = j - from < step || !step ? s : sum + s;
            s = 0;
        }
    }
    return sum;
}

static void attention(void)
{
    float logit[KEYS], p[KEYS], y[2];
    const float scale = (float)(1 / sqrt(2.0));
    tt_attention(ctx, &(tt_attention_args){
        .o = y, .q = query, .k = &key[0][0], .v = &value[0][0], .T = 1,
        .N = KEYS, .H = 1, .D = 2, .q_stride = 2, .kv_stride = 2,
        .scale = scale});
    PAGE_SAYS(o, "o", y[0], y[1]);

    float m = -FLT_MAX, l = 0;
    for (int j = 0; j < KEYS; j++) {
        logit[j] = fma_f32(query[1], key[j][1], query[0] * key[j][0]) * scale;
        if (j < 512 && logit[j] > m) m = logit[j];
    }
    for (int j = 0; j < 512; j++) l += p[j] = tt_expf(logit[j] - m);
    const float a[2] = {over_keys(p, 0, 0, 512, 256),
                        over_keys(p, 1, 0, 512, 256)};
    PAGE_SAYS(o, "attention's scale", scale);
    PAGE_SAYS(o, "logit_0, logit_511, logit_512", logit[0], logit[511],
              logit[512]);
    PAGE_SAYS(o, "first block: m, p_0", m, p[0]);
    PAGE_SAYS(o, "first block: l, acc", l, a[0], a[1]);
    PAGE_SAYS(o, "not: acc[1] as one chain of 512", over_keys(p, 1, 0, 512, 0));

    const float top = fmaxf(m, logit[512]), alpha = tt_expf(m - top);
    p[512] = tt_expf(logit[512] - top);
    PAGE_SAYS(o, "second block: m', alpha, p_512", top, alpha, p[512]);
    PAGE_SAYS(o, "second block: l, acc", fma_f32(l, alpha, p[512]),
              fma_f32(a[0], alpha, over_keys(p, 0, 512, 513, 256)),
              fma_f32(a[1], alpha, over_keys(p, 1, 512, 513, 256)));
    float all = 0;
    for (int j = 0; j < KEYS; j++) all += p[j] = tt_expf(logit[j] - top);
    PAGE_SAYS(o, "not: o[1] with one maximum and one chain over all keys",
              over_keys(p, 1, 0, KEYS, 0) / all);
    PAGE_SAYS(o, "scale for D = 24", (float)(1 / sqrt(24.0)));
    PAGE_SAYS(o, "not: 1 / sqrtf(24) in float", 1 / sqrtf(24));
}

/* ---- columns, elements, rope --------------------------------------------- */

static void columns(void)
{
    const float x[3] = {0.1f, 0.3f, 0.8f};
    double mean, m2, plain = 0;
    tt_col_mean(ctx, &mean, x, 3, 1);
    tt_col_moment(ctx, &m2, x, &mean, 3, 1);
    for (int r = 0; r < 3; r++) {
        const double d = (double)x[r] - mean, square = d * d;
        plain += square;
    }
    PAGE_SAYS(o, "mean of the rows", mean);
    PAGE_SAYS(o, "not: sum * (1 / 3)",
              ((double)x[0] + (double)x[1] + (double)x[2]) * (1.0 / 3));
    PAGE_SAYS(o, "moment of the rows", m2);
    PAGE_SAYS(o, "not: moment with d * d rounded", plain);
    float y = 1.5f;
    tt_col_blend(ctx, &y, 1, 1, (double[]){0.25}, (double[]){1.25},
                 (double[]){0.5}, 0.35);
    PAGE_SAYS(o, "col_blend of 1.5: mean 0.25, gain 1.25, target 0.5, tau 0.35",
              y);
    y = 1.5f;
    tt_col_blend(ctx, &y, 1, 1, NULL, NULL, (double[]){0.5}, 0.35);
    PAGE_SAYS(o, "col_blend of 1.5 without gain: target 0.5, tau 0.35", y);
}

static float gelu(float x)
{
    tt_gelu_tanh(ctx, &x, 1);
    return x;
}

static void elements(void)
{
    const float c = (float)0.044715, k = (float)-1.5957691216057308;
    const float inner = fma_f32(c * 4.0f, -2, -2);
    PAGE_SAYS(o, "c of gelu_tanh", c);
    PAGE_SAYS(o, "k of gelu_tanh", k);
    PAGE_SAYS(o, "u for x = -2", inner * k);
    PAGE_SAYS(o, "gelu_tanh(-2)", gelu(-2));
    PAGE_SAYS(o, "not: k = -1.5957691",
              -2 / (1 + tt_expf(inner * -1.5957691f)));
    PAGE_SAYS(o, "gelu_tanh(1)", gelu(1));
    PAGE_SAYS(o, "exp(-1)", tt_expf(-1));
    float silu = 1, x = 0.8f;
    tt_silu(ctx, &silu, 1);
    PAGE_SAYS(o, "silu(1)", silu);
    tt_modulate(ctx, &x, 1, 1, (float[]){0.1f}, (float[]){0.3f}, 1, 1);
    PAGE_SAYS(o, "modulate: x = 0.8, scale = 0.1, shift = 0.3", x);
    x = 0.8f;
    tt_gate_add(ctx, &x, (float[]){0.1f}, 1, 1, (float[]){0.3f}, 1, 1);
    PAGE_SAYS(o, "gate_add: x = 0.8, y = 0.1, gate = 0.3", x);
}

static void rope(void)
{
    tt_rope_table t;
    float y[128] = {0};
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (!expect_ok(tt_rope_make(ctx, &ctx->scratch, &t, 128, 2), "rope table"))
        return;
    PAGE_SAYS(o, "theta_1 of 22 pairs", tt_pow(10000, -(1.0 / 22)));
    PAGE_SAYS(o, "sine, cosine of 1", t.sin[64], t.cos[64]);
    y[0] = 1;
    y[1] = 2;
    tt_rope(ctx, y, y, 1, 1, 128, &t, (int32_t[]){1, 0, 0});
    PAGE_SAYS(o, "the pair (1, 2) rotated by one radian", y[0], y[1]);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- the hash of the measured errors ------------------------------------- */

static void hashes(void)
{
    uint64_t h = 0xcbf29ce484222325u;
    page_says_word(o, "start", h);
    page_says_word(o, "prime", 0x100000001b3u);
    for (uint32_t u = 0x3f800000; u < 0x3f810000; u++) {
        float x, y;
        uint32_t bits;
        memcpy(&x, &u, 4);
        y = tt_expf(x);
        memcpy(&bits, &y, 4);
        h = (h ^ bits) * 0x100000001b3u;
        if (u == 0x3f800000)
            page_says_word(o, "expf of the float 1 alone", h);
    }
    page_says_word(o, "expf of the 65,536 floats from 1 on", h);
}

/* ---- the bf16 class ------------------------------------------------------ */

static float rounded(float x)   /* by the operator: x * 1 */
{
    return linear(&x, (float[]){1}, 1, NULL);
}

static void bf16(void)
{
    const tt_ops *before = ctx->ops;
    const float x[5] = {0x1p24f, 0x1.001p1f, 1, 0, 1}, one[5] = {1, 1, 1, 1, 1};
    float even = 0, chain = 0;
    ctx->ops = tt_ops_class(before, TT_CLASS_BF16);
    PAGE_SAYS(b16, "x", x[0], x[1], x[2], x[3], x[4]);
    PAGE_SAYS(b16, "x as bf16", rounded(x[0]), rounded(x[1]), rounded(x[2]),
              rounded(x[3]), rounded(x[4]));
    PAGE_SAYS(b16, "w", 1, 1, 1, 1, 1);
    for (int k = 0; k < 5; k += 2) even = fma_f32(x[k], 1, even);
    PAGE_SAYS(b16, "e", even);
    PAGE_SAYS(b16, "o", rounded(x[1]));
    PAGE_SAYS(b16, "y", linear(x, one, 5, NULL));
    for (int k = 0; k < 5; k++) chain = fma_f32(rounded(x[k]), 1, chain);
    PAGE_SAYS(b16, "not: one ascending chain", chain);

    PAGE_SAYS(b16, "rounding `1.fffffep-127`", 0x1.fffffep-127,
              rounded(0x1.fffffep-127f));
    PAGE_SAYS(b16, "rounding the largest subnormal bf16", 0x1.fcp-127,
              rounded(0x1.fcp-127f));
    const float small[3] = {0x1p-63f, 0, 0x1p-100f};
    const float w[3] = {0x1p-63f, 0, -0x1p-50f};
    const float v[3] = {0x1p-63f, 0, -0x1p-51f};
    PAGE_SAYS(b16, "x of small sums", small[0], small[1], small[2]);
    PAGE_SAYS(b16, "w, and the sum", w[0], w[1], w[2],
              linear(small, w, 3, NULL));
    PAGE_SAYS(b16, "other w, and the sum", v[0], v[1], v[2],
              linear(small, v, 3, NULL));
    ctx->ops = before;
}

static void vdp(void)
{
    const tt_ops *before = ctx->ops;
    const float x[6] = {1, 2, 2, 0x1p24f, 1, 0}, one[5] = {1, 1, 1, 1, 1};
    float c[6], last = 0, even = 0;
    for (int i = 0; i < 6; i++) {       /* after k = 1, 0, 3, 2, 5, 4 */
        last = fma_f32(x[i ^ 1], 1, last);
        c[i] = last;
        even = fma_f32(x[i], 1, even);
    }
    ctx->ops = tt_ops_class(before, TT_CLASS_VDP);
    PAGE_SAYS(b16, "vdp x", x[0], x[1], x[2], x[3], x[4]);
    PAGE_SAYS(b16, "vdp w", 1, 1, 1, 1, 1);
    PAGE_SAYS(b16, "k = 1, then k = 0", c[0], c[1]);
    PAGE_SAYS(b16, "k = 3, then k = 2", c[2], c[3]);
    PAGE_SAYS(b16, "k = 5 (padding), then k = 4", c[4], c[5]);
    PAGE_SAYS(b16, "vdp y", linear(x, one, 5, NULL));
    PAGE_SAYS(b16, "not: the even product first", even);
    ctx->ops = tt_ops_class(before, TT_CLASS_AMX);
    PAGE_SAYS(b16, "not: class amx", linear(x, one, 5, NULL));
    ctx->ops = before;
}

/* ---- the classes of tensor cores ----------------------------------------- */

static void tensor_core_sums(const tt_ops *sm80, const tt_ops *sm90)
{
    float x[10] = {0x1p24f, 0x1.01p0f, [9] = 1}, one[10];
    for (int k = 0; k < 10; k++) one[k] = 1;
    PAGE_SAYS(tc, "x[0], x[1]", x[0], x[1]);
    PAGE_SAYS(tc, "x[9], all others 0", x[9]);
    ctx->ops = sm80;
    PAGE_SAYS(tc, "x[1] as bf16", rounded(x[1]));
    PAGE_SAYS(tc, "sm80: first step", linear(x, one, 8, NULL));
    PAGE_SAYS(tc, "sm80: y", linear(x, one, 10, NULL));
    ctx->ops = sm90;
    PAGE_SAYS(tc, "sm90: y, one step", linear(x, one, 10, NULL));

    const float a[3] = {1, 0x1.8p-25f, 0}, b[3] = {1, 1, 0x1p127f};
    PAGE_SAYS(tc, "x of two terms and a zero", a[0], a[1], a[2]);
    PAGE_SAYS(tc, "w", b[0], b[1], b[2]);
    PAGE_SAYS(tc, "c = -1: sm80", tc_step(tc_sm80, -1, a, 1, b, 3));
    PAGE_SAYS(tc, "c = -1: sm90", tc_step(tc_sm90, -1, a, 1, b, 3));
    const float c[3] = {1, 0x1p-24f, 0}, d[3] = {1, 1, 0};
    PAGE_SAYS(tc, "x[1] = 2^-24: sm80", tc_step(tc_sm80, -1, c, 1, b, 3));
    expect(tc_step(tc_sm80, -1, c, 1, b, 3) == tc_step(tc_sm80, -1, c, 1, d, 3),
           "a zero has no exponent");
}

static float tensor_core_attention(const tt_ops *class, const float *k,
                                   const float *v)
{
    float q = 1, y = NAN;
    ctx->ops = class;
    tt_attention(ctx, &(tt_attention_args){
        .o = &y, .q = &q, .k = k, .v = v, .T = 1, .N = 129, .H = 1, .D = 1,
        .q_stride = 1, .kv_stride = 1, .scale = 1});
    return y;
}

static void tensor_core_keys(const tt_ops *sm80, const tt_ops *sm90)
{
    float k[129], v[129], p[129], one = 1;
    const float c = TC_LOG2E;
    const float m = tc_max(TC_LEAST_MAX, 0, c), after = tc_max(m, 0.5f, c);
    const float alpha = tc_alpha(m, after);
    for (int j = 0; j < 129; j++) {
        k[j] = j < 128 ? (float)(j % 8) / -4 : 0.5f;
        v[j] = tc_factor(1.0f / (float)(j + 1));
        p[j] = tc_weight(k[j], c, j < 128 ? m : after);
    }
    PAGE_SAYS(tc, "m before and after the second block", m, after);
    PAGE_SAYS(tc, "x of z = -0.25, and its weight", fma_f32(-0.25f, c,
              TC_TO_QUANTUM - m) - TC_TO_QUANTUM, p[1]);
    PAGE_SAYS(tc, "x of z = 0.5, and its weight", fma_f32(0.5f, c,
              TC_TO_QUANTUM - after) - TC_TO_QUANTUM, p[128]);
    PAGE_SAYS(tc, "alpha", alpha);
    const tc_unit unit[2] = {tc_sm80, tc_sm90};
    static const char *const acc[2] = {
        "sm80: acc before and after the second block",
        "sm90: acc before and after the second block"};
    for (int i = 0; i < 2; i++) {
        const float a = tc_chain(unit[i], 0, v, 1, p, 128);
        const float l = tc_chain(unit[i], 0, &one, 0, p, 128);
        PAGE_SAYS(tc, acc[i], a, tc_chain(unit[i], a * alpha, v + 128, 1,
                                          p + 128, 1));
        PAGE_SAYS(tc, "both: l before and after the second block", l,
                  tc_chain(unit[i], l * alpha, &one, 0, p + 128, 1));
    }
    PAGE_SAYS(tc, "sm80: o", tensor_core_attention(sm80, k, v));
    PAGE_SAYS(tc, "sm90: o", tensor_core_attention(sm90, k, v));
    double sum = 0;
    for (int j = 0; j < 129; j++) sum += tt_exp((double)k[j] - 0.5);
    PAGE_SAYS(tc, "not: l of weights without a rounding", sum * 0x1.6a09e667f3bcdp0);
}

static void tensor_cores(void)
{
    const tt_ops *before = ctx->ops;
    const tt_ops *sm80 = tt_ops_class(before, TT_CLASS_SM80);
    const tt_ops *sm90 = tt_ops_class(before, TT_CLASS_SM90);
    PAGE_SAYS(tc, "log2(e), Q and I, which round to multiples of 2^-10 and to "
              "integers", TC_LOG2E, TC_TO_QUANTUM, TC_TO_INTEGER);
    PAGE_SAYS(tc, "M and H, -2^22 and -2^20", TC_LEAST_MAX, TC_HIDDEN);
    tensor_core_sums(sm80, sm90);
    tensor_core_keys(sm80, sm90);
    ctx->ops = before;
}

int main(void)
{
    ctx = test_begin("ops/worked_example");
    fill_keys();
    for (int i = 0; tt_ops_at(i); i++) {
        if (!strcmp(tt_ops_at(i)->name, "blas")) continue;
        ctx->ops = tt_ops_at(i);
        if (!page_open(o, "src/ops/README.md")
            || !page_open(b16, "src/ops/golden/README.md")
            || !page_open(tc, "src/ops/golden/tensor_core.md"))
            break;
        three_products();
        two_blocks();
        norms();
        attention();
        columns();
        elements();
        rope();
        hashes();
        bf16();
        vdp();
        page_close(o, "### Measured errors");
        tensor_cores();
        page_close(b16, NULL);
        page_close(tc, NULL);
    }
    return test_end();
}

#else
int main(void)
{
    test_begin("ops/worked_example");
    expect(sizeof(tt_real) == 8, "the examples are of the float class: not run "
           "in a double build");
    return test_end();
}
#endif
