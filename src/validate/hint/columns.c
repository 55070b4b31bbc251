/* columns.c: how per-channel statistics and the edit made of them go
 * wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "validate/hint/hint.h"

/* Sums kept in a narrow format, rows ascending. */
static void narrow_sums(hint *h)
{
    static const struct { tt_format f; const char *name; } formats[] = {
        {TT_FMT_F32, "f32"}, {TT_FMT_F16, "f16"}, {TT_FMT_BF16, "bf16"}};
    const op_call *q = h->q;
    for (int f = 0; f < 3; f++) {
        for (int64_t i = 0; i < q->c; i++) {
            float s = 0;
            for (int64_t r = 0; r < q->n; r++) {
                const double d = (double)q->x[r * q->c + i] -
                                 (q->mean ? q->mean[i] : 0);
                s = tt_format_round(formats[f].f, (float)(
                    (double)s + (q->kind == OP_COL_MEAN ? d : d * d)));
            }
            h->trial[i] = (double)s /
                          (q->kind == OP_COL_MEAN ? (double)q->n : 1);
        }
        hint_try(h, h->trial, "sums are kept in %s", formats[f].name);
    }
}

static void statistics(hint *h)
{
    const op_call *q = h->q;
    const double n = (double)q->n;
    const bool mean = q->kind == OP_COL_MEAN;
    const struct { double factor; const char *what; } factors[] = {
        {mean ? n : 1 / n, mean ? "the sum instead of the mean (1/n missing)"
                                : "divided by n: the variance, not the sum"},
        {mean ? n / (n - 1) : 1 / (n - 1),
         mean ? "divided by n - 1" : "divided by n - 1: the unbiased variance"},
        {mean ? n / (n + 1) : 1 / (double)q->c,
         mean ? "divided by n + 1" : "divided by the channels"},
        {mean ? n / (double)q->c : 2,
         mean ? "divided by the channels instead of the rows" : "doubled"}};
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        if (!isfinite(factors[k].factor) || factors[k].factor == 1) continue;
        for (int64_t i = 0; i < h->n; i++)
            h->trial[i] = h->want[i] * factors[k].factor;
        hint_try(h, h->trial, "%s", factors[k].what);
    }
    if (!mean) {
        for (int form = 0; form < 2; form++) {
            for (int64_t i = 0; i < h->n; i++)
                h->trial[i] = sqrt(h->want[i] / (form ? n - 1 : n));
            hint_try(h, h->trial, "the standard deviation, not the sum");
        }
    }
    narrow_sums(h);
    /* sums over other rows, or of something else */
    static const char *const what[] = {
        "the last row is left out", "the first row is left out",
        "the mean is not subtracted", "distance instead of its square",
        "only the first half of the rows", "the first row is counted twice"};
    for (int form = 0; form < 6; form++) {
        if (mean && (form == 2 || form == 3)) continue;
        for (int divide = 0; divide < (mean ? 2 : 1); divide++) {
            for (int64_t i = 0; i < q->c; i++) {
                double s = 0;
                int64_t rows = 0;
                for (int64_t r = 0; r < q->n; r++) {
                    if ((form == 0 && r == q->n - 1) || (form == 1 && r == 0) ||
                        (form == 4 && r >= (q->n + 1) / 2))
                        continue;
                    const double x = (double)q->x[r * q->c + i];
                    const double d = x - (form == 2 || !q->mean ? 0
                                                                : q->mean[i]);
                    const double t = mean ? x : form == 3 ? fabs(d) : d * d;
                    s += form == 5 && r == 0 ? 2 * t : t;
                    rows++;
                }
                h->trial[i] = mean ? s / (divide ? (double)rows : n) : s;
            }
            hint_try(h, h->trial, "%s", what[form]);
        }
    }
}

typedef enum blend_fault {
    BLEND_INVERSE_TAU, BLEND_NOT, BLEND_FULL, BLEND_GAIN_INVERSE,
    BLEND_NO_GAIN, BLEND_NO_MEAN, BLEND_NO_TARGET, BLEND_SWAPPED,
    BLEND_KEEP_MEAN, BLEND_ADDED, BLEND_GAIN_ROOT, BLEND_GAIN_SQUARE,
    BLEND_TAU_SQUARE, BLEND_TWICE, BLEND_FAULTS
} blend_fault;
static const char *const blend_what[BLEND_FAULTS] = {
    "tau and 1 - tau exchanged", "not applied: the output is the input",
    "tau is taken as 1", "gain inverted", "gain missing",
    "mean not subtracted", "target not added", "mean and target exchanged",
    "the old mean is added back instead of the target",
    "added to x instead of blended (1 - tau missing)",
    "root of the gain", "gain squared", "tau applied twice",
    "applied twice"};

static double blend(const op_call *q, blend_fault f, double x, int64_t i)
{
    double tau = q->tau, rest = 1 - tau, gain = q->gain[i];
    double mean = q->mean[i], target = q->target[i];
    switch (f) {
    case BLEND_INVERSE_TAU: tau = rest; rest = q->tau; break;
    case BLEND_NOT: return x;
    case BLEND_FULL: tau = 1; rest = 0; break;
    case BLEND_GAIN_INVERSE: gain = 1 / gain; break;
    case BLEND_NO_GAIN: gain = 1; break;
    case BLEND_NO_MEAN: mean = 0; break;
    case BLEND_NO_TARGET: target = 0; break;
    case BLEND_SWAPPED: mean = q->target[i]; target = q->mean[i]; break;
    case BLEND_KEEP_MEAN: target = mean; break;
    case BLEND_ADDED: rest = 1; break;
    case BLEND_GAIN_ROOT: gain = sqrt(gain); break;
    case BLEND_GAIN_SQUARE: gain *= gain; break;
    case BLEND_TWICE:
        x = rest * x + tau * (gain * (x - mean) + target);
        break;
    default: tau *= tau; rest = 1 - tau; break;
    }
    return rest * x + tau * (gain * (x - mean) + target);
}

/* The tau that was used, by least squares along the right edit. */
static void find_tau(hint *h)
{
    const op_call *q = h->q;
    double ge = 0, ee = 0;
    for (int64_t k = 0; k < h->n; k++) {
        const double x = (double)q->x[k];
        const double edit = blend(q, BLEND_FULL, x, k % q->c) - x;
        if (!isfinite(h->got[k])) continue;
        ge += (h->got[k] - x) * edit;
        ee += edit * edit;
    }
    if (!(ee > 0)) return;
    const double tau = ge / ee;
    for (int64_t k = 0; k < h->n; k++) {
        const double x = (double)q->x[k];
        const double full = blend(q, BLEND_FULL, x, k % q->c);
        h->trial[k] = x + tau * (full - x);
    }
    hint_try(h, h->trial, "tau is %.4g instead of %.4g", tau, q->tau);
}

void hint_columns(hint *h)
{
    const op_call *q = h->q;
    if (q->kind != OP_COL_BLEND) {
        statistics(h);
        return;
    }
    for (int f = 0; f < BLEND_FAULTS; f++) {
        for (int64_t k = 0; k < h->n; k++)
            h->trial[k] = blend(q, (blend_fault)f, (double)q->x[k], k % q->c);
        hint_try(h, h->trial, "%s", blend_what[f]);
    }
    if (h->n > 4) find_tau(h);
}
