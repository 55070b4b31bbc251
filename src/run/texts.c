/* texts.c: prompts to embeddings, before the transformer runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   on return the text encoder is closed: its weights, five times those
 *         of the transformer, are unmapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/parts.h"
#include "io/inputs.h"
#include "io/stream.h"
#include "team/team.h"
#include "text/text.h"

/* ---- the prompts --------------------------------------------------------- */

char *texts_read_file(tt_ctx *ctx, tt_arena *a, const char *path)
{
    io_stream in;
    char *text = tt_alloc(ctx, a, TT_TEXT_LIMIT + 2, 1, "prompt file");
    if (stream_open(ctx, &in, path)) return NULL;
    const size_t n = stream_read(&in, text, TT_TEXT_LIMIT + 1);
    stream_close(&in);
    if (ctx->status) return NULL;
    text[n] = 0;
    if (n <= TT_TEXT_LIMIT && strlen(text) == n) return text;
    tt_fail(ctx, TT_EFORMAT, "%s is not a prompt file: %s", path,
            n > TT_TEXT_LIMIT ? "it is longer than 1 MiB"
                              : "it contains zero bytes");
    return NULL;
}

/* One prompt per line that is not blank. */
static tt_status split_lines(tt_ctx *ctx, texts *t, const char *path)
{
    int64_t lines = 1;
    char *text = texts_read_file(ctx, &t->mem, path);
    for (const char *c = text; c && *c; c++) lines += *c == '\n';
    t->prompt = tt_alloc(ctx, &t->mem, lines, sizeof *t->prompt, "prompts");
    t->line = tt_alloc(ctx, &t->mem, lines, sizeof *t->line, "prompts");
    int64_t number = 0;
    for (char *line = text; line && !ctx->status;) {
        number++;
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        size_t n = strlen(line);
        if (n && line[n - 1] == '\r') line[n - 1] = 0;
        if (line[strspn(line, " \t")]) {
            t->line[t->n] = number;
            t->prompt[t->n++] = line;
        }
        line = end ? end + 1 : NULL;
    }
    if (!ctx->status && !t->n)
        return tt_fail(ctx, TT_EFORMAT, "%s holds no prompt: every line is "
                       "blank", path);
    return ctx->status;
}

/* The file of extended prompts: a line for every line of the other one. */
static tt_status read_extended(tt_ctx *ctx, texts *t, const tt_settings *g)
{
    const char *path = g->extended_prompt_file;
    texts more = {.mem = t->mem};
    split_lines(ctx, &more, path);
    t->mem = more.mem;
    TT_TRY(ctx->status);
    int i = 0;
    while (i < t->n && i < more.n && t->line[i] == more.line[i]) i++;
    if (more.n != t->n)
        return tt_fail(ctx, TT_EFORMAT, "%s has %d prompts and %s %d: every "
                       "prompt needs one extended prompt, on the same line",
                       g->prompt_file, t->n, path, more.n);
    if (i < t->n)
        return tt_fail(ctx, TT_EFORMAT, "%s has a prompt on line %lld where %s "
                       "has it on line %lld: every prompt needs its extended "
                       "prompt on the same line", g->prompt_file,
                       (long long)t->line[i], path, (long long)more.line[i]);
    t->extended = more.prompt;
    return TT_OK;
}

static tt_status run_texts_collect(tt_ctx *ctx, texts *t, const tt_settings *g,
                                   const tt_scenes *scenes)
{
    if (g->embeds) {
        t->n = scenes->n ? scenes->nprompts : 1;
        t->prompt = tt_alloc0(ctx, &t->mem, t->n, sizeof *t->prompt, "prompt");
        for (int i = 0; t->prompt && scenes->n && i < t->n; i++)
            t->prompt[i] = scenes->prompt[i];
        return ctx->status;
    }
    if (scenes->n) {
        t->n = scenes->nprompts;
        t->prompt = scenes->prompt;
        return TT_OK;
    }
    if (g->prompt_file) {
        TT_TRY(split_lines(ctx, t, g->prompt_file));
        return g->extended_prompt_file ? read_extended(ctx, t, g) : TT_OK;
    }
    t->n = 1;
    t->prompt = tt_alloc(ctx, &t->mem, 1, sizeof *t->prompt, "prompt");
    if (t->prompt) t->prompt[0] = g->prompt;
    return ctx->status;
}

/* A prompt that cannot be cleaned is found now, not after hours. Out of a file
 * it is a bad file. */
static tt_status check_prompt(tt_ctx *ctx, const texts *t, const char *file,
                              const char *words, int i)
{
    char *clean, where[64] = "", why[sizeof ctx->message];
    size_t n;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_text_clean(ctx, &ctx->scratch, &clean, &n, words, strlen(words));
    tt_arena_reset(&ctx->scratch, mark);
    if (ctx->status != TT_EINVAL) return ctx->status;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    if (t->line)
        snprintf(where, sizeof where, ", line %lld", (long long)t->line[i]);
    return tt_fail(ctx, file ? TT_EFORMAT : TT_EINVAL, "%s%s: %s",
                   file ? file : "the prompt", where, why);
}

tt_status texts_collect(tt_ctx *ctx, texts *t, const tt_settings *g,
                        const tt_scenes *scenes)
{
    memset(t, 0, sizeof *t);
    if (ctx->status || run_texts_collect(ctx, t, g, scenes)) return ctx->status;
    for (int i = 0; !g->embeds && i < t->n; i++) {
        TT_TRY(check_prompt(ctx, t, t->line ? g->prompt_file : g->scene_file,
                            t->prompt[i], i));
        if (t->extended)
            TT_TRY(check_prompt(ctx, t, g->extended_prompt_file,
                                t->extended[i], i));
    }
    return ctx->status;
}

/* ---- embeddings ---------------------------------------------------------- */

/* Rows after text_len are padding when they are zero, and can go. */
static tt_status check_padding(tt_ctx *ctx, const char *path, const char *name,
                               const tt_real *x, const int64_t dim[3],
                               int64_t rows)
{
    for (int64_t i = rows * dim[2]; i < dim[1] * dim[2]; i++)
        if (x[i] != 0)
            return tt_fail(ctx, TT_ESHAPE, "%s: `%s` has %lld rows that are "
                           "not all zero after row %lld, but this transformer "
                           "reads %lld (text_len); encode again with `tether "
                           "embed --length %lld`", path, name,
                           (long long)dim[1], (long long)rows, (long long)rows,
                           (long long)rows);
    return TT_OK;
}

/* `text`, and for the other prompts of scenes `text_1`, `text_2`, ... */
static tt_status read_embeds(tt_ctx *ctx, texts *t, const tt_settings *g,
                             const tt_dit_config *dit)
{
    int64_t dim[3] = {1, -1, dit->text_dim};
    for (int i = 0; i < t->n; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "text_%d" : "text", i);
        const tt_real *x = input_read(ctx, &t->mem, g->embeds, name, 3, dim);
        if (!x) return ctx->status;
        if (i == 0) t->rows = dim[1];             /* fixed by the first one */
        if (dit->text_len && dim[1] > dit->text_len) t->rows = dit->text_len;
        TT_TRY(check_padding(ctx, g->embeds, name, x, dim, t->rows));
        const int64_t size = t->rows * dim[2];
        if (i == 0)
            t->text = tt_alloc(ctx, &t->mem, t->n * size, sizeof *t->text,
                               "embeddings");
        if (!t->text) return ctx->status;
        memcpy(t->text + i * size, x, (size_t)size * sizeof *x);
    }
    return TT_OK;
}

static tt_status texts_open_encoder(tt_ctx *ctx, tt_umt5 **enc, tt_run *run)
{
    const char *path;
    tt_weights *w;
    TT_TRY(tt_model_text_encoder(ctx, &path, &run->s.model));
    const tt_weights_options opt = {.ema = -1, .lora = run->s.model.lora};
    TT_TRY(tt_weights_open(ctx, &w, path, TT_MODEL_T5, &opt));
    record_input(ctx, &run->record, "text encoder", tt_weights_path(w),
                 tt_weights_origin(w));
    return tt_umt5_load(ctx, enc, w);
}

/* Layers of all prompts, for the progress line. */
typedef struct layers {
    const tt_run_events *events;
    double start;
    int prompt, prompts;
} layers;

static void texts_on_layer(void *user, int64_t done, int64_t all)
{
    const layers *l = user;
    if (done == all) return; /* the next prompt says so */
    const tt_run_work work = {
        .done = l->prompt + (double)done / (double)all, .total = l->prompts,
        .seconds = tt_now() - l->start};
    run_work(l->events, work, "text encoder, prompt %d/%d layer %lld/%lld",
             l->prompt + 1, l->prompts, (long long)done + 1, (long long)all);
}

static tt_status texts_encode(tt_ctx *ctx, texts *t, tt_umt5 *enc,
                              const tt_tokenizer *tok, const tt_run_events *e)
{
    layers l = {.events = e, .start = tt_now(), .prompts = t->n};
    tt_umt5_on_progress(enc, texts_on_layer, &l);
    for (int i = 0; i < t->n && !ctx->status; i++) {
        double start = tt_now();
        const size_t scope = texts_scope(ctx, i);
        l.prompt = i;
        tt_prompt_embed(ctx, t->text + (int64_t)i * t->rows * t->dim, enc, tok,
                        texts_words(t, i), strlen(texts_words(t, i)), t->rows,
                        NULL);
        tt_scope_end(ctx, scope);
        run_say(e, true, "encoded prompt %d of %d in %.1f s", i + 1, t->n,
                tt_now() - start);
        TT_TRY(tt_check_interrupt(ctx));
    }
    return ctx->status;
}

/* t->text from the encoder, which is gone afterwards. */
static tt_status use_encoder(tt_ctx *ctx, tt_run *run, const tt_dit_config *dit)
{
    texts *t = &run->texts;
    char path[4096];
    tt_tokenizer *tok = NULL;
    tt_umt5 *enc = NULL;
    TT_TRY(tt_model_tokenizer(ctx, path, sizeof path, &run->s.model));
    TT_TRY(tt_tokenizer_open(ctx, &tok, path));
    record_input(ctx, &run->record, "tokenizer", path, NULL);
    run_work(&run->events, (tt_run_work){.total = t->n},
             "opening the text encoder");
    texts_open_encoder(ctx, &enc, run);
    if (!ctx->status && tt_umt5_config_of(enc)->dim != dit->text_dim)
        tt_fail(ctx, TT_ESHAPE, "the text encoder gives %lld values per token "
                "and the transformer reads %lld: they belong to different "
                "models", (long long)tt_umt5_config_of(enc)->dim,
                (long long)dit->text_dim);
    if (!ctx->status) texts_encode(ctx, t, enc, tok, &run->events);
    if (enc) tt_umt5_close(enc);
    tt_tokenizer_close(tok);
    return ctx->status;
}

static tt_status compute_embeds(tt_ctx *ctx, tt_run *run,
                                const tt_dit_config *dit)
{
    texts *t = &run->texts;
    t->rows = dit->text_len ? dit->text_len : 512;
    t->dim = dit->text_dim;
    const int64_t n = t->n * t->rows * t->dim;
    t->text = tt_alloc(ctx, &t->mem, n, sizeof *t->text, "embeddings");
    if (tt_team_rank(ctx) == 0) use_encoder(ctx, run, dit);
    return tt_team_broadcast(ctx, t->text, n * (int64_t)sizeof *t->text);
}

tt_status texts_make(tt_ctx *ctx, tt_run *run)
{
    const tt_dit_config *dit = tt_dit_get_config(run->dit);
    const tt_settings *g = &run->s;
    double start = tt_now();
    run->texts.dim = dit->text_dim;
    if (ctx->status) return ctx->status;
    if (g->embeds) {
        record_input(ctx, &run->record, "embeddings", g->embeds, NULL);
        read_embeds(ctx, &run->texts, g, dit);
    } else {
        compute_embeds(ctx, run, dit);
    }
    run->record.text_seconds = tt_now() - start;
    return ctx->status;
}

size_t texts_scope(tt_ctx *ctx, int i)
{
    return i ? tt_scope(ctx, "prompt.%d", i) : strlen(ctx->path);
}

void texts_free(texts *t)
{
    tt_arena_free(&t->mem);
    memset(t, 0, sizeof *t);
}
