/* values.c: wrong values in the right places: signs, factors, offsets,
 * rounding, limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fitted by least squares where there is a number to find; a fit needs several
 * elements per number, else it explains anything. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/hint.h"

/* Sums over the finite pairs of n elements `step` apart. */
typedef struct moments {
    double n, g, w, gw, ww;
} moments;

static moments sum(const double *got, const double *want, int64_t n,
                   int64_t step)
{
    moments m = {0};
    for (int64_t i = 0; i < n * step; i += step) {
        const double g = got[i], w = want[i];
        if (!isfinite(g) || !isfinite(w)) continue;
        m.n++;
        m.g += g;
        m.w += w;
        m.gw += g * w;
        m.ww += w * w;
    }
    return m;
}

enum { WIDTHS = 10 };

/* Sizes of the call and of the tensor, those that make factors first. */
static int widths(const hint *h, double width[WIDTHS])
{
    const op_call *q = h->q;
    int n = 0;
    if (q && q->kind == OP_ATTENTION) {
        width[n++] = (double)q->attn.D;
        width[n++] = (double)q->attn.N;
    }
    if (q && q->kind == OP_LINEAR) width[n++] = (double)q->w->dim[1];
    if (q && (q->kind == OP_COL_MEAN || q->kind == OP_COL_MOMENT)) {
        width[n++] = (double)q->n;
        width[n++] = (double)q->n - 1;
    }
    for (int i = h->rank - 1; i >= 0 && n < WIDTHS; i--)
        width[n++] = (double)h->dim[i];
    return n;
}

/* s as w or one over it, or from form 0 on as a root of w; the last fits. */
static void name_by(double s, double w, int form, char *out, size_t size)
{
    static const double power[] = {0.5, -0.5, 1, -1};
    static const char *const text[] = {" = %ssqrt(%g)", " = %s1/sqrt(%g)",
                                       " = %s%g", " = %s1/%g"};
    for (; form < 4; form++)
        if (fabs(fabs(s) / pow(w, power[form]) - 1) < 2e-3)
            snprintf(out, size, text[form], s < 0 ? "-" : "", w);
}

/* " = 1/sqrt(32)", " = -1/2" when s is a number with a name, else "". */
static void name_factor(const hint *h, double s, char *out, size_t size)
{
    static const double plain[] = {2, 3, 4, 8, 10, 16, 100, 1000};
    double width[WIDTHS];
    const int n = widths(h, width);
    out[0] = 0;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        name_by(s, plain[i], 3, out, size);
    for (int i = 0; i < n && !out[0]; i++)
        if (width[i] >= 2) name_by(s, width[i], 0, out, size);
}

/* A number fitted to a handful of values that lie close together leaves little
 * of any error: of so few it must leave nothing, and they must be three times
 * as many as what is fitted. Equal values count once. */
static bool by_chance(const hint *h, int fitted)
{
    enum { HANDFUL = 32 };
    int64_t distinct = 0;
    if (h->n >= HANDFUL) return false;
    for (int64_t i = 0; i < h->n; i++) {
        bool known = false;
        if (value_distance(h->got[i], h->trial[i]) > 4 * h->earned) return true;
        for (int64_t k = 0; k < i; k++)
            known |= fabs(h->want[k] - h->want[i]) <= 1e-5 * h->top;
        distinct += !known;
    }
    return distinct < 3 * fitted;
}

static void values_factors(hint *h)
{
    const moments m = sum(h->got, h->want, h->n, 1);
    if (h->n < 2 || m.ww == 0) return;
    char name[48];
    const double s = m.gw / m.ww;
    name_factor(h, s, name, sizeof name);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = s * h->want[i];
    if (!by_chance(h, 1))
        hint_try(h, h->trial, fabs(s - 1) < 1e-3 ? "scaled by %.8g%s"
                                               : "scaled by %.5g%s", s, name);
    if (h->n < 6) return;

    const double var = m.ww - m.w * m.w / m.n;
    const double shift = (m.g - m.w) / m.n;
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->want[i] + shift;
    if (!by_chance(h, 1))
        hint_try(h, h->trial, "the constant %.5g is added", shift);
    if (var <= 0) return;
    const double slope = (m.gw - m.g * m.w / m.n) / var;
    const double at0 = (m.g - slope * m.w) / m.n;
    name_factor(h, slope, name, sizeof name);
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] = slope * h->want[i] + at0;
    if (!by_chance(h, 2))
        hint_try(h, h->trial, "scaled by %.5g%s, and %.5g added", slope, name,
                 at0);
}

/* A number of its own for every line: fitted on half of the elements of each
 * and tried on all, because what has to be learned from an element cannot be
 * explained by it. */
typedef struct lines {
    int64_t n, len, next, step;      /* of elements: to the next line, in one */
    double *value, least, most;
} lines;

/* The constants (or factors) that fit, and the trial they make. */
static void fit_lines(hint *h, lines *l, bool factor)
{
    l->least = INFINITY, l->most = -INFINITY;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t at = i * l->next;
        const moments m = sum(h->got + at, h->want + at, (l->len + 1) / 2,
                              2 * l->step);
        const double v = factor ? (m.ww > 0 ? m.gw / m.ww : 1)
                                : (m.n != 0 ? (m.g - m.w) / m.n : 0);
        for (int64_t k = at; k < at + l->len * l->step; k += l->step)
            h->trial[k] = factor ? h->want[k] * v : h->want[k] + v;
        l->least = fmin(l->least, v);
        l->most = fmax(l->most, v);
        l->value[i] = v;
    }
}

/* Is it about half of the lines, at least? A few lines that are wrong are told
 * by their place. */
static bool most_moved(const lines *l, double neutral)
{
    double far = 0;
    int64_t moved = 0;
    for (int64_t i = 0; i < l->n; i++)
        far = fmax(far, fabs(l->value[i] - neutral));
    for (int64_t i = 0; i < l->n; i++)
        moved += fabs(l->value[i] - neutral) > far / 16;
    return 2 * moved >= l->n;
}

/* A factor and a constant for every channel. */
static void channels(hint *h)
{
    const int64_t R = h->n / h->c;
    int64_t moved = 0;           /* a few are told by their place             */
    if (h->c < 2 || R < 12) return;
    for (int64_t k = 0; k < h->c; k++) {
        bool any = false;
        for (int64_t i = k; i < h->n; i += h->c) any |= h->wrong[i];
        moved += any;
        const moments m = sum(h->got + k, h->want + k, (R + 1) / 2, 2 * h->c);
        const double var = m.ww - m.w * m.w / m.n;
        const double s = var > 0 ? (m.gw - m.g * m.w / m.n) / var : 1;
        for (int64_t i = k; i < h->n; i += h->c)
            h->trial[i] = s * h->want[i] + (m.g - s * m.w) / m.n;
    }
    if (2 * moved >= h->c)
        hint_try(h, h->trial, "every channel has a factor and a constant of "
                 "its own: another mean and deviation, or weight and bias?");
}

static void factors_along(hint *h, bool rows)
{
    const int64_t R = h->n / h->c;
    lines l = rows ? (lines){R, h->c, h->c, 1, NULL, 0, 0}
                   : (lines){h->c, R, 1, h->c, NULL, 0, 0};
    if (l.n < 2 || l.len < 4) return;
    l.value = hint_doubles(h, l.n);
    if (!l.value) return;
    fit_lines(h, &l, false);
    if (most_moved(&l, 0))
        hint_try(h, h->trial, rows
                 ? "a constant of its own is added to every row (%.4g .. "
                   "%.4g)"
                 : "a constant of its own is added to every channel (%.4g "
                   ".. %.4g): bias missing, twice, or another's?",
                 l.least, l.most);
    fit_lines(h, &l, true);
    if (most_moved(&l, 1))
        hint_try(h, h->trial, "every %s is scaled by a factor of its own "
                 "(%.7g .. %.7g)", rows ? "row" : "channel", l.least, l.most);
}

static void values_rounded(hint *h)
{
    static const struct { tt_format f; const char *name; } formats[] = {
        /* the same but for their range */
        {TT_FMT_TF32, "tf32 or f16"}, {TT_FMT_F16, "f16"},
        {TT_FMT_BF16, "bf16"}};
    for (int i = 0; i < 3; i++) {
        for (int64_t k = 0; k < h->n; k++)
            h->trial[k] = (double)tt_format_round(formats[i].f,
                                                  (float)h->want[k]);
        hint_try(h, h->trial, "the result is rounded to %s", formats[i].name);
        /* toward zero: one step back where rounding went up */
        for (int64_t k = 0; k < h->n; k++) {
            const double w = h->want[k];
            if (fabs(h->trial[k]) > fabs(w))
                h->trial[k] = (double)tt_format_round(formats[i].f, (float)(
                    2 * w - h->trial[k]));
        }
        hint_try(h, h->trial, "the result is cut off to %s",
                 formats[i].name);
    }
}

static void limited(hint *h)
{
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < h->n; i++) {
        if (!isfinite(h->got[i])) return;
        lo = fmin(lo, h->got[i]);
        hi = fmax(hi, h->got[i]);
    }
    int64_t inside = 0;
    for (int64_t i = 0; i < h->n; i++) {
        h->trial[i] = fmin(fmax(h->want[i], lo), hi);
        inside += h->trial[i] == h->want[i];
    }
    if (inside >= 4)
        hint_try(h, h->trial, "limited to %.5g .. %.5g", lo, hi);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = fabs(h->want[i]);
    hint_try(h, h->trial, "the absolute value");
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] = fabs(h->want[i]) < 0x1p-126 ? 0 : h->want[i];
    hint_try(h, h->trial, "denormal values are flushed to zero");
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] = fmin(fmax(h->want[i], -65504), 65504);
    hint_try(h, h->trial, "values beyond 65504 are limited to it (f16)");
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] = fabs(h->want[i]) > 65504
                          ? copysign(INFINITY, h->want[i]) : h->want[i];
    hint_try(h, h->trial, "values beyond 65504 are infinite (f16)");
}

void hint_values(hint *h)
{
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = 0;
    hint_try(h, h->trial, "zero (not computed?)");
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->got[0];
    if (h->n > 3 && !by_chance(h, 1))
        hint_try(h, h->trial, "all %.6g (not written?)", h->got[0]);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = -h->want[i];
    hint_try(h, h->trial, "sign flipped");
    values_factors(h);
    values_rounded(h);
    limited(h);
    factors_along(h, false);
    factors_along(h, true);
    channels(h);
}
