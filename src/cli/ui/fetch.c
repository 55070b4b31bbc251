/* fetch.c: see fetch.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/fetch.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/utf8.h"
#include "io/io.h"
#include "core/context.h"

#define WAN "Wan-AI/Wan2.1-T2V-1.3B"

static const struct {
    unsigned part;
    const char *repository, *file;
    double gigabytes;
} published[] = {
    {FETCH_TEXT, WAN, "models_t5_umt5-xxl-enc-bf16.pth", 11.36},
    {FETCH_TOKENIZER, WAN, "google/umt5-xxl/spiece.model", 0.005},
    {FETCH_VAE, WAN, "Wan2.1_VAE.pth", 0.51},
    {FETCH_TRANSFORMER, "gdhe17/Self-Forcing",
     "checkpoints/self_forcing_dmd.pt", 5.68},
};
enum { PUBLISHED = sizeof published / sizeof *published };

/* Is there no file at all that could hold it? */
static bool lacks(const char *path, tt_model_kind kind)
{
    tt_ctx ctx = {.warn = tt_ignore_warning};
    tt_weights *w = NULL;
    const bool none = tt_weights_open(&ctx, &w, path, kind, NULL) == TT_EIO;
    tt_weights_close(w);
    tt_ctx_free(&ctx);
    return none;
}

static bool lacks_transformer(const tt_model_paths *p)
{
    char path[4096];
    tt_ctx ctx = {.warn = tt_ignore_warning};
    const bool found = !tt_model_transformer(&ctx, path, sizeof path, p);
    tt_ctx_free(&ctx);
    return found && lacks(path, TT_MODEL_DIT);
}

static bool lacks_tokenizer(const tt_model_paths *p)
{
    char path[4096];
    tt_ctx ctx = {.warn = tt_ignore_warning};
    const bool none = tt_model_tokenizer(&ctx, path, sizeof path, p) != TT_OK;
    tt_ctx_free(&ctx);
    return none;
}

unsigned fetch_missing(const tt_model_paths *p, unsigned parts)
{
    struct stat st;
    if (!p->model || !*p->model) return 0;
    if (p->checkpoint || p->dit) parts &= ~(unsigned)FETCH_TRANSFORMER;
    if (p->text_encoder) parts &= ~(unsigned)FETCH_TEXT;
    if (p->tokenizer) parts &= ~(unsigned)FETCH_TOKENIZER;
    if (p->vae || p->tiny_vae) parts &= ~(unsigned)FETCH_VAE;
    if (stat(p->model, &st)) return parts;
    if (!S_ISDIR(st.st_mode)) return 0;
    if (parts & FETCH_TRANSFORMER && !lacks_transformer(p))
        parts &= ~(unsigned)FETCH_TRANSFORMER;
    if (parts & FETCH_TEXT && !lacks(p->model, TT_MODEL_T5))
        parts &= ~(unsigned)FETCH_TEXT;
    if (parts & FETCH_TOKENIZER && !lacks_tokenizer(p))
        parts &= ~(unsigned)FETCH_TOKENIZER;
    if (parts & FETCH_VAE && !lacks(p->model, TT_MODEL_VAE))
        parts &= ~(unsigned)FETCH_VAE;
    return parts;
}

/* The files of one repository, from published[i] on. */
static void print_command(FILE *out, const char *before, const char *dir,
                          unsigned parts, int i)
{
    char *word[] = {(char *)(uintptr_t)dir};
    tt_ctx ctx = {.status = TT_OK};
    const char *repository = published[i].repository;
    fprintf(out, "%shf download %s", before, repository);
    for (; i < PUBLISHED && !strcmp(published[i].repository, repository); i++)
        if (published[i].part & parts) fprintf(out, " %s", published[i].file);
    fputc(' ', out);
    utf8_print(out, cli_command_line(&ctx, "--local-dir", 1, word));
    fputc('\n', out);
    tt_ctx_free(&ctx);
}

void fetch_commands(FILE *out, const char *before, const char *dir,
                    unsigned parts)
{
    const char *done = "";
    for (int i = 0; i < PUBLISHED; i++) {
        if (!(published[i].part & parts)
            || !strcmp(published[i].repository, done)) continue;
        done = published[i].repository;
        print_command(out, before, dir, parts, i);
    }
}

int fetch_failed(const tt_ctx *ctx, const tt_model_paths *p, unsigned parts)
{
    const int status = cli_failed(ctx);
    double all = 0;
    if (ctx->status == TT_EINTR || ctx->status == TT_ENOMEM) return status;
    parts = fetch_missing(p, parts);
    for (int i = 0; i < PUBLISHED; i++)
        if (published[i].part & parts) all += published[i].gigabytes;
    if (!parts) return status;
    fprintf(stderr, "to fetch what is missing there, %.*f GB (`pip install "
            "huggingface_hub` brings hf):\n", all < 0.1 ? 3 : 1, all);
    fetch_commands(stderr, "  ", p->model, parts);
    return status;
}
