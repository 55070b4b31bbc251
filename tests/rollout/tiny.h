/* tiny.h: whole rollouts of a small model, for tests of properties.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_ROLLOUT_TINY_H
#define TT_TESTS_ROLLOUT_TINY_H

#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/backend.h"
#include "rollout/rollout.h"

enum { C = 16, HH = 4, WW = 6, SIZE = C * HH * WW, FRAMES = 24 };
enum { CLIP = 9 };               /* frames of a rollout in restart tests */

static tt_dit *model;
static tt_prompt *prompt;

/* What a rank holds of the prompt is its own: each makes it. */
static inline tt_status make_prompt(tt_ctx *ctx, tt_prompt **out)
{
    tt_real text[24 * 48];
    for (int i = 0; i < 24 * 48; i++)
        text[i] = (tt_real)(i * 37 % 101) / 50 - 1;
    return tt_prompt_make(ctx, out, model, text, 24);
}

static inline void load(tt_ctx *ctx)
{
    tt_weights *w;
    if (!expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                   TT_MODEL_DIT, NULL), "weights")
        || !expect_ok(tt_dit_load(ctx, &model, w, NULL, 0), "model"))
        exit(1);
    expect_ok(make_prompt(ctx, &prompt), "prompt");
}

static inline tt_rollout_options options(const char *policy, int64_t K,
                                         int64_t S)
{
    tt_rollout_options o = tt_rollout_defaults();
    o.latents = FRAMES;
    o.h = HH;
    o.w = WW;
    o.noise.seed = 11;
    o.policy = tt_policy_defaults(policy);
    o.policy.K = K;
    o.policy.S = S;
    return o;
}

/* Evicts as soon as possible: after 9 frames, or after 6 (infinity). */
static inline tt_rollout_options evicting_for(const char *name, int64_t latents,
                                              int64_t rollouts)
{
    tt_rollout_options o = options(name, 9, 1);
    const char *is = o.policy.name;
    o.latents = latents;
    if (!strcmp(is, "full")) o.policy = tt_policy_defaults("full");
    if (!strcmp(is, "infinity")) o.policy.K = 6;
    if (!strcmp(is, "deep-forcing")) {
        o.policy.R = 4;
        tt_policy_put(&o.policy, "compress-to", 7);
        tt_policy_put(&o.policy, "max-reuse", 2);
    }
    if (!strcmp(is, "causvid")) {
        o.latents = CLIP;
        o.rollouts = rollouts;
        o.latent_restart = true;
    }
    return o;
}

static inline tt_rollout *start(tt_ctx *ctx, const tt_rollout_options *o)
{
    tt_rollout *r = NULL;
    if (!expect_ok(tt_rollout_open(ctx, &r, model, prompt, o), "open"))
        exit(1);
    return r;
}

/* Run up to `chunks` more chunks into out; frames written. */
static inline int64_t go(tt_ctx *ctx, tt_rollout *r, tt_real *out,
                         int64_t chunks)
{
    const tt_real *x;
    int64_t f, done = 0;
    while (chunks-- > 0 && tt_rollout_next(ctx, r, &x, &f) == TT_OK) {
        memcpy(out + done * SIZE, x, (size_t)(f * SIZE) * sizeof *x);
        done += f;
    }
    expect_ok(ctx->status, "chunks");
    return done;
}

/* The latents of all rollouts; room for FRAMES at least. */
static inline tt_real *whole(tt_ctx *ctx, const tt_rollout_options *o)
{
    const int64_t all = (o->initial_frames + o->latents) * o->rollouts;
    tt_real *out = calloc((size_t)(all > FRAMES ? all : FRAMES) * SIZE,
                          sizeof *out);
    tt_rollout *r = start(ctx, o);
    const int64_t n = go(ctx, r, out, 100);
    const tt_real *x;
    expect(n == all, "all frames");
    expect(tt_rollout_next(ctx, r, &x, &(int64_t){0}) == TT_END
           && !ctx->status, "then the end");
    tt_rollout_close(r);
    return out;
}

#endif
