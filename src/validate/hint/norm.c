/* norm.c: how a normalisation goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <math.h>

#define F(...) &(norm_fault){__VA_ARGS__}

/* A number of the fault, told by its logarithm. */
typedef struct number_of {
    norm_fault f;
    double *number;
} number_of;

static double number_left(hint *h, void *user, double v)
{
    number_of *n = user;
    *n->number = pow(10, v);
    return hint_left(h, h->q, &n->f);
}

/* An eps, and a floor that the norm of the VAE alone has, are solved for. */
static void norm_numbers(hint *h)
{
    const op_call *q = h->q;
    const bool channel = q->kind == OP_CHANNEL_NORM;
    number_of eps = {.f = {.other_eps = true}}, out = eps, floor = {0};
    eps.number = &eps.f.eps;
    out.number = &out.f.eps;
    out.f.outside = true;
    floor.number = &floor.f.floor;
    const struct { number_of *n; bool when; double lo, hi; const char *what; }
    list[] = {
        {&eps, true, -13, 0, channel ? "eps, added to the sum of squares,"
                                     : "eps"},
        {&out, true, -13, 0, "what is added outside the root"},
        {&floor, channel, -13, 0, "the floor of the norm"}};
    const double right[] = {channel ? 0 : q->eps, 0, 1e-12};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double v;
        if (!list[i].when || !hint_solve(h, number_left, list[i].n, list[i].lo,
                                         list[i].hi, 52, &v)) continue;
        const double by = pow(10, rint(v));
        const double x = fabs(pow(10, v) / by - 1) < 0.05 ? by : pow(10, v);
        *list[i].n->number = x;
        hint_try_fault(h, &list[i].n->f, "%s is %.3g instead of %.3g",
                       list[i].what, x, right[i]);
    }
}

static void parts(hint *h)
{
    int64_t part[PARTS_MOST];
    const long long c = h->q->c;
    const int n = hint_parts(c, part);
    for (int k = 0; k < n; k++)
        hint_try_fault(h, F(.part = c - part[k]), "statistics over the first "
                       "%lld of %lld channels", c - (long long)part[k], c);
}

/* Every head has a statistic of its own; weights of all channels, or those of
 * the first head for all. */
static void norm_of_heads(hint *h)
{
    const int64_t c = h->q->c;
    for (int64_t g = 2; g <= 64 && g <= c / 4; g++)
        for (int first = 0; c % g == 0 && first < (h->q->a ? 2 : 1); first++)
            hint_try_fault(h, F(.heads = g, .affine = first ? AFFINE_FIRST_HEAD
                                                            : AFFINE_RIGHT),
                           "every one of %lld heads is normalised for itself%s",
                           (long long)g, first ? ", with the first one's "
                           "weights" : "");
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
        {rows, F(.group = GROUP_ALL), "one statistic for all rows"},
    };
    HINT_TRY_EACH(h, first);
    for (int e = 3; e < 6 && h->chain && h->chain->blind && !channel; e++)
        hint_try_fault(h, F(.other_eps = true, .eps = pow(10, -e)),
                       "eps is 1e-%d instead of %.3g", e, q->eps);
    norm_numbers(h);
    HINT_TRY_EACH(h, second);
    parts(h);
    norm_of_heads(h);
    HINT_TRY_EACH(h, third);
    hint_not_applied(h);
}
