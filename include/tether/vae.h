/* vae.h: the Wan2.1 3-D causal VAE, streaming.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/vae.py. Latents are on the "diffusion" scale
 * (normalised); the decoder de-normalises them itself. One call of
 * tt_vae_decode_next takes one latent frame; the history of every causal
 * convolution stays in the decoder, so memory does not depend on the length
 * and the result does not depend on how latents are split over calls. */
#ifndef TETHER_VAE_H
#define TETHER_VAE_H

#include "tether/context.h"
#include "tether/io.h"

typedef struct tt_vae tt_vae;                 /* weights, shared               */
typedef struct tt_vae_decoder tt_vae_decoder; /* one video in progress         */

/* Load from weights opened with TT_MODEL_VAE; dim and z come from shapes, the
 * latent mean and std from config.json beside the file, else Wan's constants
 * when z is 16. Decoder half only; takes over `w` (closed by tt_vae_close). */
tt_status tt_vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w);
void tt_vae_close(tt_vae *v);
int64_t tt_vae_z(const tt_vae *v);
int64_t tt_vae_dim(const tt_vae *v);

/* Start a video of latent size h x w (frames are 8h x 8w). */
tt_status tt_vae_decoder_open(tt_ctx *ctx, tt_vae_decoder **out,
                              const tt_vae *v, int64_t h, int64_t w);
void tt_vae_decoder_close(tt_vae_decoder *d);
/* Bytes a decoder of this size will need at its peak (state and scratch). */
int64_t tt_vae_decoder_bytes(const tt_vae *v, int64_t h, int64_t w);

/* Receives one decoded frame: rgb [8h, 8w, 3], before clamping; valid during
 * the call. A non-OK return stops the decode. */
typedef tt_status (*tt_frame_fn)(void *user, const tt_real *rgb, int64_t height,
                                 int64_t width);

/* Decode the next latent frame z [C, h, w]: 1 frame for the first, 4 for every
 * later one, handed to `emit` in order as they are ready. */
tt_status tt_vae_decode_next(tt_ctx *ctx, tt_vae_decoder *d, const tt_real *z,
                             tt_frame_fn emit, void *user);

#endif
