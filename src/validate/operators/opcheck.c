/* opcheck.c: operators one at a time, in the manner of checkasm.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each case is an operator, a kind of input, sizes and a seed; the output is
 * surrounded by canaries and starts as garbage; inputs must come back
 * unchanged. A case that fails is made smaller, one size at a time, as long as
 * it fails; what remains is reported. What fails now and then may pass when it
 * is tried again: then the case that did fail is. */
#include <stdio.h>
#include <string.h>

#include "validate/isolate/watch.h"
#include "validate/operators/candidate.h"
#include "validate/operators/opcalls.h"
#include "validate/report/report.h"

typedef struct check {
    tt_ctx *ctx;
    const tt_ops *ops;
    const tt_arith *arith;
    op_kind op;
    op_input in;
    uint64_t seed;
    int lay;
    bool large;          /* sizes_large, each once                            */
    int64_t *unsteady;   /* cases whose second call gave other bits           */
    watch *watch;
} check;

/* The arrays' layout as a part of the case's name. */
static const char *lay_name(int lay)
{
    static const char *const name[LAYS] = {
        "", " unaligned", " wide", " unaligned wide", " in place",
        " unaligned in place", " wide in place", " unaligned wide in place"};
    return lay & LAY_SCALED ? " scaled weight"
           : lay & LAY_HEAVY ? " large weights" : name[lay];
}

/* The part of a layout that makes a difference to an operator. */
static int lay_seen(op_kind op, int lay)
{
    const bool rows = op == OP_ATTENTION || op == OP_MODULATE ||
                      op == OP_GATE_ADD;
    const bool place = op == OP_LAYER_NORM || op == OP_RMS_NORM ||
                       op == OP_CHANNEL_NORM || op == OP_ROPE;
    return lay & (LAY_ODD | (rows ? LAY_WIDE : 0) | (place ? LAY_IN_PLACE : 0)
                  | LAY_SCALED | LAY_HEAVY);
}

/* "op.linear.normal n=1 i=3 o=2 seed 7 unaligned" */
static void name_case(const check *k, const op_sizes *s, tt_verdict *v)
{
    char sizes[96];
    *v = (tt_verdict){.op = op_name(k->op)};
    snprintf(v->path, sizeof v->path, "op.%s.%s %s seed %llu%s",
             op_name(k->op), input_name(k->in),
             sizes_string(sizes, sizeof sizes, s), (unsigned long long)k->seed,
             lay_name(lay_seen(k->op, k->lay)));
}

/* Run one case; v says how it went. got and want [n] stay in scratch. The
 * hint is found only when `why` is set: it takes many runs. */
static void run(const check *k, const op_sizes *s, tt_verdict *v,
                double **got, double **want, bool why)
{
    tt_ctx *ctx = k->ctx;
    op_call q;
    static const int threads[] = {3, 7, 2, 1};
    candidate_call c = {.ops = k->ops, .odd = k->lay & LAY_ODD,
                        .twice = true, .threads = threads[k->seed % 4],
                        .watch = k->watch};
    call_make(ctx, &q, k->op, k->in, s, k->seed, k->lay);
    if (ctx->status) return;
    const int64_t n = call_count(&q);
    double *ours = tt_alloc(ctx, &ctx->scratch, n, sizeof *ours, "golden");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "emulated");
    *want = tt_alloc(ctx, &ctx->scratch, n, sizeof **want, "oracle");
    if (!ctx->status) call_double(ctx, arith_ours(k->arith), &q, ours);
    if (ctx->status) return;
    tt_verdict named;
    name_case(k, s, &named);
    c.path = named.path;
    if (!candidate_run(ctx, &c, &q, ours)) return;
    *got = c.got;
    if (k->arith->bits) {
        *want = ours;
    } else {
        call_wanted(ctx, &q, k->arith, *want);
        call_emulate(ctx, &q, k->arith, *want, ours, e);
    }
    *v = named;
    v->rank = call_shape(&q, v->dim);
    if (!k->arith->bits)
        tt_verdict_judge(v, k->arith, *got, *want, e, n, v->dim[v->rank - 1]);
    tt_verdict_bits(v, k->arith, *got, ours, n);
    candidate_verdict(ctx, &c, &q, k->arith, *got, *want, v, why);
    *k->unsteady += c.unsteady;
}

static bool fails(const check *k, const op_sizes *s)
{
    const tt_arena_mark mark = tt_arena_here(&k->ctx->scratch);
    tt_verdict v = {.outcome = TT_PASS};
    double *got, *want;
    run(k, s, &v, &got, &want, false);
    tt_arena_reset(&k->ctx->scratch, mark);
    return v.outcome == TT_MISMATCH;
}

/* Does it fail with size i made v? Then it stays so. */
static bool fails_at(const check *k, op_sizes *s, int i, int64_t v)
{
    const int64_t now = s->v[i];
    s->v[i] = v;
    if (v >= s->least[i] && v < now && fails(k, s)) return true;
    s->v[i] = now;
    return false;
}

/* The smallest sizes near s that still fail; large ones shrink in halves. */
static void reduce(const check *k, op_sizes *s)
{
    enum { LARGE = 1030 };
    for (bool smaller = true; smaller && !k->ctx->status;) {
        smaller = false;
        for (int i = 0; i < s->n && !smaller; i++) {
            const int64_t now = s->v[i];
            smaller = fails_at(k, s, i, s->least[i])
                      || fails_at(k, s, i, now / 2);
            for (int64_t c = now > LARGE ? now / 4 : 1; c && !smaller; c /= 2)
                smaller = fails_at(k, s, i, now - c);
        }
    }
}

/* A case that failed, made smaller, into the report. */
static void report_failure(const check *k, tt_report *r, const op_sizes *drawn,
                           tt_verdict *v, double *got, double *want)
{
    int64_t again = 0;                   /* its own calls count as no cases */
    char sizes[96];
    check small = *k;
    op_sizes s = *drawn;
    tt_verdict less = {0};
    double *less_got = NULL, *less_want = NULL;
    small.unsteady = &again;
    reduce(&small, &s);
    /* A few elements can be explained by much: the hint is that of the case as
     * drawn, and the reduced one's only without. */
    run(&small, &s, &less, &less_got, &less_want, !v->hint[0]);
    if (k->ctx->status) return;
    if (less.outcome != TT_MISMATCH) {
        tt_report_add(r, v, got, want);
        return;
    }
    if (v->hint[0] && strcmp(less.path, v->path))
        snprintf(less.hint, sizeof less.hint, "%.120s (at %.60s)", v->hint,
                 sizes_string(sizes, sizeof sizes, drawn));
    else if (v->hint[0])
        memcpy(less.hint, v->hint, sizeof less.hint);
    tt_report_add(r, &less, less_got, less_want);
}

/* Every way to lay out a call is met in LAYS rounds, in the first two none and
 * all of them. */
static int lay_of(int64_t round)
{
    const int i = (int)(round % LAYS);
    return i % 2 ? LAYS - 1 - i / 2 : i / 2;
}

/* All rounds of one operator on one kind of input, or all its large sizes. */
static void check_kind(const check *base, tt_report *r, int64_t rounds)
{
    tt_ctx *ctx = base->ctx;
    tt_verdict worst = {0};
    tt_bits bits = TT_BITS_UNKNOWN;      /* of all rounds                     */
    bool any = false;
    for (int64_t i = 0; i < rounds && !ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        check k = *base;
        op_sizes s;
        tt_verdict v = {0};
        double *got = NULL, *want = NULL;
        k.seed = base->seed + (uint64_t)i;
        uint64_t rng = k.seed * 1000 + (uint64_t)(k.op * IN_KINDS) + k.in;
        k.lay = lay_of(i);
        if (k.large && !sizes_large(&s, &k.lay, k.op, i)) break;
        if (!k.large) sizes_draw(&s, k.op, &rng);
        run(&k, &s, &v, &got, &want, true);
        if (v.outcome == TT_MISMATCH && !ctx->status) {
            report_failure(&k, r, &s, &v, got, want);
            tt_arena_reset(&ctx->scratch, mark);
            return;                      /* one failure of a kind is enough */
        }
        /* what was not judged stands for the kind when nothing was */
        if (!any || (v.outcome == TT_PASS
                     && (worst.outcome != TT_PASS || v.ratio > worst.ratio)))
            worst = v;
        bits = v.bits > bits ? v.bits : bits;
        any = true;
        tt_arena_reset(&ctx->scratch, mark);
    }
    worst.bits = bits;
    if (any && !ctx->status) tt_report_add(r, &worst, NULL, NULL);
}

/* All kinds of input, then large sizes. */
static void check_op(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const tt_opcheck_options *opt, op_kind op)
{
    int64_t unsteady = 0;
    watch *w = r ? r->watch : NULL;
    for (int in = 0; in <= IN_KINDS && !ctx->status; in++) {
        const bool large = in == IN_KINDS;
        const check k = {.ctx = ctx, .ops = ops, .arith = opt->arith,
                         .op = op, .in = large ? IN_NORMAL : (op_input)in,
                         .seed = opt->seed, .large = large,
                         .unsteady = &unsteady, .watch = w};
        if (input_applies(k.op, k.in) && watch_may(w, op)
            && watch_enter(w, PART_OPERATORS, op * (IN_KINDS + 1) + in))
            check_kind(&k, r, large ? INT64_MAX : opt->rounds);
        tt_check_interrupt(ctx);
    }
    if (unsteady)
        tt_report_note(r, "%s is not reproducible: other bits at a second call "
                       "with the same inputs and another number of threads, in "
                       "%lld cases", op_name(op), (long long)unsteady);
}

tt_status tt_opcheck(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const tt_opcheck_options *opt)
{
    bool any = false;
    for (int op = 0; op < OP_KINDS; op++) {
        if (opt->only && strcmp(opt->only, op_name((op_kind)op))) continue;
        any = true;
        check_op(ctx, r, ops, opt, (op_kind)op);
    }
    if (!any)
        return tt_fail(ctx, TT_EINVAL, "no operator is called \"%s\"; see "
                       "include/tether/ops.h for their names", opt->only);
    return ctx->status;
}
