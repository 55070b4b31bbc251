/* inputs.c: named tensors out of files the user gave.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/inputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"

const double wan_latent_mean[WAN_Z] = {
    -0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653, -0.1517, 1.5508,
    0.4134,  -0.0715, 0.5517,  -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
};
const double wan_latent_std[WAN_Z] = {
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
    3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
};

static bool is_float(tt_dtype t)
{
    return t == TT_F64 || t == TT_F32 || t == TT_F16 || t == TT_BF16;
}

/* "[1, n, 16, any, any]" */
static void wanted(char *buf, size_t n, int rank, const int64_t *dim)
{
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++) {
        if (dim[i] < 0)
            at += (size_t)snprintf(buf + at, n - at, "%sany", i ? ", " : "");
        else
            at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? ", " : "",
                                   (long long)dim[i]);
    }
    if (at < n) snprintf(buf + at, n - at, "]");
}

static tt_status check_shape(tt_ctx *ctx, const tt_tensor *t, const char *path,
                             const char *name, int rank, const int64_t *dim)
{
    bool ok = t->rank == rank && is_float(t->dtype) && tt_tensor_packed(t);
    for (int i = 0; ok && i < rank; i++)
        ok = dim[i] < 0 ? t->dim[i] >= 1 : t->dim[i] == dim[i];
    if (ok) return TT_OK;
    char want[160], found[160];
    wanted(want, sizeof want, rank, dim);
    tt_shape_string(found, sizeof found, t->rank, t->dim);
    return tt_fail(ctx, TT_ESHAPE, "%s: tensor `%s` must be a packed, non-"
                   "empty floating-point tensor of shape %s, but it is %s %s",
                   path, name, want, tt_dtype_name(t->dtype), found);
}

/* ---- names and axes of other programs ------------------------------------ */

/* ComfyUI's .latent holds [1, C, T, h, w] on the VAE's scale: the same as ours
 * in memory of f.
 *     ours[t][c] = (theirs[c][t] - mean[c]) * (1 / std[c]), in float */
static tt_status from_comfy(tt_ctx *ctx, tt_file *f, tt_tensor *t,
                            const tt_entry *e, const char *path)
{
    const tt_tensor *x = &e->t;
    const int64_t *d = x->dim, size = x->rank == 5 ? d[3] * d[4] : 0;
    if (x->rank != 5 || d[0] != 1 || d[1] != WAN_Z || !is_float(x->dtype)
        || !tt_tensor_packed(x) || !size)
        return tt_fail(ctx, TT_ESHAPE, "%s: tensor `%s` is not [1, %d, frames, "
                       "height, width], as ComfyUI has latents of Wan's VAE",
                       path, e->name, WAN_Z);
    if (!tt_file_find(f, "latent_format_version_0"))
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: no tensor `latent_format_"
                       "version_0`: ComfyUI takes such latents as Stable "
                       "Diffusion's (times 1 / 0.18215), which those of Wan's "
                       "VAE are not; save them with its SaveLatent", path);
    const int64_t frames = d[2];
    float *v = tt_alloc(ctx, &f->arena, tt_tensor_count(x), sizeof *v,
                        "latents");
    for (int64_t i = 0; v && i < frames * WAN_Z; i++) {
        const int64_t c = i % WAN_Z, from = (c * frames + i / WAN_Z) * size;
        const float mean = (float)wan_latent_mean[c];
        const float inv = 1 / (float)wan_latent_std[c];
        tt_widen_at_f32(v + i * size, x, from, size);
        for (int64_t k = i * size; k < (i + 1) * size; k++)
            v[k] = (v[k] - mean) * inv;
    }
    *t = tt_tensor_make(v, TT_F32, 5, (int64_t[]){1, frames, WAN_Z, d[3],
                                                  d[4]});
    return ctx->status;
}

/* What another program calls it: latents of ComfyUI, embeddings of Self-Forcing
 * and Diffusers, with or without a batch. NULL: not there. */
static const tt_entry *inputs_foreign(const tt_file *f, const char *name)
{
    if (!strcmp(name, "text")) return tt_file_find(f, "prompt_embeds");
    return strstr(name, "latent") ? tt_file_find(f, "latent_tensor") : NULL;
}

static tt_status translated(tt_ctx *ctx, tt_file *f, tt_tensor *t,
                            const tt_entry *e, const char *path)
{
    if (strcmp(e->name, "prompt_embeds")) return from_comfy(ctx, f, t, e, path);
    *t = e->t;
    if (t->rank == 2 && tt_tensor_packed(t))
        *t = tt_tensor_reshape(t, 3, (int64_t[]){1, t->dim[0], t->dim[1]});
    return TT_OK;
}

tt_status input_open(tt_ctx *ctx, tt_file **file, tt_tensor *t,
                     const char *path, const char *name, int rank,
                     const int64_t *dim)
{
    *file = NULL;
    TT_TRY(tt_file_open(ctx, file, path));
    const tt_entry *e = tt_file_find(*file, name);
    const tt_entry *theirs = inputs_foreign(*file, name);
    if (e && theirs) {
        tt_fail(ctx, TT_EFORMAT, "%s holds both `%s` and `%s`, which mean the "
                "same; leave one of them out", path, name, theirs->name);
    } else if (e || theirs) {
        if (e) *t = e->t;
        if (!theirs || !translated(ctx, *file, t, theirs, path))
            check_shape(ctx, t, path, e ? name : theirs->name, rank, dim);
    } else {
        tt_fail(ctx, TT_EFORMAT, "%s: no tensor `%s` in this file; `tether "
                "inspect %s` lists what it holds", path, name, path);
    }
    if (ctx->status) {
        tt_file_close(*file);
        *file = NULL;
    }
    return ctx->status;
}

tt_real *input_read(tt_ctx *ctx, tt_arena *a, const char *path,
                    const char *name, int rank, int64_t *dim)
{
    tt_file *file;
    tt_tensor t;
    if (input_open(ctx, &file, &t, path, name, rank, dim)) return NULL;
    tt_real *x = tt_read_real(ctx, a, &t);
    int64_t n = tt_tensor_count(&t);
    memcpy(dim, t.dim, (size_t)rank * sizeof *dim);
    tt_file_close(file);
    for (int64_t i = 0; x && i < n; i++)
        if (!isfinite(x[i])) {
            tt_fail(ctx, TT_EFORMAT, "%s: tensor `%s` holds a value that is "
                    "not finite (element %lld)", path, name, (long long)i);
            return NULL;
        }
    return x;
}
