/* linear_transposed.c: linear layers of class f32 with many rows, where kernels
 * have tiles for it (transposed_tile).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The walk of product.h with the parts of rows and weights exchanged: outputs
 * lie along the lanes, and the rows of x are broadcast. The weights of a tile
 * are transposed for that, a block of the definition at a time. What it saves:
 * a block of transposed weights stays near the core for all rows, outputs come
 * as they belong, and a last tile may have half the rows: of 273, the tokens of
 * a chunk at 208x112, none is computed in vain. `transposed_rows` says from how
 * many rows on that pays. From `once_rows` on weights are transposed once for
 * all blocks of rows. */
#include "core/parallel.h"
#include "ops/exact/product.h"

#ifndef TT_REAL_DOUBLE

typedef struct plan {
    exact_product walk;
    const tt_kernels *kn;
    const float *transposed; /* all weights (exact_turn_all), or NULL     */
} plan;

static const plan *linear_transposed_plan_of(const exact_product *p)
{
    return (const plan *)(const void *)p;
}

static const tt_kernels *kernels_of(const exact_product *p)
{
    return linear_transposed_plan_of(p)->kn;
}

static void linear_transposed_rows(const exact_product *p, void *panel,
                                   const float *x, int64_t ld, int64_t n,
                                   int64_t kc, float *own)
{
    (void)own;
    kernels_of(p)->transposed_rows(panel, x, ld, n, kc);
}

/* The weights of nr outputs from o0 on and of products from k0 on, [.., nr];
 * NULL: they are not transposed yet. */
static const float *transposed(const exact_product *p, int64_t o0, int64_t k0)
{
    const plan *e = linear_transposed_plan_of(p);
    return e->transposed ? e->transposed + o0 * p->a->w->dim[1] + k0 * e->kn->nr
        : NULL;
}

void exact_turn_weights(float *panel, const tt_tensor *w, int64_t o0,
                        int64_t k0, int64_t kc, float *wide)
{
    const tt_kernels *kn = exact_kernels();
    const int64_t o = w->dim[0], K = w->dim[1];
    const float *stored = o0 + kn->nr <= o ? tt_tensor_in_place(w) : NULL;
    if (stored) {
        kn->pack(panel, stored + o0 * K + k0, K, kc);
        return;
    }
    for (int64_t j = 0; j < kn->nr; j++) {
        if (o0 + j < o)
            tt_widen_at_f32(wide + j * kc, w, (o0 + j) * K + k0, kc);
        else
            memset(wide + j * kc, 0, (size_t)kc * sizeof *wide);
    }
    kn->pack(panel, wide, kc, kc);
}

int64_t exact_transposed_floats(const tt_tensor *w)
{
    return exact_round_up(w->dim[0], exact_kernels()->nr)
           * (tt_tensor_count(w) / w->dim[0]);
}

void exact_turn_all(tt_ctx *ctx, float *to, const tt_tensor *w, float *wide,
                    int64_t apart)
{
    const int64_t nr = exact_kernels()->nr, o = w->dim[0], K = w->dim[1];
    const int64_t blocks = exact_parts(K, TT_DOT_BLOCK);
    TT_PARALLEL_FOR_DYNAMIC(ctx, o * K)
    for (int64_t u = 0; u < exact_parts(o, nr) * blocks; u++) {
        const int64_t o0 = u / blocks * nr, k0 = u % blocks * TT_DOT_BLOCK;
        exact_turn_weights(to + o0 * K + k0 * nr, w, o0, k0,
                           exact_least(K - k0, TT_DOT_BLOCK),
                           wide + tt_thread_id() * apart);
    }
}

/* Products [k, k + n) of a panel that begins with row r, a block of the
 * definition. */
typedef struct block {
    int64_t k, n, r;
    const float *x, *w;      /* packed, and transposed                        */
} block;

/* The weights that come next, for kernels to ask memory for: stored, those of a
 * row for every tile; transposed, a part of all, as they lie in a row. */
typedef struct wanted {
    const float *from;       /* the first one; NULL: nothing is asked for     */
    int64_t ld, rows;        /* stored; rows 0: transposed                    */
    int64_t asked;           /* by so many tiles                              */
} wanted;

static wanted next_wanted(const exact_product *p, exact_slice at)
{
    const tt_tensor *w = p->a->w;
    wanted next = {.ld = w->dim[1]};
    if (at.after[0] < w->dim[0])
        next.from = transposed(p, at.after[0], at.after[1]);
    if (next.from || at.after[0] + p->mr > w->dim[0]) return next;
    next.from = tt_tensor_in_place(w);
    if (next.from) next.from += at.after[0] * next.ld + at.after[1];
    next.rows = p->mr;
    return next;
}

/* What one of so many tiles asks for. */
static exact_ask linear_transposed_ask(wanted *next, const exact_product *p,
                                       block b, int64_t tiles)
{
    const int64_t i = next->asked++;
    if (!next->from || (next->rows && i >= next->rows))
        return (exact_ask){.next = (uintptr_t)b.w}; /* a line that is there */
    if (next->rows)
        return (exact_ask){(uintptr_t)(next->from + i * next->ld),
                           sizeof *next->from};
    return exact_ask_part(next->from, p->mr, b.n, i, tiles);
}

/* The sums [nr, mr] of a panel's first `live` rows go where they belong. */
static void linear_transposed_give(const exact_product *p, const float *sums,
                                   exact_slice at, int64_t live)
{
    const float *b = p->a->b;
    const int64_t o = p->a->w->dim[0], n = exact_least(o - at.o0, p->mr);
    for (int64_t r = 0; r < exact_least(live, p->nr); r++)
        for (int64_t j = 0; j < n; j++) {
            const float sum = sums[r * p->mr + j];
            at.y[r * o + j] = b ? sum + b[at.o0 + j] : sum;
        }
}

/* Do tiles' rows of outputs begin where lines do? */
static bool whole_lines(const exact_product *p)
{
    const int64_t line = 64 / (int64_t)sizeof *p->a->y;
    return (uintptr_t)p->a->y % 64 == 0 && p->a->w->dim[0] % line == 0;
}

/* `sums` join it. */
static void linear_transposed_add_block(const exact_product *p, float *sums,
                                        block b, exact_slice at,
                                        exact_ask meanwhile)
{
    const tt_kernels *kn = kernels_of(p);
    const int64_t o = p->a->w->dim[0], K = p->a->w->dim[1];
    const int64_t half = p->nr / 2, live = at.live - b.r;
    const bool last = b.k + b.n == K;
    const bool there = last && at.o0 + p->mr <= o
                       && (live >= p->nr || live == half);
    const float *bias = there && p->a->b ? p->a->b + at.o0 : NULL;
    at.y += b.r * o;
    (live <= half ? kn->transposed_half
     : there && at.far ? kn->transposed_far : kn->transposed_tile)(
        there ? at.y : sums, there ? o : p->mr, b.k > 0 ? sums : NULL, b.x,
        b.w, b.n, bias, meanwhile);
    if (last && !there) linear_transposed_give(p, sums, at, live);
}

/* A slice is a block of the definition. */
static void linear_transposed_slice(const exact_product *p, float *out,
                                    const char *panels, exact_slice at,
                                    float *copy)
{
    const float *x = (const float *)(const void *)panels;
    const int64_t tiles = exact_parts(at.n, p->nr);
    wanted next = next_wanted(p, at);
    block b = {.k = at.k0, .n = at.kc};
    b.w = transposed(p, at.o0, at.k0);
    if (!b.w) {
        exact_turn_weights(copy, p->a->w, at.o0, at.k0, at.kc,
                           copy + p->mr * at.kc);
        b.w = copy;
    }
    at.far = at.far && whole_lines(p);
    for (; b.r < at.n; b.r += p->nr) {
        b.x = x + b.r * at.kc;
        linear_transposed_add_block(p, out + b.r / p->nr * at.apart, b, at,
                                    linear_transposed_ask(&next, p, b, tiles));
    }
    if (at.far && b.k + b.n == p->a->w->dim[1]) kernels_of(p)->transposed_end();
}

static plan linear_transposed_plan_for(const tt_linear_args *a,
                                       const float *all)
{
    const tt_kernels *kn = exact_kernels();
    const exact_tuning *tuned = exact_tuned(kn->level);
    const int64_t kc = exact_least(a->w->dim[1], TT_DOT_BLOCK);
    return (plan){.walk = {.a = a, .tuned = tuned, .mr = kn->nr, .nr = kn->mr,
                           .group = 1, .size = sizeof(float), .kc = kc,
                           .tiles = exact_parts(tuned->tiles, 4),
                           .copy = 2 * kn->nr * kc, .gives = true,
                           .rows = linear_transposed_rows,
                               .slice = linear_transposed_slice},
                  .kn = kn, .transposed = all};
}

/* Rows that one turning of a weight serves: product.c cuts them where threads
 * would have no outputs left. */
static int64_t served(const tt_ctx *ctx, const tt_linear_args *a,
                      const exact_tuning *tuned, int64_t nr)
{
    return a->n / exact_parts(tuned->units * ctx->nthreads,
                              exact_parts(a->w->dim[0], nr));
}

/* Where rows are cut, a quarter of the rows still pays: all threads turn at
 * once. Few outputs may fill a wide tile too badly. */
bool exact_turns(const tt_ctx *ctx, const tt_linear_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const exact_tuning *tuned = exact_tuned(kn->level);
    const int64_t o = a->w->dim[0], most = exact_round_up(o, kn->mr) * 11 / 10;
    return kn->transposed_tile && a->w->dim[1] > 0 && o > 0
        && a->n >= tuned->transposed_rows && exact_round_up(o, kn->nr) <= most
        && served(ctx, a, tuned, kn->nr) >= tuned->transposed_rows / 4;
}

/* Floats that are transposed at once at most: larger layers than those of a
 * video model go on block by block. */
#define MOST_AT_ONCE (1 << 27)

static bool turns_once(const tt_linear_args *a)
{
    return a->n >= exact_tuned(exact_kernels()->level)->once_rows
        && exact_transposed_floats(a->w) <= MOST_AT_ONCE;
}

/* Floats of a block of a tile, widened. */
static int64_t own_size(void)
{
    return exact_kernels()->nr * TT_DOT_BLOCK;
}

/* Of them, for every thread, and of the weights. */
static int64_t linear_transposed_scratch_floats(const tt_ctx *ctx,
                                                const tt_tensor *w)
{
    return exact_transposed_floats(w) + ctx->nthreads * own_size();
}

static void linear_transposed_multiply(tt_ctx *ctx, const tt_linear_args *a,
                                       const float *all)
{
    const plan e = linear_transposed_plan_for(a, all);
    exact_product_all(ctx, &e.walk);
}

void exact_transposed_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    if (!turns_once(a)) {
        linear_transposed_multiply(ctx, a, NULL);
        return;
    }
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *workspace =
        tt_scratch(ctx, linear_transposed_scratch_floats(ctx, a->w));
    if (workspace) {
        exact_turn_all(ctx, workspace, a->w,
                       workspace + exact_transposed_floats(a->w), own_size());
        linear_transposed_multiply(ctx, a, workspace);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_linear_transposed;
#endif
