/* part.c: the same mistake on less work, or on rounded inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A mistake is imitated some forty times; of a call of the real model a part of
 * the output is enough to see it: rows around the worst element, or some heads
 * of an attention whose queries belong together. */
#include <string.h>

#include "validate/hint/hint.h"

#define MOST_WORK ((int64_t)1 << 23)   /* multiply-adds of one trial          */

/* Rows [first, first + n) of `all` that hold `row`. */
static int64_t window(int64_t row, int64_t n, int64_t all)
{
    const int64_t first = row - n / 2;
    return first < 0 ? 0 : first + n > all ? all - n : first;
}

/* Keep rows of the output (axis 0). */
static void keep_rows(hint *h, int64_t first, int64_t n)
{
    const int64_t row = h->n / h->dim[0];
    h->got += first * row;
    h->want += first * row;
    h->dim[0] = n;
    h->n = n * row;
}

static void keep_heads(hint *h, op_call *q, int64_t first, int64_t n)
{
    tt_attention_args *a = &q->attn;
    double *got = hint_doubles(h, a->T * n * a->D);
    double *want = hint_doubles(h, a->T * n * a->D);
    if (!got || !want) return;
    for (int64_t t = 0; t < a->T; t++) {
        const int64_t from = (t * a->H + first) * a->D, to = t * n * a->D;
        memcpy(got + to, h->got + from, (size_t)(n * a->D) * sizeof *got);
        memcpy(want + to, h->want + from, (size_t)(n * a->D) * sizeof *want);
    }
    h->got = got;
    h->want = want;
    h->dim[1] = n;
    h->n = a->T * n * a->D;
    a->q += first * a->D;
    a->k += first * a->D;
    a->v += first * a->D;
    if (a->rel_bias) a->rel_bias += first * (2 * a->N - 1);
    a->H = n;
}

/* May rows of the result be taken by themselves? Other operators do a few
 * operations per element. */
static bool by_rows(op_kind kind)
{
    return kind == OP_LINEAR || kind == OP_ATTENTION || kind == OP_CONV
           || kind == OP_LAYER_NORM || kind == OP_RMS_NORM
           || kind == OP_CHANNEL_NORM;
}

/* The relative bias ties all rows of a head together. */
static void narrow_heads(hint *h, op_call *q, int64_t worst, int64_t work)
{
    const tt_attention_args *a = &q->attn;
    const int64_t n = a->H * MOST_WORK / work, some = n < 2 ? 2 : n;
    if (some < a->H)
        keep_heads(h, q, window(worst / a->D % a->H, some, a->H), some);
}

void hint_narrow(hint *h, op_call *q, int64_t worst)
{
    const int64_t rows = h->dim[0], work = call_cost(q);
    if (!by_rows(q->kind) || work <= MOST_WORK || rows < 2) return;
    int64_t n = MOST_WORK / (work / rows);
    if (n < 4) n = rows < 4 ? rows : 4;
    if (n >= rows) return;
    if (q->kind == OP_ATTENTION && q->attn.rel_bias) {
        narrow_heads(h, q, worst, work);
        return;
    }
    const int64_t first = window(worst / (h->n / h->dim[0]), n, rows);
    keep_rows(h, first, n);
    if (q->kind == OP_ATTENTION) {
        q->attn.q += first * q->attn.q_stride;
        q->attn.T = n;
    } else if (q->kind == OP_CONV) {
        q->conv.pad_top -= (int)first * q->conv.stride;
        q->conv.Ho = n;
    } else {
        q->x += first * (q->kind == OP_LINEAR ? q->w->dim[1] : q->c);
        q->n = n;
    }
}

/* ---- inputs in a narrower format ----------------------------------------- */

static const tt_real *narrow(hint *h, const tt_real *x, int64_t n, tt_format f)
{
    tt_real *y = x ? tt_scratch(h->ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i++)
        y[i] = (tt_real)tt_format_round(f, (float)x[i]);
    return y;
}

static void narrow_weight(hint *h, tt_tensor *w, tt_format f)
{
    const int64_t n = tt_tensor_count(w);
    const tt_real *wide = plain_weight(h->ctx, w);
    if (!wide) return;
    *w = tt_tensor_make(narrow(h, wide, n, f), sizeof(tt_real) == 8 ? TT_F64
                                                                   : TT_F32,
                        w->rank, w->dim);
}

enum { INPUT = 1, WEIGHT = 2 };

/* The rounded arrays of a call. */
typedef struct rounded {
    op_call q;
    tt_tensor w;
    const tt_real *frame[16];
} rounded;

static void round_input(hint *h, rounded *r, tt_format f)
{
    op_call *q = &r->q;
    tt_attention_args *a = &q->attn;
    const tt_conv_args *p = &h->q->conv;
    switch (q->kind) {
    case OP_LINEAR: q->x = narrow(h, q->x, q->n * r->w.dim[1], f); break;
    case OP_CONV:
        for (int i = 0; i < p->kt; i++)
            r->frame[i] = narrow(h, p->frame[i], p->Hi * p->Wi * p->Cin, f);
        q->conv.frame = r->frame;
        break;
    case OP_ATTENTION:
        a->q = narrow(h, a->q, (a->T - 1) * a->q_stride + a->H * a->D, f);
        break;
    default:
        q->x = narrow(h, q->x, q->n * q->c, f);
        q->y = narrow(h, q->y, q->n * q->c, f);
    }
}

static void round_weight(hint *h, rounded *r, tt_format f)
{
    op_call *q = &r->q;
    tt_attention_args *a = &q->attn;
    int64_t n = q->c;
    switch (q->kind) {
    case OP_LINEAR: case OP_CONV: narrow_weight(h, &r->w, f); break;
    case OP_ATTENTION:
        n = (a->N - 1) * a->kv_stride + a->H * a->D;
        a->k = narrow(h, a->k, n, f);
        a->v = narrow(h, a->v, n, f);
        break;
    default:
        if (q->kind == OP_MODULATE || q->kind == OP_GATE_ADD)
            n += (q->n - 1) / q->rows * q->stride;
        q->a = narrow(h, q->a, n, f);
        q->b = narrow(h, q->b, n, f);
    }
}

/* The call with its input, its weight, or both rounded. */
static void try_rounded(hint *h, tt_format f, int which, const char *format)
{
    static const char *const what[][4] = {
        {"", "the input is", "the weight is", "the inputs are"},
        {"", "Q is", "K and V are", "the inputs are"}};
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    rounded r = {.q = *h->q};
    switch (r.q.kind) {
    case OP_LINEAR: r.w = *r.q.w; break;
    case OP_CONV:
        if (which & INPUT && r.q.conv.kt > 16) return;
        r.w = *r.q.conv.w;
        break;
    case OP_ATTENTION: break;
    default: if (which & WEIGHT && !r.q.a) return;
    }
    r.q.w = r.q.conv.w = &r.w;
    if (which & INPUT) round_input(h, &r, f);
    if (which & WEIGHT) round_weight(h, &r, f);
    hint_try_call(h, &r.q, "%s rounded to %s",
                  what[r.q.kind == OP_ATTENTION][which], format);
    tt_arena_reset(&h->ctx->scratch, mark);
}

void hint_rounding(hint *h)
{
    static const struct { tt_format f; const char *name; } formats[] = {
        {TT_FMT_BF16, "bf16"}, {TT_FMT_TF32, "tf32 or f16"},
        {TT_FMT_F16, "f16"}};
    for (int i = 0; i < 3; i++)
        for (int which = WEIGHT | INPUT; which >= INPUT; which--)
            if (!hint_settled(h))
                try_rounded(h, formats[i].f, which, formats[i].name);
}
