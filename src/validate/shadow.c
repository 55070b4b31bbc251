/* shadow.c: every operator call of a run, judged where it happens.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The table that the model sees turns each call into data (call.h), runs it on
 * our operators, on the candidate, in float64 and in the emulated arithmetic,
 * and lets our result go on: every operator of every layer and step is tested
 * on right inputs, so the first verdict that fails *is* the mistake and no
 * bisection is needed. tests/validate shows that planted mistakes are named.
 *
 * Calls are told apart by where they happen (ctx->path), the operator and a
 * count within that place: "block.3#linear.2" is the third linear layer of
 * block 3 (q, k, v, output, ... in the order of src/dit). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/call.h"

/* Elements of an output that are judged; of larger calls the first rows, and
 * then every so many rows as fit. */
#define SHADOW_WORK ((int64_t)1 << 24) /* multiply-adds of the oracle per call */

#define HINTS_MOST 8

struct tt_shadow {
    tt_ops ops;              /* first: ctx->ops is turned into the shadow     */
    const tt_ops *before, *ours, *candidate;
    const tt_arith *arith;
    tt_report *report;
    bool adopt, listening;
    char place[256];         /* ctx->path of the latest call                  */
    int64_t count[OP_KINDS]; /* calls of each operator at this place          */
    int64_t hints[OP_KINDS]; /* looked for: one takes as long as many calls   */
};

static double *widen(tt_ctx *ctx, const op_call *q, const void *x, int64_t n)
{
    double *d = tt_alloc(ctx, &ctx->scratch, n, sizeof *d, "shadowed result");
    for (int64_t i = 0; d && i < n; i++)
        d[i] = call_out_is_double(q) ? ((const double *)x)[i]
                                     : (double)((const tt_real *)x)[i];
    return d;
}

static void *room(tt_ctx *ctx, const op_call *q)
{
    return tt_alloc(ctx, &ctx->scratch, call_count(q), sizeof(double),
                    "shadowed result");
}

static void *result(tt_ctx *ctx, const op_call *q, const tt_ops *ops)
{
    void *out = room(ctx, q);
    call_run(ctx, ops, q, out);
    return ctx->status ? NULL : out;
}

/* The candidate's, into NaN: what it leaves untouched is not an older right
 * result. `why` is not empty when it gave up. */
static void *their_result(tt_ctx *ctx, const op_call *q, const tt_ops *ops,
                          char *why, size_t size)
{
    void *out = room(ctx, q);
    if (!out) return NULL;
    memset(out, 0xff, (size_t)call_count(q) * sizeof(double));
    return call_candidate(ctx, ops, q, out, why, size) ? out : NULL;
}

/* Fewer rows of a large call: the leading ones. */
static op_call shorten(const op_call *q)
{
    op_call s = *q;
    const tt_attention_args *a = &q->attn;
    int64_t cost = 1, *rows = &s.n;
    if (q->kind == OP_LINEAR) cost = q->w->dim[0] * q->w->dim[1];
    else if (q->kind == OP_ATTENTION)
        cost = 2 * a->N * a->D * a->H, rows = &s.attn.T;
    else return s;
    const int64_t most = SHADOW_WORK / cost + 1;
    if (*rows > most && !(q->kind == OP_ATTENTION && a->rel_bias)) *rows = most;
    return s;
}

/* Judge the candidate's result of q, the leading rows of which are s. */
static void judge(tt_ctx *ctx, tt_shadow *s, const op_call *q, const void *got,
                  const char *path, const char *why)
{
    const op_call part = shorten(q);
    const int64_t n = call_count(&part);
    tt_verdict v = {.op = op_name(q->kind)};
    double *want = tt_alloc(ctx, &ctx->scratch, n, sizeof *want, "oracle");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "emulation");
    double *g = widen(ctx, q, got, n);
    call_oracle(ctx, &part, want);
    call_emulate(ctx, &part, s->arith, want, e);
    if (ctx->status) return;
    snprintf(v.path, sizeof v.path, "%s", path);
    v.rank = call_shape(&part, v.dim);
    tt_verdict_judge(&v, s->arith, g, want, e, n, v.dim[v.rank - 1]);
    if (*why) {
        v.outcome = TT_MISMATCH;
        snprintf(v.hint, sizeof v.hint, "%s", why);
    } else if (v.outcome != TT_PASS && s->hints[q->kind]++ < HINTS_MOST)
        hint_find(ctx, &part, s->arith, g, want, v.rank, v.dim, v.earned,
                  v.hint, sizeof v.hint);
    tt_report_add(s->report, &v, g, want);
}

/* One call of the model: out is where the model wants the result. */
static void shadow(tt_ctx *ctx, const op_call *q, void *out)
{
    tt_shadow *s = (tt_shadow *)(uintptr_t)ctx->ops;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char path[224], why[192];
    if (strcmp(s->place, ctx->path)) {
        memset(s->count, 0, sizeof s->count);
        snprintf(s->place, sizeof s->place, "%s", ctx->path);
    }
    snprintf(path, sizeof path, "%.180s#%s.%lld", ctx->path, op_name(q->kind),
             (long long)s->count[q->kind]++);
    ctx->ops = s->ours;
    const void *ours = result(ctx, q, s->ours);
    const void *got = ours ? their_result(ctx, q, s->candidate, why, sizeof why)
                           : NULL;
    if (got) judge(ctx, s, q, got, path, why);
    if (got && !ctx->status)
        memcpy(out, s->adopt ? got : ours,
               (size_t)call_count(q) * (call_out_is_double(q)
                                        ? sizeof(double) : sizeof(tt_real)));
    ctx->ops = &s->ops;
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- the table ----------------------------------------------------------- */

static void s_linear(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     const tt_tensor *w, const tt_real *b)
{
    shadow(ctx, &(op_call){.kind = OP_LINEAR, .x = x, .n = n, .c = w->dim[1],
                           .w = w, .b = b}, y);
}

static void s_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    shadow(ctx, &(op_call){.kind = OP_ATTENTION, .attn = *a}, a->o);
}

static void s_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    shadow(ctx, &(op_call){.kind = OP_CONV, .conv = *a}, a->y);
}

static void s_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                         int64_t c, const tt_real *w, const tt_real *b,
                         double eps)
{
    shadow(ctx, &(op_call){.kind = OP_LAYER_NORM, .x = x, .n = n, .c = c,
                           .a = w, .b = b, .eps = eps}, y);
}

static void s_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                       int64_t c, const tt_real *w, double eps)
{
    shadow(ctx, &(op_call){.kind = OP_RMS_NORM, .x = x, .n = n, .c = c,
                           .a = w, .eps = eps}, y);
}

static void s_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x,
                           int64_t n, int64_t c, const tt_real *gamma)
{
    shadow(ctx, &(op_call){.kind = OP_CHANNEL_NORM, .x = x, .n = n, .c = c,
                           .a = gamma}, y);
}

static void s_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                       const tt_real *scale, const tt_real *shift,
                       int64_t stride, int64_t rows)
{
    shadow(ctx, &(op_call){.kind = OP_MODULATE, .x = x, .n = n, .c = c,
                           .a = scale, .b = shift, .stride = stride,
                           .rows = rows}, x);
}

static void s_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                       int64_t c, const tt_real *gate, int64_t stride,
                       int64_t rows)
{
    shadow(ctx, &(op_call){.kind = OP_GATE_ADD, .x = x, .y = y, .n = n, .c = c,
                           .a = gate, .stride = stride, .rows = rows}, x);
}

static void s_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    shadow(ctx, &(op_call){.kind = OP_ADD, .x = x, .y = y, .n = 1, .c = n}, x);
}

static void s_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    shadow(ctx, &(op_call){.kind = OP_MUL, .x = x, .y = y, .n = 1, .c = n}, x);
}

static void s_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n)
{
    shadow(ctx, &(op_call){.kind = OP_GELU_TANH, .x = x, .n = 1, .c = n}, x);
}

static void s_silu(tt_ctx *ctx, tt_real *x, int64_t n)
{
    shadow(ctx, &(op_call){.kind = OP_SILU, .x = x, .n = 1, .c = n}, x);
}

static void s_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T,
                   int64_t H, int64_t D, const tt_rope_table *table,
                   const int32_t *pos)
{
    shadow(ctx, &(op_call){.kind = OP_ROPE, .x = x, .n = T, .c = H * D, .H = H,
                           .D = D, .table = table, .pos = pos}, y);
}

static void s_col_mean(tt_ctx *ctx, double *mean, const tt_real *x, int64_t n,
                       int64_t c)
{
    shadow(ctx, &(op_call){.kind = OP_COL_MEAN, .x = x, .n = n, .c = c}, mean);
}

static void s_col_moment(tt_ctx *ctx, double *m2, const tt_real *x,
                         const double *mean, int64_t n, int64_t c)
{
    shadow(ctx, &(op_call){.kind = OP_COL_MOMENT, .x = x, .n = n, .c = c,
                           .mean = mean}, m2);
}

static void s_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                        const double *mean, const double *gain,
                        const double *target, double tau)
{
    shadow(ctx, &(op_call){.kind = OP_COL_BLEND, .x = x, .n = n, .c = c,
                           .mean = mean, .gain = gain, .target = target,
                           .tau = tau}, x);
}

static const tt_ops shadow_ops = {
    .name = "shadow",
    .summary = "judges a candidate call by call",
    .linear = s_linear,
    .attention = s_attention,
    .conv = s_conv,
    .layer_norm = s_layer_norm,
    .rms_norm = s_rms_norm,
    .channel_norm = s_channel_norm,
    .modulate = s_modulate,
    .gate_add = s_gate_add,
    .add = s_add,
    .mul = s_mul,
    .gelu_tanh = s_gelu_tanh,
    .silu = s_silu,
    .rope = s_rope,
    .col_mean = s_col_mean,
    .col_moment = s_col_moment,
    .col_blend = s_col_blend,
};

/* Scopes are only kept while somebody listens. */
static void listen(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
}

tt_status tt_shadow_open(tt_ctx *ctx, tt_shadow **out, tt_report *report,
                         const tt_ops *candidate, const tt_arith *arith,
                         bool adopt)
{
    tt_shadow *s = calloc(1, sizeof *s);
    *out = NULL;
    TT_TRY(ctx->status);
    if (!s) return tt_fail(ctx, TT_ENOMEM, "no memory to shadow a backend");
    s->ops = shadow_ops;
    s->before = ctx->ops;
    s->ours = tt_ops_default();
    s->candidate = candidate;
    s->arith = arith;
    s->report = report;
    s->adopt = adopt;
    s->listening = !ctx->tap;
    if (s->listening) ctx->tap = listen;
    ctx->ops = &s->ops;
    *out = s;
    return TT_OK;
}

void tt_shadow_close(tt_ctx *ctx, tt_shadow *s)
{
    if (!s) return;
    ctx->ops = s->before;
    if (s->listening) ctx->tap = NULL;
    free(s);
}
