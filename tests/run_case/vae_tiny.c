/* vae_tiny.c: reference cases of the tiny VAE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/run_case/vae_case.h"

#include <stdio.h>
#include <string.h>

static tt_status keep_raw(void *user, const tt_real *rgb, int64_t height,
                          int64_t width)
{
    film *f = user;
    const int64_t n = height * width * 3;
    if (f->frames < f->capacity)
        vae_turn(f->raw + f->frames * n, rgb, 1, height * width, 3);
    f->frames++;
    return TT_OK;
}

/* "raw" [1, 4T, 3, H, W] and "frames", clamped and without the first three. */
static void tiny_decode(vae_case *k, const taehv *m, const tt_tensor *in)
{
    char name[160];
    const int64_t T = in->dim[1], h = in->dim[3], w = in->dim[4];
    const int64_t each = 3 * 64 * h * w, size = TAEHV_Z * h * w;
    const tt_real *z = tt_read_real(k->ctx, &k->arena, in);
    film f = {.capacity = 4 * T, .raw = vae_scratch(k, 4 * T * each)};
    taehv_decoder d;
    taehv_decoder_init(k->ctx, &d, &k->arena, m, h, w, 0);
    for (int64_t t = 0; t < T && !k->ctx->status; t++)
        taehv_decode(k->ctx, &d, z + t * size, keep_raw, &f);
    if (k->ctx->status || f.frames != 4 * T) return;
    snprintf(name, sizeof name, "%s.raw", k->run);
    tt_st_add(k->out, name, VAE_REAL, 5,
              (int64_t[]){1, 4 * T, 3, 8 * h, 8 * w}, f.raw);
    for (int64_t i = 0; i < 4 * T * each; i++)
        f.raw[i] = f.raw[i] < 0 ? 0 : f.raw[i] > 1 ? 1 : f.raw[i];
    snprintf(name, sizeof name, "%s.frames", k->run);
    tt_st_add(k->out, name, VAE_REAL, 5,
              (int64_t[]){1, 4 * T - TAEHV_TRIM, 3, 8 * h, 8 * w},
              f.raw + TAEHV_TRIM * each);
}

static void tiny_encode(vae_case *k, const taehv *m, const tt_tensor *in)
{
    char name[160];
    const int64_t F = in->dim[1], H = in->dim[3], W = in->dim[4];
    const int64_t T = (F + 3) / 4, size = TAEHV_Z * (H / 8) * (W / 8);
    const tt_real *video = tt_read_real(k->ctx, &k->arena, in);
    tt_real *frame = vae_scratch(k, 3 * H * W), *z = vae_scratch(k, T * size);
    taehv_encoder e;
    int64_t made = 0;
    taehv_encoder_init(k->ctx, &e, &k->arena, m, H, W);
    for (int64_t i = 0; i < 4 * T && !k->ctx->status; i++) {
        const int64_t from = i < F ? i : F - 1; /* the last one, repeated */
        vae_turn(frame, video + from * 3 * H * W, 1, 3, H * W);
        made += taehv_encode(k->ctx, &e, z + made * size, frame);
    }
    snprintf(name, sizeof name, "%s.z", k->run);
    if (!k->ctx->status)
        tt_st_add(k->out, name, VAE_REAL, 5,
                  (int64_t[]){1, made, TAEHV_Z, H / 8, W / 8}, z);
}

/* One side of the model; its weights are closed when it is not used again. */
static tt_weights *open_tiny(vae_case *k, taehv *m, bool decode)
{
    const char *without[] = {decode ? "encoder." : "decoder.", NULL};
    const int64_t seed = tt_json_int(k->json, "weight_seed", 0);
    tt_weights *w = vae_made_weights(k->ctx, k->dir, (uint64_t)seed, without);
    tt_bind b;
    if (!w) return NULL;
    tt_bind_begin(&b, k->ctx, w, &k->arena, "tiny VAE");
    taehv_bind(m, &b, decode ? TT_VAE_DECODER : TT_VAE_ENCODER);
    tt_bind_end(&b, NULL);
    return w;
}

void vae_run_tiny(vae_case *k, const tt_json *run)
{
    const bool decode = strcmp(tt_json_str(run, "op", ""), "decode") == 0;
    char name[160];
    taehv m = {0};
    snprintf(name, sizeof name, "%s.%s", k->run, decode ? "z" : "video");
    const tt_entry *in = tt_file_find(k->inputs, name);
    if (!in || in->t.rank != 5 || in->t.dim[0] != 1
        || in->t.dim[2] != (decode ? TAEHV_Z : 3)) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no input %s of the right shape",
                k->dir, name);
        return;
    }
    tt_weights *w = open_tiny(k, &m, decode);
    if (decode && w) tiny_decode(k, &m, &in->t);
    if (!decode && w) tiny_encode(k, &m, &in->t);
    tt_weights_close(w);
}
