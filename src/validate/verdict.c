/* verdict.c: pass or not, by the error the declared arithmetic must make.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows are checked by themselves: a mistake in a row of small values would
 * drown in the tolerance of the large ones. Rows of few values are checked
 * several at a time, because the largest error of a handful of sums is luck,
 * and a row whose emulated error happens to be small borrows the relative
 * error of the whole tensor; in a segment of several operators, whose errors
 * may be one number for a row, the largest relative error of a row. In 16 bits
 * slopes and columns are checked too. */
#include "validate/verdict.h"

#include <math.h>
#include <stdio.h>

enum { ROW_LEAST = 64 };   /* values that are checked together, at least      */
enum { COLUMN_LEAST = 16 };

const char *tt_outcome_name(tt_outcome o)
{
    static const char *const name[] = {"pass", "tie", "mismatch", "missing",
                                       "misshapen", "not checked",
                                       "xfail", "unsupported"};
    return name[o];
}

void verdict_place(tt_verdict *v)
{
    int64_t at[TT_MAX_RANK], i = v->m.worst;
    for (int d = v->rank - 1; d >= 0; d--) {
        at[d] = v->dim[d] ? i % v->dim[d] : 0;
        if (v->dim[d]) i /= v->dim[d];
    }
    tt_shape_string(v->where, sizeof v->where, v->rank, at);
}

bool value_same_bits(double a, double b)
{
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b)
                                : a == b && !signbit(a) == !signbit(b);
}

void tt_verdict_bits(tt_verdict *v, const tt_arith *arith, const double *got,
                     const double *ours, int64_t n)
{
    int64_t first = n, differ = 0;
    for (int64_t i = 0; i < n; i++) {
        if (value_same_bits(got[i], ours[i])) continue;
        if (!differ++) first = i;
    }
    v->bits = !n ? TT_BITS_UNKNOWN : differ ? TT_BITS_DIFFER : TT_BITS_EQUAL;
    if (!arith->bits) return;
    tt_metrics_measure(&v->m, got, ours, n);
    v->m.differ = differ;
    v->outcome = differ ? TT_MISMATCH : TT_PASS;
    v->ratio = differ ? INFINITY : 0;
    v->earned = 0;
    v->m.worst = differ ? first : 0;
    verdict_place(v);
}

/* Half a unit of the stored format at x. Near zero: half a subnormal, or what
 * a chain of products loses where subnormals are flushed, as the units of the
 * short formats do. */
static double half_ulp(const tt_arith *a, double x)
{
    const double least = a->stored == TT_FMT_F16    ? 0x1p-25
                         : a->product != TT_FMT_F32 ? 0x1p-116
                                                    : 0x1p-149;
    return fmax(least, 0.5 * tt_format_epsilon(a->stored) * fabs(x));
}

/* A NaN or infinity where the arithmetic has none, or another one. Next to a
 * reference that is not finite itself a finite value cannot be checked. */
static bool misplaced(double got, double want, double emul)
{
    if (isnan(got) || isnan(emul)) return !isnan(got) || !isnan(emul);
    if (isinf(got) || isinf(emul)) return got != emul;
    return !isfinite(want);
}

/* A finite value that is more than f16 holds on the way. */
static bool verdict_overflows(const tt_arith *a, double want, double emul)
{
    return a->product == TT_FMT_F16 && isfinite(want) && !isfinite(emul);
}

/* What may come of that by how a program converts and sums: what our emulation
 * has, infinity, the largest number. It says nothing of the program. */
static bool overflowed(double got, double want, double emul)
{
    if (isnan(got)) return isnan(emul);
    return got == emul || ((isinf(got) || fabs(got) == 65504)
                           && signbit(got) == signbit(want));
}

/* Sums over the elements, every `step`-th, that are finite on all sides. */
typedef struct span {
    double want, emul, got;   /* squares of values, of both errors            */
    double worst;             /* max |emul - want|                            */
    int64_t n;
} span;

static span verdict_measure(const double *got, const double *want,
                            const double *emul, int64_t n, int64_t step)
{
    span s = {0};
    for (int64_t i = 0; i < n; i += step) {
        const double e = fabs(emul[i] - want[i]), g = fabs(got[i] - want[i]);
        if (!isfinite(e) || !isfinite(g)) continue;
        s.want += want[i] * want[i];
        s.emul += e * e;
        s.got += g * g;
        if (e > s.worst) s.worst = e;
        s.n++;
    }
    return s;
}

/* What is known after some values. */
typedef struct tally {
    double floor2;            /* squares of half a unit at each value         */
    int64_t skipped;          /* values that overflow                         */
    int64_t worst;
    bool nonfinite;
} tally;

/* Value i, which its row lets err e. */
static void check_value(tt_verdict *v, tally *t, const tt_arith *arith,
                        double got, double want, double emul, double e,
                        int64_t i)
{
    const double half = half_ulp(arith, want);
    const double limit = TT_SLACK * (e > half ? e : half);
    const double ratio = fabs(got - want) / limit;
    if (verdict_overflows(arith, want, emul)) {
        if (ratio <= 1) return;                  /* right all the same */
        if (overflowed(got, want, emul)) {
            t->skipped++;
            return;
        }
    }
    if (misplaced(got, want, emul)) {
        if (!t->nonfinite) t->worst = i;
        t->nonfinite = true;
    } else if (isfinite(ratio)) {
        t->floor2 += half * half;
        if (!(ratio > v->ratio) || t->nonfinite) return;
        v->ratio = ratio;
        v->earned = limit / TT_SLACK;
        t->worst = i;
    }
}

/* What the values of a row may err, with the relative error of the tensor. */
static double row_error(const span *row, double rel)
{
    const double e = rel * sqrt(row->n ? row->want / (double)row->n : 0);
    return row->worst > e ? row->worst : e;
}

/* The whole tensor: the mean of many independent rows is steady. */
static double rms_ratio(const span *all, double floor2, int64_t rows)
{
    const double slack = rows >= 64 ? TT_SLACK / 4 : TT_SLACK / 2;
    const double mine = slack * sqrt(all->emul);
    const double least = TT_SLACK / 2 * sqrt(floor2);
    const double limit = mine > least ? mine : least;
    return limit > 0 ? sqrt(all->got) / limit : 0;
}

/* The largest error of emul in a row, relative to the row, or to a quarter of
 * the tensor where that is more. */
static double row_most(const span *all, const double *want, const double *emul,
                       int64_t n, int64_t group)
{
    const double least = all->n ? all->want / (double)all->n / 16 : 0;
    double most = 0;
    for (int64_t r = 0; r < n; r += group) {
        const int64_t m = r + group < n ? group : n - r;
        const span s = verdict_measure(emul + r, want + r, emul + r, m, 1);
        const double size = fmax(s.n ? s.want / (double)s.n : 0, least);
        if (size > 0) most = fmax(most, s.worst / sqrt(size));
    }
    return most;
}

static int64_t row_group(int64_t c)
{
    return c * ((ROW_LEAST + c - 1) / c);
}

static void verdict_rows(tt_verdict *v, const tt_arith *arith,
                         const double *got, const double *want,
                         const double *emul, int64_t n, int64_t c, bool borrow)
{
    tt_metrics_measure(&v->m, got, want, n);
    const span all = verdict_measure(got, want, emul, n, 1);
    const int64_t group = row_group(c);
    const double rel = borrow ? row_most(&all, want, emul, n, group)
                     : all.want > 0 ? sqrt(all.emul / all.want) : 0;
    tally t = {.worst = v->m.worst};
    v->earned = all.worst;
    v->ratio = 0;
    for (int64_t r = 0; r < n; r += group) {
        const int64_t end = r + group < n ? r + group : n;
        const span row = verdict_measure(got + r, want + r, emul + r, end - r,
                                         1);
        const double e = row_error(&row, rel);
        for (int64_t i = r; i < end; i++)
            check_value(v, &t, arith, got[i], want[i], emul[i], e, i);
    }
    const double rms = rms_ratio(&all, t.floor2, n / c);
    if (rms > v->ratio) v->ratio = rms;
    if (t.nonfinite) v->ratio = INFINITY;
    v->outcome = v->ratio > 1 ? TT_MISMATCH
                 : t.skipped && t.skipped == n ? TT_UNCHECKED : TT_PASS;
    if (t.skipped && v->outcome != TT_MISMATCH)
        snprintf(v->hint, sizeof v->hint, "not checked: %lld of %lld values, "
                 "which overflow f16", (long long)t.skipped, (long long)n);
    v->m.worst = t.worst;
    verdict_place(v);
}

/* ---- slopes and columns -------------------------------------------------- */

/* Of rows, each over its mean square: projections of both errors on want, and
 * squares of what rounding errs. */
typedef struct slope {
    double got, emul, error;
    double n;
} slope;

static void add_row(slope *s, const tt_arith *arith, const double *got,
                    const double *want, const double *emul, int64_t n)
{
    const span row = verdict_measure(got, want, emul, n, 1);
    if (!(row.want > 0)) return;
    const double scale = (double)row.n / row.want;
    for (int64_t i = 0; i < n; i++) {
        const double e = emul[i] - want[i], g = got[i] - want[i];
        const double least = half_ulp(arith, want[i]);
        if (!isfinite(e) || !isfinite(g)) continue;
        s->got += scale * g * want[i];
        s->emul += scale * e * want[i];
        s->error += scale * fmax(e * e, least * least);
    }
    s->n += (double)row.n;
}

/* Units of a rounding have the variance 1/12. */
static double slope_ratio(const tt_arith *arith, const double *got,
                          const double *want, const double *emul, int64_t n,
                          int64_t group)
{
    const tt_format f = arith->stored != TT_FMT_F32 ? arith->stored
                                                    : arith->product;
    slope s = {0};
    for (int64_t r = 0; r < n; r += group)
        add_row(&s, arith, got + r, want + r, emul + r,
                r + group < n ? group : n - r);
    /* a bias that is rounded is one error in all rows */
    if (s.n < ROW_LEAST || arith->allows & TT_ALLOW_BIAS) return 0;
    const double rounding = tt_format_epsilon(f) / sqrt(12);
    const double rel = fmax(sqrt(s.error / s.n), rounding);
    const double own = fmin(fabs(s.got), fabs(s.got - s.emul)) / s.n;
    return own / (rel * (0.5 + 8 / sqrt(s.n)));
}

static double columns_ratio(const tt_arith *arith, const double *got,
                            const double *want, const double *emul, int64_t n,
                            int64_t c)
{
    const span all = verdict_measure(got, want, emul, n, 1);
    const double rel = all.want > 0 ? sqrt(all.emul / all.want) : 0;
    double most = 0;
    if (n / c < COLUMN_LEAST) return 0;
    for (int64_t k = 0; k < c; k++) {
        const span s = verdict_measure(got + k, want + k, emul + k, n - k, c);
        double floor2 = 0;
        for (int64_t i = k; i < n; i += c) {
            const double half = half_ulp(arith, want[i]);
            if (isfinite(emul[i] - want[i]) && isfinite(got[i] - want[i]))
                floor2 += half * half;
        }
        const double e2 = fmax(fmax(s.emul, rel * rel * s.want), floor2);
        if (e2 > 0) most = fmax(most, sqrt(s.got / e2) / (TT_SLACK / 2));
    }
    return most;
}

/* The last axis, wider while it is short, so that a row's own error means
 * something. Next to an extent of 0 the others may be anything, and there are
 * no rows. */
static int64_t row_length(const tt_verdict *v)
{
    int64_t c = 1;
    for (int i = v->rank - 1; i >= 0 && c < 32; i--)
        if (!tt_checked_mul(&c, c, v->dim[i])) return 1;
    return c > 0 ? c : 1;
}

void tt_verdict_check(tt_verdict *v, const tt_arith *arith, const double *got,
                      const double *want, const double *emul, int64_t n,
                      tt_verdict_of of)
{
    const bool call = of == TT_OF_CALL;
    const int64_t last = v->rank && n ? v->dim[v->rank - 1] : 1;
    const int64_t c = call ? last : row_length(v);
    verdict_rows(v, arith, got, want, emul, n, c, of == TT_OF_SEGMENT);
    if (of == TT_OF_ROWS || v->outcome == TT_UNCHECKED
        || (arith->product != TT_FMT_F16 && arith->product != TT_FMT_BF16))
        return;
    double most = slope_ratio(arith, got, want, emul, n, row_group(c))
                  / (call ? 1 : TT_SLACK / 2);
    if (call || v->rank < 4)               /* channels of latents come first */
        most = fmax(most, columns_ratio(arith, got, want, emul, n, last)
                          / (call ? 1 : 2));
    v->ratio = fmax(v->ratio, most);
    if (v->ratio > 1) v->outcome = TT_MISMATCH;
}
