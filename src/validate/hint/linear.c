/* linear.c: how a matrix product goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <math.h>

#define F(...) &(linear_fault){__VA_ARGS__}

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
static void linear_running_sums(const hint *h, const tt_real *w, int64_t i,
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

static void cut_sum(hint *h, int64_t i)
{
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *head = hint_doubles(h, i + 1), *tail = hint_doubles(h, i + 1);
    const tt_real *w = plain_weight(h->ctx, h->q->w);
    if (!head || !tail || !w || i < 2) return;
    linear_running_sums(h, w, i, head, tail);
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

static void linear_layout(hint *h, int64_t i)
{
    const bool even = i % 2 == 0;
    const hint_trial list[] = {
        {true, F(.weight = WEIGHT_TRANSPOSED),
         "weight transposed: read as [in, out]"},
        {true, F(.weight = WEIGHT_ROWS_BACK),
         "rows of the weight in reverse order"},
        {even, F(.weight = WEIGHT_NEIGHBOURS),
         "neighbouring inputs exchanged"},
        {even, F(.weight = WEIGHT_HALVES), "halves of the inputs exchanged"},
    };
    HINT_TRY_EACH(h, list);
    for (int64_t f = 2; f < i; f++)
        if (i % f == 0 && i / f <= 64)
            hint_try_fault(h, F(.weight = WEIGHT_SPLIT, .split = f), "inputs "
                           "read as [%lld, %lld] where [%lld, %lld] belongs "
                           "(patch or head order)", (long long)f,
                           (long long)(i / f), (long long)(i / f),
                           (long long)f);
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
    bias(h);
    storage(h);
    if (hint_settled(h)) return;
    cut_sum(h, h->q->w->dim[1]);
    linear_layout(h, h->q->w->dim[1]);
}
