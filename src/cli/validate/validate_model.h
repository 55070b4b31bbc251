/* validate_model.h: the model that `tether validate` runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VALIDATE_MODEL_H
#define CLI_VALIDATE_MODEL_H

#include "cli/generate/model.h"
#include "text/text.h"
#include "validate/validate.h"

typedef struct validate_model {
    tt_dit *dit;
    tt_vae *vae;
    tt_umt5 *enc;
    tt_tokenizer *tok;
    char folder[4096];       /* of the built-in one                           */
} validate_model;

/* Open a model into p and m: the transformer must be there, text encoder and
 * VAE when they are found. Without a path the built-in one; `paths` points into
 * p then. */
tt_status validate_model_open(tt_ctx *ctx, validate_model *p,
                              tt_model_parts *m, tt_model_paths *paths);
void validate_model_close(validate_model *p);

/* Sizes in pixels and latent frames, and the cache policy: "tether" with a
 * budget that a short run fills. */
tt_status validate_model_sizes(tt_ctx *ctx, tt_model_parts *m,
                               const char *cache, int64_t latents,
                               int64_t width, int64_t height, uint64_t seed);

#endif
