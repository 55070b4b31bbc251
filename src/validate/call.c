/* call.c: see call.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/arith.h"
#include "validate/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *op_name(op_kind k)
{
    static const char *const name[OP_KINDS] = {
        "linear", "attention", "conv", "layer_norm", "rms_norm",
        "channel_norm", "modulate", "gate_add", "add", "mul", "gelu_tanh",
        "silu", "rope", "col_mean", "col_moment", "col_blend"};
    return name[k];
}

bool call_out_is_double(const op_call *q)
{
    return q->kind == OP_COL_MEAN || q->kind == OP_COL_MOMENT;
}

int call_shape(const op_call *q, int64_t *dim)
{
    switch (q->kind) {
    case OP_LINEAR:
        dim[0] = q->n, dim[1] = q->w->dim[0];
        return 2;
    case OP_ATTENTION:
        dim[0] = q->attn.T, dim[1] = q->attn.H, dim[2] = q->attn.D;
        return 3;
    case OP_CONV:
        dim[0] = q->conv.Ho, dim[1] = q->conv.Wo, dim[2] = q->conv.Cout;
        return 3;
    case OP_ROPE:
        dim[0] = q->n, dim[1] = q->H, dim[2] = q->D;
        return 3;
    case OP_COL_MEAN: case OP_COL_MOMENT: case OP_ADD: case OP_MUL:
    case OP_GELU_TANH: case OP_SILU:
        dim[0] = q->c;
        return 1;
    default:
        dim[0] = q->n, dim[1] = q->c;
        return 2;
    }
}

int64_t call_count(const op_call *q)
{
    int64_t dim[TT_MAX_RANK], n = 1;
    for (int i = call_shape(q, dim); i > 0; i--) n *= dim[i - 1];
    return n;
}

void call_run(tt_ctx *ctx, const tt_ops *t, const op_call *q, void *out)
{
    tt_real *o = out;
    const tt_real *x = q->x;
    tt_attention_args attn = q->attn;
    tt_conv_args conv = q->conv;
    if (ctx->status || !out) return;
    attn.o = conv.y = o;
    switch (q->kind) {               /* in-place operators work on a copy */
    case OP_MODULATE: case OP_GATE_ADD: case OP_ADD: case OP_MUL:
    case OP_GELU_TANH: case OP_SILU: case OP_COL_BLEND:
        memcpy(o, q->x, (size_t)(q->n * q->c) * sizeof *o);
        break;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM: case OP_ROPE:
        if (!q->in_place) break;
        memcpy(o, q->x, (size_t)(q->n * q->c) * sizeof *o);
        x = o;
        break;
    default: break;
    }
    switch (q->kind) {
    case OP_LINEAR: t->linear(ctx, o, q->x, q->n, q->w, q->b); break;
    case OP_ATTENTION: t->attention(ctx, &attn); break;
    case OP_CONV: t->conv(ctx, &conv); break;
    case OP_LAYER_NORM:
        t->layer_norm(ctx, o, x, q->n, q->c, q->a, q->b, q->eps);
        break;
    case OP_RMS_NORM:
        t->rms_norm(ctx, o, x, q->n, q->c, q->a, q->eps);
        break;
    case OP_CHANNEL_NORM:
        t->channel_norm(ctx, o, x, q->n, q->c, q->a);
        break;
    case OP_MODULATE:
        t->modulate(ctx, o, q->n, q->c, q->a, q->b, q->stride, q->rows);
        break;
    case OP_GATE_ADD:
        t->gate_add(ctx, o, q->y, q->n, q->c, q->a, q->stride, q->rows);
        break;
    case OP_ADD: t->add(ctx, o, q->y, q->c); break;
    case OP_MUL: t->mul(ctx, o, q->y, q->c); break;
    case OP_GELU_TANH: t->gelu_tanh(ctx, o, q->c); break;
    case OP_SILU: t->silu(ctx, o, q->c); break;
    case OP_ROPE:
        t->rope(ctx, o, x, q->n, q->H, q->D, q->table, q->pos);
        break;
    case OP_COL_MEAN: t->col_mean(ctx, out, q->x, q->n, q->c); break;
    case OP_COL_MOMENT:
        t->col_moment(ctx, out, q->x, q->mean, q->n, q->c);
        break;
    case OP_COL_BLEND:
        t->col_blend(ctx, o, q->n, q->c, q->mean, q->gain, q->target, q->tau);
        break;
    case OP_KINDS: break;
    }
}

int64_t call_cost(const op_call *q)
{
    const tt_attention_args *a = &q->attn;
    switch (q->kind) {
    case OP_LINEAR: return q->n * q->w->dim[0] * q->w->dim[1];
    case OP_ATTENTION: return 2 * a->T * a->N * a->H * a->D;
    case OP_CONV: return q->conv.Ho * q->conv.Wo * tt_tensor_count(q->conv.w);
    default: return q->n * q->c;
    }
}

/* ---- inputs -------------------------------------------------------------- */

static void span(op_spans *s, const void *at, int64_t n, size_t size)
{
    if (!at || n <= 0 || s->n == SPANS_MAX) return;
    s->at[s->n] = at;
    s->size[s->n++] = (size_t)n * size;
}

static void reals(op_spans *s, const tt_real *at, int64_t n)
{
    span(s, at, n, sizeof *at);
}

static void weight(op_spans *s, const tt_tensor *w)
{
    if (w) span(s, w->data, tt_tensor_bytes(w), 1);
}

void call_inputs(const op_call *q, op_spans *s)
{
    const tt_attention_args *a = &q->attn;
    const tt_conv_args *p = &q->conv;
    const int64_t groups = q->rows ? (q->n + q->rows - 1) / q->rows : 0;
    const int64_t table = groups ? (groups - 1) * q->stride + q->c
                          : q->kind == OP_LINEAR ? q->w->dim[0] : q->c;
    s->n = 0;
    if (q->kind == OP_ATTENTION) {
        reals(s, a->q, (a->T - 1) * a->q_stride + a->H * a->D);
        reals(s, a->k, (a->N - 1) * a->kv_stride + a->H * a->D);
        reals(s, a->v, (a->N - 1) * a->kv_stride + a->H * a->D);
        reals(s, a->rel_bias, a->H * (2 * a->N - 1));
        span(s, a->key_mask, a->N, 1);
        return;
    }
    if (q->kind == OP_CONV) {
        for (int i = 0; i < p->kt; i++)
            reals(s, p->frame[i], p->Hi * p->Wi * p->Cin);
        weight(s, p->w);
        reals(s, p->b, p->Cout);
        return;
    }
    reals(s, q->x, q->n * q->c);
    reals(s, q->y, q->n * q->c);
    weight(s, q->w);
    reals(s, q->a, table);
    reals(s, q->b, table);
    span(s, q->pos, 3 * q->n, sizeof *q->pos);
    span(s, q->mean, q->c, sizeof *q->mean);
    span(s, q->gain, q->c, sizeof *q->gain);
    span(s, q->target, q->c, sizeof *q->target);
    if (!q->table) return;
    span(s, q->table->cos, q->table->npos * (q->D / 2), sizeof(double));
    span(s, q->table->sin, q->table->npos * (q->D / 2), sizeof(double));
}

/* FNV-1a over words of eight bytes: not a byte of a large weight can change
 * unseen, at memory speed. */
uint64_t spans_digest(const op_spans *s)
{
    const uint64_t prime = 1099511628211u;
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < s->n; i++) {
        const uint8_t *p = s->at[i];
        size_t left = s->size[i];
        for (; left >= 8; p += 8, left -= 8) {
            uint64_t word;
            memcpy(&word, p, 8);
            h = (h ^ word) * prime;
            h ^= h >> 32;
        }
        while (left-- > 0) h = (h ^ *p++) * prime;
    }
    return h;
}

/* ---- other arithmetics --------------------------------------------------- */

void call_double(tt_ctx *ctx, const tt_ops *ops, const op_call *q, double *out)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *x = tt_scratch(ctx, n);
    if (call_out_is_double(q)) call_run(ctx, ops, q, out);
    else call_run(ctx, ops, q, x);
    for (int64_t i = 0; !ctx->status && !call_out_is_double(q) && i < n; i++)
        out[i] = (double)x[i];
    tt_arena_reset(&ctx->scratch, mark);
}

/* out where it is farther from `want` than other. */
static void farther(double *out, const double *other, const double *want,
                    int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs(other[i] - want[i]) > fabs(out[i] - want[i]))
            out[i] = other[i];
}

void call_emulate(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *want, const double *ours, double *out)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *other = tt_alloc(ctx, &ctx->scratch, n, sizeof *other, "golden");
    call_double(ctx, tt_arith_ops(arith), q, out);
    if (!ours && other) call_double(ctx, tt_ops_default(), q, other);
    if (!ctx->status) farther(out, ours ? ours : other, want, n);
    if (arith->product == TT_FMT_TF32 && !ctx->status) {
        call_double(ctx, tt_arith_ops(&arith_list[ARITH_TF32_ROUNDED]), q,
                    other);
        if (!ctx->status) farther(out, other, want, n);
    }
    tt_arena_reset(&ctx->scratch, mark);
}
