/* bf16_softmax.h: softmax weights that go to packed lanes, with AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where no weight is near FLT_MIN (logits within 87 of the maximum) 2^k is an
 * addition to the exponent, and VCVTNE2PS2BF16 rounds as the classes do. Comes
 * after bf16_pairs.h. */
#define AQ NR
#include "ops/exact/kernels_softmax.h"
_Static_assert(AT_ONCE >= 2, "a pair of keys");

/* The largest and the smallest logit of every query; n > 0. From the last key
 * to the first: the last ones are in the first cache still, and the first ones
 * will be when the weights begin with them. */
INLINE void range(vs *top, vs *low, const float *s, int64_t n)
{
    EACH(SOFT) top[i] = low[i] = vs_load(s + (n - 1) * NR + i * VS);
    for (int64_t j = n - 2; j >= 0; j--)
        EACH(SOFT) {
            const vs v = vs_load(s + j * NR + i * VS);
            top[i] = VS_MORE(v, top[i]);
            low[i] = VS_LESS(v, low[i]);
        }
}

/* Is low * scale - top at least -87 for every query? */
INLINE bool all_near(const vs *low, float scale, const vs *top)
{
    __mmask16 far = 0;
    EACH(SOFT)
        far |= _mm512_cmp_ps_mask((__m512)(low[i] * scale - top[i]),
                                  _mm512_set1_ps(-87.0f), _CMP_NGE_UQ);
    return !far;
}

/* The weights of n / SOFT keys. */
INLINE void weigh(vs *p, vs *sum, const float *s, float scale, const vs *top,
                  int n)
{
    EACH(n) p[i] = vs_load(s + i * VS) * scale - top[i % SOFT];
    vs_exp_near(p, n);
    EACH(n) sum[i % SOFT] += p[i];
}

/* pairs_of, of numbers not near FLT_MIN: by that instruction in files that are
 * compiled for it. */
INLINE __m512i near_pairs(vs even, vs odd)
{
#ifdef __AVX512BF16__
    static const uint16_t adjacent[BF16_GROUP] = {
        0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31,
    };
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)odd,
                                                      (__m512)even);
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(adjacent), both);
#else
    return pairs_of((__m512)even, (__m512)odd);
#endif
}

INLINE void give_pairs(uint16_t *y, const vs *even, const vs *odd)
{
    EACH(SOFT)
        _mm512_storeu_si512(y + i * BF16_GROUP, near_pairs(even[i], odd[i]));
}

/* Weights go from registers to lanes. A NaN logit is a bf16 number still, so
 * that its lowest bits are zero as vs_exp_near asks. */
static bool softmax(void *lanes, const float *s, int64_t n, float scale,
                   float *restrict m, float *restrict l, float *restrict alpha,
                   bool first)
{
    vs top[SOFT], low[SOFT], sum[SOFT], p[2 * SOFT]; /* of a pair of keys */
    uint16_t *y = lanes;
    int64_t j = 0;
    if (!(scale > 0)) return false;
    range(top, low, s, n);
    EACH(SOFT) top[i] *= scale;
    EACH(SOFT) if (!first) top[i] = VS_MORE(top[i], vs_load(m + i * VS));
    if (!all_near(low, scale, top)) return false;
    EACH(SOFT) sum[i] = vs_all(0);
    for (; j + 2 <= n; j += 2, s += 2 * NR, y += 2 * NR) {
        weigh(p, sum, s, scale, top, 2 * SOFT);
        give_pairs(y, p, p + SOFT);
    }
    if (j < n) {
        weigh(p, sum, s, scale, top, SOFT);
        EACH(SOFT) p[SOFT + i] = vs_all(0);
        give_pairs(y, p, p + SOFT);
        j += 2, y += 2 * NR;
    }
    memset(y, 0, (size_t)((padded(n) - j) * NR) * sizeof *y);
    softmax_end(top, sum, m, l, alpha, first);
    return true;
}
