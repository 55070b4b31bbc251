/* transpose_avx2.h: the transpose that packing is made of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_TRANSPOSE_AVX2_H
#define TT_OPS_TRANSPOSE_AVX2_H

#include <immintrin.h>
#include <stdint.h>

/* 8 x 8 transpose: rows src + i*ld, columns to dst + i*to. */
static inline void transpose8(float *dst, int64_t to, const float *src,
                              int64_t ld)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(src + i * ld);
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(dst + i * to,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(dst + (i + 4) * to,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

#endif
