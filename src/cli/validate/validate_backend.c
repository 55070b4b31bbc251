/* validate_backend.c: tether validate --backend, a plug-in against the golden
 * operators: one operator at a time, then inside the model.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/validate/validate_files.h"
#include "cli/validate/validate_model.h"
#include "cli/validate/validate_runs.h"
#include "core/fpenv.h"
#include "core/nearest.h"
#include "core/utf8.h"
#include "io/jsonout.h"

typedef struct settings {
    const char *backend, *arith, *only, *prompt, *cache;
    const char *one, *cases;
    bool quick, list;
    tt_model_paths model;
    uint64_t seed;
    int64_t rounds, latents, width, height;
    int operators, calls, rollout;
    double timeout;
    bool bits;
    int isolate;
    char folder[512], state[540]; /* where rollouts keep their state          */
    int argc;
    char **argv;             /* the command                                   */
    validate_outputs out;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Backend"},
    {OPT_READ, "backend", 0, offsetof(settings, backend), "FILE.so|NAME",
     "a plug-in (see include/tether/validate.h), or a built-in table"},
    {OPT_TEXT, "arith", 0, offsetof(settings, arith), "NAME",
     "what it computes with: " VALIDATE_ARITHS " (default: what the plug-in "
     "says, or f32). The first six may be followed by +ftz, +winograd, +bias "
     "and +saturate. A backend of a class but f32 must have its bits"},
    {OPT_FLAG, "bits", 0, offsetof(settings, bits), NULL,
     "every bit must be that of the class, also of f32"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Checks"},
    {OPT_SWITCH, "operators", 0, offsetof(settings, operators), NULL,
     "every operator on random and pathological inputs (default: yes)"},
    {OPT_SWITCH, "calls", 0, offsetof(settings, calls), NULL,
     "every operator call of a prompt, rollout, decode and encode (default: "
     "yes)"},
    {OPT_SWITCH, "rollout", 0, offsetof(settings, rollout), NULL,
     "whole chunks, teacher forced and free running (default: yes)"},
    {OPT_TEXT, "op", 0, offsetof(settings, only), "NAME",
     "only this operator's random checks"},
    {OPT_TEXT, "case", 0, offsetof(settings, one), "NAME",
     "only this case, as reports and --list name it: of an operator, a call of "
     "a model (the candidate makes no other one) or a tensor of a chunk"},
    {OPT_FLAG, "quick", 0, offsetof(settings, quick), NULL,
     "some seconds: --rounds 2 without large sizes, --latents 9, --no-rollout; "
     "what is given besides wins"},
    {OPT_FLAG, "list", 0, offsetof(settings, list), NULL,
     "check nothing: print the operators, which of them are the backend's own, "
     "their cases and what can be declared, as JSON"},
    {OPT_TEXT, "export", 0, offsetof(settings, cases), "FOLDER",
     "write what fails as cases with the candidate's results (`validate check "
     "FOLDER --got FOLDER`), the first call of each operator of a model; cases "
     "that are there stay"},
    {OPT_U64, "seed", 's', offsetof(settings, seed), "S",
     "of the random checks (default 1); printed with every failure"},
    {OPT_INT, "rounds", 0, offsetof(settings, rounds), "N",
     "shapes per operator and kind of input (default 8)"},
    {OPT_SWITCH, "isolate", 0, offsetof(settings, isolate), NULL,
     "in a process of its own: a backend that crashes, exits or hangs is a "
     "verdict (default: yes; no for a debugger)"},
    {OPT_REAL, "timeout", 0, offsetof(settings, timeout), "SECONDS",
     "what one call of it may take, 0: any time (default 120)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(settings, model),
    TT_MODEL_ROWS_DIT(settings, model),
    TT_MODEL_ROW_VAE(settings, model),
    TT_MODEL_ROWS_TEXT(settings, model),
    TT_MODEL_ROW_LORA(settings, model.lora),
    {OPT_TEXT, "prompt", 'p', offsetof(settings, prompt), "TEXT", "prompt"},
    {OPT_TEXT, "cache", 0, offsetof(settings, cache), "POLICY",
     "cache policy (default tether, with K = 9)"},
    {OPT_INT, "latents", 0, offsetof(settings, latents), "N",
     "latent frames, a multiple of 3 (default 18)"},
    {OPT_INT, "width", 'W', offsetof(settings, width), "PIXELS",
     "default 32"},
    {OPT_INT, "height", 'H', offsetof(settings, height), "PIXELS",
     "default 32"},
    VALIDATE_OUTPUT_OPTIONS(settings, out),
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command backend_command = {
    .name = "validate",
    .summary = "a backend against the golden operators",
    .usage = "--backend FILE.so [--arith NAME] [-m DIR]",
    .intro = "Runs a plug-in's operators on random and pathological inputs, "
             "then inside the model, where every call is checked on right "
             "inputs: the first that fails is the mistake. Limits come from "
             "a float64 oracle and from the error the declared arithmetic "
             "must make. Without -m the small built-in model is used.",
    .examples = "  cc -shared -fPIC -Iinclude mine.c -o mine.so\n"
                "  tether validate --backend ./mine.so\n"
                "  tether validate --backend ./mine.so --arith bf16 --html "
                "report.html\n"
                "  tether validate --backend ./mine.so --case 'op.silu.normal "
                "n=1 seed 1'",
    .options = options,
    .no_log = true,
};

/* ---- what was run -------------------------------------------------------- */

/* "mine (a summary), 1 of 16 operators its own"; many have no summary. */
static void note_backend(tt_ctx *ctx, tt_report *r, const tt_plugin *p)
{
    const char *said = p->ops.summary ? p->ops.summary : "";
    const int64_t capacity = (int64_t)(strlen(p->ops.name) + strlen(said)) + 64;
    char *text = tt_alloc(ctx, &ctx->scratch, capacity, 1, "a note");
    if (!text) return;
    snprintf(text, (size_t)capacity, "%s%s%s%s, %d of 16 operators its own",
             p->ops.name, *said ? " (" : "", said, *said ? ")" : "", p->filled);
    tt_report_note(r, "backend %s", text);
    tt_report_fact(r, "backend", "%s", text);
}

static void note_run(tt_ctx *ctx, tt_report *r, const settings *s)
{
    const tt_model_paths *m = &s->model;
    const char *folder = m->model ? m->model : m->dit ? m->dit : m->checkpoint;
    tt_report_fact(r, "command", "%s",
                   cli_command_line(ctx, "tether", s->argc, s->argv));
    if ((s->calls || s->rollout) && !s->only)
        tt_report_fact(r, "model", "%s; %lldx%lld, %lld latent frames, cache "
                       "policy %s", folder ? folder : "the built-in one",
                       (long long)s->width, (long long)s->height,
                       (long long)s->latents, s->cache);
    else
        tt_report_fact(r, "model", "none: operators alone");
}

/* ---- the model ----------------------------------------------------------- */

static void check_model(tt_ctx *ctx, tt_report *r, settings *s,
                        const tt_ops *ops, const tt_arith *arith)
{
    validate_model p = {0};
    tt_model_parts m = {.prompt = s->prompt, .rollout = tt_rollout_defaults()};
    if (validate_model_sizes(ctx, &m, s->cache, s->latents, s->width,
                             s->height, s->seed)) return;
    if (validate_model_open(ctx, &p, &m, &s->model) == TT_OK) {
        if (s->calls) tt_validate_calls(ctx, r, ops, arith, &m);
        if (s->rollout && !ctx->status)
            tt_validate_rollout(ctx, r, ops, arith, &m, s->state);
    }
    validate_model_close(&p);
}

/* ---- the command --------------------------------------------------------- */

/* What the candidate says that it computes: --arith, or the arithmetic or the
 * class of the plug-in. */
static const tt_arith *validate_backend_declared(tt_ctx *ctx, const settings *s,
                                                 const tt_plugin *p)
{
    const char *class = tt_class_name(p->ops.cls);
    const tt_arith *a = s->arith ? tt_arith_find(s->arith)
                        : p->arith ? p->arith : tt_arith_find(class);
    if (!a) validate_no_arith(ctx, s->arith);
    return a;
}

/* A built-in backend computes the class that is asked for, where it has it. */
static tt_status find_built_in(tt_ctx *ctx, const settings *s, tt_plugin *p,
                               const tt_ops *ops)
{
    const tt_ops *ours = ctx->ops;
    const tt_arith *a = s->arith ? tt_arith_find(s->arith) : NULL;
    const tt_ops *of_class = a ? tt_ops_class(ops, a->cls) : NULL;
    TT_TRY(tt_ops_use(ctx, s->backend));   /* what it lacks is said now */
    ctx->ops = ours;
    p->ops = of_class ? *of_class : *ops;
    p->filled = 16;
    return TT_OK;
}

static tt_status find_backend(tt_ctx *ctx, const settings *s, tt_plugin *p)
{
    const tt_ops *built_in = tt_ops_find(s->backend);
    static const char *const names[] = {"exact", "golden", "blas", "cuda"};
    if (built_in) return find_built_in(ctx, s, p, built_in);
    if (!strpbrk(s->backend, "/.") && nearest_value(s->backend, names, 4))
        return tt_ops_use(ctx, s->backend);    /* says what may be meant */
    return tt_plugin_open(ctx, p, s->backend);
}

/* Every bit counts when the class is the one that the table is of. All float
 * backends are of class f32, in any order of sums: there --bits says it. */
static const tt_arith *checked_by(tt_ctx *ctx, const settings *s,
                                  const tt_plugin *p, const tt_arith *arith)
{
    const tt_arith *bits = tt_arith_bits(arith);
    if (s->bits && !bits)
        tt_fail(ctx, TT_EINVAL, "--bits: %s is no class, so no bits are "
                "defined; classes are %s, in a float build", arith->name,
                tt_class_names());
    const bool named = arith->cls != TT_CLASS_F32
                         && p->ops.cls == arith->cls;
    return bits && (named || s->bits) ? bits : arith;
}

/* What a plug-in flushes when it is loaded it flushes wherever it is used. */
static const tt_arith *with_flush(const tt_plugin *p, const tt_arith *arith)
{
    const bool flushes = p->handle && (tt_fpenv_flushes(p->at_load)
                                       || tt_fpenv_flushes(p->at_open));
    const tt_arith *more = flushes && !arith->bits
                               ? tt_arith_allow(arith, TT_ALLOW_FTZ) : NULL;
    return more ? more : arith;
}

/* What it did to the floating-point environment, which is ours again. */
static void note_environment(tt_report *r, const tt_plugin *p, bool counted)
{
    static const char *const when[] = {"loaded", "opened"};
    const tt_fpenv left[] = {p->at_load, p->at_open};
    char what[96];
    for (int i = 0; p->handle && i < 2; i++)
        if (*tt_fpenv_text(what, sizeof what, left[i]))
            tt_report_note(r, "%s sets %s when it is %s%s; every call begins "
                           "without", p->ops.name, what, when[i],
                           counted && tt_fpenv_flushes(left[i])
                               ? ": counted as +ftz" : "");
}

/* Everything that was asked for, into the report. */
static void validate_backend_check(tt_ctx *ctx, tt_report *r, settings *s,
                                   const tt_ops *ops, const tt_arith *arith)
{
    tt_report_note(r, "arithmetic %s: %s", arith->name, arith->summary);
    tt_report_note(r, "seed %llu", (unsigned long long)s->seed);
    tt_report_fact(r, "seed", "%llu", (unsigned long long)s->seed);
    if (s->operators)
        tt_opcheck(ctx, r, ops, &(tt_opcheck_options){
            .arith = arith, .seed = s->seed, .rounds = s->rounds,
            .only = s->only, .small = s->quick, .one = s->one});
    if ((s->calls || s->rollout) && !s->only && !ctx->status)
        check_model(ctx, r, s, ops, arith);
}

static void close_backend(tt_report *r, tt_plugin *p)
{
    char what[96], name[96];
    snprintf(name, sizeof name, "%s", p->ops.name);
    tt_report_closing(r);
    tt_plugin_close(p);
    if (*tt_fpenv_text(what, sizeof what, p->at_close))
        tt_report_note(r, "%s leaves %s set when it is closed", name, what);
}

/* In a process of its own: find it, and check it. */
static tt_status find_and_check(tt_ctx *ctx, tt_report *r, void *user)
{
    settings *s = user;
    tt_plugin plugin = {0};
    TT_TRY(find_backend(ctx, s, &plugin));
    const tt_arith *said = validate_backend_declared(ctx, s, &plugin);
    if (said) said = checked_by(ctx, s, &plugin, said);
    if (!ctx->status) {
        const tt_arith *arith = with_flush(&plugin, said);
        tt_report_declare(r, arith);
        note_run(ctx, r, s);
        note_backend(ctx, r, &plugin);
        note_environment(r, &plugin, arith != said);
        validate_backend_check(ctx, r, s, &plugin.ops, arith);
    }
    if (plugin.handle) close_backend(r, &plugin);
    return ctx->status;
}

/* ---- one case, a list, progress ------------------------------------------ */

/* --case: the part of the checks that makes it, and no other. */
static void choose_case(settings *s, tt_report *r)
{
    if (!s->one) return;
    const bool op = !strncmp(s->one, "op.", 3);
    s->operators = op;
    s->calls = !op && strchr(s->one, '#');
    s->rollout = !op && !s->calls;
    s->only = NULL;
    tt_report_wish(r)->only = s->one;
}

/* How to have the first failure alone, or that --case was nowhere. */
static void note_again(tt_ctx *ctx, tt_report *r, const settings *s)
{
    const tt_verdict *v = tt_report_first(r);
    if (s->one && !tt_report_compared(r) && !v)
        tt_report_note(r, "%s: there is no such call and no such tensor in "
                       "this run; names are those of a report of the same "
                       "settings", s->one);
    if (v && !s->one && strchr(v->path, '.'))   /* no case: closed badly */
        validate_again(ctx, r, "tether", s->argc, s->argv, "--case", v->path);
}

static void list_case(void *user, const char *op, const char *name)
{
    json_out *j = ((void **)user)[0];
    if (!strcmp(op, ((void **)user)[1])) json_str(j, NULL, name);
}

/* Has the backend a function of its own there? */
static bool owns(const tt_plugin *p, const char *name)
{
#define OWN(op, OP)                                                            \
    if (!strcmp(name, #op)) return p->ops.op != tt_ops_default()->op;
    TT_OPS(OWN)
#undef OWN
    return false;
}

/* Schema "tether-validate-list/1": what can be checked and declared. */
static int list(tt_ctx *ctx, const settings *s)
{
    static const char *const word[] = {"ftz", "winograd", "bias", "saturate"};
#define NAME(op, OP) #op,
    static const char *const name[] = {TT_OPS(NAME)};
#undef NAME
    const tt_opcheck_options opt = {.seed = s->seed, .rounds = s->rounds,
                                    .small = s->quick};
    tt_plugin p = {0};
    json_out j;
    bool known = !s->only;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        known = known || !strcmp(s->only, name[i]);
    if (!known)
        return opt_usage("validate", "no operator is called \"%s\"; --list "
                         "without --op has their names", s->only);
    if (s->backend && find_backend(ctx, s, &p)) return validate_failed(ctx);
    json_begin(&j, stdout, true);
    json_str(&j, "schema", "tether-validate-list/1");
    json_str(&j, "backend", s->backend);
    json_str(&j, "arith", p.arith ? p.arith->name : NULL);
    json_open(&j, "declarable", '{');
    for (int i = 0; tt_arith_at(i); i++)
        json_str(&j, tt_arith_at(i)->name, tt_arith_at(i)->summary);
    json_close(&j, '}');
    json_open(&j, "words", '[');
    for (int i = 0; i < 4; i++) json_str(&j, NULL, word[i]);
    json_close(&j, ']');
    json_open(&j, "operators", '[');
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        if (s->only && strcmp(s->only, name[i])) continue;
        json_open(&j, NULL, '{');
        json_str(&j, "name", name[i]);
        if (s->backend) json_bool(&j, "own", owns(&p, name[i]));
        json_open(&j, "cases", '[');
        const void *const to[] = {&j, name[i]};
        tt_opcheck_list(ctx, &opt, list_case, (void *)to);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
    if (p.handle) tt_plugin_close(&p);
    return VALIDATE_PASS;
}

/* What is checked at the moment: on a terminal in place, elsewhere a line every
 * ten seconds. */
typedef struct seen {
    bool terminal, drawn;
    double begun, said;
} seen;

static void validate_backend_show_place(void *user, const char *path)
{
    seen *p = user;
    const double now = tt_now();
    char line[72];
    if (now - p->said < (p->terminal ? 0.2 : 10)) return;
    p->said = now;
    snprintf(line, sizeof line, "%s", path);
    utf8_plain(line);
    fprintf(stderr, p->terminal ? "\r\033[K%.0f s  %s"
                                : "tether: checking, %.0f s: %s\n",
            now - p->begun, line);
    p->drawn = p->terminal;
}

/* A folder of our own, made and removed by the process that outlives a backend
 * which ends its own. */
static tt_status validate_backend_make_folder(tt_ctx *ctx, settings *s)
{
    validate_temporary(ctx, s->folder, sizeof s->folder);
    /* a process that is the program once more makes its own in it */
    if (!ctx->status) setenv("TMPDIR", s->folder, 1);
    snprintf(s->state, sizeof s->state, "%s/rollout.state", s->folder);
    return ctx->status;
}

/* --export: its folder, before checks that may take long. True: it was not
 * there. */
static bool make_export(tt_ctx *ctx, const settings *s)
{
    struct stat st;
    if (!s->cases || ctx->status) return false;
    if (!mkdir(s->cases, 0777)) return true;
    const int why = errno;
    if (stat(s->cases, &st) || !S_ISDIR(st.st_mode))
        tt_fail(ctx, TT_EIO, "--export %s: cannot make this folder: %s; choose "
                "another", s->cases, strerror(why));
    return false;
}

/* The checks, in a process of the backend's own or here. */
static void validate_backend_check_all(tt_ctx *ctx, tt_report *r, settings *s,
                                       bool quiet)
{
    const char *term = getenv("TERM");
    seen place = {.begun = tt_now(), .said = tt_now(),
                  .terminal = isatty(2) && term && strcmp(term, "dumb")};
    tt_report_wish(r)->place = quiet ? NULL : validate_backend_show_place;
    tt_report_wish(r)->user = &place;
    tt_report_wish(r)->cases = s->cases;
    if (s->isolate)
        tt_validate_isolated(ctx, r, find_and_check, s, s->timeout);
    else
        find_and_check(ctx, r, s);
    if (place.drawn) fputs("\r\033[K", stderr);
    validate_expect(ctx, r, &s->out);
    note_again(ctx, r, s);
}

/* --quick: what was not given otherwise. */
static void make_quick(settings *s, const opt_result *given)
{
    if (!s->quick) return;
    if (!opt_given(given, "rounds")) s->rounds = 2;
    if (!opt_given(given, "latents")) s->latents = 9;
    if (!opt_given(given, "rollout")) s->rollout = 0;
}

int validate_backend(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.seed = 1, .rounds = 8, .latents = 18, .width = 32,
                  .height = 32, .operators = 1, .calls = 1, .rollout = 1,
                  .model = TT_MODEL_PATHS, .cache = "tether", .isolate = 1,
                  .timeout = 120, .argc = argc, .argv = argv,
                  .prompt = "a red circle moves left on a blue background"};
    cli_common common;
    opt_result given;
    tt_report *r = NULL;
    int status = opt_parse(&backend_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    make_quick(&s, &given);
    if (s.list && (!s.backend || *s.backend)) return list(ctx, &s);
    if (!s.backend || !*s.backend)
        return opt_usage("validate", "--backend needs a file or a name");
    if (!(s.timeout >= 0))
        return opt_usage("validate", "--timeout %g: expected seconds, or 0",
                         s.timeout);
    common.backend = NULL;               /* the candidate, not ours */
    if (cli_setup(ctx, &common) || validate_outputs_check(ctx, &s.out)
        || tt_report_new(ctx, &r, s.backend, NULL))
        return validate_failed(ctx);
    if (s.isolate) cli_catch_signals(ctx);   /* or a hung backend stays */
    choose_case(&s, r);
    if (s.rollout && !s.only) validate_backend_make_folder(ctx, &s);
    const bool made = make_export(ctx, &s);
    if (!ctx->status) validate_backend_check_all(ctx, r, &s, common.quiet);
    if (made) rmdir(s.cases);            /* as long as nothing is in it */
    if (s.folder[0]) validate_remove_folder(s.folder);
    status = ctx->status ? validate_failed(ctx)
                         : validate_finish(ctx, r, &s.out);
    tt_report_free(r);
    return status;
}
