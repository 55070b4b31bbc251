/* oracle.c: the formulas of ops.h in float64, from the same inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No order is promised here: whatever the order, the error is some 1e-16 of
 * the terms and invisible beside float32. Infinities and NaN go through as
 * they would in any arithmetic of wider range. */
#include <float.h>
#include <math.h>

#include "ops/gather.h"
#include "tether/mathfn.h"
#include "validate/operators/call.h"

static double dot(const tt_real *a, const tt_real *b, int64_t n)
{
    double s = 0;
    for (int64_t k = 0; k < n; k++) s += (double)a[k] * (double)b[k];
    return s;
}

static const tt_real *widened(tt_ctx *ctx, const tt_tensor *w)
{
    tt_real *wide = tt_scratch(ctx, tt_tensor_count(w));
    if (wide) tt_widen_at(wide, w, 0, tt_tensor_count(w));
    return wide;
}

static void linear(tt_ctx *ctx, const op_call *q, double *out)
{
    const int64_t o = q->w->dim[0], i = q->w->dim[1];
    const tt_real *w = widened(ctx, q->w);
    for (int64_t r = 0; w && r < q->n; r++)
        for (int64_t c = 0; c < o; c++)
            out[r * o + c] = dot(q->x + r * i, w + c * i, i)
                             + (q->b ? (double)q->b[c] : 0);
}

static void attention(tt_ctx *ctx, const tt_attention_args *a, double *out)
{
    double *p = tt_alloc(ctx, &ctx->scratch, a->N, sizeof *p, "oracle logits");
    for (int64_t u = 0; p && u < a->T * a->H; u++) {
        const int64_t i = u / a->H, h = u % a->H;
        const tt_real *q = a->q + i * a->q_stride + h * a->D;
        double top = -INFINITY, sum = 0, *o = out + u * a->D;
        for (int64_t j = 0; j < a->N; j++) {
            p[j] = dot(q, a->k + j * a->kv_stride + h * a->D, a->D)
                   * (double)a->scale;
            if (a->key_mask && !a->key_mask[j]) p[j] = -FLT_MAX;
            else if (a->rel_bias)
                p[j] += (double)a->rel_bias[h * (2 * a->N - 1) + j - i
                                            + a->N - 1];
            if (p[j] > top || isnan(p[j])) top = p[j];
        }
        for (int64_t j = 0; j < a->N; j++)
            sum += p[j] = tt_exp(p[j] - top);
        for (int64_t d = 0; d < a->D; d++) o[d] = 0;
        for (int64_t j = 0; j < a->N; j++)
            for (int64_t d = 0; d < a->D; d++)
                o[d] += p[j] / sum
                        * (double)a->v[j * a->kv_stride + h * a->D + d];
    }
}

static void conv(tt_ctx *ctx, const tt_conv_args *p, double *out)
{
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_real *w = widened(ctx, p->w);
    tt_real *x = tt_scratch(ctx, k);
    for (int64_t i = 0; x && i < p->Ho * p->Wo; i++) {
        conv_gather(x, p, i / p->Wo, i % p->Wo);
        for (int64_t o = 0; o < p->Cout; o++)
            out[i * p->Cout + o] = dot(x, w + o * k, k)
                                   + (p->b ? (double)p->b[o] : 0);
    }
}

/* mean of x, and sum of (x - mean)^2 */
static double row_mean(const tt_real *x, int64_t c)
{
    double s = 0;
    for (int64_t i = 0; i < c; i++) s += (double)x[i];
    return s / (double)c;
}

static double row_moment(const tt_real *x, int64_t c, double mean)
{
    double s = 0;
    for (int64_t i = 0; i < c; i++)
        s += ((double)x[i] - mean) * ((double)x[i] - mean);
    return s;
}

static void norm(const op_call *q, double *out)
{
    const int64_t c = q->c;
    for (int64_t r = 0; r < q->n; r++) {
        const tt_real *x = q->x + r * c;
        const bool layer = q->kind == OP_LAYER_NORM;
        const double mean = layer ? row_mean(x, c) : 0;
        const double m2 = row_moment(x, c, mean);
        double scale = 1 / sqrt(m2 / (double)c + q->eps);
        if (q->kind == OP_CHANNEL_NORM) {
            const double len = sqrt(m2);
            scale = sqrt((double)c) / (len < 1e-12 ? 1e-12 : len);
        }
        for (int64_t i = 0; i < c; i++) {
            double v = ((double)x[i] - mean) * scale;
            if (q->a) v *= (double)q->a[i];
            if (layer && q->b) v += (double)q->b[i];
            out[r * c + i] = v;
        }
    }
}

static void affine(const op_call *q, double *out)
{
    for (int64_t r = 0; r < q->n; r++)
        for (int64_t i = 0; i < q->c; i++) {
            const int64_t at = r * q->c + i, g = r / q->rows * q->stride + i;
            const double x = (double)q->x[at];
            out[at] = q->kind == OP_MODULATE
                          ? x * (1 + (double)q->a[g]) + (double)q->b[g]
                          : x + (double)q->y[at] * (double)q->a[g];
        }
}

static void elements(const op_call *q, double *out)
{
    for (int64_t i = 0; i < q->c; i++) {
        const double x = (double)q->x[i];
        const double y = q->y ? (double)q->y[i] : 0;
        switch (q->kind) {
        case OP_ADD: out[i] = x + y; break;
        case OP_MUL: out[i] = x * y; break;
        case OP_SILU: out[i] = x / (1 + tt_exp(-x)); break;
        default:                                           /* GELU, tanh form */
            out[i] = x / (1 + tt_exp(-1.5957691216057308
                                     * (x + 0.044715 * x * x * x)));
        }
    }
}

static void rope(const op_call *q, double *out)
{
    const int64_t pairs = q->D / 2, row0 = q->table->pairs[0];
    const int64_t col0 = row0 + q->table->pairs[1];
    for (int64_t u = 0; u < q->n * q->H; u++)
        for (int64_t j = 0; j < pairs; j++) {
            const int32_t *pos = q->pos + u / q->H * 3;
            const int64_t at = u * q->D + 2 * j;
            const int64_t t = pos[(j >= row0) + (j >= col0)] * pairs + j;
            const double c = q->table->cos[t], s = q->table->sin[t];
            const double a = (double)q->x[at], b = (double)q->x[at + 1];
            out[at] = a * c - b * s;
            out[at + 1] = a * s + b * c;
        }
}

static void columns(const op_call *q, double *out)
{
    const int64_t n = q->n, c = q->c;
    if (q->kind != OP_COL_BLEND)
        for (int64_t i = 0; i < c; i++) out[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < c; i++) {
            const double x = (double)q->x[r * c + i];
            const double d = q->mean ? x - q->mean[i] : x;
            if (q->kind == OP_COL_MEAN) out[i] += x / (double)n;
            else if (q->kind == OP_COL_MOMENT) out[i] += d * d;
            else
                out[r * c + i] = (1 - q->tau) * x
                                 + q->tau * (q->gain[i] * d + q->target[i]);
        }
}

void call_oracle(tt_ctx *ctx, const op_call *q, double *out)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (ctx->status || !out) return;
    switch (q->kind) {
    case OP_LINEAR: linear(ctx, q, out); break;
    case OP_ATTENTION: attention(ctx, &q->attn, out); break;
    case OP_CONV: conv(ctx, &q->conv, out); break;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM:
        norm(q, out);
        break;
    case OP_MODULATE: case OP_GATE_ADD: affine(q, out); break;
    case OP_ADD: case OP_MUL: case OP_GELU_TANH: case OP_SILU:
        elements(q, out);
        break;
    case OP_ROPE: rope(q, out); break;
    case OP_COL_MEAN: case OP_COL_MOMENT: case OP_COL_BLEND:
        columns(q, out);
        break;
    case OP_KINDS: break;
    }
    tt_arena_reset(&ctx->scratch, mark);
}
