/* rollout.h: what the modules use of tether/rollout.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_ROLLOUT_ROLLOUT_H
#define TT_ROLLOUT_ROLLOUT_H

#include "cache/policy.h"
#include "dit/dit.h"
#include "tether/rollout.h"
#include "vae/vae.h"

/* ---- schedule ------------------------------------------------------------ */

/* The two tables alone, shift > 0; no steps. */
void tt_schedule_table(tt_schedule *s, double shift);
/* timestep[1000 - d], and 0 for d = 0; d in 0..1000. */
double tt_schedule_warp(const tt_schedule *s, int d);
/* x0 = x - sigma(t) flow, in double, rounded once. In place allowed. */
void tt_flow_to_x0(const tt_schedule *s, tt_host *x0, const tt_host *x,
                   const tt_host *flow, double t, int64_t n);
/* x = (1 - sigma(t)) x0 + sigma(t) noise, in tt_real, every operation rounded.
 * In place allowed. */
void tt_add_noise(const tt_schedule *s, tt_host *x, const tt_host *x0,
                  const tt_host *noise, double t, int64_t n);

/* ---- scenes: a video with several prompts -------------------------------- */

typedef struct tt_scenes {
    int n;
    tt_scene *scene;        /* [n], scene[0].chunk = 0, ascending             */
    int nprompts;
    const char **prompt;    /* [nprompts] distinct, in order of appearance    */
} tt_scenes;

/* Which boundary a `#` makes a cut. infinity-RoPE's README: the one where the
 * scene that carries it begins. Its code: the one where that scene ends. */
typedef enum tt_cut_rule { TT_CUT_OFFICIAL, TT_CUT_README } tt_cut_rule;

/* infinity-RoPE's syntax, "A[3s] | B[2.3s#] | C": scenes between `|`, each with
 * an optional tag [<seconds>s] or [<seconds>s#] that is taken out of the text.
 * A scene lasts max(1, floor(seconds 16 / (4 chunk))) chunks, 14 without a
 * tag, the last one until the end of the video. Everything lives in `a`.
 * Errors  TT_EINVAL names the scene. Warns where a `#` has no effect. */
tt_status tt_scenes_parse(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                          const char *text, int64_t chunk, tt_cut_rule rule);
/* A schedule, one scene per line: its first chunk, blanks, its prompt. The
 * first line says 0; a `#` right after the number makes a cut of that scene's
 * beginning; blank lines are skipped.
 *   name   of the file, for messages */
tt_status tt_scenes_parse_schedule(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                                   const char *text, const char *name);

/* ---- rollout ------------------------------------------------------------- */

/* One line with everything that decides about the bits, in `mem`; the length of
 * a single rollout is not part of it. */
char *rollout_identity(tt_ctx *ctx, tt_arena *mem, const tt_dit *dit,
                       const tt_rollout_options *o);
/* The first thing that differs between two such lines, in words: "seed: 1
 * there, 2 here". */
void rollout_difference(char *buf, size_t n, const char *theirs,
                        const char *ours);

/* Set steps, warp and shift to what the policy's official release uses. */
void tt_rollout_use_schedule(tt_rollout_options *opt, const char *policy);

/* Refuse what tt_rollout_open would refuse, before anything is allocated and
 * without a warning. Prompts, VAE and tensors need not be there yet.
 * Errors  TT_EINVAL */
tt_status tt_rollout_check(tt_ctx *ctx, const tt_dit *m,
                           const tt_rollout_options *opt);

/* Bytes of cache and activations it will need here, before opening; a guess for
 * the activations. In a team they are one rank's. -1 when the options are
 * impossible. */
int64_t tt_rollout_bytes(const tt_ctx *ctx, const tt_dit *m,
                         const tt_rollout_options *opt);

int64_t tt_rollout_chunks(const tt_rollout *r);
/* Frames of chunk i (given chunks included). */
int64_t tt_rollout_chunk_frames(const tt_rollout *r, int64_t i);

/* Frames produced so far, given ones included. */
int64_t tt_rollout_frames_done(const tt_rollout *r);

/* The other way to go on: rebuild the cache from the latents produced so far
 * [frames, C, h, w], given ones first, with one clean pass per chunk. Same bits
 * as the run that produced them, a fifth of its time, and no state file.
 * Errors  TT_EINVAL when `frames` does not end with a chunk;
 *         TT_EUNSUPPORTED for a policy that keeps noisy passes' work
 *         (deep-forcing): only a saved state continues those. */
tt_status tt_rollout_replay(tt_ctx *ctx, tt_rollout *r, const tt_host *latents,
                            int64_t frames);

#endif
