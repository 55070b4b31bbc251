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

/* Sums over the finite pairs of n elements `step` apart, with `mask` only where
 * it is set. */
typedef struct moments {
    double n, g, w, gw, ww;
} moments;

static moments sum(const double *got, const double *want, const bool *mask,
                   int64_t n, int64_t step)
{
    moments m = {0};
    for (int64_t i = 0; i < n * step; i += step) {
        const double g = got[i], w = want[i];
        if (!isfinite(g) || !isfinite(w) || (mask && !mask[i])) continue;
        m.n++;
        m.g += g;
        m.w += w;
        m.gw += g * w;
        m.ww += w * w;
    }
    return m;
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
    out[0] = 0;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        name_by(s, plain[i], 3, out, size);
    for (int i = h->rank - 1; i >= 0 && !out[0]; i--)
        if (h->dim[i] >= 2) name_by(s, (double)h->dim[i], 0, out, size);
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

/* The factor and the constant, or one of them, that fit n elements. */
enum { FACTOR = 1, CONSTANT = 2, LINE = 3 };

static void fit_line(const moments *m, int what, double *s, double *add)
{
    const double var = m->ww - m->w * m->w / m->n;
    *s = what == CONSTANT ? 1
         : what == FACTOR ? m->ww > 0 ? m->gw / m->ww : 1
         : var > 0 ? (m->gw - m->g * m->w / m->n) / var : 1;
    *add = what == FACTOR || !(m->n > 0) ? 0 : (m->g - *s * m->w) / m->n;
}

static void values_factors(hint *h)
{
    const moments m = sum(h->got, h->want, h->wrong, h->n, 1);
    if (h->n < 2 || m.ww == 0) return;
    char name[48];
    const double s = m.gw / m.ww;
    name_factor(h, s, name, sizeof name);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = s * h->want[i];
    if (!by_chance(h, 1))
        hint_try(h, h->trial, fabs(s - 1) < 1e-3 ? "scaled by %.8g%s"
                                               : "scaled by %.5g%s", s, name);
    if (h->n < 6) return;
    for (int what = CONSTANT; what <= LINE; what++) {
        double slope, add;
        fit_line(&m, what, &slope, &add);
        for (int64_t i = 0; i < h->n; i++)
            h->trial[i] = slope * h->want[i] + add;
        if (by_chance(h, what == LINE ? 2 : 1)) continue;
        name_factor(h, slope, name, sizeof name);
        if (what == CONSTANT)
            hint_try(h, h->trial, "the constant %.5g is added", add);
        else
            hint_try(h, h->trial, "scaled by %.5g%s, and %.5g added", slope,
                     name, add);
    }
}

/* Numbers of its own for every row or channel: fitted on half of the elements
 * of each and tried on all, because what has to be learned from an element
 * cannot be explained by it. About half of the lines must be moved: a few are
 * told by their place. */
static void every_line(hint *h, bool rows, int what)
{
    const int64_t R = h->n / h->c, n = rows ? R : h->c, len = rows ? h->c : R;
    const int64_t next = rows ? h->c : 1, step = rows ? 1 : h->c;
    const double neutral = what == FACTOR;
    double least = INFINITY, most = -INFINITY, far = 0;
    double *value = hint_doubles(h, n);
    int64_t moved = 0;
    if (!value || n < 2 || len < (what == LINE ? 12 : 4)) return;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * next;
        const moments m = sum(h->got + at, h->want + at, NULL,
                              (len + 1) / 2, 2 * step);
        double s, add;
        fit_line(&m, what, &s, &add);
        for (int64_t k = at; k < at + len * step; k += step)
            h->trial[k] = s * h->want[k] + add;
        value[i] = what == FACTOR ? s : add;
        if (what == LINE) value[i] = fmax(fabs(s - 1) * h->top, fabs(add));
        least = fmin(least, value[i]);
        most = fmax(most, value[i]);
        far = fmax(far, fabs(value[i] - neutral));
    }
    for (int64_t i = 0; i < n; i++)
        moved += fabs(value[i] - neutral) > far / 16;
    const char *one = rows ? "row" : "channel";
    if (2 * moved < n) return;
    if (what == FACTOR)
        hint_try(h, h->trial, "every %s is scaled by a factor of its own "
                 "(%.7g .. %.7g)", one, least, most);
    else if (what == CONSTANT)
        hint_try(h, h->trial, "a constant of its own is added to every %s "
                 "(%.4g .. %.4g)", one, least, most);
    else
        hint_try(h, h->trial, "every %s has a factor and a constant of its "
                 "own", one);
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
    int64_t first = 0;
    while (first < h->n - 1 && !h->wrong[first]) first++;
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->got[first];
    if (h->n > 3 && !by_chance(h, 1))
        hint_try(h, h->trial, "all %.6g (not written?)", h->got[first]);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = -h->want[i];
    hint_try(h, h->trial, "sign flipped");
    values_factors(h);
    values_rounded(h);
    limited(h);
    for (int what = FACTOR; what <= LINE; what++) {
        every_line(h, false, what);
        if (what != LINE) every_line(h, true, what);
    }
}
