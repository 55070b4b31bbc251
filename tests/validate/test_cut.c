/* test_cut.c: who cuts to 16 bits instead of rounding is found and named, in
 * the inputs or the results of any operator; who rounds is not.
 *
 *   test_cut                     each operator once
 *   test_cut SEEDS [ARITH]       rounding alone, so many seeds
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "validate/operators/call.h"
#include "validate/report/report.h"

static tt_ctx *ctx;

#ifdef TT_REAL_DOUBLE
int main(void)
{
    ctx = test_begin("validate/cut");
    printf("note: operators are judged in the float build\n");
    expect(tt_arith_find("bf16") != NULL, "arithmetics");
    return test_end();
}
#else

/* The formats of what an operator reads and what it gives. Weights: K and V of
 * attention too. */
static tt_format of_inputs, of_weights, of_results;

static const tt_real *converted(tt_ctx *c, const tt_real *x, int64_t n,
                                tt_format f)
{
    tt_real *y = x && n > 0 ? tt_scratch(c, n) : NULL;
    for (int64_t i = 0; y && i < n; i++) y[i] = tt_format_round(f, x[i]);
    return y;
}

static const tt_tensor *converted_weight(tt_ctx *c, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    tt_tensor *t = tt_alloc(c, &c->scratch, 1, sizeof *t, "a weight");
    tt_real *x = tt_scratch(c, n);
    if (!t || !x) return w;
    tt_widen_at(x, w, 0, n);
    *t = tt_tensor_make(converted(c, x, n, of_weights), TT_F32, w->rank,
                        w->dim);
    t->native = true;
    return t;
}

static void convert_rows(tt_ctx *c, op_call *q)
{
    const int64_t n = q->n * q->c;
    const int64_t groups = q->rows ? (q->n + q->rows - 1) / q->rows : 1;
    const int64_t table = (groups - 1) * q->stride + q->c;
    q->x = converted(c, q->x, n, of_inputs);
    q->y = converted(c, q->y, n, of_inputs);
    if (q->kind != OP_LINEAR) q->a = converted(c, q->a, table, of_weights);
    if (q->kind != OP_LINEAR) q->b = converted(c, q->b, table, of_weights);
}

/* What it reads, in the format of inputs. */
static void convert(tt_ctx *c, op_call *q)
{
    tt_attention_args *a = &q->attn;
    tt_conv_args *p = &q->conv;
    if (q->kind == OP_ATTENTION) {
        const int64_t row = a->H * a->D;
        a->q = converted(c, a->q, (a->T - 1) * a->q_stride + row, of_inputs);
        a->k = converted(c, a->k, (a->N - 1) * a->kv_stride + row, of_weights);
        a->v = converted(c, a->v, (a->N - 1) * a->kv_stride + row, of_weights);
    } else if (q->kind == OP_CONV) {
        const tt_real **frame = tt_alloc(c, &c->scratch, p->kt, sizeof *frame,
                                         "frames");
        for (int i = 0; frame && i < p->kt; i++)
            frame[i] = converted(c, p->frame[i], p->Hi * p->Wi * p->Cin,
                                 of_inputs);
        p->frame = frame;
        p->w = converted_weight(c, p->w);
    } else {
        convert_rows(c, q);
        if (q->kind == OP_LINEAR) q->w = converted_weight(c, q->w);
    }
}

static void run(tt_ctx *c, op_kind kind, const void *args)
{
    op_call q;
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *out = call_take(&q, kind, args);
    convert(c, &q);
    call_run(c, tt_ops_default(), &q, out);
    for (int64_t i = 0; !call_out_is_double(&q) && i < call_count(&q); i++)
        out[i] = tt_format_round(of_results, out[i]);
    tt_arena_reset(&c->scratch, mark);
}

#define RUN(op, OP)                                                            \
    static void run_##op(tt_ctx *c, const tt_##op##_args *a)                   \
    {                                                                          \
        run(c, OP_##OP, a);                                                    \
    }
TT_OPS(RUN)

static tt_report *checked(const char *arith, const char *op, uint64_t seed)
{
    const tt_arith *a = tt_arith_find(arith);
    tt_ops t = *tt_ops_default();
    tt_report *r = NULL;
    t.of_class = NULL;
    t.packed = NULL;
#define ENTRY(op, OP) t.op = run_##op;
    TT_OPS(ENTRY)
    if (expect_ok(tt_report_new(ctx, &r, arith, a), "report"))
        expect_ok(tt_opcheck(ctx, r, &t, &(tt_opcheck_options){
            .arith = a, .seed = seed, .rounds = 8, .only = op}), op);
    return r;
}

static tt_format cut_of(tt_format f)
{
    return f == TT_FMT_BF16 ? TT_FMT_BF16_CUT
         : f == TT_FMT_F16 ? TT_FMT_F16_CUT : f;
}

/* Products round what they read; other operators read what was stored. */
static tt_format inputs_of(const tt_arith *a, const char *op)
{
    for (int i = OP_LINEAR; i <= OP_CONV; i++)
        if (!strcmp(op, op_name((op_kind)i))) return a->product;
    return TT_FMT_F32;
}

static void rounds(const tt_arith *a, const char *op, uint64_t seed)
{
    of_inputs = of_weights = inputs_of(a, op);
    of_results = a->stored;
    tt_report *r = checked(a->name, op, seed);
    const tt_verdict *f = tt_report_first(r);
    expect(!f, "%s, %s rounds: false alarm at %s, %.3g times: %s", a->name, op,
           f ? f->path : "", f ? f->ratio : 0, f ? f->hint : "");
    tt_report_free(r);
}

static const char *format_name(const tt_arith *a)
{
    return a->product == TT_FMT_BF16 ? "bf16" : "f16";
}

/* What is cut is found, and named so. */
static void named(const tt_arith *a, const char *op, const char *what)
{
    char words[80];
    snprintf(words, sizeof words, "%s %s are cut, not rounded", format_name(a),
             what);
    tt_report *r = checked(a->name, op, 1);
    const tt_verdict *f = tt_report_first(r);
    const verdict_item *i = r->first;
    while (i && !strstr(i->v.hint, words)) i = i->next;
    /* f16 that is cut saturates as well, where numbers are huge */
    const bool is = f && (a->product == TT_FMT_F16
                          ? i != NULL : strstr(f->hint, words) != NULL);
    expect(is, "%s, %s: '%s' expected, not %s: %s", a->name, op, words,
           f ? f->path : "PASS", f ? f->hint : "");
    tt_report_free(r);
}

static void cuts(const tt_arith *a, const char *op, bool inputs, bool results)
{
    of_inputs = inputs ? cut_of(a->product) : inputs_of(a, op);
    of_weights = of_inputs;
    of_results = results ? cut_of(a->stored) : a->stored;
    named(a, op, results ? inputs ? "inputs and results" : "results"
                         : "inputs");
}

/* One side of the products alone, the other one rounded. */
static void cuts_side(const tt_arith *a, const char *op, bool weights)
{
    const bool attention = !strcmp(op, op_name(OP_ATTENTION));
    of_inputs = weights ? a->product : cut_of(a->product);
    of_weights = weights ? cut_of(a->product) : a->product;
    of_results = a->stored;
    named(a, op, weights ? attention ? "inputs (K and V)" : "weights"
                         : attention ? "inputs (Q)" : "inputs");
}

static const char *const arithmetics[] = {"bf16", "f16", "bf16-stored",
                                          "f16-stored"};

int main(int argc, char **argv)
{
    const int64_t seeds = argc > 1 ? atoi(argv[1]) : 1;
    ctx = test_begin("validate/cut");
    for (int i = 0; i < 4; i++) {
        const tt_arith *a = tt_arith_find(arithmetics[i]);
        const bool stored = a->stored != TT_FMT_F32;
        if (argc > 2 && strcmp(argv[2], a->name)) continue;
        for (int op = 0; op < OP_KINDS; op++) {
            const char *name = op_name((op_kind)op);
            const bool twice = op == OP_COL_MEAN || op == OP_COL_MOMENT;
            for (int64_t s = 1; s <= seeds; s++) rounds(a, name, (uint64_t)s);
            if (argc > 1 || (!stored && op > OP_CONV)) continue;
            cuts(a, name, true, false);
            if (a->product == TT_FMT_BF16 && op <= OP_CONV) {
                cuts_side(a, name, false);
                cuts_side(a, name, true);
            }
            if (stored && !twice) cuts(a, name, false, true);
            if (stored && !twice) cuts(a, name, true, true);
        }
    }
    return test_end();
}
#endif
