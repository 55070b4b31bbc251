/* test_case_hints.c: a case folder is read back as the call it was written
 * from, and mistakes in results of it are named; so are those between tensors
 * of a dump, and not where the mistake lies before.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/folder.h"
#include "io/io.h"
#include "validate/operators/opcalls.h"
#include "validate/operators/plain.h"

static tt_ctx *ctx;

typedef struct mistake {
    const void *fault;         /* of its operator's type in plain.h           */
    const char *hint;
} mistake;

static const mistake list[OP_KINDS] = {
    [OP_LINEAR] = {&(linear_fault){.weight = WEIGHT_HALVES},
                   "halves of the inputs exchanged"},
    [OP_ATTENTION] = {&(attention_fault){.scaled = true, .scale = 1},
                      "logits are not scaled"},
    [OP_LAYER_NORM] = {&(norm_fault){.mean = MEAN_NONE},
                       "mean not subtracted"},
    [OP_RMS_NORM] = {&(norm_fault){.affine = AFFINE_ONE_PLUS},
                     "weight is 1 + w"},
    [OP_MODULATE] = {&(element_fault){.form = MODULATE_SWAPPED},
                     "scale and shift exchanged"},
    [OP_ROPE] = {&(rope_fault){.halves = true}, "pairs are (j, j + D/2)"},
    [OP_GELU_TANH] = {&(element_fault){.form = GELU_ERF}, "exact GELU (erf)"},
    [OP_COL_BLEND] = {&(element_fault){.form = BLEND_INVERSE_TAU},
                      "tau and 1 - tau exchanged"},
};

/* Results of theirs, checked by what the case expects. */
static void check_hint(const char *dir, const op_call *q, const mistake *m)
{
    char want[400], emul[400];
    tt_st_writer *w;
    tt_report *r = NULL;
    int64_t dim[TT_MAX_RANK];
    const int rank = call_shape(q, dim);
    double *y = tt_alloc(ctx, &ctx->scratch, call_count(q), sizeof *y, "y");
    plain_call(ctx, q, m->fault, y);
    expect_ok(tt_st_create(ctx, &w, at("got")), "got");
    tt_st_add(w, "y", TT_F64, rank, dim, y);
    expect_ok(tt_st_finish(w), "got");
    snprintf(want, sizeof want, "%s/expected.safetensors", dir);
    snprintf(emul, sizeof emul, "%s/expected_f32.safetensors", dir);
    if (!expect_ok(tt_report_new(ctx, &r, dir, tt_arith_find("f32")), "report"))
        return;
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = at("got"), .want = want, .emul = emul, .operands = dir,
        .arith = tt_arith_find("f32")}), dir);
    const tt_verdict *v = tt_report_first(r);
    expect(v && strstr(v->hint, m->hint), "%s: '%s' expected, not '%s'",
           op_name(q->kind), m->hint, v ? v->hint : "a pass");
    tt_report_free(r);
}

static void check_case(op_kind kind)
{
    char dir[300], path[400];
    int64_t dim[TT_MAX_RANK];
    op_call q;
    tt_file *f = NULL;
    snprintf(dir, sizeof dir, "%s/op_%s_0", at("cases"), op_name(kind));
    snprintf(path, sizeof path, "%s/expected.safetensors", dir);
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return;
    const tt_tensor *y = &tt_file_entry(f, 0)->t;
    memcpy(dim, y->dim, sizeof dim);
    if (expect(case_read(ctx, &q, dir, dim, y->rank), "%s is read", dir)) {
        char *mine = tt_alloc(ctx, &ctx->scratch, (int64_t)call_out_bytes(&q),
                              1, "a result");
        call_run(ctx, ctx->ops, &q, mine);
        expect(!memcmp(mine, y->data, call_out_bytes(&q)),
               "%s: the call read back gives other bits", dir);
        if (list[kind].hint) check_hint(dir, &q, &list[kind]);
        dim[y->rank - 1]++;
        expect(!case_read(ctx, &q, dir, dim, y->rank), "%s: another shape",
               dir);
    }
    tt_file_close(f);
}

/* Names that a stranger wrote, and that of a call of a model. */
static void check_names(void)
{
    static const char *const name[] = {
        ("op.conv.normal H=1 W=1 in=1048576 out=1048576 frames=1 "
         "kernel=1048576 mode=0 seed 1"),
        "chunk.0/step.0/vae/frame.0#conv.0", ""};
    const int64_t dim[] = {1, 1, 1048576};
    op_call q;
    mkdir(at("named"), 0777);
    for (int i = 0; i < 3; i++) {
        FILE *f = fopen(at("named/case.json"), "w");
        if (f) fprintf(f, "{\"op\": \"conv\", \"case\": \"%s\"}\n", name[i]);
        if (expect(f && !fclose(f), "case.json"))
            expect(!case_read(ctx, &q, at("named"), dim, 3) && !ctx->status,
                   "\"%s\" is no case", name[i]);
    }
    char dir[300], want[400], emul[400], said[4096] = "";
    tt_report *r = NULL;
    snprintf(dir, sizeof dir, "%s/op_silu_0", at("cases"));
    snprintf(want, sizeof want, "%s/expected.safetensors", dir);
    snprintf(emul, sizeof emul, "%s/expected_f32.safetensors", dir);
    if (!expect_ok(tt_report_new(ctx, &r, dir, tt_arith_find("f32")), "report"))
        return;
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = want, .want = want, .emul = emul, .operands = at("named"),
        .arith = tt_arith_find("f32")}), dir);
    expect_ok(tt_report_text(ctx, r, at("report"), false), "report");
    FILE *f = fopen(at("report"), "r");
    if (f) said[fread(said, 1, sizeof said - 1, f)] = 0;
    if (f) fclose(f);
    expect(strstr(said, "name no call of this version"), "%s", said);
    tt_report_free(r);
}

/* ---- rules between tensors of a dump ------------------------------------- */

enum { SIX = 6 };
#define ROUND "chunk.3/step.4/block.0/admit.0/"
#define STEP "chunk.0/step.0/"

typedef struct row {
    const char *name;
    float value[SIX];
} row;

static void put_dump(const char *path, const row *r, int n)
{
    const int64_t dim[] = {1, 1, 1, SIX};
    tt_st_writer *w;
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return;
    for (int i = 0; i < n; i++)
        tt_st_add(w, r[i].name, TT_F32, 4, dim, r[i].value);
    expect_ok(tt_st_finish(w), path);
}

/* Their last tensor next to ours of its name: what is said of it. A hint that
 * begins with `not` must not be there. */
static void check_rule(const char *what, const row *theirs, int n,
                       const row *ours, const char *hint)
{
    const bool none = !strncmp(hint, "not ", 4);
    char got[300];
    tt_report *r = NULL;
    snprintf(got, sizeof got, "%s", at("theirs"));
    put_dump(got, theirs, n);
    put_dump(at("ours"), ours, 1);
    if (!expect_ok(tt_report_new(ctx, &r, what, tt_arith_find("f32")), what))
        return;
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = got, .want = at("ours"), .arith = tt_arith_find("f32")}), what);
    const tt_verdict *v = tt_report_first(r);
    if (expect(v != NULL, "%s passes", what))
        expect(!strstr(v->hint, hint + (none ? 4 : 0)) == none,
               "%s: '%s' expected, not '%s'", what, hint, v->hint);
    tt_report_free(r);
}

static void check_rules(void)
{
    const row step[] = {{STEP "x", {1, -2, 3, -4, 5, 6}},
                        {STEP "flow", {2, 2, -4, 0, 1, -2}},
                        {STEP "x0", {0, -3, 5, -4, 4.5F, 7}}};
    const row score[] = {{ROUND "grab.mass", {.3F, .1F, .2F, .2F, .1F, .1F}},
                         {ROUND "grab.div", {1, 0, .5F, .5F, 1, 0}},
                         {ROUND "grab.score",
                          {.8F, .1F, .45F, .45F, .6F, .1F}}};
    const row keep[] = {{ROUND "grab.score", {1, 2, 3, 4, 5, 6}},
                        {ROUND "grab.keep", {0, 0, 0, 1, 1, 1}}};
    const row other_level = {STEP "x0", {-1, -4, 7, -4, 4, 8}};
    const row other_flow = {STEP "x0", {4, -2, 3, -1, 5.5F, 4}};
    const row other_alpha = {ROUND "grab.score",
                             {.5F, .1F, .3F, .3F, .3F, .1F}};
    const row other_mass = {ROUND "grab.score",
                            {.6F, .4F, .35F, .45F, .5F, .2F}};
    const row highest = {ROUND "grab.keep", {1, 1, 1, 0, 0, 0}};
    check_rule("level", step, 3, &other_level, "sigma is 0.5 where 1 belongs");
    check_rule("flow before", step, 3, &other_flow, "not sigma is");
    check_rule("alpha", score, 3, &other_alpha, "alpha is 0.5 where 0.2");
    check_rule("mass before", score, 3, &other_mass, "not alpha is");
    check_rule("scores before", keep, 2, &highest, "not tie rule");
}

int main(void)
{
    ctx = test_begin("validate/case_hints");
    if (folder_make()) {
        op_call q;
        const int64_t dim[] = {1};
        expect_ok(tt_cases_operators(ctx, at("cases"), 1, 1, "normal",
                                     false), "cases");
        for (int k = 0; k < OP_KINDS && !ctx->status; k++) {
            const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
            check_case((op_kind)k);
            tt_arena_reset(&ctx->scratch, mark);
        }
        expect(!case_read(ctx, &q, at("none"), dim, 1) && !ctx->status,
               "a folder that is not there is no case");
        check_names();
        check_rules();
    }
    folder_remove();
    return test_end();
}
