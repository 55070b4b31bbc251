/* spm_inside.c: the tokenizer that a file of weights carries.
 *
 * Source  ComfyUI: the tensor spiece_model holds the bytes of spiece.model.
 *         llama.cpp: tokenizer.ggml.* of the metadata hold what is in it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   Both become the bytes of a SentencePiece model, which spm_model.c
 *         reads and checks as if they came from spiece.model itself. */
#include <stdio.h>
#include <string.h>

#include "io/bytes.h"
#include "io/gguf.h"
#include "text/spm.h"

static const tt_tensor *spm_inside_pieces_of(const tt_file *f)
{
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        const size_t n = strlen(e->name), m = strlen("spiece_model");
        if (n >= m && !strcmp(e->name + n - m, "spiece_model")
            && (n == m || e->name[n - m - 1] == '.')) return &e->t;
    }
    return NULL;
}

bool spm_is_container(const void *data, size_t n)
{
    const char *p = data;
    return (n >= 4 && !memcmp(p, "GGUF", 4))
        || (n > 8 && !memcmp(p + 4, "\0\0\0\0{", 5));
}

bool spm_inside(tt_ctx *ctx, const char *path)
{
    tt_file *f;
    const bool read = !tt_file_open(ctx, &f, path);
    const bool there = read && (spm_inside_pieces_of(f)
                                || gguf_value_of(f, "tokens"));
    if (read) tt_file_close(f);
    tt_clear(ctx);
    return there;
}

/* ---- metadata of GGUF as a protobuf -------------------------------------- */

typedef struct writer {
    uint8_t *p;
    size_t n;
} writer;

static void put_varint(writer *w, uint64_t v)
{
    for (; v > 127; v >>= 7) w->p[w->n++] = (uint8_t)(v | 128);
    w->p[w->n++] = (uint8_t)v;
}

/* Field `number` of wire type 0. */
static void spm_inside_put_number(writer *w, unsigned number, uint64_t v)
{
    put_varint(w, number << 3);
    put_varint(w, v);
}

/* Of wire type 2: how many bytes follow. */
static void put_length(writer *w, unsigned number, uint64_t n)
{
    put_varint(w, number << 3 | 2);
    put_varint(w, n);
}

static void put_bytes(writer *w, unsigned number, const uint8_t *p, uint64_t n)
{
    put_length(w, number, n);
    if (n) memcpy(w->p + w->n, p, n);
    w->n += n;
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v > 127; v >>= 7) n++;
    return n;
}

/* Where umT5 has them, which is also what llama.cpp takes of a T5 whose file
 * does not say it. */
enum { PAD = 0, EOS = 1 };

/* What the metadata says; NULL: not there. */
typedef struct reported {
    const gguf_value *tokens, *scores, *types, *map, *prefix, *spaces;
} reported;

static void put_pieces(writer *w, const reported *t)
{
    const uint8_t *p = t->tokens->p;
    bool bytes = false;
    for (uint64_t i = 0; i < t->tokens->n; i++) {
        const uint64_t n = le64(p);
        const uint32_t type = t->types ? le32(t->types->p + 4 * i) : 1;
        const uint64_t size = 1 + varint_size(n) + n + 5 + 1
                            + varint_size(type);
        put_length(w, 1, size);
        put_bytes(w, 1, p + 8, n);
        put_varint(w, 2 << 3 | 5);
        memcpy(w->p + w->n, t->scores->p + 4 * i, 4);
        w->n += 4;
        spm_inside_put_number(w, 3, type);
        bytes |= type == SPM_BYTE;
        p += 8 + n;
    }
    writer trainer = {(uint8_t[40]){0}, 0};
    spm_inside_put_number(&trainer, 35, bytes);
    spm_inside_put_number(&trainer, 42, EOS);
    spm_inside_put_number(&trainer, 43, PAD);
    put_bytes(w, 2, trainer.p, trainer.n);
}

static void put_normalizer(writer *w, const reported *t)
{
    const uint64_t n = t->map ? t->map->n : 0;
    put_length(w, 3, n ? 1 + varint_size(n) + n + 4 : 4);
    if (n) put_bytes(w, 2, t->map->p, n);
    spm_inside_put_number(w, 3, t->prefix ? *t->prefix->p : 1);
    spm_inside_put_number(w, 4, t->spaces ? *t->spaces->p : 1);
}

static tt_status spm_inside_refuse(tt_ctx *ctx, const char *what,
                                   const char *why)
{
    return tt_fail(ctx, TT_EUNSUPPORTED, "%s: the tokenizer in it cannot be "
                   "used: %s; give google/umt5-xxl/spiece.model of "
                   "Wan2.1-T2V-1.3B with --tokenizer FILE", what, why);
}

static const gguf_value *typed(const tt_file *f, const char *key, gguf_type t,
                               bool array)
{
    const gguf_value *v = gguf_value_of(f, key);
    return v && v->type == t && v->array == array ? v : NULL;
}

/* The token `key` is number `want`, where the file says which it is. */
static tt_status check_id(tt_ctx *ctx, const tt_file *f, const char *key,
                          uint32_t want, const char *what)
{
    char why[120], has[32] = "no number of 32 bits";
    const gguf_value *v = gguf_value_of(f, key);
    const bool whole = v && !v->array
                    && (v->type == GGUF_U32 || v->type == GGUF_I32);
    if (!v || (whole && le32(v->p) == want)) return TT_OK;
    if (whole) snprintf(has, sizeof has, "%lld", (long long)le32(v->p));
    snprintf(why, sizeof why, "tokenizer.ggml.%s is %s, expected %lld as in "
             "umT5", key, has, (long long)want);
    return spm_inside_refuse(ctx, what, why);
}

static tt_status take_gguf(tt_ctx *ctx, writer *w, const tt_file *f,
                           const char *what)
{
    const gguf_value *model = typed(f, "model", GGUF_STRING, false);
    const reported t = {
        .tokens = typed(f, "tokens", GGUF_STRING, true),
        .scores = typed(f, "scores", GGUF_F32, true),
        .types = typed(f, "token_type", GGUF_I32, true),
        .map = typed(f, "precompiled_charsmap", GGUF_U8, true),
        .prefix = typed(f, "add_space_prefix", GGUF_BOOL, false),
        .spaces = typed(f, "remove_extra_whitespaces", GGUF_BOOL, false)};
    if (!gguf_value_of(f, "tokens"))
        return spm_inside_refuse(ctx, what, "it has no tokens");
    if (!model || le64(model->p) != 2 || memcmp(model->p + 8, "t5", 2))
        return spm_inside_refuse(ctx, what,
                                 "tokenizer.ggml.model is not t5, which is "
                                 "what umT5 has");
    if (!t.tokens || !t.scores || t.scores->n != t.tokens->n
        || (t.types ? t.types->n != t.tokens->n
                    : gguf_value_of(f, "token_type") != NULL)
        || (!t.map && gguf_value_of(f, "precompiled_charsmap")))
        return spm_inside_refuse(ctx, what, "tokens, scores, token_type and "
                                 "precompiled_charsmap do not belong together");
    TT_TRY(check_id(ctx, f, "eos_token_id", EOS, what));
    TT_TRY(check_id(ctx, f, "padding_token_id", PAD, what));
    const uint64_t size = t.tokens->bytes + 40 * t.tokens->n + 128
                        + (t.map ? t.map->n : 0);
    if (t.tokens->n > SPM_PIECE_LIMIT || size > SPM_FILE_LIMIT)
        return spm_inside_refuse(ctx, what, "it is too large");
    w->p = tt_alloc(ctx, &ctx->scratch, (int64_t)size, 1, "a tokenizer");
    if (!w->p) return ctx->status;
    put_pieces(w, &t);
    put_normalizer(w, &t);
    return TT_OK;
}

tt_status spm_take(tt_ctx *ctx, const uint8_t **out, size_t *n,
                   const void *data, size_t size, const char *what)
{
    tt_file *f;
    writer w = {NULL, 0};
    TT_TRY(file_open_bytes(ctx, &f, data, size, what));
    const tt_tensor *t = spm_inside_pieces_of(f);
    if (!strcmp(tt_file_format(f), "GGUF") && !t) {
        take_gguf(ctx, &w, f, what);
    } else if (!t || (t->dtype != TT_U8 && t->dtype != TT_I8)
               || !tt_tensor_packed(t)) {
        spm_inside_refuse(ctx, what, t ? "the tensor spiece_model does not "
                          "hold bytes" : "there is none, which would be a "
                          "tensor spiece_model");
    } else {
        w = (writer){(uint8_t *)(uintptr_t)t->data, (size_t)tt_tensor_count(t)};
    }
    *out = w.p;
    *n = w.n;
    tt_file_close(f); /* what it points to is the caller's `data` */
    return ctx->status;
}
