/* product.c: see product.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/product.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

/* One block of rows. */
typedef struct block {
    const exact_product *p;
    const tt_kernels *kn; /* turns outputs                                    */
    int64_t n, o, K;      /* rows of the block, outputs, products             */
    int64_t slice;        /* products that are taken together                 */
    const float *x;       /* [n, K]                                           */
    float *y;             /* [n, o]                                           */
    bool far;             /* y is                                             */
    int64_t lanes;        /* n, rounded up to whole panels                    */
    int64_t high, wide;   /* outputs and lanes of a unit of work, at most     */
    char *laid;           /* [K / slice][lanes / nr] panels of x              */
    float *own;           /* [threads, own_size]: scratch of a thread         */
    int64_t own_size;
} block;

/* The panel that begins with a row. */
static char *panel_at(const block *b, int64_t row, int64_t k0, int64_t kc)
{
    return b->laid + k0 * b->lanes * b->p->size +
           row / b->p->nr * exact_panel_bytes(b->p, kc);
}

/* Outputs from o0 and rows from r0 on: one unit of work. */
static void one_unit(const block *b, int64_t o0, int64_t r0)
{
    const int64_t mr = b->p->mr, nr = b->p->nr;
    const int64_t no = exact_least(b->o - o0, b->high);
    const int64_t r1 = exact_least(b->lanes, r0 + b->wide);
    float *out = b->own + tt_thread_id() * b->own_size;
    exact_slice at = {.n = r1 - r0, .live = exact_least(b->n - r0, r1 - r0),
                      .apart = b->high * nr};
    float *copy = out + b->high * b->wide;
    const float *bias = b->p->a->b ? b->p->a->b + o0 : NULL;
    for (at.k0 = 0; at.k0 < b->K; at.k0 += b->slice) {
        at.kc = exact_least(b->K - at.k0, b->slice);
        const char *panels = panel_at(b, r0, at.k0, at.kc);
        for (int64_t j = 0; j < no; j += mr) {
            at.o0 = o0 + j;
            b->p->slice(b->p, out + j * nr, panels, at, copy);
        }
    }
    for (int64_t r = r0; r < exact_least(b->n, r1); r += nr)
        b->kn->turn(b->y + r * b->o + o0, b->o, out + (r - r0) * b->high, nr,
                    exact_least(b->n - r, nr), no, bias, b->far);
}

static void one_block(tt_ctx *ctx, block *b)
{
    const int64_t nr = b->p->nr, panels = b->lanes / nr;
    const int64_t across = exact_parts(b->lanes, b->wide);
    TT_PARALLEL_FOR_WORK(ctx, b->lanes * b->K)
    for (int64_t u = 0; u < panels * exact_parts(b->K, b->slice); u++) {
        const int64_t r = u % panels * nr, k0 = u / panels * b->slice;
        const int64_t kc = exact_least(b->K - k0, b->slice);
        b->p->rows(b->p, panel_at(b, r, k0, kc), b->x + r * b->K + k0, b->K,
                   exact_least(b->n - r, nr), kc,
                   b->own + tt_thread_id() * b->own_size);
    }
    TT_PARALLEL_FOR_DYNAMIC(ctx, b->lanes * b->o * b->K / 32)
    for (int64_t u = 0; u < across * exact_parts(b->o, b->high); u++)
        one_unit(b, u / across * b->high, u % across * b->wide);
}

/* Blocks of rows as equal as whole panels allow; units of as many tiles as
 * leave every thread some, and the same; of fewer rows where there are few
 * outputs. */
static block plan(const tt_ctx *ctx, const exact_product *p)
{
    const tt_linear_args *a = p->a;
    const exact_tuning *t = p->tuned;
    block b = {.p = p, .kn = exact_kernels(), .o = a->w->dim[0],
               .K = a->w->dim[1], .slice = exact_slice_of(t, a->w->dim[1]),
               .far = a->n * a->w->dim[0] * (int64_t)sizeof *a->y >= t->far};
    const int64_t want = t->units * ctx->nthreads;
    const int64_t tiles = exact_parts(b.o, p->mr);
    const int64_t blocks = exact_parts(a->n, p->packs ? t->packed_rows
                                                     : t->rows);
    int64_t units = exact_parts(tiles, t->tiles);
    units = exact_round_up(units > want ? units : want, ctx->nthreads);
    if (blocks > 0)
        b.lanes = exact_round_up(exact_parts(a->n, blocks), p->nr);
    b.high = p->mr * exact_parts(tiles, units);
    const int64_t across = exact_parts(want, exact_parts(b.o, b.high));
    b.wide = p->nr * exact_parts(b.lanes / p->nr, across);
    b.own_size = b.high * b.wide + p->copy;
    return b;
}

/* Floats of all panels of a block. */
static int64_t laid_room(const block *b)
{
    const int64_t bytes = b->lanes / b->p->nr * exact_panel_bytes(b->p, b->K);
    return bytes / (int64_t)sizeof(float);
}

int64_t exact_product_room(const tt_ctx *ctx, const exact_product *p)
{
    if (p->a->n <= 0 || p->a->w->dim[0] <= 0) return 0;
    const block b = plan(ctx, p);
    return laid_room(&b) + ctx->nthreads * b.own_size;
}

void exact_product_all(tt_ctx *ctx, const exact_product *p)
{
    const tt_linear_args *a = p->a;
    if (a->n <= 0 || a->w->dim[0] <= 0) return;
    block b = plan(ctx, p);
    const int64_t step = b.lanes;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *room = tt_scratch(ctx, exact_product_room(ctx, p));
    if (room) b.own = room + laid_room(&b);
    b.laid = (char *)room;
    for (int64_t r = 0; room && r < a->n; r += step) {
        b.n = exact_least(a->n - r, step);
        b.lanes = exact_parts(b.n, p->nr) * p->nr;
        b.x = a->x + r * b.K;
        b.y = a->y + r * b.o;
        one_block(ctx, &b);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_product;
#endif
