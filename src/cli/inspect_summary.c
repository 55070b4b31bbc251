/* inspect_summary.c: a model folder in a few lines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/ui/fetch.h"
#include "cli/ui/progress.h"
#include "core/utf8.h"
#include "text/text.h"

/* The parts `generate` needs. */
static const struct { const char *name; unsigned fetch; } parts[] = {
    {"transformer", FETCH_TRANSFORMER},
    {"text encoder", FETCH_TEXT},
    {"VAE", FETCH_VAE},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static bool is_part(const inspect_part *p, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(p->origin, name, n) && p->origin[n] == ':';
}

/* The type of most values, and how many others there are. */
static void types(char *out, size_t size, const tt_file *f)
{
    int64_t of[256] = {0};
    int best = 0, kinds = 0;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_tensor *t = &tt_file_entry(f, i)->t;
        of[(int)t->dtype & 255] += tt_tensor_count(t);
    }
    for (int i = 0; i < 256; i++) {
        kinds += of[i] > 0;
        if (of[i] > of[best]) best = i;
    }
    snprintf(out, size, "%s%s", tt_dtype_name((tt_dtype)best),
             kinds > 1 ? " and others" : "");
}

static void print_row(const char *name, const inspect_part *p)
{
    char type[48], bytes[32];
    int64_t n = 0;
    types(type, sizeof type, p->file);
    for (int64_t i = 0; i < tt_file_count(p->file); i++)
        n += tt_tensor_count(&tt_file_entry(p->file, i)->t);
    printf("  %-13s %.2f %s parameters, %s, %s: ", name,
           (double)n * (n < 1000000000 ? 1e-6 : 1e-9),
           n < 1000000000 ? "M" : "G", type,
           progress_bytes(bytes, sizeof bytes, tt_file_bytes(p->file)));
    utf8_print(stdout, p->path);
    putchar('\n');
}

static void print_missing(const char *dir, const char *name, unsigned part)
{
    char before[80];
    snprintf(before, sizeof before, "  %-13s missing; to fetch it: ", name);
    fetch_commands(stdout, before, dir, part);
}

static void print_problem(const char *text)
{
    printf("  %-13s ", "problem");
    utf8_print(stdout, text);
    putchar('\n');
}

/* Do a tokenizer and the text encoder belong together? */
static void print_fit(tt_ctx *ctx, const tt_tokenizer *tok, const char *encoder)
{
    tt_umt5 *enc = NULL;
    if (tt_umt5_open(ctx, &enc, encoder)) tt_clear(ctx); /* said elsewhere */
    if (tt_umt5_check_tokenizer(ctx, enc, tok)) print_problem(tt_message(ctx));
    tt_clear(ctx);
    tt_umt5_close(enc);
}

bool inspect_tokenizer(tt_ctx *ctx, const char *path, bool in_list, bool verify,
                       const char *encoder)
{
    struct stat st;
    char bytes[32];
    tt_tokenizer *tok = NULL;
    tt_verify_report r;
    const size_t n = strlen(path);
    const bool named = n >= 6 && !strcmp(path + n - 6, ".model");
    if ((!named && !in_list) || stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    if (verify && tt_digest_verify(ctx, &r, path)) return true;
    if (tt_tokenizer_open(ctx, &tok, path)) {
        if (in_list) return false;
        tt_clear(ctx);      /* the reader of checkpoints says what is wrong */
        return false;
    }
    printf(in_list ? "  %-13s %lld pieces, %s: " : "%s: %lld pieces, %s: ",
           "tokenizer", (long long)tt_tokenizer_size(tok),
           progress_bytes(bytes, sizeof bytes, (int64_t)st.st_size));
    utf8_print(stdout, path);
    putchar('\n');
    if (verify && r.agree) printf("verified: its SHA-256 agrees\n");
    if (encoder) print_fit(ctx, tok, encoder);
    tt_tokenizer_close(tok);
    return true;
}

static void print_tokenizer(tt_ctx *ctx, const char *dir, const char *encoder)
{
    const tt_model_paths m = {.model = dir};
    char path[4096];
    const bool there = !tt_model_tokenizer(ctx, path, sizeof path, &m);
    tt_clear(ctx);
    if (there && !inspect_tokenizer(ctx, path, true, false, encoder)
        && ctx->status)
        print_problem(tt_message(ctx));
    tt_clear(ctx);
    if (!there) print_missing(dir, "tokenizer", FETCH_TOKENIZER);
}

/* Which of the folder's transformers `generate` takes, and what it is. */
static void print_choice(tt_ctx *ctx, const char *dir, int64_t transformers)
{
    const tt_model_paths m = {.model = dir, .ema = -1};
    char path[4096];
    tt_weights *w = NULL;
    if (!tt_model_transformer(ctx, path, sizeof path, &m) && transformers > 1)
        printf("  `generate -m` takes %s\n", path);
    if (!tt_weights_open(ctx, &w, path, TT_MODEL_DIT, NULL)
        && tt_model_is_wan(w)) {
        printf("  %-13s this looks like Wan's own transformer, which is not "
               "trained for causal chunks in 4 steps\n", "note");
        print_missing(dir, "checkpoint", FETCH_TRANSFORMER);
    }
    if (ctx->status) printf("  %-13s %s\n", "note", tt_message(ctx));
    tt_weights_close(w);
    tt_clear(ctx);
}

void inspect_summary(tt_ctx *ctx, const char *dir, const inspect_part *p,
                     int64_t n)
{
    int64_t known = 0, transformers = 0;
    const char *encoder = NULL;
    for (int64_t i = 0; i < n; i++) known += *p[i].origin != 0;
    utf8_print(stdout, dir);
    if (!known) {
        printf(": no part of a model was recognised\n\n");
        return;
    }
    printf(": a model folder\n");
    for (int k = 0; k < PARTS; k++) {
        int64_t there = 0;
        for (int64_t i = 0; i < n; i++) {
            if (!is_part(&p[i], parts[k].name)) continue;
            print_row(parts[k].name, &p[i]);
            if (*p[i].problem) print_problem(p[i].problem);
            if (k == 1) encoder = p[i].path;
            there++;
        }
        if (!there) print_missing(dir, parts[k].name, parts[k].fetch);
        if (k == 0) transformers = there;
    }
    print_tokenizer(ctx, dir, encoder);
    if (transformers) print_choice(ctx, dir, transformers);
    putchar('\n');
}
