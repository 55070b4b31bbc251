/* validate_cases.c: `tether validate export` and `check`: cases out, and
 * results that were computed elsewhere from them in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   cases of the model are pieces of a run: inputs.safetensors holds the
 *         tensors to start from under their names in a dump, and the expected
 *         files what our model makes of exactly those (they are injected),
 *         as it is, in float64 and in the declared arithmetics. So a case
 *         needs no names of its own.
 * Holds   build/.../gen/kit.h, which make writes, has the bytes of
 *         tools/python/kit.
 * Next    src/validate/operators/cases.c */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/generate/model.h"
#include "cli/validate/validate_files.h"
#include "cli/validate/validate_runs.h"
#include "io/json.h"
#include "io/outfile.h"
#include "kit.h"

/* ---- export -------------------------------------------------------------- */

typedef struct export_settings {
    const char *f64, *inputs;
    bool kit;
    int64_t each;
    uint64_t seed;
} export_settings;

static const opt_spec export_options[] = {
    {OPT_INT, "each", 0, offsetof(export_settings, each), "N",
     "cases per operator (default 3)"},
    {OPT_U64, "seed", 's', offsetof(export_settings, seed), "S",
     "of sizes and inputs of the operators (default 1)"},
    {OPT_TEXT, "inputs", 0, offsetof(export_settings, inputs), "KIND",
     "operators on inputs of this kind instead of ordinary ones (zero, "
     "denormal, one-hot ..., as the operator checks name them); all: on every "
     "kind"},
    {OPT_FLAG, "kit", 0, offsetof(export_settings, kit), NULL,
     "operators on every kind of input, a block of the built-in model with its "
     "weights, and check.py, which checks functions of Python with numpy "
     "alone, also under pytest"},
    {OPT_READ, "f64", 0, offsetof(export_settings, f64), "PROGRAM",
     "the float64 program (default: tether-f64 next to this one)"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command export_command = {
    .name = "validate export",
    .summary = "cases as folders",
    .usage = "FOLDER [options] [-- generate ARGS...]",
    .intro = "Writes a case folder for every operator, and with `-- generate` "
             "(three chunks are enough) one for a block, a pass of the "
             "transformer, a whole rollout and, when the run decodes, a "
             "frame of the VAE. Each has case.json, inputs.safetensors, and "
             "expected results: ours, in float64 and in the declarable "
             "arithmetics.",
    .examples = "  tether validate export cases\n"
                "  tether validate export cases -- generate -m DIR --embeds "
                "text.st --latents 9 \\\n      -W 64 -H 64 -o out.y4m\n"
                "  tether validate export --kit kit && cd kit && python3 "
                "check.py example",
    .options = export_options,
    .no_log = true,
    .positional_max = 1,
    .bare = "expected one FOLDER",
};

/* What starts a case and what it must give. */
typedef struct piece {
    const char *name, *what;
    const char *inputs, *expected;   /* globs */
    bool timed, one_pass;      /* of the transformer; of its first step only  */
} piece;

static const piece pieces[] = {
    {"block", "transformer block 0 on an empty cache: tokens, e0 [nt, 6, dim] "
     "and context in, every named point of the block out",
     "chunk.0/step.0/tokens,chunk.0/step.0/e0,context",
     "chunk.0/step.0/block.0/*,block.0/cross_attn.?", true, true},
    {"forward", "one pass of the transformer on an empty cache: latent x and "
     "context in, flow out",
     "chunk.0/step.0/x,context",
     "chunk.0/step.0/flow,chunk.0/step.0/tokens,chunk.0/step.0/e,"
     "chunk.0/step.0/e0,chunk.0/step.0/block.*/out", true, true},
    {"rollout", "a rollout, one pass per step: the noisy latent x of every "
     "step (the clean one of the last) and context in, x0 and flow of every "
     "step and the scores and picks of the cache out",
     "chunk.*/step.*/x,context",
     "chunk.*/step.*/x0,chunk.*/step.*/flow,*grab.keep,*grab.score", true,
     false},
    {"vae", "VAE decoding of latent frame 0: denormalised latent in, every "
     "named point out",
     "vae/frame.0/denorm",
     "vae/frame.0/[!d]*", false, false},       /* all but what is given */
};

/* Numbers of `list` (an array, or an object's members with their keys). */
static void put_numbers(json_out *j, const char *key, const tt_json *list)
{
    const bool named = list && list->kind == TT_JSON_OBJECT;
    json_open(j, key, named ? '{' : '[');
    for (const tt_json *v = tt_json_first(list); v; v = tt_json_next(v))
        json_real(j, named ? v->key : NULL, tt_json_real(v));
    json_close(j, named ? '}' : ']');
}

/* What the inputs do not say: sizes and eps of the network, rows and columns
 * of patches, the timestep of a pass, those of a rollout's steps. From the
 * record of the run. */
static void validate_cases_put_facts(json_out *j, const piece *p,
                                     const tt_json *run)
{
    const tt_json *t = tt_json_get(run, "timesteps");
    const tt_json *video = tt_json_get(run, "video");
    put_numbers(j, "network", tt_json_get(run, "network"));
    json_open(j, "grid", '[');
    json_int(j, NULL, tt_json_int(video, "height", 0) / 16);
    json_int(j, NULL, tt_json_int(video, "width", 0) / 16);
    json_close(j, ']');
    if (!p->timed) return;
    const tt_json *first = tt_json_first(t);
    if (p->one_pass && first) json_real(j, "t", tt_json_real(first));
    else put_numbers(j, "timesteps", t);
}

static tt_status write_case_json(tt_ctx *ctx, const char *dir, const piece *p,
                                 const char *record, int argc, char **argv)
{
    char path[1200];
    tt_out o;
    json_out j;
    tt_arena mem = {0};
    const tt_json *run;
    if (tt_json_file(ctx, &mem, &run, record, 1 << 24)) {
        tt_arena_free(&mem);
        return ctx->status;
    }
    snprintf(path, sizeof path, "%s/case.json", dir);
    if (!tt_out_open(ctx, &o, path)) {
        json_begin(&j, o.file, true);
        json_str(&j, "kind", p->name);
        json_str(&j, "description", p->what);
        validate_cases_put_facts(&j, p, run);
        json_open(&j, "command", '[');
        for (int i = 0; i < argc; i++) json_str(&j, NULL, argv[i]);
        json_close(&j, ']');
        json_end(&j);
        tt_out_finish(ctx, &o);
    }
    tt_arena_free(&mem);
    return ctx->status;
}

/* The expected tensors of one run into `dir`/expected<suffix>.safetensors. */
static tt_status cut_expected(tt_ctx *ctx, const char *dir, const char *suffix,
                              const char *dump, const piece *p, int64_t *n)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/expected%s.safetensors", dir, suffix);
    return tt_dump_cut(ctx, path, dump, p->expected, n);
}

/* One piece: inputs from `whole`, then a set of runs from exactly those for
 * every arithmetic; the run as it is and in float64 are the same each time. */
static tt_status export_piece(tt_ctx *ctx, const char *dir, const piece *p,
                              const char *whole, const char *record,
                              const export_settings *s, int argc, char **argv)
{
    char path[1100], inputs[1200], suffix[64];
    int64_t n;
    snprintf(path, sizeof path, "%s/model_%s", dir, p->name);
    if (mkdir(path, 0777) && errno != EEXIST)
        return tt_fail(ctx, TT_EIO, "%s: cannot make this folder: %s", path,
                       strerror(errno));
    snprintf(inputs, sizeof inputs, "%s/inputs.safetensors", path);
    TT_TRY(tt_dump_cut(ctx, inputs, whole, p->inputs, &n));
    if (!n) {                    /* the run has no such part */
        unlink(inputs);
        rmdir(path);
        return TT_OK;
    }
    /* a kit names no folder of the machine it was made on */
    TT_TRY(write_case_json(ctx, path, p, record, s->kit ? 0 : argc, argv));
    for (int i = 0; tt_arith_at(i) && !ctx->status; i++) {
        const tt_arith *a = tt_arith_at(i);
        if (s->kit && a->cls != TT_CLASS_F32) break;
        validate_runs w;
        validate_set set;
        TT_TRY(validate_runs_open(ctx, &w, s->f64, NULL, a, argc, argv));
        w.emul_only = i > 0;
        if (!validate_runs_make(&w, &set, "free", inputs)) {
            snprintf(suffix, sizeof suffix, "_%s", a->name);
            cut_expected(ctx, path, suffix, set.emul, p, &n);
            if (!i) cut_expected(ctx, path, "", set.ours, p, &n);
            if (!i && *set.oracle)
                cut_expected(ctx, path, "_f64", set.oracle, p, &n);
        }
        validate_runs_close(&w);
    }
    return ctx->status;
}

static tt_status export_model(tt_ctx *ctx, const char *dir,
                              const export_settings *s, int argc, char **argv)
{
    validate_runs w;
    validate_set set;
    TT_TRY(validate_runs_open(ctx, &w, s->f64, NULL, tt_arith_at(0), argc,
                              argv));
    if (!*w.f64)
        tt_warn(ctx, "no float64 program (tether-f64; `make f64` builds it): "
                "these cases have no expected_f64");
    char record[640];
    snprintf(record, sizeof record, "%s/record", w.folder);
    w.ours_only = true;
    w.record = record;
    if (!validate_runs_make(&w, &set, "free", NULL))
        for (size_t i = 0; i < (s->kit ? 1 : sizeof pieces / sizeof *pieces);
             i++)
            if (export_piece(ctx, dir, &pieces[i], set.ours, record, s, argc,
                             argv))
                break;
    unlink(record);
    validate_runs_close(&w);
    return ctx->status;
}

/* ---- the kit ------------------------------------------------------------- */

static tt_status put_file(tt_ctx *ctx, const char *dir, const char *name,
                          const void *bytes, size_t n)
{
    char path[1100];
    tt_out o;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    TT_TRY(tt_out_open(ctx, &o, path));
    fwrite(bytes, 1, n, o.file);
    return tt_out_finish(ctx, &o);
}

/* What check.py has to know of every arithmetic. */
static tt_status put_ariths(tt_ctx *ctx, const char *dir)
{
    static const char *const format[] = {"f32", "tf32", "f16", "bf16"};
    char path[1100];
    tt_out o;
    json_out j;
    snprintf(path, sizeof path, "%s/arith.json", dir);
    TT_TRY(tt_out_open(ctx, &o, path));
    json_begin(&j, o.file, true);
    json_int(&j, "slack", TT_SLACK);
    json_open(&j, "arith", '{');
    for (int i = 0; tt_arith_at(i); i++) {
        const tt_arith *a = tt_arith_at(i);
        if (a->cls != TT_CLASS_F32) break;
        json_open(&j, a->name, '{');
        json_str(&j, "product", format[a->product]);
        json_str(&j, "stored", format[a->stored]);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_end(&j);
    return tt_out_finish(ctx, &o);
}

/* The block of the built-in model, and the checker. */
static tt_status export_kit(tt_ctx *ctx, const char *dir,
                            const export_settings *s)
{
    char model[4096], from[4200], to[1100];
    int64_t n;
    TT_TRY(model_find_builtin(ctx, model, sizeof model));
    char *run[] = {"generate", "-m", model, "-p", "a red circle", "--latents",
                   "3", "-W", "48", "-H", "32", "--no-decode"};
    TT_TRY(export_model(ctx, dir, s, (int)(sizeof run / sizeof *run), run));
    snprintf(from, sizeof from, "%s/diffusion_pytorch_model.safetensors",
             model);
    snprintf(to, sizeof to, "%s/model_block/weights.safetensors", dir);
    TT_TRY(tt_dump_cut(ctx, to, from, "blocks.0.*", &n));
    TT_TRY(put_ariths(ctx, dir));
    TT_TRY(put_file(ctx, dir, "check.py", kit_check, sizeof kit_check));
    return put_file(ctx, dir, "example.py", kit_example, sizeof kit_example);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int validate_cases_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the folders in `dir` that are cases, sorted. */
static tt_status list_cases(tt_ctx *ctx, char ***out, int64_t *n,
                            const char *dir)
{
    enum { MOST = 20000 };
    DIR *d = opendir(dir);
    *n = 0;
    if (!d)
        return tt_fail(ctx, TT_EIO, "%s: cannot read this folder: %s", dir,
                       strerror(errno));
    *out = tt_alloc(ctx, &ctx->scratch, MOST, sizeof **out, "names of cases");
    for (struct dirent *e; *out && *n < MOST && (e = readdir(d));) {
        char path[1400];
        snprintf(path, sizeof path, "%s/%s/case.json", dir, e->d_name);
        if (*e->d_name != '.' && is_file(path))
            (*out)[(*n)++] = tt_strdup(ctx, &ctx->scratch, e->d_name);
    }
    closedir(d);
    if (!ctx->status && *n > 1)
        qsort(*out, (size_t)*n, sizeof **out, validate_cases_by_text);
    if (!*n)
        return tt_fail(ctx, TT_EIO, "%s: no cases in this folder (a case is a "
                       "folder with case.json)", dir);
    return ctx->status;
}

static int split_arguments(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--")) i++;
    return i;
}

/* What cannot be asked for, in a sentence; false: all is well. */
static bool export_refused(const export_settings *s, const opt_result *given,
                           int nrun, const char *command, int *status)
{
    if (given->npositional != 1)
        *status = opt_usage("validate export", "expected one FOLDER");
    else if (s->each < 1)
        *status = opt_usage("validate export", "--each counts from 1");
    else if (nrun && strcmp(command, "generate"))
        *status = opt_usage("validate export", "after -- expected `generate` "
                            "and its options, not `%s`", command);
    else if (s->kit && (nrun || s->inputs))
        *status = opt_usage("validate export", "--kit has inputs and a block "
                            "of its own: leave %s out", nrun ? "-- generate"
                            : "--inputs");
    else return false;
    return true;
}

int validate_export(tt_ctx *ctx, int argc, char **argv)
{
    export_settings s = {.each = 3, .seed = 1};
    cli_common common;
    opt_result given;
    const int run = split_arguments(argc, argv);
    const int nrun = argc - run > 1 ? argc - run - 1 : 0;
    int status = opt_parse(&export_command, &s, &common, &given, run, argv);
    if (status != GO_ON) return status;
    if (export_refused(&s, &given, nrun, nrun ? argv[run + 1] : "", &status))
        return status;
    if (cli_setup(ctx, &common)) return validate_failed(ctx);
    tt_cases_operators(ctx, given.positional[0], s.seed, s.each,
                       s.kit ? "all" : s.inputs ? s.inputs : "normal", s.kit);
    if (nrun && !ctx->status)
        export_model(ctx, given.positional[0], &s, nrun, argv + run + 1);
    if (s.kit && !ctx->status) export_kit(ctx, given.positional[0], &s);
    char **name;
    int64_t n;
    if (ctx->status || list_cases(ctx, &name, &n, given.positional[0]))
        return validate_failed(ctx);
    if (!common.quiet)
        fprintf(stderr, "wrote %lld cases into %s\n", (long long)n,
                given.positional[0]);
    return VALIDATE_PASS;
}

/* ---- check --------------------------------------------------------------- */

typedef struct check_settings {
    const char *got, *arith, *one;
    bool partial;
    int64_t by_bits;           /* cases, found on the way                     */
    validate_outputs out;
} check_settings;

static const opt_spec check_options[] = {
    {OPT_TEXT, "got", 0, offsetof(check_settings, got), "FOLDER",
     "results: CASE.safetensors or CASE/got.safetensors for every CASE; "
     "CASE.unsupported says why there is none"},
    {OPT_TEXT, "arith", 0, offsetof(check_settings, arith), "NAME",
     "what they were computed with: " VALIDATE_ARITHS " (default f32), checked "
     "by its limits; by every bit where a result and its case both name this "
     "class in their metadata (class)"},
    {OPT_TEXT, "case", 0, offsetof(check_settings, one), "NAME",
     "only this case"},
    {OPT_FLAG, "partial", 0, offsetof(check_settings, partial), NULL,
     "results may lack cases and kinds of tensors"},
    VALIDATE_OUTPUT_OPTIONS(check_settings, out),
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command check_command = {
    .name = "validate check",
    .summary = "results computed elsewhere from cases",
    .usage = "FOLDER --got FOLDER2 [--arith NAME]",
    .intro = "FOLDER holds cases as `validate export` writes them, or "
             "reference cases. Tensors are named as in expected.safetensors.",
    .examples = "  tether validate check cases --got results --arith bf16",
    .options = check_options,
    .no_log = true,
    .positional_max = 1,
    .bare = "expected FOLDER and --got FOLDER2",
};

/* CASE.unsupported or CASE/unsupported, whose first line says why: their
 * program does not do that case. */
static bool unsupported_case(tt_report *r, const char *name, const char *got)
{
    tt_verdict v = {.op = "", .outcome = TT_UNSUPPORTED};
    static const char *const mark[] = {".", "/"};
    char path[1200];
    FILE *f = NULL;
    for (int i = 0; i < 2 && !f; i++) {
        snprintf(path, sizeof path, "%s/%s%sunsupported", got, name, mark[i]);
        f = fopen(path, "r");
    }
    if (!f) return false;
    if (fgets(v.hint, sizeof v.hint, f)) v.hint[strcspn(v.hint, "\r\n")] = 0;
    fclose(f);
    snprintf(v.path, sizeof v.path, "%.200s", name);
    tt_report_add(r, &v, NULL, NULL);
    return true;
}

static void missing_case(tt_report *r, const char *name, const char *got)
{
    tt_verdict v = {.op = "", .outcome = TT_MISSING};
    snprintf(v.path, sizeof v.path, "%.200s", name);
    snprintf(v.hint, sizeof v.hint, "neither %.40s.safetensors nor "
             "%.40s/got.safetensors in %.60s", name, name, got);
    tt_report_add(r, &v, NULL, NULL);
}

/* True when there was a result to check. */
static bool check_case(tt_ctx *ctx, tt_report *r, check_settings *s,
                       const tt_arith *arith, const char *dir, const char *name)
{
    char got[1200], want[1200], oracle[1200], emul[1200], prefix[300];
    char folder[1100];
    snprintf(want, sizeof want, "%s/%s/expected.safetensors", dir, name);
    if (!is_file(want)) return false;
    snprintf(oracle, sizeof oracle, "%s/%s/expected_f64.safetensors", dir,
             name);
    snprintf(emul, sizeof emul, "%s/%s/expected_%s.safetensors", dir, name,
             arith->name);
    snprintf(prefix, sizeof prefix, "%s/", name);
    snprintf(folder, sizeof folder, "%s/%s", dir, name);
    snprintf(got, sizeof got, "%s/%s.safetensors", s->got, name);
    if (!is_file(got))
        snprintf(got, sizeof got, "%s/%s/got.safetensors", s->got, name);
    if (!is_file(got)) {
        if (unsupported_case(r, name, s->got)) return true;
        if (!s->partial) missing_case(r, name, s->got);
        return false;
    }
    /* Reference cases have no emulated results; the official float32 ones are
     * honest float32. */
    const bool has = is_file(emul);
    const tt_arith *checked = validate_declared(ctx, arith, got);
    if (checked->bits) checked = validate_declared(ctx, arith, want);
    s->by_bits += checked->bits;
    tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = got, .want = want, .oracle = is_file(oracle) ? oracle : NULL,
        .emul = has ? emul : !strcmp(arith->name, "f32") ? want : NULL,
        .arith = checked, .prefix = prefix, .partial = s->partial,
        .operands = folder});
    return true;
}

/* The command for the first wrong case alone. */
static void validate_cases_note_again(tt_ctx *ctx, tt_report *r,
                                      const check_settings *s, int argc,
                                      char **argv)
{
    const tt_verdict *v = tt_report_first(r);
    char name[224];
    if (s->one || !v) return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(v->path, "/"), v->path);
    validate_again(ctx, r, "tether validate", argc, argv, "--case", name);
}

int validate_check(tt_ctx *ctx, int argc, char **argv)
{
    check_settings s = {.arith = "f32"};
    cli_common common;
    opt_result given;
    tt_report *r;
    char title[600], **name;
    int64_t n = 0, asked = 0, answered = 0;
    int status = opt_parse(&check_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 1 || !s.got)
        return opt_usage("validate check", "expected FOLDER and --got FOLDER2");
    const tt_arith *arith = validate_arith("validate check", s.arith);
    if (!arith) return VALIDATE_USAGE;
    const char *dir = given.positional[0];
    snprintf(title, sizeof title, "check %.280s %.280s", dir, s.got);
    if (cli_setup(ctx, &common) || validate_outputs_check(ctx, &s.out)
        || tt_report_new(ctx, &r, title, arith))
        return validate_failed(ctx);
    tt_report_fact(r, "command", "%s",
                   cli_command_line(ctx, "tether validate", argc, argv));
    tt_report_fact(r, "cases", "%s", dir);
    tt_report_fact(r, "results", "%s", s.got);
    if (!is_folder(s.got))
        tt_fail(ctx, TT_EIO, "--got %s: there is no such folder", s.got);
    if (!ctx->status) list_cases(ctx, &name, &n, dir);
    for (int64_t i = 0; i < n && !ctx->status; i++)
        if (!s.one || !strcmp(s.one, name[i])) {
            answered += check_case(ctx, r, &s, arith, dir, name[i]);
            asked++;
        }
    if (s.one && !asked && !ctx->status)
        tt_fail(ctx, TT_EIO, "%s has no case %s", dir, s.one);
    if (!answered && !ctx->status)
        tt_fail(ctx, TT_EIO, "%s holds results for none of the %lld cases in "
                "%s: expected CASE.safetensors or CASE/got.safetensors", s.got,
                (long long)asked, dir);
    tt_report_note(r, "coverage: results of %lld of %lld cases",
                   (long long)answered, (long long)asked);
    validate_expect(ctx, r, &s.out);
    validate_cases_note_again(ctx, r, &s, argc, argv);
    if (s.by_bits)
        tt_report_note(r, "%lld of them by every bit of class %s, which they "
                       "and their cases name", (long long)s.by_bits,
                       arith->name);
    status = validate_finish(ctx, r, &s.out);
    tt_report_free(r);
    return status;
}
