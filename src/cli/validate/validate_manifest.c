/* validate_manifest.c: `tether validate --manifest`, are the bits the stored
 * ones?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every built-in backend that promises the golden bits computes the operator
 * cases of `validate export` and a run of a model, in both classes; SHA-256 of
 * each result is compared with a file. `make check-bits` does the same for all
 * reference cases. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/ui/outputs.h"
#include "cli/validate/validate_files.h"
#include "cli/validate/validate_model.h"
#include "core/nearest.h"
#include "io/outfile.h"

#define STORED "bits_operators_v1.txt"   /* next to the built-in model        */

typedef struct settings {
    const char *manifest, *cls, *prompt;
    tt_model_paths model;
    uint64_t seed;
    int64_t each, latents, width, height;
    bool write, overwrite;
    int run;
} settings;

#define CLASS_LISTED(name, ...) " " #name
#define CLASS_LIST TT_CLASSES(CLASS_LISTED)

static const opt_spec options[] = {
    {OPT_TEXT, "manifest", 0, offsetof(settings, manifest), "[FILE]",
     "the stored digests (default: ref_data/bits_operators_v1.txt)"},
    {OPT_FLAG, "write", 0, offsetof(settings, write), NULL,
     "store what `golden` computes instead of comparing"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "with --write: replace the stored digests where no FILE is named, and a "
     "file that is no such table"},
    {OPT_TEXT, "class", 0, offsetof(settings, cls), "NAME",
     "one class of " CLASS_LIST " (default: all)"},
    {OPT_INT, "each", 0, offsetof(settings, each), "N",
     "cases per operator (default 3)"},
    {OPT_U64, "seed", 's', offsetof(settings, seed), "S", "default 1"},
    {OPT_SWITCH, "run", 0, offsetof(settings, run), NULL,
     "a run of the model as well (default: when one is named)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(settings, model),
    TT_MODEL_ROWS_DIT(settings, model),
    TT_MODEL_ROW_VAE(settings, model),
    TT_MODEL_ROWS_TEXT(settings, model),
    TT_MODEL_ROW_LORA(settings, model.lora),
    {OPT_TEXT, "prompt", 'p', offsetof(settings, prompt), "TEXT", "prompt"},
    {OPT_INT, "latents", 0, offsetof(settings, latents), "N",
     "latent frames (default 12)"},
    {OPT_INT, "width", 'W', offsetof(settings, width), "PIXELS", "default 16"},
    {OPT_INT, "height", 'H', offsetof(settings, height), "PIXELS",
     "default 16"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command manifest_command = {
    .name = "validate",
    .summary = "the bits of this build against stored ones",
    .usage = "--manifest [FILE] [--write] [-m DIR]",
    .intro = "Computes every operator on seeded inputs, and a short run of a "
             "model when one is named, with `golden` and with `exact`, in all "
             "classes, and compares SHA-256 of every result with a file in the "
             "format of ref_data/bits.txt (whose cases `make check-bits` runs)."
             " Exit status: 0 all equal, 1 not, 2 usage, 3 a file that cannot "
             "be read.",
    .examples = "  tether validate --manifest\n"
                "  tether validate --manifest here.txt --write -m DIR\n"
                "  tether validate --manifest here.txt -m DIR",
    .options = options,
    .no_log = true,
};

static const char comment[] =
    "# SHA-256 of golden results of every operator on seeded inputs (and of\n"
    "# a run of a model), little-endian values in row-major order.\n"
    "# `tether validate --manifest` compares a build with it; with --write it\n"
    "# makes it anew.\n"
    "# class case tensor sha256\n";

typedef struct check {
    tt_ctx *ctx;
    const settings *s;
    const char *backend, *cls;   /* in work; cls as manifests say it          */
    tt_class only;               /* when s->cls                               */
    tt_manifest stored;
    int64_t passed, failed;
} check;

static void fail(check *c, const char *name, const char *tensor,
                 const char *sha, const char *stored)
{
    if (c->failed++ < 20)
        printf("FAIL %s %s %s %s: %s, stored %s\n", c->backend, c->cls, name,
               tensor, sha, stored);
}

static void validate_manifest_take(void *user, const char *name,
                                   const char *tensor, const char *sha)
{
    check *c = user;
    tt_manifest_row *r = tt_manifest_find(&c->stored, c->cls, name, tensor);
    if (c->s->write && !strcmp(c->backend, "golden")) {
        tt_manifest_add(c->ctx, &c->stored, c->cls, name, tensor, sha);
        r = tt_manifest_find(&c->stored, c->cls, name, tensor);
    }
    if (r) r->seen = true;
    if (r && !strcmp(r->sha, sha)) c->passed++;
    else fail(c, name, tensor, sha, r ? r->sha : "nowhere");
}

/* Does the file have digests of an earlier version of the class alone? */
static bool earlier(const check *c, const char *name)
{
    bool found = false;
    for (int64_t i = 0; i < c->stored.n; i++) {
        if (!strcmp(c->stored.row[i].cls, c->cls)) return false;
        found = found || !strcmp(c->stored.row[i].cls, name);
    }
    return found;
}

static void run_class(check *c, const tt_ops *ops, const tt_model_parts *m)
{
    tt_ctx *ctx = c->ctx;
    const char *name = tt_class_name(ops->cls);
    if (!c->s->write && earlier(c, name)) {
        printf("%-6s %-4s not compared: the file has version 1 (%s), this "
               "program computes %s\n", c->backend, name, name, c->cls);
        return;
    }
    ctx->ops = ops;
    for (int64_t i = 0; i < c->stored.n; i++) c->stored.row[i].seen = false;
    tt_digest_operators(ctx, c->s->seed, c->s->each, validate_manifest_take, c);
    if (m->dit && !ctx->status)
        tt_digest_model(ctx, m, validate_manifest_take, c);
    for (int64_t i = 0; i < c->stored.n && !ctx->status; i++) {
        const tt_manifest_row *r = &c->stored.row[i];
        const bool ours = m->dit || strcmp(r->name, "model");
        if (!strcmp(r->cls, c->cls) && ours && !r->seen)
            fail(c, r->name, r->tensor, "not computed", r->sha);
    }
}

/* golden first: with --write it is what the others are compared with. */
static void validate_manifest_run_all(check *c, const tt_model_parts *m)
{
    static const char *const backend[] = {"golden", "exact"};
    for (int b = 0; b < 2 && !c->ctx->status; b++) {
        const tt_ops *ops = tt_ops_find(backend[b]);
        for (int k = 0; ops && k < TT_CLASS_COUNT && !c->ctx->status; k++) {
            const tt_ops *table = tt_ops_class(ops, (tt_class)k);
            const int64_t before = c->passed, bad = c->failed;
            c->backend = backend[b];
            c->cls = tt_class_saved((tt_class)k);
            if (!table || (c->s->cls && c->only != (tt_class)k)) continue;
            run_class(c, table, m);
            if (c->passed + c->failed == before + bad) continue;
            printf("%-6s %-4s %lld hashes match, %lld do not\n", c->backend,
                   tt_class_name((tt_class)k), (long long)(c->passed - before),
                   (long long)(c->failed - bad));
        }
    }
}

/* `--manifest` alone, or before another option: "--manifest=". */
static void allow_no_value(int argc, char **argv)
{
    static char none[] = "--manifest=";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--manifest")
            && (i + 1 == argc || argv[i + 1][0] == '-')) argv[i] = none;
}

/* The file that goes with the built-in model. */
static tt_status find_stored(tt_ctx *ctx, char *out, size_t size, settings *s)
{
    char folder[4000];
    if (*s->manifest) return TT_OK;
    TT_TRY(model_find_builtin(ctx, folder, sizeof folder));
    char *last = strrchr(folder, '/');
    snprintf(out, size, "%.*s%s", last ? (int)(last - folder) + 1 : 0, folder,
             STORED);
    s->manifest = out;
    return TT_OK;
}

static tt_status read_stored(tt_ctx *ctx, tt_manifest *stored,
                             const char *path)
{
    if (access(path, R_OK))
        return tt_fail(ctx, TT_EIO, "%s: there are no stored digests here; "
                       "--write makes them", path);
    return tt_manifest_read(ctx, stored, path);
}

static int validate_manifest_report(check *c)
{
    const settings *s = c->s;
    const bool write = s->write && !c->ctx->status && !c->failed;
    if (write) tt_manifest_write(c->ctx, &c->stored, s->manifest, comment);
    if (c->ctx->status) return validate_failed(c->ctx);
    if (write) {
        printf("wrote %s: %lld hashes of golden, which the other backends "
               "match\n", s->manifest, (long long)c->stored.n);
        return VALIDATE_PASS;
    }
    printf("%s: %lld hashes match, %lld do not (%s)\n",
           c->failed || !c->passed ? "FAIL" : "PASS", (long long)c->passed,
           (long long)c->failed, s->manifest);
    return c->failed || !c->passed ? VALIDATE_MISMATCH : VALIDATE_PASS;
}

/* The stored digests are for every build. */
static int validate_manifest_check_settings(const settings *s, tt_class *only)
{
    if (s->write && !*s->manifest && !s->overwrite)
        return opt_usage("validate", "--manifest --write without a FILE would "
                         "replace the stored digests; name a FILE, or give "
                         "--overwrite");
    char hint[NEAREST_HINT];
    if (s->cls && !tt_class_find(only, s->cls))
        return opt_usage("validate", "--class %s is not known%s; the classes "
                         "are %s", s->cls, nearest_class(hint, s->cls),
                         tt_class_names());
    if (s->each < 1) return opt_usage("validate", "--each counts from 1");
    if (sizeof(tt_real) == 8)
        return opt_usage("validate", "--manifest: stored bits are those of a "
                         "float build, not of REAL=double");
    return GO_ON;
}

/* Only a table of digests is made anew. */
static tt_status check_table(tt_ctx *ctx, const settings *s)
{
    if (!s->write) return ctx->status;
    TT_TRY(tt_out_check(ctx, s->manifest));
    return s->overwrite ? TT_OK
         : outputs_kind(ctx, "--manifest", s->manifest,
                        "class case tensor sha256", "table of digests");
}

int validate_manifest(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.seed = 1, .each = 3, .latents = 12, .width = 16,
                  .height = 16, .run = -1, .model = TT_MODEL_PATHS,
                  .prompt = "a red circle moves left on a blue background"};
    cli_common common;
    opt_result given;
    validate_model model = {0};
    tt_model_parts m = {.rollout = tt_rollout_defaults()};
    char path[4200];
    check c = {.ctx = ctx, .s = &s};
    allow_no_value(argc, argv);
    int status = opt_parse(&manifest_command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = validate_manifest_check_settings(&s, &c.only);
    if (status != GO_ON) return status;
    common.backend = NULL;
    if (cli_setup(ctx, &common) || find_stored(ctx, path, sizeof path, &s)
        || check_table(ctx, &s))
        return validate_failed(ctx);
    if (!s.write) read_stored(ctx, &c.stored, s.manifest);
    m.prompt = s.prompt;
    cli_catch_signals(ctx);
    if (s.run < 0) s.run = s.model.model || s.model.dit || s.model.checkpoint;
    if (s.run && !ctx->status
        && !validate_model_sizes(ctx, &m, "tether", s.latents, s.width,
                                 s.height, s.seed))
        validate_model_open(ctx, &model, &m, &s.model);
    if (!ctx->status) validate_manifest_run_all(&c, &m);
    status = validate_manifest_report(&c);
    ctx->ops = tt_ops_default();
    validate_model_close(&model);
    tt_manifest_free(&c.stored);
    return status;
}
