/* validate_model.c: see validate_model.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/validate_model.h"

#include <string.h>

void validate_model_close(validate_model *p)
{
    tt_dit_close(p->dit);
    tt_vae_close(p->vae);
    if (p->enc) tt_umt5_close(p->enc);
    if (p->tok) tt_tokenizer_close(p->tok);
}

tt_status validate_model_open(tt_ctx *ctx, validate_model *p,
                              tt_model_parts *m, tt_model_paths *paths)
{
    const char *encoder;
    char spiece[4096];
    if (!paths->model && !paths->dit && !paths->checkpoint) {
        TT_TRY(model_find_builtin(ctx, p->folder, sizeof p->folder));
        paths->model = p->folder;
    }
    TT_TRY(tt_model_open_dit(ctx, &p->dit, paths, NULL));
    m->dit = p->dit;
    if (tt_model_open_vae_part(ctx, &p->vae, paths,
                               TT_VAE_DECODER | TT_VAE_ENCODER, NULL)
        == TT_OK) {
        m->decoder = m->encoder = true;
    } else if (ctx->status == TT_EIO) {         /* there is none */
        tt_clear(ctx);
    }
    m->vae = p->vae;
    TT_TRY(ctx->status);
    if (tt_model_tokenizer(ctx, spiece, sizeof spiece, paths) == TT_OK &&
        tt_model_text_encoder(ctx, &encoder, paths) == TT_OK) {
        tt_tokenizer_open(ctx, &p->tok, spiece);
        const tt_weights_options opt = {.ema = -1, .lora = paths->lora};
        tt_weights *w;
        if (!tt_weights_open(ctx, &w, encoder, TT_MODEL_T5, &opt))
            tt_umt5_load(ctx, &p->enc, w);
    } else {
        tt_clear(ctx);
    }
    m->encoder_text = p->enc;
    m->tokenizer = p->tok;
    return ctx->status;
}

tt_status validate_model_sizes(tt_ctx *ctx, tt_model_parts *m,
                               const char *cache, int64_t latents,
                               int64_t width, int64_t height, uint64_t seed)
{
    if (!tt_policy_find(cache))
        return tt_fail(ctx, TT_EINVAL, "--cache %s: no such policy; see tether "
                       "--help", cache);
    m->rollout.latents = latents;
    m->rollout.w = width / 8;
    m->rollout.h = height / 8;
    m->rollout.policy = tt_policy_defaults(cache);
    if (!strcmp(cache, "tether"))
        m->rollout.policy.K = 9, m->rollout.policy.M = -1,
        m->rollout.policy.S = 3, m->rollout.policy.R = 4;
    m->rollout.noise.seed = seed;
    return TT_OK;
}
