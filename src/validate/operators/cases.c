/* cases.c: case folders of single operators, and pieces of dumps as cases.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A case folder holds
 *   case.json                  kind, operator, name in reports, scalars
 *   inputs.safetensors         everything the operator reads, weights included
 *   expected.safetensors       our result: "y"; its metadata name its class
 *   expected_f64.safetensors   float64 from the same inputs
 *   expected_<arith>.safetensors   as far from that as an honest program of
 *                              every declarable arithmetic may be
 *   cut_<arith>.safetensors    of a kit: results of programs that cut where
 *                              that arithmetic rounds (hint_cuts)
 *   got.safetensors            of a case that a backend failed: its result
 * Inputs are those of opcheck's generator, from the seed, or of a model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/io.h"
#include "io/outfile.h"
#include "validate/operators/opcase.h"
#include "validate/report/report.h"

static const tt_dtype real_type = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;

/* ---- one case ------------------------------------------------------------ */

/* Do its results have the bits of a class? */
static bool has_class(const tt_ops *ops)
{
    return sizeof(tt_real) == 4
           && (!strcmp(ops->name, "exact") || !strcmp(ops->name, "golden"));
}

static tt_status write_output(tt_ctx *ctx, const char *dir, const char *name,
                              tt_dtype type, const op_call *q, const void *y)
{
    char path[1200];
    int64_t dim[TT_MAX_RANK];
    tt_st_writer *w;
    snprintf(path, sizeof path, "%s/%s.safetensors", dir, name);
    TT_TRY(tt_st_create(ctx, &w, path));
    if (!strcmp(name, "expected") && has_class(ctx->ops))
        tt_st_meta(w, "class", tt_class_saved(ctx->ops->cls));
    tt_st_add(w, "y", type, call_shape(q, dim), dim, y);
    return tt_st_finish(w);
}

static float *as_floats(tt_ctx *ctx, const double *x, int64_t n)
{
    float *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "a result");
    for (int64_t i = 0; y && i < n; i++) y[i] = (float)x[i];
    return y;
}

/* By hint_is_cut's data. */
static tt_status write_cuts(tt_ctx *ctx, const char *dir, const op_call *q,
                            const tt_arith *arith)
{
    char path[1200], name[16];
    const int64_t n = call_count(q);
    hint_cuts c;
    double numbers[6];
    tt_st_writer *w;
    if (!hint_cut_make(ctx, q, arith, &c)) return ctx->status;
    snprintf(path, sizeof path, "%s/cut_%s.safetensors", dir, arith->name);
    TT_TRY(tt_st_create(ctx, &w, path));
    for (int i = 0; i < 2 * c.n; i++) {
        const double *x = i % 2 ? c.cut[i / 2] : c.even[i / 2];
        snprintf(name, sizeof name, "%s.%d", i % 2 ? "cut" : "even", i / 2);
        tt_st_add(w, name, TT_F32, 1, &n, as_floats(ctx, x, n));
    }
    for (int i = 0; i < c.n; i++)
        numbers[i] = hint_cut_numbers(ctx, q, &c, i);
    tt_st_add(w, "numbers", TT_F64, 1, &(int64_t){c.n}, numbers);
    return tt_st_finish(w);
}

/* `name`: in a report. */
static tt_status cases_write_json(tt_ctx *ctx, const char *path,
                                  const op_call *q, const char *name)
{
    tt_out o;
    TT_TRY(tt_out_open(ctx, &o, path));
    fprintf(o.file, "{\n \"kind\": \"operator\",\n \"op\": \"%s\",\n "
            "\"case\": \"%s\"", op_name(q->kind), name);
    case_write_numbers(o.file, q);
    fprintf(o.file, "\n}\n");
    return tt_out_finish(ctx, &o);
}

static tt_status cases_make_folder(tt_ctx *ctx, const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return ctx->status;
    return tt_fail(ctx, TT_EIO, "%s: cannot make this folder: %s", path,
                   strerror(errno));
}

/* kit: for a checker that has no operators. */
static tt_status write_case(tt_ctx *ctx, const char *dir, const op_call *q,
                            const char *case_name, bool kit)
{
    char path[1200], name[64];
    const int64_t n = call_count(q);
    const tt_dtype type = call_out_is_double(q) ? TT_F64 : real_type;
    double *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "a result");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "its limits");
    TT_TRY(cases_make_folder(ctx, dir));
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    TT_TRY(case_write_inputs(ctx, path, q));
    snprintf(path, sizeof path, "%s/case.json", dir);
    TT_TRY(cases_write_json(ctx, path, q, case_name));
    call_run(ctx, ctx->ops, q, y);
    TT_TRY(write_output(ctx, dir, "expected", type, q, y));
    call_oracle(ctx, q, y);
    TT_TRY(write_output(ctx, dir, "expected_f64", TT_F64, q, y));
    for (int i = 0; tt_arith_at(i); i++) {
        if (kit && tt_arith_at(i)->cls != TT_CLASS_F32) break;
        call_emulate(ctx, q, tt_arith_at(i), y, NULL, e);
        snprintf(name, sizeof name, "expected_%s", tt_arith_at(i)->name);
        /* no more than float32 of it is looked at (pair.c) */
        const void *limits = kit ? (void *)as_floats(ctx, e, n) : e;
        TT_TRY(write_output(ctx, dir, name, kit ? TT_F32 : TT_F64, q, limits));
        if (kit) TT_TRY(write_cuts(ctx, dir, q, tt_arith_at(i)));
    }
    return ctx->status;
}

/* Case i of an operator, ordinary ones as tt_digest_operators has them, others
 * as the operator checks draw them. */
static void write_drawn(tt_ctx *ctx, const char *dir, uint64_t seed,
                        int64_t each, op_input in, int64_t i, bool kit)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const op_kind op = (op_kind)(i / each);
    char path[1100], name[OP_CASE_NAME];
    op_call q;
    op_case c;
    if (in == IN_NORMAL) {
        c = (op_case){.op = op, .in = in};
        c.seed = case_make(ctx, &q, &c.sizes, seed, each, i);
    } else {
        op_case_round(&c, op, in, seed, false, i % each);
        call_make(ctx, &q, op, in, &c.sizes, c.seed, c.lay);
    }
    op_case_name(name, sizeof name, &c);
    snprintf(path, sizeof path, "%s/op_%s%s%s_%lld", dir, op_name(op),
             in ? "_" : "", in ? input_name(in) : "", (long long)(i % each));
    if (!ctx->status) write_case(ctx, path, &q, name, kit);
    tt_arena_reset(&ctx->scratch, mark);
}

tt_status tt_cases_operators(tt_ctx *ctx, const char *dir, uint64_t seed,
                             int64_t each, const char *kind, bool kit)
{
    char known[200] = "all";
    bool any = false;
    TT_TRY(ctx->status);
    TT_TRY(cases_make_folder(ctx, dir));
    for (op_input in = IN_NORMAL; in < IN_KINDS; in++) {
        snprintf(strchr(known, 0), sizeof known - strlen(known), ", %s",
                 input_name(in));
        if (strcmp(kind, "all") && strcmp(kind, input_name(in))) continue;
        any = true;
        for (int64_t i = 0; i < OP_KINDS * each && !ctx->status; i++)
            if (input_applies((op_kind)(i / each), in))
                write_drawn(ctx, dir, seed, each, in, i, kit);
    }
    if (!any)
        tt_fail(ctx, TT_EINVAL, "there are no inputs of kind \"%s\"; known are "
                "%s", kind, known);
    return ctx->status;
}

/* Letters, digits and a few signs of a path; others become _. */
static void folder_name(char *out, size_t n, const char *path)
{
    size_t i = 0;
    for (; path[i] && i + 1 < n; i++)
        out[i] = strchr(" /#", path[i]) ? '_' : path[i];
    out[i] = 0;
}

void case_keep(tt_ctx *ctx, tt_report *r, const op_call *q,
               const tt_verdict *v, const double *got)
{
    char dir[1000], name[OP_CASE_NAME];
    if (!r || !r->wish.cases || ctx->status || !got) return;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    folder_name(name, sizeof name, v->path);
    snprintf(dir, sizeof dir, "%s/%s", r->wish.cases, name);
    if (!cases_make_folder(ctx, r->wish.cases)
        && !write_case(ctx, dir, q, v->path, false))
        write_output(ctx, dir, "got", TT_F64, q, got);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- pieces of dumps ----------------------------------------------------- */

tt_status tt_dump_cut(tt_ctx *ctx, const char *out, const char *dump,
                      const char *globs, int64_t *count)
{
    tt_file *f;
    tt_st_writer *w;
    *count = 0;
    TT_TRY(tt_file_open(ctx, &f, dump));
    if (!tt_st_create(ctx, &w, out)) {
        if (tt_file_meta(f, "class"))
            tt_st_meta(w, "class", tt_file_meta(f, "class"));
        for (int64_t i = 0; i < tt_file_count(f); i++) {
            const tt_entry *e = tt_file_entry(f, i);
            if (!tt_name_chosen(globs, e->name) || !tt_tensor_packed(&e->t))
                continue;
            tt_st_open_tensor(w, e->name, e->t.dtype, e->t.rank, e->t.dim);
            tt_st_write(w, e->t.data, (size_t)tt_tensor_bytes(&e->t));
            ++*count;
        }
        tt_st_finish(w);
    }
    tt_file_close(f);
    return ctx->status;
}
