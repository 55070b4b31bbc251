/* vdp_x86.h: the tile of class vdp on x86 vectors with float multiply-adds,
 * written once for both widths.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One chain per accumulator, the odd product of a pair first. Three vectors of
 * lanes; ROWS(X) calls X(r) for every row. Inputs are never subnormal, and x86
 * flushes after rounding as the class asks, so MXCSR.FTZ is all that is needed
 * (bf16_x86.h). */

#define DECLARE(r)                                                             \
    V x##r = add ? LOAD(c + r * ldc) : ZERO();                                 \
    V y##r = add ? LOAD(c + r * ldc + W) : ZERO();                             \
    V z##r = add ? LOAD(c + r * ldc + 2 * W) : ZERO();
#define STEP(r)                                                                \
    {                                                                          \
        V v = SET1(a[r * BF16_GROUP + k]);                                     \
        x##r = FMA(v, b0, x##r);                                               \
        y##r = FMA(v, b1, y##r);                                               \
        z##r = FMA(v, b2, z##r);                                               \
    }
#define GIVE(r)                                                                \
    STORE(c + r * ldc, x##r);                                                  \
    STORE(c + r * ldc + W, y##r);                                              \
    STORE(c + r * ldc + 2 * W, z##r);

static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const float *a = rows, *b = lanes;
    ROWS(DECLARE)
    for (int64_t g = 0; g < groups; g++) {
        for (int i = 0; i < BF16_GROUP; i++) {
            const int k = i ^ 1;
            V b0 = LOAD(b + k * NR), b1 = LOAD(b + k * NR + W);
            V b2 = LOAD(b + k * NR + 2 * W);
            ROWS(STEP)
        }
        a += m * BF16_GROUP;
        b += NR * BF16_GROUP;
    }
    ROWS(GIVE)
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
