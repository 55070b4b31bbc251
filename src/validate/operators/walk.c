/* walk.c: the whole model once, every operator call shadowed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Next    shadow.c, what happens to a call */
#include <string.h>

#include "text/text.h"
#include "validate/operators/walk.h"

/* Rows of the prompt's embedding. */
static int64_t walk_text_rows(const tt_model_parts *m)
{
    const int64_t fixed = tt_dit_get_config(m->dit)->text_len;
    return fixed ? fixed : 32;
}

/* Embeddings [rows, text_dim]: of the prompt, or noise without an encoder. */
static tt_real *embed(tt_ctx *ctx, const tt_model_parts *m)
{
    const int64_t n = walk_text_rows(m) * tt_dit_get_config(m->dit)->text_dim;
    tt_real *text = tt_scratch(ctx, n);
    float *noise = tt_alloc(ctx, &ctx->scratch, n, sizeof *noise, "embedding");
    if (ctx->status) return NULL;
    if (m->encoder_text) {
        tt_prompt_embed(ctx, text, m->encoder_text, m->tokenizer, m->prompt,
                        strlen(m->prompt), walk_text_rows(m), NULL);
        return text;
    }
    tt_noise_frame(noise, n, 1, 0, 0, 0);
    for (int64_t i = 0; i < n; i++) text[i] = (tt_real)noise[i];
    return text;
}

tt_prompt *walk_prompt(tt_ctx *ctx, const tt_model_parts *m)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_prompt *prompt = NULL;
    const tt_real *text = embed(ctx, m);
    if (text) tt_prompt_make(ctx, &prompt, m->dit, text, walk_text_rows(m));
    tt_arena_reset(&ctx->scratch, mark);
    return prompt;
}

/* The first latents of the rollout, for the VAE: [count, C, h, w]. */
enum { DECODED = 2 };

static void roll(tt_ctx *ctx, const tt_model_parts *m, tt_real *first)
{
    const int64_t n = tt_dit_get_config(m->dit)->in_dim * m->rollout.h
                      * m->rollout.w;
    tt_prompt *prompt = walk_prompt(ctx, m);
    tt_rollout *run = NULL;
    const tt_real *x;
    int64_t frames, done = 0;
    if (!ctx->status)
        tt_rollout_open(ctx, &run, m->dit, prompt, &m->rollout);
    while (!ctx->status && tt_rollout_next(ctx, run, &x, &frames) == TT_OK)
        for (int64_t i = 0; i < frames; i++, done++)
            if (done < DECODED)
                memcpy(first + done * n, x + i * n, (size_t)n * sizeof *x);
    tt_rollout_close(run);
    tt_prompt_free(prompt);
}

static tt_status no_frame(void *user, const tt_real *rgb, int64_t height,
                          int64_t width)
{
    (void)user, (void)rgb, (void)height, (void)width;
    return TT_OK;
}

static void walk_decode(tt_ctx *ctx, const tt_model_parts *m, const tt_real *z,
                        int64_t n)
{
    tt_vae_decoder *d = NULL;
    tt_vae_decoder_open(ctx, &d, m->vae, m->rollout.h, m->rollout.w);
    for (int i = 0; i < DECODED && !ctx->status; i++)
        tt_vae_decode_next(ctx, d, z + i * n, no_frame, NULL);
    tt_vae_decoder_close(d);
}

/* Five pictures of smooth noise: one latent frame, and one more. */
static void walk_encode(tt_ctx *ctx, const tt_model_parts *m, tt_real *z)
{
    const int64_t H = 8 * m->rollout.h, W = 8 * m->rollout.w, n = H * W * 3;
    tt_vae_encoder *e = NULL;
    tt_real *rgb = tt_scratch(ctx, n);
    float *noise = tt_alloc(ctx, &ctx->scratch, n, sizeof *noise, "pictures");
    bool ready;
    tt_vae_encoder_open(ctx, &e, m->vae, H, W);
    for (uint32_t f = 0; f < 5 && !ctx->status; f++) {
        tt_noise_frame(noise, n, 2, 0, f, 0);
        for (int64_t i = 0; i < n; i++) {
            const float x = noise[i] / 3;
            rgb[i] = (tt_real)(x > 1 ? 1 : x < -1 ? -1 : x);
        }
        tt_vae_encode_next(ctx, e, z, &ready, rgb);
    }
    tt_vae_encoder_close(e);
}

void walk_all(tt_ctx *ctx, const tt_model_parts *m)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t n = tt_dit_get_config(m->dit)->in_dim * m->rollout.h
                      * m->rollout.w;
    tt_real *first = tt_scratch(ctx, DECODED * n);
    tt_real *z = tt_scratch(ctx, n);
    if (!ctx->status) roll(ctx, m, first);
    if (m->vae && m->decoder) walk_decode(ctx, m, first, n);
    if (m->vae && m->encoder) walk_encode(ctx, m, z);
    tt_arena_reset(&ctx->scratch, mark);
}

tt_status tt_validate_calls(tt_ctx *ctx, tt_report *r, const tt_ops *candidate,
                            const tt_arith *arith, const tt_model_parts *m)
{
    tt_shadow *s = NULL;
    if (tt_shadow_open(ctx, &s, r, candidate, arith)) return ctx->status;
    walk_all(ctx, m);
    tt_shadow_close(ctx, s);
    if (!m->encoder_text)
        tt_report_note(r, "no text encoder: the prompt's embedding is noise, "
                       "and the encoder is not checked");
    if (!m->vae || !m->decoder)
        tt_report_note(r, "no VAE: the decoder is not checked");
    if (!m->vae || !m->encoder)
        tt_report_note(r, "no VAE encoder: it is not checked");
    return ctx->status;
}
