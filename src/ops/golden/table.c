/* table.c: the golden backend = the definitions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shortest honest code: one obvious loop nest per operator, no intrinsics, no
 * tiling. The order of operations in this folder is the meaning of every
 * operator; anything faster must return the same bits. */
#include "ops/golden/golden.h"

#define SUMMARY "the definitions as plain loops: one set of bits, slow"

#define IN_CLASS(name, NAME, ...)                                              \
    [TT_CLASS_##NAME] = &tt_ops_golden_of[TT_CLASS_##NAME],
static const tt_ops *const of_class[TT_CLASS_COUNT] = {GOLDEN_BUILT(IN_CLASS)};

#define TABLE(name_, NAME, ...)                                                \
    [TT_CLASS_##NAME] = {                                                      \
        .abi = TT_ABI,                                                         \
        .name = "golden",                                                      \
        .summary = SUMMARY,                                                    \
        .cls = TT_CLASS_##NAME,                                                \
        .by_class = true,                                                      \
        .of_class = of_class,                                                  \
        .linear = golden_##name_##_linear,                                     \
        .attention = golden_##name_##_attention,                               \
        .conv = golden_##name_##_conv,                                         \
        TT_OPS_ROWS(GOLDEN)                                                    \
    },

const tt_ops tt_ops_golden_of[TT_CLASS_COUNT] = {GOLDEN_BUILT(TABLE)};

#define CLASS(name, NAME, ...) [TT_CLASS_##NAME] = &golden_##name,
static const golden_class *const classes[TT_CLASS_COUNT] = {
    GOLDEN_BUILT(CLASS)
};

const golden_class *golden_class_of(tt_class cls)
{
    return classes[cls];
}
