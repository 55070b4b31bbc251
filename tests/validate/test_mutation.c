/* test_mutation.c: does validation find planted faults, name them, and leave
 * honest backends alone?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   test_mutation                a few faults and seeds, as part of make test
 *   test_mutation --all FILE [SEEDS]   every fault, then SEEDS (100) runs of
 *                                every honest backend; the table as Markdown
 *   test_mutation --honest SEEDS [NAME]   the honest backends alone, or one
 *   test_mutation NAME...        these faults, with everything that was said
 *
 * Each fault of mutants.h is looked for twice: operator by operator on random
 * inputs, and inside runs of small models where every call is checked. A fault
 * that only appears in a layer or after some calls must be found in the model.
 * Required: every fault found; the operator right for 95 in 100; of those found
 * in the model, the layer right for 95 in 100; a fitting hint for 70 in 100; no
 * alarm from honest backends. The plug-in lies next to this program. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "tests/validate/class_mutants.h"
#include "tests/validate/lab.h"
#include "tests/validate/mutants.h"

typedef struct planted {
    const char *name, *op, *what, *hint;
} planted;
static const planted faults[] = {
#define FAULT(id, op, what, hint) {#id, op, what, hint},
    MUTANTS(FAULT)
#undef FAULT
};

typedef struct finding {
    bool found, named;      /* something failed; it was the right operator    */
    char path[224], hint[192];
    double ratio;
} finding;

typedef struct suite {
    tt_ctx *ctx;
    lab lab;
    tt_plugin plugin;
    mutant_select_fn choose;
    mutant_hit_fn hit;
    FILE *table;
    const char *only;         /* of the honest backends; NULL: all            */
    bool talk;
    int planted, found, named, layer, fitting, by_op, by_model;
} suite;

/* True when one of the alternatives of `wanted` is part of `hint`. */
static bool fits(const char *hint, const char *wanted)
{
    char list[256];
    snprintf(list, sizeof list, "%s", wanted);
    for (char *s = strtok(list, "|"); s; s = strtok(NULL, "|"))
        if (strstr(hint, s)) return true;
    return false;
}

static void note(finding *f, const tt_report *r, const char *op)
{
    const tt_verdict *v = tt_report_first(r);
    f->found = v != NULL;
    if (!v) return;
    f->named = !strcmp(v->op, op);
    f->ratio = v->ratio;
    snprintf(f->path, sizeof f->path, "%s", v->path);
    snprintf(f->hint, sizeof f->hint, "%s", v->hint);
}

/* "chunk.0/step.1/block.2" of ".../block.2#linear.3" */
static void scope_of(char *out, size_t size, const char *path)
{
    snprintf(out, size, "%s", path);
    char *end = strchr(out, '#');
    if (end) *end = 0;
}

static finding check_operators(suite *s, const char *op, const tt_ops *ops,
                               const tt_arith *arith, uint64_t seed,
                               int64_t rounds)
{
    finding f = {0};
    tt_report *r = NULL;
    tt_report_new(s->ctx, &r, "operators", arith);
    const tt_opcheck_options opt = {.arith = arith, .seed = seed,
                                    .rounds = rounds};
    tt_opcheck(s->ctx, r, ops, &opt);
    expect_ok(s->ctx->status, "operator check");
    note(&f, r, op);
    if (s->talk) tt_report_text(s->ctx, r, "-", false);
    tt_report_free(r);
    return f;
}

static finding check_model(suite *s, const char *op, const tt_ops *ops,
                           const tt_arith *arith, bool first)
{
    finding f = {0};
    tt_report *r = NULL;
    tt_report_new(s->ctx, &r, "models", arith);
    lab_model(&s->lab, r, ops, arith, first);
    note(&f, r, op);
    if (s->talk) tt_report_text(s->ctx, r, "-", false);
    tt_report_free(r);
    return f;
}

/* Fault `which` of the plug-in, or one that acts in every layer: -1. */
static void plant_in(suite *s, const planted *m, const tt_ops *ops,
                     const tt_arith *arith, int which, int64_t rounds)
{
    const clock_t start = clock();
    char scope[224];
    s->choose(which < 0 ? 0 : which);
    const finding op = check_operators(s, m->op, ops, arith, 1, rounds);
    s->choose(which < 0 ? 0 : which);
    const finding model = check_model(s, m->op, ops, arith, true);
    scope_of(scope, sizeof scope, model.path);
    const bool layer = model.found && model.named
                       && (which < 0 || s->hit(scope));
    const bool found = op.found || model.found;
    const bool named = found && (!op.found || op.named)
                       && (!model.found || model.named);
    /* Of the two reports the hint of either helps. */
    const bool fit_op = op.hint[0] && fits(op.hint, m->hint);
    const bool fit = fit_op || (model.hint[0] && fits(model.hint, m->hint));
    const char *hint = fit_op || !model.hint[0] ? op.hint : model.hint;
    s->planted++;
    s->found += found;
    s->named += named;
    s->layer += layer;
    s->fitting += fit;
    s->by_op += op.found;
    s->by_model += model.found;
    expect(found, "%s (%s): not found", m->name, m->what);
    if (s->table)
        fprintf(s->table, "| %s | %s | %s | %s%s%s | %s | %s%s |\n", m->name,
                m->op, m->what, op.found ? "operator" : "",
                op.found && model.found ? ", " : "",
                model.found ? "model" : "", model.found ? model.path : "-",
                hint[0] ? hint : "-", fit ? "" : " (does not fit)");
    if (s->talk || !named || layer != model.found || !fit)
        printf("%s: %s\n  operator %d %d %.3g %s: %s\n  model %d %d %.3g %s: "
               "%s\n  layer %d hint %d\n", m->name, m->what, op.found, op.named,
               op.ratio, op.path, op.hint, model.found, model.named,
               model.ratio, model.path, model.hint, layer, fit);
    if (clock() - start > 5 * CLOCKS_PER_SEC)
        printf("%s took %.1f s\n", m->name,
               (double)(clock() - start) / CLOCKS_PER_SEC);
    fflush(stdout);
}

static void plant(suite *s, int which, int64_t rounds)
{
    plant_in(s, &faults[which], &s->plugin.ops, tt_arith_find("f32"), which,
             rounds);
}

/* A linear layer that says it computes a class, and has other bits. */
static void plant_class(suite *s, int which, int64_t rounds)
{
    const class_mutant *c = &class_mutants[which];
    const planted m = {c->name, "linear", c->what, c->hint};
    tt_ops ops;
    if (expect(class_mutant_table(&ops, c), "%s: no class %s", c->name, c->cls))
        plant_in(s, &m, &ops, tt_arith_bits(tt_arith_find(c->cls)), -1, rounds);
}

/* Is this one of the built-in backends, without what it needs? Says so. */
static bool runs_here(suite *s, const tt_ops *ops)
{
    const tt_ops *before = s->ctx->ops;
    if (tt_ops_find(ops->name) != ops) return true;
    const bool yes = tt_ops_use(s->ctx, ops->name) == TT_OK;
    if (!yes) {
        skip("%s is not checked: %s", ops->name, tt_message(s->ctx));
        tt_clear(s->ctx);
    }
    s->ctx->ops = before;
    return yes;
}

/* Backends that are right: the unmutated copy, the built-in ones, and plain
 * loops in each declared arithmetic; each with a run of the models when `all`
 * is set. */
static void honest(suite *s, int64_t seeds, int64_t rounds, bool all)
{
    int alarms = 0, backends = 0;
    for (int b = 0; b < 32; b++) {
        const int built_in = b - 1;
        int n = 0;
        while (tt_ops_at(n)) n++;
        const tt_arith *arith = tt_arith_find("f32");
        const tt_ops *ops = &s->plugin.ops;
        const char *name = "the plug-in without a fault";
        if (b > n) {
            arith = tt_arith_at(b - n - 1);
            if (!arith) break;
            ops = tt_arith_ops(arith);
            name = arith->name;
        } else if (b > 0) {
            ops = tt_ops_at(built_in);
            name = ops->name;
        }
        int mine = 0;
        if (s->only && strcmp(s->only, name)) continue;
        if (!runs_here(s, ops)) continue;
        s->choose(0);
        for (int64_t seed = 0; seed < seeds; seed++) {
            const finding f = check_operators(s, "", ops, arith,
                                              1000 + 77 * (uint64_t)seed,
                                              rounds);
            mine += !expect(!f.found, "%s: false alarm at %s, %.3g: %s", name,
                            f.path, f.ratio, f.hint);
        }
        if (all || b == 0 || !strcmp(name, "bf16")) {
            const finding f = check_model(s, "", ops, arith, false);
            mine += !expect(!f.found, "%s: false alarm at %s, %.3g: %s", name,
                            f.path, f.ratio, f.hint);
        }
        if (s->table)
            fprintf(s->table, "| %s | %s | %lld | %d |\n", name, arith->name,
                    (long long)seeds, mine);
        printf("%s: %lld seeds, %d false alarms\n", name, (long long)seeds,
               mine);
        fflush(stdout);
        alarms += mine;
        backends++;
    }
    expect(alarms == 0 && backends >= (s->only ? 1 : 4),
           "%d false alarms from %d backends", alarms, backends);
}

static bool open_plugin(suite *s, const char *self)
{
    char path[1024];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/mutants.so",
             slash ? (int)(slash - self) : 1, slash ? self : ".");
    if (!expect_ok(tt_plugin_open(s->ctx, &s->plugin, path), path))
        return false;
    void *a = dlsym(s->plugin.handle, "mutant_select");
    void *b = dlsym(s->plugin.handle, "mutant_hit");
    memcpy(&s->choose, &a, sizeof a);
    memcpy(&s->hit, &b, sizeof b);
    return expect(a && b, "%s lacks its controls", path);
}

static void every_fault(suite *s, int64_t seeds)
{
    fprintf(s->table,
            "# Planted faults\n\nWritten by `make mutation`. Each fault is one "
            "change in a copy of the golden operators (tests/validate/"
            "mutants.c),\nthe last ones in a linear layer that says it "
            "computes a class, judged by its bits (class_mutants.h).\n`operator`: found by the operator checks, `model`: "
            "found inside runs of small models; the place is the first\n"
            "failing call of the model run.\n\n"
            "| fault | operator | what is wrong | found by | place in the "
            "model | hint |\n|---|---|---|---|---|---|\n");
    for (int m = 1; m < MUT_COUNT; m++) plant(s, m, 6);
    for (int m = 0; m < CLASS_MUTANTS; m++) plant_class(s, m, 6);
    fprintf(s->table,
            "\n%d faults: %d found (%d by operator checks, %d in the models), "
            "the operator right for %d,\nthe layer for %d of the %d found in "
            "the models, a fitting hint for %d.\n\n"
            "| honest backend | declared arithmetic | seeds | false alarms |\n"
            "|---|---|---|---|\n", s->planted, s->found, s->by_op, s->by_model,
            s->named, s->layer, s->by_model, s->fitting);
    honest(s, seeds, 2, true);
    expect(s->named * 100 >= s->planted * 95, "operator right for %d of %d "
           "only", s->named, s->planted);
    expect(s->layer * 100 >= s->by_model * 95, "layer right for %d of %d only",
           s->layer, s->by_model);
    expect(s->fitting * 100 >= s->planted * 70, "fitting hint for %d of %d "
           "only", s->fitting, s->planted);
    printf("%d faults: %d found (%d operator, %d model), %d named right, %d "
           "in the right layer, %d with a fitting hint\n", s->planted,
           s->found, s->by_op, s->by_model, s->named, s->layer, s->fitting);
}

static void plant_named(suite *s, const char *name)
{
    for (int m = 0; m < MUT_COUNT; m++)
        if (!strcmp(name, faults[m].name)) plant(s, m, 6);
    for (int m = 0; m < CLASS_MUTANTS; m++)
        if (!strcmp(name, class_mutants[m].name)) plant_class(s, m, 6);
}

int main(int argc, char **argv)
{
    suite s = {.ctx = test_begin("validate/mutation")};
    if (sizeof(tt_real) == 8) {
        printf("note: faults are planted in the float build\n");
        expect(tt_arith_find("f32") != NULL, "arithmetics");
        return test_end();
    }
    if (!open_plugin(&s, argv[0]) || !lab_open(&s.lab, s.ctx))
        return test_end();
    if (argc >= 3 && !strcmp(argv[1], "--all")) {
        s.table = fopen(argv[2], "w");
        if (expect(s.table != NULL, "%s: cannot be written", argv[2])) {
            every_fault(&s, argc > 3 ? atoll(argv[3]) : 100);
            fclose(s.table);
        }
    } else if (argc > 2 && !strcmp(argv[1], "--honest")) {
        s.only = argc > 3 ? argv[3] : NULL;
        honest(&s, atoll(argv[2]), 2, true);
    } else if (argc > 1) {
        s.talk = true;
        for (int i = 1; i < argc; i++)
            plant_named(&s, argv[i]);
    } else {
        static const int few[] = {
            MUT_LINEAR_LAYER, MUT_ATT_ONE_D, MUT_LN_EPS, MUT_GELU_ERF,
            MUT_ROPE_HALVES, MUT_SILU_SIGMOID};
        for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
            const int named = s.named, layer = s.layer, fitting = s.fitting;
            plant(&s, few[i], 2);
            expect(s.named > named && s.layer > layer, "%s: named wrongly",
                   faults[few[i]].name);
            expect(s.fitting > fitting, "%s: no fitting hint",
                   faults[few[i]].name);
        }
        honest(&s, 1, 1, false);   /* test_backend has more of these */
    }
    lab_close(&s.lab);
    tt_plugin_close(&s.plugin);
    return test_end();
}
