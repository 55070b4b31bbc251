/* operators.c: every operator but the products (products.c), and the verbs of
 * the device that are kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/cuda/call.h"

static work operators_rows(int64_t n)    /* 16 threads a row        */
{
    return (work){16 * n, ROW_THREADS, false};
}

static work columns(int64_t c)
{
    return (work){c, COLUMN_THREADS, false};
}

/* A whole operator: its operands placed, its kernel started. */
static void operators_run(tt_ctx *ctx, cuda_kernel k, work w, void *args,
                          const operand *operands)
{
    call c = begin(ctx);
    place_all(&c, operands);
    launch(&c, k, w, args);
    end(&c);
}

#define RUN(kernel, work, args, ...)                                           \
    operators_run(ctx, CUDA_##kernel, work, &(args),                           \
                  (const operand[]){__VA_ARGS__, {0}})

/* ---- rows and columns ---------------------------------------------------- */

void cuda_norm(tt_ctx *ctx, const tt_normed *x, uint16_t *blocks)
{
    const int64_t n = x->norm.n, c = x->norm.c;
    const tt_modulate_args *m = &x->mod;
    const int64_t reach = m->scale ? grouped(n, c, m->stride, m->rows) : 0;
    cuda_layer_norm_args d = {x->norm, x->mod, blocks};
    d.mod.x = NULL;                      /* y, on which side it may be        */
    if (blocks) d.norm.y = NULL;
    RUN(layer_norm, operators_rows(n), d, WRITE(d.norm.y, n * c),
        READ(d.norm.x, n * c), READ(d.norm.w, c), READ(d.norm.b, c),
        READ(d.mod.scale, reach), READ(d.mod.shift, reach));
}

void cuda_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    cuda_norm(ctx, &(tt_normed){*a, {0}}, NULL);
}

void cuda_norm_modulate(tt_ctx *ctx, const tt_layer_norm_args *a,
                        const tt_modulate_args *to)
{
    cuda_norm(ctx, &(tt_normed){*a, *to}, NULL);
}

void cuda_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    tt_rms_norm_args d = *a;
    RUN(rms_norm, operators_rows(a->n), d, WRITE(d.y, a->n * a->c),
        READ(d.x, a->n * a->c), READ(d.w, a->c));
}

void cuda_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    tt_channel_norm_args d = *a;
    RUN(channel_norm, operators_rows(a->n), d, WRITE(d.y, a->n * a->c),
        READ(d.x, a->n * a->c), READ(d.gamma, a->c));
}

void cuda_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    tt_col_mean_args d = *a;
    RUN(col_mean, columns(a->c), d, WRITE(d.mean, a->c),
        READ(d.x, a->n * a->c));
}

void cuda_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    tt_col_moment_args d = *a;
    RUN(col_moment, columns(a->c), d, WRITE(d.m2, a->c),
        READ(d.x, a->n * a->c), READ(d.mean, a->c));
}

void cuda_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    tt_col_blend_args d = *a;
    RUN(col_blend, each(a->n * a->c), d, CHANGE(d.x, a->n * a->c),
        READ(d.mean, a->c), READ(d.gain, a->c), READ(d.target, a->c));
}

/* ---- elements ------------------------------------------------------------ */

void cuda_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    const int64_t reach = grouped(a->n, a->c, a->stride, a->rows);
    tt_modulate_args d = *a;
    RUN(modulate, each(a->n * a->c), d, CHANGE(d.x, a->n * a->c),
        READ(d.scale, reach), READ(d.shift, reach));
}

void cuda_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    const int64_t reach = grouped(a->n, a->c, a->stride, a->rows);
    tt_gate_add_args d = *a;
    RUN(gate_add, each(a->n * a->c), d, CHANGE(d.x, a->n * a->c),
        READ(d.y, a->n * a->c), READ(d.gate, reach));
}

void cuda_add(tt_ctx *ctx, const tt_add_args *a)
{
    tt_add_args d = *a;
    RUN(add, each(a->n), d, CHANGE(d.x, a->n), READ(d.y, a->n));
}

void cuda_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    tt_mul_args d = *a;
    RUN(mul, each(a->n), d, CHANGE(d.x, a->n), READ(d.y, a->n));
}

void cuda_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    tt_gelu_tanh_args d = *a;
    RUN(gelu_tanh, each(a->n), d, CHANGE(d.x, a->n));
}

void cuda_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    tt_silu_args d = *a;
    RUN(silu, each(a->n), d, CHANGE(d.x, a->n));
}

void cuda_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    const tt_rope_table *table = a->table;
    const int64_t n = a->T * a->H * a->D, angles = table->npos * (a->D / 2);
    if (cuda_open(ctx, ctx->ops)) return;
    const bool there = cuda_holds(a->pos);
    for (int64_t i = 0; !there && i < 3 * a->T; i++)
        TT_ASSERT(a->pos[i] >= 0 && a->pos[i] < table->npos);
    cuda_rope_args d = {
        .y = a->y, .x = a->x, .T = a->T, .H = a->H, .D = a->D,
        .cos = cuda_keep(ctx, table->cos, (size_t)angles * sizeof *table->cos),
        .sin = cuda_keep(ctx, table->sin, (size_t)angles * sizeof *table->sin),
        .pos = there ? a->pos
                     : cuda_keep(ctx, a->pos,
                                 (size_t)(3 * a->T) * sizeof *a->pos),
        .row0 = table->pairs[0], .col0 = table->pairs[0] + table->pairs[1],
    };
    RUN(rope, each(a->T * (a->D / 2)), d, WRITE(d.y, n), READ(d.x, n));
}

/* ---- verbs of the device ------------------------------------------------- */

void cuda_narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    cuda_narrow_args d = {(void *)to, from, n};
    RUN(narrow_bf16, each(n), d, WRITE(d.to, n), READ(d.from, n));
}

/* Some frames at a time, whose positions go as arguments. */
void cuda_locate(tt_ctx *ctx, const tt_locate_args *a)
{
    for (int64_t at = 0, n; at < a->n; at += n) {
        const int64_t f = (a->first + at) / a->L;
        n = (f + FEW_TIMES) * a->L - a->first - at;
        if (n > a->n - at) n = a->n - at;
        cuda_locate_args d = {.to = a->to + 3 * at, .t0 = a->t0 + f,
                              .first = a->first + at - f * a->L, .n = n,
                              .L = a->L, .w = a->w};
        d.times = a->time ? (d.first + n - 1) / a->L + 1 : 0;
        for (int64_t i = 0; i < d.times; i++) d.time[i] = a->time[f + i];
        RUN(locate, each(n), d, WRITE(d.to, 3 * n));
    }
}

void cuda_pick(tt_ctx *ctx, const tt_pick_args *a)
{
    tt_pick_args d = *a;
    RUN(pick, each(a->n * a->c), d, READ(d.list, a->n));
}
