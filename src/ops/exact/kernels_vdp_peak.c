/* kernels_vdp_peak.c: how many products VDPBF16PS does when nothing is loaded.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/bf16.h"

#if defined(TT_HAVE_AVX512BF16) && !defined(TT_REAL_DOUBLE)

#include <immintrin.h>

#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define START(r)                                                               \
    __m512 x##r = _mm512_set1_ps(r), y##r = x##r, z##r = x##r;
#define STEP(r)                                                                \
    x##r = _mm512_dpbf16_ps(x##r, v, b0);                                      \
    y##r = _mm512_dpbf16_ps(y##r, v, b1);                                      \
    z##r = _mm512_dpbf16_ps(z##r, v, b2);
#define KEEP(r)                                                                \
    kept = _mm512_cvtss_f32(_mm512_add_ps(x##r, _mm512_add_ps(y##r, z##r)));

/* As many accumulators as a tile has; a pair is four operations. */
double vdp_loop(int64_t n)
{
    volatile int seed = 0;
    volatile float kept;
    const __m512bh v = (__m512bh)_mm512_set1_epi32(seed), b0 = v;
    const __m512bh b1 = (__m512bh)_mm512_set1_epi32(seed);
    const __m512bh b2 = (__m512bh)_mm512_set1_epi32(seed);
    ALL(START)
    for (int64_t k = 0; k < n; k++) {
        ALL(STEP)
    }
    ALL(KEEP)
    (void)kept;
    return 4.0 * 24 * 16 * (double)n;
}

#else
typedef int tt_no_vdp_peak;
#endif
