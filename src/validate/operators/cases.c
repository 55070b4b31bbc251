/* cases.c: case folders of single operators, and pieces of dumps as cases.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A case folder holds
 *   case.json                  kind, operator, sizes, scalars
 *   inputs.safetensors         everything the operator reads, weights included
 *   expected.safetensors       our result: "y"; its metadata name its class
 *   expected_f64.safetensors   float64 from the same inputs
 *   expected_<arith>.safetensors   as far from that as an honest program of
 *                              every declarable arithmetic may be
 *   cut_<arith>.safetensors    of a kit: results of programs that cut where
 *                              that arithmetic rounds (hint_cuts)
 *   got.safetensors            of a case that a backend failed: its result
 * Inputs are those of opcheck's generator, from the seed, or of a model. */
#include <inttypes.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/io.h"
#include "io/outfile.h"
#include "validate/operators/opcase.h"
#include "validate/report/report.h"

static const tt_dtype real_type = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;

/* ---- inputs -------------------------------------------------------------- */

static void cases_put(tt_st_writer *w, const char *name, tt_dtype type,
                      const void *data, int rank, int64_t a, int64_t b,
                      int64_t c)
{
    const int64_t dim[] = {a, b, c};
    if (data) tt_st_add(w, name, type, rank, dim, data);
}

/* Rows of a view that may be wider than what is read of them, packed. */
static void put_rows(tt_ctx *ctx, tt_st_writer *w, const char *name,
                     const tt_real *x, int64_t n, int64_t c, int64_t stride,
                     int64_t heads)
{
    if (!x) return;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *packed = tt_scratch(ctx, n * c);
    for (int64_t i = 0; packed && i < n; i++)
        memcpy(packed + i * c, x + i * stride, (size_t)c * sizeof *x);
    if (packed && heads)
        cases_put(w, name, real_type, packed, 3, n, heads, c / heads);
    else if (packed)
        cases_put(w, name, real_type, packed, 2, n, c, 0);
    tt_arena_reset(&ctx->scratch, m);
}

static void put_attention(tt_ctx *ctx, tt_st_writer *w,
                          const tt_attention_args *a)
{
    const int64_t c = a->H * a->D;
    put_rows(ctx, w, "q", a->q, a->T, c, a->q_stride, a->H);
    put_rows(ctx, w, "k", a->k, a->N, c, a->kv_stride, a->H);
    put_rows(ctx, w, "v", a->v, a->N, c, a->kv_stride, a->H);
    cases_put(w, "rel_bias", real_type, a->rel_bias, 2, a->H, 2 * a->N - 1, 0);
    cases_put(w, "key_mask", TT_U8, a->key_mask, 1, a->N, 0, 0);
}

/* frame.<i>, oldest first; one that is missing stands for zeros. */
static void put_conv(tt_st_writer *w, const tt_conv_args *p)
{
    char name[32];
    for (int i = 0; i < p->kt; i++) {
        snprintf(name, sizeof name, "frame.%d", i);
        cases_put(w, name, real_type, p->frame[i], 3, p->Hi, p->Wi, p->Cin);
    }
    tt_st_add(w, "w", p->w->dtype, p->w->rank, p->w->dim, p->w->data);
    cases_put(w, "b", real_type, p->b, 1, p->Cout, 0, 0);
}

static void put_inputs(tt_ctx *ctx, tt_st_writer *w, const op_call *q)
{
    const int64_t groups = q->rows ? q->n / q->rows : 1;
    if (q->kind == OP_ATTENTION) {
        put_attention(ctx, w, &q->attn);
        return;
    }
    if (q->kind == OP_CONV) {
        put_conv(w, &q->conv);
        return;
    }
    put_rows(ctx, w, "x", q->x, q->n, q->c, q->c,
             q->kind == OP_ROPE ? q->H : 0);
    put_rows(ctx, w, "y", q->y, q->n, q->c, q->c, 0);
    if (q->kind == OP_MODULATE || q->kind == OP_GATE_ADD) {
        put_rows(ctx, w, q->kind == OP_MODULATE ? "scale" : "gate", q->a,
                 groups, q->c, q->stride, 0);
        put_rows(ctx, w, "shift", q->b, groups, q->c, q->stride, 0);
    } else if (q->kind == OP_LINEAR) {
        tt_st_add(w, "w", q->w->dtype, q->w->rank, q->w->dim, q->w->data);
        cases_put(w, "b", real_type, q->b, 1, q->w->dim[0], 0, 0);
    } else {
        cases_put(w, "w", real_type, q->a, 1, q->c, 0, 0);
        cases_put(w, "b", real_type, q->b, 1, q->c, 0, 0);
    }
    cases_put(w, "pos", TT_I32, q->pos, 2, q->n, 3, 0);
    cases_put(w, "mean", TT_F64, q->mean, 1, q->c, 0, 0);
    cases_put(w, "gain", TT_F64, q->gain, 1, q->c, 0, 0);
    cases_put(w, "target", TT_F64, q->target, 1, q->c, 0, 0);
}

/* ---- one case ------------------------------------------------------------ */

static tt_status cases_write_inputs(tt_ctx *ctx, const char *path,
                                    const op_call *q)
{
    tt_st_writer *w;
    TT_TRY(tt_st_create(ctx, &w, path));
    put_inputs(ctx, w, q);
    return tt_st_finish(w);
}

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

/* By hint_is_cut's data; a conv without its last frame is none to case_read. */
static tt_status write_cuts(tt_ctx *ctx, const char *dir, const op_call *q,
                            const tt_arith *arith)
{
    char path[1200], name[16];
    const int64_t n = call_count(q);
    hint_cuts c;
    double numbers[6];
    tt_st_writer *w;
    if (q->kind == OP_CONV && !q->conv.frame[q->conv.kt - 1]) return TT_OK;
    if (!hint_cut_make(ctx, q, arith, &c)) return ctx->status;
    snprintf(path, sizeof path, "%s/cut_%s.safetensors", dir, arith->name);
    TT_TRY(tt_st_create(ctx, &w, path));
    for (int i = 0; i < 2 * c.n; i++) {
        const double *x = i % 2 ? c.cut[i / 2] : c.even[i / 2];
        snprintf(name, sizeof name, "%s.%d", i % 2 ? "cut" : "even", i / 2);
        cases_put(w, name, TT_F32, as_floats(ctx, x, n), 1, n, 0, 0);
    }
    for (int i = 0; i < c.n; i++)
        numbers[i] = hint_cut_numbers(ctx, q, &c, i);
    cases_put(w, "numbers", TT_F64, numbers, 1, c.n, 0, 0);
    return tt_st_finish(w);
}

/* Where a case comes from. */
typedef struct origin {
    const char *sizes;   /* NULL: a call of a model                           */
    uint64_t seed;
    const char *name;    /* in a report; NULL: of no report                   */
    bool kit;            /* for a checker that has no operators               */
} origin;

static tt_status cases_write_json(tt_ctx *ctx, const char *path,
                                  const op_call *q, const origin *from)
{
    tt_out o;
    TT_TRY(tt_out_open(ctx, &o, path));
    fprintf(o.file, "{\n \"kind\": \"operator\",\n \"op\": \"%s\"",
            op_name(q->kind));
    if (from->name) fprintf(o.file, ",\n \"case\": \"%s\"", from->name);
    if (from->sizes)
        fprintf(o.file, ",\n \"sizes\": \"%s\",\n \"seed\": %" PRIu64,
                from->sizes, from->seed);
    const tt_tensor *w = q->kind == OP_CONV ? q->conv.w : q->w;
    if (w && w->scale != 0 && w->scale != 1)      /* 0: it has none */
        fprintf(o.file, ",\n \"w_scale\": %.9g", (double)w->scale);
    if (q->kind == OP_LAYER_NORM || q->kind == OP_RMS_NORM)
        fprintf(o.file, ",\n \"eps\": %.17g", q->eps);
    if (q->kind == OP_COL_BLEND) fprintf(o.file, ",\n \"tau\": %.17g", q->tau);
    if (q->rows)
        fprintf(o.file, ",\n \"rows_per_group\": %lld", (long long)q->rows);
    if (q->kind == OP_ATTENTION)
        fprintf(o.file, ",\n \"scale\": %.17g", (double)q->attn.scale);
    if (q->kind == OP_CONV)
        fprintf(o.file, ",\n \"kernel\": [%d, %d, %d],\n \"stride\": %d,\n"
                " \"pad_top\": %d,\n \"pad_left\": %d,\n \"up\": %d",
                q->conv.kt, q->conv.kh, q->conv.kw, q->conv.stride,
                q->conv.pad_top, q->conv.pad_left, q->conv.up);
    if (q->kind == OP_ROPE)
        fprintf(o.file, ",\n \"pairs\": [%lld, %lld, %lld]",
                (long long)q->table->pairs[0], (long long)q->table->pairs[1],
                (long long)q->table->pairs[2]);
    fprintf(o.file, "\n}\n");
    return tt_out_finish(ctx, &o);
}

static tt_status cases_make_folder(tt_ctx *ctx, const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return ctx->status;
    return tt_fail(ctx, TT_EIO, "%s: cannot make this folder: %s", path,
                   strerror(errno));
}

static tt_status write_case(tt_ctx *ctx, const char *dir, const op_call *q,
                            const origin *from)
{
    char path[1200], name[64];
    const int64_t n = call_count(q);
    const tt_dtype type = call_out_is_double(q) ? TT_F64 : real_type;
    double *y = tt_alloc(ctx, &ctx->scratch, n, sizeof *y, "a result");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "its limits");
    TT_TRY(cases_make_folder(ctx, dir));
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    TT_TRY(cases_write_inputs(ctx, path, q));
    snprintf(path, sizeof path, "%s/case.json", dir);
    TT_TRY(cases_write_json(ctx, path, q, from));
    call_run(ctx, ctx->ops, q, y);
    TT_TRY(write_output(ctx, dir, "expected", type, q, y));
    call_oracle(ctx, q, y);
    TT_TRY(write_output(ctx, dir, "expected_f64", TT_F64, q, y));
    for (int i = 0; tt_arith_at(i); i++) {
        if (from->kit && tt_arith_at(i)->cls != TT_CLASS_F32) break;
        call_emulate(ctx, q, tt_arith_at(i), y, NULL, e);
        snprintf(name, sizeof name, "expected_%s", tt_arith_at(i)->name);
        /* no more than float32 of it is looked at (pair.c) */
        const void *limits = from->kit ? (void *)as_floats(ctx, e, n) : e;
        TT_TRY(write_output(ctx, dir, name, from->kit ? TT_F32 : TT_F64, q,
                            limits));
        if (from->kit) TT_TRY(write_cuts(ctx, dir, q, tt_arith_at(i)));
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
    char path[1100], sizes[200], name[OP_CASE_NAME];
    op_call q;
    op_case c;
    origin from = {.sizes = sizes, .kit = kit};
    if (in == IN_NORMAL) {
        from.seed = case_make(ctx, &q, &c.sizes, seed, each, i);
    } else {
        op_case_round(&c, op, in, seed, false, i % each);
        op_case_name(name, sizeof name, &c);
        from.name = name;
        call_make(ctx, &q, op, in, &c.sizes, from.seed = c.seed, c.lay);
    }
    snprintf(path, sizeof path, "%s/op_%s%s%s_%lld", dir, op_name(op),
             from.name ? "_" : "", from.name ? input_name(in) : "",
             (long long)(i % each));
    sizes_string(sizes, sizeof sizes, &c.sizes);
    if (!ctx->status) write_case(ctx, path, &q, &from);
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

void case_keep(tt_ctx *ctx, tt_report *r, const op_call *q, const op_case *c,
               const tt_verdict *v, const double *got)
{
    char dir[1000], name[OP_CASE_NAME], sizes[200];
    if (!r || !r->wish.cases || ctx->status || !got) return;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    origin from = {.name = v->path};
    if (c) {
        from.sizes = sizes_string(sizes, sizeof sizes, &c->sizes);
        from.seed = c->seed;
    }
    folder_name(name, sizeof name, v->path);
    snprintf(dir, sizeof dir, "%s/%s", r->wish.cases, name);
    if (!cases_make_folder(ctx, r->wish.cases)
        && !write_case(ctx, dir, q, &from))
        write_output(ctx, dir, "got", TT_F64, q, got);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- pieces of dumps ----------------------------------------------------- */

tt_status tt_dump_cut(tt_ctx *ctx, const char *out, const char *dump,
                      const char *const *glob, int64_t *count)
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
            bool match = false;
            for (int k = 0; glob[k]; k++)
                match = match || !fnmatch(glob[k], e->name, 0);
            if (!match || !tt_tensor_packed(&e->t)) continue;
            tt_st_open_tensor(w, e->name, e->t.dtype, e->t.rank, e->t.dim);
            tt_st_write(w, e->t.data, (size_t)tt_tensor_bytes(&e->t));
            ++*count;
        }
        tt_st_finish(w);
    }
    tt_file_close(f);
    return ctx->status;
}
