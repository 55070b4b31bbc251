/* plan.h: what the parts of a plan share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   memory.c      bytes: sizes of the parts, summed
 *   time.c        seconds: operations by measured rates
 *   limits.c      memory that is there
 *   fit.c         what would fit */
#ifndef TT_RUN_PLAN_H
#define TT_RUN_PLAN_H

#include "run/parts.h"
#include "run/needs.h"

/* Bytes that can still be had, and what limits them. */
typedef struct plan_limit {
    int64_t bytes;
    const char *who;
} plan_limit;

/* Beyond what was held, or mapped, `before` the run was opened: what the
 * process took since is there for the stages. */
plan_limit plan_memory(int64_t before);
plan_limit plan_addresses(int64_t before);
/* Errors  TT_EINVAL  TT_MEMORY is set and cannot be read */
tt_status plan_memory_check(tt_ctx *ctx);
/* Bytes of this process that have no file; 0: not known. */
int64_t plan_anonymous(void);
/* Bytes of its addresses. */
int64_t plan_mapped(void);
/* Those of the stacks of threads that do not run yet. */
int64_t plan_stacks(int threads);

/* What is asked: these options, and this decoder, whose pictures may come
 * between the chunks. */
typedef struct plan_question {
    tt_rollout_options opt;
    const tt_vae *vae;         /* NULL: nothing is decoded                    */
    bool during;
} plan_question;

/* The answer, for the ranks of `ctx`. */
tt_needs plan_needs(const tt_ctx *ctx, const tt_run *run,
                    const plan_question *q);
/* Does what attention needs of a window stay from pass to pass, packed? */
bool plan_lays_out(const tt_ctx *ctx, const tt_run *run);
/* Rows of a prompt that differ: three letters a token; all of embeddings. */
int64_t plan_tokens(const tt_run *run);

/* What tt_run_open plans: text and latents; the same again once a VAE is open,
 * the one that clips restart with or the decoder `vae`.
 * Errors  TT_ENOMEM  it cannot fit */
tt_status plan_begin(tt_ctx *ctx, tt_run *run);
tt_status plan_decoder(tt_ctx *ctx, tt_run *run, const tt_vae *vae);

/* Keys that `auto` keeps are kept by all ranks or by none. */
tt_status plan_agree(tt_ctx *ctx, tt_run *run);

/* Do they fit, with `spare` a twentieth and 0.5 MB to spare? */
bool plan_fits(const tt_run *run, const tt_needs *n, bool spare);
/* TT_ENOMEM when the run cannot fit, with what would. A run that goes on may
 * have all its latents: it is warned of a transformer that does not fit. */
tt_status plan_check(tt_ctx *ctx, const tt_run *run, const tt_needs *n);
/* The same as a warning, of a plan by sizes alone: it is made for a machine
 * that may be too small, and plan_check says nothing of it. */
void plan_warn(tt_ctx *ctx, const tt_run *run);

#endif
