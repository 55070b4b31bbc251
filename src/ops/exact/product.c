/* product.c: see product.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/product.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/exact/units.h"

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
    bool ahead;           /* the next one is packed meanwhile                 */
    int64_t high, wide;   /* outputs and lanes of a unit of work, at most     */
    exact_units units;    /* one below the other, of tiles                    */
    char *packed;         /* [K / slice][lanes / nr] panels of x            */
    float *own;           /* [threads, own_size]: scratch of a thread         */
    int64_t own_size;
} block;

/* The panel that begins with a row. */
static char *product_panel_at(const block *b, int64_t row, int64_t k0,
                              int64_t kc)
{
    return b->packed + k0 * b->lanes * b->p->size +
           row / b->p->nr * exact_panel_bytes(b->p, kc);
}

/* One unit of work: its outputs, and rows from r0 on. */
static void product_one_unit(const block *b, exact_unit u, int64_t r0)
{
    const int64_t mr = b->p->mr, nr = b->p->nr;
    const int64_t o0 = u.from * mr, no = exact_least(b->o - o0, u.n * mr);
    const int64_t r1 = exact_least(b->lanes, r0 + b->wide);
    float *out = b->own + tt_thread_id() * b->own_size;
    exact_slice at = {.n = r1 - r0, .live = exact_least(b->n - r0, r1 - r0),
                      .apart = b->high * nr, .far = b->far};
    float *copy = out + b->high * b->wide;
    const float *bias = b->p->a->b ? b->p->a->b + o0 : NULL;
    for (at.k0 = 0; at.k0 < b->K; at.k0 += b->slice) {
        at.kc = exact_least(b->K - at.k0, b->slice);
        const char *panels = product_panel_at(b, r0, at.k0, at.kc);
        for (int64_t j = 0; j < no; j += mr) {
            const bool last = j + mr >= no, end = at.k0 + at.kc == b->K;
            at.o0 = o0 + j;
            at.after[0] = last && !end ? o0 : at.o0 + mr;
            at.after[1] = last ? (at.k0 + at.kc) % b->K : at.k0;
            at.y = b->y + r0 * b->o + at.o0;
            b->p->slice(b->p, out + j * nr, panels, at, copy);
        }
    }
    for (int64_t r = r0; !b->p->gives && r < exact_least(b->n, r1); r += nr)
        b->kn->turn(b->y + r * b->o + o0, b->o, out + (r - r0) * b->high, nr,
                    exact_least(b->n - r, nr), no, bias, b->far);
}

/* What the units of a block are worth, for parallel.h. */
static int64_t unit_work(const block *b)
{
    return b->lanes * b->o * b->K / 32;
}

/* Slices of panels. */
static int64_t pieces(const block *b)
{
    return b->lanes / b->p->nr * exact_parts(b->K, b->slice);
}

/* Lay out a slice of a panel. */
static void lay(const block *b, int64_t u)
{
    const int64_t nr = b->p->nr, panels = b->lanes / nr;
    const int64_t r = u % panels * nr, k0 = u / panels * b->slice;
    const int64_t kc = exact_least(b->K - k0, b->slice);
    b->p->rows(b->p, product_panel_at(b, r, k0, kc), b->x + r * b->K + k0, b->K,
               exact_least(b->n - r, nr), kc,
               b->own + tt_thread_id() * b->own_size);
}

static void lay_block(tt_ctx *ctx, const block *b)
{
    TT_PARALLEL_FOR_DYNAMIC(ctx, b->lanes * b->K)
    for (int64_t u = 0; u < pieces(b); u++) lay(b, u);
}

/* The units of a block, and after them what is to be packed of the next one,
 * if any: so no one waits for the last unit. */
static void product_one_block(tt_ctx *ctx, const block *b, const block *next)
{
    const int64_t across = exact_parts(b->lanes, b->wide);
    exact_units down = b->units;
    if (next) down.threads = 0;
    const int64_t units = across * exact_units_count(&down);
    const int64_t after = next ? pieces(next) : 0;
    TT_PARALLEL_WORK(ctx, unit_work(b))
    {
        TT_SHARED
        for (int64_t u = 0; u < units; u++)
            product_one_unit(b, exact_unit_at(&down, u / across),
                             u % across * b->wide);
        TT_SHARED
        for (int64_t u = 0; u < after; u++) lay(next, u);
    }
}

/* Blocks of rows as equal as whole panels allow; units of as many tiles as
 * leave every thread some; of fewer rows where there are few outputs. */
static block product_plan(const tt_ctx *ctx, const exact_product *p)
{
    const tt_linear_args *a = p->a;
    const exact_tuning *t = p->tuned;
    block b = {.p = p, .kn = exact_kernels(), .o = a->w->dim[0],
               .K = a->w->dim[1], .slice = p->kc,
               .far = a->n * a->w->dim[0] * (int64_t)sizeof *a->y >= t->far};
    const int64_t want = t->units * ctx->nthreads;
    const int64_t tiles = exact_parts(b.o, p->mr);
    const int64_t blocks = exact_parts(a->n, p->packs ? t->packed_rows
                                                     : t->rows);
    if (blocks > 0)
        b.lanes = exact_round_up(exact_parts(a->n, blocks), p->nr);
    b.units = (exact_units){
        .rows = 1, .cols = tiles, .least = 1, .threads = ctx->nthreads,
        .most = exact_least(p->tiles, exact_parts(tiles, want))};
    b.high = p->mr * b.units.most;
    const int64_t across = exact_parts(want, tiles);
    b.wide = p->nr * exact_parts(b.lanes / p->nr, across);
    b.own_size = b.high * b.wide + p->copy;
    b.ahead = tt_shares(ctx, unit_work(&b));
    return b;
}

/* Floats of the panels of so many rows. */
static int64_t panel_scratch(const block *b, int64_t rows)
{
    const int64_t panels = exact_parts(rows, b->p->nr);
    return panels * exact_panel_bytes(b->p, b->K) / (int64_t)sizeof(float);
}

/* Of all that is packed at a time: one block, or two that alternate. */
static int64_t whole_scratch(const block *b)
{
    const int64_t more = exact_least(b->p->a->n - b->lanes, b->lanes);
    return panel_scratch(b, b->lanes)
           + (b->ahead && more > 0 ? panel_scratch(b, more) : 0);
}

static int64_t product_scratch(const tt_ctx *ctx, const exact_product *p)
{
    if (p->a->n <= 0 || p->a->w->dim[0] <= 0) return 0;
    const block b = product_plan(ctx, p);
    return whole_scratch(&b) + ctx->nthreads * b.own_size;
}

/* Block i of rows, and n <= 0 after the last. */
static block block_of(const block *all, float *workspace, int64_t i)
{
    const tt_linear_args *a = all->p->a;
    const int64_t r = i * all->lanes;
    block b = *all;
    b.n = exact_least(a->n - r, all->lanes);
    if (b.n <= 0) return b;
    b.lanes = exact_round_up(b.n, b.p->nr);
    b.x = a->x + r * b.K;
    b.y = a->y + r * b.o;
    if (b.ahead && i % 2) workspace += panel_scratch(all, all->lanes);
    b.packed = (char *)workspace;
    return b;
}

void exact_product_all(tt_ctx *ctx, const exact_product *p)
{
    const tt_linear_args *a = p->a;
    if (a->n <= 0 || a->w->dim[0] <= 0) return;
    block all = product_plan(ctx, p);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *workspace = tt_scratch(ctx, product_scratch(ctx, p));
    if (workspace) {
        all.own = workspace + whole_scratch(&all);
        block b = block_of(&all, workspace, 0);
        for (int64_t i = 1; b.n > 0; i++) {
            const block next = block_of(&all, workspace, i);
            if (i == 1 || !b.ahead) lay_block(ctx, &b);
            product_one_block(ctx, &b, b.ahead && next.n > 0 ? &next : NULL);
            b = next;
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_product;
#endif
