/* bf16_linear.c: linear layers of classes amx and vdp in the walk of product.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Weights are the rows of a tile and rows of x its lanes. A product does not
 * ask which of its factors is which. Weights of other types are rounded tile by
 * tile, for every block of rows; for more than two blocks all of them once,
 * where kernels read bf16 numbers as they lie, in whole groups. */
#include "core/parallel.h"
#include "ops/exact/bf16.h"
#include "ops/exact/product.h"

#ifndef TT_REAL_DOUBLE

typedef struct plan {
    exact_product walk;
    const tt_bf16_kernels *kn;
    bool stored;               /* weights are rows as they lie                */
} plan;

static const plan *bf16_linear_plan_of(const exact_product *p)
{
    return (const plan *)(const void *)p;
}

static void bf16_linear_rows(const exact_product *p, void *panel,
                             const float *x, int64_t ld, int64_t n, int64_t kc,
                             float *own)
{
    (void)own;
    bf16_linear_plan_of(p)->kn->pack_lanes(panel, x, ld, n, kc);
}

/* The weights of a tile and their strides: in place, or packed in `copy`. */
static const void *bf16_linear_weights(const plan *e, exact_slice at,
                                       float *copy, bf16_rows *rows)
{
    const tt_bf16_kernels *kn = e->kn;
    const tt_tensor *w = e->walk.a->w;
    const int64_t K = w->dim[1], n = exact_least(w->dim[0] - at.o0, kn->mr);
    if (e->stored && n == kn->mr) {
        const char *from = (const char *)w->data + 2 * (at.o0 * K + at.k0);
        if (at.o0 + 2 * kn->mr <= w->dim[0])
            EXACT_ASK_WEIGHTS(&e->walk, from + 2 * kn->mr * K, 2 * K,
                              2 * at.kc);
        *rows = (bf16_rows){K, BF16_GROUP};
        return from;
    }
    const float *from = tt_tensor_in_place(w);
    if (from) {
        kn->pack_rows(copy, kn->mr, from + at.o0 * K + at.k0, K, n, at.kc);
    } else {
        float *wide = copy + exact_round_up(at.kc, BF16_GROUP) * kn->mr;
        for (int64_t j = 0; j < n; j++)
            tt_widen_at_f32(wide + j * at.kc, w, (at.o0 + j) * K + at.k0,
                            at.kc);
        kn->pack_rows(copy, kn->mr, wide, at.kc, n, at.kc);
    }
    *rows = bf16_packed(kn->mr);
    return copy;
}

static void bf16_linear_slice(const exact_product *p, float *out,
                              const char *panels, exact_slice at, float *copy)
{
    const tt_bf16_kernels *kn = bf16_linear_plan_of(p)->kn;
    const int64_t groups = exact_parts(at.kc, BF16_GROUP);
    const int64_t bytes = exact_panel_bytes(p, at.kc);
    bf16_rows rows;
    const void *w = bf16_linear_weights(bf16_linear_plan_of(p), at, copy,
                                        &rows);
    const unsigned state = kn->begin();
    for (int64_t r = 0; r < at.n / kn->nr; r++)
        BF16_TILE(kn, at.live - r * kn->nr)(out + r * at.apart, w, rows,
                                            panels + r * bytes, groups,
                                            at.k0 > 0);
    kn->end(state);
}

static bool lie_as_rows(const tt_tensor *w)
{
    return w->dtype == TT_BF16 && w->scale == 0 && w->dim[1] % BF16_GROUP == 0;
}

static plan bf16_linear_plan_for(const tt_linear_args *a,
                                 const tt_bf16_kernels *kn)
{
    const tt_tensor *w = a->w;
    const exact_tuning *tuned = exact_tuned(kn->level);
    const int64_t kc = exact_slice_of(tuned, w->dim[1]);
    const int64_t up = exact_round_up(kc, BF16_GROUP);
    plan e = {.walk = {.a = a, .tuned = tuned, .mr = kn->mr, .nr = kn->nr,
                       .group = BF16_GROUP, .size = kn->size, .kc = kc,
                       .tiles = tuned->tiles,
                       .rows = bf16_linear_rows, .slice = bf16_linear_slice},
              .kn = kn};
    e.stored = kn->stored && lie_as_rows(w);
    if (!e.stored || w->dim[0] % kn->mr) e.walk.copy = (up + kc) * kn->mr;
    e.walk.packs = !e.stored;
    return e;
}

static bool rounds_once(const tt_linear_args *a, const tt_bf16_kernels *kn)
{
    return kn->stored && !lie_as_rows(a->w) && a->w->dim[1] > 0
        && a->w->dim[1] % BF16_GROUP == 0
        && a->n > 2 * exact_tuned(kn->level)->packed_rows;
}

static tt_tensor as_bf16(const tt_tensor *w, void *to)
{
    return tt_tensor_make(to, TT_BF16, 2, w->dim);
}

/* Floats of them, and with a row for every thread, widened. */
static int64_t floats_of_bf16(const tt_tensor *w)
{
    return exact_parts(w->dim[0] * w->dim[1], 2);
}

static int64_t rounding_scratch(const tt_ctx *ctx, const tt_tensor *w)
{
    return floats_of_bf16(w) + ctx->nthreads * w->dim[1];
}

/* [o, K] of bf16, a row at a time; `wide` [threads, K]. */
static void round_rows(tt_ctx *ctx, uint16_t *to, const tt_tensor *w,
                       float *wide, const tt_bf16_kernels *kn)
{
    const int64_t o = w->dim[0], K = w->dim[1];
    const float *from = tt_tensor_in_place(w);
    TT_PARALLEL_FOR_DYNAMIC(ctx, o * K)
    for (int64_t r = 0; r < o; r++) {
        float *own = wide + tt_thread_id() * K;
        if (!from) tt_widen_at_f32(own, w, r * K, K);
        kn->pack_rows(to + r * K, 1, from ? from + r * K : own, K, 1, K);
    }
}

static void bf16_linear_multiply(tt_ctx *ctx, const tt_linear_args *a,
                                 const tt_bf16_kernels *kn)
{
    const int64_t o = a->w->dim[0];
    const plan e = bf16_linear_plan_for(a, kn);
    if (a->w->dim[1] > 0) exact_product_all(ctx, &e.walk);
    for (int64_t i = 0; a->w->dim[1] == 0 && i < a->n * o; i++)
        a->y[i] = a->b ? 0.0f + a->b[i % o] : 0.0f;
}

void bf16_linear(tt_ctx *ctx, const tt_linear_args *a,
                 const tt_bf16_kernels *kn)
{
    if (!rounds_once(a, kn)) {
        bf16_linear_multiply(ctx, a, kn);
        return;
    }
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *workspace = tt_scratch(ctx, rounding_scratch(ctx, a->w));
    if (workspace) {
        const tt_tensor w = as_bf16(a->w, workspace);
        tt_linear_args rest = *a;
        rest.w = &w;
        round_rows(ctx, (uint16_t *)(void *)workspace, a->w,
                   workspace + floats_of_bf16(a->w), kn);
        bf16_linear_multiply(ctx, &rest, kn);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_bf16_linear;
#endif
