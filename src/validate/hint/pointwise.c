/* pointwise.c: how element-wise operators go wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "tether/mathfn.h"
#include "validate/hint/hint.h"

/* ---- modulate and gate_add ----------------------------------------------- */

/* Which entry of scale, shift or gate a row uses. */
typedef enum entry { ENTRY_RIGHT, ENTRY_FIRST, ENTRY_LAST, ENTRY_NEXT,
                     ENTRY_BEFORE, ENTRY_MODULO, ENTRIES } entry;
static const char *const entry_what[ENTRIES] = {
    "", "the first frame's for all rows", "the last frame's for all rows",
    "of the next frame", "of the frame before",
    "entry r mod frames for row r (r / rows belongs)"};

static int64_t entry_of(const op_call *q, entry e, int64_t r)
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

typedef double (*mix_fn)(double x, double y, double a, double b);
static double mod_swapped(double x, double y, double a, double b)
{ (void)y; return x * (1 + b) + a; }
static double mod_no_one(double x, double y, double a, double b)
{ (void)y; return x * a + b; }
static double mod_no_shift(double x, double y, double a, double b)
{ (void)y; (void)b; return x * (1 + a); }
static double mod_no_scale(double x, double y, double a, double b)
{ (void)y; (void)a; return x + b; }
static double mod_shift_first(double x, double y, double a, double b)
{ (void)y; return (x + b) * (1 + a); }
static double mod_minus(double x, double y, double a, double b)
{ (void)y; return x * (1 - a) + b; }
static double mod_minus_shift(double x, double y, double a, double b)
{ (void)y; return x * (1 + a) - b; }
static double mod_swapped_no_one(double x, double y, double a, double b)
{ (void)y; return x * b + a; }
static double mod_divided(double x, double y, double a, double b)
{ (void)y; return x / (1 + a) + b; }
static double mod_right(double x, double y, double a, double b)
{ (void)y; return x * (1 + a) + b; }
static double keep(double x, double y, double a, double b)
{ (void)y; (void)a; (void)b; return x; }
static double gate_none(double x, double y, double a, double b)
{ (void)a; (void)b; return x + y; }
static double gate_alone(double x, double y, double a, double b)
{ (void)x; (void)b; return y * a; }
static double gate_minus(double x, double y, double a, double b)
{ (void)b; return x - y * a; }
static double gate_other(double x, double y, double a, double b)
{ (void)b; return x * a + y; }
static double gate_plus_one(double x, double y, double a, double b)
{ (void)b; return x + y * (1 + a); }
static double gate_both(double x, double y, double a, double b)
{ (void)b; return (x + y) * a; }
static double gate_twice(double x, double y, double a, double b)
{ (void)b; return x + y * a * a; }
static double gate_right(double x, double y, double a, double b)
{ (void)b; return x + y * a; }

static void try_mix(hint *h, mix_fn f, entry e, entry e_shift,
                    int64_t stride, const char *what, const char *more)
{
    const op_call *q = h->q;
    if (hint_settled(h)) return;
    for (int64_t r = 0; r < q->n; r++) {
        const int64_t g = entry_of(q, e, r) * stride;
        const int64_t gs = entry_of(q, e_shift, r) * stride;
        for (int64_t i = 0; i < q->c; i++) {
            const int64_t k = r * q->c + i;
            h->trial[k] = f((double)q->x[k], q->y ? (double)q->y[k] : 0,
                            (double)q->a[g + i],
                            q->b ? (double)q->b[gs + i] : 0);
        }
    }
    hint_try(h, h->trial, "%s%s", what, more);
}

static void mixes(hint *h)
{
    static const struct { mix_fn f; const char *what; } modulates[] = {
        {mod_swapped, "scale and shift exchanged (modulation order)"},
        {mod_no_one, "scale without the 1 + "},
        {mod_no_shift, "shift missing"}, {mod_no_scale, "scale missing"},
        {mod_shift_first, "shift added before the scale"},
        {mod_minus, "1 - scale"}, {mod_minus_shift, "shift subtracted"},
        {mod_swapped_no_one, "scale and shift exchanged, without the 1 + "},
        {mod_divided, "divided by 1 + scale"},
        {keep, "not applied: the output is the input"},
    }, gates[] = {
        {gate_none, "gate missing"},
        {gate_alone, "x is overwritten, not added to"},
        {gate_minus, "subtracted"}, {gate_other, "x is gated instead of y"},
        {gate_plus_one, "gate is 1 + gate"}, {gate_both, "x is gated as well"},
        {gate_twice, "gate applied twice"},
        {keep, "not applied: the output is the input"},
    };
    const op_call *q = h->q;
    const bool mod = q->kind == OP_MODULATE;
    const int n = mod ? (int)(sizeof modulates / sizeof *modulates)
                      : (int)(sizeof gates / sizeof *gates);
    for (int i = 0; i < n; i++)
        try_mix(h, mod ? modulates[i].f : gates[i].f, ENTRY_RIGHT, ENTRY_RIGHT,
                q->stride, mod ? modulates[i].what : gates[i].what, "");
    for (int e = ENTRY_FIRST; e < ENTRIES && q->n > q->rows; e++) {
        try_mix(h, mod ? mod_right : gate_right, (entry)e, (entry)e, q->stride,
                mod ? "scale and shift " : "gate ", entry_what[e]);
        if (!mod) continue;
        try_mix(h, mod_right, (entry)e, ENTRY_RIGHT, q->stride, "scale ",
                entry_what[e]);
        try_mix(h, mod_right, ENTRY_RIGHT, (entry)e, q->stride, "shift ",
                entry_what[e]);
    }
    if (q->stride > q->c)
        try_mix(h, mod ? mod_right : gate_right, ENTRY_RIGHT, ENTRY_RIGHT,
                q->c, "stride between frames ignored (C assumed)", "");
}

/* ---- add, mul, activations ----------------------------------------------- */

static double add_not(double x, double y) { (void)y; return x; }
static double add_y(double x, double y) { (void)x; return y; }
static double add_minus(double x, double y) { return x - y; }
static double add_twice(double x, double y) { return x + 2 * y; }
static double add_mean(double x, double y) { return (x + y) / 2; }
static double mul(double x, double y) { return x * y; }
static double add(double x, double y) { return x + y; }
static double divided(double x, double y) { return x / y; }
static double squared(double x, double y) { return x * y * y; }
static double logistic(double x) { return 1 / (1 + tt_exp(-x)); }
static double tanh_form(double x, double k, double cubic)
{ return x * logistic(2 * k * (x + cubic * x * x * x)); }

#define ROOT_2_PI 0.7978845608028654
/* erf alone comes from the C library: this value is compared, never used */
static double gelu_erf(double x, double y)
{ (void)y; return 0.5 * x * (1 + erf(x * 0.7071067811865476)); }
static double gelu_tanh(double x, double y)
{ (void)y; return tanh_form(x, ROOT_2_PI, 0.044715); }
static double gelu_quick(double x, double y)
{ (void)y; return x * logistic(1.702 * x); }
static double silu(double x, double y) { (void)y; return x * logistic(x); }
static double relu(double x, double y) { (void)y; return x > 0 ? x : 0; }
static double gelu_cubic10(double x, double y)
{ (void)y; return tanh_form(x, ROOT_2_PI, 0.44715); }
static double gelu_no_cubic(double x, double y)
{ (void)y; return tanh_form(x, ROOT_2_PI, 0); }
static double gelu_cubic_round(double x, double y)
{ (void)y; return tanh_form(x, ROOT_2_PI, 0.0447); }
static double gelu_no_root(double x, double y)
{ (void)y; return tanh_form(x, 1, 0.044715); }
static double gelu_2_pi(double x, double y)
{ (void)y; return tanh_form(x, 0.6366197723675814, 0.044715); }
static double gelu_half(double x, double y)
{ (void)y; return 2 * tanh_form(x, ROOT_2_PI, 0.044715); }
static double gelu_single(double x, double y)
{ (void)y; return tanh_form(x, ROOT_2_PI / 2, 0.044715); }
static double gelu_cubic_square(double x, double y)
{ (void)y; return x * logistic(2 * ROOT_2_PI * (x + 0.044715 * x * x)); }
static double gate_of(double x, double y) { (void)y; return logistic(x); }
static double silu_back(double x, double y)
{ (void)y; return x * logistic(-x); }
static double silu_2(double x, double y)
{ (void)y; return x * logistic(2 * x); }
static double tanh_of(double x, double y)
{ (void)y; return 2 * logistic(2 * x) - 1; }
static double elu(double x, double y)
{ (void)y; return x > 0 ? x : tt_exp(x) - 1; }

static void functions(hint *h)
{
    static const struct {
        op_kind kind;
        double (*f)(double, double);
        const char *what;
    } list[] = {
        {OP_KINDS, add_not, "not applied: the output is the input"},
        {OP_ADD, add_y, "x is overwritten, not added to"},
        {OP_ADD, add_minus, "subtracted"}, {OP_ADD, add_twice, "added twice"},
        {OP_ADD, add_mean, "the mean instead of the sum"},
        {OP_ADD, mul, "multiplied instead of added"},
        {OP_MUL, add_y, "x is overwritten, not multiplied"},
        {OP_MUL, add, "added instead of multiplied"},
        {OP_MUL, divided, "divided instead of multiplied"},
        {OP_MUL, squared, "multiplied twice"},
        {OP_GELU_TANH, gelu_erf, "exact GELU (erf) instead of the tanh form"},
        {OP_GELU_TANH, silu, "SiLU instead of GELU"},
        {OP_GELU_TANH, gelu_quick, "quick GELU, x sigmoid(1.702 x)"},
        {OP_GELU_TANH, relu, "ReLU instead of GELU"},
        {OP_GELU_TANH, gelu_cubic10,
         "cubic factor 0.44715 instead of 0.044715"},
        {OP_GELU_TANH, gelu_cubic_round, "cubic factor 0.0447 (cut short)"},
        {OP_GELU_TANH, gelu_no_cubic, "cubic term missing"},
        {OP_GELU_TANH, gelu_cubic_square, "x^2 where x^3 belongs"},
        {OP_GELU_TANH, gelu_no_root, "factor sqrt(2/pi) missing"},
        {OP_GELU_TANH, gelu_2_pi, "2/pi instead of sqrt(2/pi)"},
        {OP_GELU_TANH, gelu_half, "factor 1/2 missing"},
        {OP_GELU_TANH, gelu_single, "exp(-u) where exp(-2u) belongs"},
        {OP_SILU, gate_of, "sigmoid without the factor x"},
        {OP_SILU, gelu_tanh, "GELU (tanh form) instead of SiLU"},
        {OP_SILU, gelu_erf, "GELU (erf) instead of SiLU"},
        {OP_SILU, gelu_quick, "quick GELU instead of SiLU"},
        {OP_SILU, relu, "ReLU instead of SiLU"},
        {OP_SILU, silu_back, "sign of the exponent flipped"},
        {OP_SILU, silu_2, "x sigmoid(2x)"},
        {OP_SILU, tanh_of, "tanh instead of SiLU"},
        {OP_SILU, elu, "ELU instead of SiLU"},
    };
    const op_call *q = h->q;
    for (int inputs = 0; inputs < 2; inputs++) {
        for (int64_t i = 0; i < h->n; i++) {
            const double x = inputs ? (double)q->x[i] : h->want[i];
            h->trial[i] = fabs(x) < 0x1p-126 ? 0 : h->want[i];
        }
        hint_try(h, h->trial, "denormal %s are flushed to zero",
                 inputs ? "inputs" : "results");
    }
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        if (list[k].kind != OP_KINDS && list[k].kind != q->kind) continue;
        if (hint_settled(h)) return;
        for (int64_t i = 0; i < h->n; i++)
            h->trial[i] = list[k].f((double)q->x[i],
                                    q->y ? (double)q->y[i] : 0);
        hint_try(h, h->trial, "%s", list[k].what);
    }
    /* x86 style: exp overflows for a large negative argument */
    if (q->kind != OP_SILU && q->kind != OP_GELU_TANH) return;
    for (int64_t i = 0; i < h->n; i++) {
        const double x = (double)q->x[i];
        const double u = q->kind == OP_SILU
                             ? x : 2 * ROOT_2_PI * (x + 0.044715 * x * x * x);
        h->trial[i] = fabs(u) > 88.7228 && u < 0 ? NAN : h->want[i];
    }
    hint_try(h, h->trial, "NaN where exp(-x) overflows (inf/inf)");
    for (int64_t i = 0; i < h->n; i++) {
        const double x = (double)q->x[i];
        const double u = q->kind == OP_SILU
                             ? x : 2 * ROOT_2_PI * (x + 0.044715 * x * x * x);
        h->trial[i] = u > 88.7228 ? NAN : h->want[i];
    }
    hint_try(h, h->trial, "NaN where exp(x) overflows (inf/inf)");
}

void hint_pointwise(hint *h)
{
    if (h->q->kind == OP_MODULATE || h->q->kind == OP_GATE_ADD) mixes(h);
    else functions(h);
}
