/* table.c: the golden backend = the definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shortest honest code: one obvious loop nest per operator, no intrinsics, no
 * tiling. The order of operations in this folder is the meaning of every
 * operator; anything faster must return the same bits. */
#include "ops/golden/golden.h"

#define SUMMARY "the definitions as plain loops: one set of bits, slow"

const tt_ops tt_ops_golden = {
    .abi = TT_ABI,
    .name = "golden",
    .summary = SUMMARY,
    .of_class = {
        [TT_CLASS_F32] = &tt_ops_golden,
#ifndef TT_REAL_DOUBLE
        [TT_CLASS_BF16] = &tt_ops_golden_bf16,
#endif
    },
    TT_OPS(GOLDEN)
};

#ifndef TT_REAL_DOUBLE
const tt_ops tt_ops_golden_bf16 = {
    .abi = TT_ABI,
    .name = "golden",
    .summary = SUMMARY,
    .cls = TT_CLASS_BF16,
    .of_class = {[TT_CLASS_F32] = &tt_ops_golden,
                 [TT_CLASS_BF16] = &tt_ops_golden_bf16},
    .linear = golden_bf16_linear,
    .attention = golden_bf16_attention,
    .conv = golden_conv,
    TT_OPS_ROWS(GOLDEN)
};
#endif
