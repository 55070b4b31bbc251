/* norm.c: how a normalisation goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <math.h>

#define F(...) &(norm_fault){__VA_ARGS__}

/* The eps that the row of smallest spread was divided with: from the factor
 * between got and the right result, least squares. */
static double find_eps(hint *h)
{
    const op_call *q = h->q;
    double best = INFINITY, eps = NAN;
    for (int64_t r = 0; r < q->n; r++) {
        const tt_real *x = q->x + r * q->c;
        double mean = 0, square = 0, gw = 0, ww = 0;
        for (int64_t i = 0; i < q->c; i++) mean += (double)x[i];
        mean = q->kind == OP_LAYER_NORM ? mean / (double)q->c : 0;
        for (int64_t i = 0; i < q->c; i++) {
            const double d = (double)x[i] - mean;
            const double b = q->kind == OP_LAYER_NORM && q->b
                                 ? (double)q->b[i] : 0;
            const double w = h->want[r * q->c + i] - b;
            square += d * d;
            gw += (h->got[r * q->c + i] - b) * w;
            ww += w * w;
        }
        const double v = square / (double)q->c, s = gw / ww;
        if (!(v < best) || !(ww > 0) || !(s > 0)) continue;
        best = v;
        eps = (v + q->eps) / (s * s) - v;
    }
    if (!(eps > 0)) return eps;
    const double ten = pow(10, floor(log10(eps) + 0.5));
    return fabs(eps / ten - 1) < 0.05 ? ten : eps;
}

/* A floor or an eps that the norm of the VAE has not. */
static void channel_eps(hint *h)
{
    for (int e = 12; e >= 5; e--) {
        const double eps = pow(10, -e);
        hint_try_fault(h, F(.outside = true, .other_eps = true, .eps = eps),
                       "1e-%d is added to the norm (it is a floor of 1e-12)",
                       e);
        hint_try_fault(h, F(.other_eps = true, .eps = eps * (double)h->q->c),
                       "eps 1e-%d is added to the mean square", e);
    }
    for (int e = 11; e >= 2; e--)
        hint_try_fault(h, F(.floor = pow(10, -e)),
                       "the norm has a floor of 1e-%d instead of 1e-12", e);
}

static void parts(hint *h)
{
    const int64_t c = h->q->c, part[] = {
        c / 2, c - 1, c - c % 4, c - c % 8, c - c % 16, c - c % 32,
        c - c % 64, c < 512 ? 0 : 512};
    for (size_t k = 0; k < sizeof part / sizeof *part; k++)
        if (part[k] > 0 && part[k] < c)
            hint_try_fault(h, F(.part = part[k]), "statistics over the first "
                           "%lld of %lld channels", (long long)part[k],
                           (long long)c);
}

void hint_norm(hint *h)
{
    const op_call *q = h->q;
    const bool layer = q->kind == OP_LAYER_NORM, rows = q->n > 1;
    const bool channel = q->kind == OP_CHANNEL_NORM, weight = q->a != NULL;
    const double c = (double)q->c;
    const hint_trial first[] = {
        {layer, F(.mean = MEAN_OF_SQUARE),
         "mean not subtracted (variance around it)"},
        {layer, F(.mean = MEAN_NONE), "mean not subtracted (RMS norm)"},
        {layer, F(.mean = MEAN_OF_X), "mean square instead of variance"},
        {!layer, F(.mean = MEAN_BOTH), "mean subtracted (layer norm)"},
        {!channel, F(.other_eps = true), h->chain
             ? "eps is not added, or what is normalised is scaled up"
             : "eps is not added"},
        {channel, F(.factor = 1), "factor sqrt(C) missing"},
        {channel, F(.factor = c), "factor C instead of sqrt(C)"},
    }, second[] = {
        {!channel, F(.outside = true), "eps is added outside the root"},
        {!channel && c > 1, F(.count = c - 1),
         "unbiased variance (divided by C - 1)"},
        {!channel, F(.count = 1),
         "sum of squares instead of their mean (1/C missing)"},
        {true, F(.no_root = true), "square root missing"},
        {weight, F(.affine = AFFINE_NONE), "weight and bias not applied"},
        {weight, F(.affine = AFFINE_NO_BIAS), "bias not applied"},
        {weight, F(.affine = AFFINE_ONE_PLUS), "weight is 1 + w"},
        {weight, F(.affine = AFFINE_TWICE), "weight applied twice"},
        {weight, F(.affine = AFFINE_BIAS_FIRST),
         "bias added before the weight"},
        {rows, F(.group = GROUP_COLUMN),
         "normalised over the wrong axis (rows of a channel)"},
        {rows && channel,
         F(.group = GROUP_COLUMN, .factor = sqrt((double)q->n)),
         "normalised over the wrong axis (rows of a channel)"},
    }, third[] = {
        {layer, F(.single = SINGLE_SQUARES),
         "variance as E[x^2] - E[x]^2 in float32"},
        {!channel, F(.single = SINGLE_SUMS), "statistics in float32"},
        {true, F(.group = GROUP_HALF),
         "each half of the row is normalised for itself"},
        {rows, F(.group = GROUP_ALL), "one statistic for all rows"},
    };
    HINT_TRY_EACH(h, first);
    if (channel) channel_eps(h);
    /* of a chain the result is not known, from which eps could be found */
    for (int e = 2; h->chain && !channel && e <= 12; e++)
        if (fabs(log10(q->eps) + e) > 0.1)
            hint_try_fault(h, F(.other_eps = true, .eps = pow(10, -e)),
                           "eps is 1e-%d instead of %.3g", e, q->eps);
    const double eps = channel || h->chain ? 0 : find_eps(h);
    if (eps > 0 && eps < 1)
        hint_try_fault(h, F(.other_eps = true, .eps = eps),
                       "eps is %.3g instead of %.3g", eps, q->eps);
    HINT_TRY_EACH(h, second);
    parts(h);
    HINT_TRY_EACH(h, third);
    hint_not_applied(h);
}
