/* text.h: what the modules use of tether/text.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TEXT_TEXT_H
#define TT_TEXT_TEXT_H

#include "core/context.h"
#include "io/io.h"
#include "tether/text.h"

/* Longest text accepted anywhere in this header, in bytes. */
#define TT_TEXT_LIMIT (1 << 20)

/* ---- cleaning ------------------------------------------------------------ */

/* out[0..*nout) = text[0..n) as Wan's tokenizer cleans it before encoding:
 * ftfy.fix_text, html.unescape twice, white space collapsed and stripped.
 * ftfy's repair of wrongly decoded text ("mojibake") is not done: such text
 * passes through unchanged. The result is NUL-terminated, in `a`.
 * Errors   TT_EINVAL  text is not valid UTF-8 or longer than TT_TEXT_LIMIT
 * Vectors  ref_data/t5_tokenizer/clean.tsv */
tt_status tt_text_clean(tt_ctx *ctx, tt_arena *a, char **out, size_t *nout,
                        const char *text, size_t n);

/* ---- tokenizer ---------------------------------------------------------- */

tt_status tt_tokenizer_open_bytes(tt_ctx *ctx, tt_tokenizer **out,
                                  const void *data, size_t n,
                                  const char *what);

int64_t tt_tokenizer_size(const tt_tokenizer *tok);     /* number of pieces  */
int64_t tt_tokenizer_eos(const tt_tokenizer *tok);      /* -1: model has none */
int64_t tt_tokenizer_pad(const tt_tokenizer *tok);      /* 0 if it has none  */
/* The piece of an id, *n bytes of UTF-8 (not NUL-terminated); NULL outside. */
const char *tt_tokenizer_piece(const tt_tokenizer *tok, int64_t id, size_t *n);

/* (*ids)[0..*nids) = pieces of text[0..n) exactly as SentencePiece encodes it:
 * no cleaning, no </s>. Any bytes are accepted; malformed UTF-8 becomes
 * U+FFFD byte by byte. The array is in `a`.
 * Errors   TT_EINVAL  longer than TT_TEXT_LIMIT
 * Vectors  ref_data/t5_tokenizer */
tt_status tt_tokenizer_encode(tt_ctx *ctx, tt_arena *a, int64_t **ids,
                              int64_t *nids, const tt_tokenizer *tok,
                              const char *text, size_t n);

/* ---- umT5 encoder -------------------------------------------------------- */

/* Read from the shapes of the weights; nothing needs a config file. */
typedef struct tt_umt5_config {
    int64_t vocab;     /* rows of the embedding                              */
    int64_t dim;       /* residual width                                     */
    int64_t dim_attn;  /* heads * head_dim                                   */
    int64_t dim_ffn;
    int64_t heads;     /* columns of the bias table                          */
    int64_t buckets;   /* rows of the bias table, a multiple of 4            */
    int64_t layers;
} tt_umt5_config;

/* The same from open weights, which the encoder owns from here on (they are
 * closed on failure too). */
tt_status tt_umt5_load(tt_ctx *ctx, tt_umt5 **out, tt_weights *weights);
const tt_umt5_config *tt_umt5_config_of(const tt_umt5 *enc);

/* Told how far an encoding is: `done` of `layers`, before the first layer and
 * after each. */
typedef void (*tt_umt5_progress_fn)(void *user, int64_t done, int64_t layers);
void tt_umt5_on_progress(tt_umt5 *enc, tt_umt5_progress_fn fn, void *user);

/* What the encoder reads. */
typedef struct tt_umt5_input {
    const int64_t *ids, *mask; /* [B, L]                                      */
    int64_t B, L;
    bool all_rows;         /* compute positions that no one reads as well     */
} tt_umt5_input;

/* context = umT5(ids) under mask, for each of B independent sequences of L;
 * prompt_embeds = context with rows >= seq_len set to 0, where seq_len is the
 * number of positive mask entries of that sequence.
 *   context, prompt_embeds [B, L, dim], either may be NULL
 * With context NULL, positions after the last unmasked one of all sequences
 * are not computed unless `all_rows` is set: such keys have weight exactly 0,
 * so the golden operators give the same bits either way.
 * A sequence whose mask is all zero attends uniformly to all L positions.
 * Taps     "text/block.i.attn", "text/block.i.ffn" (the branches),
 *          "text/block.i", "text/context" as [B, computed positions, dim],
 *          "text/prompt_embeds" as [B, L, dim].
 * Errors   TT_EINVAL  B or L not positive
 *          TT_ESHAPE  an id outside [0, vocab)
 *          TT_EFORMAT a result that is not finite (broken weights)
 * Vectors  ref_data/t5_basic and its neighbours */
tt_status tt_umt5_encode(tt_ctx *ctx, tt_host *context, tt_host *prompt_embeds,
                         tt_umt5 *enc, const tt_umt5_input *in);

/* Bucket of the relative position r = key - query in a table of `buckets`
 * rows (a multiple of 4 below 512), maximum distance 128.
 * Vectors  ref_data/t5_units */
int64_t tt_umt5_bucket(int64_t r, int64_t buckets);

/* ---- all together -------------------------------------------------------- */

/* Do they belong together? The encoder has a row for each piece (and may have
 * 300 rows for Hugging Face's <extra_id_k>, or 384, which is 300 filled up to a
 * multiple of 128), and padding, </s> and <unk> are 0, 1 and 2 (or 3).
 * tt_prompt_embed asks.
 * Errors  TT_ESHAPE names both files */
tt_status tt_umt5_check_tokenizer(tt_ctx *ctx, const tt_umt5 *enc,
                                  const tt_tokenizer *tok);

#endif
