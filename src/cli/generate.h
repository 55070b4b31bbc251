/* generate.h: what the parts of `tether generate` share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   generate_options.c   the option table and every rule about options
 *   generate_policy.c    those of the cache policies
 *   generate_scenes.c    scenes, and restarts with their noise
 *   generate_text.c      prompts to embeddings; the encoder is gone afterwards
 *   generate_names.c     what the files of a video are called
 *   generate_origin.c    what a run is made from, in one line
 *   generate_run.c       one video: rollout, latents file, stop and resume
 *   cmd_generate.c       the order of it all */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "cli/decode.h"
#include "cli/encode.h"
#include "cli/latents_file.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "tether/rollout.h"

/* One knob of the policies; all of them, by name, are at most so many. */
#define KNOBS_MAX 48
typedef union knob_setting {
    int64_t n;
    double x;
    const char *text;
} knob_setting;

/* Settings exactly as the options gave them; defaults in generate_defaults. */
typedef struct generate {
    model_paths model;
    /* text */
    const char *prompt, *prompt_file, *embeds;
    /* size and length; 0: not given */
    const char *size;
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
    const char *cache, *preset;
    knob_setting knob[KNOBS_MAX];   /* what a record shows                    */
    /* scenes and restarts */
    const char *scene, *scene_file, *cut_rule;
    int64_t rollouts, overlap;
    const char *restart;
    /* output */
    const char *output, *animation, *sheet, *latents_out, *preview;
    bool no_decode, vbench_name;
    /* records */
    const char *record, *dump, *dump_filter, *trace;
    const char *inject, *inject_filter;
    const char *analyze, *label;  /* run folder; its name in legends          */
    bool profile;
    /* files that are there */
    bool resume, overwrite;
} generate;

extern const opt_command generate_command;
/* Complete its table with the knobs of all policies; call it once, first. */
void generate_fill_options(void);
generate generate_defaults(void);

/* Everything that can be said from the options alone. Fills the rollout
 * options (sizes of 0 stay 0 until files are read). -1, or exit status 2. */
int generate_check(generate *g, const opt_result *given,
                   tt_rollout_options *opt);

/* Would `generate` with these arguments refuse to begin? Reads options, scenes
 * and the headers of files, checks every rule about them and writes nothing:
 * for commands that run it several times. 0, or the exit status after its
 * sentence. */
int generate_try(tt_ctx *ctx, int argc, char **argv);

/* Those about cache policies; called by generate_check. -1, or 2. */
int generate_fill_policy(generate *g, const opt_result *given,
                         tt_policy_options *p);
/* One row per knob that any policy has, at most `room`: their number. */
int generate_knob_options(opt_spec *rows, int room);
/* `text`, then a line per policy, or preset. */
const char *generate_policy_help(const char *text);
const char *generate_preset_help(const char *text);

/* The number of latent frames from --latents, --frames or --seconds, once it
 * is known whether frames are given; refuses what is not whole chunks. */
tt_status generate_length(tt_ctx *ctx, const generate *g,
                          const opt_result *given, tt_rollout_options *opt);

/* Video frames that are generated, given ones not counted: what --frames
 * says. With several rollouts those of one. */
int64_t generate_frames(const tt_rollout_options *opt);

/* ---- scenes and restarts ------------------------------------------------- */

/* Scenes of --scene or --scene-file; none (n = 0) without them. */
tt_status scenes_read(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                      const generate *g);
/* Noise of several rollouts: noise [rollouts, W, C, h, w], renoise_r0, _r1, ...
 * and, when the file has it, start_frame. h and w may be -1 in opt. */
tt_status restarts_read_noise(tt_ctx *ctx, tt_arena *a, const char *path,
                              int64_t C, bool length_given,
                              tt_rollout_options *opt);

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
    int64_t *line;          /* [n] of --prompt-file; NULL: from elsewhere     */
    tt_real *text;          /* [n, rows, dim]                                 */
    int64_t rows, dim;
    tt_arena mem;
} texts;

/* What is to be encoded: the prompts of the scenes when there are any. Refuses
 * what is not UTF-8, naming file and line. */
tt_status texts_collect(tt_ctx *ctx, texts *t, const generate *g,
                        const tt_scenes *scenes);
/* Then read or compute their embeddings. */
tt_status texts_make(tt_ctx *ctx, texts *t, const generate *g,
                     const tt_dit_config *dit, progress *p, record *r);
void texts_free(texts *t);
/* Scope of what belongs to prompt i of a video: none for the first, else
 * "prompt.<i>"; ends with tt_scope_end. */
size_t texts_scope(tt_ctx *ctx, int i);
/* The whole file as text in `a`; refuses NUL bytes. */
char *texts_read_file(tt_ctx *ctx, tt_arena *a, const char *path);

/* ---- one video ----------------------------------------------------------- */

/* Names of what belongs to one video; NULL: not wanted. */
typedef struct video_names {
    const char *output, *animation, *sheet, *latents, *preview;
    const char *record, *dump, *trace;
    const char *analyze;      /* run folder                                   */
} video_names;

/* Which of the videos of one command. */
typedef struct video_which {
    const char *prompt;       /* for --vbench-name                            */
    int number;               /* of the prompt                                */
    bool several;             /* prompts that get a video each                */
    int64_t sample;
    uint64_t seed;
} video_which;

/* All names of one video, from the options; in `mem`. */
video_names names_make(tt_ctx *ctx, tt_arena *mem, const generate *g,
                       const video_which *which);
/* FOLDER/NAME in `mem`; NULL without a folder. */
const char *names_in(tt_ctx *ctx, tt_arena *mem, const char *folder,
                     const char *name);

typedef struct video_job {
    const generate *g;
    const tt_dit *dit;
    const tt_prompt *prompt;
    const char *text;         /* the prompt, with scenes the first one; NULL:
                                 from embeddings                              */
    const tt_recorder_scene *scene; /* [opt.nscenes]                          */
    tt_rollout_options opt;   /* complete, with noise and seed                */
    video_names names;
    latents_file file;        /* claimed for names.latents                    */
    bool fresh;               /* no earlier run made these files              */
    record *record;
    progress *progress;
} video_job;

/* One line with everything that decides about the bits; in `mem`. */
char *generate_describe(tt_ctx *ctx, tt_arena *mem, const video_job *job);

/* What is kept inside pictures and videos: the prompt, then a line of settings,
 * "Steps: 4, ..., Seed: 7, Size: 64x64, ...", as viewers of such text read it.
 * In `mem`. */
const char *generate_comment(tt_ctx *ctx, tt_arena *mem, const video_job *job);

/* The shape of its latents: [rollouts, n0+n, C, h, w]. */
void generate_shape(int64_t dim[5], const video_job *job);

/* Generate the latents of one video in `mem`, and in job->file. After TT_EINTR
 * what --resume needs is beside names.latents. */
tt_status generate_run(tt_ctx *ctx, tt_arena *mem, tt_tensor *latents,
                       video_job *job);

#endif
