/* bf16_x86.h: the tiles of classes amx and vdp on x86 vectors with float
 * multiply-adds, written once for both widths, with the CPU's own flush to
 * zero.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three vectors of lanes; ROWS(X) calls X(r) for every row. Inputs are never
 * subnormal, and x86 flushes after rounding as the classes ask
 * (tests/ops/test_bf16_exact.c has the hair-thin cases), so MXCSR.FTZ is all
 * that is needed; begin sets it, end restores. */

#define NONE(r) V x##r = ZERO(), y##r = x##r, z##r = x##r;
#define TAKE(r)                                                                \
    V x##r = add ? LOAD(c + r * NR) : ZERO();                                 \
    V y##r = add ? LOAD(c + r * NR + W) : ZERO();                             \
    V z##r = add ? LOAD(c + r * NR + 2 * W) : ZERO();
#define GIVE(r)                                                                \
    STORE(c + r * NR, x##r);                                                  \
    STORE(c + r * NR + W, y##r);                                              \
    STORE(c + r * NR + 2 * W, z##r);
#define STEP(r)                                                                \
    {                                                                          \
        V v = SET1(a[r * BF16_GROUP + k]);                                     \
        x##r = FMA(v, b0, x##r);                                               \
        y##r = FMA(v, b1, y##r);                                               \
        z##r = FMA(v, b2, z##r);                                               \
    }
/* Product k of a group into each of the accumulators. */
#define PRODUCT                                                                \
    V b0 = LOAD(b + k * NR), b1 = LOAD(b + k * NR + W);                        \
    V b2 = LOAD(b + k * NR + 2 * W);                                           \
    ROWS(STEP)

/* ---- class vdp: one chain, the odd product of a pair first --------------- */

static void x86_tile_vdp(float *c, const void *rows_at, bf16_rows rows,
                     const void *lanes, int64_t groups, bool add)
{
    const float *a = rows_at, *b = lanes;
    ROWS(TAKE)
    for (int64_t g = 0; g < groups; g++) {
        for (int i = 0; i < BF16_GROUP; i++) {
            const int k = i ^ 1;
            PRODUCT
        }
        a += rows.group;
        b += NR * BF16_GROUP;
    }
    ROWS(GIVE)
}

/* ---- class amx: two chains a group --------------------------------------- */

/* The even chains of a group wait in memory while the odd ones run: two full
 * sets of accumulators do not fit the registers. */
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
#define CHAIN(first)                                                           \
    for (int k = first; k < BF16_GROUP; k += 2) {                              \
        PRODUCT                                                                \
    }

static void x86_tile_amx(float *c, const void *rows_at, bf16_rows rows,
                     const void *lanes, int64_t groups, bool add)
{
    const float *a = rows_at, *b = lanes;
    _Alignas(64) float even[MR * NR], sum[MR * NR];
    for (int r = 0; r < MR; r++)
        for (int i = 0; i < NR; i += W)
            STORE(sum + r * NR + i, add ? LOAD(c + r * NR + i) : ZERO());
    for (int64_t g = 0; g < groups; g++) {
        {
            ROWS(NONE)
            CHAIN(0)
            ROWS(KEEP)
        }
        {
            ROWS(NONE)
            CHAIN(1)
            ROWS(FINISH)
        }
        a += rows.group;
        b += NR * BF16_GROUP;
    }
    for (int r = 0; r < MR; r++)
        for (int i = 0; i < NR; i += W)
            STORE(c + r * NR + i, LOAD(sum + r * NR + i));
}

static unsigned x86_begin(void)
{
    unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | 0x8040u | 0x1f80u); /* FTZ and DAZ, nothing traps */
    return csr;
}

static void x86_end(unsigned csr)
{
    _mm_setcsr(csr);
}
