/* kernels_softmax.h: the softmax of one key block, the parts that all kernels
 * share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * AQ is the number of queries along the lanes; s [n, AQ] are logits. */
#ifndef TT_OPS_KERNELS_SOFTMAX_H
#define TT_OPS_KERNELS_SOFTMAX_H

#include <stdbool.h>

#include "ops/exact/kernels_vector.h"

#define SOFT (AQ / VS) /* vectors that hold one value of every query */
_Static_assert(SOFT * VS == AQ && SOFT <= SIDE, "queries in whole vectors");
#define AT_ONCE (SIDE / SOFT) /* keys that are taken side by side */

/* The largest logit of every query, of n > 0. A positive scale keeps the order
 * of numbers, rounded or not: their maximum is scaled alone. */
INLINE void largest(vs *top, const float *s, int64_t n, float scale)
{
    const float each = scale > 0 ? 1.0f : scale;
    EACH(SOFT) top[i] = vs_load(s + i * VS) * each;
    if (scale > 0)
        for (int64_t j = 1; j < n; j++)
            EACH(SOFT) top[i] = VS_MORE(vs_load(s + j * AQ + i * VS), top[i]);
    else
        for (int64_t j = 1; j < n; j++)
            EACH(SOFT) top[i] = VS_MORE(vs_load(s + j * AQ + i * VS) * scale,
                                        top[i]);
    if (scale > 0) EACH(SOFT) top[i] *= scale;
}

/* m, l and alpha from a block's maximum (m among it) and sum. */
INLINE void softmax_end(const vs *top, const vs *sum, float *restrict m,
                       float *restrict l, float *restrict alpha, bool first)
{
    vs p[SOFT];
    EACH(SOFT) p[i] = first ? vs_all(0) : vs_load(m + i * VS) - top[i];
    if (!first) vs_exp(p, SOFT);
    for (int i = 0; i < SOFT; i++) {
        int at = i * VS;
        vs_store(alpha + at, p[i]);
        vs_store(l + at,
                 first ? sum[i] : VS_FMA(vs_load(l + at), p[i], sum[i]));
        vs_store(m + at, top[i]);
    }
}

#endif
