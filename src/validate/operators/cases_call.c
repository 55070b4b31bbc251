/* cases_call.c: the call of a case folder, as files and read back from them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   inputs.safetensors has the operands under the names of call_operands,
 *         rows packed; case.json the numbers that no array tells.
 * Holds   a folder of anything else is no call. */
#include <stdio.h>
#include <string.h>

#include "io/json.h"
#include "io/io.h"
#include "validate/operators/opcalls.h"

/* ---- numbers of case.json ------------------------------------------------ */

/* On the way to a file, or from one. */
typedef struct numbers {
    FILE *to;                /* NULL: they are read                           */
    const tt_json *from;
    bool wrong;              /* one is too large for what it counts           */
} numbers;

static double case_number(const numbers *m, const char *name, double x)
{
    if (!m->to) return tt_json_num(m->from, name, x);
    fprintf(m->to, ",\n \"%s\": %.17g", name, x);
    return x;
}

static int64_t whole_number(numbers *m, const char *name, int64_t x,
                            double most)
{
    const double y = case_number(m, name, (double)x);
    m->wrong |= !(y >= -most && y <= most);
    return m->wrong ? 0 : (int64_t)y;
}

static void pass_numbers(numbers *m, op_call *q)
{
    enum { MOST = 1 << 20, TAPS = 64 };
    tt_conv_args *p = &q->conv;
    if (q->kind == OP_LAYER_NORM || q->kind == OP_RMS_NORM)
        q->eps = case_number(m, "eps", q->eps);
    if (q->kind == OP_COL_BLEND) q->tau = case_number(m, "tau", q->tau);
    if (q->kind == OP_ATTENTION)
        q->attn.scale = (tt_real)case_number(m, "scale", (double)q->attn.scale);
    if (q->kind == OP_MODULATE || q->kind == OP_GATE_ADD)
        q->rows = whole_number(m, "rows_per_group", q->rows, MOST);
    if (q->kind != OP_CONV) return;
    p->stride = (int)whole_number(m, "stride", p->stride, TAPS);
    p->pad_top = (int)whole_number(m, "pad_top", p->pad_top, TAPS);
    p->pad_left = (int)whole_number(m, "pad_left", p->pad_left, TAPS);
    p->up = (int)whole_number(m, "up", p->up, TAPS);
}

void case_write_numbers(FILE *f, const op_call *q)
{
    const tt_tensor *w = q->kind == OP_CONV ? q->conv.w : q->w;
    op_call own = *q;
    if (w && w->scale != 0 && w->scale != 1)      /* 0: it has none */
        fprintf(f, ",\n \"w_scale\": %.9g", (double)w->scale);
    if (q->kind == OP_CONV)
        fprintf(f, ",\n \"kernel\": [%d, %d, %d]", q->conv.kt, q->conv.kh,
                q->conv.kw);
    pass_numbers(&(numbers){.to = f}, &own);
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

typedef struct reader {
    tt_ctx *ctx;
    tt_file *f;
    const tt_json *json;
} reader;

/* n elements as a call has them, in scratch; NULL: they cannot be. */
static const void *read_operand(const reader *r, const tt_tensor *t,
                                tt_dtype type, int64_t n)
{
    if (tt_tensor_count(t) != n
        || (type != t->dtype && !(tt_dtype_is_real(type)
                                  && tt_dtype_is_real(t->dtype)))) return NULL;
    if (!tt_dtype_is_real(type)) {
        void *to = tt_alloc(r->ctx, &r->ctx->scratch, tt_tensor_bytes(t), 1,
                            "a case");
        if (to) tt_gather(to, t);
        return to;
    }
    double *x = tt_read_double(r->ctx, &r->ctx->scratch, t);
    tt_real *y = x && type != TT_F64 ? tt_scratch(r->ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++) y[i] = (tt_real)x[i];
    return y ? (void *)y : x;
}

/* False: one is not there that must be, or has another shape. */
static bool read_operands(const reader *r, op_call *q)
{
    op_operands l;
    call_operands(q, &l);
    for (int i = 0; i < l.n; i++) {
        const op_operand *o = &l.of[i];
        const tt_entry *e = tt_file_find(r->f, o->name);
        const void *at = e && o->type != TT_NONE
            ? read_operand(r, &e->t, o->type, operand_span(o)) : NULL;
        if (!at && o->type != TT_NONE && (e || !(o->role & ROLE_OPTIONAL)))
            return false;
        if (at) operand_set(o, at);
    }
    return true;
}

static const tt_tensor *cases_read_weight(const reader *r, int rank)
{
    const tt_entry *e = tt_file_find(r->f, "w");
    tt_tensor *w = e && e->t.rank == rank
        ? tt_alloc(r->ctx, &r->ctx->scratch, 1, sizeof *w, "case") : NULL;
    void *data = w ? tt_alloc(r->ctx, &r->ctx->scratch, tt_tensor_bytes(&e->t),
                              1, "a case") : NULL;
    if (!data) return NULL;
    tt_gather(data, &e->t);
    *w = tt_tensor_like(&e->t, data, e->t.rank, e->t.dim);
    w->scale = (float)tt_json_num(r->json, "w_scale", 1);
    return w;
}

/* At most 2^20, so that three of them have a product; else 0. */
static int64_t extent(const reader *r, const char *name, int axis)
{
    const tt_entry *e = tt_file_find(r->f, name);
    const int64_t n = e && axis < e->t.rank ? e->t.dim[axis] : 0;
    return n <= 1 << 20 ? n : 0;
}

/* ---- sizes --------------------------------------------------------------- */

static bool size_attention(const reader *r, tt_attention_args *a)
{
    a->T = extent(r, "q", 0), a->N = extent(r, "k", 0);
    a->H = extent(r, "q", 1), a->D = extent(r, "q", 2);
    a->q_stride = a->kv_stride = a->H * a->D;
    return a->T && a->N && a->q_stride;
}

static bool size_conv(const reader *r, op_call *q, const int64_t *dim)
{
    enum { FRAMES = 16, TAPS = 64 };
    tt_conv_args *p = &q->conv;
    const tt_tensor *w = cases_read_weight(r, 5);
    char last[32];
    if (!w || w->dim[1] < 1 || w->dim[1] > FRAMES || w->dim[2] > TAPS
        || w->dim[3] > TAPS)
        return false;
    snprintf(last, sizeof last, "frame.%d", (int)w->dim[1] - 1);
    *p = (tt_conv_args){
        .frame = tt_alloc0(r->ctx, &r->ctx->scratch, w->dim[1],
                           sizeof *p->frame, "frames"),
        .w = w, .Hi = extent(r, last, 0), .Wi = extent(r, last, 1),
        .Cin = extent(r, last, 2), .Ho = dim[0], .Wo = dim[1], .Cout = dim[2],
        .kt = (int)w->dim[1], .kh = (int)w->dim[2], .kw = (int)w->dim[3],
        .stride = p->stride, .up = p->up, .pad_top = p->pad_top,
        .pad_left = p->pad_left};
    return p->frame && p->stride > 0 && (p->up == 1 || p->up == 2)
           && p->Cin > 0 && p->Cin == w->dim[4] && p->Cout == w->dim[0];
}

/* The rest: rows x, and what goes with them. */
static bool size_rows(const reader *r, op_call *q)
{
    q->n = extent(r, "x", 0);
    q->c = q->stride = extent(r, "x", 1);
    if (q->kind == OP_ROPE) {
        q->H = q->c, q->D = extent(r, "x", 2);
        q->c = q->H * q->D;
    }
    if (q->kind == OP_MODULATE || q->kind == OP_GATE_ADD) {
        if (!q->rows) q->rows = q->n;
        if (q->rows < 1 || q->n % q->rows) return false;
    }
    if (q->kind == OP_LINEAR) q->w = cases_read_weight(r, 2);
    return q->kind != OP_LINEAR || (q->w && q->w->dim[1] == q->c);
}

static bool cases_angles(const reader *r, op_call *q)
{
    int32_t most = 0;
    tt_rope_table *t = tt_alloc0(r->ctx, &r->ctx->scratch, 1, sizeof *t,
                                 "angles");
    if (!t || q->D < 2 || q->D % 2) return false;
    for (int64_t i = 0; i < 3 * q->n; i++) {
        if (q->pos[i] < 0 || q->pos[i] > 1 << 16) return false;
        if (q->pos[i] > most) most = q->pos[i];
    }
    q->table = t;
    return !tt_rope_make(r->ctx, &r->ctx->scratch, t, q->D, most + 1);
}

static bool read_call(const reader *r, op_call *q, const int64_t *dim, int rank)
{
    const char *op = tt_json_str(r->json, "op", NULL);
    int kind = 0;
    while (op && kind < OP_KINDS && strcmp(op, op_name((op_kind)kind))) kind++;
    if (!op || kind == OP_KINDS) return false;
    *q = (op_call){.kind = (op_kind)kind, .conv = {.stride = 1, .up = 1}};
    numbers m = {.from = r->json};
    pass_numbers(&m, q);
    return !m.wrong
           && (kind == OP_ATTENTION ? size_attention(r, &q->attn)
               : kind == OP_CONV ? rank == 3 && size_conv(r, q, dim)
               : size_rows(r, q))
           && read_operands(r, q)
           && (kind != OP_COL_BLEND || !q->mean == !q->gain)
           && (kind != OP_ROPE || cases_angles(r, q));
}

bool case_read(tt_ctx *ctx, op_call *q, const char *dir, const int64_t *dim,
               int rank)
{
    char path[1300];
    int64_t shape[TT_MAX_RANK];
    tt_arena mem = {0};
    reader r = {.ctx = ctx};
    bool is = false;
    snprintf(path, sizeof path, "%s/case.json", dir);
    if (!tt_json_file(ctx, &mem, &r.json, path, 1 << 20)) {
        snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
        if (!tt_file_open(ctx, &r.f, path)) {
            is = read_call(&r, q, dim, rank) && !ctx->status
                 && call_shape(q, shape) == rank
                 && !memcmp(shape, dim, (size_t)rank * sizeof *dim);
            tt_file_close(r.f);
        }
    }
    tt_arena_free(&mem);
    tt_clear(ctx);             /* a case that is no call has no such hints */
    return is;
}
