/* call.c: see call.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/arith/arith.h"

const char *op_name(op_kind k)
{
#define NAME(op, OP) #op,
    static const char *const name[OP_KINDS] = {TT_OPS(NAME)};
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

size_t call_out_bytes(const op_call *q)
{
    return (size_t)call_count(q) * (call_out_is_double(q) ? sizeof(double)
                                                          : sizeof(tt_real));
}

/* ---- to and from the structs of ops.h ------------------------------------ */

/* Per operator: where the result goes, TO(member), or the operand that it
 * replaces, X(member); and what is read, IN(of the call, of the struct). */
#define CALL_linear(TO, X, IN) TO(y) IN(x, x) IN(n, n) IN(w, w) IN(b, b)
#define CALL_layer_norm(TO, X, IN)                                             \
    TO(y) IN(x, x) IN(n, n) IN(c, c) IN(a, w) IN(b, b) IN(eps, eps)
#define CALL_rms_norm(TO, X, IN)                                               \
    TO(y) IN(x, x) IN(n, n) IN(c, c) IN(a, w) IN(eps, eps)
#define CALL_channel_norm(TO, X, IN)                                           \
    TO(y) IN(x, x) IN(n, n) IN(c, c) IN(a, gamma)
#define CALL_modulate(TO, X, IN)                                               \
    X(x) IN(n, n) IN(c, c) IN(a, scale) IN(b, shift) IN(stride, stride)        \
    IN(rows, rows)
#define CALL_gate_add(TO, X, IN)                                               \
    X(x) IN(y, y) IN(n, n) IN(c, c) IN(a, gate) IN(stride, stride)             \
    IN(rows, rows)
#define CALL_add(TO, X, IN) X(x) IN(y, y) IN(c, n)
#define CALL_mul(TO, X, IN) X(x) IN(y, y) IN(c, n)
#define CALL_gelu_tanh(TO, X, IN) X(x) IN(c, n)
#define CALL_silu(TO, X, IN) X(x) IN(c, n)
#define CALL_rope(TO, X, IN)                                                   \
    TO(y) IN(x, x) IN(n, T) IN(H, H) IN(D, D) IN(table, table) IN(pos, pos)
#define CALL_col_mean(TO, X, IN) TO(mean) IN(x, x) IN(n, n) IN(c, c)
#define CALL_col_moment(TO, X, IN)                                             \
    TO(m2) IN(x, x) IN(mean, mean) IN(n, n) IN(c, c)
#define CALL_col_blend(TO, X, IN)                                              \
    X(x) IN(n, n) IN(c, c) IN(mean, mean) IN(gain, gain) IN(target, target)    \
    IN(tau, tau)

void *call_take(op_call *q, op_kind kind, const void *args)
{
    void *to = NULL;
    *q = (op_call){.kind = kind, .n = 1};
    switch (kind) {
#define TAKE_TO(of) to = p->of;
#define TAKE_X(of) q->x = to = p->of;
#define TAKE_IN(of_call, of) q->of_call = p->of;
#define TAKE(op, OP)                                                           \
    case OP_##OP: {                                                            \
        const tt_##op##_args *p = args;                                        \
        CALL_##op(TAKE_TO, TAKE_X, TAKE_IN)                                    \
        break;                                                                 \
    }
    TT_OPS_ROWS(TAKE) TAKE(linear, LINEAR)
    case OP_ATTENTION:
        q->attn = *(const tt_attention_args *)args;
        to = q->attn.o;
        break;
    case OP_CONV:
        q->conv = *(const tt_conv_args *)args;
        to = q->conv.y;
        break;
    case OP_KINDS: break;
    }
    if (kind == OP_LINEAR) q->c = q->w->dim[1];
    if (kind == OP_ROPE) q->c = q->H * q->D;
    q->in_place = to == q->x;
    return to;
}

/* Does the result replace x? */
static bool replaces(const op_call *q)
{
    switch (q->kind) {
    case OP_MODULATE: case OP_GATE_ADD: case OP_ADD: case OP_MUL:
    case OP_GELU_TANH: case OP_SILU: case OP_COL_BLEND: return true;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM: case OP_ROPE:
        return q->in_place;
    default: return false;
    }
}

static void operators_call_run(tt_ctx *ctx, const op_call *q, void *out)
{
    const tt_ops *t = ctx->ops;
    tt_attention_args attn = q->attn;
    tt_conv_args conv = q->conv;
    attn.o = conv.y = out;
    switch (q->kind) {
#define RUN_TO(of) .of = out,
#define RUN_IN(of_call, of) .of = q->of_call,
#define RUN(op, OP)                                                            \
    case OP_##OP: {                                                            \
        const tt_##op##_args p = {CALL_##op(RUN_TO, RUN_TO, RUN_IN)};          \
        t->op(ctx, &p);                                                        \
        break;                                                                 \
    }
    TT_OPS_ROWS(RUN) RUN(linear, LINEAR)
    case OP_ATTENTION: t->attention(ctx, &attn); break;
    case OP_CONV: t->conv(ctx, &conv); break;
    case OP_KINDS: break;
    }
}

void call_run(tt_ctx *ctx, const tt_ops *ops, const op_call *q, void *out)
{
    const tt_ops *before = ctx->ops;
    op_call own = *q;
    if (ctx->status || !out) return;
    if (replaces(q)) {               /* works on a copy */
        memcpy(out, q->x, (size_t)(q->n * q->c) * sizeof(tt_real));
        own.x = out;
    }
    ctx->ops = ops;
    operators_call_run(ctx, &own, out);
    ctx->ops = before;
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

static void call_weight(op_spans *s, const tt_tensor *w)
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
        call_weight(s, p->w);
        reals(s, p->b, p->Cout);
        return;
    }
    reals(s, q->x, q->n * q->c);
    reals(s, q->y, q->n * q->c);
    call_weight(s, q->w);
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

const tt_ops *arith_ours(const tt_arith *arith)
{
    const tt_ops *ops = tt_ops_class(tt_ops_default(), arith->cls);
    return ops ? ops : tt_ops_default();     /* a double build has f32 alone */
}

double *call_widen(tt_ctx *ctx, const op_call *q, const void *out)
{
    const int64_t n = call_count(q);
    double *d = tt_alloc(ctx, &ctx->scratch, n, sizeof *d, "a result");
    for (int64_t i = 0; d && i < n; i++)
        d[i] = call_out_is_double(q) ? ((const double *)out)[i]
                                     : (double)((const tt_real *)out)[i];
    return d;
}

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

/* out where it is nearer to `want` than any order of sums must be. */
static void allow_orders(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                         const double *want, double *out)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *bound = tt_alloc(ctx, &ctx->scratch, n, sizeof *bound, "bounds");
    tt_ops table = *arith_bounds(arith);
    if (arith->allows) table.self = (void *)(uintptr_t)arith;
    if (bound) call_double(ctx, &table, q, bound);
    for (int64_t i = 0; !ctx->status && i < n; i++) {
        const double e = out[i] - want[i];
        if (isfinite(e) && isfinite(bound[i]) && fabs(e) < bound[i])
            out[i] = want[i] + copysign(bound[i], e);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* What call_emulate says, of inputs as the candidate has them. */
static void emulate(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                    const double *want, const double *ours, double *out)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *other = tt_alloc(ctx, &ctx->scratch, n, sizeof *other, "golden");
    call_double(ctx, tt_arith_ops(arith), q, out);
    if (!ours && other) call_double(ctx, arith_ours(arith), q, other);
    if (!ctx->status) farther(out, ours ? ours : other, want, n);
    if (arith->product == TT_FMT_TF32 && !ctx->status) {
        call_double(ctx, tt_arith_ops(&arith_list[ARITH_TF32_ROUNDED]), q,
                    other);
        if (!ctx->status) farther(out, other, want, n);
    }
    if (!ctx->status) allow_orders(ctx, q, arith, want, out);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- f16 that saturates -------------------------------------------------- */

static const tt_real *clamped(tt_ctx *ctx, const tt_real *x, int64_t n)
{
    tt_real *y = x && n > 0 ? tt_scratch(ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++)
        y[i] = x[i] > 65504 ? 65504 : x[i] < -65504 ? -65504 : x[i];
    return y;
}

static const tt_tensor *clamped_weight(tt_ctx *ctx, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    tt_tensor *t = tt_alloc0(ctx, &ctx->scratch, 1, sizeof *t, "a weight");
    tt_real *x = tt_scratch(ctx, n);
    if (!t || !x) return w;
    tt_widen_at(x, w, 0, n);
    *t = tt_tensor_make(clamped(ctx, x, n), sizeof(tt_real) == 8 ? TT_F64
                        : TT_F32, w->rank, w->dim);
    t->native = true;
    return t;
}

/* The same call on inputs that f16 can hold; q itself where nothing says so. */
static const op_call *saturated(tt_ctx *ctx, const op_call *q, op_call *own,
                                const tt_arith *arith)
{
    const bool product = q->kind == OP_LINEAR || q->kind == OP_ATTENTION
                         || q->kind == OP_CONV;
    if (!arith || !(arith->allows & TT_ALLOW_SATURATE) || !product
        || arith->product != TT_FMT_F16 || ctx->status) return q;
    tt_attention_args *a = &own->attn;
    tt_conv_args *p = &own->conv;
    *own = *q;
    if (q->kind == OP_ATTENTION) {
        const int64_t row = a->H * a->D;
        a->q = clamped(ctx, a->q, (a->T - 1) * a->q_stride + row);
        a->k = clamped(ctx, a->k, (a->N - 1) * a->kv_stride + row);
        a->v = clamped(ctx, a->v, (a->N - 1) * a->kv_stride + row);
    } else if (q->kind == OP_CONV) {
        const tt_real **frame = tt_alloc(ctx, &ctx->scratch, p->kt,
                                         sizeof *frame, "frames");
        for (int i = 0; frame && i < p->kt; i++)
            frame[i] = clamped(ctx, p->frame[i], p->Hi * p->Wi * p->Cin);
        p->frame = frame;
        p->w = clamped_weight(ctx, p->w);
    } else {
        own->x = clamped(ctx, q->x, q->n * q->c);
        own->w = clamped_weight(ctx, q->w);
    }
    return own;
}

void call_wanted(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                 double *out)
{
    op_call own;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    call_oracle(ctx, saturated(ctx, q, &own, arith), out);
    tt_arena_reset(&ctx->scratch, mark);
}

void call_emulate(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *want, const double *ours, double *out)
{
    op_call own;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const op_call *seen = saturated(ctx, q, &own, arith);
    emulate(ctx, seen, arith, want, seen == q ? ours : NULL, out);
    tt_arena_reset(&ctx->scratch, mark);
}
