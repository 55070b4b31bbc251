/* plain_elements.c: element-wise operators in float64.
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

/* a is the scale and b the shift, or a is the gate. */
static double mixed(const op_call *q, mix_form f, double x, double y, double a,
                    double b)
{
    switch (f) {
    case MIX_NOT: return x;
    case MODULATE_SWAPPED: return x * (1 + b) + a;
    case MODULATE_NO_ONE: return x * a + b;
    case MODULATE_NO_SHIFT: return x * (1 + a);
    case MODULATE_NO_SCALE: return x + b;
    case MODULATE_SHIFT_FIRST: return (x + b) * (1 + a);
    case MODULATE_ONE_MINUS: return x * (1 - a) + b;
    case MODULATE_MINUS_SHIFT: return x * (1 + a) - b;
    case MODULATE_SWAPPED_NO_ONE: return x * b + a;
    case MODULATE_DIVIDED: return x / (1 + a) + b;
    case GATE_NONE: return x + y;
    case GATE_ALONE: return y * a;
    case GATE_MINUS: return x - y * a;
    case GATE_X: return x * a + y;
    case GATE_PLUS_ONE: return x + y * (1 + a);
    case GATE_BOTH: return (x + y) * a;
    case GATE_TWICE: return x + y * a * a;
    default: return q->kind == OP_MODULATE ? x * (1 + a) + b : x + y * a;
    }
}

void plain_mix(const op_call *q, const mix_fault *f, double *out)
{
    const int64_t stride = f->packed ? q->c : q->stride;
    for (int64_t k = 0; k < q->n * q->c; k++) {
        const int64_t r = k / q->c, i = k % q->c;
        const double a = (double)q->a[entry_of(q, f->a, r) * stride + i];
        const double b = q->b ? (double)q->b[entry_of(q, f->b, r) * stride + i]
                              : 0;
        out[k] = mixed(q, f->form, (double)q->x[k],
                       q->y ? (double)q->y[k] : 0, a, b);
    }
}

/* ---- add, mul and activations -------------------------------------------- */

static double gated(double x, double u)
{
    return x / (1 + tt_exp(-u));
}

static double gelu(double x, double k, double cubic)
{
    return gated(x, 2 * k * (x + cubic * x * x * x));
}

static double element(element_form f, double x, double y)
{
    const double k = PLAIN_ROOT_2_PI, cubic = 0.044715;
    switch (f) {
    case ELEMENT_Y: return y;
    case ADD_MINUS: return x - y;
    case ADD_TWICE: return x + 2 * y;
    case ADD_MEAN: return (x + y) / 2;
    case ELEMENT_SUM: return x + y;
    case ELEMENT_PRODUCT: return x * y;
    case MUL_DIVIDED: return x / y;
    case MUL_TWICE: return x * y * y;
    case GELU: return gelu(x, k, cubic);
    /* erf comes from the C library: this value is compared, never used */
    case GELU_ERF: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case GELU_QUICK: return gated(x, 1.702 * x);
    case GELU_CUBIC_10: return gelu(x, k, 0.44715);
    case GELU_CUBIC_CUT: return gelu(x, k, 0.0447);
    case GELU_NO_CUBIC: return gelu(x, k, 0);
    case GELU_SQUARE: return gated(x, 2 * k * (x + cubic * x * x));
    case GELU_NO_ROOT: return gelu(x, 1, cubic);
    case GELU_2_PI: return gelu(x, 0.6366197723675814, cubic);
    case GELU_DOUBLE: return 2 * gelu(x, k, cubic);
    case GELU_EXP_U: return gelu(x, k / 2, cubic);
    case SILU: return gated(x, x);
    case SILU_GATE: return gated(1, x);
    case SILU_BACK: return gated(x, -x);
    case SILU_2: return gated(x, 2 * x);
    case RELU: return x > 0 ? x : 0;
    case TANH: return gated(2, 2 * x) - 1;
    case ELU: return x > 0 ? x : tt_exp(x) - 1;
    default: return x;
    }
}

void plain_elements(const op_call *q, const element_fault *f, double *out)
{
    element_form form = f->form;
    if (form == ELEMENT_RIGHT)
        form = q->kind == OP_ADD ? ELEMENT_SUM
               : q->kind == OP_MUL ? ELEMENT_PRODUCT
               : q->kind == OP_SILU ? SILU : GELU;
    for (int64_t i = 0; i < q->c; i++)
        out[i] = element(form, (double)q->x[i], q->y ? (double)q->y[i] : 0);
}
