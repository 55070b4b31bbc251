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
#include "validate/operators/opcase.h"
#include "validate/report/report.h"

typedef struct check {
    tt_ctx *ctx;
    const tt_ops *ops;
    const tt_arith *arith;
    op_case at;
    bool large;          /* sizes_large, each once                            */
    candidate_tally *tally;
    watch *watch;
} check;

/* Run one case: *c is the call, in scratch, and v says how it went. With `why`
 * the hint is found: it takes many runs. */
static void opcheck_run(const check *k, candidate_call *c, tt_verdict *v,
                        bool why)
{
    tt_ctx *ctx = k->ctx;
    op_call q;
    char path[OP_CASE_NAME];
    static const int threads[] = {3, 7, 2, 1};
    *c = (candidate_call){.ops = k->ops, .odd = k->at.lay & LAY_ODD,
                          .twice = true, .threads = threads[k->at.seed % 4],
                          .watch = k->watch, .path = path, .hint = why,
                          .tally = k->tally,
                          .seed = k->at.seed, .cuts = k->at.in == IN_NORMAL
                                                      || k->at.in == IN_OFFSET};
    op_case_name(path, sizeof path, &k->at);
    call_make(ctx, &q, k->at.op, k->at.in, &k->at.sizes, k->at.seed,
              k->at.lay);
    if (ctx->status) return;
    double *ours = tt_alloc(ctx, &ctx->scratch, call_count(&q), sizeof *ours,
                            "golden");
    if (ours) call_double(ctx, arith_ours(k->arith), &q, ours);
    if (!ctx->status) candidate_check(ctx, c, &q, k->arith, ours, v);
}

static bool fails(const check *k)
{
    const tt_arena_mark mark = tt_arena_here(&k->ctx->scratch);
    tt_verdict v = {.outcome = TT_PASS};
    candidate_call c;
    opcheck_run(k, &c, &v, false);
    tt_arena_reset(&k->ctx->scratch, mark);
    return v.outcome == TT_MISMATCH;
}

/* Does it fail with size i made v? Then it stays so. */
static bool fails_at(check *k, int i, int64_t v)
{
    op_sizes *s = &k->at.sizes;
    const int64_t now = s->v[i];
    s->v[i] = v;
    if (v >= s->least[i] && v < now && fails(k)) return true;
    s->v[i] = now;
    return false;
}

/* The smallest sizes near that still fail; large ones shrink in halves. */
static void reduce(check *k)
{
    enum { LARGE = 1030 };
    const op_sizes *s = &k->at.sizes;
    for (bool smaller = true; smaller && !k->ctx->status;) {
        smaller = false;
        for (int i = 0; i < s->n && !smaller; i++) {
            const int64_t now = s->v[i];
            smaller = fails_at(k, i, s->least[i]) || fails_at(k, i, now / 2);
            for (int64_t c = now > LARGE ? now / 4 : 1; c && !smaller; c /= 2)
                smaller = fails_at(k, i, now - c);
        }
    }
}

/* A failure into the report, and as a folder where that is wanted. */
static void put_failure(const check *k, tt_report *r, const tt_verdict *v,
                        const candidate_call *c)
{
    op_call q;
    tt_report_add(r, v, c->rows, c->want);
    if (!r || !r->wish.cases) return;
    call_make(k->ctx, &q, k->at.op, k->at.in, &k->at.sizes, k->at.seed,
              k->at.lay);
    case_keep(k->ctx, r, &q, v, c->got);
}

/* A handful of values has no hint: that of another round of its kind may be
 * taken. Its sizes; those of k itself else. */
static op_sizes ask_others(const check *k, tt_verdict *v, uint64_t seed,
                           int64_t rounds)
{
    enum { HANDFUL = 8 };
    candidate_tally again = {0};         /* these calls count as no cases */
    check other = *k;
    other.tally = &again;
    for (int64_t i = 0; !v->hint[0] && v->m.n < HANDFUL && i < rounds
         && op_case_round(&other.at, k->at.op, k->at.in, seed, k->large, i);
         i++) {
        tt_verdict o = {0};
        candidate_call c;
        opcheck_run(&other, &c, &o, true);
        if (o.outcome == TT_MISMATCH && o.m.n >= HANDFUL)
            memcpy(v->hint, o.hint, sizeof v->hint);
    }
    return other.at.sizes;
}

/* A case that failed, made smaller, into the report; `told` are the sizes of
 * the one that has its hint. */
static void report_failure(const check *k, tt_report *r, tt_verdict *v,
                           const candidate_call *c, const op_sizes *told)
{
    candidate_tally again = {0};
    char sizes[96];
    check small = *k;
    tt_verdict less = {0};
    candidate_call at_last;
    small.tally = &again;
    reduce(&small);
    /* A few elements can be explained by much: the hint is that of the case as
     * drawn, and the reduced one's only without. */
    opcheck_run(&small, &at_last, &less, !v->hint[0]);
    if (k->ctx->status) return;
    if (less.outcome != TT_MISMATCH) {
        put_failure(k, r, v, c);
        return;
    }
    if (v->hint[0] && memcmp(told->v, small.at.sizes.v, sizeof told->v))
        snprintf(less.hint, sizeof less.hint, "%.120s (at %.60s)", v->hint,
                 sizes_string(sizes, sizeof sizes, told));
    else if (v->hint[0])
        memcpy(less.hint, v->hint, sizeof less.hint);
    put_failure(&small, r, &less, &at_last);
}

/* All rounds of one operator on one kind of input, or all its large sizes. */
static void check_kind(const check *base, tt_report *r, uint64_t seed,
                       int64_t rounds)
{
    tt_ctx *ctx = base->ctx;
    tt_verdict worst = {0}, refused = {0};
    tt_bits bits = TT_BITS_UNKNOWN;      /* of all rounds                     */
    int64_t any = 0, refusals = 0;       /* rounds                            */
    for (int64_t i = 0; i < rounds && !ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        check k = *base;
        tt_verdict v = {0};
        candidate_call c;
        if (!op_case_round(&k.at, base->at.op, base->at.in, seed, k.large, i))
            break;
        opcheck_run(&k, &c, &v, true);
        if (v.outcome == TT_MISMATCH && !ctx->status) {
            const op_sizes told = ask_others(&k, &v, seed, rounds);
            report_failure(&k, r, &v, &c, &told);
            tt_arena_reset(&ctx->scratch, mark);
            return;                      /* one failure of a kind is enough */
        }
        if (v.outcome == TT_UNSUPPORTED && !refusals++) refused = v;
        /* what was not checked is named for the kind when nothing was */
        else if (v.outcome != TT_UNSUPPORTED && (!any++ || (v.outcome == TT_PASS
                     && (worst.outcome != TT_PASS || v.ratio > worst.ratio))))
            worst = v;
        bits = v.bits > bits ? v.bits : bits;
        tt_arena_reset(&ctx->scratch, mark);
    }
    worst.bits = bits;
    if (any && !ctx->status) tt_report_add(r, &worst, NULL, NULL);
    if (!refusals || ctx->status) return;
    snprintf(refused.hint + strlen(refused.hint), sizeof refused.hint
             - strlen(refused.hint), " (%lld of %lld shapes)",
             (long long)refusals, (long long)(any + refusals));
    tt_report_add(r, &refused, NULL, NULL);
}

/* All kinds of input, then large sizes. */
static void check_op(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const tt_opcheck_options *opt, op_kind op)
{
    candidate_tally n = {0};
    watch *w = r ? r->watch : NULL;
    for (int in = 0; in <= IN_KINDS && !ctx->status; in++) {
        const bool large = in == IN_KINDS;
        const check k = {.ctx = ctx, .ops = ops, .arith = opt->arith,
                         .at = {.op = op, .in = large ? IN_NORMAL
                                                      : (op_input)in},
                         .large = large, .tally = &n, .watch = w};
        if (large && opt->small) continue;
        if (input_applies(op, k.at.in) && watch_may(w, op)
            && watch_enter(w, PART_OPERATORS, op * (IN_KINDS + 1) + in))
            check_kind(&k, r, opt->seed, large ? INT64_MAX : opt->rounds);
        tt_check_interrupt(ctx);
    }
    candidate_note(r, op, &n, "cases");
}

/* The one case of this name, as it is. */
static tt_status check_one(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                           const tt_opcheck_options *opt)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    candidate_tally n = {0};
    tt_verdict v = {0};
    candidate_call c;
    check k = {.ctx = ctx, .ops = ops, .arith = opt->arith,
               .tally = &n, .watch = r ? r->watch : NULL};
    if (!op_case_read(&k.at, opt->one))
        return tt_fail(ctx, TT_EINVAL, "\"%s\" is no case of the operator "
                       "checks; expected a name as reports and --list give it, "
                       "\"op.silu.normal n=1 seed 1\"", opt->one);
    if (!watch_enter(k.watch, PART_OPERATORS, 0)) return ctx->status;
    opcheck_run(&k, &c, &v, true);
    if (!ctx->status && v.outcome == TT_MISMATCH)
        put_failure(&k, r, &v, &c);
    else if (!ctx->status)
        tt_report_add(r, &v, NULL, NULL);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}

tt_status tt_opcheck(tt_ctx *ctx, tt_report *r, const tt_ops *ops,
                     const tt_opcheck_options *opt)
{
    bool any = false;
    watched table;
    TT_TRY(ctx->status);
    const tt_ops *theirs = ops;
    ops = watched_make(&table, r, theirs);
    if (r) r->apart = true;
    if (opt->one) return check_one(ctx, r, ops, opt);
    for (int op = 0; op < OP_KINDS; op++) {
        if (opt->only && strcmp(opt->only, op_name((op_kind)op))) continue;
        any = true;
        if (opt->only || ops_own(theirs, (op_kind)op))
            check_op(ctx, r, ops, opt, (op_kind)op);
    }
    if (!any)
        return tt_fail(ctx, TT_EINVAL, "no operator is called \"%s\"; see "
                       "include/tether/ops.h for their names", opt->only);
    return ctx->status;
}

tt_status tt_opcheck_list(tt_ctx *ctx, const tt_opcheck_options *opt,
                          tt_case_fn fn, void *user)
{
    TT_TRY(ctx->status);
    for (int i = 0; i < OP_KINDS * (IN_KINDS + 1); i++) {
        const op_kind op = (op_kind)(i / (IN_KINDS + 1));
        const bool large = i % (IN_KINDS + 1) == IN_KINDS;
        const op_input in = large ? IN_NORMAL : (op_input)(i % (IN_KINDS + 1));
        char name[OP_CASE_NAME];
        op_case c;
        if (!input_applies(op, in) || (large && opt->small)) continue;
        for (int64_t k = 0; (large || k < opt->rounds)
                            && op_case_round(&c, op, in, opt->seed, large, k);
             k++) {
            op_case_name(name, sizeof name, &c);
            fn(user, op_name(op), name);
        }
    }
    return ctx->status;
}
