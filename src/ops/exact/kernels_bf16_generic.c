/* kernels_bf16_generic.c: classes amx and vdp on any CPU, whatever its flush
 * modes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Flushing every result in software costs several times the multiplication, so
 * a group is first asked whether it can need it. Nonzero factors of exponents
 * at least ea and eb are multiples of 2^(ea-7) and 2^(eb-7); their products and
 * every rounded sum of those are multiples of 2^(ea+eb-14). Where that is
 * normal nothing between 0 and FLT_MIN can arise. In class vdp a sum goes on
 * from group to group, so it is asked too. */
#include "core/fma.h"
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define NR 16
#define BLOCK 1
#define TURN(dst, dst_ld, src, src_ld) ((void)0)
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

/* Are the products of a group multiples of FLT_MIN? */
static bool whole_products(const float *a, const float *b)
{
    return least_exponent(a, MR * BF16_GROUP) +
           least_exponent(b, NR * BF16_GROUP) - 14 >= -126;
}

static unsigned plain_begin(void)
{
    return 0;
}

static void plain_end(unsigned state)
{
    (void)state;
}

/* ---- class amx ----------------------------------------------------------- */

static void amx_plain(float s[STEP][NR], const float *restrict a,
                      const float *restrict b)
{
    float half[2][STEP][NR] = {{{0}}};
    for (int h = 0; h < 2; h++)
        for (int k = h; k < BF16_GROUP; k += 2)
            for (int r = 0; r < STEP; r++)
                for (int i = 0; i < NR; i++)
                    half[h][r][i] =
                        fma_f32(a[r * BF16_GROUP + k], b[k * NR + i],
                                       half[h][r][i]);
    for (int r = 0; r < STEP; r++)
        for (int i = 0; i < NR; i++) s[r][i] = half[0][r][i] + half[1][r][i];
}

static void amx_careful(float s[STEP][NR], const float *a, const float *b)
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

static void plain_tile_amx(float *c, const void *rows_at, bf16_rows rows,
                     const void *lanes, int64_t groups, bool add)
{
    const float *a = rows_at, *b = lanes;
    for (int64_t g = 0; g < groups; g++) {
        const bool safe = whole_products(a, b);
        for (int r0 = 0; r0 < MR; r0 += STEP) {
            float s[STEP][NR];
            (safe ? amx_plain : amx_careful)(s, a + r0 * BF16_GROUP, b);
            for (int r = 0; r < STEP; r++)
                for (int i = 0; i < NR; i++) {
                    float *y = &c[(r0 + r) * NR + i];
                    *y = bf16_add(g || add ? *y : 0, s[r][i]);
                }
        }
        a += rows.group;
        b += NR * BF16_GROUP;
    }
}

/* ---- class vdp ----------------------------------------------------------- */

/* Are the sums of a tile multiples of FLT_MIN? */
static bool whole_sums(float s[MR][NR])
{
    return least_exponent(s[0], MR * NR) - 23 >= -126;
}

static void vdp_plain(float s[STEP][NR], const float *restrict a,
                      const float *restrict b)
{
    float t[STEP][NR];
    memcpy(t, s, sizeof t);
    for (int i = 0; i < BF16_GROUP; i++) {
        const int k = i ^ 1;
        for (int r = 0; r < STEP; r++)
            for (int j = 0; j < NR; j++)
                t[r][j] = fma_f32(a[r * BF16_GROUP + k], b[k * NR + j],
                                         t[r][j]);
    }
    memcpy(s, t, sizeof t);
}

static void vdp_careful(float s[STEP][NR], const float *a, const float *b)
{
    for (int i = 0; i < BF16_GROUP; i++) {
        const int k = i ^ 1;
        for (int r = 0; r < STEP; r++)
            for (int j = 0; j < NR; j++)
                s[r][j] = bf16_fma(a[r * BF16_GROUP + k], b[k * NR + j],
                                   s[r][j]);
    }
}

static void plain_tile_vdp(float *c, const void *rows_at, bf16_rows rows,
                     const void *lanes, int64_t groups, bool add)
{
    const float *a = rows_at, *b = lanes;
    float s[MR][NR] = {{0}};
    for (int r = 0; add && r < MR; r++) memcpy(s[r], c + r * NR, sizeof s[r]);
    bool sums = whole_sums(s);
    for (int64_t g = 0; g < groups; g++) {
        const bool safe = whole_products(a, b);
        for (int r = 0; r < MR; r += STEP)
            (safe && sums ? vdp_plain : vdp_careful)
                (s + r, a + r * BF16_GROUP, b);
        if (!safe || !sums) sums = whole_sums(s);
        a += rows.group;
        b += NR * BF16_GROUP;
    }
    for (int r = 0; r < MR; r++) memcpy(c + r * NR, s[r], sizeof s[r]);
}

const tt_bf16_kernels tt_bf16_generic =
    BF16_KERNELS(plain, amx, "generic", GENERIC);
const tt_bf16_kernels tt_vdp_generic =
    BF16_KERNELS(plain, vdp, "generic", GENERIC);

#else
typedef int tt_no_bf16_generic;
#endif
