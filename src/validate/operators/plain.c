/* plain.c: the formulas of ops.h in float64, from the same inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No order is promised here: whatever the order, the error is some 1e-16 of
 * the terms and invisible next to float32. Infinities and NaN go through as
 * they would in any arithmetic of wider range. */
#include "validate/operators/plain.h"

#include <math.h>

#include "ops/gather.h"

static double plain_dot(const tt_real *a, const tt_real *b, int64_t n)
{
    double s = 0;
    for (int64_t k = 0; k < n; k++) s += (double)a[k] * (double)b[k];
    return s;
}

const tt_real *plain_weight(tt_ctx *ctx, const tt_tensor *w)
{
    tt_real *wide = tt_scratch(ctx, tt_tensor_count(w));
    if (wide) tt_widen_at(wide, w, 0, tt_tensor_count(w));
    return wide;
}

/* The index of the weight that stands at [c, k] of [o, i]. */
static int64_t plain_weight_at(const linear_fault *f, int64_t c, int64_t k,
                               int64_t o, int64_t i)
{
    switch (f->weight) {
    case WEIGHT_TRANSPOSED: return k * o + c;
    case WEIGHT_HALVES: return c * i + (k + i / 2) % i;
    case WEIGHT_SPLIT: return c * i + k % f->split * (i / f->split)
                              + k / f->split;
    default: return c * i + k;
    }
}

static const tt_real *weights_of(tt_ctx *ctx, const tt_tensor *t,
                                 const linear_fault *f)
{
    const int64_t o = t->dim[0], i = t->dim[1];
    const tt_real *w = plain_weight(ctx, t);
    if (!f->weight) return w;
    tt_real *y = tt_scratch(ctx, o * i);
    for (int64_t k = 0; w && y && k < o * i; k++)
        y[k] = w[plain_weight_at(f, k / i, k % i, o, i)];
    return y;
}

static double plain_product(const linear_fault *f, const tt_real *x,
                            const tt_real *w, int64_t n)
{
    double s = 0;
    if (!f->narrow)
        return plain_dot(x + f->head, w + f->head, n - f->head - f->tail);
    for (int64_t k = 0; k < n; k++)
        s = (double)tt_format_round(f->sums, (float)(
            s + (double)x[k] * (double)w[k]));
    return s;
}

static double bias_of(const op_call *q, const linear_fault *f, int64_t r,
                      int64_t c)
{
    const int64_t o = q->w->dim[0];
    const int64_t at = f->row_bias ? r % o : (c + o + f->shift) % o;
    return q->b ? (1 + f->bias) * (double)q->b[at] : 0;
}

static void plain_linear(tt_ctx *ctx, const op_call *q, const linear_fault *f,
                         double *out)
{
    const int64_t o = q->w->dim[0], i = q->w->dim[1];
    const tt_real *w = weights_of(ctx, q->w, f);
    for (int64_t r = 0; w && r < q->n; r++)
        for (int64_t c = 0; c < o; c++)
            out[r * o + c] = plain_product(f, q->x + r * i, w + c * i, i)
                             + bias_of(q, f, r, c);
}

/* The index of the weight that stands at index n. */
static int64_t tap_at(const tt_conv_args *p, tap_order order, int64_t n)
{
    const int64_t A = p->kt, U = p->kh, V = p->kw, C = p->Cin, O = p->Cout;
    const int64_t c = n % C, v = n / C % V, u = n / (C * V) % U;
    const int64_t a = n / (C * V * U) % A, o = n / (C * V * U * A);
    const int64_t fa = A - 1 - a, fu = U - 1 - u, fv = V - 1 - v;
#define AT(a_, u_, v_) ((((o * A + (a_)) * U + (u_)) * V + (v_)) * C + c)
    switch (order) {
    case TAPS_FLIPPED: return AT(a, fu, fv);
    case TAPS_TIME_BACK: return AT(fa, u, v);
    case TAPS_TRANSPOSED: return U == V ? AT(a, v, u) : n;
    case TAPS_CHANNELS_FIRST: return (((o * C + c) * A + a) * U + u) * V + v;
    case TAPS_TIME_LAST: return (((o * U + u) * V + v) * A + a) * C + c;
    case TAPS_OUT_LAST: return (((c * A + a) * U + u) * V + v) * O + o;
    case TAPS_ALL_BACK: return AT(fa, fu, fv);
    default: return n;
    }
#undef AT
}

static const tt_real *taps_of(tt_ctx *ctx, const tt_conv_args *p,
                              const conv_fault *f)
{
    const int64_t n = tt_tensor_count(p->w), C = p->Cin;
    const int64_t taps = (int64_t)p->kt * p->kh * p->kw;
    const tt_real *w = plain_weight(ctx, p->w);
    if (!f->taps && !f->drop && !f->without) return w;
    tt_real *y = tt_scratch(ctx, n);
    for (int64_t k = 0; w && y && k < n; k++)
        y[k] = k % C >= C - f->drop || k / C % taps + 1 == f->without
                   ? 0 : w[tap_at(p, f->taps, k)];
    return y;
}

enum { MARGIN = 2 };

/* The index of [0, n) that stands at i, which may lie beyond its ends. */
static int64_t plain_within(picture_fault f, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) return i;
    if (f == EDGE_REFLECTED && n > MARGIN)
        return i < 0 ? -i : 2 * (n - 1) - i;
    return i < 0 ? 0 : n - 1;
}

/* Value c of a picture [H, W, C] between pixels. */
static double plain_between(const tt_real *x, const tt_conv_args *p, double r,
                      double s, int64_t c)
{
    const double r0 = floor(r), s0 = floor(s);
    double v = 0;
    for (int k = 0; k < 4; k++) {
        const int64_t i = plain_within(EDGE_REPEATED, (int64_t)r0 + k / 2,
                                       p->Hi);
        const int64_t j = plain_within(EDGE_REPEATED, (int64_t)s0 + k % 2,
                                       p->Wi);
        v += (k / 2 ? r - r0 : 1 - r + r0) * (k % 2 ? s - s0 : 1 - s + s0)
             * (double)x[(i * p->Wi + j) * p->Cin + c];
    }
    return v;
}

/* A picture with margins, or doubled, which `own` then reads. */
static const tt_real *plain_picture(tt_ctx *ctx, const tt_conv_args *p,
                                    const conv_fault *f, tt_conv_args *own,
                                    const tt_real *x)
{
    const bool twice = f->picture == BILINEAR
                       || f->picture == BILINEAR_CORNERS;
    const int64_t H = twice ? 2 * p->Hi : p->Hi + 2 * MARGIN;
    const int64_t W = twice ? 2 * p->Wi : p->Wi + 2 * MARGIN;
    tt_real *y = x ? tt_scratch(ctx, H * W * p->Cin) : NULL;
    for (int64_t k = 0; y && k < H * W * p->Cin; k++) {
        const int64_t i = k / p->Cin / W, j = k / p->Cin % W, c = k % p->Cin;
        if (f->picture == BILINEAR)
            y[k] = (tt_real)plain_between(x, p, (double)i / 2 - 0.25,
                                    (double)j / 2 - 0.25, c);
        else if (twice)
            y[k] = (tt_real)plain_between(
                x, p, (double)(i * (p->Hi - 1)) / (double)(H - 1),
                (double)(j * (p->Wi - 1)) / (double)(W - 1), c);
        else
            y[k] = x[(plain_within(f->picture, i - MARGIN, p->Hi) * p->Wi
                      + plain_within(f->picture, j - MARGIN, p->Wi)) * p->Cin
                     + c];
    }
    own->Hi = H;
    own->Wi = W;
    own->up = twice ? 1 : p->up;
    own->pad_top = p->pad_top - (twice ? 0 : MARGIN * p->up);
    own->pad_left = p->pad_left - (twice ? 0 : MARGIN * p->up);
    return y;
}

/* What a convolution with this mistake reads. */
static tt_conv_args plain_conv_args(tt_ctx *ctx, const tt_conv_args *p,
                                    const conv_fault *f)
{
    tt_conv_args own = *p;
    const tt_real **frame = tt_alloc(ctx, &ctx->scratch, p->kt, sizeof *frame,
                                     "frames"), *old = NULL;
    for (int i = p->kt - 1; frame && i >= 0; i--) {
        const int map = f->frame && p->kt > 1 ? f->frame[i] : i;
        const int from = map < p->kt ? map : i;    /* of another window */
        frame[i] = from < 0 ? NULL : p->frame[from];
        if (f->first && !frame[i]) frame[i] = old;
        old = frame[i];
    }
    if (f->picture)
        for (int i = 0; frame && i < p->kt; i++)
            frame[i] = plain_picture(ctx, p, f, &own, frame[i]);
    own.frame = frame;
    own.pad_top += f->top;
    own.pad_left += f->left;
    if (f->up) own.up = f->up;
    if (f->stride) own.stride = f->stride;
    if (f->sides) own.Hi = p->Wi, own.Wi = p->Hi;
    return own;
}

static void conv(tt_ctx *ctx, const tt_conv_args *given, const conv_fault *f,
                 double *out)
{
    const tt_conv_args own = plain_conv_args(ctx, given, f), *p = &own;
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_real *w = taps_of(ctx, p, f);
    tt_real *x = tt_scratch(ctx, k);
    for (int64_t i = 0; w && x && own.frame && i < p->Ho * p->Wo; i++) {
        conv_gather(x, p, i / p->Wo, i % p->Wo);
        for (int64_t o = 0; o < p->Cout; o++)
            out[i * p->Cout + o] = plain_dot(x, w + o * k, k)
                                   + (p->b ? (1 + f->bias) * (double)p->b[o]
                                           : 0);
    }
}

void plain_call(tt_ctx *ctx, const op_call *q, const void *fault, double *out)
{
    static const union none {
        linear_fault linear;
        conv_fault conv;
        attention_fault attention;
        norm_fault norm;
        element_fault element;
        column_fault column;
    } none;
    const void *f = fault ? fault : &none;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (ctx->status || !out) return;
    switch (q->kind) {
    case OP_LINEAR: plain_linear(ctx, q, f, out); break;
    case OP_ATTENTION: plain_attention(ctx, &q->attn, f, out); break;
    case OP_CONV: conv(ctx, &q->conv, f, out); break;
    case OP_ROPE: plain_rope(q, fault, out); break;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM:
        plain_norm(q, f, out);
        break;
    case OP_COL_MEAN: case OP_COL_MOMENT: plain_columns(q, f, out); break;
    default: plain_elements(q, f, out);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

void call_oracle(tt_ctx *ctx, const op_call *q, double *out)
{
    plain_call(ctx, q, NULL, out);
}
