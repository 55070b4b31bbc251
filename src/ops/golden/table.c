/* table.c: the golden backend = the definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shortest honest code: one obvious loop nest per operator, no intrinsics, no
 * tiling. The order of operations in this folder is the meaning of every
 * operator; anything faster must return the same bits. */
#include "ops/golden/golden.h"

/* what both classes share */
#define REST                                                                   \
    .conv = golden_conv, .layer_norm = golden_layer_norm,                      \
    .rms_norm = golden_rms_norm, .channel_norm = golden_channel_norm,          \
    .modulate = golden_modulate, .gate_add = golden_gate_add,                  \
    .add = golden_add, .mul = golden_mul, .gelu_tanh = golden_gelu_tanh,       \
    .silu = golden_silu, .rope = golden_rope, .col_mean = golden_col_mean,     \
    .col_moment = golden_col_moment, .col_blend = golden_col_blend

const tt_ops tt_ops_golden = {
    .name = "golden",
    .summary = "the definitions as plain loops: one set of bits, slow",
    .linear = golden_linear,
    .attention = golden_attention,
    REST,
};

#ifndef TT_REAL_DOUBLE
const tt_ops tt_ops_golden_bf16 = {
    .name = "golden",
    .summary = "the definitions as plain loops: one set of bits, slow",
    .cls = TT_CLASS_BF16,
    .linear = golden_bf16_linear,
    .attention = golden_bf16_attention,
    REST,
};
#endif
