/* plain_norm.c: layer, RMS and channel norm in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include <math.h>

static double weigh(const op_call *q, const norm_fault *f, double v, int64_t i)
{
    const int64_t at = f->affine == AFFINE_FIRST_HEAD ? i % (q->c / f->heads)
                                                      : i;
    const double w = q->a ? (double)q->a[at] : 1;
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

/* Is the mean subtracted from x, and in the sum of squares? */
static bool centred(const op_call *q, const norm_fault *f, bool square)
{
    switch (f->mean) {
    case MEAN_NONE: return false;
    case MEAN_BOTH: return true;
    case MEAN_OF_X: return !square;
    case MEAN_OF_SQUARE: return square;
    default: return q->kind == OP_LAYER_NORM;
    }
}

/* A number on the way, in float32 where the fault keeps it so. */
static double plain_norm_kept(const norm_fault *f, double x)
{
    return f->single ? (double)(float)x : x;
}

/* Mean and variance of n values `step` apart. */
static void moments(const op_call *q, const norm_fault *f, const tt_real *x,
                    int64_t n, int64_t step, double *mean, double *v)
{
    const bool squares = f->single == SINGLE_SQUARES;
    double s = 0, s2 = 0;
    if (f->part) n = f->part;
    for (int64_t i = 0; i < n; i++)
        s = plain_norm_kept(f, s + (double)x[i * step]);
    *mean = plain_norm_kept(f, s / (double)n);
    const double centre = centred(q, f, true) && !squares ? *mean : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = plain_norm_kept(f, (double)x[i * step] - centre);
        s2 = plain_norm_kept(f, s2 + plain_norm_kept(f, d * d));
    }
    *v = plain_norm_kept(f,
                         s2 / (f->count != 0 ? f->count : q->kind
                               == OP_CHANNEL_NORM ? 1 : (double)n));
    const double square = plain_norm_kept(f, *mean * *mean);
    if (squares) *v = fmax(0, plain_norm_kept(f, *v - square));
}

/* What the root of the variance is made to. */
static double divisor(const op_call *q, const norm_fault *f, double v)
{
    const bool channel = q->kind == OP_CHANNEL_NORM;
    const double eps = f->other_eps ? f->eps : channel ? 0 : q->eps;
    const double least = f->floor != 0 ? f->floor : channel ? 1e-12 : 0;
    const double root = f->no_root ? v + eps
                                   : f->outside ? sqrt(v) + eps : sqrt(v + eps);
    return root < least ? least : root;
}

/* Elements of one statistic: n values `step` apart, from `at` on. */
static void plain_norm_normalise(const op_call *q, const norm_fault *f,
                                 double *out, int64_t at, int64_t n,
                                 int64_t step)
{
    double mean, v;
    moments(q, f, q->x + at, n, step, &mean, &v);
    const double factor = f->factor != 0 ? f->factor
                          : q->kind == OP_CHANNEL_NORM ? sqrt((double)q->c) : 1;
    const double scale = factor / divisor(q, f, v);
    if (!centred(q, f, false)) mean = 0;
    for (int64_t k = at; k < at + n * step; k += step)
        out[k] = weigh(q, f, ((double)q->x[k] - mean) * scale, k % q->c);
}

void plain_norm(const op_call *q, const norm_fault *f, double *out)
{
    const int64_t all = q->n * q->c;
    if (f->group == GROUP_COLUMN) {
        for (int64_t i = 0; i < q->c; i++)
            plain_norm_normalise(q, f, out, i, q->n, q->c);
        return;
    }
    int64_t n = q->c;
    if (f->group == GROUP_ALL) n = all;
    if (f->heads) n = q->c / f->heads;
    for (int64_t at = 0; at < all; at += n)
        plain_norm_normalise(q, f, out, at, n, 1);
}
