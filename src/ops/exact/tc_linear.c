/* tc_linear.c: linear layers of the classes of tensor cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of outputs and a slice of K is packed at a time; rows of x are packed
 * once per unit of work. The chains wait in y between slices. */
#include "ops/exact/tc.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

/* One slice of K against one block of outputs. */
typedef struct job {
    const tt_tc_kernels *kn;
    const tt_linear_args *a;
    const exact_tuning *tuned;
    float *packed;           /* lanes, panel after panel                      */
    int64_t o0, no;          /* outputs [o0, o0 + no)                         */
    int64_t k0, kc, up;      /* products [k0, k0 + kc); up: in whole groups   */
} job;

static tc_lanes tc_linear_panel(const job *q, int64_t c)
{
    float *at = q->packed + c / TC_NR * TC_LANES_FLOATS(q->up);
    return (tc_lanes){at, (int32_t *)(at + TC_NR * q->up)};
}

/* Outputs [o0 + c, ...) into their panel; wide [TC_NR, kc]. */
static void pack_panel(const job *q, int64_t c, float *wide)
{
    int64_t K = q->a->w->dim[1], n = exact_least(q->no - c, TC_NR);
    for (int64_t j = 0; j < n; j++)
        tt_widen_at_f32(wide + j * q->kc, q->a->w,
                        (q->o0 + c + j) * K + q->k0, q->kc);
    q->kn->pack_lanes(tc_linear_panel(q, c), wide, q->kc, n, q->kc);
}

/* The chains of m rows, waiting in y, go on over the panel of output c. */
static void one_panel(const job *q, tc_rows rows, int64_t r0, int64_t m,
                      int64_t c)
{
    int64_t o = q->a->w->dim[0], n = exact_least(q->no - c, TC_NR);
    bool last = q->k0 + q->kc == q->a->w->dim[1];
    const float *b = last && q->a->b ? q->a->b + q->o0 + c : NULL;
    float sum[EXACT_MAX_TC_ROWS * TC_NR];
    float *y = q->a->y + r0 * o + q->o0 + c;
    memset(sum, 0, (size_t)(m * TC_NR) * sizeof *sum);
    for (int64_t r = 0; q->k0 && r < m; r++)
        memcpy(sum + r * TC_NR, y + r * o, (size_t)n * sizeof *y);
    q->kn->tile(sum, m, rows, tc_linear_panel(q, c), q->up / TC_GROUP);
    for (int64_t r = 0; r < m; r++)
        for (int64_t i = 0; i < n; i++) {
            const float s = sum[r * TC_NR + i];
            y[r * o + i] = b ? s + b[i] : s;
        }
}

static void run_job(tt_ctx *ctx, const job *q, float *own, int64_t per)
{
    int64_t n = q->a->n, K = q->a->w->dim[1];
    int64_t panels = (q->no + TC_NR - 1) / TC_NR;
    TT_PARALLEL_FOR_WORK(ctx, q->no * q->kc)
    for (int64_t p = 0; p < panels; p++)
        pack_panel(q, p * TC_NR, own + tt_thread_id() * per);
    /* a few rows are shared out by outputs */
    const int64_t rows_of = q->tuned->tc_rows, units = exact_parts(n, rows_of);
    int64_t parts = units < 4 * ctx->nthreads
                        ? exact_least(panels, 4 * ctx->nthreads) : 1;
    TT_PARALLEL_FOR_DYNAMIC(ctx, n * q->no * q->kc / 4)
    for (int64_t u = 0; u < units * parts; u++) {
        int64_t r0 = u / parts * rows_of, m = exact_least(n - r0, rows_of);
        float *x = own + tt_thread_id() * per;
        tc_rows rows = {x, (int32_t *)(x + m * q->up)};
        q->kn->pack_rows(rows, m, q->a->x + r0 * K + q->k0, K, m, q->kc);
        for (int64_t p = u % parts; p < panels; p += parts)
            one_panel(q, rows, r0, m, p * TC_NR);
    }
}

/* Floats of packed outputs, and next to them of each thread: rows, or outputs
 * that are widened. No more than the call writes. */
typedef struct size {
    int64_t packed, own;
} size;

static const exact_tuning *tuned_here(void)
{
    return exact_tuned(exact_kernels()->level);
}

static size tc_linear_size_of(const tt_linear_args *a)
{
    const exact_tuning *t = tuned_here();
    const int64_t o = a->w->dim[0], K = a->w->dim[1];
    const int64_t up = exact_least(exact_round_up(K > 0 ? K : 1, TC_GROUP),
                                       t->tc_slice * TC_GROUP);
    const int64_t panels = exact_least(exact_parts(o, TC_NR), t->tc_panels);
    const int64_t rows = TC_ROWS_FLOATS(exact_least(a->n, t->tc_rows), up);
    const int64_t wide = TC_NR * up;
    return (size){panels * TC_LANES_FLOATS(up), rows > wide ? rows : wide};
}

void exact_tc_linear(tt_ctx *ctx, const tt_linear_args *a, int unit)
{
    int64_t o = a->w->dim[0], K = a->w->dim[1];
    const exact_tuning *t = tuned_here();
    const int64_t cols = t->tc_panels * TC_NR, slice = t->tc_slice * TC_GROUP;
    const size s = tc_linear_size_of(a);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *packed = tt_scratch(ctx, s.packed);
    float *own = tt_scratch(ctx, ctx->nthreads * s.own);
    if (own && K == 0)
        for (int64_t i = 0; i < a->n * o; i++)
            a->y[i] = a->b ? 0.0f + a->b[i % o] : 0.0f;
    for (int64_t o0 = 0; own && o0 < o; o0 += cols)
        for (int64_t k0 = 0; k0 < K; k0 += slice) {
            job q = {.kn = exact_tc_kernels(unit), .a = a, .tuned = t,
                     .packed = packed, .o0 = o0,
                     .no = exact_least(o - o0, cols),
                     .k0 = k0, .kc = exact_least(K - k0, slice)};
            q.up = (q.kc + TC_GROUP - 1) / TC_GROUP * TC_GROUP;
            run_job(ctx, &q, own, s.own);
        }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_tc_linear;
#endif
