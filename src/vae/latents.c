/* latents.c: between the diffusion model's scale and the VAE's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  utils/wan_wrapper.py: mean and std as float tensors, 1/std once.
 * Model   The statistics are in no checkpoint. A config.json next to the
 *         weights may carry them (Diffusers); otherwise they are Wan's, which
 *         only fit 16 channels. */
#include "vae/vae_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/inputs.h"
#include "io/json.h"

/* config.json in the folder `path`, or next to the file `path`. False when the
 * name does not fit or nothing is there. */
static bool config_path(char *out, size_t n, const char *path)
{
    struct stat st;
    int len = (int)strlen(path);
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        len = slash ? (int)(slash - path) : 0;
        if (!slash) path = ".", len = 1;
    }
    int got = snprintf(out, n, "%.*s/config.json", len, path);
    return got > 0 && (size_t)got < n && stat(out, &st) == 0;
}

/* One list of z numbers of the config. */
static tt_status read_list(tt_ctx *ctx, double *out, const tt_json *root,
                           const char *key, int64_t z, bool positive,
                           const char *file)
{
    const tt_json *list = tt_json_get(root, key);
    if (!list || list->kind != TT_JSON_ARRAY || tt_json_count(list) != z)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: %s must be a list of %lld numbers, one for each "
                       "latent channel of the VAE next to it; correct the list "
                       "or put the config.json that belongs to these weights "
                       "there", file, key, (long long)z);
    int64_t i = 0;
    for (const tt_json *v = tt_json_first(list); v; v = tt_json_next(v), i++) {
        const float f = (float)tt_json_real(v);
        if (v->kind != TT_JSON_NUMBER || !isfinite(f) || (positive && !(f > 0)))
            return tt_fail(ctx, TT_EFORMAT,
                           "%s: %s[%lld] is not a %s number", file, key,
                           (long long)i, positive ? "positive" : "finite");
        out[i] = tt_json_real(v);
    }
    return TT_OK;
}

static tt_status latents_read_config(tt_ctx *ctx, double *mean, double *std,
                                     int64_t z, const tt_json *root,
                                     const char *file)
{
    const int64_t said = tt_json_int(root, "z_dim", z);
    if (said != z)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: z_dim is %lld but the VAE weights next to it have "
                       "%lld latent channels; put the config.json that belongs "
                       "to these weights there", file, (long long)said,
                       (long long)z);
    TT_TRY(read_list(ctx, mean, root, "latents_mean", z, false, file));
    return read_list(ctx, std, root, "latents_std", z, true, file);
}

tt_status vae_find_stats(tt_ctx *ctx, double *mean, double *std, int64_t z,
                         const char *path)
{
    char file[4096];
    if (config_path(file, sizeof file, path)) {
        tt_arena a = {0};
        const tt_json *root = NULL;
        tt_status s = tt_json_file(ctx, &a, &root, file, 1 << 20);
        bool has = false;
        if (!s) {
            /* the original Wan folder keeps the transformer's config here */
            has = tt_json_get(root, "latents_mean")
                  || tt_json_get(root, "latents_std");
            if (has) s = latents_read_config(ctx, mean, std, z, root, file);
        }
        tt_arena_free(&a);
        if (s || has) return s;
    }
    if (z != WAN_Z)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: the VAE has %lld latent channels, and the mean and "
                       "std of latents are only known for Wan's 16; put a "
                       "config.json with latents_mean and latents_std next to "
                       "the file", path, (long long)z);
    memcpy(mean, wan_latent_mean, sizeof wan_latent_mean);
    memcpy(std, wan_latent_std, sizeof wan_latent_std);
    return TT_OK;
}

void vae_set_stats(tt_ctx *ctx, tt_vae *v, const double *mean,
                   const double *std)
{
    v->mean = tt_alloc(ctx, &v->arena, v->z, sizeof(tt_host), "latent mean");
    v->inv = tt_alloc(ctx, &v->arena, v->z, sizeof(tt_host), "latent std");
    if (ctx->status) return;
    for (int64_t c = 0; c < v->z; c++) {
        v->mean[c] = (tt_host)(float)mean[c];
        v->inv[c] = (tt_host)1 / (tt_host)(float)std[c];
    }
}

void tt_vae_add_stats(const tt_vae *v, tt_sha256 *s)
{
    if (!v || !v->mean) return; /* the tiny one has none */
    tt_sha256_add(s, v->mean, (size_t)v->z * sizeof *v->mean);
    tt_sha256_add(s, v->inv, (size_t)v->z * sizeof *v->inv);
}

void vae_denormalise(tt_host *y, const tt_host *z, const tt_vae *v, int64_t n)
{
    for (int64_t p = 0; p < n; p++)
        for (int64_t c = 0; c < v->z; c++)
            y[p * v->z + c] = z[c * n + p] / v->inv[c] + v->mean[c];
}

void vae_normalise(tt_host *z, const tt_host *mu, const tt_vae *v, int64_t n)
{
    for (int64_t c = 0; c < v->z; c++)
        for (int64_t p = 0; p < n; p++)
            z[c * n + p] = (mu[p * v->z + c] - v->mean[c]) * v->inv[c];
}
