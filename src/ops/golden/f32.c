/* f32.c: class f32, which is what src/golden computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The definitions are the functions of src/golden/operators.c, in a double
 * build with double for float. Here each becomes an operator: its rows, lines
 * or heads are spread over threads. */
#include <math.h>

#include "core/parallel.h"
#include "ops/gather.h"
#include "ops/golden/golden.h"

#ifdef TT_REAL_DOUBLE
#define float double
#endif
#include "core/golden_names.h"
#ifdef TT_REAL_DOUBLE
#undef golden_expf
#define golden_expf golden_exp
#endif
#include "golden/operators.c"

/* ---- products ------------------------------------------------------------ */

static tt_real f32_same(tt_real x)
{
    return x;
}

static tt_real golden_f32_chain(tt_real c, const tt_real *a, int64_t step,
                                const tt_real *b, int64_t n)
{
    for (int64_t k = 0; k < n; k += BLOCK) {
        tt_real sum;
        const matrix w = {a + k * step, 0, (size_t)step, 1};
        dots(&sum, b + k, at_most((int)(n - k), BLOCK), w, BLOCK);
        c += sum;
    }
    return c;
}

const golden_class golden_f32 = {
    .block = BLOCK, .factor = f32_same, .chain = golden_f32_chain,
};

/* The layer of widened weights w; golden.h has no const there. */
static dense layer(const tt_real *w, const tt_real *b, int64_t out, int64_t in)
{
    return (dense){(tt_real *)(uintptr_t)w, (tt_real *)(uintptr_t)b, (int)out,
                   (int)in};
}

void golden_f32_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    const int64_t o = a->w->dim[0], i = a->w->dim[1];
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = golden_widened(ctx, a->w);
    if (w) {
        const dense m = layer(w, a->b, o, i);
        TT_PARALLEL_FOR(ctx)
        for (int64_t r = 0; r < a->n; r++) linear(a->y + r * o, a->x + r * i, 1,
                                                  &m);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

void golden_f32_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const attention_args g = {
        .q = a->q, .k = a->k, .v = a->v, .queries = (int)a->T,
        .keys = (int)a->N, .heads = (int)a->H, .D = (int)a->D,
        .q_stride = (size_t)a->q_stride, .kv_stride = (size_t)a->kv_stride,
        .scale = a->scale, .bias = a->rel_bias, .mask = a->key_mask};
    TT_PARALLEL_FOR(ctx)
    for (int64_t t = 0; t < a->H * a->T; t++) {
        const int64_t h = t / a->T, i = t % a->T;
        attend(a->o + (i * a->H + h) * a->D, &g, (int)h, (int)i);
    }
}

/* A linear layer over the windows of its pixels. */
void golden_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = golden_widened(ctx, p->w);
    tt_real *window = tt_scratch(ctx, k * p->Ho);
    if (window) {
        const dense m = layer(w, p->b, p->Cout, k);
        TT_PARALLEL_FOR(ctx)
        for (int64_t i = 0; i < p->Ho; i++)
            for (int64_t j = 0; j < p->Wo; j++) {
                conv_gather(window + i * k, p, i, j);
                linear(p->y + (i * p->Wo + j) * p->Cout, window + i * k, 1, &m);
            }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- rows ---------------------------------------------------------------- */

void golden_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++)
        layer_norm(a->y + r * a->c, a->x + r * a->c, 1, (int)a->c, a->eps, a->w,
                   a->b);
}

void golden_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++)
        rms_norm(a->y + r * a->c, a->x + r * a->c, 1, (int)a->c, a->eps, a->w);
}

void golden_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++)
        channel_norm(a->y + r * a->c, a->x + r * a->c, 1, (int)a->c, a->gamma);
}

void golden_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        const int64_t at = r / a->rows * a->stride;
        modulate(a->x + r * a->c, 1, (int)a->c, (by_frame){a->scale + at, 1, 0},
                 (by_frame){a->shift + at, 1, 0});
    }
}

void golden_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++)
        gate_add(a->x + r * a->c, a->y + r * a->c, 1, (int)a->c,
                 (by_frame){a->gate + r / a->rows * a->stride, 1, 0});
}

void golden_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    const tt_rope_table *table = a->table;
    const int64_t pairs = a->D / 2, row0 = table->pairs[0];
    const int64_t col0 = row0 + table->pairs[1];
    TT_PARALLEL_FOR(ctx)
    for (int64_t t = 0; t < a->T; t++)
        for (int64_t j = 0; j < pairs; j++) {
            const int64_t p = a->pos[3 * t + (j >= row0) + (j >= col0)];
            TT_ASSERT(p >= 0 && p < table->npos);
            for (int64_t h = 0; h < a->H; h++) {
                const int64_t at = (t * a->H + h) * a->D + 2 * j;
                rotate(a->y + at, a->x + at, table->cos[p * pairs + j],
                       table->sin[p * pairs + j]);
            }
        }
}

/* ---- elements ------------------------------------------------------------ */

enum { SPAN = 4096 };

/* Loops `at` over spans of `count` elements, and has in n how many they are. */
#define EACH_SPAN(ctx, count, ...)                                             \
    do {                                                                       \
        TT_PARALLEL_FOR(ctx)                                                   \
        for (int64_t span = 0; span < ((count) + SPAN - 1) / SPAN; span++) {   \
            const int64_t at = span * SPAN, left = (count) - at;               \
            const size_t n = (size_t)(left < SPAN ? left : SPAN);              \
            __VA_ARGS__;                                                       \
        }                                                                      \
    } while (0)

void golden_add(tt_ctx *ctx, const tt_add_args *a)
{
    EACH_SPAN(ctx, a->n, add(a->x + at, a->y + at, n));
}

void golden_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    EACH_SPAN(ctx, a->n, multiply(a->x + at, a->y + at, n));
}

void golden_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    EACH_SPAN(ctx, a->n, gelu(a->x + at, n));
}

void golden_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    EACH_SPAN(ctx, a->n, silu(a->x + at, n));
}

/* ---- columns ------------------------------------------------------------- */

void golden_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    (void)ctx;
    column_mean(a->mean, a->x, (int)a->n, (size_t)a->c);
}

void golden_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    (void)ctx;
    column_moment(a->m2, a->mean, a->x, (int)a->n, (size_t)a->c);
}

void golden_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    TT_PARALLEL_FOR(ctx)
    for (int64_t r = 0; r < a->n; r++) {
        tt_real *x = a->x + r * a->c;
        if (!a->gain) blend(x, a->target, (size_t)a->c, (size_t)a->c, a->tau);
        for (int64_t i = 0; a->gain && i < a->c; i++)
            x[i] = (tt_real)tame_value((double)x[i], a->mean[i], a->gain[i],
                                       a->target[i], a->tau);
    }
}
