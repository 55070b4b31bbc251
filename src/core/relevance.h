/* relevance.h: what GRAB computes of its candidates (cache/grab.h), as inline
 * functions: the cache has it of a round, and a device may of the next.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_RELEVANCE_H
#define TT_CORE_RELEVANCE_H

#include <math.h>
#include <stdint.h>

#include "tether/mathfn.h"

/* In place: x[i] = exp(x[i] - max) / sum. */
static inline void relevance_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > top) top = x[i];
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Eq. 7, the temporal scale: half the span of the candidates, at least 1. */
static inline double relevance_scale(const int64_t *index, int64_t n)
{
    int64_t lo = index[0], hi = index[0];
    for (int64_t i = 1; i < n; i++) {
        if (index[i] < lo) lo = index[i];
        if (index[i] > hi) hi = index[i];
    }
    const double half = 0.5 * (double)(hi - lo + 1);
    return half > 1 ? half : 1;
}

/* Eqs. 8 and 9, diversity of candidate c: 1 less its redundancy, which is the
 * heaviest neighbour, by importance times closeness in time. */
static inline double relevance_div(const int64_t *index, const double *mass,
                                   int64_t n, int64_t c, double sigma)
{
    double most = 0;
    for (int64_t o = 0; o < n; o++) {
        if (o == c) continue;
        const double gap = fabs((double)(index[c] - index[o]));
        const double sim = tt_exp(-gap / sigma) * mass[o];
        if (sim > most) most = sim;
    }
    return 1 - most > 0 ? 1 - most : 0;
}

#endif
