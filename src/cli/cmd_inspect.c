/* cmd_inspect.c: tether inspect, what a checkpoint or tensor file holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors are listed as stored, before any unwrapping or renaming; the origin
 * line says what the file would be read as. A folder is its checkpoint files
 * and those of a Diffusers folder's parts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/inspect.h"
#include "cli/ui/fetch.h"
#include "cli/ui/progress.h"
#include "core/utf8.h"
#include "io/io.h"
#include "run/run.h"
#include "core/context.h"

typedef struct settings {
    bool json, digest, verify;
} settings;

static const opt_spec options[] = {
    {OPT_FLAG, "json", 0, offsetof(settings, json), NULL,
     "one JSON object on standard output"},
    {OPT_FLAG, "digest", 0, offsetof(settings, digest), NULL,
     "SHA-256 of every tensor's row-major bytes as stored"},
    {OPT_FLAG, "verify", 0, offsetof(settings, verify), NULL,
     "read every byte again and check the checksums of PyTorch zip files, the "
     "SHA-256 of files from the hub, and that nothing was left unwritten"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command inspect_command = {
    .name = "inspect",
    .summary = "what is in a checkpoint or tensor file",
    .usage = "FILE|FOLDER [--json] [--digest] [--verify]",
    .intro = "Reads safetensors files (also sharded ones through their "
             "index), PyTorch .pt/.pth files, GGUF files and SentencePiece "
             "models. A folder begins with a summary: its parts, and what is "
             "missing and the command that fetches it. Nothing in a file is "
             "ever executed.",
    .examples = "  tether inspect self_forcing_dmd.pt\n"
                "  tether inspect Wan2.1-T2V-1.3B --json\n"
                "  tether inspect Wan2.1_VAE.pth --verify",
    .options = options,
    .positional_max = 1,
    .bare = "expected one FILE or FOLDER",
};

/* ---- what it would be read as -------------------------------------------- */

/* "VAE: Wan names, torch zip", "" when it is no model we know, or why it is
 * one that cannot be used. Is it one? */
static bool origin_of_model(tt_ctx *ctx, inspect_part *p)
{
    static const struct { tt_model_kind kind; const char *name; } kinds[] = {
        {TT_MODEL_DIT, "transformer"}, {TT_MODEL_VAE, "VAE"},
        {TT_MODEL_T5, "text encoder"}, {TT_MODEL_TINY_VAE, "tiny VAE"}};
    void (*warn)(void *, const char *) = ctx->warn;
    bool there = false;
    ctx->warn = tt_ignore_warning;
    for (int i = 0; i < TT_MODEL_KINDS; i++) {
        tt_weights *w;
        bool known = false;
        const tt_weights_options o = {.ema = -1, .known = &known};
        tt_status s = tt_weights_open(ctx, &w, p->path, kinds[i].kind, &o);
        if (s == TT_OK) {
            there = true;
            snprintf(p->origin, sizeof p->origin, "%s: %s", kinds[i].name,
                     tt_weights_origin(w));
            s = tt_weights_check(ctx, w);
            p->damaged = s == TT_EFORMAT;
            if (s) snprintf(p->problem, sizeof p->problem, "%s",
                            tt_message(ctx));
            tt_weights_close(w);
            tt_clear(ctx);
            break;
        }
        if (s == TT_EUNSUPPORTED || s == TT_EIO || known)
            snprintf(p->origin, sizeof p->origin, "%s", tt_message(ctx));
        tt_clear(ctx);
    }
    ctx->warn = warn;
    return there && !*p->problem;
}

/* Names alone make a LoRA look like a model that cannot be used. */
static void origin_of(tt_ctx *ctx, inspect_part *p)
{
    char lora[300];
    const size_t n = sizeof p->origin;
    const bool model = origin_of_model(ctx, p);
    if (!tt_lora_describe(ctx, lora, sizeof lora, p->file)) return;
    const size_t at = model ? strlen(p->origin) : 0;
    snprintf(p->origin + at, n - at, "%s%s", model ? "; also a " : "", lora);
    if (!model) *p->problem = 0;
}

/* ---- one file ------------------------------------------------------------ */

typedef inspect_part part;

static tt_status write_tensor(tt_ctx *ctx, json_out *j, const part *p,
                              const tt_entry *e, const settings *s,
                              bool many)
{
    char hex[65];
    if (s->digest) TT_TRY(tt_tensor_digest(ctx, hex, &e->t));
    json_open(j, NULL, '{');
    json_open(j, "path", '[');
    for (int i = 0; i < e->npath; i++) json_str(j, NULL, e->path[i]);
    json_close(j, ']');
    json_str(j, "dtype", tt_dtype_name(e->t.dtype));
    json_open(j, "shape", '[');
    for (int i = 0; i < e->t.rank; i++) json_int(j, NULL, e->t.dim[i]);
    json_close(j, ']');
    if (s->digest) json_str(j, "sha256", hex);
    if (many) json_str(j, "file", p->path);
    json_close(j, '}');
    return TT_OK;
}

static tt_status print_tensor(tt_ctx *ctx, const tt_entry *e,
                              const settings *s)
{
    char shape[200], hex[65];
    if (s->digest) {
        TT_TRY(tt_tensor_digest(ctx, hex, &e->t));
        printf("%s  ", hex);
    }
    printf("%-7s %-24s ", tt_dtype_name(e->t.dtype),
           tt_shape_string(shape, sizeof shape, e->t.rank, e->t.dim));
    utf8_print(stdout, e->name);
    putchar('\n');
    return TT_OK;
}

/* ---- checksums ----------------------------------------------------------- */

typedef struct verify_view {
    progress *bar;
    const char *path;
    double start;
} verify_view;

static void show_verify(void *user, int64_t done, int64_t total)
{
    const verify_view *v = user;
    /* whole hundredths, so that lines are few when they are not redrawn */
    progress_update(v->bar, (double)(done * 100 / total), 100,
                    tt_now() - v->start, "reading %s", v->path);
}

static tt_status verify_part(tt_ctx *ctx, progress *bar, part *p)
{
    verify_view v = {bar, p->path, tt_now()};
    bool large = tt_file_bytes(p->file) > INT64_C(1) << 28;
    return tt_file_verify(ctx, &p->verified, p->file,
                          large ? show_verify : NULL, &v);
}

static void write_verified(json_out *j, const part *p)
{
    json_open(j, "verified", '{');
    json_int(j, "bytes", p->verified.bytes);
    json_int(j, "checksums_agree", p->verified.agree);
    json_int(j, "without_checksum", p->verified.without);
    json_close(j, '}');
}

static void print_verified(const part *p)
{
    printf("verified: %lld bytes read, ", (long long)p->verified.bytes);
    if (p->verified.agree)
        printf("%lld checksums agree", (long long)p->verified.agree);
    if (p->verified.agree && p->verified.without)
        printf(", %lld entries carry none", (long long)p->verified.without);
    if (!p->verified.agree) printf("which carry no checksums");
    putchar('\n');
}

/* ---- the whole answer ---------------------------------------------------- */

static tt_status write_json(tt_ctx *ctx, const part *p, int64_t n,
                            const settings *s)
{
    json_out j;
    json_begin(&j, stdout, false);
    json_str(&j, "format", n == 1 ? tt_file_format(p->file) : "folder");
    if (n == 1) {
        json_str(&j, "origin", *p->origin ? p->origin : NULL);
        json_str(&j, "problem", *p->problem ? p->problem : NULL);
        if (s->verify) write_verified(&j, p);
    } else {
        json_open(&j, "files", '[');
        for (int64_t i = 0; i < n; i++) {
            json_open(&j, NULL, '{');
            json_str(&j, "file", p[i].path);
            json_str(&j, "format", tt_file_format(p[i].file));
            json_str(&j, "origin", *p[i].origin ? p[i].origin : NULL);
            json_str(&j, "problem", *p[i].problem ? p[i].problem : NULL);
            if (s->verify) write_verified(&j, &p[i]);
            json_close(&j, '}');
        }
        json_close(&j, ']');
    }
    json_open(&j, "tensors", '[');
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < tt_file_count(p[i].file); k++)
            TT_TRY(write_tensor(ctx, &j, &p[i], tt_file_entry(p[i].file, k),
                                s, n > 1));
    json_close(&j, ']');
    json_end(&j);
    return TT_OK;
}

static tt_status print_parts(tt_ctx *ctx, const part *p, int64_t n,
                             const settings *s)
{
    for (int64_t i = 0; i < n; i++) {
        if (i) putchar('\n');
        utf8_print(stdout, p[i].path);
        const long long count = (long long)tt_file_count(p[i].file);
        printf(": %s, %.3f MB, %lld tensor%s\n", tt_file_format(p[i].file),
               (double)tt_file_bytes(p[i].file) / 1e6, count,
               count == 1 ? "" : "s");
        if (*p[i].origin) printf("%s\n", p[i].origin);
        if (*p[i].problem) {
            printf("problem: ");
            utf8_print(stdout, p[i].problem);
            putchar('\n');
        }
        if (s->verify) print_verified(&p[i]);
        for (int64_t k = 0; k < tt_file_count(p[i].file); k++)
            TT_TRY(print_tensor(ctx, tt_file_entry(p[i].file, k), s));
    }
    return TT_OK;
}

/* Open every path; the parts live in the scratch arena. */
static tt_status open_parts(tt_ctx *ctx, part *p, char *const *path,
                            int64_t n, const settings *s, progress *bar)
{
    for (int64_t i = 0; i < n; i++) {
        p[i].path = path[i];
        TT_TRY(tt_file_open(ctx, &p[i].file, path[i]));
        origin_of(ctx, &p[i]);
        if (s->verify) TT_TRY(verify_part(ctx, bar, &p[i]));
        if (s->verify && p[i].damaged)
            return tt_fail(ctx, TT_EFORMAT, "%s", p[i].problem);
    }
    return TT_OK;
}

/* The files of the folder and of a Diffusers folder's sub-folders. */
static tt_status list_folder(tt_ctx *ctx, char **list, int64_t max,
                             int64_t *n, const char *dir)
{
    static const char *const sub[] = {"", "/transformer", "/text_encoder",
                                      "/vae", "/checkpoints",
                                      "/transformer_2",
                                      "/high_noise_model", "/low_noise_model"};
    *n = 0;
    for (size_t i = 0; i < sizeof sub / sizeof *sub; i++) {
        char path[1024], **file;
        struct stat st;
        int64_t count;
        snprintf(path, sizeof path, "%s%s", dir, sub[i]);
        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) continue;
        TT_TRY(tt_folder_files(ctx, &ctx->scratch, &file, &count, path));
        for (int64_t k = 0; k < count && *n < max; k++) list[(*n)++] = file[k];
    }
    if (*n == 0)
        return tt_fail(ctx, TT_EIO, "%s: no checkpoint in this folder; looked "
                       "for *.safetensors, *.safetensors.index.json, *.pt, "
                       "*.pth, *.bin and *.gguf, also in transformer, "
                       "text_encoder, vae and checkpoints", dir);
    return TT_OK;
}

/* A reader that has seen enough (`| head`) is no failure. */
static tt_status flush_output(tt_ctx *ctx)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return TT_OK;
    if (errno != EPIPE)
        return tt_fail(ctx, TT_EIO, "cannot write the standard output: %s",
                       strerror(errno));
    if (!freopen("/dev/null", "w", stdout))
        return tt_fail(ctx, TT_EIO, "cannot open /dev/null");
    return TT_OK;
}

/* A name without the ending of a file of weights. */
static bool may_be_folder(const char *path)
{
    static const char *const ends[] = {".safetensors", ".pt", ".pth", ".bin",
                                       ".gguf", ".json", ".model", ".st"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i])
            && !strcmp(path + n - strlen(ends[i]), ends[i])) return false;
    return true;
}

/* Of a folder without any checkpoint it is also said what to fetch. */
static int inspect_failed(const tt_ctx *ctx, const char *path)
{
    const tt_model_paths m = {.model = path};
    const unsigned all = FETCH_TRANSFORMER | FETCH_TEXT | FETCH_TOKENIZER
                       | FETCH_VAE;
    return may_be_folder(path) ? fetch_failed(ctx, &m, all) : cli_failed(ctx);
}

/* The tokenizer of a folder against the digest that it came with. */
static tt_status verify_tokenizer(tt_ctx *ctx, const char *dir)
{
    const tt_model_paths m = {.model = dir};
    tt_verify_report r;
    char path[4096];
    if (!tt_model_tokenizer(ctx, path, sizeof path, &m))
        return tt_digest_verify(ctx, &r, path);
    tt_clear(ctx);
    return TT_OK;
}

static tt_status inspect(tt_ctx *ctx, char *path, const settings *s,
                         progress *bar)
{
    enum { MOST = 256 };
    char *list[MOST] = {path};
    int64_t n = 1;
    struct stat st;
    const bool there = stat(path, &st) == 0;
    const bool folder = there && S_ISDIR(st.st_mode);
    if (!there && errno == ENOENT && may_be_folder(path))
        return tt_fail(ctx, TT_EIO, "%s: there is no such file or folder; "
                       "check the path", path);
    char snapshot[4096];
    if (folder) path = (char *)(uintptr_t)tt_folder_snapshot(snapshot, path);
    if (folder) TT_TRY(list_folder(ctx, list, MOST, &n, path));
    else if (!s->json && inspect_tokenizer(ctx, path, false, s->verify, NULL))
        return ctx->status;
    part *p = tt_alloc0(ctx, &ctx->scratch, n, sizeof *p, "a list of files");
    if (!p) return ctx->status;
    if (folder && s->verify) verify_tokenizer(ctx, path);
    if (!ctx->status && !open_parts(ctx, p, list, n, s, bar)) {
        if (folder && !s->json) inspect_summary(ctx, path, p, n);
        if (s->json) write_json(ctx, p, n, s);
        else print_parts(ctx, p, n, s);
    }
    for (int64_t i = 0; i < n; i++) tt_file_close(p[i].file);
    return ctx->status ? ctx->status : flush_output(ctx);
}

int cmd_inspect(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {false, false, false};
    cli_common common;
    opt_result given;
    progress prog;
    int status = opt_parse(&inspect_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 1)
        return opt_usage("inspect", "expected one FILE or FOLDER");
    if (cli_setup(ctx, &common) || progress_open(ctx, &prog, &common, false))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    /* argv's own text; options.h hands it out as const */
    char *path = tt_strdup(ctx, &ctx->scratch, given.positional[0]);
    if (path && !inspect(ctx, path, &s, &prog))
        progress_note(&prog, "read %s", path);
    progress_close(&prog);
    return ctx->status ? inspect_failed(ctx, given.positional[0]) : 0;
}
