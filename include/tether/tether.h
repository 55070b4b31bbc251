/* tether.h: everything. Include this, or the one header you need.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     tt_ctx ctx;  tt_ctx_init(&ctx);
 *     tt_weights *w;  tt_dit *net;  tt_prompt *prompt;  tt_rollout *run;
 *     tt_weights_open(&ctx, &w, "Wan2.1-T2V-1.3B", TT_MODEL_DIT, NULL);
 *     tt_dit_load(&ctx, &net, w, NULL, 0);
 *     tt_prompt_make(&ctx, &prompt, net, text, 512);
 *     tt_rollout_options opt = tt_rollout_defaults();
 *     opt.latents = 21;  opt.h = 60;  opt.w = 104;
 *     tt_rollout_open(&ctx, &run, net, prompt, &opt);
 *     const tt_real *latents;  int64_t frames;
 *     while (tt_rollout_next(&ctx, run, &latents, &frames) == TT_OK)
 *         ...   // hand them to tt_vae_decode_next
 *     if (ctx.status) puts(tt_message(&ctx));                                */
#ifndef TETHER_TETHER_H
#define TETHER_TETHER_H

#include "tether/analyze.h"
#include "tether/arena.h"
#include "tether/backend.h"
#include "tether/context.h"
#include "tether/dit.h"
#include "tether/io.h"
#include "tether/mathfn.h"
#include "tether/ops.h"
#include "tether/outfile.h"
#include "tether/policy.h"
#include "tether/rollout.h"
#include "tether/status.h"
#include "tether/tensor.h"
#include "tether/text.h"
#include "tether/threads.h"
#include "tether/vae.h"
#include "tether/version.h"
#include "tether/video.h"

#endif
