/* cmd_embed.c: tether embed, a prompt into a file of embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The encoder is four times as large as the transformer: encode once here,
 * then generate with --embeds as often as you like. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/fetch.h"
#include "cli/ui/outputs.h"
#include "cli/generate/model.h"
#include "cli/ui/progress.h"
#include "io/io.h"
#include "text/text.h"

typedef struct settings {
    tt_model_paths paths;
    const char *prompt, *ids, *output;
    bool no_clean, real_rows, profile, overwrite;
    int64_t length;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Input and output"},
    {OPT_TEXT, "prompt", 'p', offsetof(settings, prompt), "TEXT",
     "the prompt; empty text gives the unconditional embedding"},
    {OPT_READ, "ids", 0, offsetof(settings, ids), "FILE",
     "instead of a prompt: safetensors with `ids` and `mask`, I64 [B, L]"},
    {OPT_WRITE, "output", 'o', offsetof(settings, output), "FILE",
     "safetensors with `text`, `context`, `ids` and `mask`"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace a file that is there; without it that is refused"},
    {OPT_GROUP, NULL, 0, 0, NULL, "How"},
    {OPT_INT, "length", 0, offsetof(settings, length), "N",
     "tokens per prompt, </s> and padding included (default: text_len of the "
     "folder's config.json, else 512)"},
    {OPT_FLAG, "no-clean", 0, offsetof(settings, no_clean), NULL,
     "the prompt is clean already"},
    {OPT_FLAG, "real-rows", 0, offsetof(settings, real_rows), NULL,
     "leave out padding positions: much faster for short prompts, the same "
     "`text`, no `context` in the file"},
    {OPT_FLAG, "profile", 0, offsetof(settings, profile), NULL,
     "print the time per operator"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(settings, paths),
    TT_MODEL_ROWS_TEXT(settings, paths),
    TT_MODEL_ROW_LORA(settings, paths.lora),
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command command = {
    .name = "embed",
    .summary = "prompt embeddings into a file, to encode once",
    .usage = "-m DIR (-p TEXT | --ids FILE) -o FILE",
    .intro = "Writes text [B, L, dim] (what `generate --embeds` takes: rows "
             "past the prompt are zero), context [B, L, dim] (all rows of the "
             "encoder), ids and mask [B, L].",
    .examples = "  tether embed -m Wan2.1-T2V-1.3B -p \"a red fox\" "
                "-o fox.safetensors\n"
                "  tether generate ... --embeds fox.safetensors",
    .options = options,
    .bare = "give a prompt, and -o FILE",
};

/* What goes into the encoder, [B, L] each, in ctx->scratch. */
typedef struct tokens {
    int64_t B, L;
    int64_t *ids, *mask;
    tt_tokenizer *tok;         /* NULL: ids were given                        */
} tokens;

static int embed_check(const settings *s, const opt_result *given)
{
    const char *me = command.name;
    if (!s->output) return opt_usage(me, "-o FILE is needed");
    if (!s->prompt == !s->ids)
        return opt_usage(me, "give either -p TEXT or --ids FILE");
    if (opt_given(given, "length")
        && (s->length < 1 || s->length > TT_TEXT_LEN_MAX))
        return opt_usage(me, "--length must be 1 to %d, but %lld was given",
                         TT_TEXT_LEN_MAX, (long long)s->length);
    return GO_ON;
}

static int64_t *read_i64(tt_ctx *ctx, tokens *t, const tt_file *f,
                         const char *path, const char *name)
{
    const tt_entry *e = tt_file_find(f, name);
    char shape[96];
    if (!e) {
        tt_fail(ctx, TT_EFORMAT, "%s has no tensor `%s`; --ids needs `ids` and "
                "`mask`, I64 [B, L]", path, name);
        return NULL;
    }
    const tt_tensor *x = &e->t;
    if (x->dtype != TT_I64 || x->rank != 2 || x->dim[0] < 1 || x->dim[1] < 1 ||
        (t->B && (x->dim[0] != t->B || x->dim[1] != t->L))) {
        tt_fail(ctx, TT_ESHAPE, "%s: `%s` is %s %s; expected I64 [B, L], the "
                "same for `ids` and `mask`", path, name,
                tt_dtype_name(x->dtype),
                tt_shape_string(shape, sizeof shape, x->rank, x->dim));
        return NULL;
    }
    t->B = x->dim[0];
    t->L = x->dim[1];
    int64_t *out = tt_alloc(ctx, &ctx->scratch, t->B * t->L, sizeof *out, name);
    if (out) tt_gather(out, x);
    return out;
}

static tt_status tokens_from_file(tt_ctx *ctx, tokens *t, const char *path)
{
    tt_file *f;
    TT_TRY(tt_file_open(ctx, &f, path));
    t->ids = read_i64(ctx, t, f, path, "ids");
    if (t->ids) t->mask = read_i64(ctx, t, f, path, "mask");
    tt_file_close(f);
    return ctx->status;
}

static tt_status tokens_from_prompt(tt_ctx *ctx, tokens *t, const settings *s,
                                    progress *p)
{
    char path[4096];
    t->L = s->length ? s->length : tt_model_text_len(ctx, &s->paths);
    TT_TRY(tt_model_tokenizer(ctx, path, sizeof path, &s->paths));
    TT_TRY(tt_tokenizer_open(ctx, &t->tok, path));
    t->B = 1;
    t->ids = tt_alloc(ctx, &ctx->scratch, t->L, sizeof *t->ids, "ids");
    t->mask = tt_alloc(ctx, &ctx->scratch, t->L, sizeof *t->mask, "mask");
    tt_token_row row = {.length = t->L, .ids = t->ids, .mask = t->mask};
    tt_tokenizer_encode_prompt(ctx, &row, t->tok, s->prompt,
                               strlen(s->prompt), !s->no_clean);
    if (!ctx->status)
        progress_say(p, "%lld tokens of %lld, </s> included",
                     (long long)row.seq_len, (long long)t->L);
    return ctx->status;
}

typedef struct layers {
    progress *progress;
    double start;
} layers;

static void on_layer(void *user, int64_t done, int64_t all)
{
    const layers *l = user;
    const double part = done < all ? (double)done / (double)all : 0.999;
    progress_update(l->progress, part, 1, tt_now() - l->start,
                    "layer %lld/%lld", (long long)(done < all ? done + 1 : all),
                    (long long)all);
}

static tt_status open_encoder(tt_ctx *ctx, tt_umt5 **enc, const char *path,
                              const settings *s)
{
    const tt_weights_options opt = {.ema = -1, .lora = s->paths.lora};
    tt_weights *w;
    TT_TRY(tt_weights_open(ctx, &w, path, TT_MODEL_T5, &opt));
    if (tt_weights_lora_used(w)) tt_weights_close(w);
    return ctx->status ? ctx->status : tt_umt5_load(ctx, enc, w);
}

static tt_status embed_encode(tt_ctx *ctx, tt_st_writer *w, const settings *s,
                              const tokens *t, progress *p)
{
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    const char *path;
    tt_umt5 *enc;
    double start = tt_now();
    TT_TRY(tt_model_text_encoder(ctx, &path, &s->paths));
    TT_TRY(open_encoder(ctx, &enc, path, s));
    tt_umt5_check_tokenizer(ctx, enc, t->tok);
    const int64_t dim = tt_umt5_config_of(enc)->dim, n = t->B * t->L * dim;
    const int64_t shape[3] = {t->B, t->L, dim};
    tt_real *text = tt_scratch(ctx, n);
    tt_real *context = s->real_rows ? NULL : tt_scratch(ctx, n);
    layers l = {p, start};
    tt_umt5_on_progress(enc, on_layer, &l);
    if (!ctx->status)
        tt_umt5_encode(ctx, context, text, enc, &(tt_umt5_input){
            .ids = t->ids, .mask = t->mask, .B = t->B, .L = t->L});
    tt_umt5_close(enc);
    TT_TRY(ctx->status);
    TT_TRY(tt_st_add(w, "text", real, 3, shape, text));
    if (context) TT_TRY(tt_st_add(w, "context", real, 3, shape, context));
    TT_TRY(tt_st_add(w, "ids", TT_I64, 2, shape, t->ids));
    TT_TRY(tt_st_add(w, "mask", TT_I64, 2, shape, t->mask));
    char took[32], memory[32];
    progress_say(p, "encoded in %s, peak memory %s",
                 progress_duration(took, sizeof took, tt_now() - start),
                 progress_bytes(memory, sizeof memory,
                                tt_peak_memory()));
    return ctx->status;
}

static tt_status write_file(tt_ctx *ctx, const settings *s, const tokens *t,
                            progress *p)
{
    tt_st_writer *w;
    TT_TRY(tt_st_create(ctx, &w, s->output));
    if (embed_encode(ctx, w, s, t, p) == TT_OK) tt_st_finish(w);
    else tt_st_abort(w);
    if (!ctx->status) progress_wrote(p, s->output);
    return ctx->status;
}

static tt_status embed_run(tt_ctx *ctx, const settings *s, progress *p)
{
    tokens t = {0};
    TT_TRY(outputs_safetensors(ctx, "-o", s->output));
    if (!s->overwrite) TT_TRY(outputs_keep(ctx, "-o", s->output));
    if (!(s->ids ? tokens_from_file(ctx, &t, s->ids)
                 : tokens_from_prompt(ctx, &t, s, p)))
        write_file(ctx, s, &t, p);
    tt_tokenizer_close(t.tok);
    return ctx->status;
}

int cmd_embed(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.paths = TT_MODEL_PATHS};
    cli_common common;
    opt_result given;
    progress p;
    int status = opt_parse(&command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = embed_check(&s, &given);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common)) return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;
    if (progress_open(ctx, &p, &common, false)) return cli_failed(ctx);
    ctx->profiling = s.profile;
    embed_run(ctx, &s, &p);
    if (s.profile && !ctx->status) profile_print(ctx);
    progress_close(&p);
    return !ctx->status ? 0
         : fetch_failed(ctx, &s.paths, FETCH_TEXT | FETCH_TOKENIZER);
}
