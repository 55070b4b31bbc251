/* plain_columns.c: statistics of columns and their edit in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include <math.h>

static double term(const op_call *q, const column_fault *f, double x, int64_t i)
{
    if (q->kind == OP_COL_MEAN) return x;
    const double d = f->uncentred ? x : x - q->mean[i];
    return f->distance ? fabs(d) : d * d;
}

static double column(const op_call *q, const column_fault *f, int64_t i)
{
    const int64_t last = q->n - f->tail;
    const double rows = (double)(f->counted ? last - f->head : q->n);
    const double n = q->kind == OP_COL_MEAN ? rows : 1;
    double s = 0;
    for (int64_t r = f->head; r < last; r++) {
        const double t = term(q, f, (double)q->x[r * q->c + i], i);
        if (f->narrow) s = (double)tt_format_round(f->sums, (float)(s + t));
        else s += (r == 0 && f->first_twice ? 2 * t : t) / n;
    }
    if (f->narrow) s /= n;
    if (f->factor != 0) s *= f->factor;
    return f->root ? sqrt(s) : s;
}

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
    case BLEND_TAU_SQUARE: tau *= tau; rest = 1 - tau; break;
    case BLEND_TWICE: x = blend(q, BLEND_RIGHT, x, i); break;
    default: break;
    }
    return rest * x + tau * (gain * (x - mean) + target);
}

void plain_columns(const op_call *q, const column_fault *f, double *out)
{
    if (q->kind != OP_COL_BLEND)
        for (int64_t i = 0; i < q->c; i++) out[i] = column(q, f, i);
    else
        for (int64_t k = 0; k < q->n * q->c; k++)
            out[k] = blend(q, f->blend, (double)q->x[k], k % q->c);
}
