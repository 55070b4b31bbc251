/* transpose_avx512.h: the transpose that packing is made of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_TRANSPOSE_AVX512_H
#define TT_OPS_TRANSPOSE_AVX512_H

#include <immintrin.h>
#include <stdint.h>

/* 16 x 16 transpose in registers. */
static inline __attribute__((always_inline)) void flip16(__m512 *r)
{
    __m512 t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    /* r[4g + c] holds, in 128-bit part q, column 4q + c of rows 4g .. 4g+3 */
    for (int c = 0; c < 4; c++) {
        __m512 a = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
        __m512 b = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
        __m512 d = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd);
        __m512 e = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
        r[c] = _mm512_shuffle_f32x4(a, b, 0x88);
        r[c + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
        r[c + 4] = _mm512_shuffle_f32x4(d, e, 0x88);
        r[c + 12] = _mm512_shuffle_f32x4(d, e, 0xdd);
    }
}

/* 16 x 16 transpose: rows src + i*ld, columns to dst + i*to. */
static inline void transpose16(float *dst, int64_t to, const float *src,
                               int64_t ld)
{
    __m512 r[16];
    for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(src + i * ld);
    flip16(r);
    for (int i = 0; i < 16; i++) _mm512_storeu_ps(dst + i * to, r[i]);
}

#endif
