/* self_attention.c: attention of a chunk over the KV cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py, CausalWanSelfAttention;
 *         tethercache/patched_attention.py.
 * Model   The chunk's k and v go into the cache first and are then read back
 *         with whatever the policy kept: there is no mask, every query sees
 *         every key of the window, its own chunk included. Positions are the
 *         policy's business; what is written is not rotated.
 * Next    cache/cache.c */
#include <math.h>

#include "dit/model.h"

void tt_dit_qkv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *q, tt_real *k,
                tt_real *v, const tt_real *x, int64_t T)
{
    if (ctx->status) return;
    const dit_attention *s = &m->block[i].self;
    const int64_t dim = m->cfg.dim;
    dit_apply(ctx, q, x, T, &s->q);
    tt_rms_norm(ctx, q, q, T, dim, s->norm_q, m->cfg.eps);
    dit_apply(ctx, k, x, T, &s->k);
    tt_rms_norm(ctx, k, k, T, dim, s->norm_k, m->cfg.eps);
    dit_apply(ctx, v, x, T, &s->v);
}

void tt_dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                           const tt_real *x, tt_cache *cache,
                           const tt_pass *pass)
{
    if (ctx->status) return;
    const int64_t dim = m->cfg.dim, H = m->cfg.heads, D = dim / H;
    const int64_t T = pass->frames * tt_cache_geometry(cache)->L;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *q = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *k = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *v = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *o = tt_values(ctx, T * dim);           /* [T, H, D]             */

    tt_dit_qkv(ctx, m, i, q, k, v, x, T);
    TT_TAP(ctx, "self_attn.q", q, T, H, D);
    TT_TAP(ctx, "self_attn.k", k, T, H, D);
    TT_TAP(ctx, "self_attn.v", v, T, H, D);

    tt_kv_view window = {0};                         /* k, v [N, H, D]        */
    tt_cache_write(ctx, cache, i, pass, &(tt_qkv){q, k, v});
    tt_cache_read(ctx, cache, i, pass, &window, q, q);
    tt_attention(ctx, &(tt_attention_args){
        .o = o, .q = q, .k = window.k, .v = window.v, .T = T, .N = window.n,
        .H = H, .D = D, .q_stride = dim, .kv_stride = dim,
        .scale = (tt_real)(1 / sqrt((double)D))});
    tt_cache_done(ctx, cache, i, pass);

    dit_apply(ctx, y, o, T, &m->block[i].self.o);
    TT_TAP(ctx, "self_attn", y, T, dim);
    tt_arena_reset(&ctx->scratch, mark);
}
