/* bf16_linear.c: linear layers of classes amx and vdp around one kind of tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * As linear.c, but for one thing: rows of x are rounded and packed too, once
 * per unit of work, so that the kernel never rounds. Slices of K hold whole
 * groups; the result waits in y between slices. The bias is added by plain
 * float arithmetic after the last one. */
#include "ops/exact/bf16.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

#define SLICE 512        /* products packed at a time: whole groups           */
#define BLOCK_COLS 2048  /* outputs packed at a time                          */
#define UNIT_ROWS 160    /* rows of a unit of work                            */
#define UNIT_COLS 2048   /* its outputs, at most                              */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* One slice of K against one block of outputs. */
typedef struct job {
    const tt_bf16_kernels *kn;
    const char *packed;      /* lanes, panel after panel                      */
    int64_t o0, no;          /* outputs [o0, o0 + no)                         */
    int64_t k0, kc;          /* products [k0, k0 + kc)                        */
    const float *bias;       /* NULL before the last slice                    */
    float *y;                /* [n, ldy]                                      */
    int64_t ldy;
} job;

/* Bytes between panels of lanes. */
static int64_t panel_bytes(const job *q)
{
    return round_up(q->kc, BF16_GROUP) * q->kn->nr * q->kn->size;
}

/* Rows [o0+c, o0+c+n) of w into the panel of those lanes; wide [nr, kc]. */
static void pack_panel(const job *q, const tt_tensor *w, int64_t c, float *wide)
{
    int64_t K = w->dim[1], n = least(q->no - c, q->kn->nr);
    char *panel = (char *)(uintptr_t)q->packed + c / q->kn->nr * panel_bytes(q);
    if (w->dtype == TT_BF16 && q->kn->pack_stored) {
        const char *at = (const char *)w->data
                         + 2 * ((q->o0 + c) * K + q->k0);
        q->kn->pack_stored(panel, (const void *)at, K, n, q->kc);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        tt_widen_at_f32(wide + j * q->kc, w, (q->o0 + c + j) * K + q->k0,
                        q->kc);
    q->kn->pack_lanes(panel, wide, q->kc, n, q->kc);
}

/* m <= mr packed rows at `a` (of `rows`) times the lanes from c on. */
static void one_tile(const job *q, const char *a, int64_t rows, int64_t r0,
                     int64_t m, int64_t c)
{
    const tt_bf16_kernels *kn = q->kn;
    int64_t n = least(q->no - c, kn->nr);
    int64_t groups = round_up(q->kc, BF16_GROUP) / BF16_GROUP;
    const char *panel = q->packed + c / kn->nr * panel_bytes(q);
    float *y = q->y + r0 * q->ldy + q->o0 + c;
    bool more = q->k0 > 0;
    if (m == kn->mr && n == kn->nr) {
        kn->tile(y, q->ldy, a, rows, panel, groups, more);
        return;
    }
    float t[BF16_MAX_MR * BF16_MAX_NR] = {0};
    for (int64_t r = 0; more && r < m; r++)
        memcpy(t + r * kn->nr, y + r * q->ldy, (size_t)n * sizeof *t);
    kn->tile(t, kn->nr, a, rows, panel, groups, more);
    for (int64_t r = 0; r < m; r++)
        memcpy(y + r * q->ldy, t + r * kn->nr, (size_t)n * sizeof *t);
}

/* Rows [r0, r1) against outputs [c0, c1) of the job; x points at row r0,
 * product k0. `a` receives the packed rows. */
static void run_unit(const job *q, const float *x, int64_t ldx, int64_t r0,
                     int64_t r1, int64_t c0, int64_t c1, char *a)
{
    const tt_bf16_kernels *kn = q->kn;
    int64_t rows = round_up(r1 - r0, kn->mr);
    kn->pack_rows(a, rows, x, ldx, r1 - r0, q->kc);
    unsigned state = kn->begin();
    for (int64_t c = c0; c < c1; c += kn->nr)
        for (int64_t r = r0; r < r1; r += kn->mr)
            one_tile(q, a + (r - r0) * BF16_GROUP * kn->size, rows, r,
                     least(r1 - r, kn->mr), c);
    kn->end(state);
    for (int64_t r = r0; q->bias && r < r1; r++)
        for (int64_t c = q->o0 + c0; c < q->o0 + c1; c++)
            q->y[r * q->ldy + c] += q->bias[c];
}

/* Outputs per unit: narrower when there are few rows, so that every thread
 * gets about four units. */
static int64_t unit_cols(int64_t nr, int64_t no, int64_t row_units,
                         int nthreads)
{
    int64_t want = (4 * nthreads + row_units - 1) / row_units;
    return round_up(least((no + want - 1) / want, UNIT_COLS), nr);
}

static void run_job(tt_ctx *ctx, const job *q, const tt_tensor *w,
                    const float *x, int64_t n, float *own, int64_t per)
{
    int64_t nr = q->kn->nr, K = w->dim[1];
    int64_t panels = (q->no + nr - 1) / nr;
    TT_PARALLEL_FOR_WORK(ctx, q->no * q->kc)
    for (int64_t p = 0; p < panels; p++)
        pack_panel(q, w, p * nr, own + tt_thread_id() * per);
    int64_t rows = (n + UNIT_ROWS - 1) / UNIT_ROWS;
    int64_t cols = unit_cols(nr, q->no, rows, ctx->nthreads);
    int64_t units = rows * ((q->no + cols - 1) / cols);
    TT_PARALLEL_FOR_DYNAMIC(ctx, n * q->no * q->kc / 32)
    for (int64_t u = 0; u < units; u++) {
        int64_t r0 = u % rows * UNIT_ROWS, c0 = u / rows * cols;
        run_unit(q, x + r0 * K + q->k0, K, r0, least(n, r0 + UNIT_ROWS), c0,
                 least(q->no, c0 + cols), (char *)(own + tt_thread_id() * per));
    }
}

/* Outputs packed at a time. */
static int64_t block_cols(const tt_bf16_kernels *kn, int64_t o)
{
    return least(BLOCK_COLS / kn->nr * kn->nr, round_up(o, kn->nr));
}

/* Floats of packed outputs, and beside them of each thread: widened rows of w,
 * or packed rows of x. No more than the call writes (ops/room.h). */
typedef struct size {
    int64_t packed, own;
} size;

static size size_of(const tt_linear_args *a, const tt_bf16_kernels *kn)
{
    const int64_t K = a->w->dim[1];
    const int64_t up = round_up(least(K > 0 ? K : 1, SLICE), BF16_GROUP);
    const int64_t cols = block_cols(kn, a->w->dim[0]);
    const int64_t rows = round_up(least(a->n, UNIT_ROWS), kn->mr) * kn->size;
    const int64_t wide = kn->nr * (int64_t)sizeof(float);
    return (size){up * cols * kn->size / (int64_t)sizeof(float),
                  up * (rows > wide ? rows : wide) / (int64_t)sizeof(float)};
}

int64_t bf16_linear_room(const tt_ctx *ctx, const tt_linear_args *a,
                         const tt_bf16_kernels *kn)
{
    const size s = size_of(a, kn);
    return s.packed + ctx->nthreads * s.own;
}

void bf16_linear(tt_ctx *ctx, const tt_linear_args *a,
                 const tt_bf16_kernels *kn)
{
    int64_t o = a->w->dim[0], K = a->w->dim[1];
    const int64_t cols = block_cols(kn, o);
    const size s = size_of(a, kn);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *packed = tt_scratch(ctx, s.packed);
    float *own = tt_scratch(ctx, ctx->nthreads * s.own);
    if (own && K == 0)
        for (int64_t i = 0; i < a->n * o; i++)
            a->y[i] = a->b ? 0.0f + a->b[i % o] : 0.0f;
    for (int64_t o0 = 0; own && o0 < o; o0 += cols)
        for (int64_t k0 = 0; k0 < K; k0 += SLICE) {
            job q = {.kn = kn, .packed = (const char *)packed, .o0 = o0,
                     .no = least(o - o0, cols), .k0 = k0,
                     .kc = least(K - k0, SLICE), .y = a->y, .ldy = o};
            q.bias = k0 + q.kc == K ? a->b : NULL;
            run_job(ctx, &q, a->w, a->x, a->n, own, s.own);
        }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_bf16_linear;
#endif
