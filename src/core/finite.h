/* finite.h: is none of these numbers infinite or NaN?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_FINITE_H
#define TT_CORE_FINITE_H

#include "core/tensor.h"

static inline bool tt_all_finite(const tt_host *x, int64_t n)
{
    tt_host zero = 0;
    for (int64_t i = 0; i < n; i++) zero += x[i] * 0;
    return zero == 0; /* NaN * 0 and inf * 0 are NaN */
}

#endif
