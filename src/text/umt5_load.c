/* umt5_load.c: bind the umT5 encoder to a checkpoint.
 *
 * Source  wan/modules/t5.py, T5Encoder (names and shapes)
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every size is read from the shapes. Matrices stay in the mapping in their
 * stored type; of the embedding only the rows of the prompt are ever touched.
 * Next    umt5.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/umt5.h"
#include "core/device.h"

/* The shape of a matrix (or vector, then cols = 1) that fixes sizes. */
static void sizes_of(tt_ctx *ctx, int64_t *rows, int64_t *cols,
                     const tt_weights *w, const char *name, int rank)
{
    const tt_tensor *t = tt_weights_find(w, name);
    *rows = *cols = 1;
    if (!t) {
        tt_fail(ctx, TT_ESHAPE,
                "%s has no tensor '%s': not a umT5 encoder; expected "
                "models_t5_umt5-xxl-enc-bf16.pth or a Hugging Face "
                "UMT5EncoderModel", tt_weights_path(w), name);
    } else if (t->rank != rank || t->dim[0] < 1 || t->dim[rank - 1] < 1) {
        char s[96];
        tt_fail(ctx, TT_ESHAPE, "%s: '%s' has shape %s, expected %d non-empty "
                "axes", tt_weights_path(w), name,
                tt_shape_string(s, sizeof s, t->rank, t->dim), rank);
    } else {
        *rows = t->dim[0];
        if (rank == 2) *cols = t->dim[1];
    }
}

/* 1 + the highest i of any "blocks.i.". */
static int64_t count_layers(const tt_weights *w)
{
    int64_t layers = 0;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const char *name = tt_weights_name(w, i);
        if (strncmp(name, "blocks.", 7) != 0) continue;
        char *end;
        long long b = strtoll(name + 7, &end, 10);
        if (*end == '.' && b >= layers && b < tt_weights_count(w))
            layers = b + 1;
    }
    return layers;
}

static void infer_config(tt_ctx *ctx, tt_umt5_config *c, const tt_weights *w)
{
    int64_t ignore;
    sizes_of(ctx, &c->dim, &ignore, w, "norm.weight", 1);
    sizes_of(ctx, &c->vocab, &ignore, w, "token_embedding.weight", 2);
    sizes_of(ctx, &c->buckets, &c->heads, w,
             "blocks.0.pos_embedding.embedding.weight", 2);
    sizes_of(ctx, &c->dim_attn, &ignore, w, "blocks.0.attn.q.weight", 2);
    sizes_of(ctx, &c->dim_ffn, &ignore, w, "blocks.0.ffn.fc1.weight", 2);
    c->layers = count_layers(w);
    if (ctx->status) return;
    if (c->dim_attn % c->heads != 0)
        tt_fail(ctx, TT_ESHAPE,
                "%s: attention width %lld is not a multiple of the %lld heads "
                "of the position table", tt_weights_path(w),
                (long long)c->dim_attn, (long long)c->heads);
    else if (c->buckets % 4 != 0 || c->buckets >= 512)
        tt_fail(ctx, TT_ESHAPE,
                "%s: %lld position buckets; expected a multiple of 4 below 512 "
                "(32 in umT5)", tt_weights_path(w), (long long)c->buckets);
}

static tt_tensor umt5_load_bind_matrix(tt_bind *b, int64_t i, const char *name,
                                       int64_t rows, int64_t cols)
{
    char full[96];
    const int64_t dim[2] = {rows, cols};
    snprintf(full, sizeof full, "blocks.%lld.%s.weight", (long long)i, name);
    const tt_tensor t = tt_bind_tensor(b, full, 2, dim);
    return tt_place(b->ctx, b->arena, &t);
}

static tt_real *bind_small(tt_bind *b, int64_t i, const char *name, int rank,
                           int64_t rows, int64_t cols)
{
    char full[96];
    const int64_t dim[2] = {rows, cols};
    snprintf(full, sizeof full, "blocks.%lld.%s.weight", (long long)i, name);
    return tt_bind_real(b, full, rank, dim);
}

static void umt5_load_bind_block(tt_bind *b, umt5_block *p,
                                 const tt_umt5_config *c, int64_t i)
{
    p->norm1 = bind_small(b, i, "norm1", 1, c->dim, 1);
    p->q = umt5_load_bind_matrix(b, i, "attn.q", c->dim_attn, c->dim);
    p->k = umt5_load_bind_matrix(b, i, "attn.k", c->dim_attn, c->dim);
    p->v = umt5_load_bind_matrix(b, i, "attn.v", c->dim_attn, c->dim);
    p->o = umt5_load_bind_matrix(b, i, "attn.o", c->dim, c->dim_attn);
    p->bias = bind_small(b, i, "pos_embedding.embedding", 2, c->buckets,
                         c->heads);
    p->norm2 = bind_small(b, i, "norm2", 1, c->dim, 1);
    p->gate = umt5_load_bind_matrix(b, i, "ffn.gate.0", c->dim_ffn, c->dim);
    p->fc1 = umt5_load_bind_matrix(b, i, "ffn.fc1", c->dim_ffn, c->dim);
    p->fc2 = umt5_load_bind_matrix(b, i, "ffn.fc2", c->dim, c->dim_ffn);
}

static tt_status bind_all(tt_ctx *ctx, tt_umt5 *enc)
{
    /* The tokenizer's bytes and the FP8 marker of repackaged files. */
    static const char *const extra[] = {"spiece_model", "scaled_fp8", NULL};
    const tt_umt5_config *c = &enc->cfg;
    const int64_t vocab_dim[2] = {c->vocab, c->dim};
    tt_bind b;
    tt_bind_begin(&b, ctx, enc->weights, &enc->arena, "text encoder");
    enc->embedding = tt_bind_tensor(&b, "token_embedding.weight", 2,
                                    vocab_dim);
    for (int64_t i = 0; i < c->layers; i++)
        umt5_load_bind_block(&b, &enc->block[i], c, i);
    enc->norm = tt_bind_real(&b, "norm.weight", 1, &c->dim);
    return tt_bind_end(&b, extra);
}

tt_status tt_umt5_load(tt_ctx *ctx, tt_umt5 **out, tt_weights *weights)
{
    *out = NULL;
    tt_arena arena = {0};
    tt_umt5 *enc = tt_alloc0(ctx, &arena, 1, sizeof *enc, "text encoder");
    if (!enc) {
        tt_weights_close(weights);
        return ctx->status;
    }
    enc->arena = arena;
    enc->weights = weights;
    tt_weights_check(ctx, weights);
    infer_config(ctx, &enc->cfg, weights);
    enc->block = tt_alloc0(ctx, &enc->arena, enc->cfg.layers,
                           sizeof *enc->block, "text encoder blocks");
    if (ctx->status || bind_all(ctx, enc)) {
        tt_umt5_close(enc);
        return ctx->status;
    }
    *out = enc;
    return TT_OK;
}

tt_status tt_umt5_open(tt_ctx *ctx, tt_umt5 **out, const char *path)
{
    tt_weights *w;
    *out = NULL;
    TT_TRY(tt_weights_open(ctx, &w, path, TT_MODEL_T5, NULL));
    return tt_umt5_load(ctx, out, w);
}

void tt_umt5_close(tt_umt5 *enc)
{
    if (!enc) return;
    tt_weights_close(enc->weights);
    tt_arena arena = enc->arena; /* the struct lies inside it */
    tt_arena_free(&arena);
}

const tt_umt5_config *tt_umt5_config_of(const tt_umt5 *enc)
{
    static const tt_umt5_config none;
    return enc ? &enc->cfg : &none;
}
