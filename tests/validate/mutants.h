/* mutants.h: the planted faults, and how the driver steers the plug-in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One line per fault: name, operator, what is wrong, and what a fitting hint
 * says (any of the alternatives between |, as part of it). */
#ifndef TT_TESTS_VALIDATE_MUTANTS_H
#define TT_TESTS_VALIDATE_MUTANTS_H

#include <stdbool.h>

#define MUTANTS(X)                                                             \
X(NONE, "", "nothing: the operators as they should be", "")                    \
/* linear */                                                                   \
X(LINEAR_NO_BIAS, "linear", "bias left out", "bias missing")                   \
X(LINEAR_BIAS_TWICE, "linear", "bias added twice", "bias added twice")         \
X(LINEAR_BIAS_NEXT, "linear", "bias of the next channel",                      \
  "bias of the neighbouring channel")                                          \
X(LINEAR_TRANSPOSED, "linear", "weight as [in, out]", "weight transposed")     \
X(LINEAR_TAIL, "linear", "terms past a multiple of 8 dropped",                 \
  "terms of the sums are dropped")                                             \
X(LINEAR_BLOCKS, "linear", "only the last block of 512 terms survives",        \
  "terms of the sums are dropped")                                             \
X(LINEAR_SUM_BF16, "linear", "sums kept in bf16", "sums are kept in bf16")     \
X(LINEAR_IN_BF16, "linear", "inputs rounded to bf16",                          \
  "inputs are rounded to bf16")                                                \
X(LINEAR_IN_TF32, "linear", "inputs rounded to tf32",                          \
  "inputs are rounded to tf32")                                                \
X(LINEAR_OUT_F16, "linear", "result rounded to f16",                           \
  "result is rounded to f16|result is rounded to tf32 or f16")                 \
X(LINEAR_W_F16, "linear", "bf16 weight read as f16",                           \
  "BF16 weight read as F16")                                                   \
X(LINEAR_LAST_ROW, "linear", "last row of an odd number not written",          \
  "only row|not written|holds the values of")                                  \
X(LINEAR_COLUMNS, "linear", "channels past a multiple of 8 are zero",          \
  "zero (not computed?)")                                                      \
X(LINEAR_LANE, "linear", "one of 16 lanes of the output has its sign flipped", \
  "sign flipped")                                                              \
X(LINEAR_ROWS, "linear", "every row uses the input of the one before it",      \
  "rows shifted by 1|rows rotated")                                            \
X(LINEAR_STALE_ROW, "linear", "row 1 holds the result of row 0",               \
  "row 1 holds the values of 0")                                               \
X(LINEAR_LATE, "linear", "no bias from the second chunk on", "bias missing")   \
X(LINEAR_LAYER, "linear", "one layer's result is halved", "scaled by 0.5")     \
X(LINEAR_RACE, "linear", "one element lost half of its terms",                 \
  "one element")                                                               \
X(LINEAR_LARGE, "linear", "NaN for large inputs", "NaN")                       \
X(LINEAR_LAST_TOKEN, "linear", "last row 1 % too large", "only row")           \
X(LINEAR_TAIL_ROWS, "linear", "rows from the 64th on 0.1 % too large",         \
  "only the last|scaled by 1.001")                                             \
X(LINEAR_TINY, "linear", "result 1 + 1e-4 times too large",                    \
  "scaled by 1.0001")                                                          \
X(LINEAR_STEP, "linear", "0.1 % too large in the third step",                  \
  "scaled by 1.001")                                                           \
X(LINEAR_WRITES, "linear", "the bias is written to", "changed its inputs")     \
X(LINEAR_OUTSIDE, "linear", "writes 900 elements after its output",            \
  "wrote outside")                                                             \
X(LINEAR_READS, "linear", "reads one element after x", "NaN")                  \
X(LINEAR_NARROW_W, "linear", "weight rounded to bf16",                         \
  "weight is rounded to bf16")                                                 \
/* attention */                                                                \
X(ATT_NO_SCALE, "attention", "logits not scaled", "not scaled")                \
X(ATT_TWICE, "attention", "logits scaled twice", "scaled twice")               \
X(ATT_ONE_D, "attention", "1/D instead of 1/sqrt(D)", "1/D")                   \
X(ATT_EXP2, "attention", "2^x instead of exp", "log2(e) missing")              \
X(ATT_CAUSAL, "attention", "causal mask", "a causal mask is applied")          \
X(ATT_NO_MAX, "attention", "maximum not subtracted",                           \
  "maximum is not subtracted")                                                 \
X(ATT_NO_MASK, "attention", "key mask ignored", "key mask ignored")            \
X(ATT_LONG, "attention", "one masked key takes part",                          \
  "masked key takes part")                                                     \
X(ATT_NO_BIAS, "attention", "relative bias ignored",                           \
  "relative bias ignored")                                                     \
X(ATT_BIAS_TRANSPOSED, "attention", "relative bias transposed",                \
  "relative bias transposed")                                                  \
X(ATT_BIAS_OFF, "attention", "relative bias off by one", "off by one")         \
X(ATT_HEADS, "attention", "K and V of the next head",                          \
  "K and V of another head")                                                   \
X(ATT_LAYOUT, "attention", "result written as [D, H]",                         \
  "channels transposed")                                                       \
X(ATT_LAST_KEY, "attention", "last key left out", "last key is dropped")       \
X(ATT_BLOCK, "attention", "last, partial block of 512 keys left out",          \
  "keys are dropped|key is dropped")                                           \
X(ATT_RESCALE, "attention", "sums not rescaled when the maximum moves",        \
  "rescaled")                                                                  \
X(ATT_STALE, "attention", "last slot of K holds the one before",               \
  "-")                                                                         \
X(ATT_QUERIES, "attention", "softmax over queries",                            \
  "softmax over queries")                                                      \
X(ATT_UNDIVIDED, "attention", "not divided by the sum", "not divided by")      \
X(ATT_STRIDE, "attention", "stride of K and V ignored",                        \
  "stride of K and V ignored")                                                 \
X(ATT_P_BF16, "attention", "softmax weights rounded to bf16",                  \
  "weights are rounded to bf16")                                               \
X(ATT_KV, "attention", "K and V exchanged", "K and V exchanged")               \
X(ATT_ONE_HEAD, "attention", "the last head is not scaled",                    \
  "not scaled (1/sqrt(D) missing), only head")                                 \
X(ATT_FRAME, "attention", "queries shifted by one frame",                      \
  "tokens shifted|tokens rotated")                                             \
X(ATT_LAST_TOKEN, "attention", "last token 1 % too large", "only token")       \
X(ATT_SCALE, "attention", "logits 0.1 % too large", "scaled by 1.001")         \
X(ATT_FIRST_KEY, "attention", "first key left out", "first key is dropped")    \
X(ATT_WRAPPED, "attention", "last key left out from the fourth chunk on",      \
  "last key is dropped")                                                       \
X(ATT_SLOTS, "attention", "V of the first two frames exchanged",               \
  "-")                                                                         \
X(ATT_KV_FRAME, "attention", "K and V of the last frame exchanged",            \
  "-")                                                                         \
/* conv */                                                                     \
X(CONV_FLIPPED, "conv", "kernel flipped", "kernel flipped")                    \
X(CONV_TRANSPOSED, "conv", "kernel read as [kw, kh]", "kernel transposed")     \
X(CONV_PAD, "conv", "one row of padding too many", "padding off by one")       \
X(CONV_STRIDE, "conv", "phase of the stride", "padding off by one")            \
X(CONV_UP, "conv", "phase of the upsampling",                                  \
  "phase of the upsampling|padding off by one")                                \
X(CONV_REVERSED, "conv", "frames in reverse order",                            \
  "are 2, 1, 0 where|time taps reversed")                                      \
X(CONV_PHASE, "conv", "history one frame too old (VAE frame phase)",           \
  "are zeros, 0, 1 where")                                                     \
X(CONV_HISTORY, "conv", "history ignored",                                     \
  "are zeros, zeros, 2 where")                                                 \
X(CONV_EDGE, "conv", "edge repeated instead of zeros", "edges repeat")         \
X(CONV_NO_BIAS, "conv", "bias left out", "bias missing")                       \
X(CONV_LAYOUT, "conv", "weight read as [Cout, Cin, kt, kh, kw]",               \
  "weight read as [Cout, Cin")                                                 \
X(CONV_CHANNELS, "conv", "input channels past a multiple of 4 dropped",        \
  "input channels are dropped")                                                \
X(CONV_COLUMN, "conv", "last column 1 % too large", "scaled by 1.01")          \
X(CONV_REPEAT, "conv", "first frame repeated instead of zeros",                \
  "first frame repeated")                                                      \
X(CONV_CORNER, "conv", "last element off by 0.001", "one element")             \
/* norms */                                                                    \
X(LN_EPS, "layer_norm", "eps 1e-5", "eps is 1e-05")                            \
X(LN_UNBIASED, "layer_norm", "variance divided by C - 1",                      \
  "unbiased variance")                                                         \
X(LN_NO_MEAN, "layer_norm", "mean not subtracted", "mean not subtracted")      \
X(LN_NO_AFFINE, "layer_norm", "weight and bias not applied",                   \
  "weight and bias not applied")                                               \
X(LN_FLOAT, "layer_norm", "E[x^2] - E[x]^2 in float",                          \
  "E[x^2]")                                                                    \
X(LN_HALF, "layer_norm", "statistics over half of the row",                    \
  "statistics over the first")                                                 \
X(RMS_OUTSIDE, "rms_norm", "eps outside the root",                             \
  "outside the root")                                                          \
X(RMS_NO_WEIGHT, "rms_norm", "weight not applied", "bias not applied")         \
X(RMS_ONE_PLUS, "rms_norm", "weight is 1 + w", "weight is 1 + w")              \
X(RMS_MEAN, "rms_norm", "mean subtracted", "mean subtracted")                  \
X(CN_NO_ROOT, "channel_norm", "sqrt(C) missing", "sqrt(C) missing")            \
X(CN_EPS, "channel_norm", "1e-6 added to the mean square",                     \
  "eps 1e-6 is added")                                                         \
X(CN_AXIS, "channel_norm", "normalised over rows", "wrong axis")               \
X(LN_NO_BIAS, "layer_norm", "bias left out", "bias not applied")               \
X(LN_LAST, "layer_norm", "last row 0.1 % too large", "only row")               \
X(RMS_EPS, "rms_norm", "eps 1e-5", "eps is 1e-05")                             \
X(RMS_HALVES, "rms_norm", "each half of the row for itself",                   \
  "every one of 2 heads")                                                      \
X(RMS_IN_PLACE, "rms_norm", "wrong where the output is the input",             \
  "only row|one element")                                                      \
X(CN_FLOOR, "channel_norm", "floor of the norm 1e-4", "floor of 1e-4")         \
/* element-wise */                                                             \
X(MOD_SWAPPED, "modulate", "scale and shift exchanged",                        \
  "scale and shift exchanged")                                                 \
X(MOD_NO_ONE, "modulate", "scale without 1 +", "without the 1 +")              \
X(MOD_FRAME, "modulate", "the first frame's entry for all",                    \
  "the first frame's for all rows")                                            \
X(MOD_MODULO, "modulate", "entry r mod frames", "entry r mod frames")          \
X(GATE_MISSING, "gate_add", "gate left out", "gate missing")                   \
X(GATE_NEXT, "gate_add", "gate of the next frame", "of the next frame")        \
X(GATE_ALONE, "gate_add", "x overwritten", "overwritten")                      \
X(ADD_TAIL, "add", "elements past a multiple of 4 not added",                  \
  "only the last|not applied")                                                 \
X(ADD_TWICE, "add", "added twice", "added twice")                              \
X(ADD_FLUSH, "add", "denormals flushed to zero",                               \
  "denormal")                                                                  \
X(MUL_NOT, "mul", "not applied", "not applied")                                \
X(GELU_ERF, "gelu_tanh", "erf form", "exact GELU (erf)")                       \
X(GELU_QUICK, "gelu_tanh", "x sigmoid(1.702 x)", "quick GELU")                 \
X(GELU_CUBIC, "gelu_tanh", "cubic term missing", "cubic term missing")         \
X(GELU_NAN, "gelu_tanh", "NaN where exp overflows", "overflows")               \
X(SILU_GELU, "silu", "GELU instead", "GELU (tanh form) instead of SiLU")       \
X(SILU_SIGMOID, "silu", "sigmoid alone", "without the factor x")               \
X(MOD_LAST, "modulate", "last frame uses the entry before its own",            \
  "only the last|of the frame before")                                         \
X(MOD_STRIDE, "modulate", "stride between frames ignored",                     \
  "stride between frames ignored")                                             \
X(GATE_BF16, "gate_add", "result rounded to bf16", "rounded to bf16")          \
X(GELU_CLIP, "gelu_tanh", "x itself above 3", "not applied")                   \
X(SILU_STATE, "silu", "every second call adds 0.01", "at a second call")       \
/* rope */                                                                     \
X(ROPE_HALVES, "rope", "pairs (j, j + D/2)",                                   \
  "halves where interleaved pairs belong")                                     \
X(ROPE_SIGN, "rope", "angle negative", "sign of the angle")                    \
X(ROPE_FRAME, "rope", "frame position off by one",                             \
  "frame position off by +1")                                                  \
X(ROPE_AXES, "rope", "row and column exchanged",                               \
  "axes of the positions: frame, column, row")                                 \
X(ROPE_F32, "rope", "angles in float32", "angles in float32")                  \
X(ROPE_BASE, "rope", "base 1000", "base 1000 ")                                \
X(ROPE_NOT, "rope", "not applied", "not applied")                              \
X(ROPE_SPECTRUM, "rope", "one spectrum over the head",                         \
  "frequencies counted over the whole head")                                   \
X(ROPE_LATE, "rope", "frame positions from 8 on off by one",                   \
  "frame position off by -1")                                                  \
X(ROPE_HEAD, "rope", "second head not rotated", "only head")                   \
X(ROPE_LAST, "rope", "last token one position ahead", "only token|off by +1")  \
/* columns */                                                                  \
X(MEAN_SUM, "col_mean", "not divided", "instead of the mean")                  \
X(MEAN_ROW, "col_mean", "last row left out", "the last row is left out")       \
X(MEAN_BF16, "col_mean", "summed in bf16", "in bf16")                   \
X(MOMENT_VAR, "col_moment", "divided by n", "divided by n: the variance")      \
X(MOMENT_RAW, "col_moment", "mean not subtracted",                             \
  "mean is not subtracted")                                                    \
X(MEAN_FIRST, "col_mean", "first row left out", "first row is left out")       \
X(MOMENT_DDOF, "col_moment", "times n / (n - 1)", "scaled by")                 \
X(BLEND_TWICE, "col_blend", "applied twice", "applied twice")                  \
X(BLEND_LAST, "col_blend", "last row not edited", "only row|not applied")      \
X(BLEND_TAU, "col_blend", "tau and 1 - tau exchanged", "tau and 1 - tau")      \
X(BLEND_GAIN, "col_blend", "gain inverted", "gain inverted")                   \
X(BLEND_MEAN, "col_blend", "mean not subtracted", "mean not subtracted")

#define MUTANT_ENUM(id, op, what, hint) MUT_##id,
typedef enum mutant { MUTANTS(MUTANT_ENUM) MUT_COUNT } mutant;

/* What the plug-in exports besides tether_backend: choose the fault (else the
 * environment variable TETHER_MUTATION does: a number or a name), forget what
 * it counted, and ask whether the fault took effect at this place of the model
 * (a scope such as "chunk.0/step.1/block.2"). */
typedef void (*mutant_select_fn)(int which);
typedef bool (*mutant_hit_fn)(const char *scope);

#endif
