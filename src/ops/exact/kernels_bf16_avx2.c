/* kernels_bf16_avx2.c: classes amx and vdp on AVX2 + FMA, 4 rows x 24 lanes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/exact.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

#include "ops/exact/transpose_avx2.h"

#define NR 24
#define BLOCK 8
#define TURN transpose8
#include "ops/exact/bf16_pack.h"

#define MR 4
#define W 8
#define ROWS(X) X(0) X(1) X(2) X(3)
#define V __m256
#define ZERO _mm256_setzero_ps
#define SET1 _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define FMA _mm256_fmadd_ps
#define ADD _mm256_add_ps
#include "ops/exact/bf16_x86.h"

const tt_bf16_kernels tt_bf16_avx2 =
    BF16_KERNELS(x86, amx, "avx2", AVX2);
const tt_bf16_kernels tt_vdp_avx2 =
    BF16_KERNELS(x86, vdp, "avx2", AVX2);

#else
typedef int tt_no_bf16_avx2;
#endif
