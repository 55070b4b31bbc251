/* forms.h: what element-wise operators compute, right and with a mistake.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A row is the operator (KINDS: any activation may be taken for another), the
 * form's name, its formula, and what is said of it; NULL: the right one. In a
 * formula x is the element, and
 *   modulate    a the scale, b the shift
 *   gate_add    y what is added, a the gate
 *   col_blend   y the target, a the gain, b the mean, u tau; of an average gain
 *               and mean are 0 */
#ifndef TT_VALIDATE_FORMS_H
#define TT_VALIDATE_FORMS_H

#define PLAIN_FORMS(F)                                                         \
F(MODULATE, MODULATED, x * (1 + a) + b, NULL)                                  \
F(MODULATE, MODULATE_SWAPPED, x * (1 + b) + a,                                 \
  "scale and shift exchanged (modulation order)")                              \
F(MODULATE, MODULATE_NO_ONE, x * a + b, "scale without the 1 + ")              \
F(MODULATE, MODULATE_NO_SHIFT, x * (1 + a), "shift missing")                   \
F(MODULATE, MODULATE_NO_SCALE, x + b, "scale missing")                         \
F(MODULATE, MODULATE_SHIFT_FIRST, (x + b) * (1 + a),                           \
  "shift added before the scale")                                              \
F(MODULATE, MODULATE_ONE_MINUS, x * (1 - a) + b, "1 - scale")                  \
F(MODULATE, MODULATE_MINUS_SHIFT, x * (1 + a) - b, "shift subtracted")         \
F(MODULATE, MODULATE_SWAPPED_NO_ONE, x * b + a,                                \
  "scale and shift exchanged, without the 1 + ")                               \
F(MODULATE, MODULATE_DIVIDED, x / (1 + a) + b, "divided by 1 + scale")         \
F(GATE_ADD, GATED, x + y * a, NULL)                                            \
F(GATE_ADD, GATE_NONE, x + y, "gate missing")                                  \
F(GATE_ADD, GATE_ALONE, y * a, "x is overwritten, not added to")               \
F(GATE_ADD, GATE_MINUS, x - y * a, "subtracted")                               \
F(GATE_ADD, GATE_X, x * a + y, "x is gated instead of y")                      \
F(GATE_ADD, GATE_PLUS_ONE, x + y * (1 + a), "gate is 1 + gate")                \
F(GATE_ADD, GATE_BOTH, (x + y) * a, "x is gated as well")                      \
F(GATE_ADD, GATE_TWICE, x + y * a * a, "gate applied twice")                   \
F(GATE_ADD, GATE_TANH, x + y * tanh(a), "tanh of the gate")                    \
F(GATE_ADD, GATE_SIGMOID, x + y * gated(1, a), "sigmoid of the gate")          \
F(GATE_ADD, GATE_DOUBLE, x + y * 2 * a, "gate doubled")                        \
F(GATE_ADD, GATE_ONE_MINUS, x + y * (1 - a), "1 - gate")                       \
F(ADD, ADDED, x + y, NULL)                                                     \
F(ADD, ADD_ALONE, y, "x is overwritten, not added to")                         \
F(ADD, ADD_MINUS, x - y, "subtracted")                                         \
F(ADD, ADD_TWICE, x + 2 * y, "added twice")                                    \
F(ADD, ADD_ONE_PLUS, x * (1 + y), "multiplied by 1 + what is added")           \
F(ADD, ADD_PRODUCT, x * y, "multiplied instead of added")                      \
F(MUL, MULTIPLIED, x * y, NULL)                                                \
F(MUL, MUL_ALONE, y, "x is overwritten, not multiplied")                       \
F(MUL, MUL_ADDED, x + y, "added instead of multiplied")                        \
F(MUL, MUL_DIVIDED, x / y, "divided instead of multiplied")                    \
F(GELU_TANH, GELU_RIGHT, gelu(x, ROOT_2_PI, CUBIC), NULL)                      \
F(GELU_TANH, GELU_CUBIC_10, gelu(x, ROOT_2_PI, 10 * CUBIC),                    \
  "cubic factor 0.44715 instead of 0.044715")                                  \
F(GELU_TANH, GELU_NO_CUBIC, gelu(x, ROOT_2_PI, 0), "cubic term missing")       \
F(GELU_TANH, GELU_NO_ROOT, gelu(x, 1, CUBIC), "factor sqrt(2/pi) missing")     \
F(GELU_TANH, GELU_2_PI, gelu(x, ROOT_2_PI * ROOT_2_PI, CUBIC),                 \
  "2/pi instead of sqrt(2/pi)")                                                \
F(GELU_TANH, GELU_EXP_U, gelu(x, ROOT_2_PI / 2, CUBIC),                        \
  "exp(-u) where exp(-2u) belongs")                                            \
F(GELU_TANH, GELU_DOUBLE, 2 * gelu(x, ROOT_2_PI, CUBIC),                       \
  "factor 1/2 missing")                                                        \
F(GELU_TANH, GELU_NAN, 2 * ROOT_2_PI * (x + CUBIC * x * x * x) > EXP_MOST      \
  ? NAN : gelu(x, ROOT_2_PI, CUBIC), "NaN where exp(x) overflows (inf/inf)")   \
F(GELU_TANH, GELU_NAN_LOW, 2 * ROOT_2_PI * (x + CUBIC * x * x * x) < -EXP_MOST \
  ? NAN : gelu(x, ROOT_2_PI, CUBIC), "NaN where exp(-x) overflows (inf/inf)")  \
F(SILU, SILU_RIGHT, gated(x, x), NULL)                                         \
F(SILU, SILU_GATE, gated(1, x), "sigmoid without the factor x")                \
F(SILU, SILU_BACK, gated(x, -x), "sign of the exponent flipped")               \
F(SILU, SILU_NAN, x > EXP_MOST ? NAN : gated(x, x),                            \
  "NaN where exp(x) overflows (inf/inf)")                                      \
F(SILU, SILU_NAN_LOW, x < -EXP_MOST ? NAN : gated(x, x),                       \
  "NaN where exp(-x) overflows (inf/inf)")                                     \
F(KINDS, SILU, gated(x, x), "SiLU")                                            \
F(KINDS, GELU, gelu(x, ROOT_2_PI, CUBIC), "GELU (tanh form)")                  \
/* erf comes from the C library: this value is compared, never used */         \
F(KINDS, GELU_ERF, 0.5 * x * (1 + erf(x * 0.7071067811865476)),                \
  "exact GELU (erf)")                                                          \
F(KINDS, GELU_QUICK, gated(x, 1.702 * x), "quick GELU, x sigmoid(1.702 x),")   \
F(KINDS, RELU, x > 0 ? x : 0, "ReLU")                                          \
F(KINDS, TANH, tanh(x), "tanh")                                                \
F(KINDS, ELU, x > 0 ? x : tt_exp(x) - 1, "ELU")                                \
F(KINDS, MISH, x * tanh(tt_log(1 + tt_exp(x))), "Mish")                        \
F(KINDS, SOFTPLUS, tt_log(1 + tt_exp(x)), "softplus")                          \
F(KINDS, HARD_SILU, x * fmin(fmax(x / 6 + 0.5, 0), 1), "hard SiLU (hardswish)")\
F(KINDS, LEAKY_RELU, x > 0 ? x : 0.01 * x, "leaky ReLU")                       \
F(COL_BLEND, BLENDED, edited(x, a, b, y, u), NULL)                             \
F(COL_BLEND, BLEND_INVERSE_TAU, edited(x, a, b, y, 1 - u),                     \
  "tau and 1 - tau exchanged")                                                 \
F(COL_BLEND, BLEND_FULL, edited(x, a, b, y, 1), "tau is taken as 1")           \
F(COL_BLEND, BLEND_GAIN_INVERSE, edited(x, 1 / a, b, y, u), "gain inverted")   \
F(COL_BLEND, BLEND_NO_TARGET, edited(x, a, b, 0, u), "target not added")       \
F(COL_BLEND, BLEND_ADDED, edited(x, a, b, y, u) + u * x,                       \
  "added to x instead of blended (1 - tau missing)")                           \
F(COL_BLEND, BLEND_NO_GAIN, edited(x, 1, b, y, u), "gain missing")             \
F(COL_BLEND, BLEND_NO_MEAN, edited(x, a, 0, y, u), "mean not subtracted")      \
F(COL_BLEND, BLEND_SWAPPED, edited(x, a, y, b, u),                             \
  "mean and target exchanged")                                                 \
F(COL_BLEND, BLEND_KEEP_MEAN, edited(x, a, b, b, u),                           \
  "the old mean is added back instead of the target")                          \
F(COL_BLEND, BLEND_GAIN_ROOT, edited(x, sqrt(a), b, y, u), "root of the gain") \
F(COL_BLEND, BLEND_GAIN_SQUARE, edited(x, a * a, b, y, u), "gain squared")     \
F(COL_BLEND, BLEND_TAU_SQUARE, edited(x, a, b, y, u * u), "tau applied twice") \
F(COL_BLEND, BLEND_TWICE, edited(edited(x, a, b, y, u), a, b, y, u),           \
  "applied twice")

#define PLAIN_FORM_NAME(kind, name, formula, what) name,
typedef enum element_form { FORM_RIGHT, PLAIN_FORMS(PLAIN_FORM_NAME) FORMS }
    element_form;
extern const struct plain_form {
    int kind;                 /* of operator                                  */
    const char *what;
} plain_forms[FORMS];

#endif
