/* umt5.c: the umT5 text encoder.
 *
 * Source  wan/modules/t5.py: T5Encoder, T5SelfAttention, T5RelativeEmbedding
 * SPDX-License-Identifier: Apache-2.0
 *
 *   x = token_embedding[ids]
 *   per block:  x += attention(rms_norm(x)),  x += ffn(rms_norm(x))
 *   context = rms_norm(x)
 * Attention has no 1/sqrt(D) scale and a bias per head and relative position;
 * each block has its own table. Masked keys have their bias *replaced* by the
 * most negative finite number, so a fully masked sequence attends uniformly
 * instead of giving NaN.
 * Letters: n = B*L rows, C = dim, A = dim_attn = H*D, F = dim_ffn. */
#include "text/spm.h"
#include "text/umt5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/weights.h"
#include "core/device.h"
#include "ops/ops.h"

#define EPS 1e-6            /* every norm of umT5                            */
#define MAX_DISTANCE 128    /* fixed in all published configurations         */

/* One call: B sequences, of which the first L positions are computed. */
typedef struct run {
    const tt_umt5 *enc;
    int64_t B, L;
    tt_real *x;             /* [B, L, C] the residual stream                 */
    tt_real *branch;        /* [B, L, C] what a branch adds to it            */
    uint8_t *key_mask;      /* [B, L]                                        */
} run;

/* Upstream: e + trunc(ln(a/e) / ln(128/e) * (n-e)), in float. That is the
 * number of k with (128/e)^k <= (a/e)^(n-e), counted here without logarithms;
 * equal to upstream for |r| <= 700 with 32 and 16 buckets. */
int64_t tt_umt5_bucket(int64_t r, int64_t buckets)
{
    const int64_t n = buckets / 2, e = n / 2; /* per direction; exact ones   */
    const int64_t base = r > 0 ? n : 0, a = r > 0 ? r : -r;
    if (a < e) return base + a;
    if (a >= MAX_DISTANCE) return base + n - 1;
    double x = 1, step = (double)MAX_DISTANCE / (double)e, y = step;
    for (int64_t i = 0; i < n - e; i++) x *= (double)a / (double)e;
    int64_t k = 0;
    for (; k < n - e - 1 && y <= x; k++) y *= step;
    return base + e + k;
}

/* bias [H, 2L-1]: entry r+L-1 of head h = table[bucket(r)][h]. */
static void relative_bias(tt_ctx *ctx, tt_real *out, const tt_real *values,
                          const tt_umt5_config *c, int64_t L)
{
    const int64_t n = c->heads * (2 * L - 1);
    const tt_host *table = tt_get(ctx, values, c->buckets * c->heads);
    tt_host *bias = tt_map_write(ctx, out, n);
    if (!table || !bias) return;
    for (int64_t r = -(L - 1); r < L; r++) {
        const tt_host *row = table + tt_umt5_bucket(r, c->buckets) * c->heads;
        for (int64_t h = 0; h < c->heads; h++)
            bias[h * (2 * L - 1) + r + L - 1] = row[h];
    }
    tt_put(ctx, out, bias, n);
}

static void umt5_tap(tt_ctx *ctx, const run *r, tt_real *data, int64_t block,
                     const char *suffix)
{
    char name[32];
    if (!TT_TAPPED(ctx)) return;
    snprintf(name, sizeof name, "block.%lld%s", (long long)block, suffix);
    TT_TAP(ctx, name, data, r->B, r->L, r->enc->cfg.dim);
}

/* branch = in w^T, which taps see, and x += branch. Where no one looks, branch
 * is only room. */
static void umt5_finish(tt_ctx *ctx, const run *r, const tt_real *in,
                        const tt_tensor *w, int64_t block, const char *suffix)
{
    const int64_t C = r->enc->cfg.dim, n = r->B * r->L;
    if (!TT_TAPPED(ctx)) {
        tt_linear_add(ctx, &(tt_linear_args){r->branch, in, n, w, NULL},
                      &(tt_gate_add_args){.x = r->x, .y = r->branch, .n = n,
                                          .c = C});
        return;
    }
    tt_linear(ctx, r->branch, in, n, w, NULL);
    umt5_tap(ctx, r, r->branch, block, suffix);
    tt_add(ctx, r->x, r->branch, n * C);
}

/* x += Wo attention(rms_norm(x)). */
static void umt5_attention_branch(tt_ctx *ctx, const run *r, int64_t block)
{
    const umt5_block *p = &r->enc->block[block];
    const tt_umt5_config *c = &r->enc->cfg;
    const int64_t n = r->B * r->L, A = c->dim_attn, D = A / c->heads;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *h = tt_values(ctx, n * c->dim);                 /* [n, C]      */
    tt_real *q = tt_values(ctx, n * A);                      /* [n, H, D]   */
    tt_real *k = tt_values(ctx, n * A);
    tt_real *v = tt_values(ctx, n * A);
    tt_real *o = tt_values(ctx, n * A);
    tt_real *bias = tt_values(ctx, c->heads * (2 * r->L - 1));
    tt_rms_norm(ctx, h, r->x, n, c->dim, p->norm1, EPS);
    tt_linear(ctx, q, h, n, &p->q, NULL);
    tt_linear(ctx, k, h, n, &p->k, NULL);
    tt_linear(ctx, v, h, n, &p->v, NULL);
    relative_bias(ctx, bias, p->bias, c, r->L);
    for (int64_t b = 0; b < r->B && !ctx->status; b++) {
        const int64_t at = b * r->L * A;
        const tt_attention_args args = {
            .o = o + at, .q = q + at, .k = k + at, .v = v + at,
            .T = r->L, .N = r->L, .H = c->heads, .D = D,
            .q_stride = A, .kv_stride = A, .scale = 1, .rel_bias = bias,
            .key_mask = r->key_mask + b * r->L};
        tt_attention(ctx, &args);
    }
    umt5_finish(ctx, r, o, &p->o, block, ".attn");
    tt_arena_reset(&ctx->scratch, mark);
}

/* x += fc2(fc1(h) * gelu(gate(h))), h = rms_norm(x). */
static void umt5_ffn_branch(tt_ctx *ctx, const run *r, int64_t block)
{
    const umt5_block *p = &r->enc->block[block];
    const tt_umt5_config *c = &r->enc->cfg;
    const int64_t n = r->B * r->L, F = c->dim_ffn;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *h = tt_values(ctx, n * c->dim);                 /* [n, C]      */
    tt_real *g = tt_values(ctx, n * F);                      /* [n, F]      */
    tt_real *u = tt_values(ctx, n * F);
    tt_rms_norm(ctx, h, r->x, n, c->dim, p->norm2, EPS);
    tt_linear_gelu(ctx, g, h, n, &p->gate, NULL);
    tt_linear(ctx, u, h, n, &p->fc1, NULL);
    tt_mul(ctx, u, g, n * F);
    umt5_finish(ctx, r, u, &p->fc2, block, ".ffn");
    tt_arena_reset(&ctx->scratch, mark);
}

/* A block is used once per prompt: 0.4 GB that need not stay resident. */
static void umt5_release_block(const tt_ctx *ctx, const tt_umt5 *enc,
                               const umt5_block *p)
{
    const tt_tensor *all[] = {&p->gate, &p->fc1, &p->fc2, &p->q, &p->k, &p->v,
                              &p->o};
    weights_release_all(ctx, enc->weights, all, sizeof all / sizeof *all);
}

void tt_umt5_on_progress(tt_umt5 *enc, tt_umt5_progress_fn fn, void *user)
{
    if (!enc) return;
    enc->progress = fn;
    enc->progress_user = user;
}

static void tell(const tt_umt5 *enc, int64_t done)
{
    if (enc->progress) enc->progress(enc->progress_user, done, enc->cfg.layers);
}

static void forward(tt_ctx *ctx, const run *r)
{
    const tt_umt5 *enc = r->enc;
    const int64_t C = enc->cfg.dim, n = r->B * r->L;
    const bool large = tt_weights_large(enc->weights);
    for (int64_t i = 0; i < enc->cfg.layers; i++) {
        if (tt_check_interrupt(ctx)) return;
        tell(enc, i);
        umt5_attention_branch(ctx, r, i);
        umt5_ffn_branch(ctx, r, i);
        umt5_tap(ctx, r, r->x, i, "");
        if (large) umt5_release_block(ctx, enc, &enc->block[i]);
    }
    tell(enc, enc->cfg.layers);
    tt_rms_norm(ctx, r->x, r->x, n, C, enc->norm, EPS);
    TT_TAP(ctx, "context", r->x, r->B, r->L, C);
}

/* ---- around the forward pass -------------------------------------------- */

static void check_ids(tt_ctx *ctx, const tt_umt5 *enc, const int64_t *ids,
                      int64_t B, int64_t L)
{
    if (B < 1 || L < 1) {
        tt_fail(ctx, TT_EINVAL, "the text encoder needs at least one token, "
                "not ids of shape [%lld, %lld]", (long long)B, (long long)L);
        return;
    }
    for (int64_t i = 0; i < B * L && !ctx->status; i++)
        if (ids[i] < 0 || ids[i] >= enc->cfg.vocab)
            tt_fail(ctx, TT_ESHAPE,
                    "token id %lld at position %lld is outside the encoder's "
                    "vocabulary of %lld; tokenizer and encoder do not belong "
                    "together", (long long)ids[i], (long long)(i % L),
                    (long long)enc->cfg.vocab);
}

/* Positions up to the last unmasked one of any sequence, at least 1. */
static int64_t used_length(const int64_t *mask, int64_t B, int64_t L)
{
    int64_t used = 1;
    for (int64_t i = 0; i < B * L; i++)
        if (mask[i] != 0 && i % L >= used) used = i % L + 1;
    return used;
}

/* A word is never zero: tt_weights_check looks at few rows. */
static void check_row(tt_ctx *ctx, const run *r, const tt_host *row, int64_t id)
{
    for (int64_t i = 0; i < r->enc->cfg.dim; i++)
        if (row[i] != 0) return;
    if (r->enc->weights->shapes_alone || ctx->status) return;
    tt_fail(ctx, TT_EFORMAT, "%s: the embedding of token %lld is zero, which "
            "no training leaves: a download that did not end, or damage; fetch "
            "the file again", tt_weights_path(r->enc->weights), (long long)id);
}

/* x and key_mask of the computed positions. */
static void umt5_look_up(tt_ctx *ctx, const run *r, const int64_t *ids,
                         const int64_t *mask, int64_t L)
{
    const tt_tensor *e = &r->enc->embedding;
    const int64_t C = r->enc->cfg.dim, n = r->B * r->L * C;
    tt_host *x = tt_map_write(ctx, r->x, n);
    if (!x) return;
    for (int64_t b = 0; b < r->B; b++) {
        for (int64_t t = 0; t < r->L; t++) {
            tt_host *row = x + (b * r->L + t) * C;
            tt_widen_at(row, e, ids[b * L + t] * C, C);
            r->key_mask[b * r->L + t] = mask[b * L + t] != 0;
            if (mask[b * L + t]) check_row(ctx, r, row, ids[b * L + t]);
        }
    }
    tt_put(ctx, r->x, x, n);
}

static void umt5_check_finite(tt_ctx *ctx, const run *r, const tt_host *x)
{
    const int64_t C = r->enc->cfg.dim, n = r->B * r->L * C;
    for (int64_t i = 0; i < n && !ctx->status; i++)
        if (!isfinite(x[i]))
            tt_fail(ctx, TT_EFORMAT,
                    "the text encoder gives %s for token %lld, channel %lld: "
                    "the weights in %s are damaged",
                    isnan(x[i]) ? "NaN" : "an infinite value",
                    (long long)(i / C % r->L), (long long)(i % C),
                    tt_weights_path(r->enc->weights));
}

/* out [B, L, C]: the first `rows[b]` positions of x, then zeros. */
static void deliver(tt_host *out, const run *r, const tt_host *x,
                    const int64_t *rows, int64_t L)
{
    const int64_t C = r->enc->cfg.dim;
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t i = 0; i < L * C; i++)
            out[b * L * C + i] = i < rows[b] * C ? x[b * r->L * C + i] : 0;
}

static void deliver_all(tt_ctx *ctx, tt_host *context, tt_host *prompt_embeds,
                        const run *r, const tt_host *x, const int64_t *mask,
                        int64_t L)
{
    int64_t *rows = tt_alloc(ctx, &ctx->scratch, r->B, sizeof *rows, "lengths");
    if (ctx->status) return;
    for (int64_t b = 0; b < r->B; b++) rows[b] = L;
    if (context) deliver(context, r, x, rows, L);
    for (int64_t b = 0; b < r->B; b++) {
        rows[b] = 0; /* seq_len */
        for (int64_t t = 0; t < L; t++) rows[b] += mask[b * L + t] > 0;
    }
    if (!prompt_embeds) return;
    deliver(prompt_embeds, r, x, rows, L);
    TT_TAP_HOST(ctx, "prompt_embeds", prompt_embeds, r->B, L, r->enc->cfg.dim);
}

tt_status tt_umt5_encode(tt_ctx *ctx, tt_host *context, tt_host *prompt_embeds,
                         tt_umt5 *enc, const tt_umt5_input *in)
{
    TT_TRY(ctx->status);
    const int64_t B = in->B, L = in->L;
    check_ids(ctx, enc, in->ids, B, L);
    if (ctx->status) return ctx->status;
    size_t scope = tt_scope(ctx, "text");
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    run r = {enc, B, L, NULL, NULL, NULL};
    if (!in->all_rows && !context) r.L = used_length(in->mask, B, L);
    r.x = tt_values(ctx, B * r.L * enc->cfg.dim);
    r.branch = tt_values(ctx, B * r.L * enc->cfg.dim);
    r.key_mask = tt_alloc(ctx, &ctx->scratch, B * r.L, 1, "text mask");
    umt5_look_up(ctx, &r, in->ids, in->mask, L);
    forward(ctx, &r);
    const tt_host *x = tt_get(ctx, r.x, B * r.L * enc->cfg.dim);
    umt5_check_finite(ctx, &r, x);
    deliver_all(ctx, context, prompt_embeds, &r, x, in->mask, L);
    tt_arena_reset(&ctx->scratch, mark);
    tt_scope_end(ctx, scope);
    return ctx->status;
}

static int64_t rounded_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* The embedding has a row for each piece, perhaps for 300 sentinel tokens as
 * well, and may be filled up to a multiple of 128: umT5's 256000 are 256384. */
tt_status tt_umt5_check_tokenizer(tt_ctx *ctx, const tt_umt5 *enc,
                                  const tt_tokenizer *tok)
{
    enum { EXTRA = 300, WHOLE = 128 };
    if (ctx->status || !enc || !tok) return ctx->status;
    const int64_t rows = enc->cfg.vocab, n = tok->n;
    const char *own = tt_weights_path(enc->weights);
    if (rows != n && rows != n + EXTRA && rows != rounded_up(n, WHOLE)
        && rows != rounded_up(n + EXTRA, WHOLE))
        return tt_fail(ctx, TT_ESHAPE, "%.400s has %lld pieces, and the text "
                       "encoder %.400s %lld rows: the tokenizer is another "
                       "model's (umT5's has 256000 for 256384 rows); take the "
                       "spiece.model that came with the encoder", tok->path,
                       (long long)tok->n, own, (long long)rows);
    if (tok->pad == 0 && tok->eos == 1 && (tok->unk == 2 || tok->unk == 3))
        return TT_OK;
    return tt_fail(ctx, TT_ESHAPE, "%.400s has padding, </s> and <unk> as %d, "
                   "%d and %d, expected 0, 1 and 2: the tokenizer is another "
                   "model's; take the spiece.model that came with the text "
                   "encoder %.400s", tok->path, (int)tok->pad, (int)tok->eos,
                   (int)tok->unk, own);
}

tt_status tt_prompt_embed(tt_ctx *ctx, tt_host *text, tt_umt5 *enc,
                          const tt_tokenizer *tok, const char *prompt,
                          size_t n, int64_t length,
                          const tt_prompt_options *opt)
{
    const tt_prompt_options plain = {0};
    const int64_t capacity = length < 1 ? 1 : length;
    tt_token_row row = {.length = length};
    if (!opt) opt = &plain;
    TT_TRY(tt_umt5_check_tokenizer(ctx, enc, tok));
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    row.ids = tt_alloc(ctx, &ctx->scratch, capacity, sizeof *row.ids, "ids");
    row.mask = tt_alloc(ctx, &ctx->scratch, capacity, sizeof *row.mask, "mask");
    if (ctx->status) return ctx->status;
    tt_tokenizer_encode_prompt(ctx, &row, tok, prompt, n, !opt->no_clean);
    if (!ctx->status)
        tt_umt5_encode(ctx, NULL, text, enc, &(tt_umt5_input){
            .ids = row.ids, .mask = row.mask, .B = 1, .L = length,
            .all_rows = opt->all_rows});
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}
