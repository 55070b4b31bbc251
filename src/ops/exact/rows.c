/* rows.c: threads over rows and elements; the kernels do the rest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

/* Rows per unit: one unit per thread, because kernels look ahead. */
static int64_t unit_rows(const tt_ctx *ctx, int64_t n)
{
    return n > 0 ? (n + ctx->nthreads - 1) / ctx->nthreads : 1;
}

void exact_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, a->n);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r += unit)
        kn->layer_norm(a->y + r * a->c, a->x + r * a->c,
                       exact_least(a->n - r, unit), a->c, a->w, a->b, a->eps);
}

void exact_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, a->n);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r += unit)
        kn->rms_norm(a->y + r * a->c, a->x + r * a->c,
                     exact_least(a->n - r, unit), a->c, a->w, a->eps);
}

void exact_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, a->n);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r += unit)
        kn->channel_norm(a->y + r * a->c, a->x + r * a->c,
                         exact_least(a->n - r, unit), a->c, a->gamma);
}

void exact_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    const tt_kernels *kn = exact_kernels();
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r++)
        kn->modulate(a->x + r * a->c, a->c, a->scale + r / a->rows * a->stride,
                     a->shift + r / a->rows * a->stride);
}

void exact_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    const tt_kernels *kn = exact_kernels();
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r++)
        kn->gate_add(a->x + r * a->c, a->y + r * a->c, a->c,
                     a->gate + r / a->rows * a->stride);
}

void exact_add(tt_ctx *ctx, const tt_add_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t piece = exact_tuned(kn->level)->piece;
    TT_PARALLEL_FOR_WORK(ctx, a->n)
    for (int64_t i = 0; i < a->n; i += piece)
        kn->add(a->x + i, a->y + i, exact_least(a->n - i, piece));
}

void exact_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t piece = exact_tuned(kn->level)->piece;
    TT_PARALLEL_FOR_WORK(ctx, a->n)
    for (int64_t i = 0; i < a->n; i += piece)
        kn->mul(a->x + i, a->y + i, exact_least(a->n - i, piece));
}

void exact_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t piece = exact_tuned(kn->level)->piece;
    TT_PARALLEL_FOR_WORK(ctx, 8 * a->n)
    for (int64_t i = 0; i < a->n; i += piece)
        kn->gelu_tanh(a->x + i, exact_least(a->n - i, piece));
}

void exact_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t piece = exact_tuned(kn->level)->piece;
    TT_PARALLEL_FOR_WORK(ctx, 8 * a->n)
    for (int64_t i = 0; i < a->n; i += piece)
        kn->silu(a->x + i, exact_least(a->n - i, piece));
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

void exact_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    const tt_kernels *kn = exact_kernels();
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *angles = tt_alloc(ctx, &ctx->scratch, a->D * ctx->nthreads,
                              sizeof *angles, "scratch");
    if (angles) {
        TT_PARALLEL_FOR_WORK(ctx, a->T * a->H * a->D)
        for (int64_t t = 0; t < a->T; t++) {
            double *cs = angles + a->D * tt_thread_id(), *sn = cs + a->D / 2;
            gather_angles(cs, sn, a->table, a->pos + 3 * t);
            kn->rope(a->y + t * a->H * a->D, a->x + t * a->H * a->D, a->H,
                     a->D, cs, sn);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* Channels per unit: whole rows are read faster than narrow columns. */
static int64_t unit_cols(const tt_ctx *ctx, const tt_kernels *kn, int64_t c)
{
    const int64_t least_cols = exact_tuned(kn->level)->cols;
    int64_t w = (c + ctx->nthreads - 1) / ctx->nthreads;
    return w < least_cols ? least_cols : (w + 15) / 16 * 16;
}

void exact_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    const tt_kernels *kn = exact_kernels();
    int64_t w = unit_cols(ctx, kn, a->c);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t i = 0; i < a->c; i += w)
        kn->col_mean(a->mean + i, a->x + i, a->n, a->c,
                     exact_least(a->c - i, w));
}

void exact_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    const tt_kernels *kn = exact_kernels();
    int64_t w = unit_cols(ctx, kn, a->c);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t i = 0; i < a->c; i += w)
        kn->col_moment(a->m2 + i, a->x + i, a->mean + i, a->n, a->c,
                       exact_least(a->c - i, w));
}

void exact_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t unit = unit_rows(ctx, a->n);
    TT_PARALLEL_FOR_WORK(ctx, a->n * a->c)
    for (int64_t r = 0; r < a->n; r += unit)
        kn->col_blend(a->x + r * a->c, exact_least(a->n - r, unit), a->c,
                      a->mean, a->gain, a->target, a->tau);
}

#else
typedef int tt_no_exact_rows;
#endif
