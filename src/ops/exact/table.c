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

/* what both classes share */
#define REST                                                                   \
    .conv = exact_conv, .layer_norm = exact_layer_norm,                        \
    .rms_norm = exact_rms_norm, .channel_norm = exact_channel_norm,            \
    .modulate = exact_modulate, .gate_add = exact_gate_add,                    \
    .add = exact_add, .mul = exact_mul, .gelu_tanh = exact_gelu_tanh,          \
    .silu = exact_silu, .rope = exact_rope, .col_mean = exact_col_mean,        \
    .col_moment = exact_col_moment, .col_blend = exact_col_blend

const tt_ops tt_ops_exact = {
    .name = "exact",
    .summary = "the bits of golden from vector kernels chosen at run time",
    .linear = exact_linear,
    .attention = exact_attention,
    REST,
};

const tt_ops tt_ops_exact_bf16 = {
    .name = "exact",
    .summary = "the bits of golden from vector kernels chosen at run time",
    .cls = TT_CLASS_BF16,
    .linear = exact_bf16_linear,
    .attention = exact_bf16_attention,
    REST,
};

#else
typedef int tt_no_exact; /* a translation unit must not be empty */
#endif
