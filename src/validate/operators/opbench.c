/* opbench.c: how long each operator takes, next to ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both sides run in turn, so that whatever else the machine does falls on
 * both. Medians: one interruption says nothing about an operator. The ratio is
 * that of the two medians printed next to it; the range is that of the middle
 * half of the ratios of pairs. Only what a table brings itself is timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/isolate/watch.h"
#include "validate/operators/opcalls.h"
#include "validate/report/report.h"

/* The quarters of n sorted values: low, middle, high. */
static void quarters(double q[3], double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, value_order);
    q[0] = x[n / 4];
    q[1] = (x[(n - 1) / 2] + x[n / 2]) / 2;
    q[2] = x[n - 1 - n / 4];
}

/* Does the table have an operator of its own there? Ours stand where a plug-in
 * left a gap. */
static bool opbench_own(const tt_ops *ops, op_kind kind)
{
#define OWN(op, OP) if (kind == OP_##OP) return ops->op != tt_ops_default()->op;
    TT_OPS(OWN)
#undef OWN
    return false;
}

static void bench_sizes(op_sizes *s, op_kind op)
{
    static const int64_t big[OP_KINDS][SIZES_MAX] = {
        [OP_LINEAR] = {96, 256, 512},
        [OP_ATTENTION] = {64, 1024, 4, 64, 0, 0},
        [OP_CONV] = {16, 16, 64, 64, 3, 3, 0},
        [OP_LAYER_NORM] = {128, 1024}, [OP_RMS_NORM] = {128, 1024},
        [OP_CHANNEL_NORM] = {1024, 96},
        [OP_MODULATE] = {3, 64, 1024}, [OP_GATE_ADD] = {3, 64, 1024},
        [OP_ADD] = {1 << 17}, [OP_MUL] = {1 << 17}, [OP_GELU_TANH] = {1 << 17},
        [OP_SILU] = {1 << 17}, [OP_ROPE] = {96, 8, 128},
        [OP_COL_MEAN] = {128, 1024}, [OP_COL_MOMENT] = {128, 1024},
        [OP_COL_BLEND] = {128, 1024}};
    uint64_t rng = 1;
    sizes_draw(s, op, &rng);                   /* for the names */
    for (int i = 0; i < s->n; i++) s->v[i] = big[op][i];
}

static double once(tt_ctx *ctx, const tt_ops *ops, const op_call *q, void *out)
{
    const double start = tt_now();
    call_run(ctx, ops, q, out);
    return tt_now() - start;
}

/* The same of someone else's, watched. */
static double once_watched(tt_ctx *ctx, watched *t, const op_call *q, void *out)
{
    watch *w = t->report ? t->report->watch : NULL;
    watch_begin(w, q->kind);
    const double seconds = once(ctx, t->ops, q, out);
    watch_end(w);
    watched_end(ctx, t, q->kind);
    return seconds;
}

/* Seconds of every run; false when theirs gave up. */
static bool opbench_run_pairs(tt_ctx *ctx, watched *t, const op_call *q,
                              double *ours, double *theirs, int64_t runs)
{
    void *out = ctx->status ? NULL
                            : tt_alloc(ctx, &ctx->scratch, call_count(q),
                                       sizeof(double), "bench");
    for (int64_t i = -1; i < runs && !ctx->status; i++) {
        const double a = once(ctx, tt_ops_default(), q, out);
        if (ctx->status) break;
        const double b = once_watched(ctx, t, q, out);
        if (ctx->status) return false;
        if (i < 0) continue;                   /* the first warms up */
        ours[i] = a;
        theirs[i] = b;
    }
    return true;
}

/* A benchmark that gave up is noted; the other operators still have theirs. */
static void note_failure(tt_ctx *ctx, tt_report *r, op_kind op)
{
    char why[192];
    if (ctx->status == TT_EINTR || ctx->status == TT_ENOMEM) return;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    tt_report_note(r, "bench %-12s theirs gave up: %s", op_name(op), why);
}

static void bench(tt_ctx *ctx, tt_report *r, watched *t, op_kind op,
                  int64_t runs)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    op_call q;
    op_sizes s;
    char sizes[96];
    double a[3], b[3], ratio[3];
    bench_sizes(&s, op);
    call_make(ctx, &q, op, IN_NORMAL, &s, 1, 0);
    double *ours = tt_alloc(ctx, &ctx->scratch, 3 * runs, sizeof *ours,
                            "bench");
    if (!ours) return;
    double *theirs = ours + runs, *pair = theirs + runs;
    const bool through = opbench_run_pairs(ctx, t, &q, ours, theirs, runs);
    if (!ctx->status) {
        for (int64_t i = 0; i < runs; i++) pair[i] = theirs[i] / ours[i];
        quarters(a, ours, runs);
        quarters(b, theirs, runs);
        quarters(ratio, pair, runs);
        tt_report_note(r, "bench %-12s %-28s ours %8.3f ms, theirs %8.3f ms, "
                       "ratio %.2f, half of the pairs %.2f to %.2f",
                       op_name(op), sizes_string(sizes, sizeof sizes, &s),
                       1e3 * a[1], 1e3 * b[1], b[1] / a[1], ratio[0],
                       ratio[2]);
    }
    tt_arena_reset(&ctx->scratch, mark);
    if (!through) note_failure(ctx, r, op);
}

tt_status tt_opbench(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const char *only, int64_t runs)
{
    int owned = 0;
    watched table;
    watch *w = r ? r->watch : NULL;
    if (runs < 4 || runs > 1000000)
        return tt_fail(ctx, TT_EINVAL, "a benchmark of %lld runs: expected 4 "
                       "to 1000000", (long long)runs);
    watched_make(&table, r, ops);
    watch_place(w, "bench");
    for (int op = 0; op < OP_KINDS; op++)
        owned += opbench_own(ops, (op_kind)op);
    for (int op = 0; op < OP_KINDS && !ctx->status; op++) {
        const op_kind kind = (op_kind)op;
        if (!watch_may(w, kind) || !watch_enter(w, PART_BENCH, op)) continue;
        /* our own table next to itself is timed as a whole */
        if (owned && !opbench_own(ops, kind)) continue;
        if (!only || !strcmp(only, op_name(kind)))
            bench(ctx, r, &table, kind, runs);
        tt_check_interrupt(ctx);
    }
    return ctx->status;
}
