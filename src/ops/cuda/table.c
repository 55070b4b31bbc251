/* table.c: the cuda backend: golden's bits on a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/cuda/cuda.h"

#define SUMMARY "the definitions on a GPU: the same bits (run on sm_90 alone)"
#define ENTRY(op, OP) .op = cuda_##op,

/* What class f32 has not. */
#define cuda_packed NULL
#define cuda_linears NULL
#define cuda_mlp NULL
#define cuda_norm_linears NULL
#define cuda_norm_mlp NULL
#define cuda_attention_add NULL

/* X(NAME, whose linear, attention and conv) */
#define CUDA_CLASSES(X) X(F32, cuda) X(SM80, cuda_mma) X(SM90, cuda_mma)

#define IN_CLASS(NAME, products)                                               \
    [TT_CLASS_##NAME] = &tt_ops_cuda_of[TT_CLASS_##NAME],
static const tt_ops *const of_class[TT_CLASS_COUNT] = {CUDA_CLASSES(IN_CLASS)};

#define FUSED(products)                                                        \
    (&(const tt_fused){products##_linear_gelu, products##_linear_add,          \
                       cuda_norm_modulate, products##_linears,                 \
                       products##_mlp, products##_norm_linears,                \
                       products##_norm_mlp, products##_attention_add})

#define TABLE(NAME, products)                                                  \
    [TT_CLASS_##NAME] = {                                                      \
        .abi = TT_ABI,                                                         \
        .name = "cuda",                                                        \
        .summary = SUMMARY,                                                    \
        .cls = TT_CLASS_##NAME,                                                \
        .by_class = true,                                                      \
        .of_class = of_class,                                                  \
        .fused = FUSED(products),                                              \
        .open = cuda_open,                                                     \
        .library = cuda_library,                                               \
        .packed = products##_packed,                                           \
        .linear = products##_linear,                                           \
        .attention = products##_attention,                                     \
        .conv = products##_conv,                                               \
        TT_OPS_ROWS(ENTRY)                                                     \
    },

const tt_ops tt_ops_cuda_of[TT_CLASS_COUNT] = {CUDA_CLASSES(TABLE)};
