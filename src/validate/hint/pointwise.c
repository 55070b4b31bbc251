/* pointwise.c: how element-wise operators go wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <math.h>

/* ---- modulate and gate_add ----------------------------------------------- */

static void entries(hint *h, bool modulate)
{
    static const char *const what[ENTRIES] = {
        "", "the first frame's for all rows", "the last frame's for all rows",
        "of the next frame", "of the frame before",
        "entry r mod frames for row r (r / rows belongs)"};
    for (entry_fault e = ENTRY_FIRST; e < ENTRIES; e++) {
        const mix_fault both = {.a = e, .b = e}, scale = {.a = e},
                        shift = {.b = e};
        hint_try_fault(h, &both, "%s%s", modulate ? "scale and shift "
                                                  : "gate ", what[e]);
        if (!modulate) continue;
        hint_try_fault(h, &scale, "scale %s", what[e]);
        hint_try_fault(h, &shift, "shift %s", what[e]);
    }
}

static void mixes(hint *h)
{
    static const struct { op_kind kind; mix_form form; const char *what; }
    list[] = {
        {OP_MODULATE, MODULATE_SWAPPED,
         "scale and shift exchanged (modulation order)"},
        {OP_MODULATE, MODULATE_NO_ONE, "scale without the 1 + "},
        {OP_MODULATE, MODULATE_NO_SHIFT, "shift missing"},
        {OP_MODULATE, MODULATE_NO_SCALE, "scale missing"},
        {OP_MODULATE, MODULATE_SHIFT_FIRST, "shift added before the scale"},
        {OP_MODULATE, MODULATE_ONE_MINUS, "1 - scale"},
        {OP_MODULATE, MODULATE_MINUS_SHIFT, "shift subtracted"},
        {OP_MODULATE, MODULATE_SWAPPED_NO_ONE,
         "scale and shift exchanged, without the 1 + "},
        {OP_MODULATE, MODULATE_DIVIDED, "divided by 1 + scale"},
        {OP_GATE_ADD, GATE_NONE, "gate missing"},
        {OP_GATE_ADD, GATE_ALONE, "x is overwritten, not added to"},
        {OP_GATE_ADD, GATE_MINUS, "subtracted"},
        {OP_GATE_ADD, GATE_X, "x is gated instead of y"},
        {OP_GATE_ADD, GATE_PLUS_ONE, "gate is 1 + gate"},
        {OP_GATE_ADD, GATE_BOTH, "x is gated as well"},
        {OP_GATE_ADD, GATE_TWICE, "gate applied twice"},
        {OP_GATE_ADD, GATE_TANH, "tanh of the gate"},
        {OP_GATE_ADD, GATE_SIGMOID, "sigmoid of the gate"},
        {OP_GATE_ADD, GATE_DOUBLE, "gate doubled"},
        {OP_GATE_ADD, GATE_HALF, "gate halved"},
        {OP_GATE_ADD, GATE_ONE_MINUS, "1 - gate"},
    };
    const op_call *q = h->q;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].kind == q->kind)
            hint_try_fault(h, &(mix_fault){.form = list[i].form}, "%s",
                           list[i].what);
    hint_not_applied(h);
    if (q->n > q->rows) entries(h, q->kind == OP_MODULATE);
    if (q->stride > q->c)
        hint_try_fault(h, &(mix_fault){.packed = true},
                       "stride between frames ignored (C assumed)");
}

/* ---- add, mul, activations ----------------------------------------------- */

static void denormals(hint *h)
{
    for (int inputs = 0; inputs < 2; inputs++) {
        for (int64_t i = 0; i < h->n; i++) {
            const double x = inputs ? (double)h->q->x[i] : h->want[i];
            h->trial[i] = fabs(x) < 0x1p-126 ? 0 : h->want[i];
        }
        hint_try(h, h->trial, "denormal %s are flushed to zero",
                 inputs ? "inputs" : "results");
    }
}

/* x86 style: exp overflows for an argument that is large, or very negative. */
static void overflows(hint *h)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int64_t i = 0; i < h->n; i++) {
            const double x = (double)h->q->x[i];
            const double u = h->q->kind == OP_SILU ? x
                : 2 * PLAIN_ROOT_2_PI * (x + 0.044715 * x * x * x);
            h->trial[i] = sign * u > 88.7228 ? NAN : h->want[i];
        }
        hint_try(h, h->trial, "NaN where exp(%sx) overflows (inf/inf)",
                 sign < 0 ? "-" : "");
    }
}

static void functions(hint *h)
{
    static const struct { op_kind kind; element_form form; const char *what; }
    list[] = {
        {OP_ADD, ELEMENT_Y, "x is overwritten, not added to"},
        {OP_ADD, ADD_MINUS, "subtracted"}, {OP_ADD, ADD_TWICE, "added twice"},
        {OP_ADD, ADD_MEAN, "the mean instead of the sum"},
        {OP_ADD, ADD_ONE_PLUS, "multiplied by 1 + what is added"},
        {OP_ADD, ELEMENT_PRODUCT, "multiplied instead of added"},
        {OP_MUL, ELEMENT_Y, "x is overwritten, not multiplied"},
        {OP_MUL, ELEMENT_SUM, "added instead of multiplied"},
        {OP_MUL, MUL_DIVIDED, "divided instead of multiplied"},
        {OP_MUL, MUL_TWICE, "multiplied twice"},
        {OP_GELU_TANH, GELU_ERF, "exact GELU (erf) instead of the tanh form"},
        {OP_GELU_TANH, SILU, "SiLU instead of GELU"},
        {OP_GELU_TANH, GELU_QUICK, "quick GELU, x sigmoid(1.702 x)"},
        {OP_GELU_TANH, RELU, "ReLU instead of GELU"},
        {OP_GELU_TANH, GELU_CUBIC_10,
         "cubic factor 0.44715 instead of 0.044715"},
        {OP_GELU_TANH, GELU_CUBIC_CUT, "cubic factor 0.0447 (cut short)"},
        {OP_GELU_TANH, GELU_NO_CUBIC, "cubic term missing"},
        {OP_GELU_TANH, GELU_SQUARE, "x^2 where x^3 belongs"},
        {OP_GELU_TANH, GELU_NO_ROOT, "factor sqrt(2/pi) missing"},
        {OP_GELU_TANH, GELU_2_PI, "2/pi instead of sqrt(2/pi)"},
        {OP_GELU_TANH, GELU_DOUBLE, "factor 1/2 missing"},
        {OP_GELU_TANH, GELU_EXP_U, "exp(-u) where exp(-2u) belongs"},
        {OP_SILU, SILU_GATE, "sigmoid without the factor x"},
        {OP_SILU, GELU, "GELU (tanh form) instead of SiLU"},
        {OP_SILU, GELU_ERF, "GELU (erf) instead of SiLU"},
        {OP_SILU, GELU_QUICK, "quick GELU instead of SiLU"},
        {OP_SILU, RELU, "ReLU instead of SiLU"},
        {OP_SILU, SILU_BACK, "sign of the exponent flipped"},
        {OP_SILU, SILU_2, "x sigmoid(2x)"},
        {OP_SILU, TANH, "tanh instead of SiLU"},
        {OP_SILU, ELU, "ELU instead of SiLU"},
        {OP_SILU, SOFTPLUS, "softplus instead of SiLU"},
        {OP_SILU, MISH, "Mish instead of SiLU"},
        {OP_SILU, HARD_SILU, "hard SiLU (hardswish)"},
        {OP_SILU, LEAKY_RELU, "leaky ReLU instead of SiLU"},
        {OP_GELU_TANH, TANH, "tanh instead of GELU"},
        {OP_GELU_TANH, ELU, "ELU instead of GELU"},
        {OP_GELU_TANH, MISH, "Mish instead of GELU"},
        {OP_GELU_TANH, LEAKY_RELU, "leaky ReLU instead of GELU"},
    };
    const op_kind kind = h->q->kind;
    denormals(h);
    hint_not_applied(h);
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
        if (list[k].kind == kind)
            hint_try_fault(h, &list[k].form, "%s", list[k].what);
    if (kind == OP_SILU || kind == OP_GELU_TANH) overflows(h);
}

void hint_pointwise(hint *h)
{
    if (h->q->kind == OP_MODULATE || h->q->kind == OP_GATE_ADD) mixes(h);
    else functions(h);
}
