/* run.h: one rollout, shared by the files of this module.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_ROLLOUT_RUN_H
#define TT_ROLLOUT_RUN_H

#include "rollout/rollout.h"

struct tt_rollout {
    tt_arena arena;              /* holds this struct as well                 */
    tt_rollout_options opt;
    const tt_dit *model;
    const tt_prompt *prompt;
    tt_cache *cache;
    tt_schedule schedule, first; /* of all chunks, of the first generated one */
    int64_t C;                   /* latent channels                           */
    int64_t frame_size;          /* C * h * w                                 */
    int64_t chunks;              /* of all rollouts, given ones included      */
    int64_t chunk;               /* the next one                              */
    int64_t rollout;             /* it belongs to; 0 unless restarted         */
    int64_t done;                /* frames of that rollout before it          */
    bool unclean;                /* the last chunk got no clean pass          */
    const tt_host *given;        /* frames this rollout begins with           */
    int64_t ngiven;
    tt_host *clip;               /* rollouts > 1, and where frames run again:
                                    latents of this one so far                */
    tt_host *start;              /* and what it was started from, [overlap]   */
    tt_host *x, *flow, *x0, *noise; /* [chunk, C, h, w]                       */
    float *words;                /* [C, h, w] of the generator                */
    char *identity;              /* what a state depends on                   */
    tt_progress_fn progress;
    void *progress_user;
    double opened;               /* tt_now() at opening                       */
};

/* Pass 0 of the next chunk, with what the scenes say about it. */
tt_pass rollout_pass(const tt_rollout *r, int64_t f);
/* Prompt of the next chunk. */
const tt_prompt *rollout_prompt(const tt_rollout *r);

/* Of its cache, for the heads that the rank of `ctx` holds. */
tt_geometry rollout_geometry(const tt_ctx *ctx, const tt_dit *m,
                             const tt_rollout_options *o);

/* Frames that run again for their keys and values before a chunk with a new
 * prompt, `done` frames in (TT_RECACHES). */
int64_t rollout_recached(const tt_rollout_options *o, int64_t done);

/* ---- scenes.c ------------------------------------------------------------ */

tt_status scenes_check(tt_ctx *ctx, const tt_rollout_options *o);
/* Scene of a chunk; NULL without scenes. */
const tt_scene *scenes_at(const tt_rollout_options *o, int64_t chunk);

/* ---- causvid.c ----------------------------------------------------------- */

tt_status causvid_check(tt_ctx *ctx, const tt_rollout_options *o);
/* The finished rollout's last frames become r->start. */
tt_status causvid_make_start(tt_ctx *ctx, tt_rollout *r);
/* Begin the next rollout from r->start. */
void causvid_restart(tt_ctx *ctx, tt_rollout *r);
/* Frames that are denoised in all rollouts, and in those before the next
 * chunk. */
int64_t causvid_denoised(const tt_rollout_options *o);
int64_t causvid_denoised_before(const tt_rollout *r);

/* ---- sampler.c ----------------------------------------------------------- */

/* Generate the f frames of chunk r->chunk into r->x0 and commit them to the
 * cache (eq. 2). */
tt_status sampler_chunk(tt_ctx *ctx, tt_rollout *r, int64_t f);
/* Commit f given frames, already in r->x0, with one pass at t = 0. */
tt_status sampler_given(tt_ctx *ctx, tt_rollout *r, int64_t f);
/* Commit f frames of an earlier run, already in r->x0, with the clean pass
 * alone. */
tt_status sampler_clean(tt_ctx *ctx, tt_rollout *r, int64_t f);

/* Run the last n frames again with the prompt of the next chunk, for their keys
 * and values (TT_RECACHES); scope chunk.<i>/recache. */
tt_status sampler_recache(tt_ctx *ctx, tt_rollout *r, int64_t n);

/* ---- noise.c ------------------------------------------------------------- */

/* Noise [f, C, h, w] for the f frames of the next chunk; stream as in
 * tt_noise_frame. From the file when the run has one. */
void noise_chunk(tt_host *out, const tt_rollout *r, int64_t f, int stream);

/* Philox4x32-10, of src/golden/noise.c. */
void defined_philox(uint32_t out[4], const uint32_t counter[4],
                    const uint32_t key[2]);

/* ---- state.c ------------------------------------------------------------- */

/* What a state of this run depends on, in r->arena. */
char *state_identity(tt_ctx *ctx, tt_rollout *r);

#endif
