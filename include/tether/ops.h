/* ops.h: the operators. This is the contract other backends are validated
 * against.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every operator exists as a plain definition in src/ops/golden/, a few lines
 * of C whose order of operations *is* the meaning. Its arguments are a struct;
 * backends fill a table of functions of these structs (backend.h). Model code
 * calls the tt_* wrappers below, which make the struct, and never knows which
 * table runs. Wrappers do nothing while ctx->status is set (status.h), and add
 * to the profile when it is on.
 *
 * Arrays are packed tt_real, last extent fastest, unless said otherwise: values
 * in memory of the context's device (device.h). Arrays of double, positions,
 * masks, lists of frames and the table of angles are the host's; those of
 * tt_wide, statistics of columns, may be on either side. Large weights
 * are tt_tensor views in their stored type (bf16, f16, f32 ...) and are
 * widened inside the operator. Outputs must not overlap inputs unless an
 * operator says "in place".
 *
 * The order of every sum is part of the meaning. The orders are defined once,
 * with an example of each, in src/ops/README.md; "Order dot" and "Order stat"
 * below are the names used there. The other classes (classes.h) differ in the
 * dot products of tt_linear and tt_attention, and of a tt_conv that asks for it
 * (by_class), alone: src/ops/golden/README.md.
 * Threads never share one sum, so their number cannot change a bit. Sign and
 * payload of a NaN are not part of any class. */
#ifndef TETHER_OPS_H
#define TETHER_OPS_H

#include "tether/api.h"
#include "tether/context.h"

TT_API_BEGIN

/* 256 keeps the error at that of a good BLAS or below (`tether bench error`);
 * 512 had 1.35 times that error and is not measurably faster. */
#define TT_DOT_BLOCK 256
#define TT_KEY_BLOCK 512

typedef struct tt_ops tt_ops; /* a backend: backend.h */

/* Every operator: a struct of its arguments, whose members stand in the order
 * of the wrapper's parameters, and the wrapper. */

/* y = x w^T + b for every row of x.
 * Order  dot. */
typedef struct tt_linear_args {
    tt_real *y;              /* [n, o]                                        */
    const tt_real *x;        /* [n, i]                                        */
    int64_t n;
    const tt_tensor *w;      /* [o, i] any storage type                       */
    const tt_real *b;        /* [o] or NULL                                   */
} tt_linear_args;

/* o = softmax(q k^T scale + bias) v, per head. Token rows may be wider than
 * heads*head_dim (a fused qkv matrix): the strides count elements between
 * tokens.
 * Order  one chain over D for a logit, dot for values, keys in blocks of
 *        TT_KEY_BLOCK: "Attention" of src/ops/README.md.
 * Without queries it packs keys and values, and no more. */
typedef struct tt_attention_args {
    tt_real *o;              /* [T, H, D], stride H*D                         */
    const tt_real *q;        /* [T, H, D], stride q_stride                    */
    const tt_real *k;        /* [N - n_packed, H, D], stride kv_stride: from  */
    const tt_real *v;        /* key n_packed on; NULL where there is none     */
    int64_t T, N;            /* queries, keys; N >= 1                         */
    int64_t H, D;
    int64_t q_stride, kv_stride;
    tt_real scale;           /* (tt_real)(1 / sqrt((double)D)); 1 for umT5    */
    const tt_real *rel_bias; /* NULL or [H, 2N-1]: entry j-i+N-1 is added to
                                the logit of query i, key j (then T = N)      */
    const uint8_t *key_mask; /* NULL or [N]: 0 replaces the bias by the most
                                negative finite tt_real                       */
    /* Keys and values as the backend packs them, from call to call; where
     * tt_ops.packed says how many numbers that are, else NULL. */
    tt_real *packed;         /* NULL or [H, packed(N, D)]: for later calls    */
    int64_t n_packed;        /* a multiple of TT_KEY_BLOCK, or N: leading keys
                                whose part of `packed` is there from a call of
                                the same N, H and D. Without `packed` 0       */
    int64_t same;            /* 0, or: the keys from this number on are equal,
                                and so are their values (what is after the
                                text of a prompt). Bits are those without: a
                                backend may use it or not                     */
    bool bf16;               /* k and v hold bf16 numbers, packed, where tt_real
                                is float; strides count these. Only of a table
                                with tt_ops.by_class, in a class but f32      */
} tt_attention_args;

/* One output frame of a causal 3-D convolution over channels-last frames:
 * cross-correlation, zero padding.
 *   y[i][j][o] = b[o] + sum_{a,u,v,c} w[o][a][u][v][c]
 *                * frame_a[i*stride+u-pad_top][j*stride+v-pad_left][c]
 * Order  dot over k = (a, u, v, c) ascending; taps on padding or on a NULL
 *        frame take part as zeros. In class f32 whatever the table's class is,
 *        or `by_class`: tt_linear of that class over the windows. */
typedef struct tt_conv_args {
    tt_real *y;                   /* [Ho, Wo, Cout]                           */
    const tt_real *const *frame;  /* kt input frames [Hi, Wi, Cin], oldest
                                     first; NULL stands for a frame of zeros  */
    const tt_tensor *w;           /* [Cout, kt, kh, kw, Cin] packed           */
    const tt_real *b;             /* [Cout] or NULL                           */
    int64_t Hi, Wi, Cin;          /* stored extents of an input frame         */
    int64_t Ho, Wo, Cout;
    int kt, kh, kw;
    int stride;                   /* 1 or 2, both directions                  */
    int pad_top, pad_left;        /* rows/columns of zeros before the image;
                                     whatever the window reads after it is
                                     zero as well                             */
    int up;                       /* 1, or 2: the input is seen as its nearest
                                     2x upsampling, out[i][j] = in[i/2][j/2]  */
    bool by_class;                /* in class f32 it says nothing; in another
                                     it is asked only of a table that says so */
    bool bf16;                    /* frames hold bf16 numbers, packed, where
                                     tt_real is float: only with by_class     */
} tt_conv_args;

/* y = (x - mean) / sqrt(var + eps) [* w + b], biased variance, per row.
 * In place allowed.
 * Order  stat, mean and var in two passes; rounded once before w and b. */
typedef struct tt_layer_norm_args {
    tt_real *y;              /* [n, c]                                        */
    const tt_real *x;        /* [n, c]                                        */
    int64_t n, c;
    const tt_real *w, *b;    /* [c], both or neither NULL                     */
    double eps;
} tt_layer_norm_args;

/* y = x / sqrt(mean(x^2) + eps) * w, per row. In place allowed.
 * Order  stat; rounded once before w. */
typedef struct tt_rms_norm_args {
    tt_real *y;              /* [n, c]                                        */
    const tt_real *x;        /* [n, c]                                        */
    int64_t n, c;
    const tt_real *w;        /* [c]                                           */
    double eps;
} tt_rms_norm_args;

/* The VAE's norm: y = x / max(||x||_2, 1e-12) * sqrt(c) * gamma, per row.
 * In place allowed.
 * Order  stat; rounded once before sqrt(c) and gamma. */
typedef struct tt_channel_norm_args {
    tt_real *y;              /* [n, c]                                        */
    const tt_real *x;        /* [n, c]                                        */
    int64_t n, c;
    const tt_real *gamma;    /* [c]                                           */
} tt_channel_norm_args;

/* x = fma(x, 1 + scale[g], shift[g]) in place; row r uses g = r / rows. */
typedef struct tt_modulate_args {
    tt_real *x;              /* [n, c]                                        */
    int64_t n, c;
    const tt_real *scale;    /* scale[g]: c values at scale + g*stride        */
    const tt_real *shift;    /* shift[g]: c values at shift + g*stride        */
    int64_t stride, rows;
} tt_modulate_args;

/* x = fma(y, gate[g], x) in place; row r uses g = r / rows. */
typedef struct tt_gate_add_args {
    tt_real *x;              /* [n, c]                                        */
    const tt_real *y;        /* [n, c]                                        */
    int64_t n, c;
    const tt_real *gate;     /* gate[g]: c values at gate + g*stride          */
    int64_t stride, rows;
} tt_gate_add_args;

/* x += y */
typedef struct tt_add_args {
    tt_real *x;              /* [n]                                           */
    const tt_real *y;        /* [n]                                           */
    int64_t n;
} tt_add_args;

/* x *= y */
typedef struct tt_mul_args {
    tt_real *x;              /* [n]                                           */
    const tt_real *y;        /* [n]                                           */
    int64_t n;
} tt_mul_args;

/* x = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3), in place; equal
 * to 0.5 x (1 + tanh u) without its cancellation for negative x.
 * Order  "Elements" of src/ops/README.md, with both constants. */
typedef struct tt_gelu_tanh_args {
    tt_real *x;              /* [n]                                           */
    int64_t n;
} tt_gelu_tanh_args;

/* x = x / (1 + exp(-x)), in place. */
typedef struct tt_silu_args {
    tt_real *x;              /* [n]                                           */
    int64_t n;
} tt_silu_args;

/* cos and sin of p*theta_j in double for positions p = 0..npos-1 and all
 * c = D/2 pairs of a head. Pairs are split between the axes: the first
 * c - 2*(c/3) turn by frame position, the next c/3 by row, the last c/3 by
 * column; an axis with n pairs has theta_j = 10000^(-j/n), j = 0..n-1. */
typedef struct tt_rope_table {
    const double *cos, *sin; /* [npos, c]                                     */
    int64_t npos;
    int64_t pairs[3];        /* frame, row, column; they sum to c             */
} tt_rope_table;

/* Build a rotary table for head width D (even) and npos positions, in double
 * with our own pow, sin and cos. Lives in `a`. */
tt_status tt_rope_make(tt_ctx *ctx, tt_arena *a, tt_rope_table *out,
                       int64_t D, int64_t npos);

/* Rotary embedding of interleaved pairs (2j, 2j+1), in place allowed:
 *   (a, b) -> (a cos - b sin, a sin + b cos), angle = pos[axis(j)] * theta_j.
 * Order  in double, rounded once: fma(a, c, -(b*s)), fma(a, s, b*c). */
typedef struct tt_rope_args {
    tt_real *y;              /* [T, H, D]                                     */
    const tt_real *x;        /* [T, H, D]                                     */
    int64_t T, H, D;
    const tt_rope_table *table;
    const tt_index *pos;     /* [T, 3] frame, row, column positions, each below
                                table->npos (asserted of the host's); of the
                                host or where the values are                  */
} tt_rope_args;

/* mean[c] over the n rows of x; double sums, rows ascending; n >= 1. */
typedef struct tt_col_mean_args {
    tt_wide *mean;           /* [c]                                           */
    const tt_real *x;        /* [n, c]                                        */
    int64_t n, c;
} tt_col_mean_args;

/* m2[c] = sum over rows of (x - mean)^2, in double.
 * Order  a chain of fma(d, d, sum) over ascending rows, from 0. */
typedef struct tt_col_moment_args {
    tt_wide *m2;             /* [c]                                           */
    const tt_real *x;        /* [n, c]                                        */
    const tt_wide *mean;     /* [c]                                           */
    int64_t n, c;
} tt_col_moment_args;

/* x = (1-tau) x + tau (gain (x - mean) + target) in place, per channel. Without
 * gain and mean, both NULL, a moving average: x = (1-tau) x + tau target.
 * Order  in double, rounded once: a = fma(gain, x - mean, target), then
 *        fma(tau, a, (1 - tau) * x); of an average both products are rounded,
 *        tau * target + (1 - tau) * x. */
typedef struct tt_col_blend_args {
    tt_real *x;              /* [n, c]                                        */
    int64_t n, c;
    const tt_wide *mean, *gain, *target; /* [c]                               */
    double tau;
} tt_col_blend_args;

/* ---- several operators in one -------------------------------------------- */

/* Each of these is operators one after the other, with the bits of all. A
 * backend that has them in one (tt_fused) never stores what is between them;
 * any other is called for each, and need not know. */

/* A layer norm, then modulation of its result where mod.scale is not NULL:
 * mod.x, n and c are y, n and c of the norm. */
typedef struct tt_normed {
    tt_layer_norm_args norm;
    tt_modulate_args mod;
} tt_normed;

TT_API_END

#endif
