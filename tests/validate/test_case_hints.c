/* test_case_hints.c: a case folder is read back as the call it was written
 * from, and mistakes in results of it are named.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/folder.h"
#include "tether/io.h"
#include "validate/operators/opcalls.h"
#include "validate/operators/plain.h"

static tt_ctx *ctx;

typedef struct mistake {
    const void *fault;         /* of its operator's type in plain.h           */
    const char *hint;
} mistake;

static const mistake list[OP_KINDS] = {
    [OP_LINEAR] = {&(linear_fault){.weight = WEIGHT_ROWS_BACK},
                   "rows of the weight in reverse order"},
    [OP_ATTENTION] = {&(attention_fault){.scaled = true, .scale = 1},
                      "logits are not scaled"},
    [OP_LAYER_NORM] = {&(norm_fault){.mean = MEAN_NONE},
                       "mean not subtracted"},
    [OP_RMS_NORM] = {&(norm_fault){.affine = AFFINE_ONE_PLUS},
                     "weight is 1 + w"},
    [OP_MODULATE] = {&(mix_fault){.form = MODULATE_SWAPPED},
                     "scale and shift exchanged"},
    [OP_ROPE] = {&(rope_fault){.halves = true}, "pairs are (j, j + D/2)"},
    [OP_GELU_TANH] = {&(element_form){GELU_ERF}, "exact GELU (erf)"},
    [OP_COL_BLEND] = {&(column_fault){.blend = BLEND_INVERSE_TAU},
                      "tau and 1 - tau exchanged"},
};

/* Results of theirs, judged by what the case expects. */
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

int main(void)
{
    ctx = test_begin("validate/case_hints");
    if (folder_make()) {
        op_call q;
        const int64_t dim[] = {1};
        expect_ok(tt_cases_operators(ctx, at("cases"), 1, 1), "cases");
        for (int k = 0; k < OP_KINDS && !ctx->status; k++) {
            const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
            check_case((op_kind)k);
            tt_arena_reset(&ctx->scratch, mark);
        }
        expect(!case_read(ctx, &q, at("none"), dim, 1) && !ctx->status,
               "a folder that is not there is no case");
    }
    folder_remove();
    return test_end();
}
