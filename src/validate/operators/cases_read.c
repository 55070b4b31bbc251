/* cases_read.c: the call of a case folder, read back from its files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   what cases.c writes; a folder of anything else is no call. */
#include <stdio.h>
#include <string.h>

#include "io/json.h"
#include "io/io.h"
#include "validate/operators/opcalls.h"

typedef struct reader {
    tt_ctx *ctx;
    tt_file *f;
    const tt_json *json;
} reader;

/* The n values of that name as ours, in scratch; NULL: not there. */
static const tt_real *cases_read_values(const reader *r, const char *name,
                                        int64_t n)
{
    const tt_entry *e = tt_file_find(r->f, name);
    if (!e || !tt_dtype_is_real(e->t.dtype) || tt_tensor_count(&e->t) != n)
        return NULL;
    const double *x = tt_read_double(r->ctx, &r->ctx->scratch, &e->t);
    tt_real *y = x ? tt_scratch(r->ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++) y[i] = (tt_real)x[i];
    return y;
}

static const double *doubles(const reader *r, const char *name, int64_t n)
{
    const tt_entry *e = tt_file_find(r->f, name);
    return e && tt_tensor_count(&e->t) == n
               ? tt_read_double(r->ctx, &r->ctx->scratch, &e->t) : NULL;
}

/* n elements as they are stored. */
static const void *bytes(const reader *r, const char *name, tt_dtype type,
                         int64_t n)
{
    const tt_entry *e = tt_file_find(r->f, name);
    if (!e || e->t.dtype != type || tt_tensor_count(&e->t) != n) return NULL;
    void *to = tt_alloc(r->ctx, &r->ctx->scratch, tt_tensor_bytes(&e->t), 1,
                        "a case");
    if (to) tt_gather(to, &e->t);
    return to;
}

static const tt_tensor *cases_read_weight(const reader *r)
{
    const tt_entry *e = tt_file_find(r->f, "w");
    tt_tensor *w = e ? tt_alloc(r->ctx, &r->ctx->scratch, 1, sizeof *w, "case")
                     : NULL;
    const void *data = w ? bytes(r, "w", e->t.dtype, tt_tensor_count(&e->t))
                         : NULL;
    if (!data) return NULL;
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

static bool read_attention(const reader *r, tt_attention_args *a)
{
    const int64_t T = extent(r, "q", 0), N = extent(r, "k", 0);
    const int64_t H = extent(r, "q", 1), D = extent(r, "q", 2), c = H * D;
    *a = (tt_attention_args){
        .q = cases_read_values(r, "q", T * c),
        .k = cases_read_values(r, "k", N * c),
        .v = cases_read_values(r, "v", N * c), .T = T, .N = N, .H = H, .D = D,
        .q_stride = c, .kv_stride = c,
        .scale = (tt_real)tt_json_num(r->json, "scale", 0),
        .rel_bias = cases_read_values(r, "rel_bias", H * (2 * N - 1)),
        .key_mask = bytes(r, "key_mask", TT_U8, N)};
    return a->q && a->k && a->v;
}

/* The number of that name, if there is one; false: too large for a kernel. */
static bool read_small(const reader *r, const char *name, int *n)
{
    enum { MOST = 64 };
    const int64_t v = tt_json_int(r->json, name, *n);
    if (v < -MOST || v > MOST) return false;
    *n = (int)v;
    return true;
}

static bool read_conv(const reader *r, op_call *q, const int64_t *dim)
{
    const tt_json *kernel = tt_json_get(r->json, "kernel");
    const int64_t first = tt_json_whole(tt_json_first(kernel), 0);
    bool all = true;
    const tt_tensor *w = cases_read_weight(r);
    const int kt = first > 0 && first <= 16 ? (int)first : 0;
    int stride = 1, up = 1, top = 0, left = 0;
    char name[32];
    if (!w || w->rank != 5 || kt < 1 || kt != w->dim[1]
        || w->dim[2] > 64 || w->dim[3] > 64)
        return false;
    if (!read_small(r, "stride", &stride) || !read_small(r, "up", &up)
        || !read_small(r, "pad_top", &top)
        || !read_small(r, "pad_left", &left))
        return false;
    const tt_real **frame = tt_alloc(r->ctx, &r->ctx->scratch, kt,
                                     sizeof *frame, "frames");
    snprintf(name, sizeof name, "frame.%d", kt - 1);
    q->conv = (tt_conv_args){
        .frame = frame, .w = w, .b = cases_read_values(r, "b", w->dim[0]),
        .Hi = extent(r, name, 0), .Wi = extent(r, name, 1),
        .Cin = extent(r, name, 2), .Ho = dim[0], .Wo = dim[1], .Cout = dim[2],
        .kt = kt, .kh = (int)w->dim[2], .kw = (int)w->dim[3],
        .stride = stride, .up = up, .pad_top = top, .pad_left = left};
    for (int i = 0; frame && i < kt; i++) {
        snprintf(name, sizeof name, "frame.%d", i);
        frame[i] = cases_read_values(r, name,
                                     q->conv.Hi * q->conv.Wi * q->conv.Cin);
        all = all && (frame[i] || !tt_file_find(r->f, name));
    }
    return frame && all && q->conv.stride > 0
           && (q->conv.up == 1 || q->conv.up == 2) && q->conv.Cin > 0
           && q->conv.Cin == w->dim[4] && q->conv.Cout == w->dim[0];
}

static bool read_rope(const reader *r, op_call *q)
{
    int32_t most = 0;
    tt_rope_table *t = tt_alloc0(r->ctx, &r->ctx->scratch, 1, sizeof *t,
                                 "angles");
    q->H = extent(r, "x", 1);
    q->D = extent(r, "x", 2);
    q->c = q->H * q->D;
    q->pos = bytes(r, "pos", TT_I32, 3 * q->n);
    if (!t || !q->pos || q->D < 2 || q->D % 2) return false;
    for (int64_t i = 0; i < 3 * q->n; i++) {
        if (q->pos[i] < 0 || q->pos[i] > 1 << 16) return false;
        if (q->pos[i] > most) most = q->pos[i];
    }
    q->table = t;
    return !tt_rope_make(r->ctx, &r->ctx->scratch, t, q->D, most + 1);
}

/* The rest: rows x, and what is next to them. */
static bool read_rows(const reader *r, op_call *q)
{
    const bool gate = q->kind == OP_GATE_ADD;
    const int64_t n = q->n = extent(r, "x", 0), c = q->c = extent(r, "x", 1);
    if (q->kind == OP_ROPE) {
        q->x = cases_read_values(r, "x", n * c * extent(r, "x", 2));
        return q->x && read_rope(r, q);
    }
    q->x = cases_read_values(r, "x", n * c);
    q->y = cases_read_values(r, "y", n * c);
    q->eps = tt_json_num(r->json, "eps", 0);
    q->tau = tt_json_num(r->json, "tau", 0);
    q->mean = doubles(r, "mean", c);
    q->gain = doubles(r, "gain", c);
    q->target = doubles(r, "target", c);
    if (gate || q->kind == OP_MODULATE) {
        q->rows = tt_json_int(r->json, "rows_per_group", n);
        if (q->rows < 1 || n % q->rows) return false;
        q->stride = c;
        q->a = cases_read_values(r, gate ? "gate" : "scale", n / q->rows * c);
        q->b = cases_read_values(r, "shift", n / q->rows * c);
        return q->x && q->a && (gate ? q->y : q->b);
    }
    if (q->kind == OP_LINEAR) {
        q->w = cases_read_weight(r);
        if (!q->w || q->w->rank != 2 || q->w->dim[1] != c) return false;
        q->b = cases_read_values(r, "b", q->w->dim[0]);
        return q->x != NULL;
    }
    q->a = cases_read_values(r, "w", c);
    q->b = cases_read_values(r, "b", c);
    return q->x != NULL;
}

static bool cases_read_complete(const op_call *q)
{
    switch (q->kind) {
    case OP_ADD: case OP_MUL: return q->y != NULL;
    case OP_RMS_NORM: case OP_CHANNEL_NORM: return q->a != NULL;
    case OP_COL_MOMENT: return q->mean != NULL;
    case OP_COL_BLEND: return q->target && !q->mean == !q->gain;
    default: return true;
    }
}

static bool read_call(const reader *r, op_call *q, const int64_t *dim, int rank)
{
    const char *op = tt_json_str(r->json, "op", NULL);
    int kind = 0;
    while (op && kind < OP_KINDS && strcmp(op, op_name((op_kind)kind))) kind++;
    if (!op || kind == OP_KINDS) return false;
    *q = (op_call){.kind = (op_kind)kind};
    if (kind == OP_ATTENTION) return read_attention(r, &q->attn);
    if (kind == OP_CONV) return rank == 3 && read_conv(r, q, dim);
    return read_rows(r, q) && cases_read_complete(q);
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
