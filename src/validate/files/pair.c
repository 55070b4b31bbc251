/* pair.c: one tensor of two dumps.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   what follows from a pick that the arithmetic could have made the
 *         other way is checked as far as it agrees; where it does not, it is
 *         neither a pass nor a failure. Whole numbers are compared as such: a
 *         double holds 53 bits of them.
 * Next    history.c, picks.c, verdict.c */
#include <fnmatch.h>
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
    char *data[2];   /* of whole numbers on both sides: [n] theirs and ours,
                        as stored; else NULL                                  */
    int64_t n;
    bool loose;   /* our run in the declared arithmetic followed another pick */
    double *astray;  /* what it has here, then; NULL: nothing                 */
} pair;

bool pair_same_shape(const tt_tensor *t, const tt_tensor *u)
{
    if (t->rank != u->rank) return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != u->dim[i]) return false;
    return true;
}

/* Row length for judging: the last axis, widened while it is short, so that a
 * row's own error means something. Next to an extent of 0 the others may be
 * anything, and there are no rows. */
static int64_t row_length(const tt_verdict *v)
{
    int64_t c = 1;
    for (int i = v->rank - 1; i >= 0 && c < 32; i--)
        if (!tt_checked_mul(&c, c, v->dim[i])) return 1;
    return c > 0 ? c : 1;
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

/* After the row where our own run in the declared arithmetic picks other
 * frames it says nothing: one rounding of ours stands there. */
static void cut_emulation(dump_run *d, const tt_verdict *v, pair *p)
{
    const int64_t rows = same_history(d, RUN_EMULATED, RUN_OURS, p->ours);
    if (rows == SAME_ROWS || !v->dim[0]) return;
    const int64_t from = p->n / v->dim[0] * rows;
    double *ours = tt_read_double(d->ctx, &d->ctx->scratch, &p->ours->t);
    if (!ours) return;
    p->astray = p->emul;
    memcpy(ours, p->emul, (size_t)from * sizeof *ours);
    p->emul = ours;
    pair_round_all(p->emul + from, p->n - from, format_of(d->limits));
    p->loose = true;
}

/* A tensor's values in a row, bytes in this machine's order. */
static char *read_bytes(dump_run *d, const tt_tensor *t)
{
    char *data = tt_alloc(d->ctx, &d->ctx->scratch, tt_tensor_bytes(t), 1,
                          "a tensor");
    if (data) tt_gather(data, t);
    return data;
}

/* The name of a tensor of the same step, or of the step before. */
static bool sibling(char *out, size_t size, const char *name, int64_t back,
                    const char *what)
{
    const char *at = strstr(name, "/step."), *rest;
    const int64_t step = at ? dump_number(at + 6, &rest) : -1;
    if (step < back || strncmp(name, "chunk.", 6)) return false;
    snprintf(out, size, "%.*s/step.%" PRId64 "/%s", (int)(at - name), name,
             step - back, what);
    return true;
}

/* x0 = x - sigma flow, and x = (1 - sigma) x0 + sigma noise of the x0 before:
 * where terms cancel, rounding them costs more than half a unit of what is
 * left, and the same formula twice of ours does not show it. emul errs at least
 * half a unit of float32 of the terms (src/ops/arith/bound.c), of which one is
 * read and the other no larger than that and the result. */
static void allow_terms(dump_run *d, pair *p)
{
    char name[224];
    const char *last = strrchr(p->ours->name, '/');
    const bool x0 = last && !strcmp(last, "/x0");
    if (!x0 && (!last || strcmp(last, "/x"))) return;
    if (!sibling(name, sizeof name, p->ours->name, !x0, x0 ? "x" : "x0"))
        return;
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

static void pair_read_pair(dump_run *d, const tt_verdict *v, pair *p)
{
    tt_arena *mem = &d->ctx->scratch;
    const tt_arith *a = d->limits;
    p->n = tt_tensor_count(&p->ours->t);
    if (!tt_dtype_is_real(p->ours->t.dtype)
        && !tt_dtype_is_real(p->theirs->t.dtype)) {
        p->data[0] = read_bytes(d, &p->theirs->t);
        p->data[1] = read_bytes(d, &p->ours->t);
    }
    p->got = tt_read_double(d->ctx, mem, &p->theirs->t);
    p->want = read_like(d, history_file(d, RUN_ORACLE, p->ours), p->ours);
    if (!p->want) p->want = tt_read_double(d->ctx, mem, &p->ours->t);
    if (!a || d->ctx->status) return;
    p->emul = read_like(d, history_file(d, RUN_EMULATED, p->ours), p->ours);
    p->loose = !p->emul && d->f.emul;
    if (p->loose) p->astray = read_like(d, d->f.emul, p->ours);
    const tt_format f = precision_of(d, p);
    const bool own = p->emul != NULL;
    if (!own) p->emul = tt_read_double(d->ctx, mem, &p->ours->t);
    if (d->ctx->status) return;
    /* A value of ours is float32 already; without a run in the declared
     * arithmetic one rounding to it is all that is known. */
    if (!own && f == TT_FMT_F32) pair_round_all(p->emul, p->n, format_of(a));
    if (own) cut_emulation(d, v, p);
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

/* Every bit: the numbers are equal, -0 is not 0. */
static void check_exact(const dump_run *d, tt_verdict *v, const pair *p)
{
    tt_metrics_measure(&v->m, p->got, p->want, p->n);
    int64_t first = -1;
    for (int64_t i = 0; i < p->n && first < 0; i++)
        if (!value_same_bits(p->got[i], p->want[i])) first = i;
    v->outcome = first < 0 ? TT_PASS : TT_MISMATCH;
    v->ratio = first < 0 ? 0 : INFINITY;
    const bool all_same = v->m.max_abs == 0 && !v->m.broken;   /* but signs */
    if (first >= 0 && (d->opt->arith || all_same)) v->m.worst = first;
    verdict_place(v);
}

/* A whole number of any stored type: its sign, and 64 bits. */
typedef struct whole {
    bool negative;
    uint64_t bits;
} whole;

static whole whole_at(const char *data, tt_dtype type, int64_t i)
{
    const size_t size = tt_dtype_size(type);
    const size_t low = tt_host_little_endian() ? 0 : 8 - size;
    uint64_t u = 0;
    memcpy((char *)&u + low, data + (size_t)i * size, size);
    const bool is_signed = type == TT_I64 || type == TT_I32 || type == TT_I16
                           || type == TT_I8;
    const bool negative = is_signed && u >> (8 * size - 1) & 1;
    if (negative && size < 8) u |= ~(uint64_t)0 << (8 * size);
    return (whole){negative, u};
}

static double distance(whole a, whole b)
{
    if (a.negative == b.negative)
        return (double)(a.bits > b.bits ? a.bits - b.bits : b.bits - a.bits);
    return a.negative ? (double)(0 - a.bits) + (double)b.bits
                      : (double)(0 - b.bits) + (double)a.bits;
}

static whole theirs_at(const pair *p, int64_t i)
{
    return whole_at(p->data[0], p->theirs->t.dtype, i);
}

static whole ours_at(const pair *p, int64_t i)
{
    return whole_at(p->data[1], p->ours->t.dtype, i);
}

static void pair_measure(tt_metrics *m, const pair *p)
{
    tt_metrics_measure(m, p->got, p->want, p->n);
    if (!p->data[0]) return;
    m->differ = 0;
    m->max_abs = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double off = distance(theirs_at(p, i), ours_at(p, i));
        if (off == 0) continue;
        if (!m->differ++) m->worst = i;          /* the first one is shown */
        m->max_abs = fmax(m->max_abs, off);
    }
}

static void pair_check_whole(tt_verdict *v, const pair *p)
{
    tt_metrics *m = &v->m;
    pair_measure(m, p);
    v->outcome = m->differ ? TT_MISMATCH : TT_PASS;
    v->ratio = m->differ ? INFINITY : 0;
    verdict_place(v);
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

/* The leading rows alone of a tensor that failed. */
static bool leading_rows_agree(dump_run *d, const tt_verdict *v, const pair *p,
                               int64_t rows)
{
    tt_verdict part = *v;
    const int64_t n = v->dim[0] ? p->n / v->dim[0] * rows : 0;
    if (!rows) return true;
    part.dim[0] = rows;
    if (tt_dtype_is_real(p->ours->t.dtype)) {
        tt_verdict_check(&part, d->limits, p->got, p->want, p->emul, n,
                         row_length(&part));
        return part.outcome == TT_PASS;
    }
    return v->m.worst >= n;      /* the first that differs */
}

/* Our run in the declared arithmetic went another way, so the error it allows
 * is not known. As long as theirs went ours, that run's distance from ours is
 * more than it, and whole numbers are equal. Where theirs may have gone a third
 * way, the tensor as a whole is not farther off than a few times that. */
static bool beyond_astray(const dump_run *d, tt_verdict *v, const pair *p)
{
    const int64_t rows = same_history(d, RUN_THEIRS, RUN_OURS, p->ours);
    const bool other = d->blind || rows != SAME_ROWS;  /* or may be: blind */
    double far = 0, limit = 0;
    if (!tt_dtype_is_real(p->ours->t.dtype)) return !other;
    if (!p->astray) return false;
    if (!other) {
        tt_verdict_check(v, d->limits, p->got, p->want, p->astray, p->n,
                         row_length(v));
        return v->outcome == TT_MISMATCH;
    }
    for (int64_t i = 0; i < p->n; i++) {
        const double x = p->got[i] - p->want[i], e = p->astray[i] - p->want[i];
        far += x * x;
        limit += e * e;
    }
    return far > TT_SLACK * TT_SLACK * limit;
}

/* A failure that a flipped pick may have caused is none, and no pass. A NaN or
 * infinity is: other frames do not make those. */
static void after_flip(dump_run *d, tt_verdict *v, const pair *p)
{
    static const run_kind which[] = {RUN_EXCUSED, RUN_EMULATED};
    static const char *const who[] = {
        "it follows the tie at", "our own run in the declared arithmetic picks "
        "other frames from"};
    if (v->outcome != TT_MISMATCH || !d->limits || v->m.broken) return;
    for (int i = 0; i < 2; i++) {
        const int64_t rows = same_history(d, which[i], RUN_OURS, p->ours);
        char from[40] = "";
        if (rows == SAME_ROWS || !leading_rows_agree(d, v, p, rows)) continue;
        if (i == 1 && (!p->loose || beyond_astray(d, v, p))) continue;
        v->outcome = TT_UNCHECKED;
        if (rows > 0)
            snprintf(from, sizeof from, " from row %" PRId64 " on", rows);
        snprintf(v->hint, sizeof v->hint, "not judged%s: %s %.*s", from,
                 who[i], rows > 0 ? 80 : 90, d->of[which[i]].name);
        return;
    }
}

/* A pick: the same, a tie, or wrong. */
static void check_pick(dump_run *d, tt_verdict *v, const pair *p)
{
    other_pick other;
    if (v->outcome != TT_MISMATCH
        || !selection_find(d, d->f.got, p->ours, p->got, p->want, &other))
        return;
    v->ratio = other.ratio;
    snprintf(v->hint, sizeof v->hint, "%s", other.why);
    v->m.worst = other.row * (p->ours->t.rank ? v->dim[v->rank - 1] : 1);
    verdict_place(v);
    if (other.what == PICK_TIE) v->outcome = TT_TIE;
    if (other.what == PICK_WRONG && selection_own(d, p->ours, p->got))
        after_flip(d, v, p);
}

/* The tolerance that someone gave for this name, NULL: every bit counts. */
static const tt_tolerance *tolerance(const dump_run *d, const char *name)
{
    const tt_tolerance *t = d->limits ? NULL : d->opt->tol;
    while (t && t->glob && fnmatch(t->glob, name, 0)) t++;
    return t && t->glob ? t : NULL;
}

static void check_tolerance(tt_verdict *v, const pair *p,
                            const tt_tolerance *t)
{
    pair_measure(&v->m, p);
    if (v->m.broken) v->ratio = INFINITY;
    for (int64_t i = 0; i < p->n && !v->m.broken; i++) {
        const double d = p->data[0] ? distance(theirs_at(p, i), ours_at(p, i))
                                    : fabs(p->got[i] - p->want[i]);
        const double limit = t->abs + t->rel * fabs(p->want[i]);
        const double ratio = limit > 0 ? d / limit : d > 0 ? INFINITY : 0;
        if (!(ratio > v->ratio)) continue;   /* and where neither is finite */
        v->ratio = ratio;
        v->m.worst = i;
    }
    v->outcome = v->ratio > 1 ? TT_MISMATCH : TT_PASS;
    verdict_place(v);
}

/* Is it the result of the one operator of a case? */
static bool operator_of(const dump_run *d, const pair *p)
{
    return d->opt->operands && !strcmp(p->ours->name, "y") && p->ours->t.rank;
}

/* Small errors that are those of numbers which are cut are too large. */
static void check_cut(dump_run *d, tt_verdict *v, const pair *p)
{
    op_call q;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    if (v->outcome <= TT_MISMATCH && !*v->hint
        && case_read(d->ctx, &q, d->opt->operands, v->dim, v->rank))
        hint_is_cut(d->ctx, &q, d->limits, p->got, v);
    tt_arena_reset(&d->ctx->scratch, mark);
}

/* One channel must not hide behind the largest of its rows; latents have their
 * channels elsewhere. */
static void pair_limits(const dump_run *d, tt_verdict *v, const pair *p)
{
    tt_verdict_check(v, d->limits, p->got, p->want, p->emul, p->n,
                     row_length(v));
    if (d->opt->injected && v->rank < 4 && v->rank > 1)
        verdict_check_columns(v, d->limits, p->got, p->want, p->emul, p->n,
                              v->dim[v->rank - 1], TT_SLACK);
}

static void check_pair(dump_run *d, tt_verdict *v, const pair *p)
{
    char score[sizeof v->path];
    const bool real = tt_dtype_is_real(p->ours->t.dtype);
    const tt_tolerance *t = tolerance(d, p->ours->name);
    if (t) {
        check_tolerance(v, p, t);
        return;
    }
    if (real && d->limits && operator_of(d, p)) {
        verdict_check_call(v, d->limits, p->got, p->want, p->emul, p->n,
                           v->dim[v->rank - 1]);
        check_cut(d, v, p);
        return;
    }
    if (real && d->limits) {
        pair_limits(d, v, p);
        after_flip(d, v, p);
        return;
    }
    if (real || tt_dtype_is_real(p->theirs->t.dtype)) check_exact(d, v, p);
    else pair_check_whole(v, p);
    if (selection_score_name(score, sizeof score, p->ours->name))
        check_pick(d, v, p);
    else
        after_flip(d, v, p);
    if (!d->limits && (!d->opt->arith
                       || p->ours->t.dtype != p->theirs->t.dtype))
        check_types(d, v, p);
}

/* Of a tensor that is checked by its bits, as it was checked. */
static void note_bits(dump_run *d, tt_verdict *v, const pair *p)
{
    const bool equal = d->limits || d->opt->tol ? same_bytes(d, p)
                                                : v->outcome == TT_PASS;
    if (p->n) v->bits = equal ? TT_BITS_EQUAL : TT_BITS_DIFFER;
}

/* ---- why, and how it grows ----------------------------------------------- */

/* "chunk.3/step.2/..." -> the same of the step or chunk before; false when
 * there is none. */
static bool earlier_name(char *out, size_t size, const char *name,
                         const char *scope)
{
    const char *at = strstr(name, scope), *rest;
    const int64_t i = at ? dump_number(at + strlen(scope), &rest) : -1;
    if (i < 1 || *rest != '/') return false;
    snprintf(out, size, "%.*s%s%" PRId64 "%s", (int)(at - name), name, scope,
             i - 1, rest);
    return true;
}

/* Theirs is what ours was a step, chunk or layer earlier. */
static bool explain_stale(dump_run *d, tt_verdict *v, const pair *p)
{
    static const char *const scope[] = {"step.", "chunk.", "block."};
    for (int i = 0; i < 3; i++) {
        char name[224];
        double worst = 0, off = 0;
        if (!earlier_name(name, sizeof name, p->ours->name, scope[i])) continue;
        const tt_entry *e = tt_file_find(d->f.want, name);
        if (!e || tt_tensor_count(&e->t) != p->n) continue;
        const double *x = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
        for (int64_t k = 0; x && k < p->n; k++) {
            worst = fmax(worst, fabs(p->got[k] - x[k]));
            off = fmax(off, fabs(p->got[k] - p->want[k]));
        }
        if (!x || !(worst < 0.02 * off)) continue;
        snprintf(v->hint, sizeof v->hint, "holds the values of %.150s", name);
        return true;
    }
    return false;
}

static const char *whole_text(char *out, size_t size, whole x)
{
    snprintf(out, size, "%s%" PRIu64, x.negative ? "-" : "",
             x.negative ? 0 - x.bits : x.bits);
    return out;
}

static void explain_whole(tt_verdict *v, const pair *p)
{
    char got[40], want[40];
    const int64_t i = v->m.worst;
    snprintf(got, sizeof got, "%.17g", p->got[i]);
    snprintf(want, sizeof want, "%.17g", p->want[i]);
    if (p->data[0]) {
        whole_text(got, sizeof got, theirs_at(p, i));
        whole_text(want, sizeof want, ours_at(p, i));
    }
    snprintf(v->hint, sizeof v->hint, "%" PRId64 " of %" PRId64 " values "
             "differ, the first is %s where %s is expected", v->m.differ, p->n,
             got, want);
}

/* The mistakes of its operator, where a case says what it read, else of any
 * tensor. */
static bool explain_values(dump_run *d, tt_verdict *v, const pair *p)
{
    op_call q;
    const bool known = d->opt->operands && !strcmp(p->ours->name, "y")
                       && case_read(d->ctx, &q, d->opt->operands, v->dim,
                                    v->rank);
    const tt_arith *a = d->opt->arith;
    if (known && a && a->bits
        && hint_classes(&(hint_call){d->ctx, &q, NULL, a->cls, p->got, v->hint,
                                     sizeof v->hint})) return true;
    return hint_find(d->ctx, known ? &q : NULL, a, p->got, p->want, v);
}

static void pair_explain(dump_run *d, tt_verdict *v, const pair *p)
{
    char known[160];
    if (v->outcome != TT_MISMATCH || p->n == 0) return;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    if (d->named++ < NAMED_MOST
        && named_explain(d, p->ours, p->got, p->want, known, sizeof known))
        snprintf(v->hint, sizeof v->hint, "%s", known);
    else if (*v->hint) {
        /* check_pick has said what there is to be said */
    } else if (v->m.broken && v->m.nan + v->m.inf > 0)
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " NaN and %" PRId64
                 " infinite values", v->m.nan, v->m.inf);
    else if (!tt_dtype_is_real(p->ours->t.dtype))
        explain_whole(v, p);
    else if (!explain_stale(d, v, p)
             && !explain_values(d, v, p)
             && !d->limits)
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " of %" PRId64 " values "
                 "differ", v->m.differ, p->n);
    tt_arena_reset(&d->ctx->scratch, mark);
}

/* The relative error the declared arithmetic makes; none where bits count. */
static double emulated_error(const pair *p)
{
    double e = 0, w = 0;
    for (int64_t i = 0; p->emul && i < p->n; i++) {
        const double x = p->emul[i] - p->want[i];
        e += x * x;
        w += p->want[i] * p->want[i];
    }
    return w > 0 ? sqrt(e / w) : 0;
}

void pair_end_curve(dump_run *d)
{
    if (!d->point.curve) return;
    d->point.rel_l2 = sqrt(d->point.rel_l2 / (double)d->point_n);
    d->point.earned = sqrt(d->point.earned / (double)d->point_n);
    tt_report_grow(d->report, &d->point);
    d->point.curve = NULL;
}

/* The chunk that "chunk.<i>/..." names and what comes after it, else -1. */
static int64_t chunk_of(const char *name, const char **rest)
{
    if (strncmp(name, "chunk.", 6)) return -1;
    const int64_t chunk = dump_number(name + 6, rest);
    return chunk >= 0 && *(*rest)++ == '/' ? chunk : -1;
}

/* With everything injected errors do not add up: the point of a chunk is the
 * root mean square over its tensors. */
static void grow_injected(dump_run *d, const tt_verdict *v, const pair *p)
{
    const char *end;
    const int64_t chunk = chunk_of(p->ours->name, &end);
    if (chunk < 0) return;
    if (d->point.curve && d->point.chunk != chunk) pair_end_curve(d);
    if (!d->point.curve) {
        d->point = (tt_growth){.curve = d->opt->curve, .chunk = chunk};
        d->point_n = 0;
    }
    const double e = emulated_error(p);
    d->point.rel_l2 += v->m.rel_l2 * v->m.rel_l2;
    d->point.earned += e * e;
    d->point_n++;
}

/* chunk.<i>/step.<j>/x0: a point of the curve, unless a later step follows. */
static void pair_grow(dump_run *d, const tt_verdict *v, const pair *p)
{
    const char *rest;
    char next[80];
    if (!d->opt->curve || (d->limits && !p->emul)
        || !tt_dtype_is_real(p->ours->t.dtype)) return;
    if (d->opt->injected) {
        grow_injected(d, v, p);
        return;
    }
    const int64_t chunk = chunk_of(p->ours->name, &rest);
    if (chunk < 0 || strncmp(rest, "step.", 5)) return;
    const int64_t step = dump_number(rest + 5, &rest);
    if (step < 0 || strcmp(rest, "/x0")) return;
    snprintf(next, sizeof next, "chunk.%" PRId64 "/step.%" PRId64 "/x0", chunk,
             step + 1);
    if (tt_file_find(d->f.got, next) && tt_file_find(d->f.want, next)) return;
    tt_report_grow(d->report, &(tt_growth){
        .curve = d->opt->curve, .chunk = chunk, .rel_l2 = v->m.rel_l2,
        .earned = emulated_error(p)});
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
    pair p = {.ours = ours, .theirs = theirs};
    if (uncheckable(d, ours)) {
        v->outcome = TT_UNCHECKED;
        snprintf(v->hint, sizeof v->hint, "not judged: no float64 reference");
        if (!d->opt->quiet) tt_report_add(d->report, v, NULL, NULL);
        return;
    }
    pair_read_pair(d, v, &p);
    if (d->ctx->status) return;
    check_pair(d, v, &p);
    note_bits(d, v, &p);
    if (v->outcome != TT_UNCHECKED) pair_grow(d, v, &p);
    if (d->opt->quiet) return;
    pair_explain(d, v, &p);
    say_since(d, v);
    tt_report_add(d->report, v, p.got, p.want);
}
