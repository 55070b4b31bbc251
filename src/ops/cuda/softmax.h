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
#define NONE float_of(0xff800000u)       /* -infinity */

/* 2^(d scale) for d <= 0, as tc_exp2 of ops/tensor_core.h. */
DEVICE float exp2_of(float d, float scale, float least_d)
{
    const float magic = 0x1.8p23f + 127.0f;
    d = more_or_nan(d, least_d);
    const float n = fma_rn(d, scale, magic);
    const float f = fma_rn(d, scale, -add_rn(n, -magic));
    float p = fma_rn(0x1.409104p-7f, f, 0x1.ca9008p-5f);
    p = fma_rn(p, f, 0x1.ebf1b4p-3f);
    p = fma_rn(p, f, 0x1.62dfcap-1f);
    p = fma_rn(p, f, 1.0f);
    return mul_rn(p, float_of(bits_of(n) << 23));
}

/* What a lane holds of its two rows: the maximum, two sums of weights, and what
 * the sums before this block of keys shrink by. */
struct softmax {
    float scale, least_d, m[2], l[2][2], alpha[2];
};

DEVICE void begin(softmax &w, float scale)
{
    w.scale = scale;
    w.least_d = div_rn(-125.0f, scale);
    UNROLL
    for (int h = 0; h < 2; h++) {
        w.m[h] = NONE;
        w.l[h][0] = w.l[h][1] = 0.0f;
    }
}

/* s: logits in, weights out. RAGGED: there are `left` keys, not 128. */
template <bool RAGGED>
DEVICE void soften(softmax &w, sums (&s)[16], int left)
{
    const int l = threadIdx.x & 31;
    /* eight maxima a row: one would be a chain in which each waits for the one
     * before it */
    float top[2], part[4][4];
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
        top[h] = w.m[h];
        UNROLL
        for (int i = 0; i < 4; i++)
            top[h] = more(top[h], more(part[i][2 * h], part[i][2 * h + 1]));
        top[h] = more(top[h], lane_xor(top[h], 1));
        top[h] = more(top[h], lane_xor(top[h], 2));
        w.alpha[h] = exp2_of(add_rn(w.m[h], -top[h]), w.scale, w.least_d);
        w.m[h] = top[h];
        w.l[h][0] = mul_rn(w.l[h][0], w.alpha[h]);
        w.l[h][1] = mul_rn(w.l[h][1], w.alpha[h]);
    }
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) {
            float p = exp2_of(add_rn(s[j].r[e], -top[e / 2]), w.scale,
                              w.least_d);
            if (RAGGED && 8 * j + sum_col(l, e) >= left) p = 0.0f;
            w.l[e / 2][e % 2] = add_rn(w.l[e / 2][e % 2], p);
            s[j].r[e] = p;
        }
}

/* The sums before this block shrink; alpha is 1 where the maximum stayed. */
DEVICE void shrink(const softmax &w, sums (&acc)[16])
{
    if (w.alpha[0] == 1.0f && w.alpha[1] == 1.0f) return;
    UNROLL
    for (int j = 0; j < 16; j++)
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

/* The sums of all weights of the two rows. */
DEVICE void join(const softmax &w, float (&sum)[2])
{
    UNROLL
    for (int h = 0; h < 2; h++) {
        sum[h] = add_rn(w.l[h][0], w.l[h][1]);
        sum[h] = add_rn(sum[h], lane_xor(sum[h], 1));
        sum[h] = add_rn(sum[h], lane_xor(sum[h], 2));
    }
}

#endif
