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
#include "ops/backend.h"

/* Rows of the modulation, in the checkpoint's order. */
enum { SHIFT1, SCALE1, GATE1, SHIFT2, SCALE2, GATE2, MOD_ROWS };

tt_real *dit_modulation(tt_ctx *ctx, const tt_real *modulation,
                        const tt_real *e, int64_t ne, int64_t rows,
                        int64_t dim, bool shared)
{
    tt_real *m = tt_values(ctx, ne * rows * dim);   /* [ne, rows, dim]       */
    if (!shared) tt_copy(ctx, m, e, ne * rows * dim);
    for (int64_t g = 0; g < ne && !ctx->status; g++) {
        tt_real *mg = m + g * rows * dim;
        for (int64_t r = 0; r < rows && shared; r++)
            tt_copy(ctx, mg + r * dim, e + g * dim, dim);
        tt_add(ctx, mg, modulation, rows * dim);
    }
    return m;
}

void dit_finish(tt_ctx *ctx, tt_real *y, const tt_gate_add_args *to,
                const tt_real *x, int64_t n, const dit_linear *l,
                const char *name)
{
    if (ctx->status) return;
    if (to && !TT_TAPPED(ctx)) {
        tt_linear_add(ctx, &(tt_linear_args){y, x, n, &l->w, l->b}, to);
        return;
    }
    dit_apply(ctx, y, x, n, l);
    TT_TAP_ROWS(ctx, name, y, n, l->w.dim[0]);
    if (to && to->gate)
        tt_gate_add(ctx, to->x, y, n, to->c, to->gate, to->stride, to->rows);
    else if (to)
        tt_add(ctx, to->x, y, n * to->c);
}

bool dit_attend_and_finish(tt_ctx *ctx, tt_real *y, const tt_gate_add_args *to,
                           const tt_attention_args *a, const dit_linear *l)
{
    const tt_fused *f = ctx->ops->fused;
    if (!to || TT_TAPPED(ctx) || !f || !f->attention_add) return false;
    tt_attention_add(ctx, a, &(tt_linear_args){y, a->o, a->T, &l->w, l->b}, to);
    return true;
}

/* y = ffn2(gelu(ffn0(x))) of a norm's result x, then `to` */
static void feed_forward(tt_ctx *ctx, tt_real *y, const tt_gate_add_args *to,
                         const tt_normed *norm, const dit_block *b,
                         int64_t ffn_dim)
{
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *x = norm->norm.y;
    const int64_t T = norm->norm.n;
    tt_real *hidden = tt_values(ctx, T * ffn_dim);  /* [T, ffn_dim]          */
    if (to && !TT_TAPPED(ctx)) {
        tt_norm_mlp(ctx, norm,
                    &(tt_linear_args){hidden, x, T, &b->ffn0.w, b->ffn0.b},
                    &(tt_linear_args){y, hidden, T, &b->ffn2.w, b->ffn2.b}, to);
    } else {
        tt_norm(ctx, norm);
        dit_apply_gelu(ctx, hidden, x, T, &b->ffn0);
        dit_finish(ctx, y, to, hidden, T, &b->ffn2, "ffn");
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* The modulation of a part's rows. */
typedef struct times {
    const tt_real *mod;      /* [ne - entry, 6, dim]                          */
    int64_t per;             /* tokens per time entry                         */
    int64_t stride;          /* one time entry                                */
} times;

static times times_of(tt_ctx *ctx, const tt_dit *m, int64_t i,
                      const tt_dit_part *part, const tt_real *e0, int64_t ne)
{
    const int64_t rows = dit_chunk_rows(part), dim = m->cfg.dim;
    times t = {.per = rows / ne, .stride = MOD_ROWS * dim};
    const int64_t entry = part->first / t.per;       /* of the first token    */
    TT_ASSERT(rows % ne == 0);
    TT_ASSERT(part->first % t.per == 0
              || part->first % t.per + part->T <= t.per);
    t.mod = dit_row(dit_modulation(ctx, m->block[i].modulation, e0, ne,
                                   MOD_ROWS, dim, false), entry, t.stride);
    return t;
}

/* a = LN(x) (1 + scale) + shift, what self-attention and FFN see. */
static tt_normed branch_input(tt_real *a, const tt_real *x, const tt_dit *m,
                              const tt_dit_part *part, const times *t,
                              int scale, int shift)
{
    const int64_t dim = m->cfg.dim, T = part->T;
    return (tt_normed){{a, x, T, dim, NULL, NULL, m->cfg.eps},
                       {a, T, dim, dit_row(t->mod, scale, dim),
                        dit_row(t->mod, shift, dim), t->stride, t->per}};
}

void dit_block_store(tt_ctx *ctx, const tt_dit *m, int64_t i, const tt_real *x,
                     const tt_dit_part *part, const tt_real *e0, int64_t ne)
{
    if (ctx->status) return;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const times t = times_of(ctx, m, i, part, e0, ne);
    tt_real *a = tt_values(ctx, part->T * m->cfg.dim);
    const tt_normed in = branch_input(a, x, m, part, &t, SCALE1, SHIFT1);
    dit_store(ctx, m, i, (dit_rows){a, &in}, part);
    tt_arena_reset(&ctx->scratch, mark);
}

void tt_dit_block(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *x,
                  const tt_dit_part *part, const tt_real *e0, int64_t ne,
                  const tt_dit_context *text)
{
    if (ctx->status) return;
    const dit_block *b = &m->block[i];
    const int64_t dim = m->cfg.dim, T = part->T;

    const size_t scope = tt_scope(ctx, "block.%lld", (long long)i);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const times t = times_of(ctx, m, i, part, e0, ne);
    tt_real *a = tt_values(ctx, T * dim);           /* [T, dim] branch input */
    tt_real *y = tt_values(ctx, T * dim);           /* [T, dim] its output   */

    tt_gate_add_args to = {x, y, T, dim, dit_row(t.mod, GATE1, dim), t.stride,
                           t.per};

    /* x += SelfAttn(LN(x) (1 + scale1) + shift1) gate1 */
    tt_normed in = branch_input(a, x, m, part, &t, SCALE1, SHIFT1);
    dit_self_attention(ctx, m, i, y, &to, (dit_rows){a, &in}, part);

    /* x += CrossAttn(LN3(x)) */
    in = (tt_normed){{a, x, T, dim, b->norm3_w, b->norm3_b, m->cfg.eps}, {0}};
    to.gate = NULL;
    dit_cross_attention(ctx, m, i, y, &to, (dit_rows){a, &in}, T, text);

    /* x += FFN(LN(x) (1 + scale2) + shift2) gate2 */
    in = branch_input(a, x, m, part, &t, SCALE2, SHIFT2);
    to.gate = dit_row(t.mod, GATE2, dim);
    feed_forward(ctx, y, &to, &in, b, m->cfg.ffn_dim);

    TT_TAP_ROWS(ctx, "out", x, T, dim);
    tt_arena_reset(&ctx->scratch, mark);
    tt_scope_end(ctx, scope);
}
