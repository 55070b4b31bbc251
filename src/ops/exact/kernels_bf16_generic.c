/* kernels_bf16_generic.c: the bf16 class on any CPU, whatever its flush modes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Flushing every result in software costs several times the multiplication, so
 * a group is first asked whether it can need it. Nonzero factors of exponents
 * at least ea and eb are multiples of 2^(ea-7) and 2^(eb-7); their products and
 * every rounded sum of those are multiples of 2^(ea+eb-14). Where that is
 * normal nothing between 0 and FLT_MIN can arise. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define NR 16
#define BLOCK 1
#define TURN(dst, dst_ld, src, src_ld) ((void)0)
#define FILL 0.0f
#include "ops/exact/bf16_pack.h"

#define MR 16
#define STEP 4 /* rows whose results are held at a time */

/* Exponent of the smallest nonzero magnitude; large when there is none. */
static int least_exponent(const float *x, int n)
{
    uint32_t least = 0xffffffffu;
    for (int i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        u = (u & 0x7fffffffu) - 1; /* zero comes last */
        least = u < least ? u : least;
    }
    return least == 0xffffffffu ? 1000 : (int)((least + 1) >> 23) - 127;
}

static void group_plain(float s[STEP][NR], const float *restrict a,
                        const float *restrict b)
{
    float half[2][STEP][NR] = {{{0}}};
    for (int h = 0; h < 2; h++)
        for (int k = h; k < BF16_GROUP; k += 2)
            for (int r = 0; r < STEP; r++)
                for (int i = 0; i < NR; i++)
                    half[h][r][i] =
                        __builtin_fmaf(a[r * BF16_GROUP + k], b[k * NR + i],
                                       half[h][r][i]);
    for (int r = 0; r < STEP; r++)
        for (int i = 0; i < NR; i++) s[r][i] = half[0][r][i] + half[1][r][i];
}

static void group_careful(float s[STEP][NR], const float *a, const float *b)
{
    for (int r = 0; r < STEP; r++)
        for (int i = 0; i < NR; i++) {
            float half[2] = {0, 0};
            for (int k = 0; k < BF16_GROUP; k++)
                half[k % 2] = bf16_fma(a[r * BF16_GROUP + k], b[k * NR + i],
                                       half[k % 2]);
            s[r][i] = bf16_add(half[0], half[1]);
        }
}

static void tile(float *c, int64_t ldc, const void *rows, int64_t m,
                 const void *lanes, int64_t groups, bool add)
{
    const float *a = rows, *b = lanes;
    for (int64_t g = 0; g < groups; g++) {
        bool safe = least_exponent(a, MR * BF16_GROUP) +
                    least_exponent(b, NR * BF16_GROUP) - 14 >= -126;
        for (int r0 = 0; r0 < MR; r0 += STEP) {
            float s[STEP][NR];
            (safe ? group_plain : group_careful)(s, a + r0 * BF16_GROUP, b);
            for (int r = 0; r < STEP; r++)
                for (int i = 0; i < NR; i++) {
                    float *y = &c[(r0 + r) * ldc + i];
                    *y = bf16_add(g || add ? *y : 0, s[r][i]);
                }
        }
        a += m * BF16_GROUP;
        b += NR * BF16_GROUP;
    }
}

static unsigned begin(void)
{
    return 0;
}

static void end(unsigned state)
{
    (void)state;
}

const tt_bf16_kernels tt_bf16_generic = {
    .name = "generic", .mr = MR, .nr = NR, .tile = tile, .begin = begin,
    .end = end, BF16_PACKING,
};

#else
typedef int tt_no_bf16_generic;
#endif
