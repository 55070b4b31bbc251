/* vae_whole.c: reference cases of the whole VAE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/run_case/vae_case.h"

#include <stdio.h>
#include <string.h>

#include "io/video.h"

/* ---- the whole model: where it comes from ------------------------------- */

static bool latent_stats(vae_case *k, double *mean, double *std, int64_t z)
{
    const tt_json *m = tt_json_get(k->json, "latent_mean");
    const tt_json *s = tt_json_get(k->json, "latent_std");
    if (tt_json_count(m) != z || tt_json_count(s) != z || z > 256) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: latent_mean and latent_std must hold "
                "%lld numbers", k->dir, (long long)z);
        return false;
    }
    for (int64_t i = 0; i < z; i++) {
        mean[i] = tt_json_real(tt_json_at(m, i));
        std[i] = tt_json_real(tt_json_at(s, i));
    }
    return true;
}

static tt_weights *open_weights(vae_case *k, unsigned part)
{
    static const char *const without[][3] = {
        [TT_VAE_DECODER] = {"encoder.", "conv1.", NULL},
        [TT_VAE_ENCODER] = {"decoder.", "conv2.", NULL},
    };
    const tt_json *seed = tt_json_get(k->json, "weight_seed");
    if (seed)
        return vae_made_weights(k->ctx, k->dir,
                                (uint64_t)tt_json_whole(seed, 0),
                                without[part]);
    char path[600];
    const char *file = tt_json_str(k->json, "pth", NULL);
    if (!file) file = tt_json_str(k->json, "weights", "weights.safetensors");
    snprintf(path, sizeof path, "%s/%s", k->dir, file);
    tt_weights *w = NULL;
    tt_weights_open(k->ctx, &w, path, TT_MODEL_VAE, NULL);
    return w;
}

/* The model of the case with only the part that one run needs. */
static tt_vae *open_model(vae_case *k, unsigned part)
{
    const tt_json *config = tt_json_get(k->json, "config");
    const int64_t z = tt_json_int(config, "z_dim", 0);
    double mean[256], std[256];
    tt_vae *v = NULL;
    if (!latent_stats(k, mean, std, z)) return NULL;
    tt_weights *w = open_weights(k, part);
    if (w) vae_load(k->ctx, &v, w, part, mean, std);
    return v;
}

/* ---- the whole model: taps ---------------------------------------------- */

/* All frames seen under one name. */
typedef struct tapped {
    struct tapped *next;
    char name[64];
    int64_t dim[3];
    int64_t frames, capacity;
    tt_real *x;
} tapped;

typedef struct taps {
    vae_case *k;
    tapped *first, **end;
} taps;

static void tap(void *user, const char *path, tt_dtype dtype, int rank,
                const int64_t *dim, const void *data)
{
    taps *all = user;
    vae_case *k = all->k;
    const char *at = strstr(path, "/frame.");
    long long chunk = 0;
    char point[48], name[64];
    if (dtype != VAE_REAL || rank != 3 || !at
        || sscanf(at, "/frame.%lld/%47[^/]", &chunk, point) != 2)
        return;
    if (strcmp(point, "denorm") == 0 || strcmp(point, "conv2") == 0)
        snprintf(name, sizeof name, "%s", point);
    else
        snprintf(name, sizeof name, "tap.%s.c%lld", point, chunk);
    tapped *t = all->first;
    while (t && strcmp(t->name, name) != 0) t = t->next;
    const int64_t n = dim[0] * dim[1] * dim[2];
    if (!t) {
        t = tt_alloc0(k->ctx, &k->arena, 1, sizeof *t, "a tap");
        if (!t) return;
        memcpy(t->name, name, sizeof name);
        memcpy(t->dim, dim, sizeof t->dim);
        *all->end = t;
        all->end = &t->next;
    }
    if (t->frames == t->capacity) {
        tt_real *x = vae_scratch(k, (2 * t->capacity + 1) * n);
        if (!x) return;
        if (t->frames)
            memcpy(x, t->x, (size_t)(t->frames * n) * sizeof *x);
        t->x = x;
        t->capacity = 2 * t->capacity + 1;
    }
    memcpy(t->x + t->frames++ * n, data, (size_t)n * sizeof(tt_real));
}

/* ---- the whole model: runs ---------------------------------------------- */

static tt_status keep_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    film *f = user;
    if (f->frames == f->capacity) return TT_END;
    const int64_t n = height * width, at = f->frames++ * n * 3;
    memcpy(f->raw + at, rgb, (size_t)n * 3 * sizeof *rgb);
    tt_rgb8_from_real(f->rgb + at, rgb, n, 3, 1);
    return TT_OK;
}

static void put_caches(vae_case *k, const tt_vae_decoder *d, int64_t j)
{
    const tt_real *frame[2];
    int64_t dim[3];
    int held;
    for (int i = 0; (held = tt_vae_decoder_slot(d, i, frame, dim)) >= 0; i++) {
        const int64_t n = dim[0] * dim[1] * dim[2];
        char name[64];
        tt_real *x = vae_scratch(k, 2 * n);
        if (!x || held == 0) continue;
        for (int f = 0; f < held; f++)
            run_fetch(k->ctx, x + f * n, frame[f], n);
        snprintf(name, sizeof name, "cache%lld.slot%d", (long long)j, i);
        vae_put_video(k, name, x, held, dim);
    }
}

static void run_decode(vae_case *k, const tt_json *run, const tt_vae *v)
{
    char full[160];
    snprintf(full, sizeof full, "%s.z", k->run);
    const tt_entry *e = tt_file_find(k->inputs, full);
    if (!e || e->t.rank != 5 || e->t.dim[1] != v->z) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no latents %s of %lld channels",
                k->dir, full, (long long)v->z);
        return;
    }
    const int64_t T = e->t.dim[2], h = e->t.dim[3], w = e->t.dim[4];
    const int64_t F = 1 + 4 * (T - 1), pixels = 64 * h * w;
    const tt_real *z = tt_read_real(k->ctx, &k->arena, &e->t);
    tt_real *frame = vae_scratch(k, v->z * h * w);
    film f = {.capacity = F, .raw = vae_scratch(k, F * pixels * 3),
              .rgb = tt_alloc(k->ctx, &k->arena, F * pixels * 3, 1, "film")};
    tt_vae_decoder *d = NULL;
    if (!k->ctx->status) tt_vae_decoder_open(k->ctx, &d, v, h, w);
    for (int64_t j = 0; j < T && !k->ctx->status; j++) {
        for (int64_t c = 0; c < v->z; c++)
            memcpy(frame + c * h * w, z + (c * T + j) * h * w,
                   (size_t)(h * w) * sizeof *z);
        tt_vae_decode_next(k->ctx, d, frame, keep_frame, &f);
        if (tt_json_bool(run, "caches", false)) put_caches(k, d, j);
    }
    tt_vae_decoder_close(d);
    if (!k->ctx->status && f.frames != F)
        tt_fail(k->ctx, TT_ESHAPE, "%s: %lld frames from %lld latents",
                k->dir, (long long)f.frames, (long long)T);
    if (k->ctx->status) return;
    vae_put_video(k, "video_raw", f.raw, F, (int64_t[]){8 * h, 8 * w, 3});
    snprintf(full, sizeof full, "%s.u8", k->run);
    tt_st_add(k->out, full, TT_U8, 4, (int64_t[]){F, 8 * h, 8 * w, 3}, f.rgb);
}

static void run_encode(vae_case *k, const tt_vae *v)
{
    int64_t dim[5], made = 0;
    const tt_real *video = vae_get_frames(k, "video", dim);
    if (!video) return;
    const int64_t F = dim[2], H = dim[3], W = dim[4];
    const int64_t T = 1 + (F - 1) / 4, n = (H / 8) * (W / 8);
    tt_real *z = vae_scratch(k, v->z * n);
    tt_real *all = vae_scratch(k, T * v->z * n);
    tt_vae_encoder *e = NULL;
    if (!k->ctx->status) tt_vae_encoder_open(k->ctx, &e, v, H, W);
    for (int64_t j = 0; j < F && !k->ctx->status; j++) {
        bool ready;
        tt_vae_encode_next(k->ctx, e, z, &ready, video + j * H * W * 3);
        if (ready) vae_turn(all + made++ * n * v->z, z, 1, v->z, n);
    }
    tt_vae_encoder_close(e);
    if (!k->ctx->status)
        vae_put_video(k, "z", all, made, (int64_t[]){H / 8, W / 8, v->z});
}

void vae_run_whole(vae_case *k, const tt_json *run)
{
    const bool decode = strcmp(tt_json_str(run, "op", ""), "decode") == 0;
    tt_vae *v = open_model(k, decode ? TT_VAE_DECODER : TT_VAE_ENCODER);
    taps all = {.k = k};
    all.end = &all.first;
    if (v && !k->ctx->status) {
        if (tt_json_bool(run, "taps", false)) {
            k->ctx->tap = tap;
            k->ctx->tap_user = &all;
        }
        if (decode) run_decode(k, run, v);
        else run_encode(k, v);
        k->ctx->tap = NULL;
    }
    for (tapped *t = all.first; t && !k->ctx->status; t = t->next)
        vae_put_video(k, t->name, t->x, t->frames, t->dim);
    tt_vae_close(v);
}
