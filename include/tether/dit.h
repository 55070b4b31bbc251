/* dit.h: the causal Wan2.1 diffusion transformer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py at inference. All sizes come
 * from the checkpoint and its config; nothing is fixed to 1.3B or 832x480. */
#ifndef TETHER_DIT_H
#define TETHER_DIT_H

#include "tether/api.h"
#include "tether/context.h"
#include "tether/io.h"
#include "tether/policy.h"

TT_API_BEGIN

typedef struct tt_dit_config {
    int64_t dim, ffn_dim, heads, layers;
    int64_t freq_dim;      /* width of the timestep sinusoid                  */
    int64_t in_dim;        /* latent channels C (= out_dim)                   */
    int64_t text_dim;
    int64_t text_len;      /* rows of text states, at most TT_TEXT_LEN_MAX;
                              0: as many as are given                         */
    double eps;
} tt_dit_config;

typedef struct tt_dit tt_dit;

/* Load the transformer. Sizes come from tensor shapes; heads, text_len and eps
 * from the config.json next to the weights (Wan's or Diffusers'), else from
 * `config_path` (NULL: none), else from the published widths, else `heads` (0:
 * not given), else an error naming the option. Every tensor must be there once,
 * with its shape.
 * Owns    `w`, also on failure: it is closed by tt_dit_close, or before an
 *         error returns.
 * Errors  TT_ESHAPE  missing, misshapen or unexpected tensors (counted and
 *                    named), or config.json disagrees with the shapes
 *         those of tt_weights_check
 *         TT_EUNSUPPORTED  another network (image-to-video, VACE, VAE, ...)
 *         TT_EINVAL  the head count is nowhere to be found */
tt_status tt_dit_load(tt_ctx *ctx, tt_dit **out, tt_weights *w,
                      const char *config_path, int64_t heads);
/* For measuring without a file: of the sizes of `c`, with values that follow
 * from them and say nothing. The layers take turns with the weights of the
 * first `distinct` ones, so that few of them stand for all.
 * Errors  TT_EINVAL  no transformer has these sizes */
void tt_dit_close(tt_dit *m);
const tt_dit_config *tt_dit_get_config(const tt_dit *m);

/* What depends on the prompt alone: context = text embedding of all text_len
 * rows, and per block the cross-attention k, v. Computed once per prompt.
 *   text [rows, text_dim], rows <= text_len (zero-padded to text_len)
 * Borrows m and the operators of ctx, which must stay: those make k and v anew
 * for operators that lay them out differently. text may go. In a team every
 * rank makes it from the whole text and holds its part of the rows.
 * Errors  TT_ESHAPE  more rows than text_len; TT_EFORMAT  NaN in the result */
typedef struct tt_prompt tt_prompt;
tt_status tt_prompt_make(tt_ctx *ctx, tt_prompt **out, const tt_dit *m,
                         const tt_host *text, int64_t rows);
void tt_prompt_free(tt_prompt *p);

TT_API_END

#endif
