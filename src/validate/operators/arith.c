/* arith.c: the arithmetic a backend declares: names and rounding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Next    arith_ops.c, the operators in each of them */
#include <math.h>
#include <string.h>

#include "validate/operators/arith.h"

const tt_arith arith_list[ARITH_COUNT + 1] = {
    {"f32", "float32 throughout, any order of sums", TT_FMT_F32, TT_FMT_F32},
    {"tf32", "matrix products of tf32 inputs (cut off), float32 sums",
     TT_FMT_TF32, TT_FMT_F32},
    {"f16", "matrix products of f16 inputs, float32 sums", TT_FMT_F16,
     TT_FMT_F32},
    {"bf16", "matrix products of bf16 inputs, float32 sums", TT_FMT_BF16,
     TT_FMT_F32},
    {"f16-stored", "as f16, and every operator stores f16", TT_FMT_F16,
     TT_FMT_F16},
    {"bf16-stored", "as bf16, and every operator stores bf16", TT_FMT_BF16,
     TT_FMT_BF16},
    {"tf32-rounded", "as tf32, inputs rounded", TT_FMT_TF32, TT_FMT_F32},
};

const tt_arith *tt_arith_at(int i)
{
    return i >= 0 && i < ARITH_COUNT ? &arith_list[i] : NULL;
}

const tt_arith *tt_arith_find(const char *name)
{
    for (int i = 0; i < ARITH_COUNT; i++)
        if (!strcmp(arith_list[i].name, name)) return &arith_list[i];
    return NULL;
}

float tt_format_round(tt_format f, float x)
{
    uint32_t u;
    switch (f) {
    case TT_FMT_BF16: return tt_f32_from_bf16(tt_bf16_from_f32(x));
    case TT_FMT_F16: return tt_f32_from_f16(tt_f16_from_f32(x));
    case TT_FMT_TF32:
        if (!isfinite(x)) return x;
        memcpy(&u, &x, sizeof u);        /* 13 fraction bits go, ties to even */
        u += 0xfffu + (u >> 13 & 1);
        u &= ~0x1fffu;
        memcpy(&x, &u, sizeof u);
        return x;
    default: return x;
    }
}

double tt_format_epsilon(tt_format f)
{
    return f == TT_FMT_F32 ? 0x1p-23 : f == TT_FMT_BF16 ? 0x1p-7 : 0x1p-10;
}
