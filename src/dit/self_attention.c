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
#include "ops/backend.h"

static void self_attention_qkv(tt_ctx *ctx, const tt_dit *m, int64_t i,
                               tt_real *q, tt_real *k, tt_real *v, dit_rows in,
                               int64_t T)
{
    if (ctx->status) return;
    const dit_attention *s = &m->block[i].self;
    const int64_t dim = m->cfg.dim;
    const tt_real *x = in.x;
    tt_norm_linears(ctx, in.norm,
                    (const tt_linear_args[]){{q, x, T, &s->q.w, s->q.b},
                                             {k, x, T, &s->k.w, s->k.b},
                                             {v, x, T, &s->v.w, s->v.b}}, 3);
    tt_rms_norm(ctx, q, q, T, dim, s->norm_q, m->cfg.eps);
    tt_rms_norm(ctx, k, k, T, dim, s->norm_k, m->cfg.eps);
}

void tt_dit_qkv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *q, tt_real *k,
                tt_real *v, const tt_real *x, int64_t T)
{
    self_attention_qkv(ctx, m, i, q, k, v, (dit_rows){x, NULL}, T);
}

static tt_status check_part(tt_ctx *ctx, const tt_dit_part *p)
{
    TT_TRY(ctx->status);
    const int64_t rows = dit_chunk_rows(p);
    const tt_range own = tt_team_rows(ctx, rows);
    if (p->first == own.lo && p->T == own.hi - own.lo) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "token rows %lld to %lld of a chunk of "
                   "%lld are given, but those of rank %d of %d are %lld to "
                   "%lld", (long long)p->first,
                   (long long)(p->first + p->T - 1), (long long)rows,
                   tt_team_rank(ctx), tt_team_size(ctx), (long long)own.lo,
                   (long long)own.hi - 1);
}

/* Attention of the heads held over the window. */
static tt_attention_args over_window(tt_real *o, const tt_real *q,
                                     const tt_kv_view *window, int64_t T,
                                     const tt_geometry *g)
{
    const int64_t D = g->D, width = g->H * D;
    return (tt_attention_args){
        .o = o, .q = q, .k = window->k, .v = window->v, .T = T,
        .N = window->n, .H = g->H, .D = D, .q_stride = width,
        .kv_stride = width, .scale = (tt_real)(1 / sqrt((double)D)),
        .packed = window->packed, .n_packed = window->n_packed,
        .bf16 = window->bf16};
}

/* Of every head our queries, one head after the other; alone all of them in one
 * array [F*L, H, D]. */
static void self_attention_attend(tt_ctx *ctx, tt_attention_args a,
                                  const tt_kv_view *window,
                                  const tt_geometry *g)
{
    const int64_t D = a.D, T = a.T, width = g->H * D;
    const tt_real *q = a.q;
    const int64_t each = a.packed ? ctx->ops->packed(ctx, a.N, D) : 0;
    const int64_t head = a.bf16 ? D / 2 : D;
    if (tt_team_size(ctx) == 1) {
        tt_attention(ctx, &a);
        return;
    }
    a.H = 1;
    for (int64_t h = 0; h < g->H && !ctx->status; h++) {
        const tt_range own = tt_team_queries(ctx, g->heads, T, g->first + h);
        a.q = q + own.lo * width + h * D;
        a.k = window->k + h * head;
        a.v = window->v + h * head;
        if (a.packed) a.packed = window->packed + h * each;
        a.T = own.hi - own.lo;
        tt_attention(ctx, &a);
        a.o += a.T * D;
    }
}

/* The chunk's keys and values into the cache; its queries [F*L, heads held, D],
 * in ctx->scratch. */
static tt_real *self_attention_store(tt_ctx *ctx, const tt_dit *m, int64_t i,
                                     dit_rows x, const tt_dit_part *p)
{
    const int64_t dim = m->cfg.dim, H = m->cfg.heads, D = dim / H, T = p->T;
    const int64_t all = dit_chunk_rows(p);
    tt_real *q = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *k = tt_values(ctx, T * dim);           /* [T, H, D]             */
    tt_real *v = tt_values(ctx, T * dim);           /* [T, H, D]             */

    self_attention_qkv(ctx, m, i, q, k, v, x, T);
    TT_TAP_ROWS(ctx, "self_attn.q", q, T, H, D);
    TT_TAP_ROWS(ctx, "self_attn.k", k, T, H, D);
    TT_TAP_ROWS(ctx, "self_attn.v", v, T, H, D);
    q = tt_team_to_heads(ctx, q, all, H, D);         /* [F*L, heads held, D]  */
    k = tt_team_to_heads(ctx, k, all, H, D);
    v = tt_team_to_heads(ctx, v, all, H, D);
    tt_cache_write(ctx, p->cache, i, p->pass, &(tt_qkv){q, k, v});
    return q;
}

void dit_store(tt_ctx *ctx, const tt_dit *m, int64_t i, dit_rows x,
               const tt_dit_part *p)
{
    if (check_part(ctx, p)) return;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    self_attention_store(ctx, m, i, x, p);
    tt_cache_done(ctx, p->cache, i, p->pass);
    tt_arena_reset(&ctx->scratch, mark);
}

void dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                        const tt_gate_add_args *to, dit_rows x,
                        const tt_dit_part *p)
{
    if (check_part(ctx, p)) return;
    const int64_t H = m->cfg.heads, D = m->cfg.dim / H;
    const int64_t all = dit_chunk_rows(p);
    const tt_geometry *g = tt_cache_geometry(p->cache);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    /* [F*L, heads held, D] */
    tt_real *q = self_attention_store(ctx, m, i, x, p);

    tt_kv_view window = {0};
    tt_cache_read(ctx, p->cache, i, p->pass, &window, q, q);
    tt_real *o = tt_values(ctx, all * g->H * D);
    const dit_linear *last = &m->block[i].self.o;
    const tt_attention_args a = over_window(o, q, &window, all, g);
    const bool done = tt_team_size(ctx) == 1
                      && dit_attend_and_finish(ctx, y, to, &a, last);
    if (!done) self_attention_attend(ctx, a, &window, g);
    tt_cache_done(ctx, p->cache, i, p->pass);
    if (!done) {
        o = tt_team_answers_to_rows(ctx, o, all, H, D);  /* [T, H, D]         */
        dit_finish(ctx, y, to, o, p->T, last, "self_attn");
    }
    tt_arena_reset(&ctx->scratch, mark);
}

void tt_dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                           const tt_real *x, const tt_dit_part *p)
{
    dit_self_attention(ctx, m, i, y, NULL, (dit_rows){x, NULL}, p);
}
