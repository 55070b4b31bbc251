/* ops.h: what the modules use of tether/ops.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_OPS_H
#define TT_OPS_OPS_H

#include "core/context.h"
#include "tether/ops.h"

void tt_linear(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
               const tt_tensor *w, const tt_real *b);

void tt_attention(tt_ctx *ctx, const tt_attention_args *a);

void tt_conv(tt_ctx *ctx, const tt_conv_args *a);

void tt_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                   int64_t c, const tt_real *w, const tt_real *b, double eps);

void tt_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                 int64_t c, const tt_real *w, double eps);

void tt_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *gamma);

void tt_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                 const tt_real *scale, const tt_real *shift, int64_t stride,
                 int64_t rows);

void tt_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                 int64_t c, const tt_real *gate, int64_t stride, int64_t rows);

void tt_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);

void tt_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);

void tt_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n);

void tt_silu(tt_ctx *ctx, tt_real *x, int64_t n);

void tt_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T, int64_t H,
             int64_t D, const tt_rope_table *table, const tt_index *pos);

void tt_col_mean(tt_ctx *ctx, tt_wide *mean, const tt_real *x, int64_t n,
                 int64_t c);

void tt_col_moment(tt_ctx *ctx, tt_wide *m2, const tt_real *x,
                   const tt_wide *mean, int64_t n, int64_t c);

void tt_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                  const tt_wide *mean, const tt_wide *gain,
                  const tt_wide *target, double tau);

/* ---- several operators in one -------------------------------------------- */

/* y = gelu_tanh(x w^T + b); parameters as of tt_linear. */
void tt_linear_gelu(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                    const tt_tensor *w, const tt_real *b);
/* tt_linear, then tt_gate_add of its result; tt_add where to->gate is NULL.
 * to: its y, n and c are those of the product. y holds nothing afterwards. */
void tt_linear_add(tt_ctx *ctx, const tt_linear_args *a,
                   const tt_gate_add_args *to);
/* tt_layer_norm, then tt_modulate of its result.
 * to: its x, n and c are y, n and c of the norm. */
void tt_norm_modulate(tt_ctx *ctx, const tt_layer_norm_args *a,
                      const tt_modulate_args *to);
/* n calls of tt_linear with the same x and number of rows, as the queries, keys
 * and values of a block are. */
void tt_linears(tt_ctx *ctx, const tt_linear_args *a, int n);
/* tt_linear_gelu of `up`, then tt_linear_add of `down` and `to`. down->x is
 * up->y, which holds nothing afterwards. */
void tt_mlp(tt_ctx *ctx, const tt_linear_args *up, const tt_linear_args *down,
            const tt_gate_add_args *to);
/* What x says, in x->norm.y. */
void tt_norm(tt_ctx *ctx, const tt_normed *x);
/* What x says, then tt_linears and tt_mlp of it; tt_attention, then
 * tt_linear_add of what it gives. The x of the products is what comes before
 * them, and holds nothing afterwards. x may be NULL in tt_norm_linears: it is
 * there already. */
void tt_norm_linears(tt_ctx *ctx, const tt_normed *x, const tt_linear_args *a,
                     int n);
void tt_norm_mlp(tt_ctx *ctx, const tt_normed *x, const tt_linear_args *up,
                 const tt_linear_args *down, const tt_gate_add_args *to);
void tt_attention_add(tt_ctx *ctx, const tt_attention_args *x,
                      const tt_linear_args *a, const tt_gate_add_args *to);

#endif
