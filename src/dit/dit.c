/* dit.c: one call of the network, flow = net(x, t, text, cache).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py, CausalWanModel (inference).
 * Model   latent -> tokens; every token then runs through all blocks, where it
 *         sees the chunk and what the cache policy kept of the past; tokens ->
 *         flow. Time enters through e and e0, the prompt through cross-
 *         attention. Nothing here depends on a particular size.
 * Next    embed.c, block.c, head.c */
#include <math.h>
#include <string.h>

#include "cache/classes.h"
#include "dit/model.h"
#include "io/weights.h"
#include "ops/backend.h"

static tt_status check_call(tt_ctx *ctx, const tt_dit *m,
                            const tt_dit_call *call);
static int64_t count_finite(const tt_ctx *ctx, const tt_host *x, int64_t n);
static void dit_check_finite(tt_ctx *ctx, const tt_dit *m, const tt_host *x,
                             int64_t n, const char *what);
static void dit_check_pass(tt_ctx *ctx, const tt_dit *m, const tt_real *tokens,
                           int64_t ntokens, const tt_host *flow, int64_t nflow);
static void release_block(const tt_ctx *ctx, const tt_dit *m,
                          const dit_block *b);

static void whole_block(tt_ctx *ctx, const tt_dit *m, int64_t i,
                        tt_real *tokens, const tt_dit_part *part,
                        const tt_real *e0, int64_t nt, const tt_prompt *prompt)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_dit_context text = dit_context_of(ctx, prompt, i);
    tt_dit_block(ctx, m, i, tokens, part, e0, nt, &text);
    tt_arena_reset(&ctx->scratch, mark);
}

tt_status tt_dit_forward(tt_ctx *ctx, const tt_dit *m, tt_host *flow,
                         const tt_host *x, const tt_dit_call *call)
{
    TT_TRY(check_call(ctx, m, call));
    const tt_dit_config *c = &m->cfg;
    const tt_prompt *prompt = call->prompt;
    const int64_t F = call->pass->frames, h = call->h, w = call->w;
    const int64_t T = F * (h / 2) * (w / 2), nt = call->nt;
    const tt_range own = tt_team_rows(ctx, T);          /* alone: all rows   */
    const tt_dit_part part = {.first = own.lo, .T = own.hi - own.lo,
                              .cache = call->cache, .pass = call->pass};
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);

    tt_real *e = tt_values(ctx, nt * c->dim);           /* [nt, dim]         */
    tt_real *e0 = tt_values(ctx, nt * 6 * c->dim);      /* [nt, 6, dim]      */
    tt_dit_time(ctx, m, NULL, e, e0, call->t, nt);

    tt_real *tokens = tt_values(ctx, part.T * c->dim);  /* [own rows, dim]   */
    tt_dit_patch(ctx, m, tokens, x, F, h, w);

    /* no one reads the tokens after it, but a tap of any rank may */
    const bool whole = flow || tt_team_any(ctx, TT_TAPPED(ctx));
    const bool crowded = tt_weights_crowded(m->w);
    for (int64_t i = 0; i < c->layers; i++) {
        if (whole || i + 1 < c->layers)
            whole_block(ctx, m, i, tokens, &part, e0, nt, prompt);
        else
            dit_block_store(ctx, m, i, tokens, &part, e0, nt);
        if (crowded) release_block(ctx, m, &m->block[i]);
    }

    if (flow) {
        tt_real *y = tt_values(ctx, part.T * 4 * c->in_dim);
        tt_dit_head(ctx, m, y, tokens, part.T, e, nt);
        y = tt_team_all_rows(ctx, y, T, 4 * c->in_dim); /* [T, 4*C]          */
        const tt_host *rows = tt_get(ctx, y, T * 4 * c->in_dim);
        if (rows) tt_dit_unpatch(flow, rows, F, c->in_dim, h, w);
    }
    dit_check_pass(ctx, m, tokens, part.T * c->dim, flow,
                   F * c->in_dim * h * w);
    if (flow) TT_TAP_HOST(ctx, "flow", flow, F, c->in_dim, h, w);
    tt_arena_reset(&ctx->scratch, mark);
    return tt_team_agree(ctx);
}

/* A block's matrices are not needed before the next call. */
static void release_block(const tt_ctx *ctx, const tt_dit *m,
                          const dit_block *b)
{
    const tt_tensor *all[] = {
        &b->ffn0.w, &b->ffn2.w, &b->self.q.w, &b->self.k.w, &b->self.v.w,
        &b->self.o.w, &b->cross.q.w, &b->cross.k.w, &b->cross.v.w,
        &b->cross.o.w};
    weights_release_all(ctx, m->w, all, sizeof all / sizeof *all);
}

const tt_weights *tt_dit_weights(const tt_dit *m)
{
    return m ? m->w : NULL;
}

/* ---- what depends on the prompt alone ------------------------------------ */

/* Our rows of the text states. Those past the prompt are zero; they are
 * embedded and attended to like any other: upstream has no text mask. */
static tt_real *pad_text(tt_ctx *ctx, const tt_host *text, int64_t rows,
                         tt_range own, int64_t dim)
{
    const int64_t n = own.hi - own.lo;
    const int64_t end = rows < own.hi ? rows : own.hi;
    const int64_t given = end > own.lo ? end - own.lo : 0;
    tt_real *x = tt_values(ctx, n * dim);               /* [own rows, dim]   */
    if (!x) return NULL;
    tt_put(ctx, x, text && given ? text + own.lo * dim : NULL, given * dim);
    tt_zero(ctx, x + given * dim, (n - given) * dim);
    return x;
}

/* Are the bits of a row those of `last` (NULL: zeros)? */
static bool is_like(const tt_host *x, const tt_host *last, int64_t dim)
{
    const tt_host zero = 0;
    for (int64_t i = 0; i < dim; i++)
        if (memcmp(x + i, last ? last + i : &zero, sizeof zero)) return false;
    return true;
}

/* From which row on all n are equal, those after the given ones being zero: of
 * a prompt most are. 0 where fewer than two would be, or there is no text. */
static int64_t same_from(const tt_host *text, int64_t rows, int64_t n,
                         int64_t dim)
{
    if (!text) return 0;
    const tt_host *last = n == rows ? text + (n - 1) * dim : NULL;
    int64_t same = n == rows ? n - 1 : rows;
    while (same > 1 && is_like(text + (same - 1) * dim, last, dim)) same--;
    return same < n - 1 ? same : 0;
}

/* Of a rank's rows those that are computed; the others are like the last. */
static int64_t rows_made(const tt_prompt *p)
{
    const int64_t held = p->own.hi - p->own.lo, some = p->same + 1 - p->own.lo;
    const int64_t least = held > 0;
    if (!p->same || some > held) return held;
    return some < least ? least : some;
}

/* Rows [some, n) of x = row some - 1. */
static void repeat_last(tt_ctx *ctx, tt_real *x, int64_t dim, int64_t some,
                        int64_t n)
{
    if (ctx->status || some < 1) return;
    for (int64_t have = 1, more; some < n; some += more, have += more) {
        more = n - some < have ? n - some : have;
        tt_copy(ctx, x + some * dim, x + (some - have) * dim, more * dim);
    }
}

/* Keys and values of block i: as attention lays them out, or as they are. */
static void keep_block(tt_ctx *ctx, const tt_dit *m, tt_prompt *p, int64_t i)
{
    const int64_t n = p->own.hi - p->own.lo;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *k, *v;
    if (p->packed) {
        k = tt_values(ctx, n * p->dim);
        v = tt_values(ctx, n * p->dim);
    } else {
        k = p->k[i] = tt_values_in(ctx, &p->arena, n * p->dim, "prompt keys");
        v = p->v[i] = tt_values_in(ctx, &p->arena, n * p->dim, "prompt values");
    }
    const int64_t some = rows_made(p);
    tt_dit_cross_kv(ctx, m, i, k, v, p->context, some);
    repeat_last(ctx, k, p->dim, some, n);
    repeat_last(ctx, v, p->dim, some, n);
    if (p->packed && !ctx->status) {
        dit_cross_lay(ctx, m, p->packed[i], k, v, p->rows);
        p->unit = ctx->matrix_unit > 0;  /* the operators have asked by now  */
    }
    tt_arena_reset(&ctx->scratch, mark);
}

tt_dit_context dit_context_of(tt_ctx *ctx, const tt_prompt *p, int64_t i)
{
    const tt_ops *now = ctx->ops;
    tt_dit_context text = {.rows = p->rows, .same = p->same};
    if (!p->packed) {
        text.k = p->k[i];
        text.v = p->v[i];
    } else if (p->ops == now && p->unit == (ctx->matrix_unit > 0)) {
        text.packed = p->packed[i];
    } else {
        text.k = tt_values(ctx, p->rows * p->dim);
        text.v = tt_values(ctx, p->rows * p->dim);
        ctx->ops = p->ops;
        dit_cross_kv(ctx, p->of, i, text.k, text.v, p->context, p->rows);
        ctx->ops = now;
    }
    return text;
}

/* Room for what attention lays out, and its first touch: of all layers at once
 * (tt_zero_all). */
static void make_packed(tt_ctx *ctx, tt_prompt *p, int64_t heads)
{
    const int64_t n = heads * p->ops->packed(ctx, p->rows, p->dim / heads);
    p->packed = tt_alloc0(ctx, &p->arena, p->layers, sizeof *p->packed,
                          "prompt");
    for (int64_t i = 0; p->packed && i < p->layers; i++)
        p->packed[i] = tt_values_in(ctx, &p->arena, n, "prompt keys");
    if (!ctx->device) tt_zero_all(ctx, p->packed, p->layers, 0, n);
}

/* Room for what depends on the text of n rows; keys and values that are not
 * packed get theirs layer by layer. */
static tt_prompt *new_prompt(tt_ctx *ctx, const tt_dit *m, int64_t n)
{
    const tt_dit_config *c = &m->cfg;
    tt_arena arena = {0};
    tt_prompt *p = tt_alloc0(ctx, &arena, 1, sizeof *p, "prompt");
    if (!p) return NULL;
    p->arena = arena;
    p->rows = n;
    p->own = tt_team_rows(ctx, n);                      /* alone: all rows   */
    p->layers = c->layers;
    p->dim = c->dim;
    p->of = m;
    p->ops = ctx->ops;
    p->context = tt_values_in(ctx, &p->arena, (p->own.hi - p->own.lo) * c->dim,
                              "prompt context");
    if (p->ops->packed && tt_team_size(ctx) == 1) {
        make_packed(ctx, p, c->heads);
    } else {
        p->k = tt_alloc0(ctx, &p->arena, c->layers, sizeof *p->k, "prompt");
        p->v = tt_alloc0(ctx, &p->arena, c->layers, sizeof *p->v, "prompt");
    }
    return p;
}

tt_status tt_prompt_make(tt_ctx *ctx, tt_prompt **out, const tt_dit *m,
                         const tt_host *text, int64_t rows)
{
    *out = NULL;
    TT_TRY(ctx->status);
    const tt_dit_config *c = &m->cfg;
    const int64_t n = c->text_len ? c->text_len : rows;
    if (rows < 1 || rows > n)
        return tt_fail(ctx, TT_ESHAPE,
                       "text states: %lld rows, but this transformer takes 1 "
                       "to %lld (text_len); shorten the prompt or set text_len "
                       "in config.json", (long long)rows, (long long)n);
    tt_prompt *p = new_prompt(ctx, m, n);
    if (!p) return ctx->status;
    const int64_t held = p->own.hi - p->own.lo, size = held * c->dim;
    if (!tt_team_any(ctx, TT_TAPPED(ctx))) /* a tap sees rows, or makes them */
        p->same = same_from(text, rows, n, c->text_dim);

    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_dit_text(ctx, m, p->context,
                pad_text(ctx, text, rows, p->own, c->text_dim), rows_made(p));
    repeat_last(ctx, p->context, c->dim, rows_made(p), held);
    tt_arena_reset(&ctx->scratch, mark);

    for (int64_t i = 0; i < c->layers && !ctx->status; i++)
        keep_block(ctx, m, p, i);
    mark = tt_arena_here(&ctx->scratch);
    dit_check_finite(ctx, m, tt_get(ctx, p->context, size), size,
                     "text context");
    tt_arena_reset(&ctx->scratch, mark);
    if (ctx->status) {
        tt_prompt_free(p);
        return ctx->status;
    }
    *out = p;
    return TT_OK;
}

void tt_prompt_free(tt_prompt *p)
{
    if (!p) return;
    tt_arena arena = p->arena;      /* holds *p itself */
    tt_arena_free(&arena);
}

/* ---- checks at the door -------------------------------------------------- */

static tt_status dit_check_latent(tt_ctx *ctx, int64_t h, int64_t w, int64_t nt,
                                  const tt_pass *pass)
{
    if (h < 2 || w < 2 || h % 2 || w % 2)
        return tt_fail(ctx, TT_ESHAPE,
                       "latent is %lld x %lld, but the transformer takes "
                       "patches of 2 x 2: height and width must be even "
                       "(pixels: multiples of 16)", (long long)h, (long long)w);
    if (pass->frames < 1 || nt < 1 || (pass->frames * (h / 2) * (w / 2)) % nt)
        return tt_fail(ctx, TT_ESHAPE,
                       "%lld timesteps cannot be spread evenly over %lld "
                       "frames", (long long)nt, (long long)pass->frames);
    if (nt > 1 && tt_team_size(ctx) > 1)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%lld timesteps in one call are "
                       "for one rank, not %d", (long long)nt,
                       tt_team_size(ctx));
    return TT_OK;
}

static tt_status dit_check_prompt(tt_ctx *ctx, const tt_dit *m,
                                  const tt_prompt *p)
{
    const tt_range own = tt_team_rows(ctx, p->rows);
    if (p->layers != m->cfg.layers || p->dim != m->cfg.dim)
        return tt_fail(ctx, TT_ESHAPE,
                       "the prompt was made for %lld layers of width %lld, but "
                       "this transformer has %lld of %lld: make it with the "
                       "same model", (long long)p->layers, (long long)p->dim,
                       (long long)m->cfg.layers, (long long)m->cfg.dim);
    if (p->own.lo != own.lo || p->own.hi != own.hi)
        return tt_fail(ctx, TT_ESHAPE,
                       "the prompt holds rows %lld to %lld of %lld, but those "
                       "of rank %d of %d are %lld to %lld: every rank makes "
                       "its own", (long long)p->own.lo,
                       (long long)p->own.hi - 1, (long long)p->rows,
                       tt_team_rank(ctx), tt_team_size(ctx), (long long)own.lo,
                       (long long)own.hi - 1);
    return TT_OK;
}

static tt_status check_call(tt_ctx *ctx, const tt_dit *m,
                            const tt_dit_call *call)
{
    TT_TRY(ctx->status);
    const tt_geometry *g = tt_cache_geometry(call->cache);
    const tt_pass *pass = call->pass;
    const int64_t H = m->cfg.heads, D = m->cfg.dim / m->cfg.heads;
    const tt_range held = tt_team_heads(ctx, H);
    const int64_t h = call->h, w = call->w;

    TT_TRY(dit_check_latent(ctx, h, w, call->nt, pass));
    if (g->layers != m->cfg.layers || g->heads != H || g->first != held.lo
        || g->H != held.hi - held.lo || g->D != D
        || g->grid_h != h / 2 || g->grid_w != w / 2)
        return tt_fail(ctx, TT_ESHAPE,
                       "the cache was built for %lld layers, %lld heads of "
                       "%lld and a grid of %lld x %lld; this call needs %lld, "
                       "%lld of %lld and %lld x %lld", (long long)g->layers,
                       (long long)g->heads, (long long)g->D,
                       (long long)g->grid_h, (long long)g->grid_w,
                       (long long)m->cfg.layers, (long long)H, (long long)D,
                       (long long)(h / 2), (long long)(w / 2));
    if (pass->frames > cache_pass_frames(call->cache, pass) || pass->start < 0
        || pass->start > g->frames - pass->frames)
        return tt_fail(ctx, TT_ESHAPE,
                       "frames %lld to %lld do not fit: the cache was built "
                       "for chunks of at most %lld frames and a video of %lld",
                       (long long)pass->start,
                       (long long)(pass->start + pass->frames - 1),
                       (long long)g->chunk, (long long)g->frames);
    return dit_check_prompt(ctx, m, call->prompt);
}

/* The first NaN or infinity in a tensor of the checkpoint: its name, or NULL
 * when there is none. Only asked when a result went wrong. */
static const char *bad_weight(tt_ctx *ctx, const tt_dit *m)
{
    enum { PIECE = 4096 };
    tt_host buf[PIECE];
    (void)ctx;
    for (int64_t i = 0; i < tt_weights_count(m->w); i++) {
        const char *name = tt_weights_name(m->w, i);
        const tt_tensor *t = tt_weights_find(m->w, name);
        const int64_t n = t ? tt_tensor_count(t) : 0;
        for (int64_t at = 0; at < n; at += PIECE) {
            const int64_t k = n - at < PIECE ? n - at : PIECE;
            tt_widen_at(buf, t, at, k);
            for (int64_t j = 0; j < k; j++)
                if (!isfinite(buf[j])) return name;
        }
    }
    return NULL;
}

/* How many of n numbers are finite before the first that is not. */
static int64_t count_finite(const tt_ctx *ctx, const tt_host *x, int64_t n)
{
    int64_t i = 0;
    if (ctx->status) return n;
    while (i < n && isfinite(x[i])) i++;
    return i;
}

/* A result that is not finite stops the run here, with the tensor to blame. */
static void dit_check_finite(tt_ctx *ctx, const tt_dit *m, const tt_host *x,
                             int64_t n, const char *what)
{
    if (ctx->status || count_finite(ctx, x, n) == n) return;
    const char *name = bad_weight(ctx, m);
    if (name)
        tt_fail(ctx, TT_EFORMAT,
                "transformer: %s is not finite because tensor %s of %s holds "
                "NaN or Inf: the file is damaged, fetch it again", what, name,
                tt_weights_path(m->w));
    else
        tt_fail(ctx, TT_EFORMAT,
                "transformer: %s is not finite although all weights of %s "
                "are: the text states or latents given hold NaN or Inf, or "
                "the values overflow", what, tt_weights_path(m->w));
}

/* A token that is not finite makes its flow so, through the head's norm:
 * tokens, of which there are many, are fetched where that says so, and where
 * there is no flow. NaN of one rank come to all in a layer. If its weights are
 * to blame it says so, and the others hear it when they agree. */
static void dit_check_pass(tt_ctx *ctx, const tt_dit *m, const tt_real *tokens,
                           int64_t ntokens, const tt_host *flow, int64_t nflow)
{
    if (flow && count_finite(ctx, flow, nflow) == nflow) return;
    const tt_host *x = tt_get(ctx, tokens, ntokens);
    if (!tt_team_any(ctx, count_finite(ctx, x, ntokens) < ntokens) && !flow)
        return;
    const bool blamed = bad_weight(ctx, m) != NULL;
    if (tt_team_any(ctx, blamed) && !blamed) return;
    dit_check_finite(ctx, m, x, ntokens, "tokens after the last block");
    if (flow) dit_check_finite(ctx, m, flow, nflow, "flow");
}
