/* rows.c: threads over rows and elements; the kernels do the rest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

#define PIECE 16384   /* elements per unit of the element-wise loops */
#define COLS 64       /* channels per unit of the column statistics, at least */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows per unit: one unit per thread, because kernels look ahead. */
static int64_t unit_rows(const tt_ctx *ctx, int64_t n)
{
    return n > 0 ? (n + ctx->nthreads - 1) / ctx->nthreads : 1;
}

void exact_layer_norm(tt_ctx *ctx, float *y, const float *x, int64_t n,
                      int64_t c, const float *w, const float *b, double eps)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, n);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r += unit)
        kn->layer_norm(y + r * c, x + r * c, least(n - r, unit), c, w, b, eps);
}

void exact_rms_norm(tt_ctx *ctx, float *y, const float *x, int64_t n,
                    int64_t c, const float *w, double eps)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, n);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r += unit)
        kn->rms_norm(y + r * c, x + r * c, least(n - r, unit), c, w, eps);
}

void exact_channel_norm(tt_ctx *ctx, float *y, const float *x, int64_t n,
                        int64_t c, const float *gamma)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, n);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r += unit)
        kn->channel_norm(y + r * c, x + r * c, least(n - r, unit), c, gamma);
}

void exact_modulate(tt_ctx *ctx, float *x, int64_t n, int64_t c,
                    const float *scale, const float *shift, int64_t stride,
                    int64_t rows)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r++)
        kn->modulate(x + r * c, c, scale + r / rows * stride,
                     shift + r / rows * stride);
}

void exact_gate_add(tt_ctx *ctx, float *x, const float *y, int64_t n, int64_t c,
                    const float *gate, int64_t stride, int64_t rows)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r++)
        kn->gate_add(x + r * c, y + r * c, c, gate + r / rows * stride);
}

void exact_add(tt_ctx *ctx, float *x, const float *y, int64_t n)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, n)
    for (int64_t i = 0; i < n; i += PIECE)
        kn->add(x + i, y + i, least(n - i, PIECE));
}

void exact_mul(tt_ctx *ctx, float *x, const float *y, int64_t n)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, n)
    for (int64_t i = 0; i < n; i += PIECE)
        kn->mul(x + i, y + i, least(n - i, PIECE));
}

void exact_gelu_tanh(tt_ctx *ctx, float *x, int64_t n)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, 8 * n)
    for (int64_t i = 0; i < n; i += PIECE)
        kn->gelu_tanh(x + i, least(n - i, PIECE));
}

void exact_silu(tt_ctx *ctx, float *x, int64_t n)
{
    const tt_kernels *kn = exact_kernels();
    (void)ctx;
    TT_PARALLEL_FOR_WORK(ctx, 8 * n)
    for (int64_t i = 0; i < n; i += PIECE)
        kn->silu(x + i, least(n - i, PIECE));
}

/* cs, sn [D/2] of one token at pos = (frame, row, column). */
static void gather_angles(double *cs, double *sn, const tt_rope_table *table,
                          const int32_t *pos)
{
    const int64_t *n = table->pairs;
    int64_t c = n[0] + n[1] + n[2];
    for (int64_t axis = 0, j0 = 0; axis < 3; j0 += n[axis], axis++) {
        TT_ASSERT(pos[axis] >= 0 && pos[axis] < table->npos);
        memcpy(cs + j0, table->cos + pos[axis] * c + j0,
               (size_t)n[axis] * sizeof *cs);
        memcpy(sn + j0, table->sin + pos[axis] * c + j0,
               (size_t)n[axis] * sizeof *sn);
    }
}

void exact_rope(tt_ctx *ctx, float *y, const float *x, int64_t T, int64_t H,
                int64_t D, const tt_rope_table *table, const int32_t *pos)
{
    const tt_kernels *kn = exact_kernels();
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *angles = tt_alloc(ctx, &ctx->scratch, D * ctx->nthreads,
                              sizeof *angles, "scratch");
    if (angles) {
        TT_PARALLEL_FOR_WORK(ctx, T * H * D)
        for (int64_t t = 0; t < T; t++) {
            double *cs = angles + D * tt_thread_id(), *sn = cs + D / 2;
            gather_angles(cs, sn, table, pos + 3 * t);
            kn->rope(y + t * H * D, x + t * H * D, H, D, cs, sn);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* Channels per unit: whole rows are read faster than narrow columns. */
static int64_t unit_cols(const tt_ctx *ctx, int64_t c)
{
    int64_t w = (c + ctx->nthreads - 1) / ctx->nthreads;
    return w < COLS ? COLS : (w + 15) / 16 * 16;
}

void exact_col_mean(tt_ctx *ctx, double *mean, const float *x, int64_t n,
                    int64_t c)
{
    const tt_kernels *kn = exact_kernels();
    int64_t w = unit_cols(ctx, c);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t i = 0; i < c; i += w)
        kn->col_mean(mean + i, x + i, n, c, least(c - i, w));
}

void exact_col_moment(tt_ctx *ctx, double *m2, const float *x,
                      const double *mean, int64_t n, int64_t c)
{
    const tt_kernels *kn = exact_kernels();
    int64_t w = unit_cols(ctx, c);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t i = 0; i < c; i += w)
        kn->col_moment(m2 + i, x + i, mean + i, n, c, least(c - i, w));
}

void exact_col_blend(tt_ctx *ctx, float *x, int64_t n, int64_t c,
                     const double *mean, const double *gain,
                     const double *target, double tau)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, n);
    TT_PARALLEL_FOR_WORK(ctx, n * c)
    for (int64_t r = 0; r < n; r += unit)
        kn->col_blend(x + r * c, least(n - r, unit), c, mean, gain, target,
                      tau);
}

#else
typedef int tt_no_exact_rows;
#endif
