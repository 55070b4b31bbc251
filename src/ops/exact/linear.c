/* linear.c: blocked matrix product around linear_tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rows of x lie along the lanes, and the rows of weights are broadcast from
 * where they are stored: y^T = w x^T. A weight is so never packed, which would
 * cost as much as fifty rows do; x is, for every block of rows once, and serves
 * all outputs. Threads take units of outputs and of rows; the outputs of a unit
 * are transposed at its end. Blocking is free to change: it moves whole chains,
 * never splits one. (The definition says fma(x, w, s), and a tile computes
 * fma(w, x, s): the same number.) */
#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"

/* Rows packed at a time, about: a slice of them, the weights of a tile and the
 * outputs of a unit fit a core's second cache. */
#define ROWS 320
#define SLICE (2 * TT_DOT_BLOCK) /* products of a row packed together         */
#define TILES 16 /* tiles of outputs per unit of work, at most                */
#define UNITS 4  /* units of work per thread, at least                        */

/* One block of rows. */
typedef struct product {
    const tt_kernels *kn;
    const tt_linear_args *a;
    int64_t n, o, K;      /* rows of the block, outputs, products             */
    const float *x;       /* [n, K]                                           */
    float *y;             /* [n, o]                                           */
    int64_t lanes;        /* n, rounded up to whole panels                    */
    int64_t high, wide;   /* outputs and lanes of a unit of work, at most     */
    float *packed;        /* [K / SLICE][lanes / nr][SLICE][nr], x along nr;
                           * the last slice is as long as it is               */
    float *own;           /* [threads, own_size]: scratch of a thread         */
    int64_t own_size;
} product;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t parts(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

static float *panel_at(const product *p, int64_t row, int64_t k0, int64_t kc)
{
    return p->packed + k0 * p->lanes + row * kc;
}

/* Rows [r0, r0 + nr) of x, products [k0, k0 + kc), into their panel; rows past
 * the last are zero. */
static void pack_x(const product *p, int64_t r0, int64_t k0, int64_t kc)
{
    const tt_kernels *kn = p->kn;
    const float *from = p->x + r0 * p->K + k0;
    float *whole = p->own + tt_thread_id() * p->own_size;   /* [nr, kc] */
    float *panel = panel_at(p, r0, k0, kc);
    if (r0 + kn->nr <= p->n) {
        kn->pack(panel, from, p->K, kc);
        return;
    }
    memset(whole, 0, (size_t)(kn->nr * kc) * sizeof *whole);
    for (int64_t r = 0; r < p->n - r0; r++)
        memcpy(whole + r * kc, from + r * p->K, (size_t)kc * sizeof *whole);
    kn->pack(panel, whole, kc, kc);
}

/* Weights of outputs [o0, o0 + mr), products [k0, k0 + kc): in place, or a
 * widened copy in `copy` [mr, kc], zero past the last output. *ld: stride. */
static const float *weights(const product *p, int64_t o0, int64_t k0,
                            int64_t kc, float *copy, int64_t *ld)
{
    const float *stored = tt_tensor_in_place(p->a->w);
    if (stored && o0 + p->kn->mr <= p->o) {
        *ld = p->K;
        return stored + o0 * p->K + k0;
    }
    for (int64_t j = 0; j < p->kn->mr; j++) {
        if (o0 + j < p->o)
            tt_widen_at_f32(copy + j * kc, p->a->w, (o0 + j) * p->K + k0, kc);
        else
            memset(copy + j * kc, 0, (size_t)kc * sizeof *copy);
    }
    *ld = kc;
    return copy;
}

/* A slice of products of mr outputs and rows [r0, r1), added to out [mr, r1 -
 * r0], in the blocks of the definition, ascending. */
static void add_slice(const product *p, float *out, int64_t o0, int64_t r0,
                      int64_t r1, int64_t k0, float *copy)
{
    const int64_t kc = least(p->K - k0, SLICE);
    int64_t ld;
    const float *w = weights(p, o0, k0, kc, copy, &ld);
    for (int64_t r = r0; r < r1; r += p->kn->nr) {
        const float *x = panel_at(p, r, k0, kc);
        for (int64_t k = 0; k < kc; k += TT_DOT_BLOCK)
            p->kn->linear_tile(out + r - r0, r1 - r0, w + k, ld,
                               x + k * p->kn->nr, least(kc - k, TT_DOT_BLOCK),
                               k0 + k > 0, NULL);
    }
}

/* y [rows r0.., outputs o0..] = out^T + bias, for `no` outputs and `nrows`
 * rows; out [no, ld], turned [ld, nr] */
static void turn(const product *p, const float *out, int64_t ld, int64_t o0,
                 int64_t no, int64_t r0, int64_t nrows, float *turned)
{
    const int64_t nr = p->kn->nr;
    for (int64_t c = 0; c < no; c += nr) {
        const int64_t n = least(no - c, nr), at = o0 + c;
        const float *b = p->a->b ? p->a->b + at : NULL;
        p->kn->pack(turned, out + c * ld, ld, ld);
        for (int64_t r = 0; r < nrows; r++) {
            const float *from = turned + r * nr;
            float *y = p->y + (r0 + r) * p->o + at;
            for (int64_t i = 0; i < n; i++) y[i] = b ? from[i] + b[i] : from[i];
        }
    }
}

/* Outputs from o0 and rows from r0 on: one unit of work. */
static void one_unit(const product *p, int64_t o0, int64_t r0)
{
    const int64_t mr = p->kn->mr, nr = p->kn->nr;
    const int64_t no = least(p->o - o0, p->high);
    const int64_t r1 = least(p->lanes, r0 + p->wide);
    float *out = p->own + tt_thread_id() * p->own_size;
    float *turned = out + parts(p->high, nr) * nr * p->wide;
    float *copy = turned + p->wide * nr;
    for (int64_t k0 = 0; k0 < p->K; k0 += SLICE)
        for (int64_t j = 0; j < no; j += mr)
            add_slice(p, out + j * (r1 - r0), o0 + j, r0, r1, k0, copy);
    turn(p, out, r1 - r0, o0, no, r0, least(p->n, r1) - r0, turned);
}

static void one_block(tt_ctx *ctx, product *p)
{
    const int64_t nr = p->kn->nr, panels = p->lanes / nr;
    const int64_t across = parts(p->lanes, p->wide);
    TT_PARALLEL_FOR_WORK(ctx, p->lanes * p->K)
    for (int64_t u = 0; u < panels * parts(p->K, SLICE); u++) {
        const int64_t k0 = u / panels * SLICE;
        pack_x(p, u % panels * nr, k0, least(p->K - k0, SLICE));
    }
    TT_PARALLEL_FOR_DYNAMIC(ctx, p->lanes * p->o * p->K / 32)
    for (int64_t u = 0; u < across * parts(p->o, p->high); u++)
        one_unit(p, u / across * p->high, u % across * p->wide);
}

/* Blocks of rows as equal as whole panels allow; units of as many tiles as
 * leave every thread some, and of fewer rows where there are few outputs. */
static product plan(const tt_ctx *ctx, const tt_linear_args *a)
{
    product p = {.kn = exact_kernels(), .a = a, .o = a->w->dim[0],
                 .K = a->w->dim[1]};
    const int64_t nr = p.kn->nr, mr = p.kn->mr, want = UNITS * ctx->nthreads;
    const int64_t tiles = parts(p.o, mr), blocks = parts(a->n, ROWS);
    if (blocks > 0) p.lanes = parts(parts(a->n, blocks), nr) * nr;
    int64_t t = least(TILES, tiles / want);
    p.high = mr * (t > 0 ? t : 1);
    t = parts(p.lanes / nr, parts(want, parts(p.o, p.high)));
    p.wide = nr * t;
    p.own_size = (parts(p.high, nr) + 1) * nr * p.wide
                 + (nr > mr ? nr : mr) * least(p.K, SLICE);
    return p;
}

int64_t exact_f32_linear_room(const tt_ctx *ctx, const tt_linear_args *a)
{
    const product p = plan(ctx, a);
    return p.lanes * p.K + ctx->nthreads * p.own_size;
}

void exact_f32_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    if (a->n <= 0 || a->w->dim[0] <= 0) return;
    product p = plan(ctx, a);
    const int64_t step = p.lanes;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    p.packed = tt_scratch(ctx, p.lanes * p.K);
    p.own = tt_scratch(ctx, ctx->nthreads * p.own_size);
    for (int64_t r = 0; p.own && p.K > 0 && r < a->n; r += step) {
        p.n = least(a->n - r, step);
        p.lanes = parts(p.n, p.kn->nr) * p.kn->nr;
        p.x = a->x + r * p.K;
        p.y = a->y + r * p.o;
        one_block(ctx, &p);
    }
    for (int64_t i = 0; p.own && p.K == 0 && i < a->n * p.o; i++)
        a->y[i] = a->b ? a->b[i % p.o] : 0.0f;
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_linear;
#endif
