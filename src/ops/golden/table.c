/* table.c: the golden backend = the definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shortest honest code: one obvious loop nest per operator, no intrinsics, no
 * tiling. The order of operations in this folder is the meaning of every
 * operator; anything faster must return the same bits. */
#include "ops/golden/golden.h"

const tt_ops tt_ops_golden = {
    .name = "golden",
    .summary = "the definitions as plain loops: one set of bits, slow",
    .linear = golden_linear,
    .attention = golden_attention,
    .conv = golden_conv,
    .layer_norm = golden_layer_norm,
    .rms_norm = golden_rms_norm,
    .channel_norm = golden_channel_norm,
    .modulate = golden_modulate,
    .gate_add = golden_gate_add,
    .add = golden_add,
    .mul = golden_mul,
    .gelu_tanh = golden_gelu_tanh,
    .silu = golden_silu,
    .rope = golden_rope,
    .col_mean = golden_col_mean,
    .col_moment = golden_col_moment,
    .col_blend = golden_col_blend,
};
