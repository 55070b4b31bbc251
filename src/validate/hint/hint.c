/* hint.c: what a mistake looks like.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here is looked up by the name of an operator and printed: a mistake
 * is imitated on the same inputs (or on the right result), and it is named only
 * when the imitation leaves next to nothing of the error. Explained means that
 * the largest difference left is a few times what the arithmetic may err, or
 * that the rms left is 20 times smaller than without; in any case 3 times.
 * Among explanations the one that leaves least wins; one that leaves half as
 * much as an earlier one is better, anything closer is a tie and the earlier,
 * simpler one stays. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/chain.h"

#define TIMES_EARNED 4   /* what an explanation may leave, in units of earned */
#define TIMES_SMALLER 20
#define LEAST_SMALLER 3
#define FEWEST 8         /* results of a call, that explain anything else     */
#define TRIALS_WORK ((int64_t)1 << 33)

double *hint_doubles(hint *h, int64_t n)
{
    return tt_alloc(h->ctx, &h->ctx->scratch, n, sizeof(double), "hint");
}

typedef struct residue {
    double rms, max;
    int64_t n;
} residue;

/* Of got against trial; with `mask` only where it is set. */
static residue hint_measure(const hint *h, const double *trial,
                            const bool *mask)
{
    residue r = {0};
    for (int64_t i = 0; i < h->n; i++) {
        if (mask && !mask[i]) continue;
        const double d = value_distance(h->got[i], trial[i]);
        if (d > r.max) r.max = d;
        r.n++;
    }
    if (r.max == 0 || !isfinite(r.max)) {
        r.rms = r.max;
        return r;
    }
    for (int64_t i = 0; i < h->n; i++) {
        if (mask && !mask[i]) continue;
        const double d = value_distance(h->got[i], trial[i]) / r.max;
        r.rms += d * d;
    }
    /* over all elements in both cases, so that the two can be compared */
    r.rms = r.max * sqrt(r.rms / (double)h->n);
    return r;
}

static bool explains(const hint *h, const residue *r)
{
    if (!(r->rms * LEAST_SMALLER <= h->error) || (h->q && h->n < FEWEST))
        return false;
    return r->max <= TIMES_EARNED * h->earned ||
           r->rms * TIMES_SMALLER <= h->error;
}

bool hint_settled(const hint *h)
{
    if (h->end) return h->chain->budget <= 0 || hint_settled(h->end);
    return h->ctx->status ||
           (h->fits && !h->partly && h->best <= h->earned);
}

/* One trial more of a chain. */
static void spend(hint *h)
{
    h->chain->tried++;
    h->chain->budget -= h->chain->work;
    tt_check_interrupt(h->ctx);
}

/* Would a tensor with this mistake pass? */
static void try_blind(const hint *end, const chain *c, const char *fmt,
                      va_list args)
{
    char of[48], what[160];
    const chain_blind *b = c->blind;
    tt_verdict v = *b->v;
    double off = 0, size = 0;
    for (int64_t i = 0; i < end->n; i++) {
        off = fmax(off, fabs(end->trial[i] - end->want[i]));
        size = fmax(size, fabs(end->want[i]));
    }
    if (!(off > 0x1p-19 * size)) return; /* these inputs have nothing of it,
                                            or it is another order of sums */
    tt_verdict_check(&v, b->arith, end->trial, end->want, b->emul, end->n,
                     TT_OF_SEGMENT);
    if (v.outcome != TT_PASS) return;
    vsnprintf(what, sizeof what, fmt, args);
    chain_link_name(c, c->at, c->together, of, sizeof of);
    b->unseen(b->user, of, what);
}

static void try_args(hint *h, const double *trial, const char *fmt,
                     va_list args)
{
    if (h->ctx->status) return;
    if (h->end) {
        /* of several calls only a fault can be imitated */
        if (h->chain->together && !h->fault) return;
        spend(h);
        if (!chain_end(h->chain, trial, h->fault, h->end->trial)) return;
        if (h->chain->blind) try_blind(h->end, h->chain, fmt, args);
        else try_args(h->end, h->end->trial, fmt, args);
        return;
    }
    residue r = hint_measure(h, trial, NULL);
    bool partly = false;
    if (!explains(h, &r)) {
        /* A mistake made in one head, or beyond some size only. A handful of
         * elements can be explained by anything. */
        if (h->nwrong < 8 || h->nwrong == h->n) return;
        for (int64_t i = 0; i < h->n; i++)
            if (isfinite(h->got[i]) && !isfinite(trial[i])) return;
        r = hint_measure(h, trial, h->wrong);
        if (!explains(h, &r)) return;
        partly = true;
    }
    if (h->fits && (partly || !h->partly)) {
        const double floor = h->earned / 8;
        if (partly && !h->partly) return;
        if (!(fmax(r.rms, floor) * 2 < h->best)) return;
    }
    h->fits = true;
    h->partly = partly;
    h->best = r.rms;
    vsnprintf(h->text, sizeof h->text, fmt, args);
}

void hint_try(hint *h, const double *trial, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    try_args(h, trial, fmt, args);
    va_end(args);
}

void hint_try_plain(hint *h, const op_call *q, const void *fault,
                    const char *fmt, ...)
{
    va_list args;
    if (hint_settled(h)) return;
    plain_call(h->ctx, q, fault, h->trial);
    h->fault = fault;
    va_start(args, fmt);
    try_args(h, h->trial, fmt, args);
    va_end(args);
    h->fault = NULL;
}

double hint_left(hint *h, const op_call *q, const void *fault)
{
    if (hint_settled(h)) return INFINITY;
    plain_call(h->ctx, q, fault, h->trial);
    if (h->ctx->status) return INFINITY;
    if (!h->end) return hint_measure(h, h->trial, NULL).rms;
    spend(h);
    return chain_end(h->chain, h->trial, fault, h->end->trial)
               ? hint_measure(h->end, h->end->trial, NULL).rms : INFINITY;
}

bool hint_solve(hint *h, hint_left_fn left, void *user, double lo, double hi,
                int steps, double *best)
{
    enum { HALVINGS = 32 };
    double least = INFINITY, step = (hi - lo) / steps;
    if (hint_settled(h) || (h->chain && h->chain->blind)) return false;
    for (int i = 0; i <= steps + 2 * HALVINGS; i++) {
        const bool closer = i > steps;
        if (closer && i % 2) step /= 2;
        const double v = !closer ? lo + i * step
                         : *best + (i % 2 ? step : -step);
        const double e = left(h, user, v);
        if (e < least) least = e, *best = v;
    }
    return isfinite(least);
}

void hint_try_each(hint *h, const hint_trial *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].when) hint_try_fault(h, list[i].fault, "%s", list[i].what);
}

int hint_parts(int64_t n, int64_t part[PARTS_MOST])
{
    int count = 0;
    for (int i = 0; i < PARTS_MOST; i++) {
        const int64_t block = (int64_t)4 << i / 3;
        const int64_t p = i == 0 ? 1 : i == 1 ? n / 2
                        : i % 3 == 0 ? n % block : i % 3 == 1 ? n - block
                        : block;
        bool known = p < 1 || p >= n;
        for (int k = 0; k < count; k++) known |= part[k] == p;
        if (!known) part[count++] = p;
    }
    return count;
}

void hint_not_applied(hint *h)
{
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = (double)h->q->x[i];
    hint_try(h, h->trial, "not applied: the output is the input");
}

/* error, top, and which elements are wrong. False when nothing is. */
static bool take_stock(hint *h, int64_t *worst)
{
    double most = 0;
    h->top = 0;
    *worst = 0;
    for (int64_t i = 0; i < h->n; i++) {
        const double d = value_distance(h->got[i], h->want[i]);
        if (d > most) {
            most = d;
            *worst = i;
        }
        if (isfinite(h->want[i])) h->top = fmax(h->top, fabs(h->want[i]));
    }
    /* Rows of larger values may err more than the worst row, the one earned
     * is of: small parts of a large error are not counted. */
    const double limit = fmax(TT_SLACK * h->earned,
                              isfinite(most) ? most / 1024 : h->top * 1e-5);
    h->nwrong = 0;
    for (int64_t i = 0; i < h->n; i++) {
        h->wrong[i] = value_distance(h->got[i], h->want[i]) > limit;
        h->nwrong += h->wrong[i];
    }
    h->error = hint_measure(h, h->want, NULL).rms;
    if (!isfinite(h->error)) h->error = h->top;
    return most > 0;
}

static void families_of_call(hint *h)
{
    switch (h->q->kind) {
    case OP_LINEAR: hint_linear(h); break;
    case OP_ATTENTION: hint_attention(h); break;
    case OP_CONV: hint_conv(h); break;
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
    case OP_CHANNEL_NORM: hint_norm(h); break;
    case OP_ROPE: hint_rope(h); break;
    case OP_COL_MEAN:
    case OP_COL_MOMENT:
    case OP_COL_BLEND: hint_columns(h); break;
    default: hint_pointwise(h); break;
    }
    if (!hint_settled(h) && !(h->chain && h->chain->blind)) hint_rounding(h);
}

static bool hint_search(hint *h, op_call *part, char *out, size_t size)
{
    int64_t worst;
    h->wrong = tt_alloc(h->ctx, &h->ctx->scratch, h->n, sizeof *h->wrong,
                        "hint");
    if (!h->wrong || !take_stock(h, &worst)) return false;
    if (h->q) {
        hint_narrow(h, part, worst);
        if (h->ctx->status || !take_stock(h, &worst)) return false;
    }
    h->trial = hint_doubles(h, h->n);
    if (!h->trial) return false;

    if (h->q && !hint_settled(h)) families_of_call(h);
    if (!hint_settled(h)) hint_values(h);
    if (!hint_settled(h)) hint_order(h);
    if (h->ctx->status) return false;
    if (!h->fits)
        return hint_place(h, out, size) || hint_noise(h, out, size);
    char where[96] = "";
    if (h->partly) hint_where(h, where, sizeof where);
    return snprintf(out, size, "%s%s%s", h->text, where[0] ? ", " : "", where)
        >= 0;
}

/* Every bit counts. What is off in the last places only is no mistake of the
 * families but another sum; false: look there, with room for such a sum. */
static bool wrong_bits(hint *h, char *out, size_t size)
{
    tt_metrics m;
    tt_metrics_measure(&m, h->got, h->want, h->n);
    h->earned = m.top * 0x1p-20;
    if (m.broken || m.max_abs > h->earned) return false;
    snprintf(out, size, "%lld of %lld elements differ, by at most %.3g units "
             "of the last place: another order or rounding of sums",
             (long long)m.differ, (long long)h->n, m.max_ulp);
    return true;
}

bool hint_find(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
               const double *got, const double *want, tt_verdict *v)
{
    hint h = {.ctx = ctx, .got = got, .want = want, .n = 1, .rank = v->rank,
              .earned = v->earned, .name = q ? NULL : v->path};
    const size_t size = sizeof v->hint;
    v->hint[0] = 0;
    if (ctx->status) return false;
    for (int i = 0; i < v->rank; i++) h.n *= h.dim[i] = v->dim[i];
    h.c = v->rank ? v->dim[v->rank - 1] : 1;
    if (h.n == 0) return false;
    op_call part;
    if (arith && arith->bits && wrong_bits(&h, v->hint, size)) return true;
    if (q) {
        part = *q;
        h.q = &part;
    }
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const bool found = hint_search(&h, &part, v->hint, size);
    tt_arena_reset(&ctx->scratch, mark);
    return found;
}

/* ---- a chain of operators ------------------------------------------------ */

/* Ready the mistakes of link i. Its own result is right, as far as a family
 * asks that. False: the end does not depend on it. */
static bool begin_chain(hint *h, hint *end, chain *c, int i)
{
    const chain_link *l = &c->link[i];
    *h = (hint){.ctx = end->ctx, .q = &l->q, .n = call_count(&l->q),
                .earned = end->earned, .chain = c, .end = end};
    double *ours = hint_doubles(h, h->n);
    h->trial = hint_doubles(h, h->n);
    h->wrong = tt_alloc0(h->ctx, &h->ctx->scratch, h->n, sizeof *h->wrong,
                         "hint");
    if (h->ctx->status || !h->n) return false;
    for (int64_t k = 0; k < h->n; k++)
        ours[k] = call_out_is_double(&l->q)
                      ? ((const double *)(const void *)l->out)[k]
                      : (double)((const tt_real *)(const void *)l->out)[k];
    h->got = h->want = ours;
    /* the last link's result is theirs, that of others is not known */
    if (l->out_was == c->end_was && h->n == end->n)
        h->got = end->got, h->wrong = end->wrong;
    h->rank = call_shape(&l->q, h->dim);
    h->c = h->dim[h->rank - 1];
    for (int64_t k = 0; k < h->n; k++)
        if (isfinite(ours[k])) h->top = fmax(h->top, fabs(ours[k]));
    c->at = i;
    c->together = false;
    if (!chain_end(c, ours, NULL, end->trial)) return false;
    return hint_measure(end, end->trial, NULL).rms <= end->error * 1.5;
}

/* The mistakes of one link; whether one explains more than all before. */
static bool link_explains(hint *end, chain *c, int i, bool together,
                          const char *name, int stage)
{
    hint h;
    const tt_arena_mark mark = tt_arena_here(&end->ctx->scratch);
    const double before = end->fits ? end->best : INFINITY;
    if (begin_chain(&h, end, c, i)) {
        const bool read = h.q->kind == OP_ATTENTION;
        c->together = together;
        if (stage > OTHER_STAGES) hint_damage(&h);
        else if (stage) hint_other(&h, name, stage);
        else if (!read) hint_model(&h, name); /* says more than a family */
        if (!stage && !hint_settled(&h)) families_of_call(&h);
        if (!stage && read && !together) hint_model(&h, name);
    }
    tt_arena_reset(&end->ctx->scratch, mark);
    return end->fits && end->best < before;
}

/* Does the end depend on link i? */
static bool leads(hint *end, chain *c, int i)
{
    hint h;
    const tt_arena_mark mark = tt_arena_here(&end->ctx->scratch);
    const bool does = begin_chain(&h, end, c, i);
    tt_arena_reset(&end->ctx->scratch, mark);
    return does;
}

/* A port has a mistake in its function, so in all calls of it: the first of
 * several of its kind that lead to the end, when i is the last; -1: it is not.
 */
static int first_of_many(hint *end, chain *c, int i)
{
    int first = -1;
    for (int k = 0; k < c->n; k++) {
        if (c->link[k].q.kind != c->link[i].q.kind || !leads(end, c, k))
            continue;
        if (k > i) return -1;
        if (first < 0) first = k;
    }
    return first < i && leads(end, c, i) ? first : -1;
}

/* The named tensor at the end of c, with ours in `want`. */
static void begin_end(hint *end, tt_ctx *ctx, const chain *c,
                      const tt_verdict *v, const double *got)
{
    *end = (hint){.ctx = ctx, .got = got, .n = 1, .rank = v->rank,
                  .earned = v->earned};
    for (int i = 0; i < v->rank; i++) end->n *= end->dim[i] = v->dim[i];
    end->c = v->rank ? v->dim[v->rank - 1] : 1;
    double *want = hint_doubles(end, end->n);
    end->want = want;
    end->trial = hint_doubles(end, end->n);
    end->wrong = tt_alloc(ctx, &ctx->scratch, end->n, sizeof *end->wrong,
                          "hint");
    for (int64_t i = 0; !ctx->status && i < end->n; i++)
        want[i] = c->end_size == 8
                      ? ((const double *)(const void *)c->end)[i]
                      : (double)((const float *)(const void *)c->end)[i];
}

void hint_blind(tt_ctx *ctx, chain *c, const chain_blind *b)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    hint end, h;
    c->blind = b;
    begin_end(&end, ctx, c, b->v, NULL);
    end.got = end.want;
    for (int i = 0; i < c->n && !ctx->status; i++) {
        const tt_arena_mark here = tt_arena_here(&ctx->scratch);
        if (begin_chain(&h, &end, c, i)) families_of_call(&h);
        tt_arena_reset(&ctx->scratch, here);
    }
    c->blind = NULL;
    tt_arena_reset(&ctx->scratch, mark);
}

bool hint_chain(tt_ctx *ctx, chain *c, const char *name, const double *got,
                const tt_verdict *v, char *out, size_t size)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char of[48] = "", where[96] = "";
    int64_t worst;
    hint end;
    begin_end(&end, ctx, c, v, got);
    end.name = name;
    const bool wrong = !ctx->status && take_stock(&end, &worst);
    if (wrong) {
        for (int64_t k = 0; k < end.n; k++) end.trial[k] = 0;
        hint_try(&end, end.trial, "zero (not computed?)");
    }
    if (wrong) {
        c->budget = TRIALS_WORK;
        if (!end.fits) hint_other_block(&end, c);
        if (!end.fits) hint_stored(&end, c);
    }
    if (wrong)
        for (int i = c->n - 1; i >= 0 && !hint_settled(&end); i--) {
            const int first = first_of_many(&end, c, i);
            if (first >= 0 && link_explains(&end, c, first, true, name, 0))
                chain_link_name(c, first, true, of, sizeof of);
            if (!hint_settled(&end)
                && link_explains(&end, c, i, false, name, 0))
                chain_link_name(c, i, false, of, sizeof of);
        }
    /* what says more of a mistake goes before what may stand for it */
    const bool again = wrong && (!end.fits || end.partly);
    for (int stage = 1; again && stage <= OTHER_STAGES + 1; stage++)
        for (int i = c->n - 1; i >= 0 && !hint_settled(&end); i--)
            if (link_explains(&end, c, i, false, name, stage))
                chain_link_name(c, i, false, of, sizeof of);
    if (end.fits && end.partly) hint_where(&end, where, sizeof where);
    if (end.fits)
        snprintf(out, size, "%s%s%.125s%s%s", of, *of ? ": " : "", end.text,
                 *where ? ", " : "", where);
    tt_arena_reset(&ctx->scratch, mark);
    return end.fits && !ctx->status;
}
