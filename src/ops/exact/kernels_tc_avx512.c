/* kernels_tc_avx512.c: the classes of tensor cores on AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/exact.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

#include "ops/exact/tc_vector.h"

const tt_tc_kernels tt_tc_avx512[2] = TC_KERNELS("avx512");

#else
typedef int tt_no_tc_avx512;
#endif
