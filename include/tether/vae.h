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

/* Which half of the weights to load. */
enum { TT_VAE_DECODER = 1, TT_VAE_ENCODER = 2 };

/* Load from weights opened with TT_MODEL_VAE; dim and z come from shapes, the
 * latent mean and std from config.json beside the file, else Wan's constants
 * when z is 16. Takes over `w` in every case (closed by tt_vae_close, or at
 * once on failure). 3x3x3 kernels are copied in their stored type into the
 * order tt_conv wants; the rest stays in the mapping.
 * Errors  TT_ESHAPE        missing, misshapen or unexpected tensors
 *         TT_EUNSUPPORTED  a relative: Wan2.2 VAE, image-only VAE
 *         TT_EFORMAT       config.json is not what it should be */
tt_status tt_vae_load_parts(tt_ctx *ctx, tt_vae **out, tt_weights *w,
                            unsigned parts);
/* The decoder half only. */
tt_status tt_vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w);
/* The decoder of TAEHV ("taew2_1") from weights opened with TT_MODEL_TINY_VAE:
 * fast previews that differ visibly from the real decoder's frames. Used
 * exactly like the other; it has no latent statistics and cannot encode. */
tt_status tt_vae_load_tiny(tt_ctx *ctx, tt_vae **out, tt_weights *w);
void tt_vae_close(tt_vae *v); /* NULL is fine */
/* Compute convolutions, linear layers and attention in this class, whatever
 * that of the context is; f32 at first. Before a decoder or encoder is opened.
 * Errors  TT_EINVAL  the context's backend has no convolutions of the class
 *         TT_EUNSUPPORTED  this machine cannot compute in it */
tt_status tt_vae_use_class(tt_ctx *ctx, tt_vae *v, tt_class cls);
tt_class tt_vae_class(const tt_vae *v);
/* What decoders and encoders that are opened from now on remember of earlier
 * frames lies in files of `folder`, which have no name and are gone with them;
 * NULL: in memory, as at first. For a machine whose memory does not hold it: at
 * 832x480 it is 4.1 GB of a decoder, in a class other than f32 2.0, and 2.6 GB
 * of an encoder. No bit depends on it.
 * Errors  TT_EUNSUPPORTED  values are in memory of a device */
tt_status tt_vae_use_folder(tt_ctx *ctx, tt_vae *v, const char *folder);
const char *tt_vae_folder(const tt_vae *v);
/* What it was bound from; NULL when it came from elsewhere. */
const tt_weights *tt_vae_weights(const tt_vae *v);
int64_t tt_vae_z(const tt_vae *v);
int64_t tt_vae_width(const tt_vae *v);        /* channels of the last stage   */
int64_t tt_vae_dim(const tt_vae *v);
/* Add what tells its latent mean and std from others to a digest. */
void tt_vae_add_stats(const tt_vae *v, tt_sha256 *s);

/* ---- decoder ------------------------------------------------------------ */

/* Start a video of latent size h x w (frames are 8h x 8w). All history is
 * allocated here; on several ranks that of our band. `v` must outlive the
 * decoder.
 * Errors  TT_EIO  tt_vae_use_folder's folder is not there, or its disk full */
tt_status tt_vae_decoder_open(tt_ctx *ctx, tt_vae_decoder **out,
                              const tt_vae *v, int64_t h, int64_t w);
void tt_vae_decoder_close(tt_vae_decoder *d); /* NULL is fine */
/* Bytes a decoder of this size needs at its peak: history, if it is in memory,
 * and frames in flight, without weights and the operators' own scratch. -1 when
 * the size does not fit 64 bits. */
int64_t tt_vae_decoder_bytes(const tt_vae *v, int64_t h, int64_t w);
/* Bytes of history, wherever it is. */
int64_t tt_vae_history_bytes(const tt_vae *v, int64_t h, int64_t w);
/* Multiplications and additions of a latent frame, but for those of the first
 * one, which gives a single picture. */
double tt_vae_decoder_operations(const tt_vae *v, int64_t h, int64_t w);

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

/* Begin in the middle: the pictures of latent frame `frame` are the first that
 * are given. For a decoder that has decoded nothing. Returns the latent frame
 * that tt_vae_decode_next is to be given first, max(0, frame - 38) (the tiny
 * decoder: 8), -1 without a decoder; from `frame` on the bits are those of a
 * decode from the beginning. The frames before cost 8 to 9 whole ones. */
int64_t tt_vae_decoder_seek(tt_vae_decoder *d, int64_t frame);

/* For debugging: the frames that convolution `slot` (0..31, official order)
 * remembers, oldest first: our lines of them, each dim = [H, W, C]; of a class
 * other than f32 packed bf16 numbers where W * C is even. Returns their number,
 * 0..2, or -1 past the last slot. */
int tt_vae_decoder_slot(const tt_vae_decoder *d, int slot,
                        const tt_real *frame[2], int64_t dim[3]);

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
