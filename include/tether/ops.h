/* ops.h: the operators. This is the contract other backends are validated
 * against.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every operator exists as a plain definition in src/ops/golden/, a few lines
 * of C whose order of operations *is* the meaning. Backends fill a tt_ops
 * table; model code calls the tt_* wrappers below and never knows which table
 * runs. Wrappers do nothing while ctx->status is set (status.h), and add to
 * the profile when it is on.
 *
 * Arrays are packed tt_real, last extent fastest, unless said otherwise. Large
 * weights are tt_tensor views in their stored type (bf16, f16, f32 ...) and are
 * widened inside the operator. Outputs must not overlap inputs unless an
 * operator says "in place".
 *
 * Order of sums (float class)
 *   dot      products over ascending k, in blocks of TT_DOT_BLOCK: inside a
 *            block one chain s = fma(a[k], b[k], s) from 0; the block sums are
 *            added in ascending order; the bias is added last.
 *   stat     double accumulation in 16 interleaved lanes (element i goes to
 *            lane i mod 16, ascending), lanes joined as a tree: l += l+8, l+4,
 *            l+2, l+1.
 *   softmax  keys in blocks of TT_KEY_BLOCK, see tt_attention.
 * Threads never share one sum, so their number cannot change a bit.
 *
 * The bf16 class (--class bf16) differs in tt_linear and tt_attention alone;
 * their sentences "Order" then read dot16 for dot:
 *   dot16    both factors are rounded to bf16 (nearest even; NaN stays NaN) and
 *            count as a zero of their sign where that is subnormal. k is padded
 *            with zeros to a multiple of 32. c = 0; for each block of 32 k:
 *            e = chain fma over the even k from 0, o = the same over the odd k,
 *            c = c + (e + o). All in float32, and the result of every fma and
 *            every addition is a zero of its sign when it lies below the normal
 *            range after rounding to 24 bits (x86's "tininess after rounding").
 *   What follows (bias, scale, softmax) is as in the float class and is not
 *   flushed. In attention, QK is dot16 over the head's width; the weights p_j
 *   are rounded for PV only, where a_b is dot16 over the keys of the block; the
 *   sum l_b keeps them unrounded.
 * Written out in src/ops/golden/bf16.c. Sign and payload of a NaN are not part
 * of either class. */
#ifndef TETHER_OPS_H
#define TETHER_OPS_H

#include "tether/api.h"
#include "tether/context.h"

TT_API_BEGIN

/* 256 keeps the error at that of a good BLAS or below (`tether bench error`);
 * 512 had 1.35 times that error and is not measurably faster. */
#define TT_DOT_BLOCK 256
#define TT_KEY_BLOCK 512

/* Multi-head attention. Token rows may be wider than heads*head_dim (a fused
 * qkv matrix): the strides count elements between tokens. */
typedef struct tt_attention_args {
    tt_real *o;              /* [T, H, D], stride H*D                         */
    const tt_real *q;        /* [T, H, D], stride q_stride                    */
    const tt_real *k;        /* [N, H, D], stride kv_stride                   */
    const tt_real *v;        /* [N, H, D], stride kv_stride                   */
    int64_t T, N;            /* queries, keys; N >= 1                         */
    int64_t H, D;
    int64_t q_stride, kv_stride;
    tt_real scale;           /* 1/sqrt(D); 1 for umT5                         */
    const tt_real *rel_bias; /* NULL or [H, 2N-1]: entry j-i+N-1 is added to
                                the logit of query i, key j (then T = N)      */
    const uint8_t *key_mask; /* NULL or [N]: 0 replaces the bias by the most
                                negative finite tt_real                       */
} tt_attention_args;

/* One output frame of a causal 3-D convolution over channels-last frames. */
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
                                     whatever the window reads behind it is
                                     zero as well                             */
    int up;                       /* 1, or 2: the input is seen as its nearest
                                     2x upsampling, out[i][j] = in[i/2][j/2]  */
} tt_conv_args;

/* cos and sin of p*theta_j in double for positions p = 0..npos-1 and all
 * c = D/2 pairs of a head. Pairs are split between the axes: the first
 * c - 2*(c/3) turn by frame position, the next c/3 by row, the last c/3 by
 * column; an axis with n pairs has theta_j = 10000^(-j/n), j = 0..n-1. */
typedef struct tt_rope_table {
    const double *cos, *sin; /* [npos, c]                                     */
    int64_t npos;
    int64_t pairs[3];        /* frame, row, column; they sum to c             */
} tt_rope_table;

/* What the numbers of a run are; with the inputs it determines the bits. */
typedef enum tt_class {
    TT_CLASS_F32,  /* the compute type throughout                             */
    TT_CLASS_BF16, /* linear, QK and PV from bf16 factors (see above)         */
    TT_CLASS_COUNT
} tt_class;

typedef struct tt_ops {
    const char *name;
    const char *summary;
    tt_class cls;
    void (*linear)(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                   const tt_tensor *w, const tt_real *b);
    void (*attention)(tt_ctx *ctx, const tt_attention_args *a);
    void (*conv)(tt_ctx *ctx, const tt_conv_args *a);
    void (*layer_norm)(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                       int64_t c, const tt_real *w, const tt_real *b,
                       double eps);
    void (*rms_norm)(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *w, double eps);
    void (*channel_norm)(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                         int64_t c, const tt_real *gamma);
    void (*modulate)(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                     const tt_real *scale, const tt_real *shift,
                     int64_t stride, int64_t rows);
    void (*gate_add)(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                     int64_t c, const tt_real *gate, int64_t stride,
                     int64_t rows);
    void (*add)(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);
    void (*mul)(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n);
    void (*gelu_tanh)(tt_ctx *ctx, tt_real *x, int64_t n);
    void (*silu)(tt_ctx *ctx, tt_real *x, int64_t n);
    void (*rope)(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T,
                 int64_t H, int64_t D, const tt_rope_table *table,
                 const int32_t *pos);
    void (*col_mean)(tt_ctx *ctx, double *mean, const tt_real *x, int64_t n,
                     int64_t c);
    void (*col_moment)(tt_ctx *ctx, double *m2, const tt_real *x,
                       const double *mean, int64_t n, int64_t c);
    void (*col_blend)(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                      const double *mean, const double *gain,
                      const double *target, double tau);
} tt_ops;

/* The table of that name: "exact" (float builds), "golden", "blas". NULL when
 * there is none. "blas" is in every build and loads OpenBLAS at its first
 * matrix product: where the library is missing that operator fails
 * (TT_EUNSUPPORTED) and the rest of the pass does nothing. */
const tt_ops *tt_ops_find(const char *name);
const tt_ops *tt_ops_default(void);
/* i-th table, the default first, NULL past the end: all of the float class. */
const tt_ops *tt_ops_at(int i);

/* Make the operators of `ctx` those of the table `name`, and see that they can
 * run here: "blas" loads OpenBLAS.
 * Errors   TT_EINVAL names the tables there are; TT_EUNSUPPORTED says what to
 *          install. ctx->ops stays as it was. */
tt_status tt_ops_use(tt_ctx *ctx, const char *name);

/* Is what the environment variable TT_CPU says, when it is set, an instruction
 * level of this CPU? The backend "exact" goes no higher than that level.
 * Errors   TT_EINVAL names the levels there are. */
tt_status tt_level_check(tt_ctx *ctx);

/* The library the operators of `ctx` call and the CPU it chose its kernels
 * for, "OpenBLAS 0.3.21 ... Zen"; NULL when they are all our own. */
const char *tt_ops_library(tt_ctx *ctx, char *text, size_t size);

/* The same backend in another class; NULL when it has none ("blas", and every
 * backend of a double build, have no bf16 class). */
const tt_ops *tt_ops_class(const tt_ops *ops, tt_class cls);
/* "f32", "bf16"; and back, false when there is no such name. */
const char *tt_class_name(tt_class cls);
bool tt_class_find(tt_class *cls, const char *name);

/* A part of a model that is defined in float (the VAE) stands between these:
 *     const tt_ops *before = tt_float_begin(ctx);
 *     ...
 *     tt_float_end(ctx, before);
 * In the float class they do nothing. */
const tt_ops *tt_float_begin(tt_ctx *ctx);
void tt_float_end(tt_ctx *ctx, const tt_ops *before);

/* y = x w^T + b for every row of x.
 *   y [n, o]   x [n, i]   w [o, i] any storage type   b [o] or NULL
 * Order  dot. */
void tt_linear(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
               const tt_tensor *w, const tt_real *b);

/* o = softmax(q k^T scale + bias) v, per head.
 * Order  logit = dot(q, k) * scale, then + bias. Keys ascend in blocks of
 *   TT_KEY_BLOCK: m' = max(m, block maximum), alpha = exp(m - m'),
 *   p_j = exp(logit_j - m'); inside the block l_b = chain of adds of p_j from
 *   0 and a_b = dot(p, v) over its keys; then l = fma(l, alpha, l_b),
 *   acc = fma(acc, alpha, a_b) (first block: l = l_b, acc = a_b). At the end
 *   o = acc / l. */
void tt_attention(tt_ctx *ctx, const tt_attention_args *a);

/* One frame of a causal convolution: cross-correlation, zero padding.
 *   y[i][j][o] = b[o] + sum_{a,u,v,c} w[o][a][u][v][c]
 *                * frame_a[i*stride+u-pad_top][j*stride+v-pad_left][c]
 * Order  dot over k = (a, u, v, c) ascending; taps on padding or on a NULL
 *        frame take part as zeros, which leaves every chain unchanged. */
void tt_conv(tt_ctx *ctx, const tt_conv_args *a);

/* y = (x - mean) / sqrt(var + eps) [* w + b], biased variance, per row.
 *   y, x [n, c]   w, b [c], both or neither NULL.   In place allowed.
 * Order  mean and var: stat, two passes; r = 1/sqrt(var+eps) in double;
 *        xhat = f((double)(x - mean) * r) rounded once, then fma(xhat, w, b) */
void tt_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                   int64_t c, const tt_real *w, const tt_real *b, double eps);

/* y = x / sqrt(mean(x^2) + eps) * w, per row. In place allowed.
 *   y, x [n, c]   w [c]
 * Order  stat; r in double; xhat = f((double)x * r), then xhat * w. */
void tt_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                 int64_t c, const tt_real *w, double eps);

/* The VAE's norm: y = x / max(||x||_2, 1e-12) * sqrt(c) * gamma, per row.
 * In place allowed.
 * Order  stat for ||x||^2; r = 1 / max(norm, 1e-12) in double; then
 *        f((double)x * r) rounded once, times f(sqrt(c)), times gamma. */
void tt_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *gamma);

/* x = fma(x, 1 + scale[g], shift[g]) in place; row r uses g = r / rows.
 *   x [n, c]   scale[g], shift[g]: c values at scale + g*stride. */
void tt_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                 const tt_real *scale, const tt_real *shift, int64_t stride,
                 int64_t rows);

/* x = fma(y, gate[g], x) in place; row r uses g = r / rows. */
void tt_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                 int64_t c, const tt_real *gate, int64_t stride, int64_t rows);

void tt_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n); /* x += y */
void tt_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n); /* x *= y */

/* x = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3), in place; equal
 * to 0.5 x (1 + tanh u) without its cancellation for negative x. */
void tt_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n);
/* x = x / (1 + exp(-x)), in place. */
void tt_silu(tt_ctx *ctx, tt_real *x, int64_t n);

/* Rotary embedding of interleaved pairs (2j, 2j+1):
 *   (a, b) -> (a cos - b sin, a sin + b cos), angle = pos[axis(j)] * theta_j.
 *   y, x [T, H, D]   pos [T, 3] = frame, row, column positions, each below
 *   table->npos (asserted).   In place allowed.
 * Order  in double, rounded once: fma(a, c, -(b*s)), fma(a, s, b*c). */
void tt_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T, int64_t H,
             int64_t D, const tt_rope_table *table, const int32_t *pos);

/* mean[c] over the n rows of x [n, c]; double sums, rows ascending; n >= 1. */
void tt_col_mean(tt_ctx *ctx, double *mean, const tt_real *x, int64_t n,
                 int64_t c);
/* m2[c] = sum over rows of (x - mean)^2; double, rows ascending. */
void tt_col_moment(tt_ctx *ctx, double *m2, const tt_real *x,
                   const double *mean, int64_t n, int64_t c);

/* x = (1-tau) x + tau (gain (x - mean) + target) in place, per channel.
 *   x [n, c]   mean, gain, target [c]
 * Order  in double, rounded once: a = fma(gain, x - mean, target), then
 *        fma(tau, a, (1 - tau) * x). */
void tt_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                  const double *mean, const double *gain, const double *target,
                  double tau);

/* Build a rotary table for head width D (even) and npos positions, in double
 * with our own pow, sin and cos. Lives in `a`. */
tt_status tt_rope_make(tt_ctx *ctx, tt_arena *a, tt_rope_table *out,
                       int64_t D, int64_t npos);

TT_API_END

#endif
