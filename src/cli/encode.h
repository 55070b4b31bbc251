/* encode.h: pictures, videos or raw frames through the VAE encoder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ENCODE_H
#define CLI_ENCODE_H

#include "cli/progress.h"
#include "tether/vae.h"

/* What to encode: `path` for tt_video_in_open, or `raw`, a safetensors file
 * with video [1, 3, F, H, W] in [-1, 1]. */
typedef struct encode_input {
    const char *path, *raw;
    int64_t width, height;    /* resize to, path only; 0: as it is            */
    int64_t skip, take;       /* frames left out in front; frames taken, 0:
                                 all that follow                              */
} encode_input;

/* What it holds after skip and take. `dropped` frames at the end do not fill
 * a group of four; the others make `latents`. */
typedef struct encode_size {
    int64_t frames, width, height;
    int64_t latents, dropped;
} encode_size;

/* Read through all of it without encoding, so that a damaged frame or an
 * impossible size is found before hours of work. Pictures and videos must be
 * resized to, or have, sides that are multiples of 16; raw frames at least 8
 * x 8. Standard input can be read only once and is left alone: all zeros. */
tt_status encode_measure(tt_ctx *ctx, encode_size *size,
                         const encode_input *in);

/* Receives latent frame z [C, h, w]; a non-OK return stops. */
typedef tt_status (*encode_fn)(void *user, const tt_real *z, int64_t C,
                               int64_t h, int64_t w);

/* Encode what was measured; `size` is completed where it was not known.
 * A warning tells what was dropped.
 * Errors  TT_EINVAL  not one frame */
tt_status encode_run(tt_ctx *ctx, progress *p, const tt_vae *vae,
                     const encode_input *in, encode_size *size, encode_fn emit,
                     void *user);

#endif
