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

#include "validate/candidate.h"
#include "validate/sample.h"

enum { HINTS_MOST = 8, TWICE_FIRST = 4 };
#define TWICE_WORK ((int64_t)1 << 18)  /* calls below are made twice          */

struct tt_shadow {
    tt_ops ops;              /* first: ctx->ops is turned into the shadow     */
    const tt_ops *before, *ours, *candidate;
    const tt_arith *arith;
    tt_report *report;
    bool adopt, listening;
    char place[256];         /* ctx->path of the latest call                  */
    int64_t count[OP_KINDS]; /* calls of each operator at this place          */
    int64_t hints[OP_KINDS]; /* looked for: one takes as long as many calls   */
    int64_t calls[OP_KINDS]; /* in all                                        */
    int64_t twice[OP_KINDS], unsteady[OP_KINDS], sampled[OP_KINDS];
};

static double *widen(tt_ctx *ctx, const op_call *q, const void *x)
{
    const int64_t n = call_count(q);
    double *d = tt_alloc(ctx, &ctx->scratch, n, sizeof *d, "shadowed result");
    for (int64_t i = 0; d && i < n; i++)
        d[i] = call_out_is_double(q) ? ((const double *)x)[i]
                                     : (double)((const tt_real *)x)[i];
    return d;
}

static void *result(tt_ctx *ctx, const op_call *q, const tt_ops *ops)
{
    void *out = tt_alloc(ctx, &ctx->scratch, call_count(q), sizeof(double),
                         "shadowed result");
    call_run(ctx, ops, q, out);
    return ctx->status ? NULL : out;
}

/* Small calls, and the first of each kind, are made twice. */
static bool twice(tt_shadow *s, const op_call *q)
{
    const bool yes = s->calls[q->kind]++ < TWICE_FIRST
                     || call_cost(q) < TWICE_WORK;
    s->twice[q->kind] += yes;
    return yes;
}

static uint64_t seed_of(const char *path)
{
    const size_t n = strlen(path);
    return spans_digest(&(op_spans){.n = 1, .at = {path}, .size = {n}});
}

static void judge(tt_ctx *ctx, tt_shadow *s, const op_call *q,
                  const candidate_call *c, const double *ours, const char *path)
{
    sample part;
    sample_take(ctx, &part, q, c->got, ours, seed_of(path));
    const int64_t n = part.rows * part.width;
    tt_verdict v = {.op = op_name(q->kind)};
    double *want = tt_alloc(ctx, &ctx->scratch, n, sizeof *want, "oracle");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "emulation");
    if (ctx->status) return;
    const double *g = sample_cut(ctx, &part, c->got);
    sample_oracle(ctx, &part, want);
    sample_emulate(ctx, &part, s->arith, want, sample_cut(ctx, &part, ours), e);
    if (ctx->status) return;
    snprintf(v.path, sizeof v.path, "%s", path);
    v.rank = call_shape(q, v.dim);
    v.dim[0] = part.rows;
    tt_verdict_judge(&v, s->arith, g, want, e, n, v.dim[v.rank - 1]);
    const bool look = v.outcome == TT_MISMATCH
                      && s->hints[q->kind]++ < HINTS_MOST;
    const int64_t worst = part.width ? v.m.worst / part.width : 0;
    if (look && sample_single(ctx, &part, worst)) {
        const int64_t at = worst * part.width, rows = v.dim[0];
        v.dim[0] = 1;
        candidate_verdict(ctx, c, &part.part, s->arith, g + at, want + at, &v,
                          true);
        v.dim[0] = rows;
    } else {
        candidate_verdict(ctx, c, &part.part, s->arith, g, want, &v, look);
    }
    sample_place(&part, &v);
    s->sampled[q->kind] += part.row != NULL;
    s->unsteady[q->kind] += c->unsteady;
    tt_report_add(s->report, &v, g, want);
}

/* One call of the model: out is where the model wants the result. */
static void shadow(tt_ctx *ctx, const op_call *call, void *out)
{
    tt_shadow *s = (tt_shadow *)(uintptr_t)ctx->ops;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char path[224];
    op_call q = *call;
    q.in_place = out == q.x;
    if (strcmp(s->place, ctx->path)) {
        memset(s->count, 0, sizeof s->count);
        snprintf(s->place, sizeof s->place, "%s", ctx->path);
    }
    snprintf(path, sizeof path, "%.180s#%s.%lld", ctx->path, op_name(q.kind),
             (long long)s->count[q.kind]++);
    ctx->ops = s->ours;
    candidate_call c = {.ops = s->candidate, .twice = twice(s, &q)};
    const void *ours = result(ctx, &q, s->ours);
    const double *wide = ours ? widen(ctx, &q, ours) : NULL;
    if (wide && candidate_run(ctx, &c, &q, wide)) {
        judge(ctx, s, &q, &c, wide, path);
        if (!ctx->status)
            memcpy(out, s->adopt ? c.out : ours,
                   (size_t)call_count(&q) * (call_out_is_double(&q)
                                             ? sizeof(double)
                                             : sizeof(tt_real)));
    }
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

/* What was not looked at in full, and what came out differently twice. */
static void say(const tt_shadow *s)
{
    for (int i = 0; i < OP_KINDS; i++) {
        if (s->sampled[i])
            tt_report_note(s->report, "%s: %lld of %lld calls were too large "
                           "to be judged whole; of those the first and last "
                           "row, the ones farthest from ours, and some between",
                           op_name((op_kind)i), (long long)s->sampled[i],
                           (long long)s->calls[i]);
        if (s->unsteady[i])
            tt_report_note(s->report, "%s is not reproducible: other bits at a "
                           "second call with the same inputs, in %lld of %lld "
                           "calls", op_name((op_kind)i),
                           (long long)s->unsteady[i], (long long)s->twice[i]);
    }
}

void tt_shadow_close(tt_ctx *ctx, tt_shadow *s)
{
    if (!s) return;
    say(s);
    ctx->ops = s->before;
    if (s->listening) ctx->tap = NULL;
    free(s);
}
