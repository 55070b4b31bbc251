/* bf16_x86.h: the tile of the bf16 class on x86 vectors, written once for both
 * widths, with the CPU's own flush to zero.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three vectors of lanes; ROWS(X) calls X(r) for every row. The even chains of
 * a group wait in memory while the odd ones run: two full sets of accumulators
 * do not fit the registers. Inputs are never subnormal, and x86 flushes after
 * rounding as the class asks (tests/ops/test_bf16_exact.c has the hair-thin
 * cases), so MXCSR.FTZ is all that is needed; begin sets it, end restores. */

#define DECLARE(r) V x##r = ZERO(), y##r = x##r, z##r = x##r;
#define STEP(r)                                                                \
    {                                                                          \
        V v = SET1(a[r * BF16_GROUP + k]);                                     \
        x##r = FMA(v, b0, x##r);                                               \
        y##r = FMA(v, b1, y##r);                                               \
        z##r = FMA(v, b2, z##r);                                               \
    }
#define KEEP(r)                                                                \
    STORE(even + r * NR, x##r);                                                \
    STORE(even + r * NR + W, y##r);                                            \
    STORE(even + r * NR + 2 * W, z##r);
#define FINISH_ONE(at, v, r, i)                                                \
    v = ADD(LOAD(even + r * NR + i), v);                                       \
    STORE(at + i, ADD(LOAD(at + i), v));
#define FINISH(r)                                                              \
    {                                                                          \
        float *at = sum + r * NR;                                              \
        FINISH_ONE(at, x##r, r, 0)                                             \
        FINISH_ONE(at, y##r, r, W)                                             \
        FINISH_ONE(at, z##r, r, 2 * W)                                         \
    }
/* One chain of 16 products in each of the accumulators. */
#define CHAIN(first)                                                           \
    for (int k = first; k < BF16_GROUP; k += 2) {                              \
        V b0 = LOAD(b + k * NR), b1 = LOAD(b + k * NR + W);                    \
        V b2 = LOAD(b + k * NR + 2 * W);                                       \
        ROWS(STEP)                                                             \
    }

static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const float *a = rows, *b = lanes;
    _Alignas(64) float even[MR * NR], sum[MR * NR];
    for (int r = 0; r < MR; r++)
        for (int i = 0; i < NR; i += W)
            STORE(sum + r * NR + i, add ? LOAD(c + r * ldc + i) : ZERO());
    for (int64_t g = 0; g < groups; g++) {
        {
            ROWS(DECLARE)
            CHAIN(0)
            ROWS(KEEP)
        }
        {
            ROWS(DECLARE)
            CHAIN(1)
            ROWS(FINISH)
        }
        a += m * BF16_GROUP;
        b += NR * BF16_GROUP;
    }
    for (int r = 0; r < MR; r++)
        for (int i = 0; i < NR; i += W)
            STORE(c + r * ldc + i, LOAD(sum + r * NR + i));
}

static unsigned begin(void)
{
    unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | 0x8040u | 0x1f80u); /* FTZ and DAZ, nothing traps */
    return csr;
}

static void end(unsigned csr)
{
    _mm_setcsr(csr);
}
