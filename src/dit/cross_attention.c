/* cross_attention.c: attention of a chunk over the prompt.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/model.py, WanT2VCrossAttention.
 * Model   No rotation, no mask: all text_len rows take part, those after the
 *         prompt included. k and v depend on the prompt alone and are made
 *         once (tt_prompt_make), and packed once where the operators do
 *         that. Ranks share them out by rows and put those of one layer
 *         together, for as long as it needs them.
 * Next    head.c */
#include <math.h>

#include "dit/model.h"

void dit_cross_kv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *k,
                  tt_real *v, const tt_real *context, int64_t rows)
{
    if (ctx->status) return;
    const dit_attention *c = &m->block[i].cross;
    dit_apply(ctx, k, context, rows, &c->k);
    tt_rms_norm(ctx, k, k, rows, m->cfg.dim, c->norm_k, m->cfg.eps);
    dit_apply(ctx, v, context, rows, &c->v);
}

void tt_dit_cross_kv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *k,
                     tt_real *v, const tt_real *context, int64_t rows)
{
    if (ctx->status) return;
    const int64_t H = m->cfg.heads, D = m->cfg.dim / H;
    const size_t scope = tt_scope(ctx, "block.%lld", (long long)i);
    dit_cross_kv(ctx, m, i, k, v, context, rows);
    TT_TAP_ROWS(ctx, "cross_attn.k", k, rows, H, D);
    TT_TAP_ROWS(ctx, "cross_attn.v", v, rows, H, D);
    tt_scope_end(ctx, scope);
}

static tt_attention_args over_text(const tt_dit *m, int64_t rows)
{
    const int64_t dim = m->cfg.dim, H = m->cfg.heads, D = dim / H;
    return (tt_attention_args){
        .N = rows, .H = H, .D = D, .q_stride = dim, .kv_stride = dim,
        .scale = (tt_real)(1 / sqrt((double)D))};
}

void dit_cross_lay(tt_ctx *ctx, const tt_dit *m, tt_real *packed,
                   const tt_real *k, const tt_real *v, int64_t rows)
{
    tt_attention_args a = over_text(m, rows);
    a.k = k;
    a.v = v;
    a.packed = packed;
    tt_attention(ctx, &a);
}

void dit_cross_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                         const tt_gate_add_args *to, dit_rows x,
                         int64_t T, const tt_dit_context *text)
{
    if (ctx->status) return;
    const dit_attention *c = &m->block[i].cross;
    const int64_t dim = m->cfg.dim, H = m->cfg.heads, D = dim / H;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *q = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *o = tt_values(ctx, T * dim);           /* [T, H, D]             */

    tt_norm_linears(ctx, x.norm,
                    &(tt_linear_args){q, x.x, T, &c->q.w, c->q.b}, 1);
    tt_rms_norm(ctx, q, q, T, dim, c->norm_q, m->cfg.eps);
    TT_TAP_ROWS(ctx, "cross_attn.q", q, T, H, D);
    tt_attention_args a = over_text(m, text->rows);
    a.o = o;
    a.q = q;
    a.T = T;
    a.same = text->same;
    if (text->packed) {
        a.packed = text->packed;
        a.n_packed = text->rows;
    } else {
        a.k = tt_team_all_rows(ctx, text->k, text->rows, dim);
        a.v = tt_team_all_rows(ctx, text->v, text->rows, dim);
    }
    if (!dit_attend_and_finish(ctx, y, to, &a, &c->o)) {
        tt_attention(ctx, &a);
        dit_finish(ctx, y, to, o, T, &c->o, "cross_attn");
    }
    tt_arena_reset(&ctx->scratch, mark);
}

void tt_dit_cross_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                            const tt_real *x, int64_t T,
                            const tt_dit_context *text)
{
    dit_cross_attention(ctx, m, i, y, NULL, (dit_rows){x, NULL}, T, text);
}
