/* table.c: every operator as a plain program in a declared arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * This is the yardstick, not the golden definition: one float chain per sum,
 * products rounded before they are added, statistics in float. The error it
 * makes against float64 is what an honest backend of that arithmetic may make
 * too, whatever its order. In a REAL=double build values still pass through
 * float. */
#include "ops/arith/arith.h"

#include <float.h>
#include <math.h>

#include "ops/gather.h"
#include "tether/mathfn.h"

typedef const tt_arith *arith;

/* What the table that is running declares. */
static arith declared(const tt_ctx *ctx)
{
    return ctx->ops->self;
}

/* x as an input of a product. Matrix units take float32 for tf32 and leave the
 * last 13 bits out; a program that rounds first errs less. */
static float table_narrow(arith a, float x)
{
    return a->product == TT_FMT_TF32 && a != &arith_list[ARITH_TF32_ROUNDED]
               ? arith_cut_tf32(x) : tt_format_round(a->product, x);
}

static float in(arith a, tt_real x)
{
    return table_narrow(a, (float)x);
}

/* A stored result. */
static tt_real table_put(arith a, float x)
{
    return (tt_real)tt_format_round(a->stored, x);
}

/* What is stored on the way, by programs that are no single kernel. What f16
 * cannot hold stays. */
static float put_inside(arith a, float x)
{
    const float y = tt_format_round(a->stored, x);
    return a->allows & TT_ALLOW_FUSED || !isfinite(y) ? x : y;
}

/* n values rounded as inputs of products. */
static float *inputs(tt_ctx *ctx, arith a, const tt_real *x, int64_t n)
{
    float *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "rounded inputs");
    for (int64_t i = 0; y && i < n; i++) y[i] = in(a, x[i]);
    return y;
}

static float *table_weights(tt_ctx *ctx, arith a, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    float *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "rounded weights");
    if (y) tt_widen_at_f32(y, w, 0, n);
    for (int64_t i = 0; y && i < n; i++)
        y[i] = table_narrow(a, y[i]);
    return y;
}

static float table_dot(const float *a, const float *b, int64_t n)
{
    float s = 0;
    for (int64_t k = 0; k < n; k++) s += a[k] * b[k];
    return s;
}

static void arith_linear(tt_ctx *ctx, const tt_linear_args *p)
{
    const arith a = declared(ctx);
    const int64_t o = p->w->dim[0], i = p->w->dim[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const float *wr = table_weights(ctx, a, p->w);
    const float *xr = inputs(ctx, a, p->x, p->n * i);
    for (int64_t r = 0; xr && r < p->n; r++)
        for (int64_t c = 0; c < o; c++)
            p->y[r * o + c] = table_put(a, table_dot(xr + r * i, wr + c * i, i)
                                        + (p->b ? (float)p->b[c] : 0.0f));
    tt_arena_reset(&ctx->scratch, mark);
}

/* Memory of one head: keys and values rounded, logits, a query, a result. */
typedef struct head {
    float *k, *v, *s, *q, *o;
    int64_t h;
} head;

/* The logits of query i, and the largest. */
static float table_logits(arith a, const tt_attention_args *p, const head *m,
                          int64_t i)
{
    float top = -INFINITY, *s = m->s;
    for (int64_t j = 0; j < p->N; j++) {
        s[j] = table_dot(m->q, m->k + j * p->D, p->D);
        s[j] = put_inside(a, put_inside(a, s[j]) * (float)p->scale);
        if (p->key_mask && !p->key_mask[j]) s[j] = -FLT_MAX;
        else if (p->rel_bias)
            s[j] = put_inside(a, s[j] + (float)p->rel_bias
                              [m->h * (2 * p->N - 1) + j - i + p->N - 1]);
        if (s[j] > top || isnan(s[j])) top = s[j];
    }
    return top;
}

/* The whole row of logits, one softmax: what a program without blocks does.
 * The probabilities are inputs of a product too. */
static void table_attend(arith a, const tt_attention_args *p, const head *m,
                         int64_t i)
{
    const int64_t D = p->D, at = m->h * D;
    float sum = 0, *s = m->s;
    for (int64_t d = 0; d < D; d++) {
        m->q[d] = in(a, p->q[i * p->q_stride + at + d]);
        m->o[d] = 0;
    }
    const float top = table_logits(a, p, m, i);
    for (int64_t j = 0; j < p->N; j++) sum += s[j] = tt_expf(s[j] - top);
    for (int64_t j = 0; j < p->N; j++)
        for (int64_t d = 0; d < D; d++)
            m->o[d] += table_narrow(a, s[j]) * m->v[j * D + d];
    for (int64_t d = 0; d < D; d++)
        p->o[i * p->H * D + at + d] = table_put(a, m->o[d] / sum);
}

static void arith_attention(tt_ctx *ctx, const tt_attention_args *p)
{
    const arith a = declared(ctx);
    const int64_t D = p->D, N = p->N;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *all = tt_alloc(ctx, &ctx->scratch, 2 * N * D + N + 2 * D,
                          sizeof *all, "a head");
    head m = {.k = all};
    if (!all) return;
    m.v = m.k + N * D, m.s = m.v + N * D, m.q = m.s + N, m.o = m.q + D;
    for (m.h = 0; m.h < p->H; m.h++) {
        for (int64_t j = 0; j < N; j++)
            for (int64_t d = 0; d < D; d++) {
                const int64_t at = j * p->kv_stride + m.h * D + d;
                m.k[j * D + d] = in(a, p->k[at]);
                m.v[j * D + d] = in(a, p->v[at]);
            }
        for (int64_t i = 0; i < p->T; i++) table_attend(a, p, &m, i);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static void arith_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    const arith a = declared(ctx);
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const float *w = table_weights(ctx, a, p->w);
    tt_real *x = tt_scratch(ctx, k);
    float *xr = tt_alloc(ctx, &ctx->scratch, k, sizeof *xr, "window");
    for (int64_t i = 0; xr && i < p->Ho * p->Wo; i++) {
        conv_gather(x, p, i / p->Wo, i % p->Wo);
        for (int64_t j = 0; j < k; j++) xr[j] = in(a, x[j]);
        for (int64_t o = 0; o < p->Cout; o++)
            p->y[i * p->Cout + o] = table_put(a, table_dot(xr, w + o * k, k)
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

static float table_row_moment(const tt_real *x, int64_t c, float mean)
{
    float s = 0;
    for (int64_t i = 0; i < c; i++)
        s += ((float)x[i] - mean) * ((float)x[i] - mean);
    return s;
}

static void arith_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *p)
{
    const arith a = declared(ctx);
    tt_real *y = p->y;
    const tt_real *x = p->x;
    for (int64_t r = 0; r < p->n; r++, x += p->c, y += p->c) {
        const float mean = row_sum(x, p->c) / (float)p->c;
        const float var = table_row_moment(x, p->c, mean) / (float)p->c;
        const float scale = 1 / sqrtf(var + (float)p->eps);
        for (int64_t i = 0; i < p->c; i++) {
            const float v = ((float)x[i] - mean) * scale;
            y[i] = table_put(a, p->w ? v * (float)p->w[i] + (float)p->b[i] : v);
        }
    }
}

static void arith_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *p)
{
    const arith a = declared(ctx);
    tt_real *y = p->y;
    const tt_real *x = p->x;
    for (int64_t r = 0; r < p->n; r++, x += p->c, y += p->c) {
        const float ms = table_row_moment(x, p->c, 0) / (float)p->c;
        const float scale = 1 / sqrtf(ms + (float)p->eps);
        for (int64_t i = 0; i < p->c; i++)
            y[i] = table_put(a, (float)x[i] * scale * (float)p->w[i]);
    }
}

static void arith_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *p)
{
    const arith a = declared(ctx);
    tt_real *y = p->y;
    const tt_real *x = p->x;
    for (int64_t r = 0; r < p->n; r++, x += p->c, y += p->c) {
        float len = sqrtf(table_row_moment(x, p->c, 0));
        if (len < 1e-12f) len = 1e-12f;
        for (int64_t i = 0; i < p->c; i++)
            y[i] = table_put(a, (float)x[i] / len * sqrtf((float)p->c)
                          * (float)p->gamma[i]);
    }
}

static void arith_modulate(tt_ctx *ctx, const tt_modulate_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t g = i / p->c / p->rows * p->stride + i % p->c;
        const float scale = put_inside(a, 1 + (float)p->scale[g]);
        p->x[i] = table_put(a, put_inside(a, (float)p->x[i] * scale)
                          + (float)p->shift[g]);
    }
}

static void arith_gate_add(tt_ctx *ctx, const tt_gate_add_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const float g = (float)p->gate[i / p->c / p->rows * p->stride
                                       + i % p->c];
        p->x[i] = table_put(a, (float)p->x[i]
                               + put_inside(a, (float)p->y[i] * g));
    }
}

static void arith_add(tt_ctx *ctx, const tt_add_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = table_put(a, (float)p->x[i] + (float)p->y[i]);
}

static void arith_mul(tt_ctx *ctx, const tt_mul_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = table_put(a, (float)p->x[i] * (float)p->y[i]);
}

/* The textbook form, with its cancellation for negative x. */
static void arith_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n; i++) {
        const float v = (float)p->x[i];
        const float u = 0.79788456f * (v + 0.044715f * (v * v * v));
        p->x[i] = table_put(a, 0.5f * v * (1 + (float)tt_tanh((double)u)));
    }
}

static void arith_silu(tt_ctx *ctx, const tt_silu_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = table_put(a, (float)p->x[i] / (1 + tt_expf(-(float)p->x[i])));
}

static void arith_rope(tt_ctx *ctx, const tt_rope_args *p)
{
    const arith a = declared(ctx);
    tt_real *y = p->y;
    const tt_real *x = p->x;
    const int64_t pairs = p->D / 2, row0 = p->table->pairs[0];
    const int64_t col0 = row0 + p->table->pairs[1];
    for (int64_t u = 0; u < p->T * p->H; u++, x += p->D, y += p->D)
        for (int64_t j = 0; j < pairs; j++) {
            const int64_t at = p->pos[u / p->H * 3 + (j >= row0) + (j >= col0)]
                               * pairs + j;
            const float c = (float)p->table->cos[at];
            const float s = (float)p->table->sin[at];
            const float re = (float)x[2 * j], im = (float)x[2 * j + 1];
            y[2 * j] = table_put(a, re * c - im * s);
            y[2 * j + 1] = table_put(a, re * s + im * c);
        }
}

/* TAME and GRAB are float32 in the official code whatever the model is. */
static void arith_col_mean(tt_ctx *ctx, const tt_col_mean_args *p)
{
    (void)ctx;
    for (int64_t i = 0; i < p->c; i++) {
        float s = 0;
        for (int64_t r = 0; r < p->n; r++) s += (float)p->x[r * p->c + i];
        p->mean[i] = (double)(s / (float)p->n);
    }
}

static void arith_col_moment(tt_ctx *ctx, const tt_col_moment_args *p)
{
    (void)ctx;
    for (int64_t i = 0; i < p->c; i++) {
        float s = 0;
        for (int64_t r = 0; r < p->n; r++) {
            const float d = (float)p->x[r * p->c + i] - (float)p->mean[i];
            s += d * d;
        }
        p->m2[i] = (double)s;
    }
}

static void arith_col_blend(tt_ctx *ctx, const tt_col_blend_args *p)
{
    const arith a = declared(ctx);
    for (int64_t i = 0; i < p->n * p->c; i++) {
        const int64_t c = i % p->c;
        const float v = (float)p->x[i], t = (float)p->tau;
        float y = (float)p->target[c];
        if (p->gain) y += (v - (float)p->mean[c]) * (float)p->gain[c];
        p->x[i] = table_put(a, (1 - t) * v + t * y);
    }
}

/* ---- one table per arithmetic -------------------------------------------- */

#define ENTRY(op, OP) .op = arith_##op,
#define TABLE(i, time32_)                                                      \
    {.abi = TT_ABI, .name = "arith",                                           \
     .summary = "a plain program in a declared arithmetic",                    \
     .time32 = time32_, .self = (void *)&arith_list[i], TT_OPS(ENTRY)}
#define TABLES(time32)                                                         \
    {TABLE(0, time32), TABLE(1, time32), TABLE(2, time32), TABLE(3, time32),   \
     TABLE(4, time32), TABLE(5, time32), TABLE(6, time32)}

const tt_ops *tt_arith_ops(const tt_arith *a)
{
    static const tt_ops table[2][ARITH_COUNT + 1] = {TABLES(false),
                                                     TABLES(true)};
    return &table[(a->allows & TT_ALLOW_TIME32) != 0][arith_plain(a)
                                                      - arith_list];
}
