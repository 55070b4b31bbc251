/* validate_dump.c: `tether validate --dump`, a dump of another program against
 * ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   three dumps of ours say what is right and how wrong one may be: the
 *         run itself, the same in float64 and the same in the declared
 *         arithmetic. With `-- generate ...` they are made here, twice: once
 *         with their tensors injected at every point, so that every tensor is
 *         checked for itself and the first failure names the segment (teacher
 *         forcing); once left to themselves, for the curve of growth.
 * Next    validate_runs.c, src/validate/files/dump.c */
#include <stdio.h>
#include <string.h>

#include "cli/validate/validate_files.h"
#include "cli/validate/validate_runs.h"

typedef struct settings {
    const char *dump, *against, *oracle, *emulated, *arith, *filter, *f64;
    const char *keep;
    bool partial, free_only, bits;
    validate_outputs out;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "What is compared"},
    {OPT_READ, "dump", 0, offsetof(settings, dump), "FILE",
     "theirs: a safetensors file of tensors named as by `generate --dump`"},
    {OPT_TEXT, "arith", 0, offsetof(settings, arith), "NAME",
     "what they compute with: " VALIDATE_ARITHS " (default f32). A dump that "
     "names this class in its metadata (class) must have its bits"},
    {OPT_FLAG, "bits", 0, offsetof(settings, bits), NULL,
     "every bit must be that of the class, whatever the dump says"},
    {OPT_TEXT, "filter", 0, offsetof(settings, filter), "GLOB,...",
     "only names that match one: of a dump of final latents alone, "
     "'chunk.*/step.3/x0'"},
    {OPT_FLAG, "partial", 0, offsetof(settings, partial), NULL,
     "their dump may lack kinds of tensors; coverage is printed. Without it "
     "every tensor of ours must be there"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Against dumps that exist"},
    {OPT_READ, "against", 0, offsetof(settings, against), "FILE",
     "ours, from `tether generate --dump` with the same inputs"},
    {OPT_READ, "oracle", 0, offsetof(settings, oracle), "FILE",
     "the same from the float64 program (`make f64`)"},
    {OPT_READ, "emulated", 0, offsetof(settings, emulated), "FILE",
     "the same from `tether generate --backend arith-NAME`; without it limits "
     "are those of a single rounding"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Against runs made here: -- generate ARGS"},
    {OPT_READ, "f64", 0, offsetof(settings, f64), "PROGRAM",
     "the float64 program (default: tether-f64 next to this one)"},
    {OPT_FLAG, "free-only", 0, offsetof(settings, free_only), NULL,
     "check our runs as they are, without injecting their tensors"},
    {OPT_TEXT, "keep", 0, offsetof(settings, keep), "FOLDER",
     "leave our dumps in this folder"},
    VALIDATE_OUTPUT_OPTIONS(settings, out),
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command dump_command = {
    .name = "validate",
    .summary = "a dump of another program against ours",
    .usage = "--dump THEIRS (--against OURS | [options] -- generate ARGS...)",
    .intro = "Every tensor may err a small multiple of what the declared "
             "arithmetic errs on the same inputs. The first line names the "
             "first tensor that is wrong. With `-- generate` our model runs "
             "with their tensors injected at every named point, so that each "
             "is compared with what our operators make of theirs.",
    .examples = "  tether validate --dump theirs.st --arith bf16 --html r.html "
                "\\\n      -- generate -m DIR --embeds text.st "
                "--noise noise.st --latents 9\n"
                "  tether validate --dump theirs.st --against ours.st "
                "--oracle ours64.st",
    .options = options,
    .no_log = true,
};

static void compare_files(tt_ctx *ctx, tt_report *r, const settings *s,
                          const tt_arith *arith)
{
    if (!s->emulated && !arith->bits)
        tt_report_note(r, "no --emulated dump: limits are those of one "
                       "rounding to %s", arith->name);
    if (!s->oracle && sizeof(tt_real) == 4 && !arith->bits)
        tt_report_note(r, "no --oracle dump: our float32 run stands in for "
                       "float64");
    tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = s->dump, .want = s->against, .oracle = s->oracle,
        .emul = s->emulated, .arith = arith, .filter = s->filter,
        .partial = s->partial, .curve = "free running"});
}

/* What theirs is compared with. */
static tt_dump_options options_of(const settings *s, const tt_arith *arith,
                                  const validate_set *set, const char *curve)
{
    return (tt_dump_options){
        .got = s->dump, .want = set->ours, .emul = set->emul,
        .oracle = *set->oracle ? set->oracle : NULL, .arith = arith,
        .filter = s->filter, .partial = s->partial, .curve = curve};
}

/* Ours with their tensors given at every point, against theirs; false when our
 * model does not run through with them, and a note. */
static bool compare_injected(tt_report *r, const settings *s,
                             const tt_arith *arith, validate_runs *w,
                             validate_set *set)
{
    tt_ctx *ctx = w->ctx;
    if (validate_runs_make(w, set, "injected", s->dump)) {
        if (ctx->status == TT_EINTR || ctx->status == TT_EIO
            || ctx->status == TT_ENOMEM) return false;
        char why[400];
        snprintf(why, sizeof why, "%s", tt_message(ctx));
        tt_clear(ctx);                 /* or there is no room for a note */
        tt_report_note(r, "%s: compared with a free run", why);
        return false;
    }
    tt_dump_options o = options_of(s, arith, set, NULL);
    o.injected = true;
    tt_dump_compare(ctx, r, &o);
    return true;
}

/* One more run of ours says which mistake a wrong tensor is, if it is one that
 * is known; after a pass, which mistakes would not have been seen. */
static void validate_dump_explain(tt_report *r, const tt_verdict *v,
                                  const settings *s, validate_runs *w,
                                  const char *emul)
{
    validate_set set;
    const bool only = w->ours_only;
    if (w->ctx->device) return;        /* it reads what operators are given */
    const tt_status cannot = emul ? tt_explain_pass(w->ctx, &w->explain, r,
                                                    emul)
        : v ? tt_explain_open(w->ctx, &w->explain, r, v, s->dump) : TT_OK;
    if (cannot || !w->explain) return;
    w->ours_only = true;
    const tt_status bad = validate_runs_make(w, &set, "explained", s->dump);
    w->ours_only = only;
    if (bad && bad != TT_EINTR) {      /* a verdict without a name stays one */
        tt_report_note(r, "%s is not explained: %s", v ? v->path : "the pass",
                       tt_message(w->ctx));
        tt_clear(w->ctx);
    }
    tt_explain_close(w->explain, bad ? NULL : r);
    w->explain = NULL;
}

/* Theirs has not the bits of the class: are they those of another one? */
static void find_class(tt_report *r, const settings *s, tt_class declared,
                       validate_runs *w)
{
    int64_t of;
    validate_set set;
    for (int c = 0; tt_class_at(c) && !w->ctx->status; c++) {
        const char *name = tt_class_name((tt_class)c);
        const tt_arith *arith = tt_arith_bits(tt_arith_find(name));
        tt_report *other = NULL;
        if ((tt_class)c == declared) continue;
        w->cls = name;
        if (tt_report_new(w->ctx, &other, name, arith)) return;
        if (compare_injected(other, s, arith, w, &set)
            && tt_report_equal(other, &of) == of && of)
            tt_report_note(r, "every tensor has the bits of class %s", name);
        tt_report_free(other);
    }
}

/* Has theirs tensors of the VAE that are to be compared? */
static bool has_pictures(tt_ctx *ctx, const settings *s)
{
    tt_file *f;
    bool any = false;
    if (tt_file_open(ctx, &f, s->dump)) return false;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const char *name = tt_file_entry(f, i)->name;
        any = any || (!strncmp(name, "vae/", 4)
                      && tt_name_chosen(s->filter, name));
    }
    tt_file_close(f);
    return any;
}

/* Our runs, injected and free, and what theirs is against them. */
static void compare_runs(tt_ctx *ctx, tt_report *r, settings *s,
                         const tt_arith *arith, int argc, char **argv)
{
    validate_runs w;
    validate_set set;
    bool injected = false;
    if (validate_runs_open(ctx, &w, s->f64, s->keep, arith, argc, argv)) return;
    w.filter = s->filter;
    w.ours_only = arith->bits;
    w.pictures = has_pictures(ctx, s);
    if (w.pictures && w.settings.no_decode)
        tt_report_note(r, "--no-decode: tensors of the VAE are not compared; "
                       "leave it out after --");
    if (!*w.f64 && !arith->bits)
        tt_report_note(r, "no float64 program (tether-f64; `make f64` builds "
                       "it): our float32 run stands in for it");
    if (!s->free_only) injected = compare_injected(r, s, arith, &w, &set);
    validate_expect(ctx, r, &s->out);      /* what is expected has no hint */
    if (injected && (arith->bits || arith->cls == TT_CLASS_F32)) {
        validate_dump_explain(r, tt_report_first(r), s, &w, NULL);
        validate_dump_explain(r, tt_report_largest(r), s, &w, NULL);
    }
    if (injected && !arith->bits && arith->cls == TT_CLASS_F32
        && tt_report_passed(r))
        validate_dump_explain(r, NULL, s, &w, set.emul);
    if (!ctx->status && !validate_runs_make(&w, &set, "free", NULL)) {
        tt_dump_options o = options_of(s, arith, &set, "free running");
        o.quiet = injected;
        tt_dump_compare(ctx, r, &o);
    }
    if (injected && arith->bits && tt_report_first(r))
        find_class(r, s, arith->cls, &w);
    validate_runs_close(&w);
}

/* The class that theirs says it computes: every bit counts. */
static const tt_arith *validate_dump_checked_by(tt_ctx *ctx, const settings *s,
                                                const tt_arith *arith)
{
    const tt_arith *bits = tt_arith_bits(arith);
    if (s->bits && !bits)
        tt_fail(ctx, TT_EINVAL, "--bits: %s is no class, so no bits are "
                "defined; classes are %s, in a float build", arith->name,
                tt_class_names());
    if (s->bits) return bits ? bits : arith;
    return validate_declared(ctx, arith, s->dump);
}

/* The value of `name` or of the letter `flag` among a command's words, the
 * last one; NULL: not given. */
static const char *given_as(const char *name, const char *flag, int argc,
                            char **argv)
{
    const char *found = NULL;
    const size_t n = strlen(name);
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
            found = argv[i] + n + 1;
        else if (i + 1 < argc
                 && (!strcmp(argv[i], name) || !strcmp(argv[i], flag)))
            found = argv[i + 1];
    }
    return found;
}

/* Facts of our own side: the files, or what the run was told. */
static void add_facts(tt_report *r, const settings *s, int nrun, char **run)
{
    const char *model = given_as("--model", "-m", nrun, run);
    const char *seed = given_as("--seed", "-s", nrun, run);
    tt_report_fact(r, "theirs", "%s", s->dump);
    if (s->against) tt_report_fact(r, "ours", "%s", s->against);
    if (s->oracle) tt_report_fact(r, "ours in float64", "%s", s->oracle);
    if (s->emulated) tt_report_fact(r, "ours emulated", "%s", s->emulated);
    if (model) tt_report_fact(r, "model", "%s", model);
    if (nrun) tt_report_fact(r, "seed", "%s", seed ? seed : "0");
}

/* Where the arguments of `--` begin; argc when there is none. */
static int find_run(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--")) i++;
    return i;
}

static int validate_dump_check(const settings *s, int nrun)
{
    if (!s->dump) return opt_usage("validate", "--dump needs a file");
    if (nrun > 0 && s->against)
        return opt_usage("validate", "--against is a run that exists, -- "
                         "generate makes one: give one of them");
    if (nrun > 0 && (s->oracle || s->emulated))
        return opt_usage("validate", "--oracle and --emulated go with "
                         "--against");
    if (!nrun && !s->against)
        return opt_usage("validate", "expected --against FILE, or -- generate "
                         "ARGS...");
    if (s->emulated && !s->oracle && !strcmp(s->emulated, s->against))
        return opt_usage("validate", "--emulated is the file of --against: "
                         "together they do not say how far off a result may "
                         "be; give --oracle as well");
    return GO_ON;
}

/* The command after --, in `run`. */
static int check_run(const settings *s, int nrun, char **run)
{
    if (!nrun && (s->f64 || s->free_only || s->keep))
        return opt_usage("validate", "--f64, --free-only and --keep go with "
                         "-- generate");
    if (nrun > 0 && strcmp(run[0], "generate"))
        return opt_usage("validate", "after -- expected `generate` and its "
                         "options, not `%s`", run[0]);
    for (int i = 1; i < nrun; i++)
        if (!strncmp(run[i], "--dump", 6) || !strncmp(run[i], "--inject", 8)
            || !strncmp(run[i], "--backend", 9) || !strcmp(run[i], "--resume"))
            return opt_usage("validate", "%s of `generate` is chosen here",
                             run[i]);
    return GO_ON;
}

int validate_dump(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.arith = "f32"};
    cli_common common;
    opt_result given;
    tt_report *r;
    char title[600];
    const int run = find_run(argc, argv);
    const int nrun = argc - run > 1 ? argc - run - 1 : 0;
    int status = opt_parse(&dump_command, &s, &common, &given, run, argv);
    if (status == GO_ON) status = validate_dump_check(&s, nrun);
    if (status == GO_ON) status = check_run(&s, nrun, argv + run + 1);
    if (status != GO_ON) return status;
    const tt_arith *arith = validate_arith("validate", s.arith);
    if (!arith) return VALIDATE_USAGE;
    if (cli_setup(ctx, &common) || validate_outputs_check(ctx, &s.out))
        return validate_failed(ctx);
    snprintf(title, sizeof title, "validate %.500s", s.dump);
    arith = validate_dump_checked_by(ctx, &s, arith);
    if (ctx->status || tt_report_new(ctx, &r, title, arith))
        return validate_failed(ctx);
    tt_report_fact(r, "command", "%s",
                   cli_command_line(ctx, "tether", argc, argv));
    add_facts(r, &s, nrun, argv + run + 1);
    if (nrun) compare_runs(ctx, r, &s, arith, nrun, argv + run + 1);
    else compare_files(ctx, r, &s, arith);
    status = validate_finish(ctx, r, &s.out);
    tt_report_free(r);
    return status;
}
