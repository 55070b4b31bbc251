/* walk.h: what the two ways of running the model share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_WALK_H
#define TT_VALIDATE_WALK_H

#include "validate/validate.h"

/* The prompt made with whatever ctx->ops is; NULL after a failure. */
tt_prompt *walk_prompt(tt_ctx *ctx, const tt_model_parts *m);

/* A prompt, a rollout, its first latents decoded, a few pictures encoded. */
void walk_all(tt_ctx *ctx, const tt_model_parts *m);

#endif
