/* bind.c: names and shapes of the checkpoint's tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The table of src/dit/README.md as code: 27 tensors per block and 15 global
 * ones, each demanded once with exactly this shape.
 * Next    dit.c */
#include <stdio.h>

#include "dit/load.h"

/* "<prefix><name>" into a buffer of the caller. Names are far shorter
 * than it; gcc -O3 wants to see that a prefix cannot fill it. */
static const char *join(char buf[128], const char *prefix, const char *name)
{
    snprintf(buf, 128, "%.90s%s", prefix, name);
    return buf;
}

/* <prefix>.weight of this shape as a matrix [dim[0], rest], <prefix>.bias. */
static dit_linear bind_linear(tt_bind *b, const char *prefix, int rank,
                              const int64_t *dim)
{
    char name[128];
    dit_linear l;
    l.w = tt_bind_tensor(b, join(name, prefix, ".weight"), rank, dim);
    l.b = tt_bind_real(b, join(name, prefix, ".bias"), 1, dim);
    if (rank > 2 && l.w.data) {
        const int64_t flat[2] = {dim[0], tt_tensor_count(&l.w) / dim[0]};
        l.w = tt_tensor_reshape(&l.w, 2, flat);
    }
    l.w = tt_place(b->ctx, b->arena, &l.w);
    return l;
}

static dit_linear bind_matrix(tt_bind *b, const char *prefix, const char *name,
                              int64_t rows, int64_t columns)
{
    char full[128];
    return bind_linear(b, join(full, prefix, name), 2,
                       (int64_t[]){rows, columns});
}

static tt_real *bind_vector(tt_bind *b, const char *prefix, const char *name,
                            int64_t n)
{
    char full[128];
    return tt_bind_real(b, join(full, prefix, name), 1, &n);
}

static dit_attention bind_attention(tt_bind *b, const char *prefix,
                                    int64_t dim)
{
    dit_attention a;
    a.q = bind_matrix(b, prefix, "q", dim, dim);
    a.k = bind_matrix(b, prefix, "k", dim, dim);
    a.v = bind_matrix(b, prefix, "v", dim, dim);
    a.o = bind_matrix(b, prefix, "o", dim, dim);
    a.norm_q = bind_vector(b, prefix, "norm_q.weight", dim);
    a.norm_k = bind_vector(b, prefix, "norm_k.weight", dim);
    return a;
}

static dit_block bind_block(tt_bind *b, int64_t i, const tt_dit_config *c)
{
    char block[64], name[128];
    dit_block k;
    snprintf(block, sizeof block, "blocks.%lld.", (long long)i);
    k.modulation = tt_bind_real(b, join(name, block, "modulation"), 3,
                                (int64_t[]){1, 6, c->dim});
    k.self = bind_attention(b, join(name, block, "self_attn."), c->dim);
    k.norm3_w = bind_vector(b, block, "norm3.weight", c->dim);
    k.norm3_b = bind_vector(b, block, "norm3.bias", c->dim);
    k.cross = bind_attention(b, join(name, block, "cross_attn."), c->dim);
    k.ffn0 = bind_matrix(b, block, "ffn.0", c->ffn_dim, c->dim);
    k.ffn2 = bind_matrix(b, block, "ffn.2", c->dim, c->ffn_dim);
    return k;
}

tt_status dit_bind(tt_ctx *ctx, tt_dit *m)
{
    const tt_dit_config *c = &m->cfg;
    tt_bind b;
    m->block = tt_alloc0(ctx, &m->arena, c->layers, sizeof *m->block,
                         "transformer blocks");
    TT_TRY(ctx->status);
    tt_bind_begin(&b, ctx, m->w, &m->arena, "transformer");

    m->patch = bind_linear(&b, "patch_embedding", 5,
                           (int64_t[]){c->dim, c->in_dim, 1, 2, 2});
    m->text0 = bind_matrix(&b, "", "text_embedding.0", c->dim, c->text_dim);
    m->text2 = bind_matrix(&b, "", "text_embedding.2", c->dim, c->dim);
    m->time0 = bind_matrix(&b, "", "time_embedding.0", c->dim, c->freq_dim);
    m->time2 = bind_matrix(&b, "", "time_embedding.2", c->dim, c->dim);
    m->time_proj = bind_matrix(&b, "", "time_projection.1", 6 * c->dim,
                               c->dim);
    for (int64_t i = 0; i < c->layers; i++) m->block[i] = bind_block(&b, i, c);
    m->head_modulation = tt_bind_real(&b, "head.modulation", 3,
                                      (int64_t[]){1, 2, c->dim});
    m->head = bind_matrix(&b, "", "head.head", 4 * c->in_dim, c->dim);

    return tt_bind_end(&b, NULL);
}
