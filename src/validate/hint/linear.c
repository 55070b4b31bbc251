/* linear.c: how a matrix product goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

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
    };
    if (h->q->b) HINT_TRY_EACH(h, list);
}

static void cut_sum(hint *h, int64_t i)
{
    int64_t part[PARTS_MOST];
    const int n = hint_parts(i, part);
    for (int k = 0; k < n; k++) {
        hint_try_fault(h, F(.tail = part[k]), "the last %lld of %lld terms of "
                       "the sums are dropped", (long long)part[k],
                       (long long)i);
        hint_try_fault(h, F(.head = part[k]), "the first %lld of %lld terms of "
                       "the sums are dropped", (long long)part[k],
                       (long long)i);
    }
    if (h->n * i > 4000000) return;
    hint_try_fault(h, F(.narrow = true, .sums = TT_FMT_F16),
                   "sums are kept in f16");
    hint_try_fault(h, F(.narrow = true, .sums = TT_FMT_BF16),
                   "sums are kept in bf16");
}

static void linear_layout(hint *h, int64_t i)
{
    const hint_trial list[] = {
        {true, F(.weight = WEIGHT_TRANSPOSED),
         "weight transposed: read as [in, out]"},
        {i % 2 == 0, F(.weight = WEIGHT_HALVES),
         "halves of the inputs exchanged"},
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
