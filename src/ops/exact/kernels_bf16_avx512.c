/* kernels_bf16_avx512.c: classes amx and vdp on AVX-512, 8 rows x 48 lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * With float multiply-adds. VDPBF16PS, where class vdp can have it, is
 * kernels_vdp_avx512bf16.c. It is of no use to class amx, which has two chains
 * where it has one. */
#include "ops/exact/exact.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

#include "ops/exact/transpose_avx512.h"

#define NR 48
#define BLOCK 16
#define TURN transpose16
#include "ops/exact/bf16_pack.h"

#define MR 8
#define W 16
#define ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define V __m512
#define ZERO _mm512_setzero_ps
#define SET1 _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define FMA _mm512_fmadd_ps
#define ADD _mm512_add_ps
#include "ops/exact/bf16_x86.h"

const tt_bf16_kernels tt_bf16_avx512 =
    BF16_KERNELS(x86, amx, "avx512", AVX512);
const tt_bf16_kernels tt_vdp_avx512 =
    BF16_KERNELS(x86, vdp, "avx512", AVX512);

#else
typedef int tt_no_bf16_avx512;
#endif
