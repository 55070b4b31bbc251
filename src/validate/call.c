/* call.c: see call.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
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
    tt_attention_args attn = q->attn;
    tt_conv_args conv = q->conv;
    if (ctx->status || !out) return;
    attn.o = conv.y = o;
    switch (q->kind) {               /* in-place operators work on a copy */
    case OP_MODULATE: case OP_GATE_ADD: case OP_ADD: case OP_MUL:
    case OP_GELU_TANH: case OP_SILU: case OP_COL_BLEND:
        memcpy(o, q->x, (size_t)(q->n * q->c) * sizeof *o);
        break;
    default: break;
    }
    switch (q->kind) {
    case OP_LINEAR: t->linear(ctx, o, q->x, q->n, q->w, q->b); break;
    case OP_ATTENTION: t->attention(ctx, &attn); break;
    case OP_CONV: t->conv(ctx, &conv); break;
    case OP_LAYER_NORM:
        t->layer_norm(ctx, o, q->x, q->n, q->c, q->a, q->b, q->eps);
        break;
    case OP_RMS_NORM:
        t->rms_norm(ctx, o, q->x, q->n, q->c, q->a, q->eps);
        break;
    case OP_CHANNEL_NORM:
        t->channel_norm(ctx, o, q->x, q->n, q->c, q->a);
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
        t->rope(ctx, o, q->x, q->n, q->H, q->D, q->table, q->pos);
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

bool call_candidate(tt_ctx *ctx, const tt_ops *ops, const op_call *q, void *out,
                    char *why, size_t size)
{
    why[0] = '\0';
    if (ctx->status) return false;
    call_run(ctx, ops, q, out);
    if (!ctx->status) return true;
    if (ctx->status == TT_EINTR || ctx->status == TT_ENOMEM) return false;
    snprintf(why, size, "gave up: %.170s", tt_message(ctx));
    tt_clear(ctx);
    return true;
}

/* A call's result on a table, as double. */
static void result(tt_ctx *ctx, const tt_ops *ops, const op_call *q,
                   double *out)
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

void call_emulate(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *want, double *out)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *ours = tt_alloc(ctx, &ctx->scratch, n, sizeof *ours, "emulation");
    result(ctx, tt_arith_ops(arith), q, out);
    result(ctx, tt_ops_default(), q, ours);
    for (int64_t i = 0; !ctx->status && i < n; i++)
        if (fabs(ours[i] - want[i]) > fabs(out[i] - want[i])) out[i] = ours[i];
    tt_arena_reset(&ctx->scratch, mark);
}
