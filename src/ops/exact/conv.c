/* conv.c: blocked convolution around linear_tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A convolution is a product of windows and weights. The weights are packed
 * once per call into panels [k][nr]; then threads take blocks of pixels, gather
 * their windows, and run them against all panels, one slice after another.
 * Blocking is free to change: it moves whole chains, never splits one. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/gather.h"

#define SLICE (2 * TT_DOT_BLOCK) /* products packed and used at a time        */

/* Floats of private memory per thread: rows to widen, or a padded row panel.
 * From scratch and not from the stack, which may be small in a thread. */
#define OWN (EXACT_MAX_NR * SLICE)

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* panel [kc, nr] = transpose of rows [o0, o0+n) of w, columns [k0, k0+kc);
 * lanes past n are zero. wide [nr, kc] receives rows that must be widened. */
static void pack_panel(float *panel, const tt_kernels *kn, const tt_tensor *w,
                       int64_t o0, int64_t n, int64_t k0, int64_t kc,
                       float *wide)
{
    int64_t K = w->dim[1];
    const float *rows = n == kn->nr ? tt_tensor_in_place(w) : NULL;
    if (rows) {
        kn->pack(panel, rows + o0 * K + k0, K, kc);
        return;
    }
    for (int64_t j = 0; j < kn->nr; j++) {
        if (j < n)
            tt_widen_at_f32(wide + j * kc, w, (o0 + j) * K + k0, kc);
        else
            memset(wide + j * kc, 0, (size_t)kc * sizeof *wide);
    }
    kn->pack(panel, wide, kc, kc);
}

/* One slice of products of a unit. */
typedef struct job {
    const tt_kernels *kn;
    const float *packed;     /* the panels of this slice                      */
    int64_t o;               /* outputs: channels                             */
    int64_t k0, kc;          /* products [k0, k0 + kc)                        */
    const float *b;          /* the bias, for the last slice; otherwise NULL  */
    float *y;                /* [pixels, o]                                   */
} job;

/* One full tile over the blocks of the slice, in ascending order. */
static void slice_tile(const job *q, float *c, int64_t ldc, const float *a,
                       int64_t lda, const float *panel, const float *bias)
{
    for (int64_t k = 0; k < q->kc; k += TT_DOT_BLOCK) {
        int64_t n = least(q->kc - k, TT_DOT_BLOCK);
        q->kn->linear_tile(c, ldc, a + k, lda, panel + k * q->kn->nr, n,
                           q->k0 + k > 0, k + n == q->kc ? bias : NULL);
    }
}

/* Rows [r0, r0 + m), m <= mr, of x [m, ldx] against the panel of channels from
 * c on. Partial tiles go through full-sized copies; a [mr, kc] is scratch. */
static void row_panel(const job *q, const float *x, int64_t ldx, int64_t r0,
                      int64_t m, int64_t c, float *a)
{
    const tt_kernels *kn = q->kn;
    int64_t n = least(q->o - c, kn->nr);
    const float *panel = q->packed + c * q->kc;
    const float *bias = q->b ? q->b + c : NULL;
    float *y = q->y + r0 * q->o + c;
    if (m == kn->mr && n == kn->nr) {
        slice_tile(q, y, q->o, x, ldx, panel, bias);
        return;
    }
    float t[EXACT_MAX_MR * EXACT_MAX_NR];
    float padded[EXACT_MAX_NR] = {0};
    if (m < kn->mr) {
        for (int64_t r = 0; r < kn->mr; r++)
            for (int64_t k = 0; k < q->kc; k++)
                a[r * q->kc + k] = r < m ? x[r * ldx + k] : 0.0f;
        x = a;
        ldx = q->kc;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t i = 0; i < n; i++)
            t[r * kn->nr + i] = q->k0 > 0 ? y[r * q->o + i] : 0.0f;
    for (int64_t r = 0; r < kn->mr; r++)
        for (int64_t i = 0; i < kn->nr; i++)
            if (r >= m || i >= n) t[r * kn->nr + i] = 0.0f;
    if (bias) memcpy(padded, bias, (size_t)n * sizeof *bias);
    slice_tile(q, t, kn->nr, x, ldx, panel, bias ? padded : NULL);
    for (int64_t r = 0; r < m; r++)
        memcpy(y + r * q->o, t + r * kn->nr, (size_t)n * sizeof *t);
}

/* Rows [r0, r1) against all panels of the slice; x [r1 - r0, ldx] */
static void run_slice(const job *q, const float *x, int64_t ldx, int64_t r0,
                      int64_t r1, float *own)
{
    for (int64_t c = 0; c < q->o; c += q->kn->nr)
        for (int64_t r = r0; r < r1; r += q->kn->mr)
            row_panel(q, x + (r - r0) * ldx, ldx, r,
                      least(r1 - r, q->kn->mr), c, own);
}

/* All weights of a convolution packed at once: panels of every product block,
 * block after block. [ceil(Cout/nr) * nr * K] */
static void pack_all(tt_ctx *ctx, const tt_kernels *kn, float *packed,
                     const tt_tensor *w2, int64_t o, int64_t K, float *own_all)
{
    int64_t panels = (o + kn->nr - 1) / kn->nr;
    int64_t blocks = (K + SLICE - 1) / SLICE;
    TT_PARALLEL_FOR_WORK(ctx, o * K)
    for (int64_t u = 0; u < panels * blocks; u++) {
        float *wide = own_all + tt_thread_id() * OWN;
        int64_t p = u % panels, k0 = u / panels * SLICE;
        int64_t kc = least(K - k0, SLICE);
        pack_panel(packed + panels * kn->nr * k0 + p * kn->nr * kc, kn, w2,
                   p * kn->nr, least(o - p * kn->nr, kn->nr), k0, kc,
                   wide);
    }
}

int64_t exact_conv_room(const tt_ctx *ctx, const tt_conv_args *p)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const int64_t wide = (p->Cout + kn->nr - 1) / kn->nr * kn->nr;
    const int64_t panel = kn->nr * least(K, SLICE);
    return wide * K + (4 * kn->mr * K + panel) * ctx->nthreads;
}

void exact_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    const tt_kernels *kn = exact_kernels();
    int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin, o = p->Cout;
    int64_t wide = (o + kn->nr - 1) / kn->nr * kn->nr;
    int64_t rows = 4 * kn->mr, pixels = p->Ho * p->Wo;
    int64_t units = (pixels + rows - 1) / rows;
    tt_tensor w2 = tt_tensor_reshape(p->w, 2, (int64_t[]){o, K});
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *packed = tt_scratch(ctx, wide * K);
    float *windows = tt_scratch(ctx, rows * K * ctx->nthreads);
    float *own = tt_scratch(ctx, ctx->nthreads * OWN);
    if (own) {
        pack_all(ctx, kn, packed, &w2, o, K, own);
        TT_PARALLEL_FOR_DYNAMIC(ctx, pixels * o * K / 32)
        for (int64_t u = 0; u < units; u++) {
            float *x = windows + rows * K * tt_thread_id();
            int64_t r0 = u * rows, r1 = least(pixels, r0 + rows);
            for (int64_t i = r0; i < r1; i++)
                conv_gather(x + (i - r0) * K, p, i / p->Wo, i % p->Wo);
            for (int64_t k0 = 0; k0 < K; k0 += SLICE) {
                job q = {.kn = kn, .packed = packed + wide * k0, .o = o,
                         .k0 = k0, .kc = least(K - k0, SLICE), .y = p->y};
                q.b = k0 + q.kc == K ? p->b : NULL;
                run_slice(&q, x + k0, K, r0, r1, own + tt_thread_id() * OWN);
            }
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_conv;
#endif
