/* run.h: what the modules use of tether/run.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_RUN_RUN_H
#define TT_RUN_RUN_H

#include "ops/backend.h"
#include "rollout/rollout.h"
#include "team/team.h"
#include "tether/run.h"

/* ---- where the parts of the model are ------------------------------------ */

#define TT_MODEL_PATHS {.ema = -1}

/* The class that vae_class names.
 * Errors  TT_EINVAL  there is none of that name */
tt_status tt_model_vae_class(tt_ctx *ctx, tt_class *cls,
                             const tt_model_paths *p);

/* The file a part was read from, and how: "Wan names, torch zip". */
typedef struct tt_model_source {
    char path[4096], origin[256];
} tt_model_source;

/* Open and load; `source` (may be NULL) is told where from. Errors name the
 * option that would help. */
tt_status tt_model_open_dit(tt_ctx *ctx, tt_dit **out, const tt_model_paths *p,
                            tt_model_source *source);
/* What tt_model_open_dit opens, into buf: `checkpoint`; `dit`; the causal
 * weights in the folder `model`, which are Self-Forcing's files by their names
 * (self_forcing_dmd.pt ...), there or in `checkpoints`, or the only transformer
 * in `checkpoints`; the folder itself.
 * Errors  TT_EINVAL  none was given, or several are in `checkpoints` */
tt_status tt_model_transformer(tt_ctx *ctx, char *buf, size_t n,
                               const tt_model_paths *p);
/* By width and name of the file: is the transformer Wan's own, which is neither
 * causal nor distilled? It could be another of that name. */
bool tt_model_is_wan(const tt_weights *w);
/* The decoder: that of tiny_vae when given. */
tt_status tt_model_open_vae(tt_ctx *ctx, tt_vae **out, const tt_model_paths *p,
                            tt_model_source *source);
/* The VAE itself, TT_VAE_DECODER, TT_VAE_ENCODER or both. */
tt_status tt_model_open_vae_part(tt_ctx *ctx, tt_vae **out,
                                 const tt_model_paths *p, unsigned parts,
                                 tt_model_source *source);
/* Path of the tokenizer: the one given, or the places of the folder where it
 * lies in known ones. Written to buf. */
tt_status tt_model_tokenizer(tt_ctx *ctx, char *buf, size_t n,
                             const tt_model_paths *p);
/* Path to hand to tt_umt5_open. */
tt_status tt_model_text_encoder(tt_ctx *ctx, const char **out,
                                const tt_model_paths *p);
/* Tokens per prompt: text_len of the transformer's config.json next to its
 * weights, else in the folder, where there is one, else 512. */
int64_t tt_model_text_len(tt_ctx *ctx, const tt_model_paths *p);
/* The size of video the model was trained for: width and height of the section
 * `tether` of the same config.json, where there is one, else Wan's 832x480. */
tt_status tt_model_size(tt_ctx *ctx, int64_t *width, int64_t *height,
                        const tt_model_paths *p);

/* ---- tables of settings -------------------------------------------------- */

typedef enum tt_setting_kind {
    TT_SETTING_END = 0, /* last row of a table                                */
    TT_SETTING_GROUP,   /* heading: `help` is its text                        */
    TT_SETTING_FLAG,    /* bool: present or not                               */
    TT_SETTING_SWITCH,  /* int: 1 yes, 0 no                                   */
    TT_SETTING_INT,     /* int64_t, decimal                                   */
    TT_SETTING_U64,     /* uint64_t, decimal or 0x...; a `seed`: or "random"  */
    TT_SETTING_REAL,    /* double, decimal, finite                            */
    TT_SETTING_TEXT,    /* const char *                                       */
    TT_SETTING_READ,    /* the same: a file or folder that is read            */
    TT_SETTING_WRITE,   /* the same: a file that is written                   */
    TT_SETTING_MAYBE,   /* const char *: value optional; "" when left out     */
    TT_SETTING_LIST     /* const char *: may be given several times, values with
                           '\n' between them; "" takes those before away      */
} tt_setting_kind;

/* One setting: a row of a table. */
typedef struct tt_setting {
    tt_setting_kind kind;
    const char *name;   /* "score-temperature"                                */
    char letter;        /* 't' or 0: its short name on the command line       */
    size_t offset;      /* of the value in the structure of the table         */
    const char *arg;    /* "N" in the help                                    */
    const char *help;   /* one sentence; '\n' starts a new line; NULL: known
                           but not shown                                      */
} tt_setting;

/* Store `text` in the structure at `base` (texts: the pointer; also of a list,
 * which tt_settings_set makes longer). For flags and
 * switches NULL and "yes" mean yes, "no" means no, as do 1 and 0.
 * Errors  TT_EINVAL  says what the setting needs; nothing is stored */
tt_status tt_setting_store(tt_ctx *ctx, const tt_setting *row, void *base,
                           const char *text);
/* The value as text: in buf, or the text itself. NULL: a text not given. */
const char *tt_setting_show(const tt_setting *row, const void *base, char *buf,
                            size_t n);

/* Rows of a table about the model; `type` has a member called `member` of type
 * tt_model_paths. */
#define TT_MODEL_ROW_FOLDER(type, member)                                      \
    {TT_SETTING_READ, "model", 'm', offsetof(type, member.model), "DIR",       \
     "folder with all parts: original Wan2.1, Diffusers, or single files"}
#define TT_MODEL_ROW_VAE(type, member)                                         \
    {TT_SETTING_READ, "vae", 0, offsetof(type, member.vae), "FILE",            \
     "VAE weights (default: found in -m)"}
#define TT_MODEL_ROW_TINY_VAE(type, member)                                    \
    {TT_SETTING_READ, "tiny-vae", 0, offsetof(type, member.tiny_vae), "FILE",  \
     "decode with TAEHV (taew2_1) instead: a fast preview that differs "       \
     "visibly from the VAE's frames"}
#define TT_MODEL_ROW_VAE_CLASS(type, member)                                   \
    {TT_SETTING_TEXT, "vae-class", 0, offsetof(type, member.vae_class),        \
     "NAME", "how the VAE computes, one of --class (default f32, as the "      \
     "official code does). Of the published VAE vdp takes half of the time "   \
     "and of the memory where the CPU has VDPBF16PS; pixels differ a little"}
#define TT_MODEL_ROW_HISTORY_DIR(type, member)                                 \
    {TT_SETTING_TEXT, "history-dir", 0, offsetof(type, member.history_dir),    \
     "FOLDER", "keep what the VAE remembers of earlier frames in files of "    \
     "this folder, not in memory: at 832x480 4.1 GB of the decoder (2.0 in a " \
     "--vae-class other than f32), 2.6 of the encoder. It needs a fast disk, " \
     "not a folder that is memory itself (tmpfs). The files have no name and " \
     "are gone at the end. No bit depends on it"}
#define TT_MODEL_ROWS_TEXT(type, member)                                       \
    {TT_SETTING_READ, "text-encoder", 0, offsetof(type, member.text_encoder),  \
     "FILE", "umT5 encoder weights (default: found in -m)"},                   \
    {TT_SETTING_READ, "tokenizer", 0, offsetof(type, member.tokenizer),        \
     "FILE", "SentencePiece model (default: found in -m)"}
#define TT_MODEL_ROW_LORA(type, member)                                        \
    {TT_SETTING_LIST, "lora", 0, offsetof(type, member),                       \
     "FILE[:STRENGTH]", "merge a LoRA into the weights, in float32: strength " \
     "* alpha / rank * up down (strength: default 1; without alpha 1 for "     \
     "alpha / rank). May be given several times, and is merged in that order. "\
     "`tether convert --lora` writes the merged weights, which start faster"}
#define TT_MODEL_ROWS_DIT(type, member)                                        \
    {TT_SETTING_READ, "dit", 0, offsetof(type, member.dit), "FILE",            \
     "transformer weights, a file or folder (default: found in -m)"},          \
    {TT_SETTING_READ, "checkpoint", 0, offsetof(type, member.checkpoint),      \
     "FILE", "replaces the transformer weights: Self-Forcing's "               \
     "self_forcing_dmd.pt"},                                                   \
    {TT_SETTING_SWITCH, "ema", 0, offsetof(type, member.ema), NULL,            \
     "take generator_ema or generator from the checkpoint (default: "          \
     "generator_ema when it is there)"},                                       \
    {TT_SETTING_INT, "heads", 0, offsetof(type, member.heads), "N",            \
     "head count, only where no config.json gives it"}

/* "1000,750.5" into values[0..max): the count, or -1 when malformed or too
 * long. */
int tt_setting_reals(double *values, int max, const char *text);

/* What the setting `steps` means. One whole number n from 1 to TT_MAX_STEPS is
 * a count: n values from 1000 downwards, evenly spaced, the end 0 left out, to
 * the nearest whole number, as FlowMatchScheduler.set_timesteps spaces them
 * before the shift. Else a list, which begins near 1000: commas or blanks
 * between the values, in brackets or not.
 *   values   [TT_MAX_STEPS]
 *   counted  is it a count? NULL: not asked
 * Errors  TT_EINVAL  neither; the sentence says what to give */
tt_status tt_setting_steps(tt_ctx *ctx, double *values, int *n, bool *counted,
                           const char *text);

/* ---- the settings of a run ----------------------------------------------- */

const tt_setting *tt_settings_find(const char *name); /* NULL: none           */
tt_status tt_settings_copy(tt_ctx *ctx, tt_settings *to,
                           const tt_settings *from);

bool tt_settings_was_given(const tt_settings *s, const char *name);

/* Everything that can be said from the settings alone. Fills the options of
 * the rollout (sizes of 0 stay 0 until files are read) and writes back what
 * the policy makes of its settings; tt_run_open does it.
 * Errors  TT_EINVAL  names the setting and what it needs */
tt_status tt_settings_check(tt_ctx *ctx, tt_settings *s,
                            tt_rollout_options *opt);

/* ---- a run --------------------------------------------------------------- */

/* One video of a run: a prompt (or the scenes) and a sample. */
typedef struct tt_run_video {
    int prompt;                  /* number of its prompt                      */
    int64_t sample;
    uint64_t seed;
    const char *text;            /* the prompt, with scenes the first one;
                                    NULL: from embeddings                     */
    const char *extended;        /* what the model reads instead; NULL: text  */
} tt_run_video;

/* Files of one video; NULL: not wanted. A run writes latents, preview, trace
 * and the folder `analyze`; the others are its caller's, and are known to the
 * run because records name them. */
typedef struct tt_run_files {
    const char *output, *animation, *sheet, *latents, *preview;
    const char *record, *dump, *trace;
    const char *analyze;         /* run folder                                */
} tt_run_files;

/* Encode prompts and given frames of all videos; the text encoder is closed
 * afterwards. tt_run_begin does it when it was not done. */
tt_status tt_run_encode(tt_ctx *ctx, tt_run *run);

/* Videos, prompts first: those of prompt i are i * samples + k. */
int64_t tt_run_videos(const tt_run *run);
/* Video i, 0 <= i < tt_run_videos; else TT_EINVAL. */
tt_status tt_run_video_at(tt_ctx *ctx, const tt_run *run, int64_t i,
                          tt_run_video *out);
const tt_rollout_options *tt_run_rollout(const tt_run *run);
const tt_scenes *tt_run_scenes(const tt_run *run);  /* none: n = 0            */
/* Prompts with a video of their own; with scenes their distinct prompts. */
int tt_run_prompts(const tt_run *run, const char *const **text);
/* Frames of a video when it is decoded, and those cut from the end of each of
 * several clips. */
int64_t tt_run_frames(const tt_run *run);
int64_t tt_run_dropped(const tt_run *run);
/* The decoder that belongs to the transformer. */
tt_status tt_run_open_vae(tt_ctx *ctx, const tt_run *run, tt_vae **vae);

/* Take the name of the latents of video i, before the work begins, for this
 * run alone; `resume` and `overwrite` of the settings say what becomes of work
 * that is there. tt_run_begin does it when it was not done.
 * Errors  TT_EINVAL  another run is writing it; or unfinished work is there
 *                    and nothing says what to do with it
 *         TT_EFORMAT to be resumed, and no file of latents
 *         TT_EIO     it cannot be written */
tt_status tt_run_claim(tt_ctx *ctx, tt_run *run, int64_t i, const char *path);

/* Everything that decides about the bits of video i, in one line; in `mem`,
 * NULL after a failure. Two runs with one identity make the same bits, as far
 * as both go: the length of a single rollout is not part of it. Files of
 * latents, saved states and run.json carry it. */
const char *tt_run_identity(tt_ctx *ctx, tt_run *run, int64_t i,
                            tt_arena *mem);
/* Latent frames of video i of this very run in the file of latents `path`, or
 * in what it is called until it is complete; 0: none. With `resume` also of a
 * shorter run, which this one would go on from. What makes it another run's in
 * `why`, in words: "seed: 1 there, 2 here" (n 0: not wanted; it stays where
 * nothing is there).
 * Errors  those of tt_run_encode */
int64_t tt_run_made(tt_ctx *ctx, tt_run *run, int64_t i, const char *path,
                    char *why, size_t n);
/* Are there latents of any run at `path`, complete or not? */
bool tt_run_made_by_any(tt_ctx *ctx, const char *path);

/* Begin video i: open its files and, with `resume`, go on from what is there.
 *   files  their names; NULL: latents-out, preview, trace-cache and analyze of
 *          the settings, which a run of several videos refuses */
tt_status tt_run_begin(tt_ctx *ctx, tt_run *run, int64_t i,
                       const tt_run_files *files);
/* Between two chunks: keep the state on the disk, in two files next to the
 * latents that take turns. The latents are there after every chunk; the state
 * saves `resume` the clean passes that make the cache again, and a policy whose
 * cache cannot be made again needs it. tt_run_next does it by itself, see the
 * setting checkpoint-every. After the last chunk all that `resume` needs are
 * the latents, and most policies have no state to save there.
 * Errors  TT_EINVAL  no video was begun, or its latents have no file */
tt_status tt_run_save(tt_ctx *ctx, tt_run *run);

/* Where the current video stands. */
typedef struct tt_run_standing {
    int64_t chunk, chunks;       /* done, of                                  */
    const char *unfinished;      /* file of the latents so far, NULL: none    */
    const char *command;         /* what goes on with it, in words            */
    bool whole_chunks;           /* it stops between chunks alone, because its
                                    cache must be saved                       */
    int64_t saved;               /* chunks of the latest saved state; 0: none */
    int64_t done;                /* latent frames that are ready ...          */
    tt_tensor latents;           /* ... of all, [rollouts, n0+n, C, h, w]     */
} tt_run_standing;
tt_run_standing tt_run_stand(const tt_run *run);

/* Latents of the current video, complete: [rollouts, n0+n, C, h, w]. */
tt_status tt_run_latents(tt_ctx *ctx, const tt_run *run, tt_tensor *out);
/* What is kept inside pictures and videos: the prompt, then a line of settings,
 * "Steps: 4, ..., Seed: 7, Size: 64x64, ...", as viewers of such text read it.
 * In `mem`. */
const char *tt_run_comment(tt_ctx *ctx, tt_run *run, int64_t i, tt_arena *mem);

/* What the caller adds to a record. */
typedef struct tt_run_facts {
    int argc;                    /* words after "tether" of the command that  */
    char **argv;                 /* was given; 0: none                        */
    double decode_seconds;
} tt_run_facts;
/* Write run.json of the current video: settings, seed, versions, class,
 * SHA-256 of every input file (reads all of them), times of every chunk. */
tt_status tt_run_record(tt_ctx *ctx, tt_run *run, const char *path,
                        const tt_run_facts *facts);

/* ---- pictures, videos or raw frames through the VAE encoder -------------- */

/* What to encode: `path` for tt_video_in_open, or `raw`, a safetensors file
 * with video [1, 3, F, H, W] in [-1, 1]. */
typedef struct tt_encode_input {
    const char *path, *raw;
    int64_t width, height;    /* resize to, path only; 0: as it is            */
    int64_t skip, take;       /* frames left out in front; frames taken, 0:
                                 all that follow                              */
} tt_encode_input;

/* What it holds after skip and take. `dropped` frames at the end do not fill
 * a group of four; the others make `latents`. */
typedef struct tt_encode_size {
    int64_t frames, width, height;
    int64_t latents, dropped;
} tt_encode_size;

/* Read through all of it without encoding, so that a damaged frame or an
 * impossible size is found before hours of work. Pictures and videos must be
 * resized to, or have, sides that are multiples of 16; raw frames at least 8
 * x 8. Standard input and pipes can be read only once and are left alone: all
 * zeros. */
tt_status tt_encode_measure(tt_ctx *ctx, tt_encode_size *size,
                            const tt_encode_input *in);

/* Receives latent frame z [C, h, w]; a non-OK return stops. */
typedef tt_status (*tt_encode_fn)(void *user, const tt_real *z, int64_t C,
                                  int64_t h, int64_t w);

/* Encode what was measured; `size` is completed where it was not known.
 * `events` may be NULL. A warning tells what was dropped.
 * Errors  TT_EINVAL  not one frame */
tt_status tt_encode_run(tt_ctx *ctx, const tt_run_events *events,
                        const tt_vae *vae, const tt_encode_input *in,
                        tt_encode_size *size, tt_encode_fn emit, void *user);

/* All rows, the knobs of the policies among them, up to TT_SETTING_END. */
const tt_setting *tt_settings_table(void);

#endif
