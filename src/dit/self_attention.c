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

static tt_status check_part(tt_ctx *ctx, const tt_dit_part *p)
{
    TT_TRY(ctx->status);
    const int64_t rows = dit_chunk_rows(p);
    if (p->first < 0 || p->T < 1 || p->T > rows - p->first)
        return tt_fail(ctx, TT_EINVAL, "token rows %lld to %lld do not lie in "
                       "a chunk of %lld", (long long)p->first,
                       (long long)(p->first + p->T - 1), (long long)rows);
    if (p->T < rows && !p->gather)
        return tt_fail(ctx, TT_EINVAL, "%lld of the chunk's %lld token rows: "
                       "attention needs the keys and values of all, and there "
                       "is no gather to bring the others", (long long)p->T,
                       (long long)rows);
    return TT_OK;
}

/* The chunk's rows [F*L, width], of which this part has its own. */
static void gather(tt_ctx *ctx, const tt_dit_part *p, tt_real *rows,
                   int64_t width)
{
    if (p->gather && !ctx->status) p->gather(p->user, ctx, rows, width);
}

void tt_dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                           const tt_real *x, const tt_dit_part *p)
{
    if (check_part(ctx, p)) return;
    const int64_t dim = m->cfg.dim, H = m->cfg.heads, D = dim / H, T = p->T;
    const int64_t all = dit_chunk_rows(p) * dim, own = p->first * dim;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *q = tt_values(ctx, all);               /* [F*L, H, D]           */
    tt_real *k = tt_values(ctx, all);               /* [F*L, H, D]           */
    tt_real *v = tt_values(ctx, all);               /* [F*L, H, D]           */
    tt_real *o = tt_values(ctx, T * dim);           /* [T, H, D]             */
    if (ctx->status) return;

    tt_dit_qkv(ctx, m, i, q + own, k + own, v + own, x, T);
    TT_TAP(ctx, "self_attn.q", q + own, T, H, D);
    TT_TAP(ctx, "self_attn.k", k + own, T, H, D);
    TT_TAP(ctx, "self_attn.v", v + own, T, H, D);
    gather(ctx, p, q, dim);                          /* policies ask all of q */
    gather(ctx, p, k, dim);
    gather(ctx, p, v, dim);

    tt_kv_view window = {0};                         /* k, v [N, H, D]        */
    tt_cache_write(ctx, p->cache, i, p->pass, &(tt_qkv){q, k, v});
    tt_cache_read(ctx, p->cache, i, p->pass, &window, q, q);
    tt_attention(ctx, &(tt_attention_args){
        .o = o, .q = q + own, .k = window.k, .v = window.v, .T = T,
        .N = window.n, .H = H, .D = D, .q_stride = dim, .kv_stride = dim,
        .scale = (tt_real)(1 / sqrt((double)D))});
    tt_cache_done(ctx, p->cache, i, p->pass);

    dit_apply(ctx, y, o, T, &m->block[i].self.o);
    TT_TAP(ctx, "self_attn", y, T, dim);
    tt_arena_reset(&ctx->scratch, mark);
}
