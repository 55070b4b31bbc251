/* lab.h: the small models of ref_data run through validation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_VALIDATE_LAB_H
#define TT_TESTS_VALIDATE_LAB_H

#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "rollout/rollout.h"
#include "text/text.h"
#include "validate/validate.h"

typedef struct lab {
    tt_ctx *ctx;
    tt_dit *dit;
    tt_prompt *prompt;
    tt_vae *vae;
    tt_umt5 *text;
    const tt_report *report;  /* of the run in progress                       */
    volatile int stop;        /* set at its first failure                     */
} lab;

static inline bool lab_open(lab *l, tt_ctx *ctx)
{
    static tt_real text[24 * 48];
    tt_weights *w;
    *l = (lab){.ctx = ctx};
    for (int i = 0; i < 24 * 48; i++)
        text[i] = (tt_real)(i * 37 % 101) / 50 - 1;
    return expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                     TT_MODEL_DIT, NULL), "weights") &&
           expect_ok(tt_dit_load(ctx, &l->dit, w, NULL, 0), "transformer") &&
           expect_ok(tt_prompt_make(ctx, &l->prompt, l->dit, text, 24),
                     "prompt") &&
           expect_ok(tt_weights_open(ctx, &w,
                                     ref_path("vae_full_a/weights.safetensors"),
                                     TT_MODEL_VAE, NULL), "VAE weights") &&
           expect_ok(tt_vae_load_parts(ctx, &l->vae, w, TT_VAE_DECODER |
                                       TT_VAE_ENCODER), "VAE") &&
           expect_ok(tt_umt5_open(ctx, &l->text,
                                  ref_path("t5_basic/weights.safetensors")),
                     "text encoder");
}

static inline void lab_close(lab *l)
{
    tt_umt5_close(l->text);
    tt_vae_close(l->vae);
    tt_prompt_free(l->prompt);
    tt_dit_close(l->dit);
}

/* A tap that stops the run at the first failure of its report. */
static inline void lab_watch(void *user, const char *path, tt_dtype dtype,
                             int rank, const int64_t *dim, const void *data)
{
    lab *l = user;
    (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
    if (tt_report_first(l->report)) l->stop = 1;
}

static inline tt_status lab_no_frame(void *user, const tt_real *rgb, int64_t h,
                                     int64_t w)
{
    (void)user, (void)rgb, (void)h, (void)w;
    return TT_OK;
}

static inline void lab_embed(lab *l)
{
    enum { ROWS = 13 };
    int64_t ids[ROWS], mask[ROWS];
    const tt_umt5_config *c = tt_umt5_config_of(l->text);
    tt_real *out = malloc((size_t)(ROWS * c->dim) * sizeof *out);
    for (int i = 0; i < ROWS; i++) {
        ids[i] = (i * 5 + 3) % c->vocab;
        mask[i] = i < 8;
    }
    tt_umt5_encode(l->ctx, out, NULL, l->text,
                   &(tt_umt5_input){ids, mask, 1, ROWS, true});
    free(out);
}

static inline void lab_rollout(lab *l)
{
    tt_rollout_options o = tt_rollout_defaults();
    tt_rollout *r = NULL;
    const tt_real *x;
    int64_t frames;
    o.latents = 15;
    o.h = 4;
    o.w = 6;
    o.noise.seed = 11;
    o.policy = tt_policy_defaults("tether");
    o.policy.K = 9;
    o.policy.S = 3;
    if (tt_rollout_open(l->ctx, &r, l->dit, l->prompt, &o) == TT_OK)
        while (tt_rollout_next(l->ctx, r, &x, &frames) == TT_OK) {}
    if (l->ctx->status == TT_END) tt_clear(l->ctx);
    tt_rollout_close(r);
}

static inline void lab_pictures(lab *l)
{
    enum { H = 2, W = 3 };
    const int64_t C = tt_vae_z(l->vae);
    tt_real z[64 * H * W], rgb[64 * H * W * 3];
    tt_vae_decoder *d = NULL;
    tt_vae_encoder *e = NULL;
    bool ready;
    if (C > 64) return;
    for (int i = 0; i < 64 * H * W; i++) z[i] = (tt_real)(i * 29 % 83) / 40 - 1;
    for (int i = 0; i < 64 * H * W * 3; i++)
        rgb[i] = (tt_real)(i * 31 % 97) / 48 - 1;
    if (tt_vae_decoder_open(l->ctx, &d, l->vae, H, W) == TT_OK)
        for (int f = 0; f < 2 && !l->ctx->status; f++)
            tt_vae_decode_next(l->ctx, d, z, lab_no_frame, NULL);
    tt_vae_decoder_close(d);
    if (tt_vae_encoder_open(l->ctx, &e, l->vae, 16, 24) == TT_OK)
        for (int f = 0; f < 5 && !l->ctx->status; f++)
            tt_vae_encode_next(l->ctx, e, z, &ready, rgb);
    tt_vae_encoder_close(e);
}

/* A text, a rollout long enough for TetherCache to edit, two latent frames to
 * pictures and five pictures to latents, every operator call checked. With
 * `first`, until something fails. */
static inline void lab_model(lab *l, tt_report *report, const tt_ops *ops,
                             const tt_arith *arith, bool first)
{
    void (*const part[])(lab *) = {lab_embed, lab_rollout, lab_pictures};
    tt_shadow *shadow = NULL;
    tt_ctx *ctx = l->ctx;
    l->report = report;
    l->stop = 0;
    if (!expect_ok(tt_shadow_open(ctx, &shadow, report, ops, arith),
                   "shadow"))
        return;
    if (first) {
        ctx->tap = lab_watch;
        ctx->tap_user = l;
        ctx->interrupt = &l->stop;
    }
    for (int i = 0; i < 3 && !l->stop; i++) {
        part[i](l);
        if (ctx->status == TT_EINTR) tt_clear(ctx);
        if (!expect_ok(ctx->status, "the model run")) break;
    }
    ctx->tap = NULL;
    ctx->interrupt = NULL;
    ctx->path[0] = 0;
    tt_shadow_close(ctx, shadow);
}

#endif
