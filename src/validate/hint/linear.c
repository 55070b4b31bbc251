/* linear.c: how a matrix product goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <math.h>
#include <string.h>

/* One line of a table of faults. */
#define F(...) &(linear_fault){__VA_ARGS__}

static tt_tensor dense(const tt_real *w, int64_t o, int64_t i)
{
    return tt_tensor_make(w, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2,
                          (int64_t[]){o, i});
}

static void bias(hint *h)
{
    const hint_trial list[] = {
        {true, F(.bias = -1), "bias missing"},
        {true, F(.bias = 1), "bias added twice"},
        {true, F(.bias = -2), "bias subtracted"},
        {true, F(.shift = -1), "bias of the neighbouring channel (-1)"},
        {true, F(.shift = 1), "bias of the neighbouring channel (+1)"},
        {h->n > h->c, F(.row_bias = true),
         "bias indexed by the row instead of the channel"},
        {true, F(.first_bias = true), "the first channel's bias everywhere"},
    };
    if (h->q->b) HINT_TRY_EACH(h, list);
}

/* How far the sums of a sample of wrong outputs would be from the candidate's
 * with the first k terms alone (head), and without them (tail). */
static void running_sums(const hint *h, const tt_real *w, int64_t i,
                         double *head, double *tail)
{
    const op_call *q = h->q;
    const int64_t o = h->c, step = h->n > 64 ? h->n / 64 : 1;
    for (int64_t k = 0; k <= i; k++) head[k] = tail[k] = 0;
    for (int64_t at = 0; at < h->n; at += step) {
        if (!h->wrong[at]) continue;
        const tt_real *x = q->x + at / o * i, *row = w + at % o * i;
        const double b = q->b ? (double)q->b[at % o] : 0;
        double s = 0;
        for (int64_t k = 0; k <= i; k++) {
            head[k] += fabs(s + b - h->got[at]);
            tail[k] += fabs(h->want[at] - s - h->got[at]);
            if (k < i) s += (double)x[k] * (double)row[k];
        }
    }
}

static void cut_sum(hint *h, const tt_real *w, int64_t i)
{
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *head = hint_doubles(h, i + 1), *tail = hint_doubles(h, i + 1);
    if (!head || !tail || i < 2) return;
    running_sums(h, w, i, head, tail);
    int64_t stop = 0, begin = 0;
    for (int64_t k = 0; k <= i; k++) {
        if (head[k] <= head[stop]) stop = k;
        if (tail[k] < tail[begin]) begin = k;
    }
    tt_arena_reset(&h->ctx->scratch, mark);
    if (stop < i && stop > 0)
        hint_try_fault(h, F(.tail = i - stop), "the last %lld of %lld terms of "
                       "the sums are dropped", (long long)(i - stop),
                       (long long)i);
    if (begin > 0 && begin < i)
        hint_try_fault(h, F(.head = begin), "the first %lld of %lld terms of "
                       "the sums are dropped", (long long)begin, (long long)i);
    hint_try_fault(h, F(.twice = 1), "term 0 of the sums is counted twice");
    hint_try_fault(h, F(.twice = i), "term %lld of the sums is counted twice",
                   (long long)(i - 1));
    if (h->n * i > 4000000) return;
    hint_try_fault(h, F(.narrow = true, .sums = TT_FMT_F16),
                   "sums are kept in f16");
    hint_try_fault(h, F(.narrow = true, .sums = TT_FMT_BF16),
                   "sums are kept in bf16");
}

static void layout(hint *h, const tt_real *w, int64_t o, int64_t i)
{
    op_call q = *h->q;
    tt_real *turned = hint_reals(h, o * i);
    if (!turned || o * i < 2) return;
    const tt_tensor t = dense(turned, o, i);
    q.w = &t;
    for (int64_t c = 0; c < o; c++)
        for (int64_t k = 0; k < i; k++) turned[c * i + k] = w[k * o + c];
    hint_try_call(h, &q, "weight transposed: read as [in, out]");
    for (int64_t c = 0; c < o; c++)
        memcpy(turned + c * i, w + (o - 1 - c) * i, (size_t)i * sizeof *w);
    hint_try_call(h, &q, "rows of the weight in reverse order");
    if (i % 2 == 0) {
        for (int64_t k = 0; k < o * i; k++) turned[k] = w[k ^ 1];
        hint_try_call(h, &q, "neighbouring inputs exchanged");
        for (int64_t c = 0; c < o; c++)
            for (int64_t k = 0; k < i; k++)
                turned[c * i + k] = w[c * i + (k + i / 2) % i];
        hint_try_call(h, &q, "halves of the inputs exchanged");
    }
    for (int64_t f = 2; f < i; f++) {
        if (i % f || i / f > 64) continue;
        for (int64_t c = 0; c < o; c++)
            for (int64_t k = 0; k < i; k++)
                turned[c * i + k] = w[c * i + k % f * (i / f) + k / f];
        hint_try_call(h, &q, "inputs read as [%lld, %lld] where [%lld, %lld] "
                      "belongs (patch or head order)", (long long)f,
                      (long long)(i / f), (long long)(i / f), (long long)f);
    }
}

/* The bytes of the weight taken for another type, or without its scale. */
static void storage(hint *h)
{
    op_call q = *h->q;
    tt_tensor w = *q.w;
    q.w = &w;
    if (w.dtype == TT_BF16 || w.dtype == TT_F16) {
        w.dtype = w.dtype == TT_BF16 ? TT_F16 : TT_BF16;
        hint_try_call(h, &q, "%s weight read as %s",
                      tt_dtype_name(h->q->w->dtype), tt_dtype_name(w.dtype));
        w.dtype = h->q->w->dtype;
    }
    if (w.scale != 0 && w.scale != 1) {
        w.scale = 0;
        hint_try_call(h, &q, "scale of the weight ignored");
    }
}

void hint_linear(hint *h)
{
    const tt_tensor *w = h->q->w;
    const int64_t o = w->dim[0], i = w->dim[1];
    bias(h);
    storage(h);
    if (hint_settled(h)) return;
    tt_real *wide = hint_reals(h, o * i);
    if (!wide) return;
    tt_widen_at(wide, w, 0, o * i);
    cut_sum(h, wide, i);
    if (!hint_settled(h)) layout(h, wide, o, i);
}
