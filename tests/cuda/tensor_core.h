/* tensor_core.h: the classes sm80 and sm90 as kernels of mma.sync.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They show that the definitions (src/ops/golden/tensor_core.md) need no extra
 * pass: logits, weights and sums stay in registers. The text is compiled by
 * nvcc, and by a C++ compiler on the fibers of tests/cuda/shim.h, where a step
 * is that of ops/tensor_core.h. Factors come rounded, as bf16. */
#ifndef TT_TESTS_CUDA_TENSOR_CORE_H
#define TT_TESTS_CUDA_TENSOR_CORE_H

#include "ops/cuda/kernel.h"
#include "ops/tensor_core.h"

typedef uint16_t bf16;

/* y [n, o] = x [n, k] w [o, k]^T + b; k a multiple of 8 */
typedef struct tc_linear_args {
    float *y;
    const bf16 *x, *w;
    const float *b;
    int64_t n, o, k;
} tc_linear_args;

/* Heads of 128. Strides are multiples of 8. */
typedef struct tc_attention_args {
    float *o;                          /* [T, H, 128]                         */
    const bf16 *q, *k, *v;
    int64_t T, N, H, q_stride, kv_stride;
    float scale, least;                /* scale * log2(e), -125 / that        */
} tc_attention_args;

/* ---- fragments of m16n8k16 ----------------------------------------------- */

struct frag_a { uint32_t r[4]; };
struct frag_b { uint32_t r[2]; };
struct frag_c { float r[4]; };

#ifdef __CUDACC__
/* Four 8 x 8 matrices; lane l brings the address of a row, of matrix l / 8. */
DEVICE frag_a load4x(const bf16 *row)
{
    frag_a f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row)));
    return f;
}

DEVICE frag_a load4x_turned(const bf16 *row)
{
    frag_a f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0,%1,%2,%3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row)));
    return f;
}

DEVICE void mma(frag_c &c, const frag_a &a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]),
                   "r"(b0), "r"(b1));
}

DEVICE uint32_t two_factors(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* The larger one; NaN when one is NaN. */
DEVICE float more_or_nan(float a, float b)
{
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
    return m;
}

DEVICE float more(float a, float b) { return fmaxf(a, b); }
DEVICE int lane_of() { return threadIdx.x & 31; }
#else
extern tc_unit shim_unit;   /* whose steps mma takes */

static inline frag_a shim_load(const bf16 *row, bool turned)
{
    char *slots = shim_slots();
    const int l = shim_lane();
    frag_a f;
    memcpy(slots + 64 * l, &row, sizeof row);
    shim_warp_barrier();
    for (int j = 0; j < 4; j++) {
        bf16 pair[2];
        for (int e = 0; e < 2; e++) {
            const int r = turned ? 2 * (l % 4) + e : l / 4;
            const bf16 *at;
            memcpy(&at, slots + 64 * (8 * j + r), sizeof at);
            pair[e] = at[turned ? l / 4 : 2 * (l % 4) + e];
        }
        f.r[j] = pair[0] | (uint32_t)pair[1] << 16;
    }
    shim_warp_barrier();
    return f;
}

DEVICE frag_a load4x(const bf16 *row) { return shim_load(row, false); }
DEVICE frag_a load4x_turned(const bf16 *row) { return shim_load(row, true); }

static inline float shim_factor(const char *slots, int lane, int word, int odd)
{
    uint32_t u;
    memcpy(&u, slots + 64 * lane + 4 * word, 4);
    return tc_float(odd ? u & 0xffff0000u : u << 16);
}

static inline void mma(frag_c &c, const frag_a &a, uint32_t b0, uint32_t b1)
{
    char *slots = shim_slots();
    const int l = shim_lane();
    memcpy(slots + 64 * l, &a, 16);
    memcpy(slots + 64 * l + 16, &b0, 4);
    memcpy(slots + 64 * l + 20, &b1, 4);
    shim_warp_barrier();
    for (int e = 0; e < 4; e++) {
        const int row = l / 4 + 8 * (e / 2), col = 2 * (l % 4) + e % 2;
        float x[16], y[16];
        for (int k = 0; k < 16; k++) {
            x[k] = shim_factor(slots, row % 8 * 4 + k % 8 / 2,
                               row / 8 + k / 8 * 2, k % 2);
            y[k] = shim_factor(slots, col * 4 + k % 8 / 2, 4 + k / 8, k % 2);
        }
        c.r[e] = tc_chain(shim_unit, c.r[e], x, 1, y, 16);
    }
    shim_warp_barrier();
}

DEVICE uint32_t two_factors(float low, float high)
{
    return tc_bits(tc_factor(low)) >> 16 |
           (tc_bits(tc_factor(high)) & 0xffff0000u);
}

DEVICE float more_or_nan(float a, float b)
{
    return a > b || a != a ? a : b;
}

DEVICE float more(float a, float b) { return a > b || b != b ? a : b; }
DEVICE int lane_of() { return shim_lane(); }
#endif

/* Row and column of the 16 x 16 values that lane l brings to load4x: as a, as
 * two b of stored rows, and (load4x_turned) as two b of stored columns. */
DEVICE int a_row(int l) { return l % 16; }
DEVICE int a_col(int l) { return l / 16 * 8; }
DEVICE int b_row(int l) { return l % 8 + l / 16 * 8; }
DEVICE int b_col(int l) { return l / 8 % 2 * 8; }

/* 16 bytes from global memory, or zeros. */
DEVICE void stage16(bf16 *to, const bf16 *from, bool there)
{
    if (there) copy16(to, from);
    else *(uint4 *)to = uint4{0, 0, 0, 0};
}

/* ---- linear: 128 x 128 outputs a block, 64 x 32 a warp ------------------- */

#define TL_K 32
#define TL_PITCH (TL_K + 8)
#define TL_STAGES 4
#define TL_THREADS 256
#define TL_SHARED (TL_STAGES * 256 * TL_PITCH * 2)

DEVICE void tl_stage(const tc_linear_args &a, bf16 *tiles, int m0, int o0,
                     int step, int steps)
{
    bf16 *const to = tiles + step % TL_STAGES * 256 * TL_PITCH;
    const int t = threadIdx.x, c = t % 4 * 8;
    const int64_t k = (int64_t)step * TL_K + c;
    if (step < steps) {
        UNROLL
        for (int h = 0; h < 128; h += 64) {
            const int r = t / 4 + h;
            stage16(to + r * TL_PITCH + c,
                    a.x + least((int64_t)m0 + r, a.n - 1) * a.k + k, k < a.k);
            stage16(to + (128 + r) * TL_PITCH + c,
                    a.w + least((int64_t)o0 + r, a.o - 1) * a.k + k, k < a.k);
        }
    }
    copy_commit();
}

DEVICE void tl_multiply(frag_c (*acc)[4], const bf16 *A, const bf16 *B)
{
    const int l = lane_of();
    UNROLL
    for (int k = 0; k < TL_K; k += 16) {
        frag_a x[4], w[2];
        UNROLL
        for (int i = 0; i < 4; i++)
            x[i] = load4x(A + (16 * i + a_row(l)) * TL_PITCH + k + a_col(l));
        UNROLL
        for (int j = 0; j < 2; j++)
            w[j] = load4x(B + (16 * j + b_row(l)) * TL_PITCH + k + b_col(l));
        UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
            for (int j = 0; j < 4; j++)
                mma(acc[i][j], x[i], w[j / 2].r[j % 2 * 2],
                    w[j / 2].r[j % 2 * 2 + 1]);
    }
}

KERNEL(tc_linear, tc_linear_args, TL_THREADS, 1)
{
    SHARED(bf16, tiles);
    const int m0 = blockIdx.y * 128, o0 = blockIdx.x * 128, l = lane_of();
    const int warp = threadIdx.x / 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
    const int steps = (int)((a.k + TL_K - 1) / TL_K);
    frag_c acc[4][4];
    UNROLL
    for (int i = 0; i < 16; i++)
        UNROLL
        for (int e = 0; e < 4; e++) acc[i / 4][i % 4].r[e] = 0;
    for (int s = 0; s < TL_STAGES - 1; s++) tl_stage(a, tiles, m0, o0, s, steps);
    for (int s = 0; s < steps; s++) {
        copy_wait<TL_STAGES - 2>();
        __syncthreads();
        tl_stage(a, tiles, m0, o0, s + TL_STAGES - 1, steps);
        const bf16 *A = tiles + s % TL_STAGES * 256 * TL_PITCH;
        tl_multiply(acc, A + wm * TL_PITCH, A + (128 + wn) * TL_PITCH);
    }
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < 4; j++)
            UNROLL
            for (int e = 0; e < 4; e++) {
                const int64_t r = m0 + wm + 16 * i + l / 4 + e / 2 * 8;
                const int64_t c = o0 + wn + 8 * j + l % 4 * 2 + e % 2;
                if (r >= a.n || c >= a.o) continue;
                const float s = add_rn(acc[i][j].r[e], 0.0f);
                a.y[r * a.o + c] = a.b ? add_rn(s, a.b[c]) : s;
            }
}

/* ---- attention: 64 queries a block, 16 a warp ---------------------------- */

#define TA_D 128
#define TA_PITCH (TA_D + 8)
#define TA_THREADS 128
#define TA_SHARED ((2 * TC_KEY_BLOCK + 64) * TA_PITCH * 2)

DEVICE float ta_exp2(float d, float scale, float least)
{
    const float magic = 0x1.8p23f + 127;
    d = more_or_nan(d, least);
    const float n = fma_rn(d, scale, magic);
    const float f = fma_rn(d, scale, -add_rn(n, -magic));
    float p = fma_rn(0x1.409104p-7f, f, 0x1.ca9008p-5f);
    p = fma_rn(p, f, 0x1.ebf1b4p-3f);
    p = fma_rn(p, f, 0x1.62dfcap-1f);
    p = fma_rn(p, f, 1.0f);
    return mul_rn(p, float_of(bits_of(n) << 23));
}

/* Rows [r0, r0 + rows) of one head; behind the end zeros. */
DEVICE void ta_stage(bf16 *to, const bf16 *from, int64_t stride, int64_t r0,
                     int64_t n, int rows)
{
    for (int i = threadIdx.x; i < rows * (TA_D / 8); i += TA_THREADS) {
        const int r = i / (TA_D / 8), c = i % (TA_D / 8) * 8;
        stage16(to + r * TA_PITCH + c, from + (r0 + r) * stride + c,
                r0 + r < n);
    }
    copy_commit();
}

/* What a thread holds of two rows: 2 x 2 sums of weights, two maxima. */
struct softmax {
    float m[2], l[2][2];
};

/* s: logits in, weights out; acc shrinks. */
DEVICE void ta_soften(const tc_attention_args &a, softmax &w, frag_c *s,
                      frag_c *acc, int64_t j0)
{
    const bool ragged = j0 + TC_KEY_BLOCK > a.N;
    const int64_t key0 = j0 + lane_of() % 4 * 2;
    float top[2] = {w.m[0], w.m[1]}, alpha[2];
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) {
            if (ragged && key0 + 8 * j + e % 2 >= a.N)
                s[j].r[e] = float_of(0xff800000u);
            top[e / 2] = more(top[e / 2], s[j].r[e]);
        }
    UNROLL
    for (int h = 0; h < 2; h++) {
        top[h] = more(top[h], lane_xor(top[h], 1));
        top[h] = more(top[h], lane_xor(top[h], 2));
        alpha[h] = ta_exp2(add_rn(w.m[h], -top[h]), a.scale, a.least);
        w.m[h] = top[h];
        w.l[h][0] = mul_rn(w.l[h][0], alpha[h]);
        w.l[h][1] = mul_rn(w.l[h][1], alpha[h]);
    }
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) {
            float p = ta_exp2(add_rn(s[j].r[e], -top[e / 2]), a.scale, a.least);
            if (ragged && key0 + 8 * j + e % 2 >= a.N) p = 0;
            w.l[e / 2][e % 2] = add_rn(w.l[e / 2][e % 2], p);
            s[j].r[e] = p;
            acc[j].r[e] = mul_rn(acc[j].r[e], alpha[e / 2]);
        }
}

/* acc goes on over the 128 keys of V. */
DEVICE void ta_values(frag_c *acc, const frag_c *p, const bf16 *V)
{
    const int l = lane_of();
    UNROLL
    for (int k = 0; k < 8; k++) {
        const frag_a f = {{two_factors(p[2 * k].r[0], p[2 * k].r[1]),
                           two_factors(p[2 * k].r[2], p[2 * k].r[3]),
                           two_factors(p[2 * k + 1].r[0], p[2 * k + 1].r[1]),
                           two_factors(p[2 * k + 1].r[2], p[2 * k + 1].r[3])}};
        UNROLL
        for (int d = 0; d < 8; d++) {
            const frag_a v = load4x_turned(V + (16 * k + a_row(l)) * TA_PITCH +
                                           16 * d + a_col(l));
            mma(acc[2 * d], f, v.r[0], v.r[1]);
            mma(acc[2 * d + 1], f, v.r[2], v.r[3]);
        }
    }
}

/* s = the chains of 16 queries and 128 keys. */
DEVICE void ta_logits(frag_c *s, const bf16 *Q, const bf16 *K)
{
    const int l = lane_of();
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) s[j].r[e] = 0;
    UNROLL
    for (int k = 0; k < TA_D; k += 16) {
        const frag_a q = load4x(Q + a_row(l) * TA_PITCH + k + a_col(l));
        UNROLL
        for (int j = 0; j < 16; j += 2) {
            const frag_a b = load4x(K + (8 * j + b_row(l)) * TA_PITCH + k +
                                    b_col(l));
            mma(s[j], q, b.r[0], b.r[1]);
            mma(s[j + 1], q, b.r[2], b.r[3]);
        }
    }
}

KERNEL(tc_attention, tc_attention_args, TA_THREADS, 1)
{
    SHARED(bf16, K);
    bf16 *const V = K + TC_KEY_BLOCK * TA_PITCH;
    bf16 *const Q = V + TC_KEY_BLOCK * TA_PITCH;
    const int l = lane_of(), warp = threadIdx.x / 32;
    const int64_t i0 = (int64_t)blockIdx.x * 64, h = blockIdx.y * TA_D;
    frag_c s[16], acc[16];
    const float none = float_of(0xff800000u);
    softmax w = {{none, none}, {{0, 0}, {0, 0}}};
    ta_stage(Q, a.q + h, a.q_stride, i0, a.T, 64);
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++) acc[j].r[e] = 0;
    ta_stage(K, a.k + h, a.kv_stride, 0, a.N, TC_KEY_BLOCK);
    for (int64_t j0 = 0; j0 < a.N; j0 += TC_KEY_BLOCK) {
        ta_stage(V, a.v + h, a.kv_stride, j0, a.N, TC_KEY_BLOCK);
        copy_wait<1>();
        __syncthreads();
        ta_logits(s, Q + 16 * warp * TA_PITCH, K);
        __syncthreads();
        ta_stage(K, a.k + h, a.kv_stride, j0 + TC_KEY_BLOCK, a.N, TC_KEY_BLOCK);
        ta_soften(a, w, s, acc, j0);
        copy_wait<1>();
        __syncthreads();
        ta_values(acc, s, V);
        __syncthreads();
    }
    UNROLL
    for (int e = 0; e < 2; e++) {
        float sum = add_rn(w.l[e][0], w.l[e][1]);
        sum = add_rn(sum, lane_xor(sum, 1));
        sum = add_rn(sum, lane_xor(sum, 2));
        const int64_t i = i0 + 16 * warp + l / 4 + 8 * e;
        if (i >= a.T) continue;
        UNROLL
        for (int j = 0; j < 32; j++)
            a.o[(i * a.H) * TA_D + h + j / 2 * 8 + l % 4 * 2 + j % 2] =
                div_rn(add_rn(acc[j / 2].r[2 * e + j % 2], 0.0f), sum);
    }
}

#endif
