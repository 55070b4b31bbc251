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
#include "tests/folder.h"
#include "tests/harness.h"
#include "io/io.h"
#include "tether/mathfn.h"
#include "validate/validate.h"

static tt_ctx *ctx;

typedef enum order { ASCENDING, DESCENDING, EIGHT } order;
enum { LINEAR = 1, ATTENTION = 2, CONV = 4 };

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
    bool flash;          /* softmax in blocks of keys, sums rescaled          */
    double fault;        /* not honest: linear and conv are 1 + fault times
                            what they should be; 0: none                      */
    int only;            /* operators, added up; 0: all                       */
    const char *plays;   /* another arithmetic than it declares; NULL: that   */
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
    {"softmax in blocks of five keys, f32", "f32", .flash = true,
     .only = ATTENTION},
    {"softmax in blocks of five keys, bf16", "bf16", .flash = true,
     .only = ATTENTION},
    {"subnormal numbers flushed", "f32+ftz", .order = EIGHT},
    {"subnormal numbers flushed, tf32", "tf32+ftz", .only = 7},
    {"Winograd", "f32+winograd", .only = CONV},
    {"Winograd, tf32", "tf32+winograd", .only = CONV},
    {"Winograd, flushed", "f32+ftz+winograd", .only = CONV},
    {"biases in bf16", "bf16+bias", .only = LINEAR + CONV},
    {"biases in f16", "f16+bias", .only = LINEAR + CONV},
    {"f16 that saturates", "f16+saturate", .only = 7},
    {"f16 that saturates, stored", "f16-stored+saturate", .only = 7},
};

/* Faults that must be found although much is allowed. */
static const variant faults[] = {
    {"a small fault", "f32", .fault = 4e-6},
    {"a fault beneath ftz", "f32+ftz", .fault = 4e-6},
    {"a fault beneath Winograd", "f32+winograd", .fault = 2e-3},
    {"a fault beneath all", "f32+ftz+winograd+bias", .fault = 2e-3},
    {"a fault beneath bias", "bf16+bias", .fault = 0.2},
    {"a fault beneath saturate", "f16+saturate", .fault = 0.03},
};

static const variant *mine(const tt_ctx *c)
{
    return c->ops->self;
}

static const tt_arith *running;      /* that of the variant */

static const tt_arith *declared(const tt_ctx *c)
{
    (void)c;
    return running;
}

/* What the machine makes of a number anywhere. */
static float kept(const tt_ctx *c, float x)
{
    return declared(c)->allows & TT_ALLOW_FTZ && fabsf(x) < FLT_MIN ? 0 : x;
}

static float in(const tt_ctx *c, float x)
{
    const tt_format f = declared(c)->product;
    x = kept(c, x);
    if (declared(c)->allows & TT_ALLOW_SATURATE)
        x = x > 65504 ? 65504 : x < -65504 ? -65504 : x;
    return f == TT_FMT_TF32 ? arith_cut_tf32(x) : tt_format_round(f, x);
}

static tt_real put(const tt_ctx *c, float x)
{
    return (tt_real)tt_format_round(declared(c)->stored, kept(c, x));
}

static float bias_of(const tt_ctx *c, const tt_real *b, int64_t i)
{
    const float x = b ? (float)b[i] : 0;
    return declared(c)->allows & TT_ALLOW_BIAS
               ? tt_format_round(declared(c)->product, x) : kept(c, x);
}

static float spoilt(const tt_ctx *c, float x)
{
    return x * (float)(1 + mine(c)->fault);
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

static float dot(const tt_ctx *c, const float *a, const float *b, int64_t n,
                 float *terms)
{
    for (int64_t k = 0; k < n; k++) terms[k] = kept(c, a[k] * b[k]);
    return kept(c, sum(mine(c), terms, n));
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
        y[k] = put(c, spoilt(c, dot(c, xr + k / o * i, wr + k % o * i, i,
                                    terms)) + bias_of(c, b, k % o));
}

static void linear(tt_ctx *c, const tt_linear_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    products(c, p->y, p->x, p->n, p->w, p->b);
    tt_arena_reset(&c->scratch, mark);
}

/* ---- Winograd's F(4 x 4, 3 x 3) ------------------------------------------ */

static const float input_of[6][6] = {
    {4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
    {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const float kernel_of[6][3] = {
    {1.0f / 4, 0, 0}, {-1.0f / 6, -1.0f / 6, -1.0f / 6},
    {-1.0f / 6, 1.0f / 6, -1.0f / 6}, {1.0f / 24, 1.0f / 12, 1.0f / 6},
    {1.0f / 24, -1.0f / 12, 1.0f / 6}, {0, 0, 1}};
static const float output_of[4][6] = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0},
    {0, 1, -1, 8, -8, 1}};

/* y [m, m] = t x t^T, x [n, n], t [m, n] */
static void transform(const tt_ctx *c, float *y, const float *t, const float *x,
                      int m, int n)
{
    float half[6 * 6];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float s = 0;
            for (int k = 0; k < n; k++) s += kept(c, t[i * n + k] * x[k * n + j]);
            half[i * n + j] = kept(c, s);
        }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            float s = 0;
            for (int k = 0; k < n; k++)
                s += kept(c, half[i * n + k] * t[j * n + k]);
            y[i * m + j] = kept(c, s);
        }
}

/* Element (r, s) of the padded and repeated frame. */
static float pixel(const tt_ctx *c, const tt_conv_args *p, int a, int64_t r,
                   int64_t s, int64_t ch)
{
    if (!p->frame[a] || r < 0 || s < 0 || r >= p->Hi * p->up
        || s >= p->Wi * p->up) return 0;
    return kept(c, (float)p->frame[a][((r / p->up) * p->Wi + s / p->up)
                                      * p->Cin + ch]);
}

/* The tile whose first output is (i, j), of output channel o. */
static void tile(tt_ctx *c, const tt_conv_args *p, const tt_real *w, int64_t i,
                 int64_t j, int64_t o)
{
    float all[36] = {0}, d[36], v[36], g[9], u[36], y[16];
    for (int64_t k = 0; k < p->kt * p->Cin; k++) {
        const int a = (int)(k / p->Cin);
        const int64_t ch = k % p->Cin;
        for (int x = 0; x < 36; x++)
            d[x] = pixel(c, p, a, i + x / 6 - p->pad_top,
                         j + x % 6 - p->pad_left, ch);
        for (int x = 0; x < 9; x++)
            g[x] = kept(c, (float)w[((o * p->kt + a) * 9 + x) * p->Cin + ch]);
        transform(c, v, input_of[0], d, 6, 6);
        for (int x = 0; x < 36; x++) {   /* G g G^T */
            float s = 0;
            for (int t = 0; t < 9; t++)
                s += kernel_of[x / 6][t / 3] * g[t] * kernel_of[x % 6][t % 3];
            u[x] = kept(c, s);
            all[x] = kept(c, all[x] + kept(c, in(c, u[x]) * in(c, v[x])));
        }
    }
    transform(c, y, output_of[0], all, 4, 6);
    for (int x = 0; x < 16; x++)
        if (i + x / 4 < p->Ho && j + x % 4 < p->Wo)
            p->y[((i + x / 4) * p->Wo + j + x % 4) * p->Cout + o] =
                put(c, spoilt(c, y[x]) + bias_of(c, p->b, o));
}

static bool winograd(tt_ctx *c, const tt_conv_args *p)
{
    if (!(declared(c)->allows & TT_ALLOW_WINOGRAD) || p->kh != 3 || p->kw != 3
        || p->stride != 1) return false;
    const int64_t n = tt_tensor_count(p->w);
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *w = tt_scratch(c, n);
    if (w) tt_widen_at(w, p->w, 0, n);
    for (int64_t o = 0; w && o < p->Cout; o++)
        for (int64_t i = 0; i < p->Ho; i += 4)
            for (int64_t j = 0; j < p->Wo; j += 4) tile(c, p, w, i, j, o);
    tt_arena_reset(&c->scratch, mark);
    return true;
}

static void conv(tt_ctx *c, const tt_conv_args *p)
{
    if (winograd(c, p)) return;
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
static float softmax(tt_ctx *c, const tt_attention_args *p, int64_t h,
                     int64_t i, float *s, float *terms)
{
    const variant *v = mine(c);
    float top = -INFINITY;
    for (int64_t j = 0; j < p->N; j++) {
        if (!v->scaled_first) s[j] = kept(c, s[j] * (float)p->scale);
        if (p->key_mask && !p->key_mask[j]) s[j] = -FLT_MAX;
        else if (p->rel_bias)
            s[j] += (float)p->rel_bias[h * (2 * p->N - 1) + j - i + p->N - 1];
        if (v->stored_logits && s[j] > -FLT_MAX) s[j] = (float)put(c, s[j]);
        top = s[j] > top ? s[j] : top;
    }
    if (v->flash) return 1;
    for (int64_t j = 0; j < p->N; j++) {
        s[j] = kept(c, tt_expf(s[j] - top));
        terms[j] = v->rounded_sum ? in(c, s[j]) : s[j];
    }
    const float l = sum(v, terms, p->N);
    for (int64_t j = 0; j < p->N; j++)
        s[j] = in(c, v->normalised ? s[j] / l : s[j]);
    return v->normalised ? 1 : l;
}

/* Sums of logits s over blocks of keys; before a larger logit comes, all that
 * was summed is scaled down. x [N, D], o [D]. */
static void in_blocks(tt_ctx *c, const float *s, const float *x, int64_t N,
                      int64_t D, tt_real *o, float *sums)
{
    enum { BLOCK = 5 };
    float top = -INFINITY, l = 0;
    for (int64_t d = 0; d < D; d++) sums[d] = 0;
    for (int64_t from = 0; from < N; from += BLOCK) {
        const int64_t end = from + BLOCK < N ? from + BLOCK : N;
        float most = top;
        for (int64_t j = from; j < end; j++) most = s[j] > most ? s[j] : most;
        const float by = from ? tt_expf(top - most) : 0;
        l *= by;
        for (int64_t d = 0; d < D; d++) sums[d] *= by;
        for (int64_t j = from; j < end; j++) {
            const float e = tt_expf(s[j] - most);
            l += e;
            for (int64_t d = 0; d < D; d++) sums[d] += in(c, e) * x[j * D + d];
        }
        top = most;
    }
    for (int64_t d = 0; d < D; d++) o[d] = put(c, sums[d] / l);
}

static void head(tt_ctx *c, const tt_attention_args *p, int64_t h)
{
    const int64_t D = p->D, at = h * D, N = p->N;
    const variant *v = mine(c);
    float *q = rounded(c, p->q + at, p->T, p->q_stride, D,
                       v->scaled_first ? (float)p->scale : 1);
    float *k = rounded(c, p->k + at, N, p->kv_stride, D, 1);
    float *x = rounded(c, p->v + at, N, p->kv_stride, D, 1);
    float *s = floats(c, N), *column = floats(c, N), *sums = floats(c, D);
    float *terms = floats(c, N > D ? N : D);
    for (int64_t i = 0; !c->status && i < p->T; i++) {
        for (int64_t j = 0; j < N; j++)
            s[j] = dot(c, q + i * D, k + j * D, D, terms);
        const float l = softmax(c, p, h, i, s, terms);
        if (v->flash)
            in_blocks(c, s, x, N, D, p->o + i * p->H * D + at, sums);
        for (int64_t d = 0; !v->flash && d < D; d++) {
            for (int64_t j = 0; j < N; j++) column[j] = x[j * D + d];
            p->o[i * p->H * D + at + d] = put(c, dot(c, s, column, N, terms)
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
        for (int64_t i = 0; i < c; i++)
            x[i] = kept(ct, (float)p->x[r * c + i]);
        const float var = moments(mine(ct), x, terms, c, centred, &mean);
        const float scale = 1 / sqrtf(var + (float)p->eps);
        for (int64_t i = 0; i < c; i++) {
            const float z = (x[i] - mean) * scale;
            const float y = p->w ? z * (float)p->w[i]
                                   + (p->b ? (float)p->b[i] : 0.0f) : z;
            p->y[r * c + i] = (tt_real)kept(ct, y);
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
        for (int64_t i = 0; i < c; i++) terms[i] = kept(ct, (float)x[i] * (float)x[i]);
        const float length = fmaxf(sqrtf(sum(v, terms, c)), 1e-12f);
        for (int64_t i = 0; i < c; i++)
            p->y[r * c + i] =
                (tt_real)kept(ct, kept(ct, (float)x[i]) / length
                              * sqrtf((float)c) * (float)p->gamma[i]);
    }
    tt_arena_reset(&ct->scratch, mark);
}

static void gelu_tanh(tt_ctx *c, const tt_gelu_tanh_args *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        const float x = kept(c, (float)p->x[i]);
        const float u = 0.79788456f * (x + 0.044715f * (x * x * x));
        const float t = mine(c)->exp_tanh ? 1 - 2 / (tt_expf(2 * u) + 1)
                                          : tt_tanhf(u);
        p->x[i] = (tt_real)kept(c, 0.5f * x * (1 + t));
    }
}

static void gate_add(tt_ctx *c, const tt_gate_add_args *p)
{
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t g = i / p->c / p->rows * p->stride + i % p->c;
        const float t = kept(c, kept(c, (float)p->y[i])
                                * kept(c, (float)p->gate[g]));
        p->x[i] = put(c, kept(c, (float)p->x[i])
                         + (mine(c)->two_steps ? (float)put(c, t) : t));
    }
}

static void col_mean(tt_ctx *ct, const tt_col_mean_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&ct->scratch);
    float *x = floats(ct, p->n);
    for (int64_t i = 0; x && i < p->c; i++) {
        for (int64_t r = 0; r < p->n; r++) x[r] = kept(ct, (float)p->x[r * p->c + i]);
        p->mean[i] = (double)kept(ct, mean_of(mine(ct), x, p->n));
    }
    tt_arena_reset(&ct->scratch, mark);
}

/* Operators without a sum, with ours on flushed numbers. */
static const tt_real *flush(tt_ctx *c, const tt_real *x, int64_t n)
{
    tt_real *y = tt_scratch(c, n);
    for (int64_t i = 0; y && i < n; i++) y[i] = (tt_real)kept(c, (float)x[i]);
    return y;
}

static void flush_out(tt_ctx *c, tt_real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = (tt_real)kept(c, (float)x[i]);
}

static void silu(tt_ctx *c, const tt_silu_args *p)
{
    flush_out(c, p->x, p->n);
    tt_ops_default()->silu(c, p);
    flush_out(c, p->x, p->n);
}

static void mul(tt_ctx *c, const tt_mul_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_mul_args own = *p;
    own.y = flush(c, p->y, p->n);
    flush_out(c, p->x, p->n);
    tt_ops_default()->mul(c, &own);
    flush_out(c, p->x, p->n);
    tt_arena_reset(&c->scratch, mark);
}

static void rope(tt_ctx *c, const tt_rope_args *p)
{
    const int64_t n = p->T * p->H * p->D;
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_rope_args own = *p;
    own.x = flush(c, p->x, n);
    tt_ops_default()->rope(c, &own);
    flush_out(c, p->y, n);
    tt_arena_reset(&c->scratch, mark);
}

static void modulate(tt_ctx *c, const tt_modulate_args *p)
{
    flush_out(c, p->x, p->n * p->c);
    tt_ops_default()->modulate(c, p);
    flush_out(c, p->x, p->n * p->c);
}

/* ---- every variant on every operator it has ------------------------------ */

/* The first failure of one operator. */
static tt_report *checked(const variant *v, const char *op, uint64_t seed,
                          int64_t rounds)
{
    tt_ops t = *tt_ops_default();
    const tt_arith *a = tt_arith_find(v->arith);
    tt_report *r = NULL;
    running = v->plays ? tt_arith_find(v->plays) : a;
    t.linear = linear, t.attention = attention, t.conv = conv;
    t.layer_norm = layer_norm, t.rms_norm = rms_norm;
    t.channel_norm = channel_norm, t.gelu_tanh = gelu_tanh;
    t.gate_add = gate_add, t.col_mean = col_mean;
    if (running && running->allows & TT_ALLOW_FTZ) {
        t.silu = silu, t.mul = mul, t.rope = rope, t.modulate = modulate;
    }
    t.name = v->name;
    t.self = (void *)(uintptr_t)v;
    if (expect_ok(tt_report_new(ctx, &r, v->name, a), "report"))
        expect_ok(tt_opcheck(ctx, r, &t, &(tt_opcheck_options){
            .arith = a, .seed = seed, .rounds = rounds, .only = op}), op);
    return r;
}

/* A fault that is far above what the declared arithmetic errs, and no word is
 * offered for it. */
static void found(const variant *v, const char *op)
{
    tt_report *r = checked(v, op, 1, 8);
    const tt_verdict *f = tt_report_first(r);
    expect(f && !strstr(f->hint, "declare"), "%s: found in %s: %s", v->name, op,
           f ? f->hint : "no");
    tt_report_free(r);
}

/* What is not declared fails, and the hint says what to declare. */
static void named(const char *arith, const char *is, const char *op,
                  const char *word)
{
    variant v = {.name = is, .arith = arith, .plays = is};
    tt_report *r = checked(&v, op, 1, 8);
    const tt_verdict *f = tt_report_first(r);
    expect(f && strstr(f->hint, word), "%s under %s: '%s' expected, not '%s'",
           is, arith, word, f ? f->hint : "no failure");
    tt_report_free(r);
}

static int alarms(const variant *v, const char *op, uint64_t seed,
                  int64_t rounds)
{
    tt_report *r = checked(v, op, seed, rounds);
    if (!r) return 1;
    const tt_verdict *f = tt_report_first(r);
    const bool fine = expect(!f, "%s: false alarm at %s, %.3g times: %s",
                             v->name, f ? f->path : "", f ? f->ratio : 0,
                             f ? f->hint : "");
    tt_report_free(r);
    return !fine;
}

/* A tensor of a file of a case, as it is stored. */
static const tt_tensor *stored(tt_file *f, const char *name)
{
    const tt_entry *e = tt_file_find(f, name);
    expect(e != NULL, "%s is there", name);
    return e ? &e->t : NULL;
}

/* Limits of exported cases know any order of sums, as those of calls do: no
 * element may err less than one unit of its terms. */
static void test_cases(void)
{
    tt_file *f[3] = {NULL};
    const char *const name[] = {"inputs", "expected_f64", "expected_f32"};
    if (!folder_make()) return;
    expect_ok(tt_cases_operators(ctx, at("cases"), 1, 1, "normal", false),
        "cases");
    for (int i = 0; i < 3 && !ctx->status; i++) {
        char path[200];
        snprintf(path, sizeof path, "cases/op_linear_0/%s.safetensors",
                 name[i]);
        expect_ok(tt_file_open(ctx, &f[i], at(path)), path);
    }
    const tt_tensor *x = f[2] ? stored(f[0], "x") : NULL;
    const tt_tensor *w = x ? stored(f[0], "w") : NULL;
    const tt_tensor *want = w ? stored(f[1], "y") : NULL;
    const tt_tensor *e = want ? stored(f[2], "y") : NULL;
    if (e && expect(e->dtype == TT_F64 && x->dtype == TT_F32, "types")) {
        const int64_t n = x->dim[0], c = x->dim[1], o = w->dim[0];
        const float *a = x->data;
        tt_real *b = tt_scratch(ctx, o * c);
        int64_t lucky = 0;
        tt_widen_at(b, w, 0, o * c);
        for (int64_t i = 0; i < n * o; i++) {
            double sizes = 0;
            for (int64_t k = 0; k < c; k++)
                sizes += fabs((double)a[i / o * c + k]
                              * (double)b[i % o * c + k]);
            lucky += fabs(((const double *)e->data)[i]
                          - ((const double *)want->data)[i])
                     < 0.99 * 0x1p-24 * sizes;
        }
        expect(lucky == 0, "%lld of %lld limits are those of luck",
               (long long)lucky, (long long)(n * o));
    }
    for (int i = 0; i < 3; i++) tt_file_close(f[i]);
    folder_remove();
}

int main(int argc, char **argv)
{
    enum { FIRST_SEED = 100 };
    static const char *const every[] = {
        "linear", "attention", "conv", "layer_norm", "rms_norm", "channel_norm",
        "gelu_tanh", "gate_add", "col_mean", "silu", "mul", "rope",
        "modulate"};
    const int64_t seeds = argc > 1 ? atoll(argv[1]) : 3;
    ctx = test_begin("validate/honest");
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const variant *v = &variants[i];
        const bool f32 = !strncmp(v->arith, "f32", 3);
        const bool flushes = strstr(v->arith, "ftz");
        int bad = 0;
        if (argc > 2 && strcmp(argv[2], v->name)) continue;
        for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
            /* in the others ours round the results of these */
            if (!f32 && k > 2 && strcmp(every[k], "gate_add")) continue;
            if (!flushes && k > 8) continue;
            if (v->only && (k > 2 || !(v->only >> k & 1))) continue;
            bad += alarms(v, every[k], FIRST_SEED, seeds);
        }
        if (argc > 1)
            printf("%s: %lld seeds, %d false alarms\n", v->name,
                   (long long)seeds, bad);
        fflush(stdout);
    }
    for (size_t i = 0; argc < 2 && i < sizeof faults / sizeof *faults; i++) {
        found(&faults[i], "linear");
        found(&faults[i], "conv");
    }
    if (argc < 2) {
        if (sizeof(tt_real) == 4) test_cases();
        named("f32", "f32+ftz", "silu", "declare --arith f32+ftz");
        named("f32", "f32+ftz", "linear", "declare --arith f32+ftz");
        named("bf16", "bf16+bias", "linear", "declare --arith bf16+bias");
        named("f16", "f16+saturate", "linear", "declare --arith f16+saturate");
        named("f32", "f32+winograd", "conv", "declare --arith f32+winograd");
    }
    return test_end();
}
