/* io.h: checkpoints and tensor files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three layers. tt_file is one checkpoint file exactly as stored (safetensors,
 * a sharded safetensors index, a PyTorch zip or GGUF), memory-mapped.
 * tt_weights is what a model binds from: the right dictionary of a file (or
 * folder), with wrapper prefixes stripped and names translated to the original
 * Wan names, packed. tt_bind takes tensors from it by name and shape, and
 * reports every missing, misshapen and unexpected one in a single sentence. */
#ifndef TETHER_IO_H
#define TETHER_IO_H

#include "tether/api.h"
#include "tether/context.h"

TT_API_BEGIN

/* ---- a file as stored --------------------------------------------------- */

typedef struct tt_file tt_file;

typedef struct tt_entry {
    const char *const *path; /* list of keys; one element in flat formats     */
    int npath;
    const char *name;        /* path joined by '.'                            */
    tt_tensor t;             /* points into the mapping; may be strided (.pt) */
} tt_entry;

/* Open `path`: format by content, never by extension. A *.index.json opens
 * all its shards. Errors name the file and the reason in one sentence.
 *   TT_EIO       cannot open or map
 *   TT_EFORMAT   refused; nothing stays open */
tt_status tt_file_open(tt_ctx *ctx, tt_file **out, const char *path);
void tt_file_close(tt_file *f);
/* "safetensors", "safetensors index", "torch zip" or "GGUF"; what its metadata
 * say of a key, NULL: nothing. */
const char *tt_file_format(const tt_file *f);
const char *tt_file_meta(const tt_file *f, const char *key);
int64_t tt_file_count(const tt_file *f);
/* The value of a key of __metadata__ of a safetensors file; NULL: none. */
const tt_entry *tt_file_entry(const tt_file *f, int64_t i); /* stored order   */
const tt_entry *tt_file_find(const tt_file *f, const char *name);  /* or NULL */
/* dst = the elements in row-major order (gathers strides) in the host's byte
 * order; dst has count * dtype size bytes. Quantised blocks stay bytes. */
void tt_gather(void *dst, const tt_tensor *t);

/* ---- weights for a model ------------------------------------------------ */

typedef enum tt_model_kind {
    TT_MODEL_DIT, TT_MODEL_VAE, TT_MODEL_T5,
    TT_MODEL_TINY_VAE, /* TAEHV, "taew2_1" */
    TT_MODEL_KINDS
} tt_model_kind;

typedef struct tt_weights_options {
    int ema;  /* Self-Forcing .pt: 1 generator_ema, 0 generator,
                 -1 (default) generator_ema when present */
    bool shapes_alone; /* values are not needed (for a plan), and not checked */
    const char *lora;  /* LoRAs to be merged, "FILE" or "FILE:STRENGTH" a
                          line; NULL: none                                    */
    bool *known;       /* NULL, or set to true where the names are those of the
                          model, whatever else is wrong                       */
} tt_weights_options;

typedef struct tt_weights tt_weights;

/* Open the weights of one model from a file or a folder holding it. The names
 * are normalised (src/io/README.md): FSDP and torch.compile decorations and
 * known prefixes removed, Diffusers, Hugging Face and llama.cpp names mapped to
 * Wan's, scales of 8-bit weights folded into them, shapes that GGUF flattened
 * restored. */
tt_status tt_weights_open(tt_ctx *ctx, tt_weights **out, const char *path,
                          tt_model_kind kind, const tt_weights_options *opt);
/* LoRAs (of transformers and text encoders; names of kohya, PEFT, Diffusers and
 * ComfyUI, or the dictionary generator_lora of a .pt) are merged when a weight
 * is first asked for, which is float32 from then on and lies in memory:
 *     W = fma(f, d, W)   d = up down, summed over the rank in ascending order
 *                        by fma in blocks of 256, as every dot product here;
 *                        f = strength * alpha / rank, or strength without an
 *                        alpha, computed in double and rounded once
 *     W = fma(strength, diff, W)                     diff, diff_b and diff_m
 * one after the other: files as given, of a file up and down before diff. The
 * bits depend on neither CPU nor threads.
 * Errors  of tt_weights_open
 *         TT_ESHAPE        a key fits no weight, or has not its shape; a key of
 *                          the other part of the model, transformer or text
 *                          encoder, is left to that
 *         TT_EUNSUPPORTED  DoRA, LoKr, LoHa, OFT ..., named
 *         TT_EFORMAT       half a pair, an alpha or a merged value that is not
 *                          finite */

/* What a LoRA is for, in words, into buf: "LoRA for the transformer, rank 32
 * (300 pairs, 60 differences)"; false: it is none, or cannot be read. */
void tt_weights_close(tt_weights *w);
const char *tt_weights_origin(const tt_weights *w); /* "Wan names, torch zip,
                                                       generator_ema" */
/* By Wan name; NULL when absent. Always packed: a strided tensor is copied the
 * first time it is asked for (NULL and TT_ENOMEM recorded when that fails). */
const tt_tensor *tt_weights_find(const tt_weights *w, const char *name);
int64_t tt_weights_count(const tt_weights *w);
const char *tt_weights_name(const tt_weights *w, int64_t i);

/* ---- writing ------------------------------------------------------------ */

/* A safetensors file being written. Data goes to a temporary file in the
 * target's folder; tt_st_finish puts the header in front (into a second one
 * unless room was reserved), flushes and renames it, so `path` is either the
 * complete new file or what it was before. Names must be unique. Errors name
 * the file and the system's reason (TT_EIO). After tt_st_finish or tt_st_abort
 * the writer is gone, whatever they return; both take NULL. */
typedef struct tt_st_writer tt_st_writer;
tt_status tt_st_create(tt_ctx *ctx, tt_st_writer **out, const char *path);
/* A string pair for __metadata__. */
tt_status tt_st_meta(tt_st_writer *w, const char *key, const char *value);
/* A tensor of packed values in the host's byte order. data NULL adds it with
 * dim as given, whose axis to be grown by tt_st_append must then be 0. */
tt_status tt_st_add(tt_st_writer *w, const char *name, tt_dtype dtype,
                    int rank, const int64_t *dim, const void *data);
/* Complete the file; a failure recorded in the context aborts instead. */
tt_status tt_st_finish(tt_st_writer *w);
void tt_st_abort(tt_st_writer *w);

TT_API_END

#endif
