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

/* " = 1/sqrt(32)", " = -1/2" when s is a number with a name, else "". */
static void name_factor(const hint *h, double s, char *out, size_t size)
{
    static const double plain[] = {2, 3, 4, 8, 10, 16, 100, 1000};
    double width[10];
    int n = 0;
    if (h->q && h->q->kind == OP_ATTENTION) {
        width[n++] = (double)h->q->attn.D;
        width[n++] = (double)h->q->attn.N;
    }
    if (h->q && h->q->kind == OP_LINEAR) width[n++] = (double)h->q->w->dim[1];
    if (h->q && (h->q->kind == OP_COL_MEAN || h->q->kind == OP_COL_MOMENT)) {
        width[n++] = (double)h->q->n;
        width[n++] = (double)h->q->n - 1;
    }
    for (int i = h->rank - 1; i >= 0 && n < 10; i--)
        width[n++] = (double)h->dim[i];
    const double a = fabs(s), close = 2e-3;
    const char *sign = s < 0 ? "-" : "";
    out[0] = 0;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            const double v = inverse ? 1 / plain[i] : plain[i];
            if (fabs(a / v - 1) < close)
                snprintf(out, size, " = %s%s%g", sign, inverse ? "1/" : "",
                         plain[i]);
        }
    for (int i = 0; i < n && !out[0]; i++) {
        if (width[i] < 2) continue;
        for (int form = 0; form < 4; form++) {
            const double v = pow(width[i], (double[]){0.5, -0.5, 1, -1}[form]);
            if (fabs(a / v - 1) < close)
                snprintf(out, size, (const char *[]){
                             " = %ssqrt(%g)", " = %s1/sqrt(%g)", " = %s%g",
                             " = %s1/%g"}[form], sign, width[i]);
        }
    }
}

static void factors(hint *h)
{
    const moments m = sum(h->got, h->want, h->n, 1);
    if (h->n < 2 || m.ww == 0) return;
    char name[48];
    const double s = m.gw / m.ww;
    name_factor(h, s, name, sizeof name);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = s * h->want[i];
    hint_try(h, h->trial, fabs(s - 1) < 1e-3 ? "scaled by %.8g%s"
                                           : "scaled by %.5g%s", s, name);
    if (h->n < 6) return;

    const double var = m.ww - m.w * m.w / m.n;
    const double shift = (m.g - m.w) / m.n;
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->want[i] + shift;
    hint_try(h, h->trial, "the constant %.5g is added", shift);
    if (var <= 0) return;
    const double slope = (m.gw - m.g * m.w / m.n) / var;
    const double at0 = (m.g - slope * m.w) / m.n;
    name_factor(h, slope, name, sizeof name);
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] = slope * h->want[i] + at0;
    hint_try(h, h->trial, "scaled by %.5g%s, and %.5g added", slope, name,
             at0);
}

/* One number for every channel, or for every row. Fitted on half of the
 * elements of each and tried on all: what has to be learned from an element
 * cannot be explained by it. */
static void factors_along(hint *h, bool rows)
{
    const int64_t R = h->n / h->c, lines = rows ? R : h->c;
    const int64_t len = rows ? h->c : R, step = rows ? 1 : h->c;
    if (lines < 2 || len < 4) return;
    const char *line = rows ? "row" : "channel";
    double *factor = hint_doubles(h, lines);
    if (!factor) return;
    for (int form = 0; form < 2; form++) {
        const double neutral = form ? 1 : 0;
        double least = INFINITY, most = -INFINITY, far = 0;
        int64_t moved = 0;
        for (int64_t i = 0; i < lines; i++) {
            const int64_t at = rows ? i * h->c : i;
            const moments m = sum(h->got + at, h->want + at, (len + 1) / 2,
                                  2 * step);
            const double v = form == 0 ? (m.n != 0 ? (m.g - m.w) / m.n : 0)
                                       : (m.ww > 0 ? m.gw / m.ww : 1);
            for (int64_t j = 0; j < len; j++) {
                const int64_t k = at + j * step;
                h->trial[k] = form == 0 ? h->want[k] + v : h->want[k] * v;
            }
            least = fmin(least, v);
            most = fmax(most, v);
            far = fmax(far, fabs(v - neutral));
            factor[i] = v;
        }
        /* a few lines that are wrong are told by their place */
        for (int64_t i = 0; i < lines; i++)
            moved += fabs(factor[i] - neutral) > far / 16;
        if (2 * moved < lines) continue;
        if (form == 0)
            hint_try(h, h->trial, rows
                     ? "a constant of its own is added to every row (%.4g .. "
                       "%.4g): mean not subtracted?"
                     : "a constant of its own is added to every channel (%.4g "
                       ".. %.4g): bias missing, twice, or another's?",
                     least, most);
        else
            hint_try(h, h->trial, "every %s is scaled by a factor of its own "
                     "(%.7g .. %.7g)", line, least, most);
    }
}

static void rounded(hint *h)
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
        h->trial[i] = fabs(h->want[i]) > 65504
                          ? copysign(INFINITY, h->want[i]) : h->want[i];
    hint_try(h, h->trial, "values beyond 65504 are infinite (f16)");
}

void hint_values(hint *h)
{
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = 0;
    hint_try(h, h->trial, "zero (not computed?)");
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->got[0];
    if (h->n > 3)
        hint_try(h, h->trial, "all %.6g (not written?)", h->got[0]);
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = -h->want[i];
    hint_try(h, h->trial, "sign flipped");
    factors(h);
    rounded(h);
    limited(h);
    factors_along(h, false);
    factors_along(h, true);
}
