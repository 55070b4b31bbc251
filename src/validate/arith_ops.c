/* arith_ops.c: every operator as a plain program in a declared arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * This is the yardstick, not the golden definition: one float chain per sum,
 * products rounded before they are added, statistics in float. The error it
 * makes against float64 is what an honest backend of that arithmetic may make
 * too, whatever its order. In a REAL=double build values still pass through
 * float. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/gather.h"
#include "tether/mathfn.h"
#include "validate/arith.h"

typedef const tt_arith *arith;

/* x as an input of a product. Matrix units take float32 for tf32 and leave the
 * last 13 bits out; a program that rounds first errs less. */
static float narrow(arith a, float x)
{
    uint32_t u;
    if (a->product != TT_FMT_TF32 || a == &arith_list[ARITH_TF32_ROUNDED]
        || !isfinite(x))
        return tt_format_round(a->product, x);
    memcpy(&u, &x, sizeof u);
    u &= ~0x1fffu;
    memcpy(&x, &u, sizeof u);
    return x;
}

static float in(arith a, tt_real x)
{
    return narrow(a, (float)x);
}

/* A stored result. */
static tt_real put(arith a, float x)
{
    return (tt_real)tt_format_round(a->stored, x);
}

/* n values rounded as inputs of products. */
static float *inputs(tt_ctx *ctx, arith a, const tt_real *x, int64_t n)
{
    float *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "rounded inputs");
    for (int64_t i = 0; y && i < n; i++) y[i] = in(a, x[i]);
    return y;
}

static float *weights(tt_ctx *ctx, arith a, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    float *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "rounded weights");
    if (y) tt_widen_at_f32(y, w, 0, n);
    for (int64_t i = 0; y && i < n; i++)
        y[i] = narrow(a, y[i]);
    return y;
}

static float dot(const float *a, const float *b, int64_t n)
{
    float s = 0;
    for (int64_t k = 0; k < n; k++) s += a[k] * b[k];
    return s;
}

static void linear(arith a, tt_ctx *ctx, tt_real *y, const tt_real *x,
                   int64_t n, const tt_tensor *w, const tt_real *b)
{
    const int64_t o = w->dim[0], i = w->dim[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const float *wr = weights(ctx, a, w), *xr = inputs(ctx, a, x, n * i);
    for (int64_t r = 0; xr && r < n; r++)
        for (int64_t c = 0; c < o; c++)
            y[r * o + c] = put(a, dot(xr + r * i, wr + c * i, i)
                                  + (b ? (float)b[c] : 0.0f));
    tt_arena_reset(&ctx->scratch, mark);
}

/* The whole row of logits, one softmax: what a program without blocks does.
 * The probabilities are inputs of a product too. */
static void attention(arith a, tt_ctx *ctx, const tt_attention_args *p)
{
    const int64_t D = p->D, N = p->N;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *k = tt_alloc(ctx, &ctx->scratch, N * D, sizeof *k, "keys");
    float *v = tt_alloc(ctx, &ctx->scratch, N * D, sizeof *v, "values");
    float *s = tt_alloc(ctx, &ctx->scratch, N + 2 * D, sizeof *s, "logits");
    for (int64_t h = 0; s && h < p->H; h++) {
        for (int64_t j = 0; j < N; j++)
            for (int64_t d = 0; d < D; d++) {
                k[j * D + d] = in(a, p->k[j * p->kv_stride + h * D + d]);
                v[j * D + d] = in(a, p->v[j * p->kv_stride + h * D + d]);
            }
        for (int64_t i = 0; i < p->T; i++) {
            float top = -INFINITY, sum = 0, *q = s + N, *o = q + D;
            for (int64_t d = 0; d < D; d++) {
                q[d] = in(a, p->q[i * p->q_stride + h * D + d]);
                o[d] = 0;
            }
            for (int64_t j = 0; j < N; j++) {
                s[j] = dot(q, k + j * D, D) * (float)p->scale;
                if (p->key_mask && !p->key_mask[j]) s[j] = -FLT_MAX;
                else if (p->rel_bias)
                    s[j] += (float)p->rel_bias[h * (2 * N - 1) + j - i + N - 1];
                if (s[j] > top || isnan(s[j])) top = s[j];
            }
            for (int64_t j = 0; j < N; j++)
                sum += s[j] = tt_expf(s[j] - top);
            for (int64_t j = 0; j < N; j++)
                for (int64_t d = 0; d < D; d++)
                    o[d] += narrow(a, s[j]) * v[j * D + d];
            for (int64_t d = 0; d < D; d++)
                p->o[(i * p->H + h) * D + d] = put(a, o[d] / sum);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static void conv(arith a, tt_ctx *ctx, const tt_conv_args *p)
{
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const float *w = weights(ctx, a, p->w);
    tt_real *x = tt_scratch(ctx, k);
    float *xr = tt_alloc(ctx, &ctx->scratch, k, sizeof *xr, "window");
    for (int64_t i = 0; xr && i < p->Ho * p->Wo; i++) {
        conv_gather(x, p, i / p->Wo, i % p->Wo);
        for (int64_t j = 0; j < k; j++) xr[j] = in(a, x[j]);
        for (int64_t o = 0; o < p->Cout; o++)
            p->y[i * p->Cout + o] = put(a, dot(xr, w + o * k, k)
                                           + (p->b ? (float)p->b[o] : 0.0f));
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* sum of (x - mean)^2 and sum of x over a row, one chain. */
static float row_sum(const tt_real *x, int64_t c)
{
    float s = 0;
    for (int64_t i = 0; i < c; i++) s += (float)x[i];
    return s;
}

static float row_moment(const tt_real *x, int64_t c, float mean)
{
    float s = 0;
    for (int64_t i = 0; i < c; i++)
        s += ((float)x[i] - mean) * ((float)x[i] - mean);
    return s;
}

static void layer_norm(arith a, tt_ctx *ctx, tt_real *y, const tt_real *x,
                       int64_t n, int64_t c, const tt_real *w,
                       const tt_real *b, double eps)
{
    (void)ctx;
    for (int64_t r = 0; r < n; r++, x += c, y += c) {
        const float mean = row_sum(x, c) / (float)c;
        const float var = row_moment(x, c, mean) / (float)c;
        const float scale = 1 / sqrtf(var + (float)eps);
        for (int64_t i = 0; i < c; i++) {
            const float v = ((float)x[i] - mean) * scale;
            y[i] = put(a, w ? v * (float)w[i] + (float)b[i] : v);
        }
    }
}

static void rms_norm(arith a, tt_ctx *ctx, tt_real *y, const tt_real *x,
                     int64_t n, int64_t c, const tt_real *w, double eps)
{
    (void)ctx;
    for (int64_t r = 0; r < n; r++, x += c, y += c) {
        const float ms = row_moment(x, c, 0) / (float)c;
        const float scale = 1 / sqrtf(ms + (float)eps);
        for (int64_t i = 0; i < c; i++)
            y[i] = put(a, (float)x[i] * scale * (float)w[i]);
    }
}

static void channel_norm(arith a, tt_ctx *ctx, tt_real *y, const tt_real *x,
                         int64_t n, int64_t c, const tt_real *gamma)
{
    (void)ctx;
    for (int64_t r = 0; r < n; r++, x += c, y += c) {
        float len = sqrtf(row_moment(x, c, 0));
        if (len < 1e-12f) len = 1e-12f;
        for (int64_t i = 0; i < c; i++)
            y[i] = put(a, (float)x[i] / len * sqrtf((float)c)
                          * (float)gamma[i]);
    }
}

static void modulate(arith a, tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                     const tt_real *scale, const tt_real *shift,
                     int64_t stride, int64_t rows)
{
    (void)ctx;
    for (int64_t i = 0; i < n * c; i++) {
        const int64_t g = i / c / rows * stride + i % c;
        x[i] = put(a, (float)x[i] * (1 + (float)scale[g]) + (float)shift[g]);
    }
}

static void gate_add(arith a, tt_ctx *ctx, tt_real *x, const tt_real *y,
                     int64_t n, int64_t c, const tt_real *gate,
                     int64_t stride, int64_t rows)
{
    (void)ctx;
    for (int64_t i = 0; i < n * c; i++)
        x[i] = put(a, (float)x[i] + (float)y[i]
                          * (float)gate[i / c / rows * stride + i % c]);
}

static void add(arith a, tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) x[i] = put(a, (float)x[i] + (float)y[i]);
}

static void mul(arith a, tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) x[i] = put(a, (float)x[i] * (float)y[i]);
}

/* The textbook form, with its cancellation for negative x. */
static void gelu_tanh(arith a, tt_ctx *ctx, tt_real *x, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        const float v = (float)x[i];
        const float u = 0.79788456f * (v + 0.044715f * (v * v * v));
        x[i] = put(a, 0.5f * v * (1 + (float)tt_tanh((double)u)));
    }
}

static void silu(arith a, tt_ctx *ctx, tt_real *x, int64_t n)
{
    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        x[i] = put(a, (float)x[i] / (1 + tt_expf(-(float)x[i])));
}

static void rope(arith a, tt_ctx *ctx, tt_real *y, const tt_real *x,
                 int64_t T, int64_t H, int64_t D, const tt_rope_table *table,
                 const int32_t *pos)
{
    const int64_t pairs = D / 2, row0 = table->pairs[0];
    const int64_t col0 = row0 + table->pairs[1];
    (void)ctx;
    for (int64_t u = 0; u < T * H; u++, x += D, y += D)
        for (int64_t j = 0; j < pairs; j++) {
            const int64_t at = pos[u / H * 3 + (j >= row0) + (j >= col0)]
                               * pairs + j;
            const float c = (float)table->cos[at], s = (float)table->sin[at];
            const float re = (float)x[2 * j], im = (float)x[2 * j + 1];
            y[2 * j] = put(a, re * c - im * s);
            y[2 * j + 1] = put(a, re * s + im * c);
        }
}

/* TAME and GRAB are float32 in the official code whatever the model is. */
static void col_mean(arith a, tt_ctx *ctx, double *mean, const tt_real *x,
                     int64_t n, int64_t c)
{
    (void)a;
    (void)ctx;
    for (int64_t i = 0; i < c; i++) {
        float s = 0;
        for (int64_t r = 0; r < n; r++) s += (float)x[r * c + i];
        mean[i] = (double)(s / (float)n);
    }
}

static void col_moment(arith a, tt_ctx *ctx, double *m2, const tt_real *x,
                       const double *mean, int64_t n, int64_t c)
{
    (void)a;
    (void)ctx;
    for (int64_t i = 0; i < c; i++) {
        float s = 0;
        for (int64_t r = 0; r < n; r++) {
            const float d = (float)x[r * c + i] - (float)mean[i];
            s += d * d;
        }
        m2[i] = (double)s;
    }
}

static void col_blend(arith a, tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                      const double *mean, const double *gain,
                      const double *target, double tau)
{
    (void)ctx;
    for (int64_t i = 0; i < n * c; i++) {
        const float v = (float)x[i], t = (float)tau;
        const float y = ((float)v - (float)mean[i % c]) * (float)gain[i % c]
                        + (float)target[i % c];
        x[i] = put(a, (1 - t) * v + t * y);
    }
}

/* ---- one table per arithmetic -------------------------------------------- */

#define PARAMS(...) (tt_ctx *ctx, __VA_ARGS__)
#define OP(I, name, params, ...)                                               \
    static void name##_##I params                                              \
    {                                                                          \
        name(&arith_list[I], ctx, __VA_ARGS__);                                \
    }
#define OPERATORS(I)                                                           \
    OP(I, linear, PARAMS(tt_real *y, const tt_real *x, int64_t n,              \
                         const tt_tensor *w, const tt_real *b), y, x, n, w, b) \
    OP(I, attention, PARAMS(const tt_attention_args *p), p)                    \
    OP(I, conv, PARAMS(const tt_conv_args *p), p)                              \
    OP(I, layer_norm, PARAMS(tt_real *y, const tt_real *x, int64_t n,          \
       int64_t c, const tt_real *w, const tt_real *b, double eps),             \
       y, x, n, c, w, b, eps)                                                  \
    OP(I, rms_norm, PARAMS(tt_real *y, const tt_real *x, int64_t n,            \
       int64_t c, const tt_real *w, double eps), y, x, n, c, w, eps)           \
    OP(I, channel_norm, PARAMS(tt_real *y, const tt_real *x, int64_t n,        \
       int64_t c, const tt_real *g), y, x, n, c, g)                            \
    OP(I, modulate, PARAMS(tt_real *x, int64_t n, int64_t c, const tt_real *s, \
       const tt_real *t, int64_t stride, int64_t rows),                        \
       x, n, c, s, t, stride, rows)                                            \
    OP(I, gate_add, PARAMS(tt_real *x, const tt_real *y, int64_t n, int64_t c, \
       const tt_real *g, int64_t stride, int64_t rows),                        \
       x, y, n, c, g, stride, rows)                                            \
    OP(I, add, PARAMS(tt_real *x, const tt_real *y, int64_t n), x, y, n)       \
    OP(I, mul, PARAMS(tt_real *x, const tt_real *y, int64_t n), x, y, n)       \
    OP(I, gelu_tanh, PARAMS(tt_real *x, int64_t n), x, n)                      \
    OP(I, silu, PARAMS(tt_real *x, int64_t n), x, n)                           \
    OP(I, rope, PARAMS(tt_real *y, const tt_real *x, int64_t T, int64_t H,     \
       int64_t D, const tt_rope_table *t, const int32_t *pos),                 \
       y, x, T, H, D, t, pos)                                                  \
    OP(I, col_mean, PARAMS(double *m, const tt_real *x, int64_t n, int64_t c), \
       m, x, n, c)                                                             \
    OP(I, col_moment, PARAMS(double *m2, const tt_real *x, const double *m,    \
       int64_t n, int64_t c), m2, x, m, n, c)                                  \
    OP(I, col_blend, PARAMS(tt_real *x, int64_t n, int64_t c, const double *m, \
       const double *g, const double *t, double tau), x, n, c, m, g, t, tau)
OPERATORS(0) OPERATORS(1) OPERATORS(2) OPERATORS(3) OPERATORS(4) OPERATORS(5)
OPERATORS(6)

#define TABLE(I)                                                               \
    {.name = "arith", .summary = "a plain program in a declared arithmetic",   \
     .linear = linear_##I, .attention = attention_##I, .conv = conv_##I,       \
     .layer_norm = layer_norm_##I, .rms_norm = rms_norm_##I,                   \
     .channel_norm = channel_norm_##I, .modulate = modulate_##I,               \
     .gate_add = gate_add_##I, .add = add_##I, .mul = mul_##I,                 \
     .gelu_tanh = gelu_tanh_##I, .silu = silu_##I, .rope = rope_##I,           \
     .col_mean = col_mean_##I, .col_moment = col_moment_##I,                   \
     .col_blend = col_blend_##I}

const tt_ops *tt_arith_ops(const tt_arith *a)
{
    static const tt_ops table[ARITH_COUNT + 1] = {
        TABLE(0), TABLE(1), TABLE(2), TABLE(3), TABLE(4), TABLE(5), TABLE(6)};
    return &table[a - arith_list];
}
