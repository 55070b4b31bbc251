/* rounding.c: inputs in a narrower format, and numbers that are cut.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "validate/hint/hint.h"

/* ---- inputs in a narrower format ----------------------------------------- */

enum { INPUT = ROLE_INPUT, WEIGHT = ROLE_WEIGHT };

static tt_real in_format(int f, tt_real x)
{
    return (tt_real)tt_format_round((tt_format)f, (float)x);
}

/* Has the call operands of all these roles? */
static bool has_roles(const op_call *q, int roles)
{
    op_operands l;
    call_operands(q, &l);
    for (int i = 0; i < l.n; i++)
        if (operand_at(&l.of[i])) roles &= ~l.of[i].role;
    return !roles;
}

/* The call with its input, its weight, or both rounded. */
static void try_rounded(hint *h, tt_format f, int which, const char *format)
{
    static const char *const what[][4] = {
        {"", "the input is", "the weight is", "the inputs are"},
        {"", "Q is", "K and V are", "the inputs are"}};
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    op_call own;
    if (!has_roles(h->q, which)) return;
    call_map(h->ctx, &own, h->q, which, in_format, f);
    hint_try_call(h, &own, "%s rounded to %s",
                  what[own.kind == OP_ATTENTION][which], format);
    tt_arena_reset(&h->ctx->scratch, mark);
}

void hint_rounding(hint *h)
{
    static const struct { tt_format f; const char *name; } formats[] = {
        {TT_FMT_BF16, "bf16"}, {TT_FMT_TF32, "tf32 or f16"},
        {TT_FMT_F16, "f16"}};
    for (int i = 0; i < 3; i++)
        for (int which = WEIGHT | INPUT; which >= INPUT; which--)
            if (!hint_settled(h))
                try_rounded(h, formats[i].f, which, formats[i].name);
}

/* ---- cut where it should be rounded -------------------------------------- */

/* What is cut, added up; `EXACT`: inputs are neither cut nor rounded. */
enum { CUT_INPUT = INPUT, CUT_WEIGHT = WEIGHT, CUT_RESULTS = 4, EXACT = 8 };

static const int trials[] = {
    CUT_RESULTS, CUT_INPUT | CUT_WEIGHT, CUT_INPUT | CUT_WEIGHT | CUT_RESULTS,
    CUT_RESULTS | EXACT, CUT_INPUT, CUT_WEIGHT};
enum { TRIALS = sizeof trials / sizeof *trials };

static tt_format cut_of(tt_format f)
{
    return f == TT_FMT_BF16 ? TT_FMT_BF16_CUT
         : f == TT_FMT_F16 ? TT_FMT_F16_CUT : f;
}

/* Is there something that the operator could cut so? */
static bool can_cut(const op_call *q, const tt_arith *arith, int which)
{
    const bool stores = arith->stored != TT_FMT_F32;
    return cut_of(arith->product) != arith->product
           && (stores || (q->kind <= OP_CONV
                          && !(which & (CUT_RESULTS | EXACT))));
}

/* The call by the plain program of that arithmetic, which cuts (0: which does
 * not). False: there is nothing that it could. */
static bool cut_call(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                     int which, double *out)
{
    const tt_format f = cut_of(arith->product);
    const int inputs = which & (CUT_INPUT | CUT_WEIGHT);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_arith own = {
        .product = which & EXACT ? TT_FMT_F32
                   : inputs == (CUT_INPUT | CUT_WEIGHT) ? f : arith->product,
        .stored = which & CUT_RESULTS ? cut_of(arith->stored) : arith->stored,
        .allows = TT_ALLOW_FUSED};
    tt_ops table = *tt_arith_ops(arith);
    op_call cut;
    table.self = (void *)(uintptr_t)&own;
    if (!can_cut(q, arith, which)
        || (inputs == CUT_WEIGHT && !has_roles(q, inputs)))
        return false;
    call_map(ctx, &cut, q, inputs, in_format, f);
    if (!ctx->status) call_double(ctx, &table, &cut, out);
    tt_arena_reset(&ctx->scratch, mark);
    return !ctx->status;
}

static void say_cut(char *out, size_t size, const op_call *q,
                    const tt_arith *arith, int which)
{
    const bool attention = q->kind == OP_ATTENTION;
    const char *const what[] = {
        "", attention ? "inputs (Q)" : "inputs",
        attention ? "inputs (K and V)" : "weights", "inputs", "results", "", "",
        "inputs and results"};
    snprintf(out, size, "%s %s are cut, not rounded", arith->product
             == TT_FMT_BF16 ? "bf16" : "f16", what[which & ~EXACT]);
}

/* got seen from a program that rounds: how much of the way to one that cuts it
 * is (1: all of it), and the part of the distance, squared, that is left from
 * there. */
typedef struct way {
    double share, left;
    int64_t n;
} way;

/* Who rounds, or rounds in other places, goes none of the way, who is more
 * precise a quarter; chance makes one over the root of n of it. */
#define SHARE 0.6
#define CHANCE_MOST 0.3
#define LEFT_MOST 0.5
enum { LEAST = 32 };       /* values                                          */

/* Bits that chance would have to guess: values that are independent of cut
 * leave the part L of the squares with a probability of L^(m/2), m of them. */
#define BITS_LEAST 20

static way rounding_measure(const double *got, const double *even,
                            const double *cut, int64_t n)
{
    double gd = 0, dd = 0, gg = 0, left = 0;
    way w = {0, INFINITY, 0};
    for (int64_t i = 0; i < n; i++) {
        const double g = got[i] - even[i], d = cut[i] - even[i];
        if (!isfinite(g) || !isfinite(d)) continue;
        gd += g * d;
        dd += d * d;
        gg += g * g;
        left += (g - d) * (g - d);
        w.n++;
    }
    if (dd > 0 && gg > 0) w.share = gd / dd, w.left = left / gg;
    return w;
}

typedef struct value {
    double even, d2;
} value;

static int rounding_by_value(const void *a, const void *b)
{
    const double x = ((const value *)a)->even, y = ((const value *)b)->even;
    return (x > y) - (x < y);
}

/* How many values carry the distance of cut from even: those of equal inputs
 * are one, and of a few that are larger by far the others count for nothing. */
static double weighty(tt_ctx *ctx, const double *even, const double *cut,
                      int64_t n)
{
    double sum = 0, squares = 0;
    int64_t m = 0;
    value *v = tt_alloc(ctx, &ctx->scratch, n, sizeof *v, "values");
    for (int64_t i = 0; v && i < n; i++) {
        const double d = cut[i] - even[i];
        if (isfinite(d)) v[m++] = (value){even[i], d * d};
    }
    if (m) qsort(v, (size_t)m, sizeof *v, rounding_by_value);
    for (int64_t i = 0; i < m; i++) {
        if (i > 0 && v[i].even == v[i - 1].even) continue;
        sum += v[i].d2;
        squares += v[i].d2 * v[i].d2;
    }
    return squares > 0 ? sum * sum / squares : 0;
}

/* How many numbers are cut: two of them make two errors, in however many
 * results these are seen. So do two that got rounds and `EXACT` does not. Where
 * two keys share a query's attention, Q moves all its results along one line:
 * a query of a head counts as one number. */
static int64_t rounding_numbers(const op_call *q, int which)
{
    const tt_attention_args *a = &q->attn;
    const tt_conv_args *p = &q->conv;
    int64_t x = q->n * q->c, w = q->c;
    if (q->kind == OP_LINEAR)
        x = q->n * q->w->dim[1], w = tt_tensor_count(q->w);
    if (q->kind == OP_ATTENTION)
        x = a->T * a->H * (which & CUT_WEIGHT ? a->D : 1),
        w = a->N * a->H * a->D;
    if (q->kind == OP_CONV)
        x = p->kt * p->Hi * p->Wi * p->Cin, w = tt_tensor_count(p->w);
    int64_t n = call_count(q);
    if (which & (CUT_INPUT | EXACT) && x < n) n = x;
    if (which & (CUT_WEIGHT | EXACT) && w < n
        && (q->kind <= OP_CONV || q->a)) n = w;
    return n;
}

static double guessed(double left, double values)
{
    return values / 2 * log2(1 / fmax(left, 1.0 / 256));
}

bool hint_cut_make(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                   hint_cuts *c)
{
    const int64_t n = call_count(q);
    *c = (hint_cuts){.n = 0};
    if (cut_of(arith->product) == arith->product || arith->bits || n < LEAST)
        return false;
    double *even[2] = {tt_alloc(ctx, &ctx->scratch, n, sizeof **even, "cut"),
                       tt_alloc(ctx, &ctx->scratch, n, sizeof **even, "cut")};
    if (!ctx->status) cut_call(ctx, q, arith, 0, even[0]);
    if (!ctx->status) cut_call(ctx, q, arith, EXACT, even[1]);
    for (int i = 0; i < TRIALS && !ctx->status; i++) {
        double *cut = tt_alloc(ctx, &ctx->scratch, n, sizeof *cut, "cut");
        if (!cut || !cut_call(ctx, q, arith, trials[i], cut)) continue;
        c->even[c->n] = even[trials[i] & EXACT ? 1 : 0];
        c->trial[c->n] = trials[i];
        c->cut[c->n++] = cut;
    }
    return !ctx->status && c->n;
}

double hint_cut_numbers(tt_ctx *ctx, const op_call *q, const hint_cuts *c,
                        int i)
{
    return fmin(weighty(ctx, c->even[i], c->cut[i], call_count(q)),
                (double)rounding_numbers(q, c->trial[i]));
}

bool hint_is_cut(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                 const double *got, tt_verdict *v)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double best = LEFT_MOST;
    bool is = false;
    hint_cuts c;
    hint_cut_make(ctx, q, arith, &c);
    for (int i = 0; i < c.n && !ctx->status; i++) {
        const way w = rounding_measure(got, c.even[i], c.cut[i], call_count(q));
        const double share = SHARE + fmin(4 / sqrt((double)w.n), CHANCE_MOST);
        if (!(w.share > share) || w.share > 2 - SHARE || !(w.left < best)
            || guessed(w.left, hint_cut_numbers(ctx, q, &c, i)) < BITS_LEAST)
            continue;
        is = true;
        best = w.left / 2;               /* less only if it is clearly less */
        v->outcome = TT_MISMATCH;
        v->ratio = fmax(v->ratio, w.share / share);
        say_cut(v->hint, sizeof v->hint, q, arith, c.trial[i]);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return is;
}
