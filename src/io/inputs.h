/* inputs.h: named tensors out of files the user gave.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_INPUTS_H
#define TT_IO_INPUTS_H

#include "io/io.h"

/* Of the latents of Wan's VAE, which no checkpoint has. */
enum { WAN_Z = 16 };
extern const double wan_latent_mean[WAN_Z], wan_latent_std[WAN_Z];

/* Open `path` and find the tensor `name` of the given shape (-1: any extent
 * of at least 1) and a floating-point type. The view points into *file, which
 * the caller closes; on an error *file is NULL. In place of `text` the file may
 * hold `prompt_embeds`, of latents ComfyUI's `latent_tensor`. */
tt_status input_open(tt_ctx *ctx, tt_file **file, tt_tensor *t,
                     const char *path, const char *name, int rank,
                     const int64_t *dim);

/* The same, widened into `a`; dim receives the extents found. NULL on an
 * error, also when a value is not finite. */
tt_real *input_read(tt_ctx *ctx, tt_arena *a, const char *path,
                    const char *name, int rank, int64_t *dim);

#endif
