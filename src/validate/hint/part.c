/* part.c: the same mistake on less work.
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
static int64_t part_window(int64_t row, int64_t n, int64_t all)
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
        keep_heads(h, q, part_window(worst / a->D % a->H, some, a->H), some);
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
    const int64_t first = part_window(worst / (h->n / h->dim[0]), n, rows);
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
