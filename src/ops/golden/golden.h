/* golden.h: the definitions, for tables that keep some of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_GOLDEN_H
#define TT_OPS_GOLDEN_H

#include "ops/backends.h"

void golden_linear(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                   const tt_tensor *w, const tt_real *b);
void golden_attention(tt_ctx *ctx, const tt_attention_args *a);
#ifndef TT_REAL_DOUBLE
void golden_bf16_linear(tt_ctx *ctx, float *y, const float *x, int64_t n,
                        const tt_tensor *w, const float *b);
void golden_bf16_attention(tt_ctx *ctx, const tt_attention_args *a);
#endif
void golden_conv(tt_ctx *ctx, const tt_conv_args *a);
void golden_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                       int64_t c, const tt_real *w, const tt_real *b,
                       double eps);
void golden_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *w, double eps);
void golden_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                         int64_t c, const tt_real *gamma);
void golden_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                     const tt_real *scale, const tt_real *shift,
                     int64_t stride, int64_t rows);
void golden_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                     int64_t c, const tt_real *gate, int64_t stride,
                     int64_t rows);
void golden_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);
void golden_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);
void golden_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n);
void golden_silu(tt_ctx *ctx, tt_real *x, int64_t n);
void golden_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T,
                 int64_t H, int64_t D, const tt_rope_table *table,
                 const int32_t *pos);
void golden_col_mean(tt_ctx *ctx, double *mean, const tt_real *x, int64_t n,
                     int64_t c);
void golden_col_moment(tt_ctx *ctx, double *m2, const tt_real *x,
                       const double *mean, int64_t n, int64_t c);
void golden_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                      const double *mean, const double *gain,
                      const double *target, double tau);

#endif
