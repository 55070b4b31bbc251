/* conv.c: blocked convolution around linear_tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A convolution is a product of windows and weights. The weights are packed
 * once per call into panels [k][nr]; then threads take blocks of pixels, gather
 * their windows, and run them against all panels, one slice after another.
 * Blocking is free to change: it moves whole chains, never splits one. */
#include "ops/exact/bf16.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/gather.h"

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

/* How a convolution is cut, and its memory. */
typedef struct plan {
    const tt_kernels *kn;
    int64_t K, o, pixels;
    int64_t wide;            /* o in whole panels                             */
    int64_t slice;           /* products packed and used at a time            */
    int64_t rows;            /* pixels of a unit                              */
    float *packed;           /* [wide * K], slice after slice                 */
    float *windows;          /* [threads, rows, K]                            */
    float *own;              /* [threads, own_size]: rows to widen, or a padded
                              * row panel; a thread's stack may be small      */
    int64_t own_size;
} plan;

static plan plan_for(const tt_conv_args *p)
{
    const tt_kernels *kn = exact_kernels();
    const exact_tuning *t = exact_tuned(kn->level);
    plan e = {.kn = kn, .K = (int64_t)p->kt * p->kh * p->kw * p->Cin,
              .o = p->Cout, .pixels = p->Ho * p->Wo,
              .wide = exact_round_up(p->Cout, kn->nr),
              .rows = t->conv_tiles * kn->mr};
    e.slice = least(e.K, t->conv_slice * TT_DOT_BLOCK);
    e.own_size = (kn->nr > kn->mr ? kn->nr : kn->mr) * e.slice;
    return e;
}

/* All weights of a convolution packed at once: panels of every product block,
 * block after block. */
static void pack_all(tt_ctx *ctx, const plan *e, const tt_tensor *w2)
{
    const int64_t nr = e->kn->nr, panels = e->wide / nr, K = e->K;
    TT_PARALLEL_FOR_WORK(ctx, e->o * K)
    for (int64_t u = 0; u < panels * exact_parts(K, e->slice); u++) {
        const int64_t o0 = u % panels * nr, k0 = u / panels * e->slice;
        const int64_t kc = least(K - k0, e->slice);
        pack_panel(e->packed + e->wide * k0 + o0 * kc, e->kn, w2, o0,
                   least(e->o - o0, nr), k0, kc,
                   e->own + tt_thread_id() * e->own_size);
    }
}

/* Pixels [r0, r1): one unit. */
static void one_unit(const plan *e, const tt_conv_args *p, int64_t r0,
                     int64_t r1)
{
    const int64_t K = e->K;
    float *x = e->windows + e->rows * K * tt_thread_id();
    for (int64_t i = r0; i < r1; i++)
        conv_gather(x + (i - r0) * K, p, i / p->Wo, i % p->Wo);
    for (int64_t k0 = 0; k0 < K; k0 += e->slice) {
        job q = {.kn = e->kn, .packed = e->packed + e->wide * k0, .o = e->o,
                 .k0 = k0, .kc = least(K - k0, e->slice), .y = p->y};
        q.b = k0 + q.kc == K ? p->b : NULL;
        run_slice(&q, x + k0, K, r0, r1,
                  e->own + tt_thread_id() * e->own_size);
    }
}

int64_t exact_f32_conv_room(const tt_ctx *ctx, const tt_conv_args *p)
{
    const plan e = plan_for(p);
    return e.wide * e.K + (e.rows * e.K + e.own_size) * ctx->nthreads;
}

void exact_f32_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    plan e = plan_for(p);
    const tt_tensor w2 = tt_tensor_reshape(p->w, 2, (int64_t[]){e.o, e.K});
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    e.packed = tt_scratch(ctx, e.wide * e.K);
    e.windows = tt_scratch(ctx, e.rows * e.K * ctx->nthreads);
    e.own = tt_scratch(ctx, ctx->nthreads * e.own_size);
    if (e.own) {
        pack_all(ctx, &e, &w2);
        TT_PARALLEL_FOR_DYNAMIC(ctx, e.pixels * e.o * e.K / 32)
        for (int64_t u = 0; u < exact_parts(e.pixels, e.rows); u++)
            one_unit(&e, p, u * e.rows, least(e.pixels, (u + 1) * e.rows));
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- the classes --------------------------------------------------------- */

#define WINDOWS ((int64_t)1 << 22) /* floats of windows at a time, about      */

int64_t exact_windows(const tt_conv_args *p)
{
    const int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const int64_t n = WINDOWS / (K ? K : 1);
    return exact_least(p->Ho * p->Wo, n > EXACT_MAX_NR ? n : EXACT_MAX_NR);
}

int64_t exact_windows_room(const tt_conv_args *p)
{
    return exact_windows(p) * p->kt * p->kh * p->kw * p->Cin;
}

void exact_windows_conv(tt_ctx *ctx, const tt_conv_args *p,
                        void (*linear)(tt_ctx *ctx, const tt_linear_args *a))
{
    const int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const int64_t pixels = p->Ho * p->Wo, step = exact_windows(p);
    const tt_tensor w = tt_tensor_reshape(p->w, 2, (int64_t[]){p->Cout, K});
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *x = tt_scratch(ctx, exact_windows_room(p));
    for (int64_t r = 0; x && r < pixels; r += step) {
        const int64_t n = exact_least(pixels - r, step);
        TT_PARALLEL_FOR_WORK(ctx, n * K)
        for (int64_t i = 0; i < n; i++)
            conv_gather(x + i * K, p, (r + i) / p->Wo, (r + i) % p->Wo);
        linear(ctx, &(tt_linear_args){p->y + r * p->Cout, x, n, &w, p->b});
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static void conv_bf16(tt_ctx *ctx, const tt_conv_args *p,
                      const tt_bf16_kernels *kn,
                      void (*linear)(tt_ctx *ctx, const tt_linear_args *a))
{
    if (!p->by_class) exact_f32_conv(ctx, p);
    else if (bf16_conv_takes(p, kn)) bf16_conv(ctx, p, kn);
    else exact_windows_conv(ctx, p, linear);
}

void exact_amx_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    conv_bf16(ctx, p, exact_bf16_kernels(ctx), exact_amx_linear);
}

void exact_vdp_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    conv_bf16(ctx, p, exact_vdp_kernels(ctx), exact_vdp_linear);
}

void exact_sm80_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->by_class) exact_windows_conv(ctx, p, exact_sm80_linear);
    else exact_f32_conv(ctx, p);
}

void exact_sm90_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->by_class) exact_windows_conv(ctx, p, exact_sm90_linear);
    else exact_f32_conv(ctx, p);
}

#else
typedef int tt_no_exact_conv;
#endif
