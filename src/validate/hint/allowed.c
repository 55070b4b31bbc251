/* allowed.c: what a backend does that it may declare: "+ftz" and its like.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A result that is right as soon as one such word is said is no mistake but a
 * word that is missing; the hint says which. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/operators/candidate.h"

/* What of a wide limit its own program makes use of. */
#define USED 0.4

/* How much of the limits of arithmetic `a` does it use, as the call q? */
static double used(tt_ctx *ctx, const op_call *q, const tt_arith *a,
                   const double *got, const tt_verdict *v)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_verdict other = {.rank = v->rank};
    double *want = tt_alloc(ctx, &ctx->scratch, n, sizeof *want, "allowed");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "allowed");
    memcpy(other.dim, v->dim, sizeof other.dim);
    if (!ctx->status) call_wanted(ctx, q, a, want);
    if (!ctx->status) call_emulate(ctx, q, a, want, NULL, e);
    if (!ctx->status)
        tt_verdict_check(&other, a, got, want, e, n, TT_OF_CALL);
    const bool right = !ctx->status && other.outcome == TT_PASS;
    tt_arena_reset(&ctx->scratch, mark);
    return right ? other.ratio : INFINITY;
}

/* The same call with its bias rounded to the format of products; false: it has
 * none. */
static bool round_bias(tt_ctx *ctx, op_call *q, tt_format f)
{
    const bool conv = q->kind == OP_CONV;
    const tt_real *b = conv ? q->conv.b : q->kind == OP_LINEAR ? q->b : NULL;
    const int64_t n = conv ? q->conv.Cout : b ? q->w->dim[0] : 0;
    tt_real *y = b ? tt_scratch(ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++)
        y[i] = (tt_real)tt_format_round(f, (float)b[i]);
    if (conv) q->conv.b = y;
    else q->b = y;
    return y;
}

/* One word: is it missing, and all that is? A rounded bias is tried as such:
 * a limit that knows of it would hide other small faults. */
static bool misses(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                   unsigned word, const double *got, const tt_verdict *v)
{
    const tt_arith *a = tt_arith_allow(arith, word);
    op_call own = *q;
    if (!a || arith->allows & word) return false;
    if (word == TT_ALLOW_SATURATE && a->product != TT_FMT_F16) return false;
    if (word == TT_ALLOW_WINOGRAD && q->kind != OP_CONV) return false;
    if (word != TT_ALLOW_BIAS)
        return used(ctx, q, a, got, v)
               <= (word == TT_ALLOW_WINOGRAD ? USED : 1);
    return round_bias(ctx, &own, arith->product)
           && used(ctx, &own, arith, got, v) <= 1;
}

bool hint_allowed(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *got, tt_verdict *v, bool last)
{
    static const struct {
        unsigned word;
        bool last;                   /* its limits are wide: tried at last    */
        const char *what;
    } list[] = {
        {TT_ALLOW_FTZ, false, "denormal numbers are flushed to 0"},
        {TT_ALLOW_BIAS, false, "the bias is rounded as inputs of products are"},
        {TT_ALLOW_SATURATE, false, "f16 saturates at 65504"},
        {TT_ALLOW_WINOGRAD, true, "no worse than Winograd's method"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list && !ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        const bool is = list[i].last == last
                        && misses(ctx, q, arith, list[i].word, got, v);
        tt_arena_reset(&ctx->scratch, mark);
        if (!is) continue;
        snprintf(v->hint, sizeof v->hint, "%s; if that is meant, declare "
                 "--arith %s", list[i].what,
                 tt_arith_allow(arith, list[i].word)->name);
        return true;
    }
    return false;
}
