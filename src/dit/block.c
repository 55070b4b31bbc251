/* block.c: one transformer block.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py, CausalWanAttentionBlock.
 * Model   m = modulation + e0 gives shift, scale and gate for the two branches
 *         that know about time; cross-attention has neither gate nor
 *         modulation but a norm with parameters of its own (norm3).
 * Next    self_attention.c, cross_attention.c */
#include "dit/model.h"

/* Rows of the modulation, in the checkpoint's order. */
enum { SHIFT1, SCALE1, GATE1, SHIFT2, SCALE2, GATE2, MOD_ROWS };

tt_real *dit_modulation(tt_ctx *ctx, const tt_real *modulation,
                        const tt_real *e, int64_t ne, int64_t rows,
                        int64_t dim, bool shared)
{
    tt_real *m = tt_values(ctx, ne * rows * dim);   /* [ne, rows, dim]       */
    for (int64_t g = 0; g < ne && !ctx->status; g++) {
        tt_real *mg = m + g * rows * dim;
        for (int64_t r = 0; r < rows; r++)
            tt_copy(ctx, mg + r * dim, e + (shared ? g : g * rows + r) * dim,
                    dim);
        tt_add(ctx, mg, modulation, rows * dim);
    }
    return m;
}

/* y = ffn2(gelu(ffn0(x))) */
static void feed_forward(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T,
                         const dit_block *b, int64_t ffn_dim)
{
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *hidden = tt_values(ctx, T * ffn_dim);  /* [T, ffn_dim]          */
    dit_apply(ctx, hidden, x, T, &b->ffn0);
    tt_gelu_tanh(ctx, hidden, T * ffn_dim);
    dit_apply(ctx, y, hidden, T, &b->ffn2);
    tt_arena_reset(&ctx->scratch, mark);
}

void tt_dit_block(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *x,
                  const tt_dit_part *part, const tt_real *e0, int64_t ne,
                  const tt_dit_context *text)
{
    if (ctx->status) return;
    const dit_block *b = &m->block[i];
    const int64_t dim = m->cfg.dim, T = part->T;
    const double eps = m->cfg.eps;
    const int64_t stride = MOD_ROWS * dim;           /* one time entry        */
    const int64_t rows = dit_chunk_rows(part);
    const int64_t per = rows / ne;                   /* tokens per time entry */
    const int64_t entry = part->first / per;         /* of the first token    */
    TT_ASSERT(rows % ne == 0);
    TT_ASSERT(part->first % per == 0 || part->first % per + T <= per);

    const size_t scope = tt_scope(ctx, "block.%lld", (long long)i);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *mod = dit_row(                    /* [ne - entry, 6, dim]  */
        dit_modulation(ctx, b->modulation, e0, ne, MOD_ROWS, dim, false),
        entry, stride);
    tt_real *a = tt_values(ctx, T * dim);           /* [T, dim] branch input */
    tt_real *y = tt_values(ctx, T * dim);           /* [T, dim] its output   */

    /* x += SelfAttn(LN(x) (1 + scale1) + shift1) gate1 */
    tt_layer_norm(ctx, a, x, T, dim, NULL, NULL, eps);
    tt_modulate(ctx, a, T, dim, dit_row(mod, SCALE1, dim),
                dit_row(mod, SHIFT1, dim), stride, per);
    tt_dit_self_attention(ctx, m, i, y, a, part);
    tt_gate_add(ctx, x, y, T, dim, dit_row(mod, GATE1, dim), stride, per);

    /* x += CrossAttn(LN3(x)) */
    tt_layer_norm(ctx, a, x, T, dim, b->norm3_w, b->norm3_b, eps);
    tt_dit_cross_attention(ctx, m, i, y, a, T, text);
    tt_add(ctx, x, y, T * dim);

    /* x += FFN(LN(x) (1 + scale2) + shift2) gate2 */
    tt_layer_norm(ctx, a, x, T, dim, NULL, NULL, eps);
    tt_modulate(ctx, a, T, dim, dit_row(mod, SCALE2, dim),
                dit_row(mod, SHIFT2, dim), stride, per);
    feed_forward(ctx, y, a, T, b, m->cfg.ffn_dim);
    TT_TAP(ctx, "ffn", y, T, dim);
    tt_gate_add(ctx, x, y, T, dim, dit_row(mod, GATE2, dim), stride, per);

    TT_TAP(ctx, "out", x, T, dim);
    tt_arena_reset(&ctx->scratch, mark);
    tt_scope_end(ctx, scope);
}
