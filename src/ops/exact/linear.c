/* linear.c: blocked matrix product and convolution around linear_tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For every slice of SLICE products (two blocks of the definition, so that the
 * outputs travel through memory half as often) and every block of outputs, the
 * weights are widened and packed once into panels [k][nr]; then threads take
 * blocks of rows and, inside a block, run all row panels against one weight
 * panel while it is in cache. Rows of x are read in place. With few rows (FEW)
 * a thread packs each panel for itself and uses it at once: a packed block
 * would cost more on its way to memory and back than it saves. Blocking is free
 * to change: it moves whole chains, never splits one. */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/gather.h"

#define BLOCK_COLS 2048  /* outputs packed at a time: 4 MB of weights         */
#define BLOCK_PANELS 12  /* row panels per unit of work                       */
#define SLICE (2 * TT_DOT_BLOCK) /* products packed and used at a time        */
#define CHUNK_COLS 512   /* outputs per unit of work, at most                 */
#define FEW 512          /* rows whose slice stays in a core's second cache   */

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

/* Where one product block of a unit goes. */
typedef struct job {
    const tt_kernels *kn;
    const float *packed;     /* panels of this block of outputs               */
    int64_t o0, no;          /* outputs [o0, o0 + no)                         */
    int64_t k0, kc;          /* products [k0, k0 + kc)                        */
    bool last;               /* the last block of products: add the bias      */
    const float *b;
    float *y;                /* [n, ldy]                                      */
    int64_t ldy;
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

/* rows [r0, r0+m) (m <= mr) of x against every panel in columns [c0, c1) of
 * the job. Partial tiles go through full-sized copies; a [mr, kc] is
 * scratch. */
static void row_panel(const job *q, const float *x, int64_t ldx, int64_t r0,
                      int64_t m, int64_t c, float *a)
{
    const tt_kernels *kn = q->kn;
    int64_t n = least(q->no - c, kn->nr);
    const float *panel = q->packed + c * q->kc;
    const float *bias = q->last && q->b ? q->b + q->o0 + c : NULL;
    float *y = q->y + r0 * q->ldy + q->o0 + c;
    if (m == kn->mr && n == kn->nr) {
        slice_tile(q, y, q->ldy, x, ldx, panel, bias);
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
            t[r * kn->nr + i] = q->k0 > 0 ? y[r * q->ldy + i] : 0.0f;
    for (int64_t r = 0; r < kn->mr; r++)
        for (int64_t i = 0; i < kn->nr; i++)
            if (r >= m || i >= n) t[r * kn->nr + i] = 0.0f;
    if (bias) memcpy(padded, bias, (size_t)n * sizeof *bias);
    slice_tile(q, t, kn->nr, x, ldx, panel, bias ? padded : NULL);
    for (int64_t r = 0; r < m; r++)
        memcpy(y + r * q->ldy, t + r * kn->nr, (size_t)n * sizeof *t);
}

/* One unit: rows [r0, r1) against outputs [c0, c1) of the job. */
static void run_unit(const job *q, const float *x, int64_t ldx, int64_t r0,
                     int64_t r1, int64_t c0, int64_t c1, float *own)
{
    for (int64_t c = c0; c < c1; c += q->kn->nr)
        for (int64_t r = r0; r < r1; r += q->kn->mr)
            row_panel(q, x + (r - r0) * ldx, ldx, r,
                      least(r1 - r, q->kn->mr), c, own);
}

/* Outputs per unit: narrower when there are few rows, so that every thread
 * gets about four units. */
static int64_t chunk_cols(const tt_kernels *kn, int64_t no, int64_t row_units,
                          int nthreads)
{
    int64_t want = (4 * nthreads + row_units - 1) / row_units;
    int64_t cols = least((no + want - 1) / want, CHUNK_COLS);
    return (cols + kn->nr - 1) / kn->nr * kn->nr;
}

/* All rows against the panel of outputs [o0, o0 + nr); memory [2, OWN]. */
static void one_panel(const tt_kernels *kn, const tt_linear_args *a, int64_t o0,
                      float *memory)
{
    const int64_t o = a->w->dim[0], K = a->w->dim[1];
    for (int64_t k0 = 0; k0 < K; k0 += SLICE) {
        job q = {.kn = kn, .packed = memory + OWN, .o0 = o0,
                 .no = least(o - o0, kn->nr), .k0 = k0,
                 .kc = least(K - k0, SLICE), .b = a->b, .y = a->y, .ldy = o};
        q.last = k0 + q.kc == K;
        pack_panel(memory + OWN, kn, a->w, o0, q.no, k0, q.kc, memory);
        run_unit(&q, a->x + k0, K, 0, a->n, 0, q.no, memory);
    }
}

/* Few rows; enough panels that every thread gets several. */
static bool is_few(const tt_ctx *ctx, const tt_kernels *kn,
                   const tt_linear_args *a)
{
    const int64_t panels = (a->w->dim[0] + kn->nr - 1) / kn->nr;
    return a->w->dim[1] > 0 && a->n <= FEW && panels >= 4 * ctx->nthreads;
}

static bool few_rows(tt_ctx *ctx, const tt_kernels *kn, const tt_linear_args *a)
{
    const int64_t panels = (a->w->dim[0] + kn->nr - 1) / kn->nr;
    if (!is_few(ctx, kn, a)) return false;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *memory = tt_scratch(ctx, ctx->nthreads * 2 * OWN);
    if (memory) {
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->n * a->w->dim[0] * a->w->dim[1] / 32)
        for (int64_t p = 0; p < panels; p++)
            one_panel(kn, a, p * kn->nr, memory + tt_thread_id() * 2 * OWN);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return true;
}

/* Outputs packed at a time. */
static int64_t block_cols(const tt_kernels *kn, int64_t o)
{
    return least(BLOCK_COLS, (o + kn->nr - 1) / kn->nr * kn->nr);
}

int64_t exact_f32_linear_room(const tt_ctx *ctx, const tt_linear_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t kc = least(a->w->dim[1], SLICE), panel = kn->nr * kc;
    if (is_few(ctx, kn, a)) return ctx->nthreads * 2 * panel;
    return block_cols(kn, a->w->dim[0]) * kc + ctx->nthreads * panel;
}

void exact_f32_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    const tt_kernels *kn = exact_kernels();
    int64_t o = a->w->dim[0], K = a->w->dim[1];
    int64_t cols = block_cols(kn, o);
    int64_t rows = (int64_t)BLOCK_PANELS * kn->mr;
    if (few_rows(ctx, kn, a)) return;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *packed = tt_scratch(ctx, cols * SLICE);
    float *own = tt_scratch(ctx, ctx->nthreads * OWN);
    if (own && K == 0)
        for (int64_t i = 0; i < a->n * o; i++)
            a->y[i] = a->b ? a->b[i % o] : 0.0f;
    for (int64_t o0 = 0; own && o0 < o; o0 += cols)
        for (int64_t k0 = 0; k0 < K; k0 += SLICE) {
            job q = {.kn = kn, .packed = packed, .o0 = o0,
                     .no = least(o - o0, cols), .k0 = k0,
                     .kc = least(K - k0, SLICE), .b = a->b, .y = a->y,
                     .ldy = o};
            q.last = k0 + q.kc == K;
            int64_t panels = (q.no + kn->nr - 1) / kn->nr;
            TT_PARALLEL_FOR_WORK(ctx, q.no * q.kc)
            for (int64_t p = 0; p < panels; p++) {
                float *wide = own + tt_thread_id() * OWN;
                pack_panel(packed + p * kn->nr * q.kc, kn, a->w,
                           o0 + p * kn->nr, least(q.no - p * kn->nr, kn->nr),
                           k0, q.kc, wide);
            }
            int64_t nr = (a->n + rows - 1) / rows;
            int64_t chunk = chunk_cols(kn, q.no, nr, ctx->nthreads);
            int64_t nc = (q.no + chunk - 1) / chunk;
            TT_PARALLEL_FOR_DYNAMIC(ctx, a->n * q.no * q.kc / 32)
            for (int64_t u = 0; u < nr * nc; u++) {
                int64_t r0 = u % nr * rows, c0 = u / nr * chunk;
                run_unit(&q, a->x + r0 * K + k0, K, r0, least(a->n, r0 + rows),
                         c0, least(q.no, c0 + chunk),
                         own + tt_thread_id() * OWN);
            }
        }
    tt_arena_reset(&ctx->scratch, mark);
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
                job q = {.kn = kn, .packed = packed + wide * k0, .o0 = 0,
                         .no = o, .k0 = k0, .kc = least(K - k0, SLICE),
                         .b = p->b, .y = p->y, .ldy = o};
                q.last = k0 + q.kc == K;
                run_unit(&q, x + k0, K, r0, r1, 0, o,
                         own + tt_thread_id() * OWN);
            }
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_linear;
#endif
