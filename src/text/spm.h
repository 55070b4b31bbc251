/* spm.h: a SentencePiece unigram model in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared by spm_model.c (reads it), spm_normalize.c and spm_encode.c (use
 * it). Nothing here changes once the model is open. */
#ifndef TT_TEXT_SPM_H
#define TT_TEXT_SPM_H

#include "text/text.h"

#define SPM_FILE_LIMIT (64 << 20)   /* bytes                                 */
#define SPM_PIECE_LIMIT (1 << 20)   /* pieces                                */
#define SPM_LENGTH_LIMIT 4096       /* bytes of one piece                    */

enum {
    SPM_NORMAL = 1, SPM_UNKNOWN, SPM_CONTROL, SPM_USER_DEFINED, SPM_UNUSED,
    SPM_BYTE
};

typedef struct spm_piece {
    const uint8_t *s;       /* len bytes of UTF-8, not NUL-terminated        */
    int32_t len;
    int32_t type;
    float score;
} spm_piece;

/* Pieces sorted by their bytes (shorter first), without duplicates. */
typedef struct spm_entry {
    const uint8_t *s;
    int32_t len, id;
} spm_entry;
typedef struct spm_dict {
    spm_entry *e;
    int64_t n;
} spm_dict;

/* Character map: a double-array trie of little-endian u32 units (unaligned)
 * whose leaves are offsets of NUL-terminated strings in a blob. */
typedef struct spm_charsmap {
    const uint8_t *units;
    int64_t nunits;         /* 0: the identity                               */
    const uint8_t *blob;    /* ends in NUL                                   */
    int64_t nblob;
} spm_charsmap;

struct tt_tokenizer {
    tt_arena arena;         /* owns this struct, the file's bytes, tables    */
    const char *path;       /* for messages                                  */
    spm_piece *piece;
    int64_t n;
    spm_dict dict;          /* NORMAL, USER_DEFINED and UNUSED               */
    spm_dict user;          /* USER_DEFINED                                  */
    spm_charsmap map;
    bool add_dummy_prefix, remove_extra_spaces, escape_spaces;
    bool byte_fallback;
    int32_t byte_id[256];
    int32_t unk, eos, pad;  /* eos, pad: -1 when the model has none          */
    float min_score, max_score;
};

static inline uint32_t spm_u32(const uint8_t *p) /* little-endian */
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
           | (uint32_t)p[3] << 24;
}

/* Walk the entries that are prefixes of a text, in increasing length:
 *     spm_walk w = spm_walk_begin(d);
 *     while ((e = spm_walk_next(&w, s, n))) ...                              */
typedef struct spm_walk {
    const spm_dict *d;
    int64_t lo, hi;         /* entries that share the first `depth` bytes    */
    size_t depth;
} spm_walk;
spm_walk spm_walk_begin(const spm_dict *d);
const spm_entry *spm_walk_next(spm_walk *w, const uint8_t *s, size_t n);

/* Unit unpacking of the double-array trie. */
uint32_t spm_unit_offset(uint32_t unit);
uint32_t spm_unit_label(uint32_t unit);

/* ---- files of weights that carry one (spm_inside.c) ---------------------- */

/* Are these the bytes of GGUF or safetensors? */
bool spm_is_container(const void *data, size_t n);
/* The bytes of the SentencePiece model in them: of `data`, or in scratch.
 * Errors  TT_EUNSUPPORTED  there is none, or none of a T5 */
tt_status spm_take(tt_ctx *ctx, const uint8_t **out, size_t *n,
                   const void *data, size_t size, const char *what);
/* Does this file carry one? False as well where it cannot be read. */
bool spm_inside(tt_ctx *ctx, const char *path);

/* The normalised text as bytes in `a`. */
tt_status spm_normalize(tt_ctx *ctx, tt_arena *a, uint8_t **out, size_t *nout,
                        const tt_tokenizer *tok, const uint8_t *s, size_t n);

#endif
