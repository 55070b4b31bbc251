/* wgmma_attention.cu: softmax attention of heads of 128 without bias or mask in
 * class sm90, by the instructions that only sm_90 has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads owns 128 queries of a
 * head, each of two warpgroups 64, which it rounds first, and whose logits,
 * weights and sums never leave registers. A third one brings keys and values,
 * and does not wait for queries. The logits of the next
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
 * t % WGMMA_KEYS. A block of ones follows each pair of values: one channel
 * more, whose sums are the denominators (the instruction wants eight). */
struct places {
    bf16 *q, *k, *v;
    arrivals *queries, *keys, *keys_free, *values, *values_free;
};

DEVICE int place(int t) { return t % WGMMA_KEYS; }
DEVICE int turn(int t) { return t / WGMMA_KEYS; }
DEVICE bf16 *pair(bf16 *first, int t) { return first + place(t) * WGMMA_PAIR; }
DEVICE bf16 *value(bf16 *first, int t)
{
    return first + place(t) * WGMMA_VALUES;
}

DEVICE places lay_out()
{
    SHARED(bf16, mem);
    places p;
    p.q = mem;
    p.k = p.q + WGMMA_PAIR;
    p.v = p.k + WGMMA_KEYS * WGMMA_PAIR;
    p.queries = (arrivals *)(p.v + WGMMA_KEYS * WGMMA_VALUES);
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

/* All keys and values in the order in which they are needed. */
DEVICE void bring_all(const cuda_wgmma_attention_args &a, const places &p,
                      const share &own)
{
    const int tiles = (int)((a.N + BLOCK_ROWS - 1) / BLOCK_ROWS);
    const int64_t row = a.H * WGMMA_PAIR, head = own.head * WGMMA_PAIR;
    for (int t = 0; t <= tiles; t++) {
        if (t < tiles)
            bring(pair(p.k, t), a.k + head, t, row, p.keys, p.keys_free);
        if (t > 0)
            bring(value(p.v, t - 1), a.v + head, t - 1, row, p.values,
                  p.values_free);
    }
}

/* The queries of a warpgroup from `row` of the tile on, rounded; the last one
 * stands for those after the end. QUADS: numbers are read four at a time. */
template <bool QUADS>
DEVICE void put_queries(const cuda_wgmma_attention_args &a, const places &p,
                        const share &own, int row)
{
    const int t = threadIdx.x % 128, c = t % 16;
    const float *const q = a.q + own.head * MMA_CHANNELS + 8 * c;
    bf16 *const to = p.q + c / 8 * BLOCK_FACTORS;
    uint4 v[8];
    row += t / 16;
    UNROLL
    for (int r = 0; r < 8; r++) {        /* all are on their way at once      */
        const int64_t i = own.tile * BLOCK_ROWS + row + 8 * r;
        const float *x = q + least(i, a.T - 1) * a.q_stride;
        v[r] = QUADS ? eight_of(load4(x), load4(x + 4))
                     : eight_of(four(x[0], x[1], x[2], x[3]),
                                four(x[4], x[5], x[6], x[7]));
    }
    UNROLL
    for (int r = 0; r < 8; r++)
        store_factors(to + swizzled(row + 8 * r, c % 8), v[r]);
    written();
    release(p.queries);
}

/* After wgmma_begin. s: the chains of 64 queries and 128 keys; q and k say
 * where their first factors are (matrix_at). Those of the next step are a
 * constant further. */
DEVICE void add_logits(sums (&s)[16], uint64_t q, uint64_t k)
{
    UNROLL
    for (int c = 0; c < 2 * BLOCK_K; c += 16) {
        const int on = (c / BLOCK_K * BLOCK_BYTES + 2 * (c % BLOCK_K)) / 16;
        if (c == 0) wgmma_first(s, q + on, k + on);
        else wgmma(s, q + on, k + on);
    }
    wgmma_commit();
}

/* After wgmma_begin. acc: the chains of 64 queries, 128 channels and the ones
 * go on over 128 keys, whose values begin at v (transposed_at). */
DEVICE void add_values(sums (&acc)[17], const factors_of (&p)[8], uint64_t v)
{
    UNROLL
    for (int k = 0; k < 8; k++) wgmma(acc, p[k], v + 2 * BLOCK_K * k);
    wgmma_commit();
}

DEVICE void pack(factors_of (&p)[8], const sums (&s)[16])
{
    UNROLL
    for (int k = 0; k < 8; k++) p[k] = weights_of(s, k);
}

/* The ones of every place. */
DEVICE void put_ones(bf16 *v)
{
    const int eights = BLOCK_FACTORS / 8;
    for (int i = threadIdx.x; i < WGMMA_KEYS * eights;
         i += WGMMA_ATTENTION_THREADS)
        store_factors(v + i / eights * WGMMA_VALUES + WGMMA_PAIR +
                      i % eights * 8, uint4{ONES, ONES, ONES, ONES});
    written();
}

/* o of queries [i0, i0 + 16), two channels side by side at a time. */
DEVICE void store(const cuda_wgmma_attention_args &a, const sums (&acc)[17],
                  int64_t head, int64_t i0)
{
    const int l = threadIdx.x & 31;
    UNROLL
    for (int e = 0; e < 4; e += 2) {
        const int64_t i = i0 + sum_row(l, e);
        if (i >= a.T) continue;
        UNROLL
        for (int j = 0; j < 16; j++) {
            const int64_t c = head * MMA_CHANNELS + 8 * j + sum_col(l, e);
            const float one = div_rn(acc[j].r[e], acc[16].r[e]);
            const float two = div_rn(acc[j].r[e + 1], acc[16].r[e + 1]);
            float *o = a.o + i * a.H * MMA_CHANNELS + c;
            if (a.blocks)
                *(uint32_t *)(a.blocks + in_blocks((int)i, c, 2 * a.H)) =
                    two_factors(one, two);
            else
                o[0] = one, o[1] = two;
        }
    }
}

/* The registers of a warpgroup, and where its queries are (matrix_at). */
struct group {
    softmax w;
    sums s[16], acc[17];
    factors_of weights[8];
    uint64_t q;
};

/* Logits and weights of keys number t, while values of the keys before them are
 * added up. RAGGED: perhaps fewer than 128 keys. */
template <bool RAGGED>
DEVICE void step(const cuda_wgmma_attention_args &a, const places &p, group &g,
                 int t)
{
    await(p.keys + place(t), turn(t));
    await(p.values + place(t - 1), turn(t - 1));
    wgmma_tie(g.acc);
    wgmma_tie(g.weights);
    wgmma_begin();
    add_logits(g.s, g.q, matrix_at(pair(p.k, t), 0));
    add_values(g.acc, g.weights, transposed_at(value(p.v, t - 1)));
    wgmma_wait<1>();
    wgmma_tie(g.s);
    release(p.keys_free + place(t));
    weigh<RAGGED>(g.w, g.s, (int)(a.N - (int64_t)t * BLOCK_ROWS));
    wgmma_wait<0>();
    wgmma_tie(g.acc);
    release(p.values_free + place(t - 1));
    shrink(g.w, g.acc);
    pack(g.weights, g.s);
}

/* The outputs of a warpgroup. */
DEVICE void attend(const cuda_wgmma_attention_args &a, const places &p,
                   const share &own)
{
    const int last = (int)((a.N + BLOCK_ROWS - 1) / BLOCK_ROWS) - 1;
    const int row = 64 * own.half + threadIdx.x / 128 * 64;
    group g;
    g.q = matrix_at(p.q + row * BLOCK_K, 0);
    begin(g.w, mul_rn(a.scale, LOG2E));
    clear(g.acc);
    if (((uintptr_t)a.q | a.q_stride * 4) % 16 == 0)
        put_queries<true>(a, p, own, row);
    else
        put_queries<false>(a, p, own, row);
    await(p.queries, 0);
    await(p.keys, 0);
    wgmma_begin();
    add_logits(g.s, g.q, matrix_at(p.k, 0));
    wgmma_wait<0>();
    wgmma_tie(g.s);
    release(p.keys_free);
    weigh<true>(g.w, g.s, (int)least(a.N, (int64_t)BLOCK_ROWS));
    pack(g.weights, g.s);
    for (int t = 1; t < last; t++) step<false>(a, p, g, t);
    if (last > 0) step<true>(a, p, g, last);
    await(p.values + place(last), turn(last));
    wgmma_tie(g.acc);
    wgmma_tie(g.weights);
    wgmma_begin();
    add_values(g.acc, g.weights, transposed_at(value(p.v, last)));
    wgmma_wait<0>();
    wgmma_tie(g.acc);
    store(a, g.acc, own.head, own.tile * BLOCK_ROWS + row +
                                   threadIdx.x / 32 % 4 * 16);
}
#endif

KERNEL(wgmma_attention, cuda_wgmma_attention_args, WGMMA_ATTENTION_THREADS, 1)
{
#if HAS_WGMMA
    const places p = lay_out();
    const share own = share_of(a);
    if (threadIdx.x == 0) {
        arrivals_of(p.queries, own.warps);
        for (int i = 0; i < WGMMA_KEYS; i++) {
            arrivals_of(p.keys + i, 1);
            arrivals_of(p.values + i, 1);
            arrivals_of(p.keys_free + i, own.warps);
            arrivals_of(p.values_free + i, own.warps);
        }
        arrivals_show();
    }
    put_ones(p.v);
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
