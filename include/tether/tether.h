/* tether.h: everything. Include this, or the one header you need.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program with all its parts: a prompt becomes a video. The first failure
 * sticks to the context, calls after it do nothing, and closing takes NULL, so
 * one look at the end is enough. Build it with
 *     cc -std=c11 video.c $(pkg-config --cflags --libs tether)
 *
 *     #include <stdio.h>
 *     #include <string.h>
 *     #include <tether/tether.h>
 *
 *     struct screen { tt_video *video; uint8_t rgb[64 * 64 * 3]; };
 *
 *     // One decoded frame: [64, 64, 3], about -1 to 1.
 *     static tt_status show(void *user, const tt_real *frame, int64_t height,
 *                           int64_t width)
 *     {
 *         struct screen *s = user;
 *         tt_rgb8_from_real(s->rgb, frame, height * width, 3, 1);
 *         return tt_video_frame(s->video, s->rgb);
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         const char *model = argc > 1 ? argv[1] : "ref_data/demo";
 *         const char *words = argc > 2 ? argv[2] : "a red circle moves left "
 *                             "and bounces, on a blue background";
 *         char spiece[4096];
 *         tt_ctx ctx;
 *         tt_arena memory = {0};
 *         tt_tokenizer *tokenizer;
 *         tt_umt5 *encoder;
 *         tt_weights *weights;
 *         tt_dit *net;
 *         tt_vae *vae;
 *         tt_vae_decoder *decoder;
 *         tt_prompt *prompt;
 *         tt_rollout *run;
 *         struct screen screen = {0};
 *         tt_ctx_init(&ctx);
 *
 *         // The models. A loader owns the weights from here on.
 *         snprintf(spiece, sizeof spiece, "%s/google/umt5-xxl/spiece.model",
 *                  model);
 *         tt_tokenizer_open(&ctx, &tokenizer, spiece);
 *         tt_umt5_open(&ctx, &encoder, model);
 *         tt_weights_open(&ctx, &weights, model, TT_MODEL_DIT, NULL);
 *         tt_dit_load(&ctx, &net, weights, NULL, 0);
 *         tt_weights_open(&ctx, &weights, model, TT_MODEL_VAE, NULL);
 *         tt_vae_load(&ctx, &vae, weights);
 *
 *         // The prompt: text_len rows, 512 in Wan's models.
 *         const tt_dit_config *c = tt_dit_get_config(net);
 *         tt_real *text = tt_alloc(&ctx, &memory, c->text_len * c->text_dim,
 *                                  sizeof *text, "the prompt");
 *         tt_prompt_embed(&ctx, text, encoder, tokenizer, words,
 *                         strlen(words), c->text_len, NULL);
 *         tt_prompt_make(&ctx, &prompt, net, text, c->text_len);
 *
 *         // 9 latents are 33 frames; latents of 60 x 104 are 480 x 832 pixels.
 *         tt_rollout_options opt = tt_rollout_defaults();
 *         opt.latents = 9;
 *         opt.h = opt.w = 8;
 *         opt.policy = tt_policy_defaults("tether");
 *         tt_rollout_open(&ctx, &run, net, prompt, &opt);
 *         tt_vae_decoder_open(&ctx, &decoder, vae, opt.h, opt.w);
 *         tt_video_format format = {.width = 64, .height = 64, .fps = 16};
 *         tt_video_open(&ctx, &screen.video, "video.y4m", &format);
 *         const tt_real *latents;
 *         int64_t n, size = c->in_dim * opt.h * opt.w;
 *         while (tt_rollout_next(&ctx, run, &latents, &n) == TT_OK)
 *             for (int64_t i = 0; i < n; i++)
 *                 tt_vae_decode_next(&ctx, decoder, latents + i * size, show,
 *                                    &screen);
 *         tt_video_finish(screen.video);
 *
 *         int status = ctx.status ? 1 : 0;
 *         puts(status ? tt_message(&ctx) : "video.y4m is written");
 *         tt_vae_decoder_close(decoder);
 *         tt_rollout_close(run);
 *         tt_prompt_free(prompt);
 *         tt_vae_close(vae);
 *         tt_dit_close(net);
 *         tt_umt5_close(encoder);
 *         tt_tokenizer_close(tokenizer);
 *         tt_arena_free(&memory);
 *         tt_ctx_free(&ctx);
 *         return status;
 *     }                                                                      */
#ifndef TETHER_TETHER_H
#define TETHER_TETHER_H

#include "tether/arena.h"
#include "tether/backend.h"
#include "tether/context.h"
#include "tether/dit.h"
#include "tether/fpenv.h"
#include "tether/io.h"
#include "tether/mathfn.h"
#include "tether/ops.h"
#include "tether/policy.h"
#include "tether/rollout.h"
#include "tether/run.h"
#include "tether/status.h"
#include "tether/tensor.h"
#include "tether/text.h"
#include "tether/vae.h"
#include "tether/version.h"
#include "tether/video.h"

#endif
