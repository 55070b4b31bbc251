/* vae.c: loading the VAE.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py Decoder3d, Encoder3d, WanVAE_ for names and widths.
 * Model   The widths of the four stages are 4d, 4d, 2d, d in the decoder and
 *         d, 2d, 4d, 4d in the encoder; d and the number of latent channels
 *         come from two shapes, so that small test models load.
 * Next    decoder.c */
#include "vae/taehv.h"
#include "vae/vae_internal.h"

#include <stdio.h>

/* ---- networks ----------------------------------------------------------- */

static void bind_middle(tt_bind *b, vae_res *res, vae_attn *attn,
                        const char *side, int64_t c)
{
    char p[64];
    snprintf(p, sizeof p, "%s.middle.0", side);
    vae_bind_res(b, &res[0], p, c, c);
    snprintf(p, sizeof p, "%s.middle.1", side);
    vae_bind_attn(b, attn, p, c);
    snprintf(p, sizeof p, "%s.middle.2", side);
    vae_bind_res(b, &res[1], p, c, c);
}

static void vae_bind_decoder(tt_bind *b, vae_decoder_net *n, int64_t d,
                             int64_t z)
{
    const int64_t width[4] = {4 * d, 4 * d, 2 * d, d};
    const vae_mode mode[3] = {VAE_UP3D, VAE_UP3D, VAE_UP2D};
    int64_t in = 4 * d;
    char p[64];
    vae_bind_linear(b, &n->conv2, "conv2", 3, z, z);
    vae_bind_conv(b, &n->conv1, "decoder.conv1", 3, z, 4 * d, 3, 3);
    bind_middle(b, n->middle, &n->attn, "decoder", 4 * d);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++) {
            snprintf(p, sizeof p, "decoder.upsamples.%d", 4 * i + j);
            vae_bind_res(b, &n->res[i][j], p, in, width[i]);
            in = width[i];
        }
        if (i == 3) break;
        snprintf(p, sizeof p, "decoder.upsamples.%d", 4 * i + 3);
        vae_bind_resample(b, &n->up[i], p, mode[i], in);
        in /= 2;
    }
    n->gamma = vae_bind_gamma(b, "decoder.head.0", 4, d);
    vae_bind_conv(b, &n->head, "decoder.head.2", 3, d, 3, 3, 3);
}

static void vae_bind_encoder(tt_bind *b, vae_encoder_net *n, int64_t d,
                             int64_t z)
{
    const int64_t width[4] = {d, 2 * d, 4 * d, 4 * d};
    const vae_mode mode[3] = {VAE_DOWN2D, VAE_DOWN3D, VAE_DOWN3D};
    int64_t in = d;
    char p[64];
    vae_bind_conv(b, &n->conv1, "encoder.conv1", 3, 3, d, 3, 3);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 2; j++) {
            snprintf(p, sizeof p, "encoder.downsamples.%d", 3 * i + j);
            vae_bind_res(b, &n->res[i][j], p, in, width[i]);
            in = width[i];
        }
        if (i == 3) break;
        snprintf(p, sizeof p, "encoder.downsamples.%d", 3 * i + 2);
        vae_bind_resample(b, &n->down[i], p, mode[i], in);
    }
    bind_middle(b, n->middle, &n->attn, "encoder", 4 * d);
    n->gamma = vae_bind_gamma(b, "encoder.head.0", 4, 4 * d);
    vae_bind_conv(b, &n->head, "encoder.head.2", 3, 4 * d, 2 * z, 3, 3);
    /* the other z rows are the log-variance, which no one reads */
    vae_bind_linear(b, &n->mu, "conv1", 3, 2 * z, 2 * z);
    n->mu.w.dim[0] = z;
}

/* An empty model. */
static tt_vae *vae_new(tt_ctx *ctx, unsigned parts, int64_t dim, int64_t z)
{
    tt_arena a = {0};
    tt_vae *v = tt_alloc0(ctx, &a, 1, sizeof *v, "VAE");
    if (v) *v = (tt_vae){.arena = a, .parts = parts, .dim = dim, .z = z};
    return v;
}

/* ---- from a checkpoint -------------------------------------------------- */

/* Relatives of this VAE that must not be mistaken for it. */
static tt_status refuse_relatives(tt_ctx *ctx, const tt_weights *w)
{
    const char *path = tt_weights_path(w);
    if (tt_weights_find(w, "decoder.upsamples.0.upsamples.0.residual.2.weight"))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: this is the Wan2.2 VAE (48 latent channels); "
                       "Wan2.1 models need the Wan2.1 VAE, Wan2.1_VAE.pth",
                       path);
    const tt_tensor *c = tt_weights_find(w, "decoder.conv1.weight");
    if (c && c->rank == 4)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: decoder.conv1.weight has 4 dimensions: this is a "
                       "VAE pruned to single images; videos need the complete "
                       "Wan2.1 VAE, Wan2.1_VAE.pth", path);
    return TT_OK;
}

/* dim[0] of a tensor every Wan VAE has. */
static tt_status vae_extent(tt_ctx *ctx, int64_t *out, const tt_weights *w,
                            const char *name)
{
    const tt_tensor *t = tt_weights_find(w, name);
    if (!t || t->rank < 1)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: no tensor %s, so this is not a Wan VAE; give the "
                       "file Wan2.1_VAE.pth or one converted from it",
                       tt_weights_path(w), name);
    *out = t->dim[0];
    if (*out < 1 || *out > 1 << 20)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: %s has %lld rows, which no Wan VAE has",
                       tt_weights_path(w), name, (long long)*out);
    return TT_OK;
}

static tt_status bind_weights(tt_ctx *ctx, tt_vae *v, tt_weights *w)
{
    static const char *const unread[4][3] = {
        [TT_VAE_DECODER] = {"encoder.", "conv1.", NULL},
        [TT_VAE_ENCODER] = {"decoder.", "conv2.", NULL},
    };
    tt_bind b;
    tt_bind_begin(&b, ctx, w, &v->arena, "VAE");
    if (v->parts & TT_VAE_DECODER) vae_bind_decoder(&b, &v->dec, v->dim, v->z);
    if (v->parts & TT_VAE_ENCODER) vae_bind_encoder(&b, &v->enc, v->dim, v->z);
    return tt_bind_end(&b, unread[v->parts & 3]);
}

static tt_status load_parts(tt_ctx *ctx, tt_vae **out, tt_weights *w,
                              unsigned parts, const double *mean,
                              const double *std)
{
    const bool dec = (parts & TT_VAE_DECODER) != 0;
    int64_t dim = 0, z = 0;
    TT_TRY(refuse_relatives(ctx, w));
    TT_TRY(tt_weights_check(ctx, w));
    TT_TRY(vae_extent(ctx, &dim, w, dec ? "decoder.head.0.gamma"
                                    : "encoder.conv1.bias"));
    TT_TRY(vae_extent(ctx, &z, w, dec ? "conv2.weight" : "conv1.weight"));
    if (!dec) z /= 2;
    tt_vae *v = *out = vae_new(ctx, parts, dim, z);
    if (!v) return ctx->status;
    v->w = w;
    double *found = tt_alloc(ctx, &v->arena, 2 * z, sizeof *found, "VAE");
    if (!found) return ctx->status;
    if (!mean) {
        TT_TRY(vae_find_stats(ctx, found, found + z, z, tt_weights_path(w)));
        mean = found;
        std = found + z;
    }
    vae_set_stats(ctx, v, mean, std);
    return bind_weights(ctx, v, w);
}

tt_status vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w, unsigned parts,
                   const double *mean, const double *std)
{
    *out = NULL;
    if (ctx->status || load_parts(ctx, out, w, parts, mean, std)
        || ctx->status) {
        if (*out) tt_vae_close(*out);
        else tt_weights_close(w);
        *out = NULL;
    }
    return ctx->status;
}

tt_status tt_vae_load_parts(tt_ctx *ctx, tt_vae **out, tt_weights *w,
                            unsigned parts)
{
    return vae_load(ctx, out, w, parts, NULL, NULL);
}

tt_status tt_vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w)
{
    return vae_load(ctx, out, w, TT_VAE_DECODER, NULL, NULL);
}

/* ---- the tiny one ------------------------------------------------------- */

static tt_status load_tiny(tt_ctx *ctx, tt_vae *v, tt_weights *w)
{
    static const char *const unread[] = {"encoder.", NULL};
    tt_bind bind;
    v->w = w;
    v->tiny = tt_alloc0(ctx, &v->arena, 1, sizeof *v->tiny, "tiny VAE");
    if (!v->tiny || tt_weights_check(ctx, w)) return ctx->status;
    tt_bind_begin(&bind, ctx, w, &v->arena, "tiny VAE");
    taehv_bind(v->tiny, &bind, TT_VAE_DECODER);
    return tt_bind_end(&bind, unread);
}

tt_status tt_vae_load_tiny(tt_ctx *ctx, tt_vae **out, tt_weights *w)
{
    *out = ctx->status ? NULL : vae_new(ctx, TT_VAE_DECODER, 0, TAEHV_Z);
    if (*out && load_tiny(ctx, *out, w) == TT_OK) return TT_OK;
    if (*out) tt_vae_close(*out);
    else tt_weights_close(w);
    *out = NULL;
    return ctx->status;
}

void tt_vae_close(tt_vae *v)
{
    if (!v) return;
    tt_arena a = v->arena;
    if (v->w) tt_weights_close(v->w);
    tt_arena_free(&a);
}

const tt_weights *tt_vae_weights(const tt_vae *v)
{
    return v ? v->w : NULL;
}

tt_status tt_vae_use_class(tt_ctx *ctx, tt_vae *v, tt_class cls)
{
    const tt_ops *ops = tt_ops_class(ctx->ops, cls);
    const char *name = tt_class_name(cls);
    if (ctx->status) return ctx->status;
    if (cls != TT_CLASS_F32 && sizeof(tt_real) == 8)
        return tt_fail(ctx, TT_EINVAL, "a VAE of class %s needs a program "
                       "built with float; this one computes in double", name);
    if (!ops || (cls != TT_CLASS_F32 && !ops->by_class))
        return tt_fail(ctx, TT_EINVAL, "backend %s has no convolutions of "
                       "class %s; leave the VAE in f32, or use --backend "
                       "exact or golden", ctx->ops->name, name);
    if (ops != ctx->ops) TT_TRY(tt_ops_open(ctx, ops));
    v->cls = cls;
    return TT_OK;
}

tt_class tt_vae_class(const tt_vae *v)
{
    return v ? v->cls : TT_CLASS_F32;
}

tt_status tt_vae_use_folder(tt_ctx *ctx, tt_vae *v, const char *folder)
{
    if (ctx->status) return ctx->status;
    if (folder && ctx->device)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: what the VAE remembers "
                       "cannot lie there, it is in memory of %s", folder,
                       ctx->device->name);
    v->folder = folder ? tt_strdup(ctx, &v->arena, folder) : NULL;
    return ctx->status;
}

const char *tt_vae_folder(const tt_vae *v)
{
    return v ? v->folder : NULL;
}

int64_t tt_vae_width(const tt_vae *v)
{
    return !v ? 0 : v->tiny ? v->tiny->dec_out.cin : v->dim;
}

int64_t tt_vae_z(const tt_vae *v)
{
    return v ? v->z : 0;
}

int64_t tt_vae_dim(const tt_vae *v)
{
    return v ? v->dim : 0;
}
