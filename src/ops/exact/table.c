/* table.c: the exact backend, and which kernels this CPU runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/bf16.h"
#include "ops/exact/exact.h"
#include "ops/exact/tc.h"
#include "ops/golden/golden.h"

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
#elif defined(__aarch64__) || defined(TT_OS_NEON)
    if (level >= EXACT_NEON && os_fuses()) return &tt_kernels_neon;
#endif
    (void)level;
    return &tt_kernels_generic;
}

const tt_kernels *exact_kernels(void)
{
    return exact_kernels_up_to(exact_level_wanted());
}

int64_t exact_packed(tt_ctx *ctx, int64_t N, int64_t D)
{
    const tt_attention_args a = {.N = N, .H = 1, .D = D};
    switch (ctx->ops->cls) {
    case TT_CLASS_F32: return exact_f32_attention_packed(&a);
    case TT_CLASS_AMX:
        return bf16_attention_packed(&a, exact_bf16_kernels(ctx));
    case TT_CLASS_VDP: return bf16_attention_packed(&a, exact_vdp_kernels(ctx));
    case TT_CLASS_SM80:
    case TT_CLASS_SM90: return exact_tc_attention_packed(&a);
    case TT_CLASS_COUNT: break;
    }
    return 0;
}

#define golden_packed NULL

#define SUMMARY "the bits of golden from vector kernels chosen at run time"
#define EXACT(op, OP) .op = exact_##op,
#define IN_CLASS(name, NAME, ...)                                              \
    [TT_CLASS_##NAME] = &tt_ops_exact_of[TT_CLASS_##NAME],

static const tt_ops *const of_class[TT_CLASS_COUNT] = {TT_CLASSES(IN_CLASS)};

/* A class without kernels here takes golden's functions. */
#define TABLE(name_, NAME, kernels, ...)                                       \
    [TT_CLASS_##NAME] = {                                                      \
        .abi = TT_ABI,                                                         \
        .name = "exact",                                                       \
        .summary = SUMMARY,                                                    \
        .cls = TT_CLASS_##NAME,                                                \
        .by_class = true,                                                      \
        .of_class = of_class,                                                  \
        .packed = kernels##_packed,                                            \
        .linear = kernels##_##name_##_linear,                                  \
        .attention = kernels##_##name_##_attention,                            \
        .conv = kernels##_##name_##_conv,                                      \
        TT_OPS_ROWS(EXACT)                                                     \
    },

const tt_ops tt_ops_exact_of[TT_CLASS_COUNT] = {TT_CLASSES(TABLE)};

#else
typedef int tt_no_exact; /* a translation unit must not be empty */
#endif
