/* test_honest.c: programs that are right in another way than ours pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   test_honest                  three seeds of every variant
 *   test_honest SEEDS [NAME]     so many, or of one variant
 *
 * Each variant is a plain program of the arithmetic that it declares, with one
 * freedom taken: the order of its sums, where it rounds, which of two equal
 * formulas it uses. Inputs are those of the operator checks, constant and
 * one-hot ones among them, on which the plain program of src/ops/arith makes no
 * error at all. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/arith/arith.h"
#include "ops/gather.h"
#include "tests/harness.h"
#include "tether/mathfn.h"
#include "tether/validate.h"

static tt_ctx *ctx;

typedef enum order { ASCENDING, DESCENDING, EIGHT } order;

typedef struct variant {
    const char *name, *arith;
    order order;
    bool welford;        /* mean and spread in one pass                       */
    bool reciprocal;     /* the mean by a product with 1 / C                  */
    bool exp_tanh;       /* tanh(u) = 1 - 2 / (exp(2u) + 1)                   */
    bool normalised;     /* softmax divided, then rounded for the product     */
    bool rounded_sum;    /* the denominator is the sum of the rounded weights */
    bool scaled_first;   /* q * scale is rounded                              */
    bool stored_logits;  /* logits are rounded to the stored format           */
    bool two_steps;      /* y * gate is stored before it is added             */
} variant;

static const variant variants[] = {
    {"ascending sums", "f32", .order = ASCENDING},
    {"descending sums", "f32", .order = DESCENDING},
    {"eight accumulators", "f32", .order = EIGHT},
    {"Welford", "f32", .welford = true},
    {"mean by multiplication", "f32", .reciprocal = true},
    {"mean by multiplication, eight accumulators", "f32", .order = EIGHT,
     .reciprocal = true},
    {"tanh by exp", "f32", .exp_tanh = true},
    {"softmax divided, then rounded, bf16", "bf16", .normalised = true},
    {"softmax divided, then rounded, f16", "f16", .normalised = true},
    {"softmax divided, then rounded, tf32", "tf32", .normalised = true},
    {"denominator of rounded weights", "bf16", .rounded_sum = true},
    {"q scaled before it is rounded, bf16", "bf16", .scaled_first = true},
    {"q scaled before it is rounded, f16", "f16", .scaled_first = true},
    {"eight accumulators, bf16", "bf16", .order = EIGHT},
    {"logits stored in bf16", "bf16-stored", .stored_logits = true},
    {"gate applied and stored, then added", "bf16-stored", .two_steps = true},
};

static const variant *mine(const tt_ctx *c)
{
    return c->ops->self;
}

static const tt_arith *declared(const tt_ctx *c)
{
    return tt_arith_find(mine(c)->arith);
}

static float in(const tt_ctx *c, float x)
{
    const tt_format f = declared(c)->product;
    return f == TT_FMT_TF32 ? arith_cut_tf32(x) : tt_format_round(f, x);
}

static tt_real put(const tt_ctx *c, float x)
{
    return (tt_real)tt_format_round(declared(c)->stored, x);
}

static float sum(const variant *v, const float *t, int64_t n)
{
    float lane[8] = {0};
    if (v->order == EIGHT) {
        for (int64_t k = 0; k < n; k++) lane[k % 8] += t[k];
        return ((lane[0] + lane[4]) + (lane[2] + lane[6]))
               + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
    for (int64_t k = 0; k < n; k++)
        lane[0] += t[v->order == DESCENDING ? n - 1 - k : k];
    return lane[0];
}

static float *floats(tt_ctx *c, int64_t n)
{
    return tt_alloc(c, &c->scratch, n, sizeof(float), "a variant");
}

/* Rows [n, width] that are `stride` apart, rounded for a product. */
static float *rounded(tt_ctx *c, const tt_real *x, int64_t n, int64_t stride,
                      int64_t width, float scale)
{
    float *y = floats(c, n * width);
    for (int64_t i = 0; y && i < n * width; i++)
        y[i] = in(c, (float)x[i / width * stride + i % width] * scale);
    return y;
}

static float dot(const variant *v, const float *a, const float *b, int64_t n,
                 float *terms)
{
    for (int64_t k = 0; k < n; k++) terms[k] = a[k] * b[k];
    return sum(v, terms, n);
}

/* y [n, o] = x w^T + b */
static void products(tt_ctx *c, tt_real *y, const tt_real *x, int64_t n,
                     const tt_tensor *w, const tt_real *b)
{
    const int64_t o = w->dim[0], i = tt_tensor_count(w) / o;
    tt_real *wide = tt_scratch(c, o * i);
    float *terms = floats(c, i), *xr = rounded(c, x, n, i, i, 1), *wr;
    if (c->status) return;
    tt_widen_at(wide, w, 0, o * i);
    wr = rounded(c, wide, o, i, i, 1);
    for (int64_t k = 0; wr && k < n * o; k++)
        y[k] = put(c, dot(mine(c), xr + k / o * i, wr + k % o * i, i, terms)
                      + (b ? (float)b[k % o] : 0.0f));
}

static void linear(tt_ctx *c, const tt_linear_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    products(c, p->y, p->x, p->n, p->w, p->b);
    tt_arena_reset(&c->scratch, mark);
}

static void conv(tt_ctx *c, const tt_conv_args *p)
{
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *x = tt_scratch(c, p->Ho * p->Wo * k);
    for (int64_t i = 0; x && i < p->Ho * p->Wo; i++)
        conv_gather(x + i * k, p, i / p->Wo, i % p->Wo);
    if (x) products(c, p->y, x, p->Ho * p->Wo, p->w, p->b);
    tt_arena_reset(&c->scratch, mark);
}

/* Logits s [N] of query i of head h to weights; returns what is left to divide
 * by. */
static float soften(tt_ctx *c, const tt_attention_args *p, int64_t h, int64_t i,
                    float *s, float *terms)
{
    const variant *v = mine(c);
    float top = -INFINITY;
    for (int64_t j = 0; j < p->N; j++) {
        if (!v->scaled_first) s[j] *= (float)p->scale;
        if (p->key_mask && !p->key_mask[j]) s[j] = -FLT_MAX;
        else if (p->rel_bias)
            s[j] += (float)p->rel_bias[h * (2 * p->N - 1) + j - i + p->N - 1];
        if (v->stored_logits && s[j] > -FLT_MAX) s[j] = (float)put(c, s[j]);
        top = s[j] > top ? s[j] : top;
    }
    for (int64_t j = 0; j < p->N; j++) {
        s[j] = tt_expf(s[j] - top);
        terms[j] = v->rounded_sum ? in(c, s[j]) : s[j];
    }
    const float l = sum(v, terms, p->N);
    for (int64_t j = 0; j < p->N; j++)
        s[j] = in(c, v->normalised ? s[j] / l : s[j]);
    return v->normalised ? 1 : l;
}

static void head(tt_ctx *c, const tt_attention_args *p, int64_t h)
{
    const int64_t D = p->D, at = h * D, N = p->N;
    const variant *v = mine(c);
    float *q = rounded(c, p->q + at, p->T, p->q_stride, D,
                       v->scaled_first ? (float)p->scale : 1);
    float *k = rounded(c, p->k + at, N, p->kv_stride, D, 1);
    float *x = rounded(c, p->v + at, N, p->kv_stride, D, 1);
    float *s = floats(c, N), *column = floats(c, N);
    float *terms = floats(c, N > D ? N : D);
    for (int64_t i = 0; !c->status && i < p->T; i++) {
        for (int64_t j = 0; j < N; j++)
            s[j] = dot(v, q + i * D, k + j * D, D, terms);
        const float l = soften(c, p, h, i, s, terms);
        for (int64_t d = 0; d < D; d++) {
            for (int64_t j = 0; j < N; j++) column[j] = x[j * D + d];
            p->o[i * p->H * D + at + d] = put(c, dot(v, s, column, N, terms)
                                                 / l);
        }
    }
}

static void attention(tt_ctx *c, const tt_attention_args *p)
{
    for (int64_t h = 0; h < p->H; h++) {
        const tt_arena_mark mark = tt_arena_here(&c->scratch);
        head(c, p, h);
        tt_arena_reset(&c->scratch, mark);
    }
}

/* ---- rows ---------------------------------------------------------------- */

static float mean_of(const variant *v, const float *t, int64_t c)
{
    return v->reciprocal ? sum(v, t, c) * (1 / (float)c)
                         : sum(v, t, c) / (float)c;
}

/* Mean and mean square around it (around 0 when not centred). */
static float moments(const variant *v, const float *x, float *terms, int64_t c,
                     bool centred, float *mean)
{
    *mean = 0;
    if (centred && v->welford) {
        float m2 = 0;
        for (int64_t i = 0; i < c; i++) {
            const float d = x[i] - *mean;
            *mean += d / (float)(i + 1);
            m2 += d * (x[i] - *mean);
        }
        return m2 / (float)c;
    }
    if (centred) *mean = mean_of(v, x, c);
    for (int64_t i = 0; i < c; i++)
        terms[i] = (x[i] - *mean) * (x[i] - *mean);
    return mean_of(v, terms, c);
}

/* Each row of c; centred: the mean is subtracted. */
static void norm(tt_ctx *ct, const tt_layer_norm_args *p, bool centred)
{
    const tt_arena_mark mark = tt_arena_here(&ct->scratch);
    const int64_t c = p->c;
    float *x = floats(ct, c), *terms = floats(ct, c), mean;
    for (int64_t r = 0; !ct->status && r < p->n; r++) {
        for (int64_t i = 0; i < c; i++) x[i] = (float)p->x[r * c + i];
        const float var = moments(mine(ct), x, terms, c, centred, &mean);
        const float scale = 1 / sqrtf(var + (float)p->eps);
        for (int64_t i = 0; i < c; i++) {
            const float z = (x[i] - mean) * scale;
            p->y[r * c + i] = (tt_real)(p->w ? z * (float)p->w[i]
                                        + (p->b ? (float)p->b[i] : 0.0f) : z);
        }
    }
    tt_arena_reset(&ct->scratch, mark);
}

static void layer_norm(tt_ctx *c, const tt_layer_norm_args *p)
{
    norm(c, p, true);
}

static void rms_norm(tt_ctx *c, const tt_rms_norm_args *p)
{
    norm(c, &(tt_layer_norm_args){.y = p->y, .x = p->x, .n = p->n, .c = p->c,
                                  .w = p->w, .eps = p->eps}, false);
}

static void channel_norm(tt_ctx *ct, const tt_channel_norm_args *p)
{
    const variant *v = mine(ct);
    const tt_arena_mark mark = tt_arena_here(&ct->scratch);
    const int64_t c = p->c;
    float *terms = floats(ct, c);
    for (int64_t r = 0; terms && r < p->n; r++) {
        const tt_real *x = p->x + r * c;
        for (int64_t i = 0; i < c; i++) terms[i] = (float)x[i] * (float)x[i];
        const float length = fmaxf(sqrtf(sum(v, terms, c)), 1e-12f);
        for (int64_t i = 0; i < c; i++)
            p->y[r * c + i] = (tt_real)((float)x[i] / length * sqrtf((float)c)
                                        * (float)p->gamma[i]);
    }
    tt_arena_reset(&ct->scratch, mark);
}

static void gelu_tanh(tt_ctx *c, const tt_gelu_tanh_args *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        const float x = (float)p->x[i];
        const float u = 0.79788456f * (x + 0.044715f * (x * x * x));
        const float t = mine(c)->exp_tanh ? 1 - 2 / (tt_expf(2 * u) + 1)
                                          : tt_tanhf(u);
        p->x[i] = (tt_real)(0.5f * x * (1 + t));
    }
}

static void gate_add(tt_ctx *c, const tt_gate_add_args *p)
{
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t g = i / p->c / p->rows * p->stride + i % p->c;
        const float t = (float)p->y[i] * (float)p->gate[g];
        p->x[i] = put(c, (float)p->x[i]
                         + (mine(c)->two_steps ? (float)put(c, t) : t));
    }
}

static void col_mean(tt_ctx *ct, const tt_col_mean_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&ct->scratch);
    float *x = floats(ct, p->n);
    for (int64_t i = 0; x && i < p->c; i++) {
        for (int64_t r = 0; r < p->n; r++) x[r] = (float)p->x[r * p->c + i];
        p->mean[i] = (double)mean_of(mine(ct), x, p->n);
    }
    tt_arena_reset(&ct->scratch, mark);
}

/* ---- every variant on every operator it has ------------------------------ */

static int alarms(const variant *v, const char *op, uint64_t seed,
                  int64_t rounds)
{
    tt_ops t = *tt_ops_default();
    const tt_arith *a = tt_arith_find(v->arith);
    tt_report *r = NULL;
    t.linear = linear, t.attention = attention, t.conv = conv;
    t.layer_norm = layer_norm, t.rms_norm = rms_norm;
    t.channel_norm = channel_norm, t.gelu_tanh = gelu_tanh;
    t.gate_add = gate_add, t.col_mean = col_mean;
    t.name = v->name;
    t.self = (void *)(uintptr_t)v;
    if (!expect_ok(tt_report_new(ctx, &r, v->name, a), "report")) return 1;
    expect_ok(tt_opcheck(ctx, r, &t, &(tt_opcheck_options){
        .arith = a, .seed = seed, .rounds = rounds, .only = op}), op);
    const tt_verdict *f = tt_report_first(r);
    const bool fine = expect(!f, "%s: false alarm at %s, %.3g times: %s",
                             v->name, f ? f->path : "", f ? f->ratio : 0,
                             f ? f->hint : "");
    tt_report_free(r);
    return !fine;
}

int main(int argc, char **argv)
{
    enum { FIRST_SEED = 100 };
    static const char *const every[] = {
        "linear", "attention", "conv", "layer_norm", "rms_norm", "channel_norm",
        "gelu_tanh", "gate_add", "col_mean"};
    const int64_t seeds = argc > 1 ? atoll(argv[1]) : 3;
    ctx = test_begin("validate/honest");
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const variant *v = &variants[i];
        const bool f32 = !strcmp(v->arith, "f32");
        int bad = 0;
        if (argc > 2 && strcmp(argv[2], v->name)) continue;
        for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
            /* in the others ours round the results of these */
            if (!f32 && k > 2 && strcmp(every[k], "gate_add")) continue;
            bad += alarms(v, every[k], FIRST_SEED, seeds);
        }
        if (argc > 1)
            printf("%s: %lld seeds, %d false alarms\n", v->name,
                   (long long)seeds, bad);
        fflush(stdout);
    }
    return test_end();
}
