/* vae.h: the Wan2.1 3-D causal VAE, streaming.
 *
 *     tt_weights *w;
 *     tt_vae *v;
 *     tt_vae_decoder *d;
 *     TT_TRY(tt_weights_open(ctx, &w, "Wan2.1_VAE.pth", TT_MODEL_VAE, NULL));
 *     TT_TRY(tt_vae_load(ctx, &v, w));
 *     TT_TRY(tt_vae_decoder_open(ctx, &d, v, 60, 104));
 *     while (more) TT_TRY(tt_vae_decode_next(ctx, d, z, show_frame, user));
 *     tt_vae_decoder_close(d);
 *     tt_vae_close(v);
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/vae.py. Latents are on the "diffusion" scale
 * (normalised); the decoder de-normalises them itself and the encoder
 * normalises. One call takes one frame; the history of every causal
 * convolution stays in the decoder or encoder, so memory does not depend on
 * the length and the result does not depend on how frames are split over
 * calls. On several ranks (team.h) all decode together, each a band of every
 * picture, and rank 0 hands the pictures out; the small decoder runs on rank 0.
 * Vectors ref_data/vae_full_a, vae_pth, vae_fullwidth */
#ifndef TETHER_VAE_H
#define TETHER_VAE_H

#include "tether/api.h"
#include "tether/backend.h"
#include "tether/context.h"
#include "tether/io.h"

TT_API_BEGIN

typedef struct tt_vae tt_vae;                 /* weights, shared              */
typedef struct tt_vae_decoder tt_vae_decoder; /* one video in progress        */
typedef struct tt_vae_encoder tt_vae_encoder;

/* The decoder half only. */
tt_status tt_vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w);
/* The decoder of TAEHV ("taew2_1") from weights opened with TT_MODEL_TINY_VAE:
 * fast previews that differ visibly from the real decoder's frames. Used
 * exactly like the other; it has no latent statistics and cannot encode. */
void tt_vae_close(tt_vae *v); /* NULL is fine */

/* ---- decoder ------------------------------------------------------------ */

/* Start a video of latent size h x w (frames are 8h x 8w). All history is
 * allocated here; on several ranks that of our band. `v` must outlive the
 * decoder.
 * Errors  TT_EIO  tt_vae_use_folder's folder is not there, or its disk full */
tt_status tt_vae_decoder_open(tt_ctx *ctx, tt_vae_decoder **out,
                              const tt_vae *v, int64_t h, int64_t w);
void tt_vae_decoder_close(tt_vae_decoder *d); /* NULL is fine */

/* Receives one decoded frame: rgb [8h, 8w, 3], before clamping; valid during
 * the call. A non-OK return stops the decode. */
typedef tt_status (*tt_frame_fn)(void *user, const tt_host *rgb, int64_t height,
                                 int64_t width);

/* Decode the next latent frame z [C, h, w]: 1 frame for the first, 4 for every
 * later one, handed to `emit` in order as they are ready.
 * Errors  TT_EFORMAT  z holds NaN or infinity, or a decoded frame does
 *                     (damaged weights; the sentence names their file)
 *         After any error only tt_vae_decoder_close may follow.
 * Taps    vae/frame.J/{denorm,conv2,conv1,middle.I,up.I} for latent frame J;
 *         from up.3 on, where one latent frame is several, up.I/t.K. All are
 *         [H, W, C]. */
tt_status tt_vae_decode_next(tt_ctx *ctx, tt_vae_decoder *d, const tt_host *z,
                             tt_frame_fn emit, void *user);

/* ---- encoder ------------------------------------------------------------ */

/* Start encoding a video of height x width pixels, both at least 8; odd
 * halves round down, the latents are height/8 x width/8.
 * Errors  TT_EIO  as of tt_vae_decoder_open */
tt_status tt_vae_encoder_open(tt_ctx *ctx, tt_vae_encoder **out,
                              const tt_vae *v, int64_t height, int64_t width);
void tt_vae_encoder_close(tt_vae_encoder *e); /* NULL is fine */

/* Encode the next pixel frame rgb [H, W, 3], values in [-1, 1]. *ready tells
 * whether z [C, H/8, W/8] was written: after the first frame, then after every
 * fourth. Frames of an unfinished group of four give nothing.
 * Errors and taps as in tt_vae_decode_next:
 *         vae_encoder/frame.J/{conv1,down.I}/t.K, middle.I, head. */
tt_status tt_vae_encode_next(tt_ctx *ctx, tt_vae_encoder *e, tt_host *z,
                             bool *ready, const tt_host *rgb);

TT_API_END

#endif
