/* generate.h: what the parts of `tether generate` share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   generate_options.c   the option table and every rule about options
 *   generate_text.c      prompts to embeddings; the encoder is gone afterwards
 *   generate_run.c       one video: rollout, latents file, stop and resume
 *   cmd_generate.c       the order of it all */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "cli/decode.h"
#include "cli/encode.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "tether/rollout.h"

/* Settings exactly as the options gave them; defaults in generate_defaults. */
typedef struct generate {
    model_paths model;
    /* text */
    const char *prompt, *prompt_file, *embeds;
    /* size and length; 0: not given */
    int64_t width, height, latents, frames;
    double seconds;
    /* noise */
    uint64_t seed;
    int64_t sample, num_samples;
    const char *seed_rule, *noise;
    /* sampler */
    const char *steps;
    int warp, independent_first_frame;
    double shift;
    int64_t chunk, context_noise;
    const char *initial, *image, *initial_video;
    int64_t initial_frames;
    /* policy */
    const char *cache, *preset, *pool;
    int64_t budget, sink, recent, memory;
    double alpha, tau, temperature;
    const char *later;            /* options of policies to come              */
    /* output */
    const char *output, *sheet, *latents_out, *preview;
    bool no_decode, vbench_name;
    /* records */
    const char *record, *dump, *dump_filter, *trace;
    bool profile;
    /* long runs */
    bool resume;
} generate;

extern const opt_command generate_command;
generate generate_defaults(void);

/* Everything that can be said from the options alone. Fills the rollout
 * options (sizes of 0 stay 0 until files are read). -1, or exit status 2. */
int generate_check(generate *g, const opt_result *given,
                   tt_rollout_options *opt);

/* The number of latent frames from --latents, --frames or --seconds, once it
 * is known whether frames are given; refuses what is not whole chunks. */
tt_status generate_length(tt_ctx *ctx, const generate *g,
                          const opt_result *given, tt_rollout_options *opt);

/* ---- given frames -------------------------------------------------------- */

/* What --image or --initial-video names; path NULL: neither was given. */
typedef struct given_frames {
    encode_input in;
    encode_size size;
} given_frames;

/* Look at it: fills opt->initial_frames and, for a video, opt->w and h (where
 * they are 0 the video keeps its size). Refuses what is not whole chunks. */
tt_status given_plan(tt_ctx *ctx, given_frames *v, const generate *g,
                     tt_rollout_options *opt);
/* Encode it into `mem`: opt->initial [initial_frames, C, h, w]. The VAE of
 * `g` is opened for it and closed again; `source` is told where from. */
tt_status given_encode(tt_ctx *ctx, tt_arena *mem, given_frames *v,
                       progress *p, const generate *g, int64_t C,
                       tt_rollout_options *opt, model_source *source);

/* ---- text ---------------------------------------------------------------- */

typedef struct texts {
    int n;                  /* prompts                                        */
    const char **prompt;    /* [n]; NULL entries with --embeds                */
    tt_real *text;          /* [n, rows, dim]                                 */
    int64_t rows, dim;
    tt_arena mem;
} texts;

/* Read or compute the embeddings of all prompts. */
tt_status texts_make(tt_ctx *ctx, texts *t, const generate *g,
                     const tt_dit_config *dit, progress *p, record *r);
void texts_free(texts *t);

/* ---- one video ----------------------------------------------------------- */

/* Names of what belongs to one video; NULL: not wanted. */
typedef struct video_names {
    const char *output, *sheet, *latents, *preview, *record, *dump, *trace;
} video_names;

typedef struct video_job {
    const generate *g;
    const tt_dit *dit;
    const tt_prompt *prompt;
    tt_rollout_options opt;   /* complete, with noise and seed                */
    video_names names;
    record *record;
    progress *progress;
} video_job;

/* Generate the latents of one video: [1, n0+n, C, h, w] in `mem`, and in the
 * file names.latents when that is given. After TT_EINTR the state is saved
 * beside names.latents for --resume. */
tt_status generate_run(tt_ctx *ctx, tt_arena *mem, tt_tensor *latents,
                       video_job *job);

#endif
