/* random.c: a transformer that no file holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values keep activations finite through any depth: matrices have deviation
 * 1/sqrt(inputs), gains are 1, biases and modulations small. They follow from
 * their place alone, so results have the same bits everywhere. */
#include <math.h>

#include "core/counter.h"
#include "core/parallel.h"
#include "dit/model.h"

#define BIAS 0.02

typedef struct maker {
    tt_ctx *ctx;
    tt_dit *m;
    uint64_t key;              /* of the values made next                     */
} maker;

static uint64_t next_key(maker *k)
{
    k->key += 0xd1342543de82ef95u;
    return k->key;
}

/* n values around `base` with this deviation. */
static tt_real *vector(maker *k, int64_t n, double base, double deviation)
{
    tt_ctx *ctx = k->ctx;
    const uint64_t key = next_key(k);
    const double spread = sqrt(3) * deviation;
    tt_real *x = tt_values_in(ctx, &k->m->arena, n, "a parameter");
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_host *v = x ? tt_map_write(ctx, x, n) : NULL;
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (tt_host)(base + spread * (double)counter_uniform(key, i));
    if (v) tt_put(ctx, x, v, n);
    tt_arena_reset(&ctx->scratch, mark);
    return x;
}

/* Stored as float32, as published; where values are in memory of a device it
 * goes there. */
static tt_tensor matrix(maker *k, int64_t out, int64_t in)
{
    tt_ctx *ctx = k->ctx;
    const uint64_t key = next_key(k);
    const float spread = (float)sqrt(3.0 / (double)in);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *w = tt_alloc(ctx, ctx->device ? &ctx->scratch : &k->m->arena,
                        out * in, sizeof *w, "weights");
    if (w) {
        TT_PARALLEL_FOR_WORK(ctx, out * in)
        for (int64_t i = 0; i < out * in; i++)
            w[i] = spread * counter_uniform(key, i);
    }
    const tt_tensor made = tt_tensor_make(w, TT_F32, 2,
                                          (const int64_t[]){out, in});
    const tt_tensor placed = tt_place(ctx, &k->m->arena, &made);
    if (ctx->device) tt_arena_reset(&ctx->scratch, mark);
    return placed;
}

static dit_linear random_linear(maker *k, int64_t out, int64_t in)
{
    dit_linear l;
    l.w = matrix(k, out, in);
    l.b = vector(k, out, 0, BIAS);
    return l;
}

static dit_attention attention(maker *k, int64_t dim)
{
    dit_attention a;
    a.q = random_linear(k, dim, dim);
    a.k = random_linear(k, dim, dim);
    a.v = random_linear(k, dim, dim);
    a.o = random_linear(k, dim, dim);
    a.norm_q = vector(k, dim, 1, 0);
    a.norm_k = vector(k, dim, 1, 0);
    return a;
}

static dit_block block(maker *k, const tt_dit_config *c)
{
    dit_block b;
    b.modulation = vector(k, 6 * c->dim, 0, 1 / sqrt((double)c->dim));
    b.self = attention(k, c->dim);
    b.norm3_w = vector(k, c->dim, 1, 0);
    b.norm3_b = vector(k, c->dim, 0, BIAS);
    b.cross = attention(k, c->dim);
    b.ffn0 = random_linear(k, c->ffn_dim, c->dim);
    b.ffn2 = random_linear(k, c->dim, c->ffn_dim);
    return b;
}

static void make_all(maker *k, int64_t distinct)
{
    tt_dit *m = k->m;
    const tt_dit_config *c = &m->cfg;
    m->block = tt_alloc0(k->ctx, &m->arena, c->layers, sizeof *m->block,
                         "transformer blocks");
    if (!m->block) return;
    m->patch = random_linear(k, c->dim, 4 * c->in_dim);
    m->text0 = random_linear(k, c->dim, c->text_dim);
    m->text2 = random_linear(k, c->dim, c->dim);
    m->time0 = random_linear(k, c->dim, c->freq_dim);
    m->time2 = random_linear(k, c->dim, c->dim);
    m->time_proj = random_linear(k, 6 * c->dim, c->dim);
    for (int64_t i = 0; i < c->layers && !k->ctx->status; i++)
        m->block[i] = i < distinct ? block(k, c) : m->block[i % distinct];
    m->head_modulation = vector(k, 2 * c->dim, 0, 1 / sqrt((double)c->dim));
    m->head = random_linear(k, 4 * c->in_dim, c->dim);
}

tt_status tt_dit_random(tt_ctx *ctx, tt_dit **out, const tt_dit_config *c,
                        int64_t distinct)
{
    tt_arena arena = {0};
    *out = NULL;
    TT_TRY(ctx->status);
    if (!c || c->layers < 1 || c->dim < 2 || c->heads < 1 || c->ffn_dim < 1
        || c->dim % c->heads || c->dim / c->heads % 2 || c->freq_dim < 2
        || c->freq_dim % 2 || c->in_dim < 1 || c->text_dim < 1 || distinct < 1)
        return tt_fail(ctx, TT_EINVAL, "no transformer has these sizes");
    tt_dit *m = tt_alloc0(ctx, &arena, 1, sizeof *m, "transformer");
    if (!m) return ctx->status;
    m->cfg = *c;
    m->arena = arena;
    make_all(&(maker){.ctx = ctx, .m = m}, distinct);
    if (ctx->status) tt_dit_close(m);
    else *out = m;
    return ctx->status;
}
