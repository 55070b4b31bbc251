/* exact.h: kernels chosen at run time, all with the bits of ops/golden/.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The drivers (linear.c around product.c, attention.c around walk.c, conv.c,
 * rows.c) block, pack and share work between threads; they are the same for
 * every machine. What they call per tile or per row is a tt_kernels table, one
 * per instruction set. A kernel keeps every chain of the definition: lanes of a
 * vector are different outputs, never parts of one sum. */
#ifndef TT_OPS_EXACT_H
#define TT_OPS_EXACT_H

#include "ops/backends.h"
#include "ops/exact/level.h"
#include "ops/exact/tuning.h"

#include <string.h>

#ifndef TT_REAL_DOUBLE /* the exact backend exists for float alone */

#define EXACT_MAX_MR 16
#define EXACT_MAX_NR 64

/* What a tile asks memory for meanwhile, as those after it will read it: so
 * many bytes for every product of the call, from an address on. Kernels for x86
 * ask for one line at every second product, others for nothing. What is asked
 * for must lie somewhere, or begin where something does: CPUs look in vain for
 * a page that is none, every time. */
typedef struct exact_ask {
    uintptr_t next, each;
} exact_ask;

/* Windows of a convolution, where its inputs lie (conv_block.h): product k of
 * row r is line k / run of the window, number k % run of it. */
typedef struct exact_window {
    const float *x;      /* of row 0                                          */
    int64_t ld;          /* from a row to the next                            */
    int64_t run;         /* products of a line, which stand in one piece      */
    int64_t high;        /* lines of a frame                                  */
    int64_t line, frame; /* from a line and from a frame to the next          */
    exact_ask ask;       /* of a call, whichever its first product            */
} exact_window;

/* Product k of row 0; at most *n of them are wanted, *n are after each
 * other. */
static inline const float *exact_piece(const exact_window *w, int64_t k,
                                       int64_t *n)
{
    const int64_t s = k / w->run, at = k % w->run;
    if (*n > w->run - at) *n = w->run - at;
    return w->x + s / w->high * w->frame + s % w->high * w->line + at;
}

/* Rows that stand in one piece each. */
static inline exact_window exact_rows(const float *x, int64_t ld)
{
    return (exact_window){.x = x, .ld = ld, .run = INT64_MAX, .high = 1};
}

typedef struct tt_kernels {
    const char *name;
    exact_level level;   /* its row of tuning.h                               */

    /* c [mr, nr] (row stride ldc) = chain over k < kc of a[r][k] b[k][lane],
     * from 0; added to c when `add`; then + bias[lane] when bias is given.
     *   a [mr, kc] row stride lda     b [kc, nr] packed */
    int mr, nr;
    void (*linear_tile)(float *c, int64_t ldc, const float *a, int64_t lda,
                        const float *b, int64_t kc, bool add,
                        const float *bias);
    /* linear_tile of the first `few` lanes alone, in less time; the others of c
     * are written or not. 0: there is none. */
    int few;
    void (*linear_few)(float *c, int64_t ldc, const float *a, int64_t lda,
                       const float *b, int64_t kc, bool add,
                       const float *bias);
    /* Of the first `half`, nr = 2 half; the others of c are not written. */
    int half;
    void (*linear_half)(float *c, int64_t ldc, const float *a, int64_t lda,
                        const float *b, int64_t kc, bool add,
                        const float *bias);
    /* Of n <= `rest` <= REST_K lanes, the first of which lie where b and c do,
     * with any kc: a chain for every TT_DOT_BLOCK. No other of c is written. In
     * b the REST_K products of lane j from k on, a multiple of REST_K, lie at
     * b[(k + j) nr ..] side by side; those after the last multiple as in any
     * panel. As many as `rest` lanes are read. 0: there is none, as where
     * `half` is 0. */
    int rest;
#define REST_K 16
    void (*linear_rest)(float *c, int64_t ldc, const float *a, int64_t lda,
                        const float *b, int64_t n, int64_t kc, bool add);
    /* linear_half of rows of bf16 numbers; NULL: not in these kernels. */
    void (*linear_half16)(float *c, int64_t ldc, const uint16_t *a, int64_t lda,
                          const float *b, int64_t kc, bool add,
                          const float *bias);
    /* Transposed, for linear_transposed.c: c [mr, nr] (row stride ldc) =
     * chain over k < kc of x[k][r] w[k][lane], from 0; added to `from` [mr, nr]
     * if that is given, then + bias[lane] if that is. c may be `from`.
     * Meanwhile it asks.
     *   x [kc, mr], w [kc, nr] packed
     * transposed_half has the first mr / 2 rows alone. transposed_far stores
     * around the caches: every row of c must begin where a cache line does, and
     * others see it after transposed_end. NULL: not in these kernels. */
    void (*transposed_tile)(float *c, int64_t ldc, const float *from,
                            const float *x, const float *w, int64_t kc,
                            const float *bias, exact_ask ask);
    void (*transposed_half)(float *c, int64_t ldc, const float *from,
                            const float *x, const float *w, int64_t kc,
                            const float *bias, exact_ask ask);
    void (*transposed_far)(float *c, int64_t ldc, const float *from,
                           const float *x, const float *w, int64_t kc,
                           const float *bias, exact_ask ask);
    void (*transposed_end)(void);
    /* x [kc, mr] = transpose of n <= mr rows (row stride ld); those past n are
     * any numbers. */
    void (*transposed_rows)(float *x, const float *rows, int64_t ld, int64_t n,
                            int64_t kc);
    /* linear_tile of rows that are windows, products [k, k + kc) of them; it
     * asks for x->ask. */
    void (*conv_tile)(float *c, int64_t ldc, const exact_window *x, int64_t k,
                      const float *b, int64_t kc, bool add, const float *bias);
    /* n <= `rest` lanes of such rows, of b as in any panel as many as `rest`
     * are read; NULL where `rest` is 0. */
    void (*conv_rest)(float *c, int64_t ldc, const exact_window *x, int64_t k,
                      const float *b, int64_t n, int64_t kc, bool add);
    /* panel [kc, nr] = transpose of src [nr, kc] (row stride ld) */
    void (*pack)(float *panel, const float *src, int64_t ld, int64_t kc);
    /* y [rows, cols] (row stride ldy) = transpose of src [cols, rows] (row
     * stride ld) + bias [cols] (NULL: none); `far`: no cache will keep y until
     * it is read */
    void (*turn)(float *y, int64_t ldy, const float *src, int64_t ld,
                 int64_t rows, int64_t cols, const float *bias, bool far);

    /* Attention works on `aq` queries along the lanes and `am` keys (scores)
     * or channels (values) along the rows. No answer depends on lanes from
     * `live` on: their sums are written, but may be any numbers.
     * scores: s [am, aq] = chain over d < D of k[r*D + d] q[d][lane] */
    int am, aq;
    void (*score_tile)(float *s, const float *k, const float *q, int64_t D,
                       int64_t live);
    /* The same, and raises top [aq] to the largest score of its query, which
     * may be any lower number next to a NaN; NULL: not in these kernels. */
    void (*score_top)(float *s, const float *k, const float *q, int64_t D,
                      int64_t live, float *top);
    /* values: x [am, aq] = chain over j < n of v[j*am + r] p[j][lane], from
     * `begun` [am, aq] on (NULL: from 0), and
     *     o [am, aq] = fma(o, alpha[lane], part + x)
     * part NULL: x stands for part + x; alpha NULL: o = part + x, and o is not
     * read. o may be `begun`. */
    void (*value_tile)(float *o, const float *begun, const float *part,
                       const float *v, const float *p, int64_t n, int64_t live,
                       const float *alpha);
    /* Softmax of one key block for aq queries: s [n, aq] logits in, weights
     * out; m, l running maximum and sum [aq]; alpha [aq] out: the factor for
     * what was accumulated before (unused when `first`). tops [aq]: the
     * largest of each column of s, before the scale, where it is known and
     * scale > 0; else NULL. */
    void (*softmax)(float *s, int64_t n, float scale, const float *tops,
                   float *m, float *l, float *alpha, bool first);
    /* acc [D, aq] = fma(acc, alpha, block); alpha NULL: = block. For classes
     * amx and vdp, whose tiles give the values of a block alone. */
    void (*merge)(float *acc, const float *block, const float *alpha,
                  int64_t D);
    /* acc [D, aq] /= l [aq] */
    void (*divide)(float *acc, const float *l, int64_t D);

    /* Rows [n, c] and elements: see ops/golden for the formulas. */
    void (*layer_norm)(float *y, const float *x, int64_t n, int64_t c,
                       const float *w, const float *b, double eps);
    void (*rms_norm)(float *y, const float *x, int64_t n, int64_t c,
                     const float *w, double eps);
    void (*channel_norm)(float *y, const float *x, int64_t n, int64_t c,
                         const float *gamma);
    /* one row */
    void (*modulate)(float *x, int64_t c, const float *scale,
                     const float *shift);
    void (*gate_add)(float *x, const float *y, int64_t c, const float *gate);
    void (*add)(float *x, const float *y, int64_t n);
    void (*mul)(float *x, const float *y, int64_t n);
    void (*gelu_tanh)(float *x, int64_t n);
    void (*silu)(float *x, int64_t n);
    /* one token: cs, sn [D/2] gathered for its position */
    void (*rope)(float *y, const float *x, int64_t H, int64_t D,
                 const double *cs, const double *sn);
    /* sums over rows for channels [0, c): row stride given */
    void (*col_mean)(double *mean, const float *x, int64_t n, int64_t stride,
                     int64_t c);
    void (*col_moment)(double *m2, const float *x, const double *mean,
                       int64_t n, int64_t stride, int64_t c);
    void (*col_blend)(float *x, int64_t n, int64_t c, const double *mean,
                      const double *gain, const double *target, double tau);

    /* n rounds of independent multiply-adds in registers, for tt_machine_fma;
     * returns how many floating-point operations that were. */
    double (*fma_loop)(int64_t n);
} tt_kernels;

extern const tt_kernels tt_kernels_generic;
#if defined(__x86_64__)
extern const tt_kernels tt_kernels_avx2, tt_kernels_avx512;
#elif defined(__aarch64__) || defined(TT_OS_NEON)
extern const tt_kernels tt_kernels_neon;
#endif
#ifdef TT_OS_NEON   /* src/os has its arm_neon.h: is that multiply-add fused? */
bool os_fuses(void);
#else
#define os_fuses() true
#endif

/* The best table this CPU runs, at most of the level that TT_CPU names. */
const tt_kernels *exact_kernels(void);
const tt_kernels *exact_kernels_up_to(exact_level level);

#define EXACT_DECLARED(op, OP)                                                 \
    void exact_##op(tt_ctx *ctx, const tt_##op##_args *a);
TT_OPS_ROWS(EXACT_DECLARED)

/* Of every class; those whose row (tether/classes.h) says `golden` are not
 * defined. */
#define EXACT_CLASS_DECLARED(name, ...)                                        \
    void exact_##name##_linear(tt_ctx *ctx, const tt_linear_args *a);          \
    void exact_##name##_attention(tt_ctx *ctx, const tt_attention_args *a);    \
    void exact_##name##_conv(tt_ctx *ctx, const tt_conv_args *a);
TT_CLASSES(EXACT_CLASS_DECLARED)

/* tt_ops.packed of every class. */
int64_t exact_packed(tt_ctx *ctx, int64_t N, int64_t D);

int64_t exact_f32_attention_packed(const tt_attention_args *a);

/* panel [kc, nr] = transpose of nr rows of w [o, K] from o0 on, products
 * [k0, k0 + kc); lanes past the last row are zero. `wide` [nr, kc] receives
 * rows that must be widened. */
void exact_turn_weights(float *panel, const tt_tensor *w, int64_t o0,
                        int64_t k0, int64_t kc, float *wide);

/* All weights w [o, K] transposed, [o / nr, K, nr] with zeros for outputs past
 * o, a panel's block of the definition at a time; `wide` has a part for every
 * thread, `apart` floats in a row, for rows of a block that must be
 * widened. And floats of them, of w of any rank. */
void exact_turn_all(tt_ctx *ctx, float *to, const tt_tensor *w, float *wide,
                    int64_t apart);
int64_t exact_transposed_floats(const tt_tensor *w);

/* Convolution as a linear layer over windows that are written down, so many at
 * a time; floats of them. */
void exact_windows_conv(tt_ctx *ctx, const tt_conv_args *p,
                        void (*linear)(tt_ctx *ctx, const tt_linear_args *a));
int64_t exact_windows(const tt_conv_args *p);

static inline int64_t exact_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* a / b, rounded up */
static inline int64_t exact_parts(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Tile i of so many asks for its part of what they ask for together: n floats
 * for each of kc products, from an address on. */
static inline exact_ask exact_ask_part(const float *from, int64_t n, int64_t kc,
                                       int64_t i, int64_t tiles)
{
    const int64_t each = exact_parts(n * (int64_t)sizeof *from, tiles);
    return (exact_ask){(uintptr_t)from + (uintptr_t)(i * kc * each),
                       (uintptr_t)each};
}

static inline int64_t exact_round_up(int64_t a, int64_t b)
{
    return exact_parts(a, b) * b;
}

#endif
#endif
