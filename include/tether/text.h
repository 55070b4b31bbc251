/* text.h: from a prompt to what the transformer reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     tt_tokenizer *tok; tt_umt5 *enc;
 *     tt_tokenizer_open(ctx, &tok, "spiece.model");
 *     tt_umt5_open(ctx, &enc, "models_t5_umt5-xxl-enc-bf16.pth");
 *     tt_prompt_embed(ctx, text, enc, tok, prompt, strlen(prompt), 512, NULL);
 *     tt_umt5_close(enc);          (gives the memory of the weights back)
 *     tt_tokenizer_close(tok);
 *
 * Three steps: Wan's prompt cleaning, a SentencePiece-compatible tokenizer,
 * and the umT5 encoder. Each can be used alone. */
#ifndef TETHER_TEXT_H
#define TETHER_TEXT_H

#include "tether/api.h"
#include "tether/context.h"
#include "tether/io.h"

TT_API_BEGIN

/* ---- tokenizer ---------------------------------------------------------- */

typedef struct tt_tokenizer tt_tokenizer;

/* Read a SentencePiece unigram model (spiece.model). tokenizer.json is not
 * read, and where Hugging Face's fast tokenizer differs from SentencePiece
 * (rare characters, markup such as </s> typed in a prompt) it is not imitated.
 * Errors  TT_EIO; TT_EFORMAT, TT_EUNSUPPORTED with the reason; nothing stays
 *         open and *out is NULL. */
tt_status tt_tokenizer_open(tt_ctx *ctx, tt_tokenizer **out, const char *path);
/* The same from n bytes, which are copied; `what` names them in messages. */
void tt_tokenizer_close(tt_tokenizer *tok);

/* What a prompt becomes for the encoder: cleaned (unless `clean` is false),
 * encoded, at most length-1 pieces kept (tt_warn when there are more), </s>
 * appended, padded.
 * Errors   TT_EINVAL as tt_text_clean; TT_EFORMAT when the model has no </s> */
typedef struct tt_token_row {
    int64_t length;        /* >= 1; 512 in Wan. Given, as where ids and mask are
                              to be written                                   */
    int64_t *ids;          /* [length]                                        */
    int64_t *mask;         /* [length] 1 for the first seq_len entries, else 0;
                              NULL when not wanted                            */
    int64_t seq_len;       /* set: entries up to </s>                         */
} tt_token_row;
tt_status tt_tokenizer_encode_prompt(tt_ctx *ctx, tt_token_row *out,
                                     const tt_tokenizer *tok, const char *text,
                                     size_t n, bool clean);

/* ---- umT5 encoder -------------------------------------------------------- */

typedef struct tt_umt5 tt_umt5;

/* Bind the encoder to the weights of a file or folder. Matrices stay mapped
 * in their stored type; only norms and bias tables are widened.
 * Errors  those of tt_weights_open; TT_ESHAPE naming missing, misshapen and
 *         unexpected tensors. */
tt_status tt_umt5_open(tt_ctx *ctx, tt_umt5 **out, const char *path);
/* Unmap the weights and free everything. */
void tt_umt5_close(tt_umt5 *enc);

/* ---- all together -------------------------------------------------------- */

typedef struct tt_prompt_options {
    bool no_clean;     /* the text is clean already                          */
    bool all_rows;     /* compute padding rows too (same result, slower)     */
} tt_prompt_options;

/* text [length, dim] = prompt_embeds of one prompt, rows past it zero.
 * opt may be NULL.
 * Errors  those of tt_umt5_check_tokenizer and tt_umt5_encode */
tt_status tt_prompt_embed(tt_ctx *ctx, tt_host *text, tt_umt5 *enc,
                          const tt_tokenizer *tok, const char *prompt,
                          size_t n, int64_t length,
                          const tt_prompt_options *opt);

TT_API_END

#endif
