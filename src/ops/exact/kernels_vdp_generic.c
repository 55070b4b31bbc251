/* kernels_vdp_generic.c: class vdp on any CPU, whatever its flush modes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As kernels_bf16_generic.c: where sums and products of a group are multiples
 * of FLT_MIN nothing between 0 and FLT_MIN can arise, and no result needs a
 * look. A sum goes on from group to group, so it is asked too. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define NR 16
#define BLOCK 1
#define TURN(dst, dst_ld, src, src_ld) ((void)0)
#define FILL -0.0f
#include "ops/exact/bf16_pack.h"

#define MR 16
#define STEP 4 /* rows whose results are held at a time */

/* Exponent of the smallest nonzero magnitude; large when there is none. */
static int least_exponent(const float *x, int64_t n)
{
    uint32_t least = 0xffffffffu;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        u = (u & 0x7fffffffu) - 1; /* zero comes last */
        least = u < least ? u : least;
    }
    return least == 0xffffffffu ? 1000 : (int)((least + 1) >> 23) - 127;
}

/* Are the sums of a tile multiples of FLT_MIN? */
static bool whole(float s[MR][NR])
{
    return least_exponent(s[0], MR * NR) - 23 >= -126;
}

static void group_plain(float s[STEP][NR], const float *restrict a,
                        const float *restrict b)
{
    float t[STEP][NR];
    memcpy(t, s, sizeof t);
    for (int i = 0; i < BF16_GROUP; i++) {
        const int k = i ^ 1;
        for (int r = 0; r < STEP; r++)
            for (int j = 0; j < NR; j++)
                t[r][j] = __builtin_fmaf(a[r * BF16_GROUP + k], b[k * NR + j],
                                         t[r][j]);
    }
    memcpy(s, t, sizeof t);
}

static void group_careful(float s[STEP][NR], const float *a, const float *b)
{
    for (int i = 0; i < BF16_GROUP; i++) {
        const int k = i ^ 1;
        for (int r = 0; r < STEP; r++)
            for (int j = 0; j < NR; j++)
                s[r][j] = bf16_fma(a[r * BF16_GROUP + k], b[k * NR + j],
                                   s[r][j]);
    }
}

static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const float *a = rows, *b = lanes;
    float s[MR][NR] = {{0}};
    for (int r = 0; add && r < MR; r++) memcpy(s[r], c + r * ldc, sizeof s[r]);
    bool sums = whole(s);
    for (int64_t g = 0; g < groups; g++) {
        const bool safe = least_exponent(a, MR * BF16_GROUP) +
                          least_exponent(b, NR * BF16_GROUP) - 14 >= -126;
        for (int r = 0; r < MR; r += STEP)
            (safe && sums ? group_plain : group_careful)
                (s + r, a + r * BF16_GROUP, b);
        if (!safe || !sums) sums = whole(s);
        a += m * BF16_GROUP;
        b += NR * BF16_GROUP;
    }
    for (int r = 0; r < MR; r++) memcpy(c + r * ldc, s[r], sizeof s[r]);
}

static unsigned begin(void)
{
    return 0;
}

static void end(unsigned state)
{
    (void)state;
}

const tt_bf16_kernels tt_vdp_generic = {
    .name = "generic", .mr = MR, .nr = NR, .tile = tile, .begin = begin,
    .end = end, BF16_PACKING,
};

#else
typedef int tt_no_vdp_generic;
#endif
