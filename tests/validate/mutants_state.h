/* mutants_state.h: which fault is planted, shared by the operators of the
 * plug-in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_VALIDATE_MUTANTS_STATE_H
#define TT_TESTS_VALIDATE_MUTANTS_STATE_H

#include "tests/validate/mutants.h"
#include "validate/validate.h"

enum { SCOPES = 4096, LAYERS = 64, LATE = 60, THIRD = 3 };
extern struct mutant_state {
    int which;
    bool chosen;
    int64_t calls;                      /* of linear                          */
    const void *layer[LAYERS];          /* weights in the order of first use  */
    int layers;
    char scope[SCOPES][96];             /* where the fault took effect        */
    int scopes;
} planted;

/* True; remembers that the fault took effect here. */
bool mutant_hits(const tt_ctx *ctx);

/* Is fault `id` planted? Remembers where it was asked for. */
#define PLANTED(id) (planted.which == MUT_##id && mutant_hits(ctx))
/* The same where it only matters under a condition. */
#define PLANTED_IF(id, cond)                                                   \
    (planted.which == MUT_##id && (cond) && mutant_hits(ctx))

static inline tt_real narrow(tt_format f, tt_real x)
{
    return (tt_real)tt_format_round(f, (float)x);
}

/* The operators of mutants_products.c. */
void mutant_linear(tt_ctx *ctx, const tt_linear_args *p);
void mutant_attention(tt_ctx *ctx, const tt_attention_args *right);
void mutant_conv(tt_ctx *ctx, const tt_conv_args *right);

/* A silu that crashes, hangs or prints, where the environment asks for it. */
void mutant_misbehave(tt_ops *table);

#endif
