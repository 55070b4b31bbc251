/* demo.c: the demo run, from prompt to frames, as one reference case.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the random weights `make_checkpoint --preset demo` writes: its values
 *         come from integer hashing, so the files are the same everywhere
 *         (check_bits compares them too).
 * Holds   the settings are those of `tether demo`: 30 latents of 8 x 8, long
 *         enough for the cache of 21 frames to overflow. */
#include <stdio.h>
#include <string.h>

#include "tests/bits/bits.h"
#include "rollout/rollout.h"
#include "text/text.h"
#include "vae/vae.h"
#include "io/video.h"

#define T5_FILE "models_t5_umt5-xxl-enc-bf16.safetensors"
#define VAE_FILE "Wan2.1_VAE.safetensors"
#define DIT_FILE "diffusion_pytorch_model.safetensors"

enum { LATENTS = 30, SIDE = 8, FRAMES = 4 * LATENTS - 3, WIDTH = 8 * SIDE };

const char *const bits_demo_files[] = {DIT_FILE, T5_FILE, VAE_FILE, NULL};

static const char prompt[] = "a red circle moves left on a blue background";

typedef struct demo {
    tt_ctx *ctx;
    const char *dir;
    tt_st_writer *out;
    tt_arena mem;
    tt_dit *dit;
    tt_vae *vae;
    int64_t rows, dim, C;          /* of the text; latent channels            */
    tt_real *text, *latents, *frames;
    int64_t nframes;
} demo;

static const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;

static const char *in_folder(const demo *d, char buf[1024], const char *name)
{
    snprintf(buf, 1024, "%s/%s", d->dir, name);
    return buf;
}

static tt_weights *weights(demo *d, const char *name, tt_model_kind kind)
{
    char path[1024];
    tt_weights *w = NULL;
    if (!d->ctx->status)
        tt_weights_open(d->ctx, &w, in_folder(d, path, name), kind, NULL);
    return w;
}

static tt_status load(demo *d)
{
    tt_ctx *ctx = d->ctx;
    TT_TRY(tt_dit_load(ctx, &d->dit, weights(d, DIT_FILE, TT_MODEL_DIT), NULL,
                       0));
    TT_TRY(tt_vae_load(ctx, &d->vae, weights(d, VAE_FILE, TT_MODEL_VAE)));
    const tt_dit_config *c = tt_dit_get_config(d->dit);
    d->rows = c->text_len;
    d->dim = c->text_dim;
    d->C = c->in_dim;
    d->text = tt_alloc(ctx, &d->mem, d->rows * d->dim, sizeof(tt_real), "text");
    d->latents = tt_alloc(ctx, &d->mem, LATENTS * d->C * SIDE * SIDE,
                          sizeof(tt_real), "latents");
    d->frames = tt_alloc(ctx, &d->mem, (int64_t)FRAMES * WIDTH * WIDTH * 3,
                         sizeof(tt_real), "frames");
    return ctx->status;
}

static tt_status embed(demo *d)
{
    tt_ctx *ctx = d->ctx;
    char path[1024];
    tt_tokenizer *tok;
    tt_umt5 *enc;
    tt_token_row row = {.length = d->rows};
    row.ids = tt_alloc(ctx, &d->mem, d->rows, sizeof *row.ids, "token ids");
    TT_TRY(tt_tokenizer_open(ctx, &tok, in_folder(d, path,
                             "google/umt5-xxl/spiece.model")));
    if (tt_umt5_load(ctx, &enc, weights(d, T5_FILE, TT_MODEL_T5)) == TT_OK) {
        tt_tokenizer_encode_prompt(ctx, &row, tok, prompt, strlen(prompt),
                                   true);
        tt_prompt_embed(ctx, d->text, enc, tok, prompt, strlen(prompt),
                        d->rows, NULL);
        tt_umt5_close(enc);
    }
    tt_tokenizer_close(tok);
    TT_TRY(ctx->status);
    TT_TRY(tt_st_add(d->out, "ids", TT_I64, 1, &d->rows, row.ids));
    return tt_st_add(d->out, "text", real, 2, (int64_t[]){d->rows, d->dim},
                     d->text);
}

static tt_status roll(demo *d)
{
    tt_ctx *ctx = d->ctx;
    tt_prompt *p;
    tt_rollout *run;
    const tt_real *x;
    int64_t frames, done = 0;
    const int64_t size = d->C * SIDE * SIDE;
    tt_rollout_options opt = tt_rollout_defaults();
    opt.latents = LATENTS;
    opt.h = opt.w = SIDE;
    TT_TRY(tt_prompt_make(ctx, &p, d->dit, d->text, d->rows));
    if (tt_rollout_open(ctx, &run, d->dit, p, &opt) == TT_OK) {
        while (tt_rollout_next(ctx, run, &x, &frames) == TT_OK) {
            memcpy(d->latents + done * size, x,
                   (size_t)(frames * size) * sizeof *x);
            done += frames;
        }
        tt_rollout_close(run);
    }
    tt_prompt_free(p);
    TT_TRY(ctx->status);
    TT_ASSERT(done == LATENTS);
    return tt_st_add(d->out, "latents", real, 4,
                     (int64_t[]){LATENTS, d->C, SIDE, SIDE}, d->latents);
}

static tt_status take_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    demo *d = user;
    TT_ASSERT(height == WIDTH && width == WIDTH && d->nframes < FRAMES);
    memcpy(d->frames + d->nframes++ * WIDTH * WIDTH * 3, rgb,
           (size_t)WIDTH * WIDTH * 3 * sizeof *rgb);
    return TT_OK;
}

static tt_status decode(demo *d)
{
    tt_ctx *ctx = d->ctx;
    tt_vae_decoder *dec;
    const int64_t size = d->C * SIDE * SIDE, pixels = FRAMES * WIDTH * WIDTH;
    const int64_t dim[4] = {FRAMES, WIDTH, WIDTH, 3};
    uint8_t *rgb = tt_alloc(ctx, &d->mem, pixels, 3, "pictures");
    TT_TRY(tt_vae_decoder_open(ctx, &dec, d->vae, SIDE, SIDE));
    for (int i = 0; i < LATENTS && !ctx->status; i++)
        tt_vae_decode_next(ctx, dec, d->latents + i * size, take_frame, d);
    tt_vae_decoder_close(dec);
    TT_TRY(ctx->status);
    TT_ASSERT(d->nframes == FRAMES);
    tt_rgb8_from_real(rgb, d->frames, pixels, 3, 1);
    TT_TRY(tt_st_add(d->out, "frames", real, 4, dim, d->frames));
    return tt_st_add(d->out, "rgb", TT_U8, 4, dim, rgb);
}

tt_status bits_demo(tt_ctx *ctx, const char *dir, bool pictures,
                    tt_st_writer *out)
{
    demo d = {.ctx = ctx, .dir = dir, .out = out};
    if (load(&d) == TT_OK && embed(&d) == TT_OK && roll(&d) == TT_OK
        && pictures)
        decode(&d);
    tt_vae_close(d.vae);
    if (d.dit) tt_dit_close(d.dit);
    tt_arena_free(&d.mem);
    return ctx->status;
}
