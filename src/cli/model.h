/* model.h: where the parts of the model come from.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * -m names a folder that holds everything (the original Wan2.1 folder, a
 * Diffusers folder, or single files side by side); every part can be given
 * by itself. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "cli/options.h"
#include "tether/dit.h"
#include "tether/vae.h"

typedef struct model_paths {
    const char *model, *dit, *vae, *tiny_vae;
    const char *text_encoder, *tokenizer, *checkpoint;
    int ema;          /* -1: generator_ema when present                       */
    int64_t heads;    /* 0: not given                                         */
} model_paths;
#define MODEL_PATHS_DEFAULT {.ema = -1}

/* Rows for a command's option table; `type` has a member of type model_paths
 * called `member`. */
#define MODEL_ROW_FOLDER(type, member)                                         \
    {OPT_READ, "model", 'm', offsetof(type, member.model), "DIR",              \
     "folder with all parts: original Wan2.1, Diffusers, or single files"}
#define MODEL_ROW_VAE(type, member)                                            \
    {OPT_READ, "vae", 0, offsetof(type, member.vae), "FILE",                   \
     "VAE weights (default: found in -m)"}
#define MODEL_ROW_TINY_VAE(type, member)                                       \
    {OPT_READ, "tiny-vae", 0, offsetof(type, member.tiny_vae), "FILE",         \
     "decode with TAEHV (taew2_1) instead: a fast preview that differs "       \
     "visibly from the VAE's frames"}
#define MODEL_ROWS_TEXT(type, member)                                          \
    {OPT_READ, "text-encoder", 0, offsetof(type, member.text_encoder),         \
     "FILE", "umT5 encoder weights (default: found in -m)"},                   \
    {OPT_READ, "tokenizer", 0, offsetof(type, member.tokenizer), "FILE",       \
     "SentencePiece model (default: found in -m)"}
#define MODEL_ROWS_DIT(type, member)                                           \
    {OPT_READ, "dit", 0, offsetof(type, member.dit), "FILE",                   \
     "transformer weights, a file or folder (default: found in -m)"},          \
    {OPT_READ, "checkpoint", 0, offsetof(type, member.checkpoint), "FILE",     \
     "replaces the transformer weights: Self-Forcing's "                       \
     "self_forcing_dmd.pt"},                                                   \
    {OPT_SWITCH, "ema", 0, offsetof(type, member.ema), NULL,                   \
     "take generator_ema or generator from the checkpoint (default: "          \
     "generator_ema when it is there)"},                                       \
    {OPT_INT, "heads", 0, offsetof(type, member.heads), "N",                   \
     "head count, only where no config.json gives it"}

/* The file a part was read from, and how: "Wan names, torch zip". */
typedef struct model_source {
    char path[4096], origin[256];
} model_source;

/* Open and load; `source` (may be NULL) is told where from. Errors name the
 * option that would help. */
tt_status model_open_dit(tt_ctx *ctx, tt_dit **out, const model_paths *p,
                         model_source *source);
/* The decoder: --tiny-vae when given. */
tt_status model_open_vae(tt_ctx *ctx, tt_vae **out, const model_paths *p,
                         model_source *source);
/* The VAE itself, TT_VAE_DECODER, TT_VAE_ENCODER or both. */
tt_status model_open_vae_part(tt_ctx *ctx, tt_vae **out, const model_paths *p,
                              unsigned parts, model_source *source);

/* Path of the tokenizer: --tokenizer, or the places of -m where it lies in
 * known folders. Written to buf. */
tt_status model_tokenizer(tt_ctx *ctx, char *buf, size_t n,
                          const model_paths *p);

/* Tokens per prompt: text_len of the transformer's config.json in -m, where
 * there is one, else 512. */
int64_t model_text_len(tt_ctx *ctx, const model_paths *p);

/* The size of video the model was trained for: width and height of the section
 * `tether` of config.json in -m, where there is one, else Wan's 832x480. */
tt_status model_size(tt_ctx *ctx, int64_t *width, int64_t *height,
                     const model_paths *p);

/* Path to hand to tt_umt5_open. */
tt_status model_text_encoder(tt_ctx *ctx, const char **out,
                             const model_paths *p);

/* The folder of the built-in model: beside the source, or the one `make demo`
 * wrote; from the working folder, or from where the program lies
 * (build/<flavour>/tether or PREFIX/bin/tether). Written to buf. */
tt_status model_find_builtin(tt_ctx *ctx, char *buf, size_t n);

/* Where this program lies, links followed; false (and "") when the system
 * does not say. */
bool model_program_path(char *buf, size_t n);

#endif
