/* plain_elements.c: element-wise operators and columns in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include <math.h>

#include "tether/mathfn.h"

/* ---- element-wise operators ---------------------------------------------- */

static int64_t entry_of(const op_call *q, entry_fault e, int64_t r)
{
    const int64_t groups = (q->n + q->rows - 1) / q->rows, g = r / q->rows;
    switch (e) {
    case ENTRY_FIRST: return 0;
    case ENTRY_LAST: return groups - 1;
    case ENTRY_NEXT: return (g + 1) % groups;
    case ENTRY_BEFORE: return (g + groups - 1) % groups;
    case ENTRY_MODULO: return r % groups;
    default: return g;
    }
}

static double gated(double x, double u)
{
    return x / (1 + tt_exp(-u));
}

static double gelu(double x, double k, double cubic)
{
    return gated(x, 2 * k * (x + cubic * x * x * x));
}

static double edited(double x, double gain, double mean, double target,
                     double tau)
{
    return (1 - tau) * x + tau * (gain * (x - mean) + target);
}

#define ROOT_2_PI 0.7978845608028654
#define CUBIC 0.044715
#define EXP_MOST 88.7228              /* of a float: beyond, exp is infinite  */

static double form_value(element_form f, double x, double y, double a, double b,
                         double u)
{
    switch (f) {
#define FORM_VALUE(kind, name, formula, what) case name: return formula;
    PLAIN_FORMS(FORM_VALUE)
    default: return NAN;
    }
}

const struct plain_form plain_forms[FORMS] = {
#define FORM_SAID(op, name, formula, said) [name] = {OP_##op, said},
    PLAIN_FORMS(FORM_SAID)
};

void plain_elements(const op_call *q, const element_fault *f, double *out)
{
    const int64_t stride = f->packed ? q->c : q->stride;
    element_form form = f->form;
    for (int i = 1; !form; i++)
        if (plain_forms[i].kind == (int)q->kind) form = (element_form)i;
    for (int64_t k = 0; k < q->n * q->c; k++) {
        const int64_t r = k / q->c, i = k % q->c;
        double y = q->y ? (double)q->y[k] : q->target ? q->target[i] : 0;
        double a = q->gain ? q->gain[i] : 0, b = q->mean ? q->mean[i] : 0;
        if (q->a) a = (double)q->a[entry_of(q, f->a, r) * stride + i];
        if (q->b) b = (double)q->b[entry_of(q, f->b, r) * stride + i];
        out[k] = form_value(form, (double)q->x[k], y, a, b, q->tau);
    }
}

/* ---- statistics of columns ----------------------------------------------- */

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

void plain_columns(const op_call *q, const column_fault *f, double *out)
{
    for (int64_t i = 0; i < q->c; i++) out[i] = column(q, f, i);
}
