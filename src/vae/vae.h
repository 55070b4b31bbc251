/* vae.h: what the modules use of tether/vae.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VAE_VAE_H
#define TT_VAE_VAE_H

#include "core/context.h"
#include "io/io.h"
#include "ops/backend.h"
#include "tether/vae.h"

/* Which half of the weights to load. */
enum { TT_VAE_DECODER = 1, TT_VAE_ENCODER = 2 };

/* Load from weights opened with TT_MODEL_VAE; dim and z come from shapes, the
 * latent mean and std from config.json next to the file, else Wan's constants
 * when z is 16. Takes over `w` in every case (closed by tt_vae_close, or at
 * once on failure). 3x3x3 kernels are copied in their stored type into the
 * order tt_conv wants; the rest stays in the mapping.
 * Errors  TT_ESHAPE        missing, misshapen or unexpected tensors
 *         TT_EUNSUPPORTED  a relative: Wan2.2 VAE, image-only VAE
 *         TT_EFORMAT       config.json is not what it should be */
tt_status tt_vae_load_parts(tt_ctx *ctx, tt_vae **out, tt_weights *w,
                            unsigned parts);
tt_status tt_vae_load_tiny(tt_ctx *ctx, tt_vae **out, tt_weights *w);
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

/* Bytes a decoder of this size needs at its peak: history, if it is in memory,
 * and frames in flight, without weights and the operators' own scratch. -1 when
 * the size does not fit 64 bits. */
int64_t tt_vae_decoder_bytes(const tt_vae *v, int64_t h, int64_t w);
/* Bytes of history, wherever it is. */
int64_t tt_vae_history_bytes(const tt_vae *v, int64_t h, int64_t w);
/* Multiplications and additions of a latent frame, but for those of the first
 * one, which gives a single picture. */
double tt_vae_decoder_operations(const tt_vae *v, int64_t h, int64_t w);

/* For debugging: the frames that convolution `slot` (0..31, official order)
 * remembers, oldest first: our lines of them, each dim = [H, W, C]; of a class
 * other than f32 packed bf16 numbers where W * C is even. Returns their number,
 * 0..2, or -1 past the last slot. */
int tt_vae_decoder_slot(const tt_vae_decoder *d, int slot,
                        const tt_real *frame[2], int64_t dim[3]);

#endif
