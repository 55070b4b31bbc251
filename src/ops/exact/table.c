/* table.c: the exact backend, and which kernels this CPU runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/bf16.h"
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

const tt_kernels *exact_kernels_up_to(exact_level level)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512bw");
    if (avx512 && level >= EXACT_AVX512) return &tt_kernels_avx512;
    if (avx2 && level >= EXACT_AVX2) return &tt_kernels_avx2;
#elif defined(__aarch64__)
    if (level >= EXACT_NEON) return &tt_kernels_neon;
#endif
    (void)level;
    return &tt_kernels_generic;
}

const tt_kernels *exact_kernels(void)
{
    return exact_kernels_up_to(exact_level_wanted());
}

#define SUMMARY "the bits of golden from vector kernels chosen at run time"
#define EXACT(op, OP) .op = exact_##op,

const tt_ops tt_ops_exact = {
    .abi = TT_ABI,
    .name = "exact",
    .summary = SUMMARY,
    .of_class = {[TT_CLASS_F32] = &tt_ops_exact,
                 [TT_CLASS_BF16] = &tt_ops_exact_bf16},
    TT_OPS(EXACT)
};

const tt_ops tt_ops_exact_bf16 = {
    .abi = TT_ABI,
    .name = "exact",
    .summary = SUMMARY,
    .cls = TT_CLASS_BF16,
    .of_class = {[TT_CLASS_F32] = &tt_ops_exact,
                 [TT_CLASS_BF16] = &tt_ops_exact_bf16},
    .linear = exact_bf16_linear,
    .attention = exact_bf16_attention,
    .conv = exact_conv,
    TT_OPS_ROWS(EXACT)
};

#else
typedef int tt_no_exact; /* a translation unit must not be empty */
#endif
