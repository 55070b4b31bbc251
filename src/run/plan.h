/* plan.h: what the parts of a plan share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   shadow.c      the models without memory and arithmetic
 *   stages.c      the stages of a run, in shadow
 *   share.c       those of one rank of several
 *   plan.c        all of it
 *   calibrate.c   seconds of the calls that the shadow has seen
 *   limits.c      memory that is there
 *   fit.c         what would fit */
#ifndef TT_RUN_PLAN_H
#define TT_RUN_PLAN_H

#include "run/parts.h"
#include "run/shadow.h"
#include "tether/plan.h"

/* Bytes that can still be had, and who says so. */
typedef struct plan_limit {
    int64_t bytes;
    const char *who;
} plan_limit;

/* Beyond what was held, or mapped, `before` the first stage was planned: what
 * the process took since is there for the stages. */
plan_limit plan_memory(int64_t before);
/* What the machine and the control groups have, whatever TT_MEMORY says. */
plan_limit plan_machine(void);
plan_limit plan_addresses(int64_t before);
/* Errors  TT_EINVAL  TT_MEMORY is set and cannot be read */
tt_status plan_memory_check(tt_ctx *ctx);
/* Bytes of this process that no file stands behind; 0 where nobody says. */
int64_t plan_anonymous(void);
/* Bytes of its addresses. */
int64_t plan_mapped(void);
/* Those of the stacks of threads that do not run yet. */
int64_t plan_stacks(int threads);

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes of all embeddings, and of all latents. */
int64_t plan_text_bytes(const tt_run *run);
int64_t plan_latent_bytes(const tt_run *run, const tt_rollout_options *o);

/* A failure in the shadow, whose context `from` is, is one of the plan. */
tt_status plan_hand_over(tt_ctx *ctx, const tt_ctx *from);

/* Chunks that stand for all later ones: policies act in every chunk, every
 * other or every third. */
enum { STEADY = 6 };

/* A rollout in shadow. */
typedef struct rolling {
    shadow *s;
    tt_rollout_options opt;
    tt_arena mem;
    tt_prompt **prompt;
    int nprompt;
    tt_rollout *rollout;
    int64_t prompts;           /* bytes of their keys and values              */
    int64_t host;              /* bytes the process held at most              */
    double seconds;            /* of the host's own work                      */
} rolling;

/* r->s and r->opt are given; `tokens` of the text, 0: not known. It is closed
 * after an error too. */
tt_status rolling_open(rolling *r, const tt_run *run, int64_t tokens);
/* Bytes that its scratch keeps. */
int64_t rolling_close(rolling *r);
/* Of the cache: the first one. */
const tt_layer *rolling_layer(const rolling *r);
/* The first chunk after which nothing grows; none when chunks differ by what
 * happens in them. */
int64_t rolling_steady(const rolling *r);

/* Three frames in shadow: the first two have less history than the third, which
 * is like all later ones and stays marked. */
void plan_decode_some(shadow *s, const tt_vae *vae,
                      const tt_rollout_options *o);

/* The stages. A `budget` of 0 seconds: no time is measured. The one of the
 * latents may have other options than the run's. */
tt_status plan_text(tt_ctx *ctx, const tt_run *run, double budget,
                    tt_needs *n);
tt_status plan_latents(tt_ctx *ctx, const tt_run *run,
                       const tt_rollout_options *o, double budget,
                       tt_needs *n);
/* `before`: what was held before `vae` was opened. */
tt_status plan_decoding(tt_ctx *ctx, const tt_run *run,
                        const tt_rollout_options *o, const tt_vae *vae,
                        int64_t before, double budget, tt_needs *n);
/* Nothing is known yet but this. */
tt_needs plan_nothing(const tt_run *run, int64_t before);
/* Peaks and files from the stages. */
void plan_sum(const tt_run *run, const tt_rollout_options *o, tt_needs *n);

/* tt_now, or what the process has computed. */
typedef double (*plan_clock)(void);
double plan_cpu(void);
/* One thread's own seconds, which other programs lengthen least; of several
 * threads those of the clock on the wall. */
plan_clock plan_clock_of(const tt_ctx *ctx);

/* Seconds of all calls of a shadow, whose weights are still there, with the
 * operators `ops`, found out in about `budget`; `weights`: theirs, where a
 * block is given back after its use, else NULL. Exchanges take none. */
double calibrate(tt_ctx *ctx, const shadow *s, const tt_ops *ops,
                 const tt_weights *weights, plan_clock now, double budget);
/* Seconds that the system takes to find and clear the pages of a shadow's
 * peak, when each is written for the first time. `room`: bytes that are there,
 * of which it takes a quarter at most. Before `calibrate`, which leaves pages
 * behind that are at hand. */
double calibrate_pages(tt_ctx *ctx, const shadow *s, int64_t room,
                       plan_clock now);
/* Seconds until all matrices of a shadow were read from their files, or from
 * what the system has kept of them, for the first time; less the pieces that
 * this reads, which it keeps. Also before `calibrate`, which reads some. With
 * `weights` (see there) only what a second reading does not take. */
double calibrate_reading(tt_ctx *ctx, const shadow *s,
                         const tt_weights *weights, plan_clock now);

/* What tt_run_open plans: text and latents; the decoder, once it is open; the
 * latents with the VAE that clips restart with, which stays open.
 * Errors  TT_ENOMEM  it cannot fit */
tt_status plan_begin(tt_ctx *ctx, tt_run *run);
tt_status plan_decoder(tt_ctx *ctx, tt_run *run, const tt_vae *vae,
                       int64_t before);
tt_status plan_restarts(tt_ctx *ctx, tt_run *run);

/* Keys that `auto` keeps are kept by all ranks or by none. */
tt_status plan_agree(tt_ctx *ctx, tt_run *run);

/* Has the device room to spare for the latents as planned, with keys that are
 * kept, and for the weights? On the host keys are kept with values, laid out,
 * if half of the memory holds all. Ranks count as if all of them shared it. */
bool plan_keeps(const tt_ctx *ctx, const tt_needs *n);

/* TT_ENOMEM when the run cannot fit, with what would. A run that goes on may
 * have all its latents: it is warned of a transformer that does not fit. */
tt_status plan_check(tt_ctx *ctx, const tt_run *run, const tt_needs *n);
/* The same as a warning, of a plan by sizes alone: it is made for a machine
 * that may be too small, and plan_check says nothing of it. */
void plan_warn(tt_ctx *ctx, const tt_run *run);

#endif
