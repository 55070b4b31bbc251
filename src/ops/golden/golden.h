/* golden.h: the definitions, for tables that keep some of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_GOLDEN_H
#define TT_OPS_GOLDEN_H

#include "ops/backends.h"

#define GOLDEN_DECLARED(op, OP)                                                \
    void golden_##op(tt_ctx *ctx, const tt_##op##_args *a);
TT_OPS(GOLDEN_DECLARED)
/* A table's entry. */
#define GOLDEN(op, OP) .op = golden_##op,

#ifndef TT_REAL_DOUBLE
void golden_bf16_linear(tt_ctx *ctx, const tt_linear_args *a);
void golden_bf16_attention(tt_ctx *ctx, const tt_attention_args *a);
#endif

#endif
