/* transformer.c: the causal diffusion transformer Wan2.1 of Self-Forcing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    wan/modules/causal_model.py (Self-Forcing), patched_attention.py (TetherCache), model.py
 *         (Wan2.1).
 *
 * The network takes a chunk of noisy frames at timestep t and says where they flow: flow = noise -
 * clean. A frame of [channels, h, w] becomes L = h/2 * w/2 tokens. Self-attention sees the chunk
 * and the past, which is in the cache; cross-attention sees the prompt.
 *
 * Paper: bfloat16 on a GPU. We: float, statistics and rotations in double. */
#include "golden.h"

static void load_attention(weights *f, attention_weights *y, int d, int i, const char *name) {
    load_dense(&y->q, f, d, d, "blocks.%d.%s.q", i, name);
    load_dense(&y->k, f, d, d, "blocks.%d.%s.k", i, name);
    load_dense(&y->v, f, d, d, "blocks.%d.%s.v", i, name);
    load_dense(&y->o, f, d, d, "blocks.%d.%s.o", i, name);
    y->norm_q = load(f, SHAPE(d), "blocks.%d.%s.norm_q.weight", i, name);
    y->norm_k = load(f, SHAPE(d), "blocks.%d.%s.norm_k.weight", i, name);
}

static void load_block(weights *f, block_weights *y, int dim, int ffn, int i) {
    y->modulation = load(f, SHAPE(1, 6, dim), "blocks.%d.modulation", i);
    load_attention(f, &y->self, dim, i, "self_attn");
    load_attention(f, &y->cross, dim, i, "cross_attn");
    y->norm3_w = load(f, SHAPE(dim), "blocks.%d.norm3.weight", i);
    y->norm3_b = load(f, SHAPE(dim), "blocks.%d.norm3.bias", i);
    load_dense(&y->ffn0, f, ffn, dim, "blocks.%d.ffn.0", i);
    load_dense(&y->ffn2, f, dim, ffn, "blocks.%d.ffn.2", i);
}

/* Sizes are those of the tensors; config.json has what they do not show. */
static void read_sizes(transformer *m, const weights *f, const char *config) {
    m->dim = weights_dim(f, 0, "patch_embedding.weight");
    m->channels = weights_dim(f, 1, "patch_embedding.weight");
    m->ffn = weights_dim(f, 0, "blocks.0.ffn.0.weight");
    m->freq_dim = weights_dim(f, 1, "time_embedding.0.weight");
    m->text_dim = weights_dim(f, 1, "text_embedding.0.weight");
    while (weights_dim(f, 0, "blocks.%d.modulation", m->layers)) m->layers++;
    m->heads = (int)config_number(config, "num_heads", 0);
    m->text_len = (int)config_number(config, "text_len", 512);
    m->eps = config_number(config, "eps", 1e-6);
    m->height = (int)config_number(config, "height", 480);
    m->width = (int)config_number(config, "width", 832);
    if (m->heads < 1 || m->dim % m->heads || m->dim / m->heads % 2 || m->text_len < 1)
        fail("%s: no num_heads that divides the width %d evenly, or no text_len", config, m->dim);
}

transformer *transformer_open(const char *folder) {
    char path[1024], config[1024];
    transformer *m = memory(1, sizeof *m);
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(path, sizeof path, "%s/diffusion_pytorch_model.safetensors", folder);
    weights *f = weights_open(path);
    read_sizes(m, f, config);
    const int dim = m->dim, C = m->channels;
    m->patch = (dense){.w = load(f, SHAPE(dim, C, 1, 2, 2), "patch_embedding.weight"),
                       .b = load(f, SHAPE(dim), "patch_embedding.bias"), .out = dim, .in = 4 * C};
    load_dense(&m->text0, f, dim, m->text_dim, "text_embedding.0");
    load_dense(&m->text2, f, dim, dim, "text_embedding.2");
    load_dense(&m->time0, f, dim, m->freq_dim, "time_embedding.0");
    load_dense(&m->time2, f, dim, dim, "time_embedding.2");
    load_dense(&m->time_projection, f, 6 * dim, dim, "time_projection.1");
    load_dense(&m->head, f, 4 * C, dim, "head.head");
    m->head_modulation = load(f, SHAPE(1, 2, dim), "head.modulation");
    m->block = memory((size_t)m->layers, sizeof *m->block);
    for (int i = 0; i < m->layers; i++) load_block(f, &m->block[i], dim, m->ffn, i);
    weights_close(f);
    return m;
}

/* A 2x2 patch of all channels becomes a token. Tokens are ordered by frame, patch row, column. */
static void embed_patches(const transformer *m, float *token, const float *x, const pass *p) {
    const int L = frame_tokens(p), h = p->h, w = p->w;
    float *patch = floats((size_t)m->patch.in);
    for (int r = 0; r < p->frames * L; r++) {
        const int y = 2 * (r % L / (w / 2)), at = 2 * (r % (w / 2));
        for (int i = 0; i < m->patch.in; i++) {
            const size_t c = (size_t)r / L * m->channels + i / 4;
            patch[i] = x[(c * h + y + i / 2 % 2) * w + at + i % 2];
        }
        linear(token + (size_t)r * m->dim, patch, 1, &m->patch);
    }
    free(patch);
}

/* e [dim] of a timestep for the head, e0 [6, dim] for the blocks. All cosines of the sinusoid come
 * before all sines. */
static void embed_time(const transformer *m, float *e, float *e0, double t) {
    const int half = m->freq_dim / 2;
    float *sinusoid = floats((size_t)m->freq_dim), *a = floats((size_t)m->dim);
    for (int j = 0; j < half; j++) {
        double s, c;
        golden_sincos(t * golden_pow(10000, -(j / (double)half)), &s, &c);
        sinusoid[j] = (float)c, sinusoid[half + j] = (float)s;
    }
    linear(a, sinusoid, 1, &m->time0);
    silu(a, (size_t)m->dim);
    linear(e, a, 1, &m->time2);
    memcpy(a, e, (size_t)m->dim * sizeof *a);
    silu(a, (size_t)m->dim);
    linear(e0, a, 1, &m->time_projection);
    free(sinusoid), free(a);
}

/* The text states end in rows of zeros, and nothing masks them: they become a constant vector that
 * every query attends to. */
prompt *prompt_open(const transformer *m, const float *text) {
    const int rows = m->text_len;
    const size_t n = (size_t)rows * m->dim;
    float *a = floats(n), *context = floats(n);
    prompt *p = memory(1, sizeof *p);
    linear(a, text, rows, &m->text0);
    gelu(a, n);
    linear(context, a, rows, &m->text2);
    p->k = memory((size_t)m->layers, sizeof *p->k), p->v = memory((size_t)m->layers, sizeof *p->v);
    for (int i = 0; i < m->layers; i++) {
        const attention_weights *y = &m->block[i].cross;
        linear(p->k[i] = floats(n), context, rows, &y->k);
        rms_norm(p->k[i], p->k[i], rows, m->dim, m->eps, y->norm_k);
        linear(p->v[i] = floats(n), context, rows, &y->v);
    }
    free(a), free(context);
    return p;
}

/* y = o(attention over the cache), where the chunk's k and v are written. */
static void self_attention(const transformer *m, float *y, const float *x,
                           const attention_weights *w, const pass *p, cache *c) {
    const int rows = frame_tokens(p) * p->frames;
    const size_t n = (size_t)rows * m->dim;
    float *q = floats(n), *k = floats(n), *v = floats(n), *o = floats(n);
    linear(q, x, rows, &w->q), linear(k, x, rows, &w->k), linear(v, x, rows, &w->v);
    rms_norm(q, q, rows, m->dim, m->eps, w->norm_q);     /* of all heads at once */
    rms_norm(k, k, rows, m->dim, m->eps, w->norm_k);
    c->new_q = q, c->new_k = k, c->new_v = v;
    cache_attention(c, o, p);
    linear(y, o, rows, &w->o);
    free(q), free(k), free(v), free(o);
}

static void cross_attention(const transformer *m, float *y, const float *x, int rows,
                            const attention_weights *w, const float *k, const float *v) {
    const size_t n = (size_t)rows * m->dim;
    const int D = m->dim / m->heads;
    float *q = floats(n), *o = floats(n);
    linear(q, x, rows, &w->q);
    rms_norm(q, q, rows, m->dim, m->eps, w->norm_q);
    attention(&(attention_args){.o = o, .q = q, .k = k, .v = v, .queries = rows,
                                .keys = m->text_len, .heads = m->heads, .D = D,
                                .scale = attention_scale(D)});
    linear(y, o, rows, &w->o);
    free(q), free(o);
}

/* x = x + gate1 self(norm(x) (1 + scale1) + shift1)
 * x = x + cross(norm3(x))
 * x = x + gate2 ffn(norm(x) (1 + scale2) + shift2)
 * e0 holds shift1, scale1, gate1, shift2, scale2, gate2 of every frame. */
static void block_run(const transformer *m, float *x, const float *e0, const pass *p, int layer,
                      const prompt *text, cache *c) {
    const block_weights *y = &m->block[layer];
    const int dim = m->dim, L = frame_tokens(p), rows = p->frames * L;
    const size_t n = (size_t)rows * dim, inside = (size_t)rows * m->ffn;
    float *a = floats(n), *b = floats(n), *inner = floats(inside);
    float *mod = floats((size_t)p->frames * 6 * dim);
    by_frame part[6];
    for (int i = 0; i < p->frames * 6 * dim; i++) mod[i] = e0[i] + y->modulation[i % (6 * dim)];
    for (int i = 0; i < 6; i++) part[i] = (by_frame){mod + i * dim, L, 6 * dim};
    layer_norm(a, x, rows, dim, m->eps, NULL, NULL);         /* self-attention */
    modulate(a, rows, dim, part[1], part[0]);
    self_attention(m, b, a, &y->self, p, c);
    gate_add(x, b, rows, dim, part[2]);
    layer_norm(a, x, rows, dim, m->eps, y->norm3_w, y->norm3_b);     /* cross-attention */
    cross_attention(m, b, a, rows, &y->cross, text->k[layer], text->v[layer]);
    add(x, b, n);
    layer_norm(a, x, rows, dim, m->eps, NULL, NULL);         /* FFN */
    modulate(a, rows, dim, part[4], part[3]);
    linear(inner, a, rows, &y->ffn0);
    gelu(inner, inside);
    linear(b, inner, rows, &y->ffn2);
    gate_add(x, b, rows, dim, part[5]);
    free(a), free(b), free(inner), free(mod);
}

/* A token becomes its patch again: now the channel is fastest. x is used up. */
static void head_run(const transformer *m, float *flow, float *x, const float *e, const pass *p) {
    const int dim = m->dim, C = m->channels, L = frame_tokens(p), rows = p->frames * L;
    float *mod = floats((size_t)p->frames * 2 * dim), *y = floats((size_t)rows * 4 * C);
    for (int i = 0; i < p->frames * 2 * dim; i++)
        mod[i] = e[i / (2 * dim) * dim + i % dim] + m->head_modulation[i % (2 * dim)];
    layer_norm(x, x, rows, dim, m->eps, NULL, NULL);
    modulate(x, rows, dim, (by_frame){mod + dim, L, 2 * dim}, (by_frame){mod, L, 2 * dim});
    linear(y, x, rows, &m->head);
    for (int i = 0; i < rows * 4 * C; i++) {
        const int r = i / (4 * C), c = i % C, dy = i / C / 2 % 2, dx = i / C % 2;
        const int row = 2 * (r % L / (p->w / 2)) + dy, column = 2 * (r % (p->w / 2)) + dx;
        flow[((size_t)(r / L * C + c) * p->h + row) * p->w + column] = y[i];
    }
    free(mod), free(y);
}

void transformer_run(const transformer *m, float *flow, const float *x, const double *t,
                     const pass *p, const prompt *text, cache *caches) {
    const size_t dim = (size_t)m->dim, L = (size_t)frame_tokens(p);
    float *token = floats(p->frames * L * dim), *e = floats(p->frames * 7 * dim);
    float *e0 = e + p->frames * dim;
    embed_patches(m, token, x, p);
    for (int f = 0; f < p->frames; f++) embed_time(m, e + f * dim, e0 + f * 6 * dim, t[f]);
    for (int i = 0; i < m->layers; i++) block_run(m, token, e0, p, i, text, &caches[i]);
    if (flow) head_run(m, flow, token, e, p);
    free(token), free(e);
}
