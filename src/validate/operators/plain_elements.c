/* plain_elements.c: element-wise operators and columns in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include <math.h>

#include "tether/mathfn.h"

/* ---- modulate and gate_add ----------------------------------------------- */

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

static double modulated(mix_form f, double x, double scale, double shift)
{
    switch (f) {
    case MIX_NOT: return x;
    case MODULATE_SWAPPED: return x * (1 + shift) + scale;
    case MODULATE_NO_ONE: return x * scale + shift;
    case MODULATE_NO_SHIFT: return x * (1 + scale);
    case MODULATE_NO_SCALE: return x + shift;
    case MODULATE_SHIFT_FIRST: return (x + shift) * (1 + scale);
    case MODULATE_ONE_MINUS: return x * (1 - scale) + shift;
    case MODULATE_MINUS_SHIFT: return x * (1 + scale) - shift;
    case MODULATE_SWAPPED_NO_ONE: return x * shift + scale;
    case MODULATE_DIVIDED: return x / (1 + scale) + shift;
    default: return x * (1 + scale) + shift;
    }
}

static double gated(double x, double u)
{
    return x / (1 + tt_exp(-u));
}

static double gate_added(mix_form f, double x, double y, double gate)
{
    switch (f) {
    case MIX_NOT: return x;
    case GATE_NONE: return x + y;
    case GATE_ALONE: return y * gate;
    case GATE_MINUS: return x - y * gate;
    case GATE_X: return x * gate + y;
    case GATE_PLUS_ONE: return x + y * (1 + gate);
    case GATE_BOTH: return (x + y) * gate;
    case GATE_TWICE: return x + y * gate * gate;
    case GATE_TANH: return x + y * (gated(2, 2 * gate) - 1);
    case GATE_SIGMOID: return x + y * gated(1, gate);
    case GATE_DOUBLE: return x + y * 2 * gate;
    case GATE_HALF: return x + y * gate / 2;
    case GATE_ONE_MINUS: return x + y * (1 - gate);
    default: return x + y * gate;
    }
}

void plain_mix(const op_call *q, const mix_fault *f, double *out)
{
    const int64_t stride = f->packed ? q->c : q->stride;
    for (int64_t k = 0; k < q->n * q->c; k++) {
        const int64_t r = k / q->c, i = k % q->c;
        const double a = (double)q->a[entry_of(q, f->a, r) * stride + i];
        const double x = (double)q->x[k];
        out[k] = q->kind == OP_GATE_ADD
            ? gate_added(f->form, x, (double)q->y[k], a)
            : modulated(f->form, x, a,
                        (double)q->b[entry_of(q, f->b, r) * stride + i]);
    }
}

/* ---- add, mul and activations -------------------------------------------- */

static double gelu(double x, double k, double cubic)
{
    return gated(x, 2 * k * (x + cubic * x * x * x));
}

static double activation(element_form f, double x)
{
    static const struct { double k, cubic; } form[] = {
        {PLAIN_ROOT_2_PI, 0.044715}, {PLAIN_ROOT_2_PI, 0.44715},
        {PLAIN_ROOT_2_PI, 0.0447}, {PLAIN_ROOT_2_PI, 0}, {1, 0.044715},
        {0.6366197723675814, 0.044715}, {PLAIN_ROOT_2_PI / 2, 0.044715}};
    switch (f) {
    case GELU_DOUBLE: return 2 * activation(GELU, x);
    case GELU_SQUARE:
        return gated(x, 2 * PLAIN_ROOT_2_PI * (x + 0.044715 * x * x));
    /* erf comes from the C library: this value is compared, never used */
    case GELU_ERF: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case GELU_QUICK: return gated(x, 1.702 * x);
    case SILU: return gated(x, x);
    case SILU_GATE: return gated(1, x);
    case SILU_BACK: return gated(x, -x);
    case SILU_2: return gated(x, 2 * x);
    case RELU: return x > 0 ? x : 0;
    case TANH: return gated(2, 2 * x) - 1;
    case SOFTPLUS: return tt_log(1 + tt_exp(x));
    case MISH: return x * (gated(2, 2 * tt_log(1 + tt_exp(x))) - 1);
    case HARD_SILU: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case LEAKY_RELU: return x > 0 ? x : 0.01 * x;
    case ELU: return x > 0 ? x : tt_exp(x) - 1;
    default: return gelu(x, form[f - GELU].k, form[f - GELU].cubic);
    }
}

static double plain_elements_element(element_form f, double x, double y)
{
    switch (f) {
    case ELEMENT_X: return x;
    case ELEMENT_Y: return y;
    case ADD_MINUS: return x - y;
    case ADD_TWICE: return x + 2 * y;
    case ADD_MEAN: return (x + y) / 2;
    case ADD_ONE_PLUS: return x * (1 + y);
    case ELEMENT_SUM: return x + y;
    case ELEMENT_PRODUCT: return x * y;
    case MUL_DIVIDED: return x / y;
    case MUL_TWICE: return x * y * y;
    default: return activation(f, x);
    }
}

void plain_elements(const op_call *q, const element_form *f, double *out)
{
    element_form form = *f;
    if (form == ELEMENT_RIGHT)
        form = q->kind == OP_ADD ? ELEMENT_SUM
               : q->kind == OP_MUL ? ELEMENT_PRODUCT
               : q->kind == OP_SILU ? SILU : GELU;
    for (int64_t i = 0; i < q->c; i++)
        out[i] = plain_elements_element(form, (double)q->x[i],
                                        q->y ? (double)q->y[i] : 0);
}

/* ---- statistics of columns and the edit made of them --------------------- */

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

static double plain_elements_blend(const op_call *q, blend_fault f, double x,
                                   int64_t i)
{
    const bool average = !q->gain;
    double tau = q->tau, rest = 1 - tau, gain = average ? 0 : q->gain[i];
    double mean = average ? 0 : q->mean[i], target = q->target[i];
    switch (f) {
    case BLEND_INVERSE_TAU: tau = rest; rest = q->tau; break;
    case BLEND_NOT: return x;
    case BLEND_FULL: tau = 1; rest = 0; break;
    case BLEND_GAIN_INVERSE: gain = 1 / gain; break;
    case BLEND_NO_GAIN: gain = 1; break;
    case BLEND_NO_MEAN: mean = 0; break;
    case BLEND_NO_TARGET: target = 0; break;
    case BLEND_SWAPPED: target = mean; mean = q->target[i]; break;
    case BLEND_KEEP_MEAN: target = mean; break;
    case BLEND_ADDED: rest = 1; break;
    case BLEND_GAIN_ROOT: gain = sqrt(gain); break;
    case BLEND_GAIN_SQUARE: gain *= gain; break;
    case BLEND_TAU_SQUARE: tau *= tau; rest = 1 - tau; break;
    case BLEND_TWICE: x = plain_elements_blend(q, BLEND_RIGHT, x, i); break;
    default: break;
    }
    return rest * x + tau * (average ? target : gain * (x - mean) + target);
}

void plain_columns(const op_call *q, const column_fault *f, double *out)
{
    if (q->kind != OP_COL_BLEND)
        for (int64_t i = 0; i < q->c; i++) out[i] = column(q, f, i);
    else
        for (int64_t k = 0; k < q->n * q->c; k++)
            out[k] = plain_elements_blend(q, f->blend, (double)q->x[k],
                                          k % q->c);
}
