/* linear.c: how a matrix product goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/hint.h"

static tt_tensor dense(const tt_real *w, int64_t o, int64_t i)
{
    return tt_tensor_make(w, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2,
                          (int64_t[]){o, i});
}

/* got - want is a multiple of the bias, or the bias of another channel. */
static void bias(hint *h)
{
    op_call q = *h->q;
    if (!q.b) return;
    const int64_t o = h->c, n = h->n / o;
    q.b = NULL;
    hint_try_call(h, &q, "bias missing");
    double *bare = h->trial;       /* the product alone */
    call_oracle(h->ctx, &q, bare);
    double *t = hint_doubles(h, h->n);
    if (!t) return;
    for (int64_t k = 0; k < h->n; k++)
        t[k] = bare[k] + 2 * (double)h->q->b[k % o];
    hint_try(h, t, "bias added twice");
    for (int64_t k = 0; k < h->n; k++)
        t[k] = bare[k] - (double)h->q->b[k % o];
    hint_try(h, t, "bias subtracted");
    for (int shift = -1; shift <= 1; shift += 2) {
        for (int64_t k = 0; k < h->n; k++)
            t[k] = bare[k] + (double)h->q->b[(k % o + o + shift) % o];
        hint_try(h, t, "bias of the neighbouring channel (%+d)", shift);
    }
    if (n > 1) {
        for (int64_t k = 0; k < h->n; k++)
            t[k] = bare[k] + (double)h->q->b[k / o % o];
        hint_try(h, t, "bias indexed by the row instead of the channel");
    }
    for (int64_t k = 0; k < h->n; k++) t[k] = bare[k] + (double)h->q->b[0];
    hint_try(h, t, "the first channel's bias everywhere");
}

/* The running sums of a sample of outputs tell after how many terms the
 * candidate stopped, or before which it began. */
static void cut_sum(hint *h, const tt_real *w, int64_t o, int64_t i)
{
    const op_call *q = h->q;
    tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *head = hint_doubles(h, i + 1), *tail = hint_doubles(h, i + 1);
    if (!head || !tail || i < 2) return;
    memset(head, 0, (size_t)(i + 1) * sizeof *head);
    memset(tail, 0, (size_t)(i + 1) * sizeof *tail);
    const int64_t step = h->n > 64 ? h->n / 64 : 1;
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
    int64_t stop = 0, begin = 0;
    for (int64_t k = 0; k <= i; k++) {
        if (head[k] <= head[stop]) stop = k;
        if (tail[k] < tail[begin]) begin = k;
    }
    tt_arena_reset(&h->ctx->scratch, mark);
    tt_real *cut = hint_copy(h, w, o * i);
    if (!cut) return;
    op_call part = *q;
    const tt_tensor t = dense(cut, o, i);
    part.w = &t;
    if (stop < i && stop > 0) {
        for (int64_t c = 0; c < o; c++)
            for (int64_t k = stop; k < i; k++) cut[c * i + k] = 0;
        hint_try_call(h, &part, "the last %lld of %lld terms of the sums are "
                      "dropped", (long long)(i - stop), (long long)i);
        memcpy(cut, w, (size_t)(o * i) * sizeof *cut);
    }
    if (begin > 0 && begin < i) {
        for (int64_t c = 0; c < o; c++)
            for (int64_t k = 0; k < begin; k++) cut[c * i + k] = 0;
        hint_try_call(h, &part, "the first %lld of %lld terms of the sums are "
                      "dropped", (long long)begin, (long long)i);
    }
    for (int64_t m = 0; m < 2 && i > 1; m++) {
        const int64_t k = m ? i - 1 : 0;
        memcpy(cut, w, (size_t)(o * i) * sizeof *cut);
        for (int64_t c = 0; c < o; c++) cut[c * i + k] *= 2;
        hint_try_call(h, &part, "term %lld of the sums is counted twice",
                      (long long)k);
    }
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

/* Sums kept in a narrow format, in the order of the definition. */
static void narrow_sums(hint *h, const tt_real *w, int64_t i)
{
    static const struct { tt_format f; const char *name; } formats[] = {
        {TT_FMT_F16, "f16"}, {TT_FMT_BF16, "bf16"}};
    const int64_t o = h->c;
    if (h->n * i > 4000000) return;
    for (int f = 0; f < 2; f++) {
        for (int64_t at = 0; at < h->n; at++) {
            const tt_real *x = h->q->x + at / o * i, *row = w + at % o * i;
            double s = 0;
            for (int64_t k = 0; k < i; k++)
                s = (double)tt_format_round(formats[f].f, (float)(
                    s + (double)x[k] * (double)row[k]));
            h->trial[at] = s + (h->q->b ? (double)h->q->b[at % o] : 0);
        }
        hint_try(h, h->trial, "sums are kept in %s", formats[f].name);
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
    cut_sum(h, wide, o, i);
    if (!hint_settled(h)) narrow_sums(h, wide, i);
    if (!hint_settled(h)) layout(h, wide, o, i);
}
