/* parts.h: what the parts of a run share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   settings.c           the table of settings and their values
 *   rules.c              every rule about them; lengths
 *   policy_settings.c    those of the cache policies
 *   model.c              where the parts of the model come from
 *   published.c          the sizes of the published model, without weights
 *   scenes.c             scenes, and restarts with their noise
 *   texts.c              prompts to embeddings; the encoder is gone afterwards
 *   encode.c, given.c    pictures and videos through the VAE; given frames
 *   open.c               everything that can be refused before work begins
 *   video.c              one video: rollout, file of latents, stop and resume
 *   checkpoint.c         the state of its rollout on the disk, now and then
 *   latents_file.c       that file
 *   ranks.c              what ranks do with their time
 *   record.c             run.json
 *   plan.h               what it will take */
#ifndef TT_RUN_PARTS_H
#define TT_RUN_PARTS_H

#include "run/latents_file.h"
#include "run/record.h"
#include "analyze/analyze.h"
#include "run/needs.h"
#include "run/run.h"

/* ---- settings ------------------------------------------------------------ */

/* Those about cache policies; called by tt_settings_check. */
tt_status settings_fill_policy(tt_ctx *ctx, tt_settings *s,
                               tt_policy_options *p);
/* Does it need the VAE whether it decodes or not? */
bool settings_encode(const tt_settings *s);
/* One row per knob that any policy has, at most `capacity`: their number. */
int settings_knob_rows(tt_setting *rows, int capacity);
/* --preset, where it names a model: the settings that it needs, for those that
 * were not given. */
tt_status settings_fill_model(tt_ctx *ctx, tt_settings *g);
/* `text`, then a line per policy, or preset. */
const char *settings_policy_help(const char *text);
const char *settings_preset_help(const char *text);

/* The number of latent frames from latents, frames or seconds, once it is
 * known whether frames are given; refuses what is not whole chunks. */
tt_status settings_length(tt_ctx *ctx, const tt_settings *s,
                          tt_rollout_options *opt);
/* Video frames that are generated, given ones not counted: what `frames`
 * says. With several rollouts those of one. */
int64_t settings_frames(const tt_rollout_options *opt);

/* ---- the model ----------------------------------------------------------- */

/* Is `model` the name of the published model, and nothing lies there? */
bool published_name(const char *model);
/* tt_weights_open, or with sizes_alone, where `path` is the model, weights
 * without values. */
tt_status model_weights(tt_ctx *ctx, tt_weights **out, const tt_model_paths *p,
                        const char *path, tt_model_kind kind,
                        const tt_weights_options *opt);
/* tt_model_open_dit; `events` (or NULL) learns which weights were chosen. */
tt_status model_open_dit(tt_ctx *ctx, tt_dit **out, const tt_model_paths *p,
                         tt_model_source *source, const tt_run_events *events);

/* ---- scenes and restarts ------------------------------------------------- */

/* Scenes of the settings; none (n = 0) without them. */
tt_status scenes_read(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                      const tt_settings *s);
/* Noise of several rollouts: noise [rollouts, W, C, h, w], renoise_r0, _r1, ...
 * and, when the file has it, start_frame. h and w may be -1 in opt. */
tt_status restarts_read_noise(tt_ctx *ctx, tt_arena *a, const char *path,
                              int64_t C, bool length_given,
                              tt_rollout_options *opt);

/* ---- given frames -------------------------------------------------------- */

/* What `image` or `initial-video` names; path NULL: neither was given. */
typedef struct given_frames {
    tt_encode_input in;
    tt_encode_size size;
} given_frames;

/* Look at it: fills opt->initial_frames and, for a video, opt->w and h (where
 * they are 0 the video keeps its size). Refuses what is not whole chunks. */
tt_status given_plan(tt_ctx *ctx, given_frames *v, const tt_settings *s,
                     tt_rollout_options *opt);
/* Encode it into `mem`: opt->initial [initial_frames, C, h, w]. The VAE is
 * opened for it and closed again; `source` is told where from. */
tt_status given_encode(tt_ctx *ctx, tt_run *run, tt_model_source *source);

/* ---- files, sizes -------------------------------------------------------- */

/* Read noise and given latents; size and length are known then. */
tt_status run_read_inputs(tt_ctx *ctx, tt_run *run);

/* ---- text ---------------------------------------------------------------- */

typedef struct texts {
    int n;                  /* prompts                                        */
    const char **prompt;    /* [n]; NULL entries with embeds                  */
    const char **extended;  /* [n] what the model reads; NULL: the prompts    */
    int64_t *line;          /* [n] of prompt_file; NULL: from elsewhere       */
    tt_real *text;          /* [n, rows, dim]                                 */
    int64_t rows, dim;
    tt_arena mem;
} texts;

/* What the model reads of prompt i. */
static inline const char *texts_words(const texts *t, int i)
{
    return t->extended ? t->extended[i] : t->prompt[i];
}

/* What is to be encoded: the prompts of the scenes when there are any. Refuses
 * what is not UTF-8, naming file and line. */
tt_status texts_collect(tt_ctx *ctx, texts *t, const tt_settings *s,
                        const tt_scenes *scenes);
/* Then read or compute their embeddings. */
tt_status texts_make(tt_ctx *ctx, tt_run *run);
void texts_free(texts *t);
/* Scope of what belongs to prompt i of a video: none for the first, else
 * "prompt.<i>"; ends with tt_scope_end. */
size_t texts_scope(tt_ctx *ctx, int i);
/* The whole file as text in `a`; refuses NUL bytes. */
char *texts_read_file(tt_ctx *ctx, tt_arena *a, const char *path);

/* ---- one video ----------------------------------------------------------- */

/* The state of a rollout on the disk: two files that take turns, so that one
 * is whole while the other is written. */
typedef struct checkpoint {
    char *name[2];             /* NULL: the latents have no file              */
    int turn;                  /* the one to write next                       */
    bool on;                   /* rank 0 has names                            */
    int64_t every;             /* chunks; 0: none; -1: as time allows         */
    int64_t chunk;             /* the latest one stands there                 */
    double at, cost;           /* seconds: when it was written, and in what   */
} checkpoint;

/* The current video. */
typedef struct video {
    int64_t number;            /* -1: none was begun                          */
    tt_run_video what;
    tt_run_files files;
    tt_arena mem;
    tt_rollout_options opt;    /* complete, with noise and seed               */
    const char *identity;      /* what it is made from                        */
    const tt_recorder_scene *scene; /* [opt.nscenes]                          */
    tt_prompt **prompt;        /* [nprompt]                                   */
    int nprompt;
    tt_rollout *rollout;       /* NULL: it has ended                          */
    tt_host *latents;          /* [frames, C, h, w]                           */
    int64_t frames, frame_size, C;
    int64_t chunk, done;       /* chunks, frames that are ready               */
    int64_t made;              /* chunks of this session                      */
    double begun, start;       /* when it was begun; when its chunks were     */
    double before;             /* chunks that were done then                  */
    double elsewhere;          /* seconds in what is told of chunks           */
    tt_recorder *recorder;     /* NULL: no trace or run folder asked for      */
    bool recorded;             /* on rank 0 there is one                      */
    checkpoint keep;
    bool noisy;                /* only a saved state goes on with its cache   */
    bool rebuilding;           /* the cache, from chunks that are there       */
    char command[96];          /* what goes on with it, in words              */
} video;

struct tt_run {
    tt_settings s;
    tt_run_events events;
    tt_rollout_options opt;    /* of every video, but for seed and sample     */
    tt_arena mem;              /* noise, given latents, names                 */
    tt_dit *dit;
    texts texts;
    int videos;                /* prompts that get their own                  */
    given_frames given;
    tt_scenes scenes;          /* none: n = 0                                 */
    tt_vae *restart_vae;       /* causvid: for the frames between rollouts    */
    uint64_t vae_sum;          /* digest of the VAE that ranks decode with    */
    record record;
    bool encoded;              /* texts and given frames                      */
    latents_file file;         /* claimed for video `claimed`                 */
    int64_t claimed;           /* -1: for none                                */
    tt_needs needs;
    tt_stage encoder;          /* of the text: what it adds by itself         */
    int64_t before, mapped;    /* bytes and addresses that were held before   */
    video now;
};

/* May states of a run take their names next to `latents`? What lies there and
 * is none of ours goes for `overwrite` alone.
 * Errors  TT_EINVAL  it does not: the sentence names the file */
tt_status checkpoint_claim(tt_ctx *ctx, const char *latents, bool overwrite);
/* Names next to the latents; which files are there. */
tt_status checkpoint_open(tt_ctx *ctx, tt_run *run);
bool checkpoint_is_there(const checkpoint *c);
/* Take the newest state that is whole and not ahead of the latents; without
 * one the rollout stays at its beginning, and TT_OK. */
tt_status checkpoint_restore(tt_ctx *ctx, tt_run *run);
/* From here on time counts. */
void checkpoint_begin(const tt_ctx *ctx, tt_run *run);
/* Has a new one been asked for, or become worth its time? */
bool checkpoint_is_due(tt_ctx *ctx, const video *v);
/* Write one; nothing when the latest stands at this chunk. */
tt_status checkpoint_save(tt_ctx *ctx, tt_run *run);
/* The same, but a run does not end because its state cannot be written: a
 * warning says so, and what it means. */
void checkpoint_try(tt_ctx *ctx, tt_run *run);
/* Remove both, and what killed runs left of them. */
void checkpoint_forget(checkpoint *c);

/* Every rank's time since the last call, of[TT_TEAM_MAX]; in detail, and in
 * `line`, which goes after what is said of a chunk; empty for one rank. */
tt_status ranks_measure(tt_ctx *ctx, const tt_run *run, tt_team_time *of,
                        char *line, size_t n);

void run_say(const tt_run_events *e, bool detail, const char *fmt, ...)
    TT_PRINTF(3, 4);
void run_work(const tt_run_events *e, tt_run_work w, const char *fmt, ...)
    TT_PRINTF(3, 4);

/* The options of video i's rollout, without its prompts; in `mem`. */
tt_rollout_options run_options(tt_ctx *ctx, tt_run *run, int64_t i,
                               tt_arena *mem);
/* Embeddings one video is made from: [first, first + n). */
int run_prompts_of(const tt_run *run);
/* The shape of its latents: [rollouts, n0+n, C, h, w]. */
void run_shape(int64_t dim[5], const tt_run *run, const tt_rollout_options *o);
/* Scenes as records show them; in `mem`. */
const tt_recorder_scene *run_scenes(tt_ctx *ctx, const tt_run *run,
                                    tt_arena *mem);
/* Give back the name of the latents, if one was claimed. */
void run_release(tt_run *run);
/* Leave the current video: complete what is done, give up what is not. */
tt_status video_end(tt_ctx *ctx, tt_run *run);

#endif
