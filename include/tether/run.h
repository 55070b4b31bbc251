/* run.h: a run: settings by name, and videos from them chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What `tether generate` does, without a terminal: text, noise, given frames,
 * scenes, the rollout, the file of latents, stop and resume.
 *
 *     tt_settings s = tt_settings_defaults();
 *     tt_settings_set(&ctx, &s, "model", "ref_data/demo");
 *     tt_settings_set(&ctx, &s, "prompt", "a red circle moves left and "
 *                     "bounces, on a blue background");
 *     tt_settings_set(&ctx, &s, "latents", "9");
 *     tt_settings_set(&ctx, &s, "latents-out", "red.safetensors");
 *     tt_settings_set(&ctx, &s, "no-decode", NULL);
 *     tt_run *run;
 *     tt_run_open(&ctx, &run, &s, NULL);
 *     while (tt_run_next(&ctx, run, &x0, &frames) == TT_OK) { ... }
 *     tt_run_close(run);
 *     tt_settings_free(&s);
 *
 * Names, rules and help of the settings are those of the command line, which
 * is made from the same table. */
#ifndef TETHER_RUN_H
#define TETHER_RUN_H

#include "tether/api.h"
#include "tether/backend.h"
#include "tether/rollout.h"

TT_API_BEGIN

/* ---- where the parts of the model are ------------------------------------ */

/* `model` names a folder that holds everything (the original Wan2.1 folder, a
 * Diffusers folder, or single files side by side); every part can be given by
 * itself. NULL: not given. */
typedef struct tt_model_paths {
    const char *model, *dit, *vae, *tiny_vae;
    const char *text_encoder, *tokenizer, *checkpoint;
    const char *lora; /* of tt_weights_options; for the text encoder too      */
    const char *vae_class; /* of classes.h; f32 where it is not given         */
    const char *history_dir; /* of tt_vae_use_folder                          */
    bool sizes_alone; /* `model` is the name of a published model, of which
                         a plan needs no more; tt_run_open sets it            */
    bool shapes_alone; /* a plan, which needs no values; tt_run_open sets it  */
    int ema;          /* -1: generator_ema when present                       */
    int64_t heads;    /* 0: not given                                         */
} tt_model_paths;

/* ---- the settings of a run ----------------------------------------------- */

/* One knob of the policies; all of them, by name, are at most so many. */
#define TT_RUN_KNOBS 48
typedef union tt_knob_setting {
    int64_t n;
    double x;
    const char *text;
} tt_knob_setting;

/* What was set, by name, in order. */
#define TT_SETTINGS_MAX 128
typedef struct tt_settings_given {
    const char *name[TT_SETTINGS_MAX];
    const char *value[TT_SETTINGS_MAX]; /* its text; NULL for flags           */
    int n;
} tt_settings_given;

/* Every setting of a run. A member may be read at any time and is written by
 * name, so that it is known what was given. */
typedef struct tt_settings {
    tt_model_paths model;
    /* text */
    const char *prompt, *prompt_file, *extended_prompt_file, *embeds;
    /* size and length; 0: not given */
    const char *size;
    int64_t width, height, latents, frames;
    double seconds;
    /* noise */
    uint64_t seed;
    int64_t sample, num_samples;
    const char *seed_rule, *noise;
    /* sampler */
    const char *steps, *first_steps; /* NULL: as the others                   */
    int warp, independent_first_frame;
    double shift;
    int64_t chunk, context_noise;
    const char *initial, *image, *initial_video;
    int64_t initial_frames;
    /* policy */
    const char *cache, *preset;
    bool of_model;                /* preset names a model, and is filled in */
    tt_knob_setting knob[TT_RUN_KNOBS]; /* what a record shows                */
    /* scenes and restarts */
    const char *scene, *scene_file, *cut_rule;
    int64_t rollouts, overlap;
    const char *restart;
    /* output */
    const char *output, *animation, *sheet, *latents_out, *preview;
    const char *decode;           /* "after" the latents, or "during"         */
    bool no_decode, vbench_name;
    /* records */
    const char *record, *summary, *dump, *dump_filter, *trace;
    const char *inject, *inject_filter;
    const char *analyze, *label;  /* run folder; its name in legends          */
    bool plan;                    /* its caller stops after tt_run_open       */
    bool profile;
    const char *shares;           /* of ranks                                */
    const char *keep_keys;        /* "auto", "yes" or "no"                   */
    const char *kv_dir;           /* folder whose files hold the cache        */
    /* files that are there */
    bool resume, overwrite;
    int64_t checkpoint_every;     /* -1: as time allows                       */

    tt_settings_given given;
    tt_arena mem;                 /* texts that were set                      */
} tt_settings;

tt_settings tt_settings_defaults(void);
/* The caller's *to is overwritten; it owns its texts. */
void tt_settings_free(tt_settings *s);

/* One setting by name, see tt_setting_store; text is copied. The last one
 * wins. Errors  TT_EINVAL  no such setting, or not what it needs */
tt_status tt_settings_set(tt_ctx *ctx, tt_settings *s, const char *name,
                          const char *text);
/* Its value as text, see tt_setting_show; NULL also for an unknown name. */
const char *tt_settings_get(const tt_settings *s, const char *name, char *buf,
                            size_t n);

/* ---- what a run says while it works -------------------------------------- */

/* Work that takes time: `done` of `total` units, of which those after
 * `before` took `seconds` so far. */
typedef struct tt_run_work {
    const char *what;            /* "chunk 3/7 step 2/5"                      */
    double done, total, before, seconds;
} tt_run_work;

/* A chunk that is done. */
typedef struct tt_run_chunk {
    int64_t chunk, chunks;       /* its number, from 0; of how many           */
    int64_t frames, done;        /* of it; of the video, with it              */
    double seconds;              /* it took                                   */
    const struct tt_team_time *rank; /* what ranks did                  */
    int nranks;                  /* 0: there are no others                    */
} tt_run_chunk;

/* Every function may be NULL. */
typedef struct tt_run_events {
    void *user;
    /* A sentence; `detail`: for those who want to know more. */
    void (*say)(void *user, bool detail, const char *sentence);
    void (*work)(void *user, const tt_run_work *w);
    /* The chunk is kept. What fails in it, recorded in the run's context, ends
     * the video, and its sentence says what was kept. */
    void (*chunk)(void *user, const tt_run_chunk *c);
} tt_run_events;

/* ---- a run --------------------------------------------------------------- */

typedef struct tt_run tt_run;

/* Check the settings, open the transformer, read noise, given latents and
 * prompts, and look for whatever will be needed later, so that nothing missing
 * is found out after hours. Writes nothing. The settings are copied; `events`
 * may be NULL, and what it points to must stay.
 * Errors  those of tt_settings_check and of every file that is read */
tt_status tt_run_open(tt_ctx *ctx, tt_run **out, const tt_settings *s,
                      const tt_run_events *events);
void tt_run_close(tt_run *run);

/* The settings with what became of them: width, latents ... are known. */
const tt_settings *tt_run_settings(const tt_run *run);
/* What its rollouts are; seed and sample are those of the current video. */
const tt_dit *tt_run_dit(const tt_run *run);

/* The next chunk, which is kept in the file of latents as well. A run whose
 * first video was not begun begins it. It is computed in the floating-point
 * environment of fpenv.h; that of the caller is set again at the end.
 *   *x0     [*frames, C, h, w], until the next call
 * Errors  TT_END (not recorded) when the video is complete, and its files are;
 *         TT_EINTR when the user asked to stop: what `resume` needs is kept;
 *         those of tt_rollout_next */
tt_status tt_run_next(tt_ctx *ctx, tt_run *run, const tt_host **x0,
                      int64_t *frames);

TT_API_END

#endif
