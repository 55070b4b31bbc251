/* softmax.h: weights of attention in the classes sm80 and sm90.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: golden_tensor_core_attend. A lane has two rows of 16 queries, and of
 * 128 keys those that the sums of a step give it: the same for logits, weights
 * and outputs. */
#ifndef TT_CUDA_SOFTMAX_H
#define TT_CUDA_SOFTMAX_H

#include "ops/cuda/mma.h"

#define LOG2E 0x1.715476p+0f
#define NONE float_of(0xff800000u)       /* -infinity                         */
#define TO_QUANTUM 0x1.8p13f             /* TC_TO_QUANTUM, TC_TO_INTEGER      */
#define TO_INTEGER 0x1.8p23f
#define ONES 0x3f803f80u                 /* two factors                       */

/* What a lane holds of its two rows: the integer maximum that exponents are
 * relative to, and alpha, by which sums of earlier keys are multiplied. */
struct softmax {
    float scale, m[2], alpha[2];
};

DEVICE void begin(softmax &w, float scale)
{
    w.scale = scale;
    w.m[0] = w.m[1] = -0x1p22f;
}

/* s: logits in, weights out, not yet rounded. RAGGED: `left` of the 128 keys
 * exist. */
template <bool RAGGED>
DEVICE void weigh(softmax &w, sums (&s)[16], int left)
{
    const int l = threadIdx.x & 31;
    /* eight maxima a row: one would be a chain in which each waits for the one
     * before it */
    float part[4][4], from[2];
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) {
            if (RAGGED && 8 * j + sum_col(l, e) >= left)
                s[j].r[e] = NONE;
            part[j % 4][e] = j < 4 ? s[j].r[e]
                                   : more(part[j % 4][e], s[j].r[e]);
        }
    UNROLL
    for (int h = 0; h < 2; h++) {
        float top = NONE;
        UNROLL
        for (int i = 0; i < 4; i++)
            top = more(top, more(part[i][2 * h], part[i][2 * h + 1]));
        top = more(top, lane_xor(top, 1));
        top = more(top, lane_xor(top, 2));
        const float before = w.m[h];
        w.m[h] = more(before, add_rn(fma_rn(top, w.scale, TO_INTEGER),
                                     -TO_INTEGER));
        const float e = more(add_rn(before, -w.m[h]), -127.0f);
        w.alpha[h] = float_of(bits_of(add_rn(e, TO_INTEGER + 127.0f)) << 23);
        from[h] = add_rn(TO_QUANTUM, -w.m[h]);
    }
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++)
            s[j].r[e] = exp2_near(add_rn(fma_rn(s[j].r[e], w.scale,
                                                from[e / 2]), -TO_QUANTUM));
}

/* Sums of earlier keys are multiplied by alpha, which is 1 where m stayed. */
DEVICE void shrink(const softmax &w, sums (&acc)[17])
{
    if (w.alpha[0] == 1.0f && w.alpha[1] == 1.0f) return;
    UNROLL
    for (int j = 0; j < 17; j++)
        UNROLL
        for (int e = 0; e < 4; e++)
            acc[j].r[e] = mul_rn(acc[j].r[e], w.alpha[e / 2]);
}

/* Weights of keys [16 k, 16 k + 16) as the factors of one step: a lane has
 * them, of two groups of 8 keys. */
DEVICE factors_of weights_of(const sums (&p)[16], int k)
{
    return {{two_factors(p[2 * k].r[0], p[2 * k].r[1]),
             two_factors(p[2 * k].r[2], p[2 * k].r[3]),
             two_factors(p[2 * k + 1].r[0], p[2 * k + 1].r[1]),
             two_factors(p[2 * k + 1].r[2], p[2 * k + 1].r[3])}};
}

#endif
