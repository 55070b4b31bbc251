/* checkpoint.h: random checkpoints in true formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint is a list of tensor specifications; its values are a function
 * of seed, tensor name and element index alone, made block by block while the
 * file is written, so memory stays small at any model size. */
#ifndef TT_TOOLS_CHECKPOINT_H
#define TT_TOOLS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/tensor.h"

typedef struct ck_spec {
    char name[96];
    int rank;
    int64_t dim[5];
    float base, spread;   /* values are uniform in base +- spread             */
} ck_spec;

typedef struct ck_list {
    ck_spec *spec;
    int64_t n, cap;
} ck_list;

typedef struct ck_dit {
    int64_t dim, layers, ffn, heads, freq, text_dim, text_len, channels;
} ck_dit;

typedef struct ck_t5 {
    int64_t vocab, dim, heads, head_dim, ffn, layers, buckets;
} ck_t5;

/* The tensors of each model, names as in the original Wan2.1 files. */
void ck_list_dit(ck_list *l, const ck_dit *c);
void ck_list_t5(ck_list *l, const ck_t5 *c);
void ck_list_vae(ck_list *l, int64_t dim, int64_t z);

int64_t ck_count(const ck_spec *s);
/* Elements [first, first + n) of `s` as `type` (F32, BF16 or F16) into out. */
void ck_fill(void *out, const ck_spec *s, tt_dtype type, uint64_t seed,
             int64_t first, int64_t n);

/* Both writers stream to "<path>.part" and rename; false after a message on
 * stderr. */
bool ck_write_safetensors(const char *path, const ck_list *l, tt_dtype type,
                          uint64_t seed);
/* torch.save of a state dictionary; with `wrapper`, of {wrapper: {...}} whose
 * keys carry `prefix`. */
bool ck_write_torch(const char *path, const ck_list *l, tt_dtype type,
                    uint64_t seed, const char *wrapper, const char *prefix);

/* A small SentencePiece unigram model; returns its number of pieces, 0 after a
 * message on stderr. */
int ck_write_spiece(const char *path);

/* "<path>.part" for writing; NULL after a message. Closing renames it. */
FILE *ck_open(const char *path);
bool ck_close(FILE *f, const char *path);

#endif
