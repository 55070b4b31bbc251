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

bool ops_own(const tt_ops *ops, op_kind kind)
{
    const tt_ops *ours = tt_ops_class(tt_ops_default(), ops->cls);
#define OWN(op, OP) ours && ops->op != ours->op,
    const bool own[OP_KINDS] = {TT_OPS(OWN)};
    bool any = false;
    for (int i = 0; i < OP_KINDS; i++) any = any || own[i];
    return own[kind] || !any;
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

/* ---- what a call reads --------------------------------------------------- */

#define OPERAND(MEMBER, NAME, ROLE, TYPE, STRIDE, ...)                         \
    operands_add(l, NAME, (op_operand){                                        \
        .role = ROLE, .place = (void *)(uintptr_t)&(MEMBER), .type = TYPE,     \
        .stride = STRIDE, .dim = {__VA_ARGS__},                                \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)})
#define REALS(MEMBER, NAME, ROLE, STRIDE, ...)                                 \
    OPERAND(MEMBER, NAME, ROLE, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, STRIDE,\
            __VA_ARGS__)
#define TENSOR(MEMBER) OPERAND(MEMBER, "w", ROLE_WEIGHT, TT_NONE, 0, 0)

static void operands_add(op_operands *l, const char *name, op_operand o)
{
    if (l->n == OPERANDS_MAX) return;
    snprintf(o.name, sizeof o.name, "%s", name);
    l->of[l->n++] = o;
}

static void attention_operands(const tt_attention_args *a, op_operands *l)
{
    REALS(a->q, "q", ROLE_INPUT, a->q_stride, a->T, a->H, a->D);
    REALS(a->k, "k", ROLE_WEIGHT, a->kv_stride, a->N, a->H, a->D);
    REALS(a->v, "v", ROLE_WEIGHT, a->kv_stride, a->N, a->H, a->D);
    REALS(a->rel_bias, "rel_bias", ROLE_REST, 0, a->H, 2 * a->N - 1);
    OPERAND(a->key_mask, "key_mask", ROLE_REST, TT_U8, 0, a->N);
}

static void conv_operands(const tt_conv_args *p, op_operands *l)
{
    char name[16];
    for (int i = 0; i < p->kt && i < OPERANDS_MAX - 2; i++) {
        snprintf(name, sizeof name, "frame.%d", i);
        REALS(p->frame[i], name, ROLE_INPUT, 0, p->Hi, p->Wi, p->Cin);
    }
    TENSOR(p->w);
    REALS(p->b, "b", ROLE_REST, 0, p->Cout);
}

static void row_operands(const op_call *q, op_operands *l)
{
    const int64_t groups = q->rows ? (q->n + q->rows - 1) / q->rows : 0;
    if (q->kind == OP_ROPE) REALS(q->x, "x", ROLE_INPUT, 0, q->n, q->H, q->D);
    else REALS(q->x, "x", ROLE_INPUT, 0, q->n, q->c);
    switch (q->kind) {
    case OP_ADD: case OP_MUL: case OP_GATE_ADD:
        REALS(q->y, "y", ROLE_INPUT, 0, q->n, q->c);
        if (!groups) break;
        REALS(q->a, "gate", ROLE_WEIGHT, q->stride, groups, q->c);
        break;
    case OP_MODULATE:
        REALS(q->a, "scale", ROLE_WEIGHT, q->stride, groups, q->c);
        REALS(q->b, "shift", ROLE_WEIGHT, q->stride, groups, q->c);
        break;
    case OP_LINEAR:
        TENSOR(q->w);
        REALS(q->b, "b", ROLE_REST, 0, q->w->dim[0]);
        break;
    case OP_LAYER_NORM:
        REALS(q->a, "w", ROLE_WEIGHT, 0, q->c);
        REALS(q->b, "b", ROLE_WEIGHT, 0, q->c);
        break;
    case OP_RMS_NORM: case OP_CHANNEL_NORM:
        REALS(q->a, "w", ROLE_WEIGHT, 0, q->c);
        break;
    case OP_ROPE: OPERAND(q->pos, "pos", ROLE_REST, TT_I32, 0, q->n, 3); break;
    case OP_COL_MOMENT:
        OPERAND(q->mean, "mean", ROLE_REST, TT_F64, 0, q->c);
        break;
    case OP_COL_BLEND:
        OPERAND(q->mean, "mean", ROLE_REST, TT_F64, 0, q->c);
        OPERAND(q->gain, "gain", ROLE_REST, TT_F64, 0, q->c);
        OPERAND(q->target, "target", ROLE_REST, TT_F64, 0, q->c);
        break;
    default: break;
    }
}

void call_operands(const op_call *q, op_operands *l)
{
    l->n = 0;
    if (q->kind == OP_ATTENTION) attention_operands(&q->attn, l);
    else if (q->kind == OP_CONV) conv_operands(&q->conv, l);
    else row_operands(q, l);
}

const void *operand_at(const op_operand *o)
{
    const void *at;
    memcpy(&at, o->place, sizeof at);
    return at;
}

void operand_set(const op_operand *o, const void *at)
{
    memcpy(o->place, &at, sizeof at);
}

int64_t operand_span(const op_operand *o)
{
    int64_t width = 1;
    for (int i = 1; i < o->rank; i++) width *= o->dim[i];
    return (o->dim[0] - 1) * (o->stride ? o->stride : width) + width;
}

static void span(op_spans *s, const void *at, int64_t n, size_t size)
{
    if (!at || n <= 0 || s->n == SPANS_MAX) return;
    s->at[s->n] = at;
    s->size[s->n++] = (size_t)n * size;
}

void call_inputs(const op_call *q, op_spans *s)
{
    const tt_rope_table *t = q->table;
    op_operands l;
    call_operands(q, &l);
    s->n = 0;
    for (int i = 0; i < l.n; i++) {
        const void *at = operand_at(&l.of[i]);
        const tt_tensor *w = l.of[i].type == TT_NONE ? at : NULL;
        if (w) span(s, w->data, tt_tensor_bytes(w), 1);
        else span(s, at, operand_span(&l.of[i]), tt_dtype_size(l.of[i].type));
    }
    if (t) span(s, t->cos, t->npos * (q->D / 2), sizeof *t->cos);
    if (t) span(s, t->sin, t->npos * (q->D / 2), sizeof *t->sin);
}

/* The same operand with fn of every value; NULL after a failure. */
static const void *operand_map(tt_ctx *ctx, const op_operand *o,
                               tt_real (*fn)(int how, tt_real x), int how)
{
    const void *at = operand_at(o);
    const tt_tensor *w = o->type == TT_NONE ? at : NULL;
    const int64_t n = w ? tt_tensor_count(w) : operand_span(o);
    tt_real *y = tt_scratch(ctx, n);
    tt_tensor *own = w ? tt_alloc(ctx, &ctx->scratch, 1, sizeof *own, "weight")
                       : NULL;
    if (ctx->status) return NULL;
    if (w) tt_widen_at(y, w, 0, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = fn(how, w ? y[i] : ((const tt_real *)at)[i]);
    if (!w) return y;
    *own = tt_tensor_make(y, sizeof *y == 8 ? TT_F64 : TT_F32, w->rank, w->dim);
    own->native = true;
    return own;
}

void call_map(tt_ctx *ctx, op_call *own, const op_call *q, int roles,
              tt_real (*fn)(int how, tt_real x), int how)
{
    op_operands l;
    *own = *q;
    if (q->kind == OP_CONV) {
        const size_t n = (size_t)q->conv.kt;
        const tt_real **frame = tt_alloc(ctx, &ctx->scratch, q->conv.kt,
                                         sizeof *frame, "frames");
        if (!frame) return;
        memcpy(frame, q->conv.frame, n * sizeof *frame);
        own->conv.frame = frame;
    }
    call_operands(own, &l);
    for (int i = 0; i < l.n && !ctx->status; i++)
        if (l.of[i].role & roles && operand_at(&l.of[i]))
            operand_set(&l.of[i], operand_map(ctx, &l.of[i], fn, how));
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
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    void *x = tt_alloc(ctx, &ctx->scratch, (int64_t)call_out_bytes(q), 1,
                       "a result");
    call_run(ctx, ops, q, x);
    const double *wide = ctx->status ? NULL : call_widen(ctx, q, x);
    if (wide) memcpy(out, wide, (size_t)call_count(q) * sizeof *out);
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

static tt_real clamped(int how, tt_real x)
{
    (void)how;
    return x > 65504 ? 65504 : x < -65504 ? -65504 : x;
}

/* The same call on inputs that f16 can hold; q itself where nothing says so. */
static const op_call *saturated(tt_ctx *ctx, const op_call *q, op_call *own,
                                const tt_arith *arith)
{
    const bool product = q->kind == OP_LINEAR || q->kind == OP_ATTENTION
                         || q->kind == OP_CONV;
    if (!arith || !(arith->allows & TT_ALLOW_SATURATE) || !product
        || arith->product != TT_FMT_F16 || ctx->status) return q;
    call_map(ctx, own, q, ROLE_INPUT | ROLE_WEIGHT, clamped, 0);
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
