/* linear.c: linear layers of class f32 in the walk of product.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The definition says fma(x, w, s), and a tile computes fma(w, x, s): the same
 * number. */
#include "ops/exact/product.h"

#ifndef TT_REAL_DOUBLE

typedef struct plan {
    exact_product walk;
    const tt_kernels *kn;
} plan;

static const plan *linear_plan_of(const exact_product *p)
{
    return (const plan *)(const void *)p;
}

/* Are there so few rows that stored bf16 numbers are taken as they are? */
static bool few_of_bf16(const exact_product *p)
{
    const tt_tensor *w = p->a->w;
    return linear_plan_of(p)->kn->linear_half16 && p->a->n
        <= p->tuned->bf16_rows && w->dtype == TT_BF16 && w->scale == 0
        && (uintptr_t)w->data % sizeof(uint16_t) == 0;
}

/* The last rows of a panel, of `live`, that linear_rest has. */
static int64_t alone(const exact_product *p, int64_t live)
{
    const tt_kernels *kn = linear_plan_of(p)->kn;
    if (!kn->rest || live >= kn->nr || few_of_bf16(p)) return 0;
    return live % kn->half <= kn->rest ? live % kn->half : 0;
}

static void exact_linear_rows(const exact_product *p, void *panel,
                              const float *x, int64_t ld, int64_t n, int64_t kc,
                              float *own)
{
    if (n == p->nr) {
        linear_plan_of(p)->kn->pack(panel, x, ld, kc);
        return;
    }
    const int64_t apart = alone(p, n), lanes = n - apart;
    float *at = (float *)panel + lanes;
    memset(own, 0, (size_t)(p->nr * kc) * sizeof *own);
    for (int64_t r = 0; r < n; r++)
        memcpy(own + r * kc, x + r * ld, (size_t)kc * sizeof *own);
    linear_plan_of(p)->kn->pack(panel, own, kc, kc);
    for (int64_t k = 0; k + REST_K <= kc; k += REST_K)
        for (int64_t r = 0; r < apart; r++)
            memcpy(at + (k + r) * p->nr, x + (lanes + r) * ld + k,
                   REST_K * sizeof *at);
}

/* The weights of a tile: in place, or a widened copy [mr, kc], zero past the
 * last output. *ld: stride. */
static const float *linear_weights(const exact_product *p, exact_slice at,
                                   float *copy, int64_t *ld)
{
    const tt_tensor *w = p->a->w;
    const int64_t o = w->dim[0], K = w->dim[1];
    const float *stored = tt_tensor_in_place(w);
    if (stored && at.o0 + p->mr <= o) {
        *ld = K;
        return stored + at.o0 * K + at.k0;
    }
    for (int64_t j = 0; j < p->mr; j++) {
        if (at.o0 + j < o)
            tt_widen_at_f32(copy + j * at.kc, w, (at.o0 + j) * K + at.k0,
                            at.kc);
        else
            memset(copy + j * at.kc, 0, (size_t)at.kc * sizeof *copy);
    }
    *ld = at.kc;
    return copy;
}

/* The first lines of the next tile's weights are asked for. */
static void prefetch_at(const exact_product *p, exact_slice at)
{
    const tt_tensor *w = p->a->w;
    const int64_t o = at.o0 + p->mr, ld = w->dim[1];
    const float *stored = tt_tensor_in_place(w);
    if (!stored || o + p->mr > w->dim[0]) return;
    const char *from = (const char *)(stored + o * ld + at.k0);
    EXACT_ASK_WEIGHTS(p, from, ld * (int64_t)sizeof *stored,
                      at.kc * (int64_t)sizeof *stored);
}

/* out [mr, nr] = what is there (from k0 > 0 on) and a slice of products of a
 * panel whose first at.live > 0 rows count (or all, if those are more than it
 * has), in the blocks of the definition, ascending. */
static void linear_panel(const exact_product *p, float *out, const float *w,
                         int64_t ld, const float *x, exact_slice at)
{
    const tt_kernels *kn = linear_plan_of(p)->kn;
    const int64_t apart = alone(p, at.live), lanes = at.live - apart;
    for (int64_t k = 0; lanes > 0 && k < at.kc; k += TT_DOT_BLOCK) {
        const int64_t n = exact_least(at.kc - k, TT_DOT_BLOCK);
        (lanes <= kn->half ? kn->linear_half
         : lanes <= kn->few ? kn->linear_few : kn->linear_tile)(
            out, kn->nr, w + k, ld, x + k * kn->nr, n, at.k0 + k > 0, NULL);
    }
    if (apart)
        kn->linear_rest(out + lanes, kn->nr, w, ld, x + lanes, apart, at.kc,
                        at.k0 > 0);
}

/* Are those of this tile? */
static bool takes_bf16(const exact_product *p, exact_slice at)
{
    return few_of_bf16(p) && at.o0 + p->mr <= p->a->w->dim[0];
}

static void few_bf16(const exact_product *p, float *out, const float *panels,
                     exact_slice at)
{
    const tt_kernels *kn = linear_plan_of(p)->kn;
    const int64_t K = p->a->w->dim[1];
    const uint16_t *w = (const uint16_t *)p->a->w->data + at.o0 * K + at.k0;
    for (int64_t r = 0; r < at.live; r += kn->half) {
        const int64_t from = r / p->nr * p->nr;
        const float *panel = panels + from * at.kc + r % p->nr;
        float *o = out + r / p->nr * at.apart + r % p->nr;
        for (int64_t k = 0; k < at.kc; k += TT_DOT_BLOCK)
            kn->linear_half16(o, kn->nr, w + k, K, panel + k * kn->nr,
                              exact_least(at.kc - k, TT_DOT_BLOCK),
                              at.k0 + k > 0, NULL);
    }
}

static void linear_slice(const exact_product *p, float *out, const char *panels,
                         exact_slice at, float *copy)
{
    const float *x = (const float *)(const void *)panels;
    int64_t ld;
    if (takes_bf16(p, at)) {
        few_bf16(p, out, x, at);
        return;
    }
    const float *w = linear_weights(p, at, copy, &ld);
    prefetch_at(p, at);
    for (int64_t r = 0; r < at.n; r += p->nr, out += at.apart) {
        linear_panel(p, out, w, ld, x + r * at.kc, at);
        at.live -= p->nr;
    }
}

static plan linear_plan_for(const tt_linear_args *a)
{
    const tt_kernels *kn = exact_kernels();
    const exact_tuning *tuned = exact_tuned(kn->level);
    const int64_t kc = exact_slice_of(tuned, a->w->dim[1]);
    return (plan){.walk = {.a = a, .tuned = tuned, .mr = kn->mr, .nr = kn->nr,
                           .group = 1, .size = sizeof(float), .kc = kc,
                           .tiles = tuned->tiles,
                           .copy = (kn->nr > kn->mr ? kn->nr : kn->mr) * kc,
                           .rows = exact_linear_rows, .slice = linear_slice},
                  .kn = kn};
}

void exact_f32_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    if (exact_turns(ctx, a)) {
        exact_transposed_linear(ctx, a);
        return;
    }
    const int64_t o = a->w->dim[0];
    const plan e = linear_plan_for(a);
    if (a->w->dim[1] > 0) exact_product_all(ctx, &e.walk);
    for (int64_t i = 0; a->w->dim[1] == 0 && i < a->n * o; i++)
        a->y[i] = a->b ? 0.0f + a->b[i % o] : 0.0f;
}

#else
typedef int tt_no_exact_linear;
#endif
