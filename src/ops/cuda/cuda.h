/* cuda.h: a GPU as the operators of the backend see it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CUDA_CUDA_H
#define TT_CUDA_CUDA_H

#include "ops/backends.h"
#include "ops/cuda/args.h"
#include "core/device.h"

typedef enum cuda_kernel {
#define CUDA_NUMBER(name) CUDA_##name,
    CUDA_KERNELS(CUDA_NUMBER)
    CUDA_KERNEL_COUNT
} cuda_kernel;

/* The first GPU, opened at the first call and kept for the life of the
 * process; makes its memory that of ctx. ops: whose class it must have.
 * Errors   TT_EUNSUPPORTED says what is missing and what to do. */
tt_status cuda_open(tt_ctx *ctx, const tt_ops *ops);

/* "NVIDIA H100 ..., driver 13.0", what runs the operators. */
const char *cuda_library(tt_ctx *ctx, char *text, size_t size);

/* Until all that was queued is done. */
void cuda_wait(tt_ctx *ctx);

/* Bytes of shared memory that one block may have; the multiprocessors. */
int64_t cuda_shared_most(void);
int64_t cuda_multiprocessors(void);

/* Do linear layers and attention of class sm90 go through wgmma? On sm_90 they
 * do, but where the environment variable TT_CUDA_PRODUCTS is mma. */
bool cuda_wgmma(void);

/* Is p memory of the GPU? */
bool cuda_holds(const void *p);

/* The bytes at `host` on the GPU, where they stay: they travel only when they
 * are not there yet. For tables of angles and lists of positions, which are
 * asked for again in every layer and pass. NULL with a failure recorded.
 * Threads: may be called from several. */
const void *cuda_keep(tt_ctx *ctx, const void *host, size_t bytes);

typedef struct cuda_grid {
    int64_t x, y;            /* blocks                                        */
    int threads;             /* of a block                                    */
    int64_t shared;          /* bytes of a block                              */
} cuda_grid;

/* Queue a kernel after everything queued before. Nothing happens while a
 * failure is recorded, or for a grid without blocks. */
void cuda_launch(tt_ctx *ctx, cuda_kernel k, cuda_grid g, const void *args);

/* blocks of `per` that cover n */
static inline int64_t cuda_blocks(int64_t n, int64_t per)
{
    return (n + per - 1) / per;
}

/* cuda_OP, and those of tensor cores. */
#define CUDA_DECLARED(op, OP)                                                  \
    void cuda_##op(tt_ctx *ctx, const tt_##op##_args *a);
TT_OPS(CUDA_DECLARED)
void cuda_mma_linear(tt_ctx *ctx, const tt_linear_args *a);
void cuda_mma_attention(tt_ctx *ctx, const tt_attention_args *a);
void cuda_mma_conv(tt_ctx *ctx, const tt_conv_args *a);

/* tt_ops.packed of the classes of tensor cores. */
int64_t cuda_mma_packed(tt_ctx *ctx, int64_t N, int64_t D);

/* Two operators in one (tt_fused). */
#define CUDA_PAIRS(linear)                                                     \
    void cuda_##linear##_gelu(tt_ctx *ctx, const tt_linear_args *a);           \
    void cuda_##linear##_add(tt_ctx *ctx, const tt_linear_args *a,             \
                             const tt_gate_add_args *to);
CUDA_PAIRS(linear)
CUDA_PAIRS(mma_linear)
/* NULL in class f32. */
void cuda_mma_linears(tt_ctx *ctx, const tt_linear_args *a, int n);
void cuda_mma_mlp(tt_ctx *ctx, const tt_linear_args *up,
                  const tt_linear_args *down, const tt_gate_add_args *to);
void cuda_mma_norm_linears(tt_ctx *ctx, const tt_normed *x,
                           const tt_linear_args *a, int n);
void cuda_mma_norm_mlp(tt_ctx *ctx, const tt_normed *x,
                       const tt_linear_args *up, const tt_linear_args *down,
                       const tt_gate_add_args *to);
void cuda_mma_attention_add(tt_ctx *ctx, const tt_attention_args *x,
                            const tt_linear_args *a,
                            const tt_gate_add_args *to);
void cuda_norm_modulate(tt_ctx *ctx, const tt_layer_norm_args *a,
                        const tt_modulate_args *to);

/* What x says, in x->norm.y or, rounded and in blocks, there. */
void cuda_norm(tt_ctx *ctx, const tt_normed *x, uint16_t *blocks);

/* Verbs of the device that are kernels. */
void cuda_locate(tt_ctx *ctx, const tt_locate_args *a);
void cuda_pick(tt_ctx *ctx, const tt_pick_args *a);
void cuda_narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n);

#endif
