/* cmd_tokenize.c: tether tokenize, lines of text to lines of token ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A filter for comparing tokenizers: every input line gives one output line,
 * and anything that could not be a prompt is refused with its line number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generate/model.h"
#include "cli/ui/fetch.h"
#include "cli/ui/progress.h"
#include "text/text.h"

typedef struct settings {
    tt_model_paths paths;
    const char *prompt;
    bool raw, hex, no_clean, clean_only;
    int64_t length;    /* 0: not given                                        */
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Text"},
    {OPT_TEXT, "prompt", 'p', offsetof(settings, prompt), "TEXT",
     "one text (default: every line of standard input is one)"},
    {OPT_FLAG, "hex", 0, offsetof(settings, hex), NULL,
     "input lines are hexadecimal bytes; `-` stands for none"},
    {OPT_GROUP, NULL, 0, 0, NULL, "What to do"},
    {OPT_FLAG, "raw", 0, offsetof(settings, raw), NULL,
     "encode the bytes as they are: no cleaning, no </s>"},
    {OPT_FLAG, "no-clean", 0, offsetof(settings, no_clean), NULL,
     "no cleaning, but </s>"},
    {OPT_FLAG, "clean-only", 0, offsetof(settings, clean_only), NULL,
     "print the cleaned text instead of ids (hexadecimal with --hex)"},
    {OPT_INT, "length", 0, offsetof(settings, length), "N",
     "keep at most N ids, </s> included and always last (Wan: 512; default: "
     "keep all). No padding is printed"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(settings, paths),
    {OPT_READ, "tokenizer", 0, offsetof(settings, paths.tokenizer), "FILE",
     "SentencePiece model, spiece.model (default: found in -m)"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command command = {
    .name = "tokenize",
    .summary = "the ids of lines of text",
    .usage = "(-m DIR | --tokenizer FILE) [-p TEXT]",
    .intro = "Prints one line of ids, separated by single spaces, for every "
             "line of text: cleaned as Wan does it, encoded, </s> appended. "
             "ftfy's repair of wrongly decoded text is not part of the "
             "cleaning.",
    .examples = "  tether tokenize -m Wan2.1-T2V-1.3B -p \"a red fox\"\n"
                "  tether tokenize --clean-only < prompts.txt",
    .options = options,
    .bare = "give the folder or the file of a tokenizer",
};

static int tokenize_check(const settings *s, const opt_result *given)
{
    if (s->clean_only && (s->raw || s->no_clean))
        return opt_usage(command.name, "--clean-only contradicts %s",
                         s->raw ? "--raw" : "--no-clean");
    if (opt_given(given, "length") && s->length < 1)
        return opt_usage(command.name, "--length must be at least 1, but "
                         "%lld was given", (long long)s->length);
    return GO_ON;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* bytes[0..*nbytes) = the digits of text[0..n); bytes may be text itself. */
static tt_status from_hex(tt_ctx *ctx, char *bytes, size_t *nbytes,
                          const char *text, size_t n)
{
    *nbytes = 0;
    if (n == 1 && text[0] == '-') return TT_OK;
    if (n % 2)
        return tt_fail(ctx, TT_EINVAL, "an odd number of hex digits (%zu)", n);
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            return tt_fail(ctx, TT_EINVAL, "`%.2s` is no hexadecimal byte",
                           text + i);
        bytes[(*nbytes)++] = (char)(high << 4 | low);
    }
    return TT_OK;
}

static void print_text(const char *text, size_t n, bool hex)
{
    for (size_t i = 0; i < n && hex; i++)
        printf("%02x", (unsigned char)text[i]);
    if (!hex) fwrite(text, 1, n, stdout);
    putchar('\n');
}

static void print_ids(const int64_t *ids, int64_t n, int64_t eos)
{
    for (int64_t i = 0; i < n; i++)
        printf("%s%lld", i ? " " : "", (long long)ids[i]);
    if (eos >= 0) printf("%s%lld", n ? " " : "", (long long)eos);
    putchar('\n');
}

/* One line: text[0..n), which --hex decodes in place. */
static tt_status one(tt_ctx *ctx, const settings *s, const tt_tokenizer *tok,
                     char *text, size_t n)
{
    int64_t *ids, nids, eos = -1;
    if (s->hex) TT_TRY(from_hex(ctx, text, &n, text, n));
    if (!s->raw) {
        /* Also with --no-clean: it refuses what is not UTF-8. */
        char *clean;
        size_t nclean;
        TT_TRY(tt_text_clean(ctx, &ctx->scratch, &clean, &nclean, text, n));
        if (!s->no_clean) {
            text = clean;
            n = nclean;
        }
        if (s->clean_only) {
            print_text(text, n, s->hex);
            return TT_OK;
        }
        eos = tt_tokenizer_eos(tok);
    }
    TT_TRY(tt_tokenizer_encode(ctx, &ctx->scratch, &ids, &nids, tok, text, n));
    int64_t capacity = s->length - (eos >= 0);
    if (s->length && nids > capacity) nids = capacity;
    print_ids(ids, nids, eos);
    return TT_OK;
}

/* Every line of standard input. */
static tt_status all(tt_ctx *ctx, const settings *s, const tt_tokenizer *tok)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    errno = 0;
    for (long long i = 1; (n = getline(&line, &size, stdin)) >= 0; i++) {
        tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        if (n > 0 && line[n - 1] == '\n') n--;
        if (one(ctx, s, tok, line, (size_t)n)) {
            char why[sizeof ctx->message];
            /* The command line was fine: not a usage error. */
            tt_status status = ctx->status == TT_EINVAL ? TT_EFORMAT
                                                        : ctx->status;
            snprintf(why, sizeof why, "%s", tt_message(ctx));
            tt_clear(ctx);
            tt_fail(ctx, status, "line %lld: %s", i, why);
            break;
        }
        tt_arena_reset(&ctx->scratch, mark);
        errno = 0;
    }
    if (!ctx->status && (ferror(stdin) || !feof(stdin)))
        tt_fail(ctx, TT_EIO, "cannot read the standard input: %s",
                strerror(errno));
    free(line);
    return ctx->status;
}

int cmd_tokenize(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.paths = TT_MODEL_PATHS};
    cli_common common;
    opt_result given;
    tt_tokenizer *tok = NULL;
    progress p;
    char path[4096];
    int status = opt_parse(&command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = tokenize_check(&s, &given);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common) || progress_open(ctx, &p, &common, false))
        return cli_failed(ctx);

    if (!s.clean_only &&
        tt_model_tokenizer(ctx, path, sizeof path, &s.paths) == TT_OK) {
        progress_note(&p, "tokenizer: %s", path);
        tt_tokenizer_open(ctx, &tok, path);
    }
    if (!ctx->status && s.prompt) {
        char *text = tt_strdup(ctx, &ctx->scratch, s.prompt);
        if (text) one(ctx, &s, tok, text, strlen(text));
    } else if (!ctx->status) {
        all(ctx, &s, tok);
    }
    tt_tokenizer_close(tok);
    progress_close(&p);
    return ctx->status ? fetch_failed(ctx, &s.paths, FETCH_TOKENIZER) : 0;
}
