/* wgmma_attention.cu: softmax attention of heads of 128 without bias or mask in
 * class sm90, by the instructions that only sm_90 has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads owns 128 queries of a
 * head, each of two warpgroups 64, whose logits, weights and sums never
 * leave registers. A third one brings keys and values. The logits of the next
 * keys are computed before the present values are added up, so that weights are
 * computed while the tensor cores are busy.
 *
 * Holds   keys ascend in every chain, which goes on from sum * alpha; the first
 *         begins at zero. Blocks are filled up with zeros, and so are weights.
 */
#include "ops/cuda/softmax.h"
#include "ops/cuda/wgmma.h"

#if HAS_WGMMA
#define WARPS (WGMMA_ATTENTION_THREADS / 32 - 4)      /* that multiply        */

/* What a block of threads computes: queries [128 tile + 64 half, ...), 128 or,
 * where it has one warpgroup alone, 64 of a head. */
struct share {
    int64_t tile, head;
    int half, warps;
};

DEVICE share share_of(const cuda_wgmma_attention_args &a)
{
    const int64_t b = blockIdx.x;
    const bool whole = b < a.whole;
    const int64_t n = whole ? b : a.whole + (b - a.whole) / 2;
    return {n % a.tiles, n / a.tiles, whole ? 0 : (int)((b - a.whole) % 2),
            whole ? WARPS : WARPS / 2};
}

/* What lies in shared memory: pairs of blocks, 128 rows of 128 factors, of
 * queries, then of keys and of values. Number t of these two lies at place
 * t % WGMMA_KEYS. */
struct places {
    bf16 *q, *k, *v;
    arrivals *queries, *keys, *keys_free, *values, *values_free;
};

DEVICE int place(int t) { return t % WGMMA_KEYS; }
DEVICE int turn(int t) { return t / WGMMA_KEYS; }
DEVICE bf16 *pair(bf16 *first, int t) { return first + place(t) * WGMMA_PAIR; }

DEVICE places lay_out()
{
    SHARED(bf16, mem);
    places p;
    p.q = mem;
    p.k = p.q + WGMMA_PAIR;
    p.v = p.k + WGMMA_KEYS * WGMMA_PAIR;
    p.queries = (arrivals *)(p.v + WGMMA_KEYS * WGMMA_PAIR);
    p.keys = p.queries + 1;
    p.keys_free = p.keys + WGMMA_KEYS;
    p.values = p.keys_free + WGMMA_KEYS;
    p.values_free = p.values + WGMMA_KEYS;
    return p;
}

/* Pair number t of a head's rows on its way, when its place is free. */
DEVICE void bring(bf16 *to, const bf16 *from, int t, int64_t row,
                  arrivals *full, arrivals *empty)
{
    await(empty + place(t), turn(t) - 1);
    arrive_and(full + place(t), 2 * BLOCK_BYTES);
    copy_block(to, from + t * row, 2 * BLOCK_BYTES, full + place(t));
}

/* Queries, and all keys and values in the order in which they are needed. */
DEVICE void bring_all(const cuda_wgmma_attention_args &a, const places &p,
                      const share &own)
{
    const int tiles = (int)((a.N + BLOCK_ROWS - 1) / BLOCK_ROWS);
    const int64_t row = a.H * WGMMA_PAIR, head = own.head * WGMMA_PAIR;
    arrive_and(p.queries, 2 * BLOCK_BYTES);
    copy_block(p.q, a.q + own.tile * row + head, 2 * BLOCK_BYTES, p.queries);
    for (int t = 0; t <= tiles; t++) {
        if (t < tiles)
            bring(pair(p.k, t), a.k + head, t, row, p.keys, p.keys_free);
        if (t > 0)
            bring(pair(p.v, t - 1), a.v + head, t - 1, row, p.values,
                  p.values_free);
    }
}

/* Behind wgmma_begin. s: the chains of 64 queries and 128 keys. */
DEVICE void add_logits(sums (&s)[16], const bf16 *q, const bf16 *k)
{
    UNROLL
    for (int c = 0; c < 2 * BLOCK_K; c += 16) {
        const int half = c / BLOCK_K * BLOCK_FACTORS;
        const uint64_t x = matrix_at(q + half, c % BLOCK_K);
        const uint64_t y = matrix_at(k + half, c % BLOCK_K);
        if (c == 0) wgmma_first(s, x, y);
        else wgmma(s, x, y);
    }
    wgmma_commit();
}

/* Behind wgmma_begin. acc: the chains of 64 queries and 128 channels go on over
 * 128 keys. */
DEVICE void add_values(sums (&acc)[16], const factors_of (&p)[8], const bf16 *v)
{
    UNROLL
    for (int k = 0; k < 8; k++)
        wgmma(acc, p[k], turned_at(v, 16 * k));
    wgmma_commit();
}

/* Weights of keys number t out of their logits. */
DEVICE void soften(softmax &w, sums (&s)[16], int t, int64_t n)
{
    const int64_t left = n - (int64_t)t * BLOCK_ROWS;
    if (left >= BLOCK_ROWS) soften<false>(w, s, 0);
    else soften<true>(w, s, (int)left);
}

DEVICE void pack(factors_of (&p)[8], const sums (&s)[16])
{
    UNROLL
    for (int k = 0; k < 8; k++) p[k] = weights_of(s, k);
}

/* o of queries [i0, i0 + 16). */
DEVICE void store(const cuda_wgmma_attention_args &a, const softmax &w,
                  const sums (&acc)[16], int64_t head, int64_t i0)
{
    const int l = threadIdx.x & 31;
    float sum[2];
    join(w, sum);
    UNROLL
    for (int e = 0; e < 4; e++) {
        const int64_t i = i0 + sum_row(l, e);
        float *o = a.o + (i * a.H + head) * MMA_CHANNELS + sum_col(l, e);
        if (i >= a.T) continue;
        UNROLL
        for (int j = 0; j < 16; j++)
            o[8 * j] = div_rn(add_rn(acc[j].r[e], 0.0f), sum[e / 2]);
    }
}

/* The outputs of a warpgroup. */
DEVICE void attend(const cuda_wgmma_attention_args &a, const places &p,
                   const share &own)
{
    const int tiles = (int)((a.N + BLOCK_ROWS - 1) / BLOCK_ROWS);
    const int row = 64 * own.half + threadIdx.x / 128 * 64;
    const bf16 *q = p.q + row * BLOCK_K;
    softmax w;
    sums s[16], acc[16];
    factors_of weights[8];
    begin(w, mul_rn(a.scale, LOG2E));
    clear(acc);
    await(p.queries, 0);
    await(p.keys, 0);
    wgmma_begin();
    add_logits(s, q, p.k);
    wgmma_wait<0>();
    wgmma_tie(s);
    release(p.keys_free);
    soften(w, s, 0, a.N);
    pack(weights, s);
    for (int t = 1; t < tiles; t++) {
        await(p.keys + place(t), turn(t));
        await(p.values + place(t - 1), turn(t - 1));
        wgmma_tie(acc);
        wgmma_tie(weights);
        wgmma_begin();
        add_logits(s, q, pair(p.k, t));
        add_values(acc, weights, pair(p.v, t - 1));
        wgmma_wait<1>();
        wgmma_tie(s);
        release(p.keys_free + place(t));
        soften(w, s, t, a.N);
        wgmma_wait<0>();
        wgmma_tie(acc);
        release(p.values_free + place(t - 1));
        shrink(w, acc);
        pack(weights, s);
    }
    const int last = tiles - 1;
    await(p.values + place(last), turn(last));
    wgmma_tie(acc);
    wgmma_tie(weights);
    wgmma_begin();
    add_values(acc, weights, pair(p.v, last));
    wgmma_wait<0>();
    wgmma_tie(acc);
    store(a, w, acc, own.head, own.tile * BLOCK_ROWS + row +
                               threadIdx.x / 32 % 4 * 16);
}
#endif

KERNEL(wgmma_attention, cuda_wgmma_attention_args, WGMMA_ATTENTION_THREADS, 1)
{
#if HAS_WGMMA
    const places p = lay_out();
    const share own = share_of(a);
    if (threadIdx.x == 0) {
        arrivals_of(p.queries, 1);
        for (int i = 0; i < WGMMA_KEYS; i++) {
            arrivals_of(p.keys + i, 1);
            arrivals_of(p.values + i, 1);
            arrivals_of(p.keys_free + i, own.warps);
            arrivals_of(p.values_free + i, own.warps);
        }
        arrivals_show();
    }
    __syncthreads();
    if (threadIdx.x < 32 * WARPS) {
        registers_take<240>();
        if ((int)threadIdx.x < 32 * own.warps) attend(a, p, own);
    } else {
        registers_leave<24>();
        if (threadIdx.x == 32 * WARPS) bring_all(a, p, own);
    }
#else
    nothing_here();
#endif
}
