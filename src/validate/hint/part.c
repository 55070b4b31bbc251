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

void hint_narrow(hint *h, op_call *q, int64_t worst)
{
    int64_t cost = q->c, rows = q->n;   /* of one row */
    switch (q->kind) {
    case OP_LINEAR: cost = q->w->dim[0] * q->w->dim[1]; break;
    case OP_ATTENTION:
        rows = q->attn.T;
        cost = 2 * q->attn.N * q->attn.H * q->attn.D;
        break;
    case OP_CONV:
        rows = q->conv.Ho;
        cost = q->conv.Wo * tt_tensor_count(q->conv.w);
        break;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM: break;
    default: return;               /* a few operations per element */
    }
    if (rows * cost <= MOST_WORK || rows < 2) return;
    int64_t n = MOST_WORK / cost;
    if (n < 4) n = rows < 4 ? rows : 4;
    if (n >= rows) return;
    const int64_t row = worst / (h->n / h->dim[0]);
    if (q->kind == OP_ATTENTION && q->attn.rel_bias) {
        n = q->attn.H * MOST_WORK / (rows * cost);
        if (n < 2) n = 2;
        if (n < q->attn.H)
            keep_heads(h, q, window(worst / q->attn.D % q->attn.H, n,
                                    q->attn.H), n);
        return;
    }
    const int64_t first = window(row, n, rows);
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
    tt_real *y = hint_copy(h, x, n);
    for (int64_t i = 0; y && i < n; i++)
        y[i] = (tt_real)tt_format_round(f, (float)y[i]);
    return y;
}

enum { INPUT = 1, WEIGHT = 2 };

/* The call with its input, its weight, or both rounded. */
static void try_rounded(hint *h, tt_format f, int which, const char *format)
{
    static const char *const what[] = {"", "the input is", "the weight is",
                                       "the inputs are"};
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    op_call q = *h->q;
    const int64_t n = q.n, c = q.c;
    tt_tensor w;
    const tt_real *frame[16];
    tt_attention_args *a = &q.attn;
    switch (q.kind) {
    case OP_LINEAR: case OP_CONV: {
        const tt_tensor *from = q.kind == OP_LINEAR ? q.w : q.conv.w;
        const int64_t count = tt_tensor_count(from);
        if (which & WEIGHT) {
            tt_real *wide = hint_reals(h, count);
            if (!wide) return;
            tt_widen_at(wide, from, 0, count);
            w = tt_tensor_make(narrow(h, wide, count, f),
                               sizeof(tt_real) == 8 ? TT_F64 : TT_F32,
                               from->rank, from->dim);
            q.w = q.conv.w = &w;
        }
        if (!(which & INPUT)) break;
        if (q.kind == OP_LINEAR) q.x = narrow(h, q.x, n * from->dim[1], f);
        else {
            if (q.conv.kt > 16) return;
            for (int i = 0; i < q.conv.kt; i++)
                frame[i] = q.conv.frame[i] ? narrow(
                    h, q.conv.frame[i], q.conv.Hi * q.conv.Wi * q.conv.Cin, f)
                                           : NULL;
            q.conv.frame = frame;
        }
        break;
    }
    case OP_ATTENTION:
        if (which & INPUT)
            a->q = narrow(h, a->q, (a->T - 1) * a->q_stride + a->H * a->D, f);
        if (which & WEIGHT) {
            const int64_t kv = (a->N - 1) * a->kv_stride + a->H * a->D;
            a->k = narrow(h, a->k, kv, f);
            a->v = narrow(h, a->v, kv, f);
        }
        break;
    case OP_MODULATE: case OP_GATE_ADD: {
        const int64_t e = (n - 1) / q.rows * q.stride + c;
        if (which & INPUT) q.x = narrow(h, q.x, n * c, f);
        if (which & INPUT && q.y) q.y = narrow(h, q.y, n * c, f);
        if (which & WEIGHT) q.a = narrow(h, q.a, e, f);
        if (which & WEIGHT && q.b) q.b = narrow(h, q.b, e, f);
        break;
    }
    default:
        if (which & INPUT) q.x = narrow(h, q.x, n * c, f);
        if (which & INPUT && q.y) q.y = narrow(h, q.y, n * c, f);
        if (which & WEIGHT && !q.a) return;
        if (which & WEIGHT) q.a = narrow(h, q.a, c, f);
        if (which & WEIGHT && q.b) q.b = narrow(h, q.b, c, f);
    }
    if (h->q->kind == OP_ATTENTION && which != (INPUT | WEIGHT))
        hint_try_call(h, &q, "%s rounded to %s", which == INPUT ? "Q is"
                      : "K and V are", format);
    else hint_try_call(h, &q, "%s rounded to %s", what[which], format);
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
