/* kernels_tc_generic.c: the classes of tensor cores on any CPU, in vectors of
 * the base instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/exact.h"

#if !defined(TT_REAL_DOUBLE)

#include "ops/exact/tc_vector.h"

const tt_tc_kernels tt_tc_generic[2] = TC_KERNELS("generic");

#else
typedef int tt_no_tc_generic;
#endif
