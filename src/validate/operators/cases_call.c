/* cases_call.c: the call of a case folder, as files and made again from them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   inputs.safetensors has the operands under the names of call_operands,
 *         rows packed; case.json the numbers that no array tells, and the name
 *         of a case of the operator checks, from which its call is made again.
 * Holds   a folder of anything else is no call. */
#include <stdio.h>
#include <string.h>

#include "io/json.h"
#include "io/io.h"
#include "validate/operators/opcase.h"

/* ---- numbers of case.json ------------------------------------------------ */

static void put_number(FILE *f, const char *name, double x)
{
    fprintf(f, ",\n \"%s\": %.17g", name, x);
}

void case_write_numbers(FILE *f, const op_call *q)
{
    const tt_conv_args *p = &q->conv;
    const tt_tensor *w = q->kind == OP_CONV ? p->w : q->w;
    if (w && w->scale != 0 && w->scale != 1)      /* 0: it has none */
        fprintf(f, ",\n \"w_scale\": %.9g", (double)w->scale);
    if (q->kind == OP_LAYER_NORM || q->kind == OP_RMS_NORM)
        put_number(f, "eps", q->eps);
    if (q->kind == OP_COL_BLEND) put_number(f, "tau", q->tau);
    if (q->kind == OP_ATTENTION) put_number(f, "scale", (double)q->attn.scale);
    if (q->kind == OP_MODULATE || q->kind == OP_GATE_ADD)
        put_number(f, "rows_per_group", (double)q->rows);
    if (q->kind == OP_CONV) {
        fprintf(f, ",\n \"kernel\": [%d, %d, %d]", p->kt, p->kh, p->kw);
        put_number(f, "stride", p->stride);
        put_number(f, "pad_top", p->pad_top);
        put_number(f, "pad_left", p->pad_left);
        put_number(f, "up", p->up);
    }
    if (q->kind == OP_ROPE)
        fprintf(f, ",\n \"pairs\": [%lld, %lld, %lld]",
                (long long)q->table->pairs[0], (long long)q->table->pairs[1],
                (long long)q->table->pairs[2]);
}

/* ---- operands ------------------------------------------------------------ */

/* Rows of a view may be wider than what is read of them. */
static void write_operand(tt_ctx *ctx, tt_st_writer *w, const op_operand *o)
{
    const char *at = operand_at(o);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    int64_t width = (int64_t)tt_dtype_size(o->type);
    for (int i = 1; i < o->rank; i++) width *= o->dim[i];
    const int64_t step = o->stride * (int64_t)tt_dtype_size(o->type);
    char *packed = step ? tt_alloc(ctx, &ctx->scratch, o->dim[0] * width, 1,
                                   "an operand") : NULL;
    for (int64_t i = 0; packed && i < o->dim[0]; i++)
        memcpy(packed + i * width, at + i * step, (size_t)width);
    if (!ctx->status)
        tt_st_add(w, o->name, o->type, o->rank, o->dim, packed ? packed : at);
    tt_arena_reset(&ctx->scratch, m);
}

tt_status case_write_inputs(tt_ctx *ctx, const char *path, const op_call *q)
{
    op_operands l;
    tt_st_writer *w;
    TT_TRY(tt_st_create(ctx, &w, path));
    call_operands(q, &l);
    for (int i = 0; i < l.n; i++) {
        const void *at = operand_at(&l.of[i]);
        const tt_tensor *t = l.of[i].type == TT_NONE ? at : NULL;
        if (t) tt_st_add(w, l.of[i].name, t->dtype, t->rank, t->dim, t->data);
        else if (at) write_operand(ctx, w, &l.of[i]);
    }
    return tt_st_finish(w);
}

bool case_read(tt_ctx *ctx, op_call *q, const char *dir, const int64_t *dim,
               int rank)
{
    char path[1300];
    int64_t shape[TT_MAX_RANK];
    tt_arena mem = {0};
    const tt_json *json = NULL;
    op_case c;
    bool is = false;
    snprintf(path, sizeof path, "%s/case.json", dir);
    if (!tt_json_file(ctx, &mem, &json, path, 1 << 20)
        && op_case_read(&c, tt_json_str(json, "case", ""))) {
        call_make(ctx, q, c.op, c.in, &c.sizes, c.seed, c.lay);
        is = !ctx->status && call_shape(q, shape) == rank
             && !memcmp(shape, dim, (size_t)rank * sizeof *dim);
    }
    tt_arena_free(&mem);
    tt_clear(ctx);             /* a case that is no call has no such hints */
    return is;
}
