/* text_cases.c: cases of the text encoder and the tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Kinds t5_encoder, t5_units and tokenizer. A tokenizer case has no expected
 * tensors but TSV files; for those this writes, per table <t>, the ids of all
 * rows one after another as <t>.ids and where each row begins as <t>.offsets
 * (one more than rows). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run_case/run_case.h"
#include "ops/ops.h"
#include "text/text.h"

/* ---- umT5 ---------------------------------------------------------------- */

/* Collects the encoder's taps of one row into [B, L, dim] tensors. */
typedef struct taps {
    run_io *io;
    int64_t row, B, n;             /* values per row                          */
    int count;
    struct { char name[48]; tt_real *data; int64_t L, dim; } t[256];
} taps;

static void collect(void *user, const char *path, tt_dtype dtype, int rank,
                    const int64_t *dim, const void *data)
{
    taps *c = user;
    const char *name = strstr(path, "block.");
    (void)dtype;
    if (!name || rank < 2 || strlen(name) >= sizeof c->t[0].name) return;
    const int64_t L = dim[rank - 2], D = dim[rank - 1];
    int i = 0;
    while (i < c->count && strcmp(c->t[i].name, name)) i++;
    if (i == c->count) {
        if (i == 256) return;
        strcpy(c->t[i].name, name);
        c->t[i].data = run_alloc(c->io, c->B * L * D);
        c->t[i].L = L;
        c->t[i].dim = D;
        c->count++;
    }
    if (c->t[i].data && L == c->t[i].L)
        memcpy(c->t[i].data + c->row * L * D, data,
               (size_t)(L * D) * sizeof(tt_real));
}

static const char *file_name(run_io *io, const char *key, const char *otherwise)
{
    return tt_json_str(tt_json_get(io->json, "files"), key, otherwise);
}

static void t5_encoder(run_io *io)
{
    char path[1024];
    tt_umt5 *enc;
    int64_t s[2] = {0}, r[2] = {0};
    const int64_t *ids = run_input_i64(io, "ids", 2, s);   /* [B, L]          */
    const int64_t *mask = run_input_i64(io, "mask", 2, r);
    snprintf(path, sizeof path, "%s/%s", io->dir,
             file_name(io, "weights", "weights.safetensors"));
    if (io->ctx->status || tt_umt5_open(io->ctx, &enc, path) != TT_OK) return;

    const int64_t B = s[0], L = s[1], dim = tt_umt5_config_of(enc)->dim;
    tt_real *context = run_alloc(io, B * L * dim);
    tt_real *embeds = run_alloc(io, B * L * dim);
    taps *c = tt_alloc0(io->ctx, &io->arena, 1, sizeof *c, "taps");
    const tt_tap_fn tap = io->ctx->tap;
    void *tap_user = io->ctx->tap_user;
    for (int64_t b = 0; b < B && c && !io->ctx->status; b++) {
        *c = b ? *c : (taps){.io = io, .B = B};
        c->row = b;
        io->ctx->tap = collect;
        io->ctx->tap_user = c;
        tt_umt5_encode(io->ctx, context + b * L * dim, embeds + b * L * dim,
                       enc, &(tt_umt5_input){ids + b * L, mask + b * L, 1, L,
                                             true});
        io->ctx->tap = tap;
        io->ctx->tap_user = tap_user;
    }
    for (int i = 0; c && i < c->count; i++)
        run_put(io, c->t[i].name, c->t[i].data, B, c->t[i].L, c->t[i].dim);
    run_put(io, "context", context, B, L, dim);
    run_put(io, "prompt_embeds", embeds, B, L, dim);
    tt_umt5_close(enc);
}

static void t5_units(run_io *io)
{
    int64_t n = 0, g = 0, s[2] = {0}, w = 0;
    const int64_t *rel = run_input_i64(io, "rel", 1, &n);
    tt_real *gelu = run_input(io, "gelu_x", 1, &g);
    tt_real *x = run_input(io, "norm_x", 2, s);
    const tt_real *weight = run_input(io, "norm_weight", 1, &w);
    int32_t *b32 = tt_alloc(io->ctx, &io->arena, n, sizeof *b32, "buckets");
    int32_t *b16 = tt_alloc(io->ctx, &io->arena, n, sizeof *b16, "buckets");
    for (int64_t i = 0; i < n && !io->ctx->status; i++) {
        b32[i] = (int32_t)tt_umt5_bucket(rel[i], 32);
        b16[i] = (int32_t)tt_umt5_bucket(rel[i], 16);
    }
    tt_gelu_tanh(io->ctx, gelu, g);
    tt_rms_norm(io->ctx, x, x, s[0], s[1], weight,
                tt_json_num(io->json, "norm_eps", 1e-6));
    run_put_typed(io, "bucket32", TT_I32, b32, 1, &n);
    run_put_typed(io, "bucket16", TT_I32, b16, 1, &n);
    run_put(io, "gelu", gelu, g);
    run_put(io, "norm", x, s[0], s[1]);
}

/* ---- tokenizer ----------------------------------------------------------- */

/* Growing list of integers. */
typedef struct ints { int64_t *x, n, cap; } ints;

static void push(ints *l, int64_t x)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 1024;
        l->x = realloc(l->x, (size_t)l->cap * sizeof *l->x);
        if (!l->x) abort();
    }
    l->x[l->n++] = x;
}

/* Bytes of the hex digits at s up to the next tab or line end, "-" is none. */
static char *unhex(run_io *io, const char *s, size_t *n)
{
    const size_t digits = strcspn(s, "\t\r\n");
    char *out = tt_alloc(io->ctx, &io->arena, (int64_t)digits / 2 + 1, 1,
                         "a row's text");
    *n = 0;
    for (size_t i = 0; out && *s != '-' && i + 1 < digits; i += 2) {
        const char pair[3] = {s[i], s[i + 1], 0};
        out[(*n)++] = (char)strtol(pair, NULL, 16);
    }
    return out;
}

/* Encode the second column of dir/<table>.tsv; `wan`: as a prompt of 512. */
static void table(run_io *io, const tt_tokenizer *tok, const char *name,
                  bool wan)
{
    char path[1024], out[160];
    snprintf(path, sizeof path, "%s/%s.tsv", io->dir, name);
    FILE *f = fopen(path, "rb");
    if (!f || io->ctx->status) {
        if (f) fclose(f);
        return;
    }
    ints ids = {0}, offsets = {0};
    char *line = NULL;
    size_t capacity = 0;
    push(&offsets, 0);
    while (getline(&line, &capacity, f) > 0 && !io->ctx->status) {
        const char *tab = strchr(line, '\t');
        if (*line == '#' || !tab || *line < '0' || *line > '9') continue;
        size_t n;
        const char *text = unhex(io, tab + 1, &n);
        int64_t *x = NULL, count = 0, row[512];
        if (wan) {
            tt_token_row r = {.length = 512, .ids = row};
            tt_tokenizer_encode_prompt(io->ctx, &r, tok, text, n, false);
            x = row;
            count = r.seq_len;
        } else {
            tt_tokenizer_encode(io->ctx, &io->arena, &x, &count, tok, text, n);
        }
        if (io->ctx->status) break;
        for (int64_t i = 0; i < count; i++) push(&ids, x[i]);
        push(&offsets, ids.n);
    }
    fclose(f);
    free(line);
    snprintf(out, sizeof out, "%s.ids", name);
    run_put_i64(io, out, ids.x, ids.n);
    snprintf(out, sizeof out, "%s.offsets", name);
    run_put_i64(io, out, offsets.x, offsets.n);
    free(ids.x);
    free(offsets.x);
}

static void tokenizer(run_io *io)
{
    const tt_json *models = tt_json_get(io->json, "models");
    const tt_json *m = tt_json_first(models);
    for (; m && !io->ctx->status; m = tt_json_next(m)) {
        static const char *const part[] = {"", "_invalid_utf8", "_wan512"};
        char path[1024];
        tt_tokenizer *tok;
        snprintf(path, sizeof path, "%s/%s.model", io->dir, m->key);
        if (tt_tokenizer_open(io->ctx, &tok, path) != TT_OK) return;
        for (int i = 0; i < 3; i++) {
            char name[128];
            snprintf(name, sizeof name, "%s%s", m->key, part[i]);
            table(io, tok, name, i == 2);
        }
        tt_tokenizer_close(tok);
    }
}

tt_status run_text_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                        tt_st_writer *out)
{
    const char *kind = tt_json_str(json, "kind", "");
    run_io io = {.ctx = ctx, .json = json, .dir = dir, .out = out};
    if (!strcmp(kind, "tokenizer")) {       /* has no inputs.safetensors */
        tokenizer(&io);
        return run_io_close(&io);
    }
    if (strcmp(kind, "t5_encoder") && strcmp(kind, "t5_units"))
        return TT_EUNSUPPORTED;
    if (run_io_open(&io, ctx, json, dir, out) == TT_OK) {
        if (!strcmp(kind, "t5_units")) t5_units(&io);
        else t5_encoder(&io);
    }
    return run_io_close(&io);
}
