/* spm_encode.c: the most likely pieces of a text.
 *
 * Source  google/sentencepiece, unigram_model.cc (0.1.97), EncodeOptimized;
 *         sentencepiece_processor.cc; wan/modules/tokenizers.py
 * SPDX-License-Identifier: Apache-2.0
 *
 * Viterbi over the whole normalised text. The accumulated score is float and
 * candidates are compared in double, exactly as the library does: this decides
 * near ties, so it is part of the result. */
#include <string.h>

#include "text/clean.h"
#include "text/spm.h"

/* Best way to reach a byte position. */
typedef struct node {
    float score;
    int32_t start;  /* where the last piece begins; -1: not reached          */
    int32_t id;
} node;

/* Bytes of the character that starts with b, by its high bits. */
static size_t char_length(uint8_t b)
{
    return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

static void spm_encode_offer(node *to, double candidate, size_t start,
                             int32_t id)
{
    if (to->start >= 0 && !(candidate > (double)to->score)) return;
    to->score = (float)candidate;
    to->start = (int32_t)start;
    to->id = id;
}

/* Pieces that begin at s[i], a character of len1 bytes. */
static void spm_encode_extend(node *best, const tt_tokenizer *tok,
                              const uint8_t *s, size_t n, size_t i, size_t len1)
{
    bool single = false;
    spm_walk w = spm_walk_begin(&tok->dict);
    for (const spm_entry *e; (e = spm_walk_next(&w, s + i, n - i));) {
        const spm_piece *p = &tok->piece[e->id];
        if (p->type == SPM_UNUSED) continue;
        double score = (double)p->score;
        if (p->type == SPM_USER_DEFINED) {
            float most = (float)e->len * tok->max_score;
            score = (double)most - 0.1;
        }
        spm_encode_offer(&best[i + (size_t)e->len],
                         score + (double)best[i].score, i, e->id);
        if ((size_t)e->len == len1) single = true;
    }
    if (single) return;
    const float unk_score = (float)(tok->min_score - 10);
    const float candidate = unk_score + best[i].score;
    spm_encode_offer(&best[i + len1], (double)candidate, i, tok->unk);
}

/* ids[0..return) of the path that ends at n, in text order. */
static int64_t backtrack(int64_t *ids, const node *best,
                         const tt_tokenizer *tok, const uint8_t *s, size_t n)
{
    int64_t count = 0;
    bool unk_before = false; /* the piece after this one was unknown         */
    for (size_t end = n; end > 0; end = (size_t)best[end].start) {
        bool unk = best[end].id == tok->unk;
        if (unk && tok->byte_fallback) {
            for (size_t k = end; k > (size_t)best[end].start; k--)
                ids[count++] = tok->byte_id[s[k - 1]];
        } else if (!unk || !unk_before) {
            ids[count++] = best[end].id;
        }
        unk_before = unk;
    }
    for (int64_t i = 0; i < count / 2; i++) {
        int64_t t = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = t;
    }
    return count;
}

static tt_status text_spm_encode(tt_ctx *ctx, tt_arena *a, int64_t **ids,
                                 int64_t *nids, const tt_tokenizer *tok,
                                 const char *text, size_t len)
{
    uint8_t *s;
    size_t n;
    *ids = NULL;
    *nids = 0;
    TT_TRY(spm_normalize(ctx, a, &s, &n, tok, (const uint8_t *)text, len));
    int64_t *out = tt_alloc(ctx, a, (int64_t)n, sizeof *out, "token ids");
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    node *best = tt_alloc(ctx, &ctx->scratch, (int64_t)n + 1, sizeof *best,
                          "tokenizer lattice");
    if (ctx->status) return ctx->status;
    for (size_t i = 0; i <= n; i++) {
        best[i].score = 0;
        best[i].start = -1;
        best[i].id = -1;
    }
    for (size_t i = 0; i < n;) {
        size_t len1 = char_length(s[i]);
        if (len1 > n - i) len1 = n - i;
        spm_encode_extend(best, tok, s, n, i, len1);
        i += len1;
    }
    *nids = backtrack(out, best, tok, s, n);
    *ids = out;
    tt_arena_reset(&ctx->scratch, mark);
    return TT_OK;
}

tt_status tt_tokenizer_encode(tt_ctx *ctx, tt_arena *a, int64_t **ids,
                              int64_t *nids, const tt_tokenizer *tok,
                              const char *text, size_t n)
{
    *ids = NULL;
    *nids = 0;
    if (ctx->status) return ctx->status;
    if (n > TT_TEXT_LIMIT)
        return tt_fail(ctx, TT_EINVAL,
                       "the text is %zu bytes long; at most %d are accepted",
                       n, TT_TEXT_LIMIT);
    return text_spm_encode(ctx, a, ids, nids, tok, text, n);
}

/* A prompt that loses its end would be obeyed in part without a word. */
static void warn_of_cut(tt_ctx *ctx, const char *text, size_t n, int64_t count,
                        int64_t length)
{
    size_t shown = n < 40 ? n : 40;
    while (shown > 0 && shown < n && ((uint8_t)text[shown] & 0xC0) == 0x80)
        shown--;
    tt_warn(ctx, "the prompt \"%.*s%s\" has %lld tokens and %lld are read: its "
            "end is cut off", (int)shown, text, shown < n ? "..." : "",
            (long long)count, (long long)length);
}

tt_status tt_tokenizer_encode_prompt(tt_ctx *ctx, tt_token_row *out,
                                     const tt_tokenizer *tok, const char *text,
                                     size_t n, bool clean)
{
    if (ctx->status) return ctx->status;
    const int64_t length = out->length;
    if (length < 1)
        return tt_fail(ctx, TT_EINVAL, "a token sequence needs a length of at "
                       "least 1, not %lld", (long long)length);
    if (tok->eos < 0)
        return tt_fail(ctx, TT_EFORMAT,
                       "the tokenizer has no end-of-sequence piece </s>");
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char *cleaned;
    size_t ncleaned;
    int64_t *all, count;
    /* Cleaning also refuses what is not UTF-8, so it runs in both cases. */
    TT_TRY(tt_text_clean(ctx, &ctx->scratch, &cleaned, &ncleaned, text, n));
    if (!clean) {
        cleaned = (char *)text;
        ncleaned = n;
    }
    TT_TRY(text_spm_encode(ctx, &ctx->scratch, &all, &count, tok, cleaned,
                           ncleaned));
    if (count > length - 1) {
        warn_of_cut(ctx, text, n, count + 1, length);
        count = length - 1;
    }
    for (int64_t i = 0; i < length; i++) {
        out->ids[i] = i < count ? all[i] : i == count ? tok->eos
                                                      : tt_tokenizer_pad(tok);
        if (out->mask) out->mask[i] = i <= count;
    }
    out->seq_len = count + 1;
    tt_arena_reset(&ctx->scratch, mark);
    return TT_OK;
}
