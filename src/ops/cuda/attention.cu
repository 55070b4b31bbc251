/* attention.cu: softmax attention over blocks of keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/f32.c. A block of threads owns QUERIES queries of a
 * head. The logits of a block of TT_KEY_BLOCK keys lie in shared memory, so
 * that their maximum is exact before the first exponential; then they are the
 * weights p. An output, its chain over 256 keys and its sum belong to one
 * thread, and so does the chain of additions that is the denominator.
 *
 * Holds   keys ascend in every chain; the maximum has no order (a comparison,
 *         no rounding). Queries and keys after the end are computed from the
 *         last one: so they change no maximum, and they are not stored or
 *         added. */
#include "ops/cuda/exp.h"
#include "ops/cuda/tile.h"

#define LOWEST (-0x1.fffffep+127f)

/* ---- heads of 128 -------------------------------------------------------- */

/* Rows of shared memory: one float group longer than what they hold, so that 8
 * of them lie in different banks. */
#define LOGIT_PITCH (TT_KEY_BLOCK + 4)
#define QUERY_PITCH (ATTENTION_D + 4)
#define KEY_PITCH (ATTENTION_K + 4)

/* A thread of a block of Q queries: R = Q / 8. Its logits are R x 8 (rows 8
 * apart, columns as in a tile of linear), its outputs R/2 x 8. */
template <int Q> struct attention_block {
    static const int R = Q / 8;
    static const int LANES = ATTENTION_THREADS / Q;  /* a row of weights has  */
    const cuda_attention_args &a;
    float *logits, *query, *stage, *denominator, *alpha;
    int t, lane, warp;
    int64_t query0, head;

    DEVICE attention_block(const cuda_attention_args &args, float *mem)
        : a(args)
    {
        logits = mem;
        query = logits + Q * LOGIT_PITCH;
        stage = query + Q * QUERY_PITCH;
        denominator = stage + 2 * ATTENTION_KEYS * KEY_PITCH;
        alpha = denominator + Q;
        t = threadIdx.x;
        lane = t & 31;
        warp = t >> 5;
        query0 = (int64_t)blockIdx.x * Q;
        head = (int64_t)blockIdx.y * ATTENTION_D;
    }

    DEVICE void load_queries() const
    {
        for (int e = t; e < Q * ATTENTION_D / 4; e += ATTENTION_THREADS) {
            const int r = e / (ATTENTION_D / 4);
            const int d = 4 * (e % (ATTENTION_D / 4));
            const int64_t row = least(query0 + r, a.T - 1);
            store4(query + r * QUERY_PITCH + d,
                   load4(a.q + row * a.q_stride + head + d));
        }
    }

    /* ---- logits ---- */

    /* Elements [d, d + ATTENTION_K) of keys [j0, j0 + n) on their way. */
    DEVICE void stage_keys(int64_t j0, int n, int d, int slot) const
    {
        if (d < ATTENTION_D)
            UNROLL
            for (int e = 0; e < ATTENTION_KEYS / 64; e++) {
                const int key = (t >> 2) + 64 * e, c = 4 * (t & 3);
                copy16(stage + (slot * ATTENTION_KEYS + key) * KEY_PITCH + c,
                       a.k + (j0 + least(key, n - 1)) * a.kv_stride + head +
                           d + c);
            }
        copy_commit();
    }

    /* Logits of keys [j0 + from, j0 + from + ATTENTION_KEYS) of all queries;
     * those at n and after are the last key's. */
    DEVICE void make_logits(int64_t j0, int from, int n) const
    {
        const int row = lane & 7, col = 32 * warp + 4 * (lane >> 3);
        const int64_t key0 = j0 + from;
        float s[R][8] = {};
        stage_keys(key0, n - from, 0, 0);
        for (int d = 0; d < ATTENTION_D; d += ATTENTION_K) {
            const int slot = d / ATTENTION_K & 1;
            copy_wait<0>();
            __syncthreads();
            stage_keys(key0, n - from, d + ATTENTION_K, slot ^ 1);
            const float *q = query + row * QUERY_PITCH + d;
            const float *k = stage + (slot * ATTENTION_KEYS + col) * KEY_PITCH;
            products<ATTENTION_K, QUERY_PITCH, KEY_PITCH>(s, q, k);
        }
        UNROLL
        for (int i = 0; i < R; i++)
            UNROLL
            for (int g = 0; g < 8; g += 4)
                store4(logits + (row + 8 * i) * LOGIT_PITCH + from + col +
                           4 * g,
                       four(mul_rn(s[i][g], a.scale),
                            mul_rn(s[i][g + 1], a.scale),
                            mul_rn(s[i][g + 2], a.scale),
                            mul_rn(s[i][g + 3], a.scale)));
        __syncthreads();
    }

    /* ---- weights ---- */

    /* p = exp(logit - top) for this thread's part of a row, and alpha. `top` is
     * the running maximum m before, the one with these n keys after. */
    DEVICE void make_weights(float &m, bool first, int n) const
    {
        const int r = t / LANES, part = 4 * (t % LANES);
        float *row = logits + r * LOGIT_PITCH;
        float top = first ? row[0] : m;
        for (int j = part; j < n; j += 4 * LANES) {
            const float4 x = load4(row + j);
            if (x.x > top) top = x.x;        /* after n: the last key's */
            if (x.y > top) top = x.y;
            if (x.z > top) top = x.z;
            if (x.w > top) top = x.w;
        }
        UNROLL
        for (int h = 1; h < LANES; h *= 2) {
            const float other = lane_xor(top, h);
            top = other > top ? other : top;
        }
        UNROLL_2
        for (int j = part; j < n; j += 4 * LANES) {
            const float4 x = load4(row + j);
            store4(row + j, four(exp_f32(add_rn(x.x, -top)),
                                 exp_f32(add_rn(x.y, -top)),
                                 exp_f32(add_rn(x.z, -top)),
                                 exp_f32(add_rn(x.w, -top))));
        }
        if (part == 0) alpha[r] = first ? 0.0f : exp_f32(add_rn(m, -top));
        m = top;
    }

    /* ---- values ---- */

    DEVICE void stage_values(int64_t j0, int j, int n, int slot) const
    {
        if (j < n)
            UNROLL
            for (int e = 0; e < ATTENTION_V / 8; e++) {
                const int key = warp + 8 * e, c = 4 * lane;
                copy16(stage + (slot * ATTENTION_V + key) * ATTENTION_D + c,
                       a.v + (j0 + least(j + key, n - 1)) * a.kv_stride + head +
                           c);
            }
        copy_commit();
    }

    /* One more key in every chain of this thread: number e of its weights p in
     * the rows, v of 8 channels. */
    DEVICE static void add_key(float (&s)[R / 2][8], const float4 (&p)[R / 2],
                               int e, const float *v)
    {
        const float4 lo = load4(v), hi = load4(v + 4);
        UNROLL
        for (int i = 0; i < R / 2; i++) {
            const float w = entry(p[i], e);
            s[i][0] = fma_rn(lo.x, w, s[i][0]);
            s[i][1] = fma_rn(lo.y, w, s[i][1]);
            s[i][2] = fma_rn(lo.z, w, s[i][2]);
            s[i][3] = fma_rn(lo.w, w, s[i][3]);
            s[i][4] = fma_rn(hi.x, w, s[i][4]);
            s[i][5] = fma_rn(hi.y, w, s[i][5]);
            s[i][6] = fma_rn(hi.z, w, s[i][6]);
            s[i][7] = fma_rn(hi.w, w, s[i][7]);
        }
    }

    DEVICE int value_row() const { return Q / 2 * (warp & 1) + (lane & 7); }
    DEVICE int value_channel() const
    {
        return 32 * (warp >> 1) + 8 * (lane >> 3);
    }
    /* whose denominator this thread adds up: lanes of one number the same */
    DEVICE int sum_row() const { return R * warp + (lane & (R - 1)); }

    /* From zeros: last = the products of the last block of up to 256 of the n
     * weights and values, sum = those before, l = the sum of the weights. */
    DEVICE void add_values(int64_t j0, int n, float (&sum)[R / 2][8],
                           float (&last)[R / 2][8], float &l) const
    {
        const float *p = logits + value_row() * LOGIT_PITCH;
        const float *q = logits + sum_row() * LOGIT_PITCH;
        stage_values(j0, 0, n, 0);
        for (int c0 = 0; c0 < n; c0 += TT_DOT_BLOCK) {
            const int c1 = least(c0 + TT_DOT_BLOCK, n);
            UNROLL
            for (int i = 0; i < R / 2; i++)
                UNROLL
                for (int d = 0; d < 8; d++) {
                    sum[i][d] = last[i][d];
                    last[i][d] = 0.0f;
                }
            for (int j = c0; j < c1; j += ATTENTION_V) {
                const int slot = j / ATTENTION_V & 1;
                const int left = least(ATTENTION_V, n - j);
                copy_wait<0>();
                __syncthreads();
                stage_values(j0, j + ATTENTION_V, n, slot ^ 1);
                const float *v = stage + slot * ATTENTION_V * ATTENTION_D +
                                 value_channel();
                if (left == ATTENTION_V) {
                    UNROLL
                    for (int e = 0; e < ATTENTION_V; e += 4) {
                        const float4 w = load4(q + j + e);
                        l = add_rn(add_rn(add_rn(add_rn(l, w.x), w.y), w.z),
                                   w.w);
                        float4 quad[R / 2];
                        UNROLL
                        for (int i = 0; i < R / 2; i++)
                            quad[i] = load4(p + 8 * i * LOGIT_PITCH + j + e);
                        UNROLL
                        for (int f = 0; f < 4; f++)
                            add_key(last, quad, f,
                                    v + (e + f) * ATTENTION_D);
                    }
                } else
                    for (int e = 0; e < left; e++) {
                        float4 single[R / 2];
                        UNROLL
                        for (int i = 0; i < R / 2; i++)
                            single[i].x = p[8 * i * LOGIT_PITCH + j + e];
                        l = add_rn(l, q[j + e]);
                        add_key(last, single, 0, v + e * ATTENTION_D);
                    }
            }
        }
    }

    DEVICE void store(const float (&acc)[R / 2][8]) const
    {
        UNROLL
        for (int i = 0; i < R / 2; i++) {
            const int r = value_row() + 8 * i;
            if (query0 + r >= a.T) continue;
            const float l = denominator[r];
            float *o = a.o + (query0 + r) * a.H * ATTENTION_D + head +
                       value_channel();
            UNROLL
            for (int g = 0; g < 8; g += 4)
                store4(o + g, four(div_rn(acc[i][g], l),
                                   div_rn(acc[i][g + 1], l),
                                   div_rn(acc[i][g + 2], l),
                                   div_rn(acc[i][g + 3], l)));
        }
    }
};

template <int Q> DEVICE void attend(const cuda_attention_args &a)
{
    SHARED(float, mem);
    const attention_block<Q> b(a, mem);
    const int R = Q / 8;
    float acc[R / 2][8] = {}, m = 0.0f, l = 0.0f;
    b.load_queries();                    /* seen after the next barrier       */
    for (int64_t j0 = 0; j0 < a.N; j0 += TT_KEY_BLOCK) {
        const int n = (int)least((int64_t)TT_KEY_BLOCK, a.N - j0);
        for (int from = 0; from < n; from += ATTENTION_KEYS)
            b.make_logits(j0, from, n);
        b.make_weights(m, j0 == 0, n);
        float sum[R / 2][8] = {}, last[R / 2][8] = {}, block_l = 0.0f;
        b.add_values(j0, n, sum, last, block_l);
        UNROLL
        for (int i = 0; i < R / 2; i++) {
            const float alpha = b.alpha[b.value_row() + 8 * i];
            UNROLL
            for (int d = 0; d < 8; d++) {
                const float block = n > TT_DOT_BLOCK
                                        ? add_rn(sum[i][d], last[i][d])
                                        : last[i][d];
                acc[i][d] = j0 ? fma_rn(acc[i][d], alpha, block) : block;
            }
        }
        l = j0 ? fma_rn(l, b.alpha[b.sum_row()], block_l) : block_l;
        __syncthreads();
    }
    if (b.lane < R) b.denominator[b.sum_row()] = l;
    __syncthreads();
    b.store(acc);
}

/* The most queries that shared memory has room for. */
KERNEL(attention_64, cuda_attention_args, ATTENTION_THREADS, 1)
{
    attend<64>(a);
}

KERNEL(attention_32, cuda_attention_args, ATTENTION_THREADS, 1)
{
    attend<32>(a);
}

KERNEL(attention_16, cuda_attention_args, ATTENTION_THREADS, 1)
{
    attend<16>(a);
}

/* ---- any head, bias and mask: a warp a query ----------------------------- */

/* dot_real, of products k apart in a and 1 apart in b. */
DEVICE float dot(const float *x, int64_t step, const float *y, int64_t n)
{
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += TT_DOT_BLOCK) {
        const int64_t k1 = least(k0 + TT_DOT_BLOCK, n);
        float s = 0.0f;
        for (int64_t k = k0; k < k1; k++) s = fma_rn(x[k * step], y[k], s);
        sum = k0 == 0 ? s : add_rn(sum, s);
    }
    return sum;
}

/* Logit of query i and key j of head h. */
DEVICE float logit(const cuda_attention_args &a, int64_t h, int64_t i,
                   int64_t j)
{
    const float *q = a.q + i * a.q_stride + h * a.D;
    const float *k = a.k + j * a.kv_stride + h * a.D;
    float s = 0.0f;
    for (int64_t d = 0; d < a.D; d++) s = fma_rn(q[d], k[d], s);
    s = mul_rn(s, a.scale);
    if (a.key_mask && !a.key_mask[j]) return add_rn(s, LOWEST);
    if (a.rel_bias)
        return add_rn(s, a.rel_bias[h * (2 * a.N - 1) + j - i + a.N - 1]);
    return s;
}

KERNEL(attention, cuda_attention_args, ATTENTION_WARPS * 32, 1)
{
    SHARED(float, mem);                  /* of a warp: p [512], acc [D]       */
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t unit = (int64_t)blockIdx.x * ATTENTION_WARPS + warp;
    if (unit >= a.H * a.T) return;       /* a whole warp                      */
    const int64_t h = unit / a.T, i = unit % a.T;
    float *p = mem + warp * (TT_KEY_BLOCK + a.D), *acc = p + TT_KEY_BLOCK;
    float m = 0.0f, l = 0.0f;
    for (int64_t j0 = 0; j0 < a.N; j0 += TT_KEY_BLOCK) {
        const int n = (int)least((int64_t)TT_KEY_BLOCK, a.N - j0);
        for (int j = lane; j < n; j += 32) p[j] = logit(a, h, i, j0 + j);
        __syncwarp();
        float top = j0 ? m : p[0];
        for (int j = lane; j < n; j += 32)
            if (p[j] > top) top = p[j];
        UNROLL
        for (int x = 16; x > 0; x /= 2) {
            const float other = lane_xor(top, x);
            top = other > top ? other : top;
        }
        for (int j = lane; j < n; j += 32) p[j] = exp_f32(add_rn(p[j], -top));
        __syncwarp();
        float sum = 0.0f;
        for (int j = 0; j < n; j++) sum = add_rn(sum, p[j]);
        const float alpha = j0 ? exp_f32(add_rn(m, -top)) : 0.0f;
        l = j0 ? fma_rn(l, alpha, sum) : sum;
        for (int64_t d = lane; d < a.D; d += 32) {
            const float *v = a.v + j0 * a.kv_stride + h * a.D + d;
            const float block = dot(v, a.kv_stride, p, n);
            acc[d] = j0 ? fma_rn(acc[d], alpha, block) : block;
        }
        __syncwarp();
        m = top;
    }
    for (int64_t d = lane; d < a.D; d += 32)
        a.o[(i * a.H + h) * a.D + d] = div_rn(acc[d], l);
}
