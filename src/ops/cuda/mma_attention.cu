/* mma_attention.cu: softmax attention in the classes sm80 and sm90.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A warp owns 16 queries of a head and up to
 * 128 channels of their outputs. The logits of a block of MMA_KEYS keys, their
 * weights and the sums stay in its registers: a lane has the same rows and
 * columns of all three. Keys wait in shared memory while values come, and the
 * other way round.
 *
 * Holds   keys ascend in every chain, which goes on from sum * alpha. Keys
 *         after the end are zeros, and so are their weights. Heads wider than
 *         128 channels have a block of threads for each 128; each computes the
 *         same logits. */
#include "ops/cuda/softmax.h"

#define HIDDEN (-0x1p20f)         /* TC_HIDDEN */

/* Where 8 factors of a row lie: their places are exchanged by the row's number,
 * so that 8 rows lie in different banks. */
DEVICE int place(int row, int col)
{
    return row * MMA_CHANNELS + (col ^ (row & 7) * 8);
}

/* Channels [c0, c0 + 128) of a head's rows [r0, r0 + rows) on their way; zeros
 * after the end of both. */
DEVICE void stage(const cuda_mma_attention_args &a, bf16 *to, const bf16 *from,
                  int64_t r0, int64_t n, int64_t c0, int rows)
{
    const int row_of = MMA_CHANNELS / 8;
    for (int i = threadIdx.x; i < rows * row_of; i += MMA_THREADS) {
        const int r = i / row_of, c = i % row_of * 8;
        stage8(to + place(r, c), from + (r0 + r) * a.H * a.width + c0 + c,
               r0 + r < n && c0 + c < a.width);
    }
    copy_commit();
}

/* s: the chains of 16 queries and 128 keys go on over `channels`. */
DEVICE void add_logits(sums (&s)[16], const bf16 *q, const bf16 *k,
                       int64_t channels)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int d = 0; d < MMA_CHANNELS; d += 16) {
        if (d >= channels) continue;
        const factors_of x = load4x(q + (place(a_row(l), a_col(l)) ^ d));
        UNROLL
        for (int j = 0; j < 16; j += 2) {
            const factors_of y = load4x(k + 8 * j * MMA_CHANNELS +
                                        (place(b_row(l), b_col(l)) ^ d));
            mma(s[j], x, y.r[0], y.r[1]);
            mma(s[j + 1], x, y.r[2], y.r[3]);
        }
    }
}

/* Sums become logits where something is added to them: query i, key j. */
DEVICE float biased(const cuda_mma_attention_args &a, float s, int64_t h,
                    int64_t i, int64_t j)
{
    s = mul_rn(s, a.scale);
    if (i >= a.T || j >= a.N) return s;
    if (a.key_mask && !a.key_mask[j]) return HIDDEN;
    if (a.rel_bias)
        return add_rn(s, a.rel_bias[h * (2 * a.N - 1) + j - i + a.N - 1]);
    return s;
}

/* acc: the chains of 16 queries and `channels` go on over 128 keys. A lane's
 * weights of two groups of 8 keys are its factors of one step. */
DEVICE void add_values(sums (&acc)[17], const sums (&p)[16], const bf16 *v,
                       int64_t channels)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int k = 0; k < 8; k++) {
        const factors_of x = weights_of(p, k);
        mma(acc[16], x, ONES, ONES);   /* the denominator                    */
        UNROLL
        for (int d = 0; d < 16; d += 2) {
            if (8 * d >= channels) continue;
            const factors_of y = load4x_transposed(
                v + 16 * k * MMA_CHANNELS +
                (place(a_row(l), a_col(l)) ^ 8 * d));
            mma(acc[d], x, y.r[0], y.r[1]);
            mma(acc[d + 1], x, y.r[2], y.r[3]);
        }
    }
}

/* o of queries [i0, i0 + 16) and channels [c0, c0 + 128). */
DEVICE void store(const cuda_mma_attention_args &a,
                  const sums (&acc)[17], int64_t h, int64_t i0, int64_t c0)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int e = 0; e < 4; e += 2) {
        const int64_t i = i0 + sum_row(l, e);
        float *o = a.o + (i * a.H + h) * a.D;
        if (i >= a.T) continue;
        UNROLL
        for (int j = 0; j < 32; j++) {
            const int64_t c = c0 + j / 2 * 8 + sum_col(l, j % 2);
            if (c >= a.D) continue;
            o[c] = div_rn(acc[j / 2].r[e + j % 2], acc[16].r[e]);
        }
    }
}

/* ANY: whatever the width of a head is, with bias and mask; else heads of 128
 * without, whose next keys come while weights are computed. */
template <bool ANY> DEVICE void attend(const cuda_mma_attention_args &a)
{
    SHARED(bf16, keys);
    bf16 *const values = keys + MMA_KEYS * MMA_CHANNELS;
    bf16 *const queries = values + MMA_KEYS * MMA_CHANNELS;
    const int warp = threadIdx.x / 32;
    const int64_t pieces = ANY ? (a.D + MMA_CHANNELS - 1) / MMA_CHANNELS : 1;
    const int64_t h = blockIdx.y / pieces;
    const int64_t c0 = blockIdx.y % pieces * MMA_CHANNELS;
    const int64_t i0 = (int64_t)blockIdx.x * MMA_QUERIES;
    const bf16 *q = a.q + h * a.width, *k = a.k + h * a.width;
    const bf16 *v = a.v + h * a.width;
    const bf16 *own = queries + 16 * warp * MMA_CHANNELS;
    const bool added = ANY && (a.rel_bias || a.key_mask);
    softmax w;
    sums s[16], acc[17];
    begin(w, added ? LOG2E : mul_rn(a.scale, LOG2E));
    clear(acc);
    if (!ANY) {
        stage(a, queries, q, i0, a.T, 0, MMA_QUERIES);
        stage(a, keys, k, 0, a.N, 0, MMA_KEYS);
    }
    for (int64_t j0 = 0; j0 < a.N; j0 += MMA_KEYS) {
        stage(a, values, v, j0, a.N, c0, MMA_KEYS);
        clear(s);
        for (int64_t d = 0; d < a.width; d += MMA_CHANNELS) {
            if (ANY) {
                stage(a, queries, q, i0, a.T, d, MMA_QUERIES);
                stage(a, keys, k, j0, a.N, d, MMA_KEYS);
                copy_wait<0>();
            } else
                copy_wait<1>();
            __syncthreads();
            add_logits(s, own, keys, ANY ? a.width - d : MMA_CHANNELS);
            __syncthreads();
        }
        if (!ANY) stage(a, keys, k, j0 + MMA_KEYS, a.N, 0, MMA_KEYS);
        if (added)
            UNROLL
            for (int j = 0; j < 16; j++)
                UNROLL
                for (int e = 0; e < 4; e++) {
                    const int l = threadIdx.x & 31;
                    s[j].r[e] = biased(a, s[j].r[e], h,
                                       i0 + 16 * warp + sum_row(l, e),
                                       j0 + 8 * j + sum_col(l, e));
                }
        if (j0 + MMA_KEYS <= a.N) weigh<false>(w, s, 0);
        else weigh<true>(w, s, (int)(a.N - j0));
        shrink(w, acc);
        if (!ANY) copy_wait<1>();
        __syncthreads();
        add_values(acc, s, values, ANY ? a.width - c0 : MMA_CHANNELS);
        __syncthreads();
    }
    store(a, acc, h, i0 + 16 * warp, c0);
}

KERNEL(mma_attention, cuda_mma_attention_args, MMA_THREADS, 1)
{
    attend<true>(a);
}

KERNEL(mma_attention_128, cuda_mma_attention_args, MMA_THREADS, 1)
{
    attend<false>(a);
}
