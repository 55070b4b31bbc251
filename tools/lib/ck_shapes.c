/* ck_shapes.c: which tensors the three models consist of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values keep activations finite through any depth: matrices have deviation
 * 1/sqrt(inputs), gains are 1, biases and modulations are small. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

/* Append a tensor; extents end with 0. */
static ck_spec *add(ck_list *l, const char *prefix, const char *name, ...)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->spec = realloc(l->spec, (size_t)l->cap * sizeof *l->spec);
        if (!l->spec) abort();
    }
    ck_spec *s = &l->spec[l->n++];
    *s = (ck_spec){0};
    snprintf(s->name, sizeof s->name, "%s%s", prefix, name);
    va_list ap;
    va_start(ap, name);
    for (int64_t d; s->rank < 5 && (d = va_arg(ap, int64_t)) != 0;)
        s->dim[s->rank++] = d;
    va_end(ap);
    return s;
}
#define END ((int64_t)0)

/* Uniform values of this standard deviation. */
static void deviation(ck_spec *s, double sd)
{
    s->base = 0;
    s->spread = (float)(sqrt(3) * sd);
}

static void matrix(ck_spec *s)
{
    deviation(s, 1 / sqrt((double)(ck_count(s) / s->dim[0])));
}

static void gain(ck_spec *s)
{
    s->base = 1;
    s->spread = 0;
}

/* <prefix><name>.weight [out, in] and .bias [out] */
static void linear(ck_list *l, const char *prefix, const char *name,
                   int64_t out, int64_t in)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    matrix(add(l, full, ".weight", out, in, END));
    deviation(add(l, full, ".bias", out, END), 0.02);
}

/* ---- transformer --------------------------------------------------------- */

static void attention(ck_list *l, const char *prefix, int64_t dim)
{
    static const char *const name[] = {"q", "k", "v", "o"};
    for (int i = 0; i < 4; i++) linear(l, prefix, name[i], dim, dim);
    gain(add(l, prefix, "norm_q.weight", dim, END));
    gain(add(l, prefix, "norm_k.weight", dim, END));
}

void ck_list_dit(ck_list *l, const ck_dit *c)
{
    const int64_t dim = c->dim, one = 1, two = 2, six = 6;
    const double small = 1 / sqrt((double)dim);
    matrix(add(l, "", "patch_embedding.weight", dim, c->channels, one, two, two,
               END));
    deviation(add(l, "", "patch_embedding.bias", dim, END), 0.02);
    linear(l, "", "text_embedding.0", dim, c->text_dim);
    linear(l, "", "text_embedding.2", dim, dim);
    linear(l, "", "time_embedding.0", dim, c->freq);
    linear(l, "", "time_embedding.2", dim, dim);
    linear(l, "", "time_projection.1", 6 * dim, dim);
    for (int64_t i = 0; i < c->layers; i++) {
        char b[40], p[64];
        snprintf(b, sizeof b, "blocks.%lld.", (long long)i);
        deviation(add(l, b, "modulation", one, six, dim, END), small);
        snprintf(p, sizeof p, "%sself_attn.", b);
        attention(l, p, dim);
        gain(add(l, b, "norm3.weight", dim, END));
        deviation(add(l, b, "norm3.bias", dim, END), 0.02);
        snprintf(p, sizeof p, "%scross_attn.", b);
        attention(l, p, dim);
        linear(l, b, "ffn.0", c->ffn, dim);
        linear(l, b, "ffn.2", dim, c->ffn);
    }
    deviation(add(l, "", "head.modulation", one, two, dim, END), small);
    linear(l, "", "head.head", 4 * c->channels, dim);
}

/* ---- umT5 ---------------------------------------------------------------- */

void ck_list_t5(ck_list *l, const ck_t5 *c)
{
    const int64_t attn = c->heads * c->head_dim;
    deviation(add(l, "", "token_embedding.weight", c->vocab, c->dim, END), 1);
    for (int64_t i = 0; i < c->layers; i++) {
        char b[40];
        snprintf(b, sizeof b, "blocks.%lld.", (long long)i);
        gain(add(l, b, "norm1.weight", c->dim, END));
        /* Logits have no 1/sqrt(head_dim): it is in the initial q. */
        deviation(add(l, b, "attn.q.weight", attn, c->dim, END),
                  1 / sqrt((double)(c->dim * c->head_dim)));
        matrix(add(l, b, "attn.k.weight", attn, c->dim, END));
        matrix(add(l, b, "attn.v.weight", attn, c->dim, END));
        matrix(add(l, b, "attn.o.weight", c->dim, attn, END));
        deviation(add(l, b, "pos_embedding.embedding.weight", c->buckets,
                      c->heads, END), 0.5);
        gain(add(l, b, "norm2.weight", c->dim, END));
        matrix(add(l, b, "ffn.gate.0.weight", c->ffn, c->dim, END));
        matrix(add(l, b, "ffn.fc1.weight", c->ffn, c->dim, END));
        matrix(add(l, b, "ffn.fc2.weight", c->dim, c->ffn, END));
    }
    gain(add(l, "", "norm.weight", c->dim, END));
}

/* ---- VAE ----------------------------------------------------------------- */

/* A kernel [out, in, k...] and its bias. */
static void conv(ck_list *l, const char *prefix, const char *name, int64_t out,
                 int64_t in, int rank, int64_t kt, int64_t k)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    matrix(rank == 5 ? add(l, full, ".weight", out, in, kt, k, k, END)
                     : add(l, full, ".weight", out, in, k, k, END));
    deviation(add(l, full, ".bias", out, END), 0.02);
}

static void residual(ck_list *l, const char *p, int64_t in, int64_t out)
{
    const int64_t one = 1;
    gain(add(l, p, "residual.0.gamma", in, one, one, one, END));
    conv(l, p, "residual.2", out, in, 5, 3, 3);
    gain(add(l, p, "residual.3.gamma", out, one, one, one, END));
    conv(l, p, "residual.6", out, out, 5, 3, 3);
    if (in != out) conv(l, p, "shortcut", out, in, 5, 1, 1);
}

static void resample(ck_list *l, const char *p, int64_t in, int64_t out,
                     int64_t time_out)
{
    conv(l, p, "resample.1", out, in, 4, 1, 3);
    if (!time_out) return;
    matrix(add(l, p, "time_conv.weight", time_out, in, (int64_t)3, (int64_t)1,
               (int64_t)1, END));
    deviation(add(l, p, "time_conv.bias", time_out, END), 0.02);
}

static void middle(ck_list *l, const char *half, int64_t c)
{
    const int64_t one = 1;
    char p[64];
    snprintf(p, sizeof p, "%s.middle.0.", half);
    residual(l, p, c, c);
    snprintf(p, sizeof p, "%s.middle.1.", half);
    gain(add(l, p, "norm.gamma", c, one, one, END));
    conv(l, p, "to_qkv", 3 * c, c, 4, 1, 1);
    conv(l, p, "proj", c, c, 4, 1, 1);
    snprintf(p, sizeof p, "%s.middle.2.", half);
    residual(l, p, c, c);
}

static void head(ck_list *l, const char *half, int64_t in, int64_t out)
{
    const int64_t one = 1;
    char p[64];
    snprintf(p, sizeof p, "%s.head.", half);
    gain(add(l, p, "0.gamma", in, one, one, one, END));
    conv(l, p, "2", out, in, 5, 3, 3);
}

void ck_list_vae(ck_list *l, int64_t d, int64_t z)
{
    char p[64];
    conv(l, "encoder.", "conv1", d, 3, 5, 3, 3);
    /* Stages of two blocks, widths d, 2d, 4d, 4d; a down-sampler after each
     * but the last, with a time convolution in the second and third. */
    const int64_t width[5] = {d, d, 2 * d, 4 * d, 4 * d};
    int at = 0;
    for (int s = 1; s <= 4; s++) {
        for (int i = 0; i < 2; i++) {
            snprintf(p, sizeof p, "encoder.downsamples.%d.", at++);
            residual(l, p, i ? width[s] : width[s - 1], width[s]);
        }
        if (s == 4) break;
        snprintf(p, sizeof p, "encoder.downsamples.%d.", at++);
        resample(l, p, width[s], width[s], s > 1 ? width[s] : 0);
    }
    middle(l, "encoder", 4 * d);
    head(l, "encoder", 4 * d, 2 * z);
    conv(l, "", "conv1", 2 * z, 2 * z, 5, 1, 1);
    conv(l, "", "conv2", z, z, 5, 1, 1);

    conv(l, "decoder.", "conv1", 4 * d, z, 5, 3, 3);
    middle(l, "decoder", 4 * d);
    /* Stages of three blocks; up-samplers halve the width. */
    const int64_t in[4] = {4 * d, 2 * d, 2 * d, d};
    const int64_t out[4] = {4 * d, 4 * d, 2 * d, d};
    at = 0;
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 3; i++) {
            snprintf(p, sizeof p, "decoder.upsamples.%d.", at++);
            residual(l, p, i ? out[s] : in[s], out[s]);
        }
        if (s == 3) break;
        snprintf(p, sizeof p, "decoder.upsamples.%d.", at++);
        resample(l, p, out[s], out[s] / 2, s < 2 ? 2 * out[s] : 0);
    }
    head(l, "decoder", d, 3);
}
