/* rollout.h: schedule, noise and the chunk-by-chunk rollout.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing pipeline/causal_inference.py, utils/scheduler.py;
 *         infinity-RoPE (scene lists); CausVid (restarts), from its
 *         specification. */
#ifndef TETHER_ROLLOUT_H
#define TETHER_ROLLOUT_H

#include "tether/api.h"
#include "tether/dit.h"
#include "tether/policy.h"
#include "tether/vae.h"

TT_API_BEGIN

/* ---- schedule ------------------------------------------------------------ */

#define TT_TABLE 1000
#define TT_MAX_STEPS 100

/* sigma_i = s u / (1 + (s-1) u), u = 1 - i/1000, in double, rounded once to
 * float32; timestep_i = float32(1000 sigma_i), the product in float32. */
typedef struct tt_schedule {
    double shift;
    float sigma[TT_TABLE], timestep[TT_TABLE];
    int nsteps;
    double t[TT_MAX_STEPS];      /* timesteps the network sees                */
} tt_schedule;

/* list: step values as configured (1000, 750, 500, 250); warp maps them to
 * the table. TT_EINVAL: shift not positive, list empty, too long, not strictly
 * decreasing or outside 0..1000, not whole or 0 with warp, or a step whose
 * integer part equals context_noise (it would be taken for the clean pass). */
tt_status tt_schedule_init(tt_ctx *ctx, tt_schedule *s, double shift,
                           const double *list, int n, bool warp,
                           int64_t context_noise);

/* Index of the table entry nearest to t (first minimum). */
int tt_schedule_index(const tt_schedule *s, double t);

/* ---- noise: generator tn1 ------------------------------------------------ */

/* Standard normals of one latent frame: out[e], e < n, e row-major in
 * [C, h, w]. A value depends on nothing but seed, sample, frame, stream, e.
 *   frame    index among the generated frames, given ones not counted
 *   stream   0: initial noise; j+1: re-noise drawn after denoising step j
 * Source  src/rollout/README.md: Philox4x32-10 and Box-Muller in double. */
void tt_noise_frame(float *out, int64_t n, uint64_t seed, uint32_t sample,
                    uint32_t frame, uint32_t stream);

/* Where a rollout gets its noise from: the generator, or tensors of a file. */
typedef struct tt_noise_source {
    uint64_t seed;
    uint32_t sample;
    const tt_host *noise;   /* NULL: generator. [n, C, h, w]                  */
    const tt_host *renoise; /* [sum over chunks of (steps-1)*frames, C, h, w] */
} tt_noise_source;          /* several rollouts: theirs one after the other;
                               noise has all frames of each, renoise only those
                               that are denoised                              */

/* ---- scenes: a video with several prompts -------------------------------- */

/* From chunk `chunk` on (given chunks counted, and all rollouts), until the
 * next scene begins. */
typedef struct tt_scene {
    int64_t chunk;
    int prompt;             /* index into the prompts                         */
    bool cut;               /* begins with a cut: infinity jumps in time      */
} tt_scene;

/* ---- rollout ------------------------------------------------------------- */

typedef struct tt_rollout_options {
    int64_t latents;             /* frames to generate                        */
    int64_t h, w;                /* latent height and width                   */
    int64_t chunk;               /* 3                                         */
    bool independent_first_frame;
    int64_t context_noise;       /* 0                                         */
    double steps[TT_MAX_STEPS];  /* 1000 750 500 250                          */
    int nsteps;
    double first_steps[TT_MAX_STEPS]; /* of the first chunk that is generated */
    int nfirst;                  /* 0: as the others                          */
    bool warp;                   /* true                                      */
    double shift;                /* 5                                         */
    tt_noise_source noise;
    const tt_host *initial;      /* NULL or given latents [n0, C, h, w]       */
    int64_t initial_frames;
    tt_policy_options policy;
    /* Scenes; nscenes 0: the prompt given at opening, throughout. Borrowed. */
    const tt_scene *scenes;
    int nscenes;
    const tt_prompt *const *prompts; /* [nprompts]                            */
    int nprompts;
    /* CausVid's long videos (policy causvid): `latents` frames per rollout;
     * every rollout but the first begins with the last `overlap` frames of the
     * one before, given to it as latents. See src/rollout/causvid.c. */
    int64_t rollouts, overlap;   /* 1, 3                                      */
    const tt_host *start_frame;  /* NULL, or [rollouts-1, C, h, w]: the first
                                    of those frames, instead of the VAE's     */
    const tt_vae *vae;           /* both halves; makes it otherwise           */
    bool latent_restart;         /* neither: reuse the latent as it is. Not
                                    what CausVid does                         */
    bool keep_keys;              /* rotated keys, or what is packed of keys
                                    and values, from pass to pass of a chunk
                                    (policy.h); no bit depends on it. false   */
    bool bf16_kv;                /* the cache holds bf16 numbers where class and
                                    policy allow it (tt_geometry.bf16): no one
                                    looks at its keys. A saved state has them
                                    so. No bit of a video depends on it. false*/
    const char *kv_dir;          /* NULL, or a folder: its files hold the cache
                                    (tt_cache_open_in). Borrowed until close  */
    bool ends;                   /* no one asks for the cache after the last
                                    chunk: it gets no clean pass, unless a tap
                                    is set, and tt_rollout_save refuses it.
                                    The same on all ranks. false              */
    const char *origin;          /* NULL, or what else the run is made from
                                    (prompt, files): a saved state of another
                                    origin is refused                         */
} tt_rollout_options;
tt_rollout_options tt_rollout_defaults(void);

typedef struct tt_rollout tt_rollout;

/* Where a rollout stands; for progress lines. */
typedef struct tt_progress {
    int64_t chunk, chunks;       /* given chunks included                     */
    int step, steps;             /* passes of this chunk, the clean one, if
                                    any, included                             */
    double seconds;              /* since the rollout was opened              */
} tt_progress;
typedef void (*tt_progress_fn)(void *user, const tt_progress *p);

/* Validate everything, plan memory, allocate. Borrows model, prompt, noise,
 * scenes, VAE and initial latents until close. With scenes `prompt` is not
 * used and may be NULL.
 * Errors  TT_EINVAL names the broken rule and, where numbers must divide, the
 *         nearest values that do. */
tt_status tt_rollout_open(tt_ctx *ctx, tt_rollout **out, const tt_dit *m,
                          const tt_prompt *prompt,
                          const tt_rollout_options *opt);
void tt_rollout_close(tt_rollout *r);
void tt_rollout_on_progress(tt_rollout *r, tt_progress_fn fn, void *user);

/* The next chunk, given chunks first.
 * A rollout after a restart gives its given frames first, as any other: the
 * video is `rollouts` pieces of `latents` frames each.
 *   *out    [*frames, C, h, w], in the run's memory until the next call
 * Errors  TT_END when the video is complete (not recorded in ctx); TT_EINTR
 *         between passes when the user asked to stop; TT_EFORMAT when the
 *         network produced NaN or infinity. After any but TT_END the chunk in
 *         progress is lost, the cache holds half of it, and only
 *         tt_rollout_close or tt_rollout_restore may follow.
 * Taps    chunk.<i>/step.<j>/flow and x0: j counts the passes of the chunk,
 *         the last is the clean one (its x0 is for the record only). */
tt_status tt_rollout_next(tt_ctx *ctx, tt_rollout *r, const tt_host **out,
                          int64_t *frames);
/* After the last chunk of a run that `ends` it is in no defined state. */
tt_cache *tt_rollout_cache(tt_rollout *r);

/* Save and restore the state between chunks (--resume). The file holds the
 * cache, the policy state and what it was made from; loading refuses a file
 * of another run and names the first difference. The latents produced so far
 * are the caller's to keep.
 * In a team rank 0 writes and reads `path`, for all; what the others give is
 * not looked at. The file is that of one process, and any number of ranks reads
 * it. Its failures are everybody's, and the team stands (tt_team_stands).
 * Errors  TT_EINVAL  the last chunk got no clean pass (`ends`) */
tt_status tt_rollout_save(tt_ctx *ctx, const tt_rollout *r, const char *path);
tt_status tt_rollout_restore(tt_ctx *ctx, tt_rollout *r, const char *path);

TT_API_END

#endif
