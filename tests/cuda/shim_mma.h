/* shim_mma.h: the tensor-core words of kernel.h for a C++ compiler.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp's fragments are exchanged as a GPU has them in registers (PTX,
 * "Matrix fragments for mma.m16n8k16"); a step is that of ops/tensor_core.h,
 * with its factors taken apart once. */
#ifndef TT_TESTS_CUDA_SHIM_MMA_H
#define TT_TESTS_CUDA_SHIM_MMA_H

#include "ops/tensor_core.h"

extern tc_unit shim_steps;          /* of the GPU in use                      */

typedef uint16_t bf16;
struct factors_of { uint32_t r[4]; };
struct sums { float r[4]; };

/* ---- a step -------------------------------------------------------------- */

/* A factor: m * 2^(e - 7). Infinity and NaN have e = 128. */
struct shim_factor {
    int16_t m, e;
};

static inline shim_factor shim_take_apart(uint32_t bits)
{
    const int field = (int)(bits >> 7 & 255);
    const int m = (int)(bits & 127) + (field ? 128 : 0);
    return {(int16_t)(bits & 0x8000 ? -m : m),
            (int16_t)((field ? field : 1) - 127)};
}

static inline float shim_together(shim_factor f)
{
    if (f.e < 128) return ldexpf((float)f.m, f.e - 7);
    return f.m == 128 ? INFINITY : f.m == -128 ? -INFINITY : NAN;
}

/* tc_step of the portable statement: for what is not finite. */
static inline float shim_step_slowly(tc_unit unit, float c,
                                     const shim_factor *a, const shim_factor *b)
{
    float x[TC_MAX_BLOCK], y[TC_MAX_BLOCK];
    for (int k = 0; k < unit.block; k++) {
        x[k] = shim_together(a[k]);
        y[k] = shim_together(b[k]);
    }
    return tc_step(unit, c, x, 1, y, unit.block);
}

/* tc_cut: s * 2^e towards zero, without a loop. */
static inline float shim_cut(int64_t s, int e)
{
    uint64_t m = (uint64_t)(s < 0 ? -s : s);
    if (!m) return 0;
    int drop = 40 - __builtin_clzll(m);
    if (drop < -149 - e) drop = -149 - e;
    if (drop > 63) drop = 63;
    if (drop < 0) drop = 0;
    e += drop;
    /* two factors: 2^e alone may be no float; the product is, or infinite */
    const int half = e / 2;
    const float x = (float)(m >> drop)
                    * tc_float((uint32_t)(127 + half) << 23)
                    * tc_float((uint32_t)(127 + e - half) << 23);
    return s < 0 ? -x : x;
}

/* tc_step of BLOCK factors, BITS kept: the same sum in loops that a compiler
 * makes vectors of. A term without an exponent counts as LEAST. */
template <int BLOCK, int BITS, int LEAST>
static inline float shim_step(float c, const shim_factor *a,
                              const shim_factor *b)
{
    int m[BLOCK], e[BLOCK], top = LEAST, most = 0, some = 0, ec;
    int64_t mc, sum = 0;
    tc_split(c, &mc, &ec);
    if (mc) top = ec > top ? ec : top;
    for (int k = 0; k < BLOCK; k++) {
        m[k] = a[k].m * b[k].m;
        e[k] = a[k].e + b[k].e;
        some |= m[k];
        const int has = m[k] ? e[k] : LEAST;
        top = has > top ? has : top;
        most = a[k].e > most ? a[k].e : most;
        most = b[k].e > most ? b[k].e : most;
    }
    if (most == 128 || ec == 128)
        return shim_step_slowly({BLOCK, BITS, LEAST}, c, a, b);
    if (!some && mc == 0) return 0;
    int low = 0, high = 0;                   /* 16 terms overflow an int      */
    for (int k = 0; k < BLOCK; k++) {
        const int below = m[k] ? top - e[k] : 31;
        const int drop = below < 31 ? below : 31;
        const int kept = (m[k] < 0 ? -m[k] : m[k]) << (BITS - 14) >> drop;
        const int term = m[k] < 0 ? -kept : kept;
        low += term & 0xffff;
        high += term >> 16;
    }
    sum = (int64_t)high * 65536 + low;
    const int drop = mc ? top - ec : 63;
    const int64_t size = (mc < 0 ? -mc : mc) << (BITS - 23);
    const int64_t kept = size >> (drop < 63 ? drop : 63);
    return shim_cut(sum + (mc < 0 ? -kept : kept), top - BITS) + 0;
}

static inline float shim_chain(float c, const shim_factor *a,
                               const shim_factor *b)
{
    if (shim_steps.block == 16) return shim_step<16, 25, -133>(c, a, b);
    c = shim_step<8, 24, -132>(c, a, b);
    return shim_step<8, 24, -132>(c, a + 8, b + 8);
}

/* ---- fragments ----------------------------------------------------------- */

static inline factors_of shim_load(const bf16 *row, bool transposed)
{
    char *slots = shim_slots();
    const int l = shim_lane();
    factors_of f;
    if ((uintptr_t)row & 15) shim_fail("a row of a matrix is not aligned");
    memcpy(slots + 64 * l, &row, sizeof row);
    shim_warp_barrier();
    for (int j = 0; j < 4; j++) {
        uint32_t pair = 0;
        for (int e = 0; e < 2; e++) {
            const int r = transposed ? 2 * (l % 4) + e : l / 4;
            const bf16 *at;
            memcpy(&at, slots + 64 * (8 * j + r), sizeof at);
            pair |= (uint32_t)at[transposed ? l / 4 : 2 * (l % 4) + e]
                << 16 * e;
        }
        f.r[j] = pair;
    }
    shim_warp_barrier();
    return f;
}

static inline factors_of load4x(const bf16 *row)
{
    return shim_load(row, false);
}

static inline factors_of load4x_transposed(const bf16 *row)
{
    return shim_load(row, true);
}

/* Factors [0, 16) of row or column i; `high`: of rows of a, those from 8 on.
 * Their pairs lie 4 bytes apart from `word` on in the slots of 4 lanes. */
static inline void shim_collect(shim_factor *to, const char *slots, int i,
                                int word, int step)
{
    for (int k = 0; k < 16; k += 2)
        memcpy(to + k, slots + 64 * (i % 8 * 4 + k % 8 / 2) +
                           8 * (word + k / 8 * step), 8);
}

static inline void mma(sums &c, const factors_of &a, uint32_t b0, uint32_t b1)
{
    char *slots = shim_slots();
    const int l = shim_lane();
    const uint32_t words[6] = {a.r[0], a.r[1], a.r[2], a.r[3], b0, b1};
    for (int i = 0; i < 6; i++) {
        const shim_factor two[2] = {shim_take_apart(words[i] & 0xffffu),
                                    shim_take_apart(words[i] >> 16)};
        memcpy(slots + 64 * l + 8 * i, two, 8);
    }
    shim_warp_barrier();
    shim_factor x[2][16], y[2][16];
    for (int h = 0; h < 2; h++) {
        shim_collect(x[h], slots, l / 4, h, 2);
        shim_collect(y[h], slots, 2 * (l % 4) + h, 4, 1);
    }
    for (int e = 0; e < 4; e++)
        c.r[e] = shim_chain(c.r[e], x[e / 2], y[e % 2]);
    shim_warp_barrier();
}

/* ---- wgmma --------------------------------------------------------------- */

/* A product of a warpgroup, as one of its threads has a part in it: it adds to
 * n sums, or gives them (`first`). a is a matrix, or rows in registers. */
struct shim_product {
    float *acc;
    int n;
    bool first, rows;
    uint64_t a, b;
    shim_factor x[2][16];
    const factors_of *from;            /* the registers, which stay as they   */
    factors_of held;                   /* were until the product is done      */
};

/* Factors [0, 16) of row i of a matrix that a descriptor is of: 128-byte rows,
 * whose 16-byte chunks are exchanged by the row's number. Turned: of column i,
 * where 64 columns lie in a row and the next 64 somewhere else. */
static inline void shim_row(shim_factor *to, uint64_t matrix, int i,
                            bool transposed)
{
    const uint32_t start = (uint32_t)(matrix & 0x3fff) << 4;
    const uint32_t apart = (uint32_t)(matrix >> 16 & 0x3fff) << 4;
    const uint32_t group = (uint32_t)(matrix >> 32 & 0x3fff) << 4;
    if (matrix >> 62 != 1) shim_fail("a matrix is not of swizzled 128 bytes");
    for (int k = 0; k < 16; k++) {
        const int row = transposed ? k : i, col = transposed ? i % 64 : k;
        uint32_t at = start + (uint32_t)(row / 8) * group +
                      (uint32_t)(row % 8) * 128 + (uint32_t)col * 2;
        if (transposed) at += (uint32_t)(i / 64) * apart;
        at ^= (at >> 7 & 7) << 4;
        const bf16 *p = static_cast<const bf16 *>(shim_shared_at(at, 2));
        to[k] = shim_take_apart(*p);
    }
}

/* The sums of thread t of a warpgroup. */
static inline void shim_multiply(float *acc, const shim_product &p, int t)
{
    const int l = t % 32;
    shim_factor x[2][16], y[16];
    for (int h = 0; h < 2; h++)
        if (p.rows) memcpy(x[h], p.x[h], sizeof x[h]);
        else shim_row(x[h], p.a, t / 32 * 16 + l / 4 + 8 * h, false);
    for (int col = 0; col < p.n / 2; col++) {
        shim_row(y, p.b, col / 2 * 8 + l % 4 * 2 + col % 2, p.rows);
        for (int h = 0; h < 2; h++) {
            float *s = acc + col / 2 * 4 + 2 * h + col % 2;
            *s = shim_chain(p.first ? 0.0f : *s, x[h], y);
        }
    }
}

template <int N> DEVICE void wgmma_tie(sums (&)[N]) {}
template <int N> DEVICE void wgmma_tie(factors_of (&)[N]) {}
DEVICE void wgmma_begin() { shim_product_begin(); }
DEVICE void wgmma_commit() { shim_product_commit(); }
template <int N> DEVICE void wgmma_wait() { shim_product_wait(N); }
template <int N>
DEVICE void wgmma_first(sums (&acc)[N], uint64_t a, uint64_t b)
{
    shim_product_open({acc[0].r, 4 * N, true, false, a, b, {}, nullptr, {}});
}

template <int N> DEVICE void wgmma(sums (&acc)[N], uint64_t a, uint64_t b)
{
    shim_product_open({acc[0].r, 4 * N, false, false, a, b, {}, nullptr, {}});
}

template <int N>
DEVICE void wgmma(sums (&acc)[N], uint64_t a, uint64_t b, bool on)
{
    shim_product_open({acc[0].r, 4 * N, !on, false, a, b, {}, nullptr, {}});
}

/* The rows in registers are exchanged as those of mma. */
template <int N>
static inline void wgmma(sums (&acc)[N], const factors_of &a, uint64_t b)
{
    char *slots = shim_slots();
    const int l = shim_lane();
    shim_product p = {acc[0].r, 4 * N, false, true, 0, b, {}, &a, a};
    for (int i = 0; i < 4; i++) {
        const shim_factor two[2] = {shim_take_apart(a.r[i] & 0xffffu),
                                    shim_take_apart(a.r[i] >> 16)};
        memcpy(slots + 64 * l + 8 * i, two, 8);
    }
    shim_warp_barrier();
    for (int h = 0; h < 2; h++) shim_collect(p.x[h], slots, l / 4, h, 2);
    shim_warp_barrier();
    shim_product_open(p);
}

template <int N> DEVICE void registers_take() {}
template <int N> DEVICE void registers_leave() {}

typedef uint64_t arrivals;
DEVICE void arrivals_of(arrivals *at, int threads)
{
    shim_arrivals_of(at, threads);
}

DEVICE void arrivals_show() { shim_arrivals_show(); }
DEVICE void store_factors(bf16 *to, uint4 v)
{
    shim_shared_at(shim_shared_offset(to), 16);
    shim_stored_factors();
    *(uint4 *)at_16(to) = v;
}

DEVICE void written() { shim_written(); }
DEVICE void arrive(arrivals *at) { shim_arrive(at, 0); }
DEVICE void arrive_and(arrivals *at, int bytes) { shim_arrive(at, bytes); }
DEVICE void await(arrivals *at, int turn) { shim_await(at, turn); }
DEVICE void copy_block(void *to, const void *from, int bytes, arrivals *at)
{
    shim_copy_block(to, from, bytes, at);
}

DEVICE void copy16_or_zeros(void *to, const void *from, bool there)
{
    static const uint4 zeros = {0, 0, 0, 0};
    shim_copy(to, there ? from : &zeros, 16);
}

DEVICE void arrive_after_copies(arrivals *at) { shim_arrive_after_copies(at); }
DEVICE void fence_async_proxy() { shim_fence_async_proxy(); }

/* ---- numbers ------------------------------------------------------------- */

DEVICE uint32_t two_factors(float low, float high)
{
    return tc_bits(tc_factor(low)) >> 16 |
           (tc_bits(tc_factor(high)) & 0xffff0000u);
}

/* Wrong by up to 2^-20.5, another error for every number: no result may depend
 * on it. */
DEVICE float exp2_near(float x)
{
    if (x < -126) return 0;
    const uint32_t mixed = tc_bits(x) * 0x9e3779b1u;
    const double off = ((mixed >> 8) * 0x1p-23 - 1) * 0x1.6ap-21;
    return (float)(exp2((double)x) * (1 + off));
}

/* Off by up to 2^-22, another way for every number: no result may depend on it.
 */
DEVICE float reciprocal_near(float x)
{
    const uint32_t mixed = tc_bits(x) * 0x9e3779b1u;
    const double off = ((mixed >> 8) * 0x1p-23 - 1) * 0x1p-22;
    return (float)(1 / (double)x * (1 + off));
}

DEVICE float more_or_nan(float a, float b)
{
    return a > b || a != a ? a : b;
}

DEVICE float more(float a, float b) { return a > b || b != b ? a : b; }

#endif
