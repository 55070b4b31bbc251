/* opbench.c: how long each operator takes, beside ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both sides run in turn, so that whatever else the machine does falls on
 * both; the ratio of each pair is one observation. The interval is the usual
 * one for a mean, with Student's t for few observations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/opcalls.h"

/* The 97.5 % point of Student's t with n degrees of freedom: its expansion in
 * 1/n about the normal one, within 1 % from n = 3 on. */
static double student(int64_t n)
{
    const double d = 1 / (double)n;
    return 1.96 + d * (2.372 + d * (2.823 + d * 2.556));
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

static void bench(tt_ctx *ctx, tt_report *r, const tt_ops *ops, op_kind op,
                  int64_t runs)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    op_call q;
    op_sizes s;
    char sizes[96];
    double ours = 0, theirs = 0, sum = 0, square = 0;
    bool gave_up = false;
    bench_sizes(&s, op);
    call_make(ctx, &q, op, IN_NORMAL, &s, 1, 0);
    void *out = ctx->status ? NULL
                            : tt_alloc(ctx, &ctx->scratch, call_count(&q),
                                       sizeof(double), "bench");
    for (int64_t i = -1; i < runs && !ctx->status; i++) {
        const double a = once(ctx, tt_ops_default(), &q, out);
        if (ctx->status) break;
        const double b = once(ctx, ops, &q, out);
        gave_up = ctx->status != TT_OK;
        if (i < 0) continue;                   /* the first warms up */
        ours += a, theirs += b;
        sum += b / a, square += b / a * (b / a);
    }
    tt_arena_reset(&ctx->scratch, mark);
    if (gave_up && ctx->status != TT_EINTR && ctx->status != TT_ENOMEM) {
        char why[192];
        snprintf(why, sizeof why, "%s", tt_message(ctx));
        tt_clear(ctx);
        tt_report_note(r, "bench %-12s theirs gave up: %s", op_name(op), why);
        return;                                /* nothing to time */
    }
    if (ctx->status) return;
    const double n = (double)runs, mean = sum / n;
    const double var = (square - n * mean * mean) / (n - 1);
    tt_report_note(r, "bench %-12s %-28s ours %8.3f ms, theirs %8.3f ms, "
                   "ratio %.2f +- %.2f", op_name(op),
                   sizes_string(sizes, sizeof sizes, &s), 1e3 * ours / n,
                   1e3 * theirs / n, mean,
                   student(runs - 1) * sqrt(var > 0 ? var / n : 0));
}

tt_status tt_opbench(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const char *only, int64_t runs)
{
    if (runs < 4)
        return tt_fail(ctx, TT_EINVAL, "a benchmark of %lld runs says nothing; "
                       "at least 4", (long long)runs);
    for (int op = 0; op < OP_KINDS && !ctx->status; op++) {
        const op_kind kind = (op_kind)op;
        if (!only || !strcmp(only, op_name(kind)))
            bench(ctx, r, ops, kind, runs);
        tt_check_interrupt(ctx);
    }
    return ctx->status;
}
