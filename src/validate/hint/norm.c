/* norm.c: how a normalisation goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/hint.h"

typedef enum affine_fault {
    AFFINE_RIGHT, AFFINE_NONE, AFFINE_NO_BIAS, AFFINE_ONE_PLUS, AFFINE_TWICE,
    AFFINE_BIAS_FIRST
} affine_fault;

typedef struct fault {
    bool center;            /* subtract the mean before                       */
    bool center_square;     /* the mean square includes the mean's square     */
    double count;           /* what sums of squares are divided by            */
    double eps;
    bool outside;           /* eps added to the root                          */
    bool no_root;
    double factor, floor;   /* floor: of the root                             */
    affine_fault affine;
    bool columns;           /* over the rows of a channel                     */
    bool per_half;          /* each half of the row for itself                */
    bool whole;             /* one statistic for all rows                     */
    int64_t part;           /* 0, or the leading elements that are counted    */
    int single;             /* 1: sums in float32, 2: E[x^2] - E[x]^2 as well */
} fault;

static fault right(const op_call *q)
{
    const double c = (double)q->c;
    fault f = {.center = q->kind == OP_LAYER_NORM, .count = c, .eps = q->eps,
               .factor = 1};
    f.center_square = f.center;
    if (q->kind == OP_CHANNEL_NORM) {
        f.count = 1;
        f.eps = 0;
        f.factor = sqrt(c);
        f.floor = 1e-12;
    }
    return f;
}

static double weigh(const op_call *q, const fault *f, double v, int64_t i)
{
    const double w = q->a ? (double)q->a[i] : 1;
    const double b = q->kind == OP_LAYER_NORM && q->b ? (double)q->b[i] : 0;
    switch (f->affine) {
    case AFFINE_NONE: return v;
    case AFFINE_NO_BIAS: return v * w;
    case AFFINE_ONE_PLUS: return v * (1 + w) + b;
    case AFFINE_TWICE: return v * w * w + b;
    case AFFINE_BIAS_FIRST: return (v + b) * w;
    default: return v * w + b;
    }
}

/* Mean and variance of a row with float32 sums, ascending. */
static void single_moments(const op_call *q, const fault *f, int64_t at,
                           int64_t n, double *mean, double *v)
{
    float s = 0, s2 = 0;
    for (int64_t i = 0; i < n; i++) s += (float)q->x[at + i];
    s = f->center_square ? s / (float)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const float d = (float)q->x[at + i] - (f->single == 1 ? s : 0);
        s2 += d * d;
    }
    s2 /= (float)n;
    *mean = (double)s;
    *v = (double)(f->single == 1 ? s2 : s2 - s * s);
    if (*v < 0) *v = 0;
}

/* Elements of one statistic: n values `step` apart. */
static void normalise(const op_call *q, const fault *f, double *out,
                      int64_t at, int64_t n, int64_t step)
{
    const int64_t m = f->part ? f->part : n;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < m; i++) mean += (double)q->x[at + i * step];
    mean /= (double)m;
    for (int64_t i = 0; i < m; i++) {
        const double d = (double)q->x[at + i * step] -
                         (f->center_square ? mean : 0);
        square += d * d;
    }
    const double count = f->count == (double)q->c ? (double)m : f->count;
    double v = square / count, root;
    if (f->single) single_moments(q, f, at, n, &mean, &v);
    if (f->no_root) root = v + f->eps;
    else root = f->outside ? sqrt(v) + f->eps : sqrt(v + f->eps);
    if (root < f->floor) root = f->floor;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = at + i * step;
        const double x = (double)q->x[k] - (f->center ? mean : 0);
        out[k] = weigh(q, f, x / root * f->factor, k % q->c);
    }
}

static void apply(hint *h, const fault *f)
{
    const op_call *q = h->q;
    if (f->whole) normalise(q, f, h->trial, 0, q->n * q->c, 1);
    else if (f->columns)
        for (int64_t i = 0; i < q->c; i++)
            normalise(q, f, h->trial, i, q->n, q->c);
    else if (f->per_half && q->c % 2 == 0)
        for (int64_t r = 0; r < 2 * q->n; r++)
            normalise(q, f, h->trial, r * (q->c / 2), q->c / 2, 1);
    else
        for (int64_t r = 0; r < q->n; r++)
            normalise(q, f, h->trial, r * q->c, q->c, 1);
}

#define TRY(h, f, ...)                                                         \
    do {                                                                       \
        if (!hint_settled(h)) {                                                \
            apply((h), (f));                                                   \
            hint_try((h), (h)->trial, __VA_ARGS__);                            \
        }                                                                      \
    } while (0)

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

static void eps_and_count(hint *h)
{
    const op_call *q = h->q;
    fault f = right(q);
    if (q->kind != OP_CHANNEL_NORM) {
        const double found = find_eps(h);
        f.eps = 0;
        TRY(h, &f, "eps is not added");
        if (found > 0 && found < 1) {
            f.eps = found;
            TRY(h, &f, "eps is %.3g instead of %.3g", found, q->eps);
        }
        f = right(q);
        f.outside = true;
        TRY(h, &f, "eps is added outside the root");
        f = right(q);
        f.count = (double)q->c - 1;
        if (q->c > 1)
            TRY(h, &f, "unbiased variance (divided by C - 1)");
        f.count = 1;
        TRY(h, &f, "sum of squares instead of their mean (1/C missing)");
    } else {
        f.factor = 1;
        TRY(h, &f, "factor sqrt(C) missing");
        f.factor = (double)q->c;
        TRY(h, &f, "factor C instead of sqrt(C)");
        f = right(q);
        for (int e = 12; e >= 5; e--) {
            f.outside = true;
            f.eps = pow(10, -e);
            TRY(h, &f, "1e-%d is added to the norm (it is a floor of 1e-12)",
                e);
            f.outside = false;
            f.eps = pow(10, -e) * (double)q->c;
            TRY(h, &f, "eps 1e-%d is added to the mean square", e);
        }
        f = right(q);
        for (int e = 11; e >= 2; e--) {
            f.floor = pow(10, -e);
            TRY(h, &f, "the norm has a floor of 1e-%d instead of 1e-12", e);
        }
    }
    f = right(q);
    f.no_root = true;
    TRY(h, &f, "square root missing");
}

void hint_norm(hint *h)
{
    const op_call *q = h->q;
    fault f = right(q);
    if (q->kind == OP_LAYER_NORM) {
        f.center = false;
        TRY(h, &f, "mean not subtracted (variance around it)");
        f.center_square = false;
        TRY(h, &f, "mean not subtracted (RMS norm)");
        f.center = true;
        TRY(h, &f, "mean square instead of variance");
    } else {
        f.center = f.center_square = true;
        TRY(h, &f, "mean subtracted (layer norm)");
    }
    f = right(q);
    eps_and_count(h);
    if (q->a) {
        static const char *const what[] = {
            NULL, "weight and bias not applied", "bias not applied",
            "weight is 1 + w", "weight applied twice",
            "bias added before the weight"};
        for (int a = AFFINE_NONE; a <= AFFINE_BIAS_FIRST; a++) {
            f = right(q);
            f.affine = (affine_fault)a;
            TRY(h, &f, "%s", what[a]);
        }
    }
    f = right(q);
    f.columns = true;
    for (int form = 0; form < 2 && q->n > 1; form++) {
        TRY(h, &f, "normalised over the wrong axis (rows of a channel)");
        if (q->kind == OP_CHANNEL_NORM) f.factor = sqrt((double)q->n);
    }
    f = right(q);
    for (int64_t k = 0; k < 8; k++) {
        const int64_t c = q->c, parts[] = {
            c / 2, c - 1, c - c % 4, c - c % 8, c - c % 16, c - c % 32,
            c - c % 64, c < 512 ? 0 : 512};
        f.part = parts[k];
        if (f.part > 0 && f.part < c)
            TRY(h, &f, "statistics over the first %lld of %lld channels",
                (long long)f.part, (long long)c);
    }
    f = right(q);
    if (q->kind != OP_CHANNEL_NORM) {
        f.single = 2;
        if (f.center)
            TRY(h, &f, "variance as E[x^2] - E[x]^2 in float32");
        f.single = 1;
        TRY(h, &f, "statistics in float32");
    }
    f = right(q);
    f.per_half = true;
    TRY(h, &f, "each half of the row is normalised for itself");
    f = right(q);
    f.whole = true;
    if (q->n > 1) TRY(h, &f, "one statistic for all rows");
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = (double)q->x[i];
    hint_try(h, h->trial, "not applied: the output is the input");
}
