/* tc.h: the classes of tensor cores, fast: one kind of tile for linear, QK and
 * PV.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The drivers (tc_linear.c, tc_attention.c) bring the factors of a product into
 * two packed forms, rounded, with their exponents next to them, and filled up
 * with (+0)(+0) to whole groups of 16 products.
 *     rows   [K/16][m][16]   one row's 16 products of a group together
 *     lanes  [K/16][16][TC_NR]   results side by side
 * An exponent is that of ops/tensor_core.h. Infinite and NaN: TC_NOT_FINITE,
 * which no sum of exponents reaches. A zero has none: TC_NO_EXPONENT, with
 * which no sum reaches that of a number. */
#ifndef TT_OPS_EXACT_TC_H
#define TT_OPS_EXACT_TC_H

#include "ops/exact/exact.h"
#include "ops/tensor_core.h"

#ifndef TT_REAL_DOUBLE

#define TC_NR 32
#define TC_GROUP 16
#define TC_NOT_FINITE 4096
#define TC_NO_EXPONENT (-1024)

typedef struct tc_rows {
    float *x;
    int32_t *e;      /* the exponent, in both halves                          */
} tc_rows;

typedef struct tc_lanes {
    float *x;
    int32_t *e;      /* the exponent and 127, lanes in an order of the kernel */
} tc_lanes;

/* Floats that they take, K in whole groups. */
#define TC_ROWS_FLOATS(m, K) (2 * (m) * (K))
#define TC_LANES_FLOATS(K) (TC_NR * (K) + TC_NR * (K) / 2)

/* Of one class. */
typedef struct tt_tc_kernels {
    const char *name;
    /* c [m, TC_NR] goes on over `groups` groups of m rows and TC_NR lanes. */
    void (*tile)(float *c, int64_t m, tc_rows a, tc_lanes b, int64_t groups);
    /* Packs x[r * ld + k] for r < rows, k < K; the rest of m rows and of the
     * last group is zero. */
    void (*pack_rows)(tc_rows a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K);
    /* The same with x[k * ld + r]. */
    void (*pack_cols)(tc_rows a, int64_t m, const float *x, int64_t ld,
                      int64_t rows, int64_t K);
    /* Packs x[j * ld + k] for j < lanes, k < K. */
    void (*pack_lanes)(tc_lanes b, const float *x, int64_t ld, int64_t lanes,
                       int64_t K);
    /* Weights of one key block of TC_NR queries from their logits s [n, TC_NR],
     * packed into p; m [TC_NR] goes on (tc_max), alpha [TC_NR] out. */
    void (*weights)(tc_lanes p, const float *s, int64_t n, float scale,
                    float *m, float *alpha);
    /* acc [D, TC_NR] = acc * alpha */
    void (*shrink)(float *acc, const float *alpha, int64_t D);
} tt_tc_kernels;

/* [0] sums as sm80, [1] as sm90. */
extern const tt_tc_kernels tt_tc_generic[2];
#if defined(__x86_64__)
extern const tt_tc_kernels tt_tc_avx2[2], tt_tc_avx512[2];
#endif

/* That of the instruction set of exact_kernels(). */
const tt_tc_kernels *exact_tc_kernels(int unit);

void exact_tc_linear(tt_ctx *ctx, const tt_linear_args *a, int unit);
void exact_tc_attention(tt_ctx *ctx, const tt_attention_args *a, int unit);
int64_t exact_tc_attention_packed(const tt_attention_args *a);

#endif
#endif
