/* fused.c: wrappers of several operators in one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend that says nothing of them is called for each, through the wrappers
 * of the operators: the same calls, in the same order, as if a model had
 * made them itself. */
#include "ops/backend.h"

/* Run a pair that the backend has in one, timed when asked. */
#define CALL(pair, flops, ...)                                                 \
    do {                                                                       \
        const double start_ = ctx->profiling ? tt_now() : 0.0;                 \
        ctx->ops->fused->pair(ctx, __VA_ARGS__);                               \
        if (ctx->profiling)                                                    \
            tt_profile_add(ctx, #pair, tt_now() - start_, (flops));            \
    } while (0)

static double products(const tt_linear_args *a)
{
    return 2.0 * (double)a->n * (double)a->w->dim[0] * (double)a->w->dim[1];
}

void tt_linear_gelu(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                    const tt_tensor *w, const tt_real *b)
{
    if (ctx->status) return;
    const tt_linear_args a = {y, x, n, w, b};
    TT_ASSERT(w->rank == 2 && tt_tensor_packed(w));
    if (!ctx->ops->fused) {
        tt_linear(ctx, y, x, n, w, b);
        tt_gelu_tanh(ctx, y, n * w->dim[0]);
    } else if (n) {
        CALL(linear_gelu, products(&a), &a);
    }
}

void tt_linear_add(tt_ctx *ctx, const tt_linear_args *a,
                   const tt_gate_add_args *to)
{
    if (ctx->status) return;
    TT_ASSERT(a->w->rank == 2 && tt_tensor_packed(a->w));
    TT_ASSERT(to->y == a->y && to->n == a->n && to->c == a->w->dim[0]);
    if (ctx->ops->fused) {
        if (a->n) CALL(linear_add, products(a), a, to);
        return;
    }
    tt_linear(ctx, a->y, a->x, a->n, a->w, a->b);
    if (to->gate)
        tt_gate_add(ctx, to->x, to->y, to->n, to->c, to->gate, to->stride,
                    to->rows);
    else
        tt_add(ctx, to->x, to->y, to->n * to->c);
}

void tt_norm_modulate(tt_ctx *ctx, const tt_layer_norm_args *a,
                      const tt_modulate_args *to)
{
    if (ctx->status) return;
    TT_ASSERT(to->x == a->y && to->n == a->n && to->c == a->c);
    if (ctx->ops->fused) {
        CALL(norm_modulate, 0, a, to);
        return;
    }
    tt_layer_norm(ctx, a->y, a->x, a->n, a->c, a->w, a->b, a->eps);
    tt_modulate(ctx, to->x, to->n, to->c, to->scale, to->shift, to->stride,
                to->rows);
}

/* Are they layers of one x and number of rows? Their operations. */
static double check_linears(const tt_linear_args *a, int n)
{
    double flops = 0;
    for (int i = 0; i < n; i++) {
        TT_ASSERT(a[i].x == a[0].x && a[i].n == a[0].n
                  && a[i].w->dim[1] == a[0].w->dim[1]);
        TT_ASSERT(a[i].w->rank == 2 && tt_tensor_packed(a[i].w));
        flops += products(&a[i]);
    }
    return flops;
}

void tt_linears(tt_ctx *ctx, const tt_linear_args *a, int n)
{
    if (ctx->status) return;
    const double flops = check_linears(a, n);
    if (n > 1 && ctx->ops->fused && ctx->ops->fused->linears) {
        if (a[0].n) CALL(linears, flops, a, n);
        return;
    }
    for (int i = 0; i < n; i++)
        tt_linear(ctx, a[i].y, a[i].x, a[i].n, a[i].w, a[i].b);
}

/* Are they two layers, the second one of the first one's outputs? */
static double check_mlp(const tt_linear_args *up, const tt_linear_args *down,
                        const tt_gate_add_args *to)
{
    TT_ASSERT(down->x == up->y && down->n == up->n);
    TT_ASSERT(up->w->rank == 2 && tt_tensor_packed(up->w));
    TT_ASSERT(down->w->rank == 2 && tt_tensor_packed(down->w));
    TT_ASSERT(down->w->dim[1] == up->w->dim[0] && to->c == down->w->dim[0]);
    TT_ASSERT(to->y == down->y && to->n == down->n);
    return products(up) + products(down);
}

void tt_mlp(tt_ctx *ctx, const tt_linear_args *up, const tt_linear_args *down,
            const tt_gate_add_args *to)
{
    if (ctx->status) return;
    const double flops = check_mlp(up, down, to);
    if (ctx->ops->fused && ctx->ops->fused->mlp) {
        if (up->n) CALL(mlp, flops, up, down, to);
        return;
    }
    tt_linear_gelu(ctx, up->y, up->x, up->n, up->w, up->b);
    tt_linear_add(ctx, down, to);
}

/* ---- products of what came before ---------------------------------------- */

void tt_norm(tt_ctx *ctx, const tt_normed *x)
{
    const tt_layer_norm_args *a = &x->norm;
    if (x->mod.scale) tt_norm_modulate(ctx, a, &x->mod);
    else tt_layer_norm(ctx, a->y, a->x, a->n, a->c, a->w, a->b, a->eps);
}

/* Does the backend have this norm and the layers of a in one? */
static bool with_norm(const tt_ctx *ctx, const tt_normed *x,
                      const tt_linear_args *a, bool has)
{
    if (!x || ctx->status) return false;
    TT_ASSERT(a->x == x->norm.y && a->n == x->norm.n);
    TT_ASSERT(a->w->dim[1] == x->norm.c);
    TT_ASSERT(!x->mod.scale || (x->mod.x == x->norm.y && x->mod.n == a->n
                                && x->mod.c == x->norm.c));
    return has && a->n;
}

void tt_norm_linears(tt_ctx *ctx, const tt_normed *x, const tt_linear_args *a,
                     int n)
{
    const tt_fused *f = ctx->ops->fused;
    if (with_norm(ctx, x, a, f && f->norm_linears)) {
        CALL(norm_linears, check_linears(a, n), x, a, n);
        return;
    }
    if (x) tt_norm(ctx, x);
    tt_linears(ctx, a, n);
}

void tt_norm_mlp(tt_ctx *ctx, const tt_normed *x, const tt_linear_args *up,
                 const tt_linear_args *down, const tt_gate_add_args *to)
{
    const tt_fused *f = ctx->ops->fused;
    if (with_norm(ctx, x, up, f && f->norm_mlp)) {
        CALL(norm_mlp, check_mlp(up, down, to), x, up, down, to);
        return;
    }
    tt_norm(ctx, x);
    tt_mlp(ctx, up, down, to);
}

void tt_attention_add(tt_ctx *ctx, const tt_attention_args *x,
                      const tt_linear_args *a, const tt_gate_add_args *to)
{
    const tt_fused *f = ctx->ops->fused;
    if (ctx->status) return;
    if (x->T && f && f->attention_add) {
        TT_ASSERT(a->x == x->o && a->n == x->T);
        TT_ASSERT(a->w->rank == 2 && a->w->dim[1] == x->H * x->D);
        TT_ASSERT(tt_tensor_packed(a->w) && to->c == a->w->dim[0]);
        CALL(attention_add, products(a) + 4.0 * (double)x->T * (double)x->N
                            * (double)(x->H * x->D), x, a, to);
        return;
    }
    tt_attention(ctx, x);
    tt_linear_add(ctx, a, to);
}
