/* reduce.h: the two orders in which this project sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They are part of the contract: src/ops/README.md. */
#ifndef TT_OPS_REDUCE_H
#define TT_OPS_REDUCE_H

#include <math.h>

#include "core/fma.h"
#include "ops/frozen.h"
#include "ops/ops.h"

/* a*b + c with one rounding, in the compute type. */
static inline tt_real fma_real(tt_real a, tt_real b, tt_real c)
{
#ifdef TT_REAL_DOUBLE
    return fma_f64(a, b, c);
#else
    return fma_f32(a, b, c);
#endif
}

/* dot: blocks of TT_DOT_BLOCK, one fma chain from 0 inside a block, block sums
 * added in ascending order. a[k] is at a[k * step]. */
static inline tt_real dot_strided(const tt_real *a, int64_t step,
                                  const tt_real *b, int64_t n)
{
    tt_real sum = 0;
    for (int64_t k0 = 0; k0 < n; k0 += TT_DOT_BLOCK) {
        int64_t k1 = k0 + TT_DOT_BLOCK < n ? k0 + TT_DOT_BLOCK : n;
        tt_real s = 0;
        for (int64_t k = k0; k < k1; k++) s = fma_real(a[k * step], b[k], s);
        sum = k0 == 0 ? s : sum + s;
    }
    return sum;
}

static inline tt_real dot_real(const tt_real *a, const tt_real *b, int64_t n)
{
    return dot_strided(a, 1, b, n);
}

/* stat: join 16 interleaved double lanes. */
static inline double join_lanes(const double *lane)
{
    double l[TT_LANES];
    for (int i = 0; i < TT_LANES; i++) l[i] = lane[i];
    for (int h = TT_LANES / 2; h > 0; h /= 2)
        for (int i = 0; i < h; i++) l[i] += l[i + h];
    return l[0];
}

#endif
