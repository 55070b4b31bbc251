/* shadow.c: every operator call of a run, checked where it happens.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/isolate/watch.h"
#include "validate/operators/candidate.h"
#include "validate/operators/opcase.h"
#include "validate/report/report.h"

enum { HINTS_MOST = 8, TWICE_FIRST = 4 };
#define TWICE_WORK ((int64_t)1 << 18)  /* calls below are made twice          */

struct tt_shadow {
    tt_ops ops, plain;       /* what the model sees: the class, and f32, that
                                parts of it are defined in                    */
    const tt_ops *of_class[TT_CLASS_COUNT];
    const tt_ops *before, *candidate;
    watched theirs;          /* `candidate`, or the table it is made of       */
    const tt_arith *arith;
    tt_report *report;
    watch *watch;
    int64_t serial;          /* of the call                                   */
    bool listening;
    char place[256];         /* ctx->path of the latest call                  */
    int64_t count[OP_KINDS]; /* calls of each operator at this place          */
    int64_t hints[OP_KINDS]; /* looked for: one takes as long as many calls   */
    int64_t kept[OP_KINDS];  /* failures                                      */
    int64_t sampled[OP_KINDS];
    candidate_tally tally[OP_KINDS];
};

/* Small calls, and the first of each kind, are made twice. */
static bool twice(const tt_shadow *s, const op_call *q)
{
    return s->tally[q->kind].calls < TWICE_FIRST || call_cost(q) < TWICE_WORK;
}

static uint64_t shadow_seed_of(const char *path)
{
    const size_t n = strlen(path);
    return spans_digest(&(op_spans){.n = 1, .at = {path}, .size = {n}});
}

static bool shadow_check(tt_ctx *ctx, tt_shadow *s, const op_call *q,
                         candidate_call *c, const double *ours)
{
    tt_verdict v;
    c->seed = shadow_seed_of(c->path);
    c->hint = s->hints[q->kind] < HINTS_MOST;
    if (!candidate_check(ctx, c, q, s->arith, ours, &v)) return false;
    const bool wrong = v.outcome == TT_MISMATCH;
    s->hints[q->kind] += wrong;
    s->sampled[q->kind] += c->sampled;
    tt_report_add(s->report, &v, c->rows, c->want);
    /* the first failing call of each operator, as a case */
    if (wrong && !s->kept[q->kind]++)
        case_keep(ctx, s->report, q, &v, c->got);
    return !ctx->status;
}

/* One call of the model. */
static void shadow(tt_ctx *ctx, op_kind kind, const void *args)
{
    const tt_ops *at = ctx->ops;
    tt_shadow *s = at->self;
    const tt_ops *mine = tt_ops_class(tt_ops_default(), at->cls);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char path[224];
    op_call q;
    void *out = call_take(&q, kind, args);
    if (strcmp(s->place, ctx->path)) {
        memset(s->count, 0, sizeof s->count);
        snprintf(s->place, sizeof s->place, "%s", ctx->path);
    }
    snprintf(path, sizeof path, "%.180s#%s.%lld", ctx->path, op_name(q.kind),
             (long long)s->count[q.kind]++);
    ctx->ops = mine;
    candidate_call c = {.ops = at == &s->ops ? s->candidate
                               : tt_ops_class(s->candidate, at->cls),
                        .twice = twice(s, &q), .watch = s->watch,
                        .path = path, .tally = &s->tally[kind]};
    const char *only = s->report ? s->report->wish.only : NULL;
    const bool ask = watch_enter(s->watch, PART_CALLS, s->serial++)
                     && watch_may(s->watch, kind)
                     && ops_own(s->theirs.ops, kind)
                     && (!only || !strcmp(only, path));
    void *ours = tt_alloc(ctx, &ctx->scratch, call_count(&q), sizeof(double),
                          "shadowed result");
    call_run(ctx, mine, &q, ours);
    if (!ask && !ctx->status) memcpy(out, ours, call_out_bytes(&q));
    const double *wide = ctx->status || !ask ? NULL
                                             : call_widen(ctx, &q, ours);
    if (wide && shadow_check(ctx, s, &q, &c, wide))
        memcpy(out, ours, call_out_bytes(&q));
    ctx->ops = at;
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- the table ----------------------------------------------------------- */

#define SHADOW(op, OP)                                                         \
    static void shadow_##op(tt_ctx *ctx, const tt_##op##_args *a)              \
    {                                                                          \
        shadow(ctx, OP_##OP, a);                                               \
    }
#define ENTRY(op, OP) .op = shadow_##op,
TT_OPS(SHADOW)

static const tt_ops shadow_ops = {
    .abi = TT_ABI,
    .name = "shadow",
    .summary = "checks a candidate call by call",
    TT_OPS(ENTRY)
};

/* Scopes are only kept while someone listens. */
static void shadow_listen(void *user, const char *path, tt_dtype dtype,
                          int rank, const int64_t *dim, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
}

tt_status tt_shadow_open(tt_ctx *ctx, tt_shadow **out, tt_report *report,
                         const tt_ops *candidate, const tt_arith *arith)
{
    *out = NULL;
    TT_TRY(ctx->status);
    tt_shadow *s = calloc(1, sizeof *s);
    if (!s) return tt_fail(ctx, TT_ENOMEM, "no memory to shadow a backend");
    s->ops = s->plain = shadow_ops;
    s->ops.self = s->plain.self = s;
    s->ops.of_class = s->plain.of_class = s->of_class;
    s->ops.cls = arith_ours(arith)->cls;
    s->of_class[TT_CLASS_F32] = &s->plain;
    s->of_class[s->ops.cls] = &s->ops;
    s->before = ctx->ops;
    s->candidate = watched_make(&s->theirs, report, candidate);
    s->arith = arith;
    s->report = report;
    if (report) report->apart = true;
    s->watch = report ? report->watch : NULL;
    s->listening = !ctx->tap;
    if (s->listening) ctx->tap = shadow_listen;
    ctx->ops = &s->ops;
    *out = s;
    return TT_OK;
}

/* What was not looked at in full, and what came out differently twice. */
static void shadow_say(const tt_shadow *s)
{
    for (int i = 0; i < OP_KINDS; i++) {
        if (s->sampled[i])
            tt_report_note(s->report, "%s: %lld of %lld calls were too large "
                           "to be checked whole; of those the first and last "
                           "row, the ones farthest from ours, and some between",
                           op_name((op_kind)i), (long long)s->sampled[i],
                           (long long)s->tally[i].calls);
        candidate_note(s->report, (op_kind)i, &s->tally[i], "calls");
    }
}

void tt_shadow_close(tt_ctx *ctx, tt_shadow *s)
{
    if (!s) return;
    shadow_say(s);
    ctx->ops = s->before;
    if (s->listening) ctx->tap = NULL;
    free(s);
}
