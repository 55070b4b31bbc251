/* operators.c: every operator: its values on the GPU, its kernel started.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values of the model are on the GPU already. What an operator is given in host
 * memory (positions, masks, statistics, and all values where an operator is
 * validated by itself) travels with the call: `lend` and `give` make it memory
 * of the GPU, `end` brings back what the kernel wrote. */
#include <string.h>

#include "ops/cuda/cuda.h"

/* ---- values of the host -------------------------------------------------- */

#define OUTPUTS 2

typedef struct call {
    tt_ctx *ctx;
    tt_arena_mark mark;
    struct {
        void *host, *device;
        size_t bytes;
    } out[OUTPUTS];
    int nout;
} call;

static call begin(tt_ctx *ctx)
{
    cuda_open(ctx, ctx->ops);            /* whoever has not done so           */
    return (call){.ctx = ctx, .mark = tt_arena_here(&ctx->scratch)};
}

/* Room on the GPU until the end of the call. */
static void *room(call *c, size_t bytes)
{
    return tt_values(c->ctx, (int64_t)((bytes + 3) / 4));
}

/* What is read: on the GPU; NULL stays NULL. */
static const void *lend(call *c, const void *p, int64_t n, size_t size)
{
    const size_t bytes = (size_t)n * size;
    if (!p || cuda_holds(p)) return p;
    void *there = room(c, bytes);
    if (there) c->ctx->device->put(c->ctx, there, p, bytes);
    return there;
}

static const float *lend_values(call *c, const float *x, int64_t n)
{
    return lend(c, x, n, sizeof *x);
}

/* What is written, and what is read and written. */
static void *give(call *c, void *p, int64_t n, size_t size)
{
    if (cuda_holds(p)) return p;
    void *there = room(c, (size_t)n * size);
    TT_ASSERT(c->nout < OUTPUTS);
    c->out[c->nout].host = p;
    c->out[c->nout].device = there;
    c->out[c->nout++].bytes = (size_t)n * size;
    return there;
}

static float *give_values(call *c, float *y, int64_t n)
{
    return give(c, y, n, sizeof *y);
}

static float *give_and_lend(call *c, float *x, int64_t n)
{
    float *there = give_values(c, x, n);
    if (there && there != x)
        c->ctx->device->put(c->ctx, there, x, (size_t)n * sizeof *x);
    return there;
}

static void end(call *c)
{
    for (int i = 0; i < c->nout && !c->ctx->status; i++)
        c->ctx->device->get(c->ctx, c->out[i].host, c->out[i].device,
                            c->out[i].bytes);
    tt_arena_reset(&c->ctx->scratch, c->mark);
}

/* ---- grids --------------------------------------------------------------- */

/* One thread an item, up to some blocks a multiprocessor, then strides. */
static cuda_grid each(int64_t items)
{
    const int64_t most = 16 * cuda_multiprocessors();
    const int64_t blocks = cuda_blocks(items, ELEMENT_THREADS);
    return (cuda_grid){blocks < most ? blocks : most, 1, ELEMENT_THREADS, 0};
}

/* 16 threads a row. */
static cuda_grid rows(int64_t n)
{
    return (cuda_grid){cuda_blocks(16 * n, ROW_THREADS), 1, ROW_THREADS, 0};
}

static cuda_grid columns(int64_t c)
{
    return (cuda_grid){cuda_blocks(c, COLUMN_THREADS), 1, COLUMN_THREADS, 0};
}

static cuda_grid tiles(int64_t n, int64_t o)
{
    return (cuda_grid){o ? cuda_blocks(o, TILE_COLS) : 0,
                       cuda_blocks(n, TILE_ROWS), TILE_THREADS, TILE_SHARED};
}

static bool aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* ---- weights ------------------------------------------------------------- */

static bool kernel_widens(const tt_tensor *w, cuda_kernel *k)
{
    *k = w->dtype == TT_F32 ? CUDA_widen_f32
         : w->dtype == TT_BF16 ? CUDA_widen_bf16 : CUDA_widen_f16;
    return w->dtype == TT_F32 || w->dtype == TT_BF16 || w->dtype == TT_F16;
}

/* Types that no kernel knows are widened by the host: slow, the same bits. */
static const float *widen_on_host(call *c, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    tt_tensor here = *w;
    if (cuda_holds(w->data)) {
        const int64_t bytes = tt_tensor_bytes(w);
        void *stored = tt_scratch(c->ctx, (bytes + 3) / 4);
        if (stored)
            c->ctx->device->get(c->ctx, stored, w->data, (size_t)bytes);
        here.data = stored;
    }
    tt_host *wide = tt_scratch(c->ctx, n);
    if (!wide) return NULL;
    tt_widen_at_f32(wide, &here, 0, n);
    return lend_values(c, wide, n);
}

/* The weights as floats on the GPU. */
static const float *weights(call *c, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    cuda_kernel k;
    if (!kernel_widens(w, &k)) return widen_on_host(c, w);
    const void *stored = lend(c, w->data, tt_tensor_bytes(w), 1);
    const bool whole = (uintptr_t)stored % tt_dtype_size(w->dtype) == 0;
    if (w->dtype == TT_F32 && w->scale == 0 && whole) return stored;
    if (!whole) return widen_on_host(c, w);
    cuda_widen_args a = {room(c, (size_t)n * 4), stored, n, w->scale, 0};
    cuda_launch(c->ctx, k, each(n), &a);
    return a.to;
}

/* ---- products ------------------------------------------------------------ */

void cuda_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1];
    call c = begin(ctx);
    cuda_linear_args d = {
        .y = give_values(&c, a->y, a->n * o),
        .x = lend_values(&c, a->x, a->n * k),
        .w = weights(&c, a->w),
        .b = lend_values(&c, a->b, o),
        .n = a->n, .o = o, .k = k,
    };
    const bool vec = k % 4 == 0 && o % 4 == 0 && aligned(d.y) && aligned(d.x) &&
                     aligned(d.w) && aligned(d.b);
    cuda_launch(ctx, vec ? CUDA_linear_vec : CUDA_linear, tiles(a->n, o), &d);
    end(&c);
}

void cuda_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    const int64_t taps = (int64_t)a->kt * a->kh * a->kw;
    const int64_t pixels = a->Ho * a->Wo;
    call c = begin(ctx);
    TT_ASSERT(a->kt <= CUDA_FRAMES);
    cuda_conv_args d = {
        .y = give_values(&c, a->y, pixels * a->Cout),
        .w = weights(&c, a->w), .b = lend_values(&c, a->b, a->Cout),
        .Hi = a->Hi, .Wi = a->Wi, .Cin = a->Cin,
        .Ho = a->Ho, .Wo = a->Wo, .Cout = a->Cout,
        .kt = a->kt, .kh = a->kh, .kw = a->kw, .stride = a->stride,
        .pad_top = a->pad_top, .pad_left = a->pad_left, .up = a->up,
    };
    bool vec = a->Cin % 4 == 0 && a->Cout % 4 == 0 && taps > 0 &&
               aligned(d.y) && aligned(d.w) && aligned(d.b);
    for (int i = 0; i < a->kt; i++) {
        d.frame[i] = lend_values(&c, a->frame[i], a->Hi * a->Wi * a->Cin);
        vec = vec && aligned(d.frame[i]);
    }
    cuda_launch(ctx, vec ? CUDA_conv_vec : CUDA_conv, tiles(pixels, a->Cout),
                &d);
    end(&c);
}

/* The kernel for heads of 128 that fits into this GPU's shared memory. */
static bool attention_128(const cuda_attention_args *d, cuda_kernel *k,
                          cuda_grid *g)
{
    static const struct {
        int64_t queries;
        cuda_kernel kernel;
    } kinds[] = {
        {64, CUDA_attention_64}, {32, CUDA_attention_32},
        {16, CUDA_attention_16},
    };
    if (d->D != ATTENTION_D || d->rel_bias || d->key_mask || d->q_stride % 4 ||
        d->kv_stride % 4 || !aligned(d->o) || !aligned(d->q) ||
        !aligned(d->k) || !aligned(d->v))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int64_t queries = kinds[i].queries;
        *g = (cuda_grid){cuda_blocks(d->T, queries), d->H, ATTENTION_THREADS,
                         ATTENTION_SHARED(queries)};
        *k = kinds[i].kernel;
        if (g->shared <= cuda_shared_most()) return true;
    }
    return false;
}

void cuda_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const int64_t width = a->H * a->D;
    const int64_t keys = (a->N - 1) * a->kv_stride + width;
    call c = begin(ctx);
    cuda_attention_args d = {
        .o = give_values(&c, a->o, a->T * width),
        .q = lend_values(&c, a->q, (a->T - 1) * a->q_stride + width),
        .k = lend_values(&c, a->k, keys), .v = lend_values(&c, a->v, keys),
        .T = a->T, .N = a->N, .H = a->H, .D = a->D,
        .q_stride = a->q_stride, .kv_stride = a->kv_stride,
        .rel_bias = lend_values(&c, a->rel_bias, a->H * (2 * a->N - 1)),
        .key_mask = lend(&c, a->key_mask, a->N, 1), .scale = a->scale,
    };
    cuda_kernel k = CUDA_attention;
    cuda_grid g;
    if (!attention_128(&d, &k, &g)) {
        k = CUDA_attention;
        g = (cuda_grid){cuda_blocks(a->T * a->H, ATTENTION_WARPS), 1,
                        ATTENTION_WARPS * 32,
                        ATTENTION_WARPS * (TT_KEY_BLOCK + a->D) * 4};
    }
    cuda_launch(ctx, k, g, &d);
    end(&c);
}

/* ---- rows and columns ---------------------------------------------------- */

void cuda_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    call c = begin(ctx);
    tt_layer_norm_args d = *a;
    d.y = give_values(&c, a->y, a->n * a->c);
    d.x = lend_values(&c, a->x, a->n * a->c);
    d.w = lend_values(&c, a->w, a->c);
    d.b = lend_values(&c, a->b, a->c);
    cuda_launch(ctx, CUDA_layer_norm, rows(a->n), &d);
    end(&c);
}

void cuda_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    call c = begin(ctx);
    tt_rms_norm_args d = *a;
    d.y = give_values(&c, a->y, a->n * a->c);
    d.x = lend_values(&c, a->x, a->n * a->c);
    d.w = lend_values(&c, a->w, a->c);
    cuda_launch(ctx, CUDA_rms_norm, rows(a->n), &d);
    end(&c);
}

void cuda_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    call c = begin(ctx);
    tt_channel_norm_args d = *a;
    d.y = give_values(&c, a->y, a->n * a->c);
    d.x = lend_values(&c, a->x, a->n * a->c);
    d.gamma = lend_values(&c, a->gamma, a->c);
    cuda_launch(ctx, CUDA_channel_norm, rows(a->n), &d);
    end(&c);
}

void cuda_col_mean(tt_ctx *ctx, const tt_col_mean_args *a)
{
    call c = begin(ctx);
    tt_col_mean_args d = *a;
    d.mean = give(&c, a->mean, a->c, sizeof *a->mean);
    d.x = lend_values(&c, a->x, a->n * a->c);
    cuda_launch(ctx, CUDA_col_mean, columns(a->c), &d);
    end(&c);
}

void cuda_col_moment(tt_ctx *ctx, const tt_col_moment_args *a)
{
    call c = begin(ctx);
    tt_col_moment_args d = *a;
    d.m2 = give(&c, a->m2, a->c, sizeof *a->m2);
    d.x = lend_values(&c, a->x, a->n * a->c);
    d.mean = lend(&c, a->mean, a->c, sizeof *a->mean);
    cuda_launch(ctx, CUDA_col_moment, columns(a->c), &d);
    end(&c);
}

void cuda_col_blend(tt_ctx *ctx, const tt_col_blend_args *a)
{
    call c = begin(ctx);
    tt_col_blend_args d = *a;
    d.x = give_and_lend(&c, a->x, a->n * a->c);
    d.mean = lend(&c, a->mean, a->c, sizeof *a->mean);
    d.gain = lend(&c, a->gain, a->c, sizeof *a->gain);
    d.target = lend(&c, a->target, a->c, sizeof *a->target);
    cuda_launch(ctx, CUDA_col_blend, each(a->n * a->c), &d);
    end(&c);
}

/* ---- elements ------------------------------------------------------------ */

/* Values that a group's pointer of n rows reaches. */
static int64_t grouped(int64_t n, int64_t c, int64_t stride, int64_t group)
{
    return n ? (n - 1) / group * stride + c : 0;
}

void cuda_modulate(tt_ctx *ctx, const tt_modulate_args *a)
{
    const int64_t reach = grouped(a->n, a->c, a->stride, a->rows);
    call c = begin(ctx);
    tt_modulate_args d = *a;
    d.x = give_and_lend(&c, a->x, a->n * a->c);
    d.scale = lend_values(&c, a->scale, reach);
    d.shift = lend_values(&c, a->shift, reach);
    cuda_launch(ctx, CUDA_modulate, each(a->n * a->c), &d);
    end(&c);
}

void cuda_gate_add(tt_ctx *ctx, const tt_gate_add_args *a)
{
    const int64_t reach = grouped(a->n, a->c, a->stride, a->rows);
    call c = begin(ctx);
    tt_gate_add_args d = *a;
    d.x = give_and_lend(&c, a->x, a->n * a->c);
    d.y = lend_values(&c, a->y, a->n * a->c);
    d.gate = lend_values(&c, a->gate, reach);
    cuda_launch(ctx, CUDA_gate_add, each(a->n * a->c), &d);
    end(&c);
}

void cuda_add(tt_ctx *ctx, const tt_add_args *a)
{
    call c = begin(ctx);
    tt_add_args d = {give_and_lend(&c, a->x, a->n),
                     lend_values(&c, a->y, a->n), a->n};
    cuda_launch(ctx, CUDA_add, each(a->n), &d);
    end(&c);
}

void cuda_mul(tt_ctx *ctx, const tt_mul_args *a)
{
    call c = begin(ctx);
    tt_mul_args d = {give_and_lend(&c, a->x, a->n),
                     lend_values(&c, a->y, a->n), a->n};
    cuda_launch(ctx, CUDA_mul, each(a->n), &d);
    end(&c);
}

void cuda_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *a)
{
    call c = begin(ctx);
    tt_gelu_tanh_args d = {give_and_lend(&c, a->x, a->n), a->n};
    cuda_launch(ctx, CUDA_gelu_tanh, each(a->n), &d);
    end(&c);
}

void cuda_silu(tt_ctx *ctx, const tt_silu_args *a)
{
    call c = begin(ctx);
    tt_silu_args d = {give_and_lend(&c, a->x, a->n), a->n};
    cuda_launch(ctx, CUDA_silu, each(a->n), &d);
    end(&c);
}

void cuda_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    const tt_rope_table *table = a->table;
    const int64_t n = a->T * a->H * a->D, angles = table->npos * (a->D / 2);
    call c = begin(ctx);
    for (int64_t i = 0; i < 3 * a->T; i++)
        TT_ASSERT(a->pos[i] >= 0 && a->pos[i] < table->npos);
    cuda_rope_args d = {
        .y = give_values(&c, a->y, n), .x = lend_values(&c, a->x, n),
        .T = a->T, .H = a->H, .D = a->D,
        .cos = cuda_keep(ctx, table->cos, (size_t)angles * sizeof *table->cos),
        .sin = cuda_keep(ctx, table->sin, (size_t)angles * sizeof *table->sin),
        .pos = lend(&c, a->pos, 3 * a->T, sizeof *a->pos),
        .row0 = table->pairs[0], .col0 = table->pairs[0] + table->pairs[1],
    };
    cuda_launch(ctx, CUDA_rope, each(n / 2), &d);
    end(&c);
}
