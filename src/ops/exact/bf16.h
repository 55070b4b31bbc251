/* bf16.h: classes amx and vdp, fast: one kind of tile for linear, QK and PV.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The drivers (bf16_linear.c, bf16_attention.c) bring the factors of a product
 * into two packed forms, rounded, and padded with zeros to whole groups of 32
 * products; a kernel multiplies a tile of them. What is padded must not change
 * a sum: class amx is defined with zeros there, and class vdp has -0 times +0,
 * which leaves every sum as it is.
 *     rows   [K/32][m][32]   m rows, a group of 32 products of a row together
 *     lanes  the kernel's own, nr results wide
 * Stored bf16 weights are rows as they lie, [m][K], for a kernel that says so.
 * What a packed value looks like is the kernel's own business too: float for
 * vector units, bf16 for matrix units. */
#ifndef TT_OPS_EXACT_BF16_H
#define TT_OPS_EXACT_BF16_H

#include "ops/bf16.h"
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#define BF16_MAX_MR 32
#define BF16_MAX_NR 48

/* Rows of a tile: value k of row r is a[r * row + k / 32 * group + k % 32]. */
typedef struct bf16_rows {
    int64_t row, group;
} bf16_rows;

/* Those of a packed form of m, of which row r is at bf16_row(). */
static inline bf16_rows bf16_packed(int64_t m)
{
    return (bf16_rows){BF16_GROUP, m * BF16_GROUP};
}

static inline const void *bf16_row(const void *a, int64_t r, int size)
{
    return (const char *)a + r * BF16_GROUP * size;
}

typedef struct tt_bf16_kernels {
    const char *name;
    exact_level level;   /* its row of tuning.h                               */
    int mr, nr;   /* nr is also aq of the float kernels used next to          */
    int size;     /* bytes of a packed value                                  */
    bool stored;  /* takes rows in one piece (group 32), stored bf16 at any
                   * address; subnormal ones it reads as zeros. Else packed   */

    /* rows: row r, product k is x[r*ld + k] (pack_rows) or x[k*ld + r]
     * (pack_cols) for r < rows and k < K; else zero. */
    void (*pack_rows)(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K);
    void (*pack_cols)(void *a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K);
    /* lanes: lane j, product k is x[j*ld + k] (pack_lanes), for j < lanes and
     * k < K; or p[k*nr + j] for all nr lanes (pack_weights). */
    void (*pack_lanes)(void *b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K);
    void (*pack_weights)(void *b, const float *p, int64_t K);

    /* c [mr, nr] = the class's chain over mr rows, nr lanes and `groups`
     * groups; goes on from c when `add`. Arguments that do not fit registers
     * of the CPU (a larger struct) cost more than the call: they may be copied
     * by vectors, after the sums of the tile before. */
    void (*tile)(float *c, const void *a, bf16_rows rows, const void *lanes,
                 int64_t groups, bool add);
    /* The same of at most `few`, or `half`, or just `more` lanes, the first, in
     * less time; half < more < few, and 0 where there is none. The others of c
     * are set to something finite: the softmax looks at them. */
    int few, half, more;
    void (*tile_few)(float *c, const void *a, bf16_rows rows, const void *lanes,
                     int64_t groups, bool add);
    void (*tile_half)(float *c, const void *a, bf16_rows rows,
                      const void *lanes, int64_t groups, bool add);
    void (*tile_more)(float *c, const void *a, bf16_rows rows,
                      const void *lanes, int64_t groups, bool add);
    /* That of tt_kernels, without tops, whose weights go to lanes, rounded; s
     * is what tile gave. False: nothing was done, some weight is too near
     * FLT_MIN. NULL: always so. */
    bool (*softmax)(void *lanes, const float *s, int64_t n, float scale,
                   float *m, float *l, float *alpha, bool first);
    /* Around calls of tile in one thread; no other arithmetic in between. */
    unsigned (*begin)(void);
    void (*end)(unsigned state);
} tt_bf16_kernels;

/* The tile for so many lanes that count, of which there is one at least. */
#define BF16_TILE(kn, live)                                                    \
    ((live) <= (kn)->half ? (kn)->tile_half                                    \
     : (live) == (kn)->more ? (kn)->tile_more                                  \
     : (live) <= (kn)->few ? (kn)->tile_few : (kn)->tile)

extern const tt_bf16_kernels tt_bf16_generic;
#if defined(__x86_64__)
extern const tt_bf16_kernels tt_bf16_avx2, tt_bf16_avx512, tt_bf16_amx_model;
#endif
#if defined(TT_HAVE_AMX)
extern const tt_bf16_kernels tt_bf16_amx;
/* Does CPUID show AMX with bf16 and AVX512_BF16 (which its softmax takes), and
 * does the system allow it? */
bool bf16_amx_present(void);
/* n / 8 rounds of independent products, for tt_machine_amx; as fma_loop. */
double bf16_amx_loop(int64_t n);
#endif

/* Class vdp with float multiply-adds and with VDPBF16PS itself. */
extern const tt_bf16_kernels tt_vdp_generic;
#if defined(__x86_64__)
extern const tt_bf16_kernels tt_vdp_avx2, tt_vdp_avx512;
#endif
#if defined(TT_HAVE_AVX512BF16)
extern const tt_bf16_kernels tt_vdp_avx512bf16;
/* Does CPUID show VDPBF16PS? */
bool vdp_present(void);
/* Which of the two does more products a second? Timed once, 0.2 ms. */
bool vdp_faster(void);
/* n rounds of independent ones, for tt_machine_vdp; as fma_loop. */
double vdp_loop(int64_t n);
#endif

/* Do both give the same bits where they most easily differ? */
bool bf16_same_answer(const tt_bf16_kernels *a, const tt_bf16_kernels *b);

/* The best of this CPU, at most of the level that TT_CPU names: avx512 also
 * turns AMX off. The first call asks the matrix unit (ctx->matrix_unit). */
const tt_bf16_kernels *exact_bf16_kernels(tt_ctx *ctx);
const tt_bf16_kernels *exact_vdp_kernels(tt_ctx *ctx);

/* The drivers, around the kernels of either class. */
void bf16_linear(tt_ctx *ctx, const tt_linear_args *a,
                 const tt_bf16_kernels *kn);
void bf16_attention(tt_ctx *ctx, const tt_attention_args *a,
                    const tt_bf16_kernels *kn);
/* Of the class of these kernels, of shapes that they take. */
bool bf16_conv_takes(const tt_conv_args *p, const tt_bf16_kernels *kn);
void bf16_conv(tt_ctx *ctx, const tt_conv_args *p, const tt_bf16_kernels *kn);
int64_t bf16_attention_packed(const tt_attention_args *a,
                              const tt_bf16_kernels *kn);

#endif
#endif
