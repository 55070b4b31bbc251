/* pair.c: one tensor of two dumps.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   what follows from a pick that the arithmetic could have made the
 *         other way is checked as far as it agrees; where it does not, it is
 *         neither a pass nor a failure. Whole numbers of one type are compared
 *         by their bytes: a double holds 53 bits of them.
 * Next    history.c, verdict.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/files/named.h"
#include "validate/operators/opcalls.h"

/* Everything about one tensor; the arrays are [n], in scratch. */
typedef struct pair {
    const tt_entry *ours, *theirs;
    double *got, *want, *emul;
    int64_t n;
    const op_call *q;      /* of the operator of a case; NULL: not known      */
    bool loose;   /* our run in the declared arithmetic followed another pick */
} pair;

bool pair_same_shape(const tt_tensor *t, const tt_tensor *u)
{
    if (t->rank != u->rank) return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != u->dim[i]) return false;
    return true;
}

/* ---- reading ------------------------------------------------------------- */

/* NULL when f has no tensor of this name and size. */
static double *read_like(dump_run *d, tt_file *f, const tt_entry *e)
{
    const tt_entry *other = f ? tt_file_find(f, e->name) : NULL;
    if (!other || !tt_dtype_is_real(other->t.dtype)
        || !tt_shape_fits(&other->t, e->t.rank, e->t.dim)) return NULL;
    return tt_read_double(d->ctx, &d->ctx->scratch, &other->t);
}

static tt_format format_of(const tt_arith *a)
{
    return a->stored != TT_FMT_F32 ? a->stored : a->product;
}

/* The type a tensor of theirs was rounded to before it was written, as far as
 * the declared arithmetic knows it; F32 when it was not. */
static tt_format rounded_to(const pair *p, const tt_arith *a)
{
    const tt_format f = format_of(a);
    for (int64_t i = 0; i < p->n; i++)
        if (isfinite(p->got[i])
            && p->got[i] != (double)tt_format_round(f, (float)p->got[i]))
            return TT_FMT_F32;
    return f;
}

/* The same; where they rounded what they wrote, and we went on from that, what
 * follows is known as precisely as that and no better. */
static tt_format precision_of(dump_run *d, const pair *p)
{
    const tt_arith *a = d->limits;
    const tt_format f = rounded_to(p, a);
    const bool given = d->opt->injected && d->rounded > d->exact;
    if (p->n >= 16) (f == TT_FMT_F32 ? &d->exact : &d->rounded)[0]++;
    if (f != TT_FMT_F32 || !given) return f;
    return format_of(a);
}

static void pair_round_all(double *x, int64_t n, tt_format f)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)tt_format_round(f, (float)x[i]);
}

/* A tensor's values in a row, bytes in this machine's order. */
static char *read_bytes(dump_run *d, const tt_tensor *t)
{
    char *data = tt_alloc(d->ctx, &d->ctx->scratch, tt_tensor_bytes(t), 1,
                          "a tensor");
    if (data) tt_gather(data, t);
    return data;
}

/* x0 = x - sigma flow, and x = (1 - sigma) x0 + sigma noise of the x0 before:
 * where terms cancel, rounding them costs more than half a unit of what is
 * left, and the same formula twice of ours does not show it. emul errs at least
 * half a unit of float32 of the terms (src/ops/arith/bound.c), of which one is
 * read and the other no larger than that and the result. */
static void allow_terms(dump_run *d, pair *p)
{
    char name[80];
    const place at = place_of(p->ours->name);
    const bool x0 = !strcmp(at.last, "x0");
    if ((!x0 && strcmp(at.last, "x")) || at.step < !x0) return;
    snprintf(name, sizeof name, "chunk.%" PRId64 "/step.%" PRId64 "/%s",
             at.chunk, at.step - !x0, x0 ? "x" : "x0");
    const tt_entry *e = tt_file_find(d->f.got, name);
    if (!e || tt_tensor_count(&e->t) != p->n) return;
    const double *term = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    for (int64_t i = 0; term && i < p->n; i++) {
        const double least = 0x1p-24 * (2 * fabs(term[i]) + fabs(p->want[i]));
        const double off = p->emul[i] - p->want[i];
        if (fabs(off) < least)
            p->emul[i] = p->want[i] + copysign(least, off);
    }
}

static void pair_read_pair(dump_run *d, pair *p)
{
    tt_arena *mem = &d->ctx->scratch;
    const tt_arith *a = d->limits;
    p->n = tt_tensor_count(&p->ours->t);
    const char *name = p->ours->name;
    p->got = tt_read_double(d->ctx, mem, &p->theirs->t);
    if (!history_reaches(d, RUN_ORACLE, name))
        p->want = read_like(d, d->f.oracle, p->ours);
    if (!p->want) p->want = tt_read_double(d->ctx, mem, &p->ours->t);
    if (!a || d->ctx->status) return;
    p->emul = read_like(d, d->f.emul, p->ours);
    p->loose = history_reaches(d, RUN_EMULATED, name);
    const tt_format f = precision_of(d, p);
    const bool own = p->emul != NULL;
    if (!own) p->emul = tt_read_double(d->ctx, mem, &p->ours->t);
    if (d->ctx->status) return;
    /* A value of ours is float32 already; without a run in the declared
     * arithmetic one rounding to it is all that is known. */
    if (!own && f == TT_FMT_F32) pair_round_all(p->emul, p->n, format_of(a));
    pair_round_all(p->emul, p->n, f);
    if (!d->ctx->status) allow_terms(d, p);
}

/* ---- every bit ----------------------------------------------------------- */

/* The same stored values in both files, however they lie there. */
static bool same_bytes(dump_run *d, const pair *p)
{
    const tt_tensor *a = &p->theirs->t, *b = &p->ours->t;
    if (a->dtype != b->dtype) return false;
    if (!p->n) return true;
    if (tt_tensor_packed(a) && tt_tensor_packed(b) && a->native == b->native)
        return !memcmp(a->data, b->data, (size_t)tt_tensor_bytes(a));
    const char *x = read_bytes(d, a), *y = read_bytes(d, b);
    return x && y && !memcmp(x, y, (size_t)tt_tensor_bytes(a));
}

static void check_types(dump_run *d, tt_verdict *v, const pair *p)
{
    const tt_tensor *a = &p->theirs->t, *b = &p->ours->t;
    if (v->outcome != TT_PASS || same_bytes(d, p)) return;
    v->outcome = TT_MISMATCH;
    v->ratio = INFINITY;
    if (a->dtype == b->dtype)
        snprintf(v->hint, sizeof v->hint, "equal as numbers, but other bits");
    else
        snprintf(v->hint, sizeof v->hint, "equal values, but stored as %s "
                 "where %s was expected", tt_dtype_name(a->dtype),
                 tt_dtype_name(b->dtype));
}

/* ---- after a flipped pick ------------------------------------------------ */

/* What these other frames reach is no failure. A NaN or infinity is: other
 * frames do not make those. */
static bool excused(const dump_run *d, tt_verdict *v, const pair *p,
                    run_kind run)
{
    if (v->m.broken || !history_reaches(d, run, p->ours->name)) return false;
    v->outcome = TT_UNCHECKED;
    snprintf(v->hint, sizeof v->hint, "not checked: %s %.90s",
             run == RUN_EXCUSED ? "it follows the tie at"
             : "our own run in the declared arithmetic picks other frames from",
             d->of[run].name);
    return true;
}

/* A pick: the same, a tie, or wrong. */
static void check_pick(dump_run *d, tt_verdict *v, const pair *p)
{
    if (v->outcome != TT_MISMATCH) return;
    const pick is = selection_in(d, d->f.got, p->ours, p->got, p->want,
                                 &v->ratio, v->hint, sizeof v->hint);
    if (is == PICK_TIE) v->outcome = TT_TIE;
    if (is == PICK_OTHER && d->limits && !excused(d, v, p, RUN_EXCUSED))
        excused(d, v, p, RUN_EMULATED);
}

/* Is it the result of the one operator of a case? */
static bool operator_of(const dump_run *d, const pair *p)
{
    return d->opt->operands && !strcmp(p->ours->name, "y") && p->ours->t.rank;
}

static void check_pair(dump_run *d, tt_verdict *v, const pair *p)
{
    char score[sizeof v->path];
    const bool real = tt_dtype_is_real(p->ours->t.dtype);
    if (real && d->limits && operator_of(d, p)) {
        tt_verdict_check(v, d->limits, p->got, p->want, p->emul, p->n,
                         TT_OF_CALL);
        /* small errors of numbers that are cut are too large */
        if (p->q && v->outcome <= TT_MISMATCH && !*v->hint)
            hint_is_cut(d->ctx, p->q, d->limits, p->got, v);
        return;
    }
    if (real && d->limits)
        tt_verdict_check(v, d->limits, p->got, p->want, p->emul, p->n,
                         d->opt->injected ? TT_OF_SEGMENT : TT_OF_ROWS);
    else tt_verdict_bits(v, &(tt_arith){.bits = true}, p->got, p->want, p->n);
    if (selection_score_name(score, sizeof score, p->ours->name))
        check_pick(d, v, p);
    else if (d->limits && v->outcome == TT_MISMATCH)
        excused(d, v, p, RUN_EXCUSED);
    const bool alike = p->ours->t.dtype == p->theirs->t.dtype;
    if (alike ? !real || !d->opt->arith : !d->limits) check_types(d, v, p);
}

/* Of a tensor that is checked by its bits, as it was checked. */
static void note_bits(dump_run *d, tt_verdict *v, const pair *p)
{
    const bool equal = d->limits ? same_bytes(d, p) : v->outcome == TT_PASS;
    if (p->n) v->bits = equal ? TT_BITS_EQUAL : TT_BITS_DIFFER;
    if (v->outcome == TT_PASS && p->loose && !equal
        && tt_dtype_is_real(p->ours->t.dtype))
        excused(d, v, p, RUN_EMULATED);
}

/* ---- why, and how it grows ----------------------------------------------- */

/* The largest difference of n values of theirs from those of a tensor; infinite
 * where one of them is not finite. */
static double tensor_off(dump_run *d, const tt_tensor *t, const double *got)
{
    double worst = 0;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    const int64_t n = tt_tensor_count(t);
    const double *x = tt_read_double(d->ctx, &d->ctx->scratch, t);
    for (int64_t i = 0; x && i < n; i++) {
        const double off = fabs(got[i] - x[i]);
        worst = isfinite(off) ? fmax(worst, off) : INFINITY;
    }
    tt_arena_reset(&d->ctx->scratch, mark);
    return x ? worst : INFINITY;
}

/* Bytes between two tensors of our file, which has the order of execution. */
static uintptr_t apart(const tt_entry *a, const tt_entry *b)
{
    const uintptr_t x = (uintptr_t)a->t.data, y = (uintptr_t)b->t.data;
    return x < y ? y - x : x - y;
}

/* Theirs is what ours is under another name: of an earlier step or another
 * block, keys in place of values. The first row tells most of them apart; of
 * equal ones the nearest is named. */
static bool explain_name(dump_run *d, tt_verdict *v, const pair *p)
{
    enum { LEAST = 16 };                 /* fewer may be alike by chance */
    const tt_entry *best = NULL;
    double least = 0;
    if (v->m.broken) return false;       /* all are as near to an infinity */
    for (int64_t i = 0; i < p->n; i++)
        least = fmax(least, 0.02 * fabs(p->got[i] - p->want[i]));
    for (int64_t i = 0; p->n >= LEAST && i < tt_file_count(d->f.want); i++) {
        const tt_entry *e = tt_file_entry(d->f.want, i);
        tt_tensor row = e->t;
        if (e == p->ours || tt_tensor_count(&e->t) != p->n
            || !tt_dtype_is_real(e->t.dtype)) continue;
        row.dim[0] = 1;
        if (tensor_off(d, &row, p->got) > least) continue;
        const double far = tensor_off(d, &e->t, p->got);
        if (far > least || (best && far == least
                            && apart(e, p->ours) >= apart(best, p->ours)))
            continue;
        best = e;
        least = far;
    }
    if (best)
        snprintf(v->hint, sizeof v->hint, "holds the values of %.150s",
                 best->name);
    return best;
}

/* Whole numbers, all by as many too large or too small, or not. */
static void explain_whole(tt_verdict *v, const pair *p)
{
    const int64_t i = v->m.worst;
    const double off = p->got[i] - p->want[i];
    char by[64] = "differ";
    bool alike = v->m.differ > 1;
    for (int64_t k = 0; k < p->n; k++)
        alike = alike && (p->got[k] == p->want[k]
                          || p->got[k] - p->want[k] == off);
    if (alike)
        snprintf(by, sizeof by, "are %.17g too %s", fabs(off), off > 0 ? "large"
                 : "small");
    snprintf(v->hint, sizeof v->hint, "%" PRId64 " of %" PRId64 " values %s, "
             "the first is %.17g where %.17g is expected", v->m.differ, p->n,
             by, p->got[i], p->want[i]);
}

/* The mistakes of its operator, where a case says what it read, else of any
 * tensor. */
static bool explain_values(dump_run *d, tt_verdict *v, const pair *p)
{
    const tt_arith *a = d->opt->arith;
    if (p->q && a && a->bits
        && hint_classes(&(hint_call){d->ctx, p->q, a->cls, p->got,
                                     v->hint, sizeof v->hint})) return true;
    return hint_find(d->ctx, p->q, a, p->got, p->want, v);
}

static void pair_explain(dump_run *d, tt_verdict *v, const pair *p)
{
    char known[160];
    if (v->outcome != TT_MISMATCH || p->n == 0) return;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    const bool real = tt_dtype_is_real(p->ours->t.dtype);
    const bool asked = d->named < NAMED_MOST;
    /* large ones count as many, and rounds, which read what many frames hold */
    d->named += 1 + p->n / (1 << 16) + (strstr(v->path, "/admit.") ? 7 : 0);
    if (asked && real && explain_name(d, v, p)) {
        /* it is another one of ours */
    } else if (asked && named_explain(d, p->ours, p->got, p->want, known,
                                      sizeof known))
        snprintf(v->hint, sizeof v->hint, "%s", known);
    else if (*v->hint) {
        /* check_pick has said what there is to be said */
    } else if (v->m.broken && v->m.nan + v->m.inf > 0)
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " NaN and %" PRId64
                 " infinite values", v->m.nan, v->m.inf);
    else if (!real)
        explain_whole(v, p);
    else if (!explain_values(d, v, p) && !d->limits)
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " of %" PRId64 " values "
                 "differ", v->m.differ, p->n);
    tt_arena_reset(&d->ctx->scratch, mark);
}

/* chunk.<i>/step.<j>/x0: a point of the curve, unless a later step follows. */
static void pair_grow(dump_run *d, const tt_verdict *v, const pair *p)
{
    char next[80];
    const place at = place_of(p->ours->name);
    if (!d->opt->curve || strcmp(at.last, "x0") || at.step < 0) return;
    snprintf(next, sizeof next, "chunk.%" PRId64 "/step.%" PRId64 "/x0",
             at.chunk, at.step + 1);
    if (tt_file_find(d->f.got, next) && tt_file_find(d->f.want, next)) return;
    tt_metrics own = {0};      /* none where bits count */
    if (p->emul) tt_metrics_measure(&own, p->emul, p->want, p->n);
    tt_report_grow(d->report, &(tt_growth){
        .curve = d->opt->curve, .chunk = at.chunk, .earned = own.rel_l2,
        .rel_l2 = v->m.broken ? INFINITY : v->m.rel_l2});
}

/* Nothing says how far off this tensor may be: `want` is also the emulation,
 * and the oracle lacks it. */
static bool uncheckable(const dump_run *d, const tt_entry *ours)
{
    const tt_dump_options *o = d->opt;
    return d->limits && tt_dtype_is_real(ours->t.dtype) && o->emul
        && !strcmp(o->emul, o->want)
        && (!d->f.oracle || !tt_file_find(d->f.oracle, ours->name));
}

/* Where a mistake lies that has no name, and what was right until there. */
static void say_since(const dump_run *d, tt_verdict *v)
{
    if (!d->opt->injected || v->outcome != TT_MISMATCH) return;
    if (!*v->hint)
        snprintf(v->hint, sizeof v->hint, "it arises in %.80s, from right "
                 "inputs", v->op);
    const size_t n = strlen(v->hint);
    if (*d->since && n + strlen(d->since) + 24 < sizeof v->hint)
        snprintf(v->hint + n, sizeof v->hint - n, "; given theirs up to %s",
                 d->since);
}

void pair_compare(dump_run *d, tt_verdict *v, const tt_entry *ours,
                  const tt_entry *theirs)
{
    op_call q;
    pair p = {.ours = ours, .theirs = theirs};
    if (uncheckable(d, ours)) {
        v->outcome = TT_UNCHECKED;
        snprintf(v->hint, sizeof v->hint, "not checked: no float64 reference");
        if (!d->opt->quiet) tt_report_add(d->report, v, NULL, NULL);
        return;
    }
    pair_read_pair(d, &p);
    if (d->ctx->status) return;
    if (operator_of(d, &p)
        && case_read(d->ctx, &q, d->opt->operands, v->dim, v->rank)) p.q = &q;
    if (operator_of(d, &p) && !p.q)
        tt_report_note(d->report, "some case.json name no call of this version:"
                       " mistakes of their operators, and numbers that are cut,"
                       " are not looked for");
    check_pair(d, v, &p);
    note_bits(d, v, &p);
    if (v->outcome != TT_UNCHECKED) pair_grow(d, v, &p);
    if (d->opt->quiet) return;
    pair_explain(d, v, &p);
    say_since(d, v);
    tt_report_add(d->report, v, p.got, p.want);
}
