/* operators.c: every operator: its values on the GPU, its kernel started.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values of the model are on the GPU already. What an operator is given in host
 * memory (positions, masks, statistics, and all values where an operator is
 * validated by itself) travels with the call: `place` makes it memory of the
 * GPU, `end` brings back what the kernel wrote. */
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
static void *room(call *c, int64_t bytes)
{
    return tt_values(c->ctx, (bytes + 3) / 4);
}

/* An array of a kernel: the pointer to it among the arguments, how much of it
 * is used, and how. */
typedef struct operand {
    void *member;
    size_t bytes;
    bool in, out;
} operand;

#define OPERAND(p, n, in, out) {&(p), (size_t)(n) * sizeof *(p), in, out}
#define READ(p, n) OPERAND(p, n, true, false)
#define WRITE(p, n) OPERAND(p, n, false, true)
#define CHANGE(p, n) OPERAND(p, n, true, true)

/* Its memory of the GPU stands in the arguments from here on; NULL stays NULL.
 */
static void place(call *c, const operand *o)
{
    void *host, *there;
    memcpy(&host, o->member, sizeof host);
    if (!host || cuda_holds(host)) return;
    there = room(c, (int64_t)o->bytes);
    memcpy(o->member, &there, sizeof there);
    if (there && o->in) c->ctx->device->put(c->ctx, there, host, o->bytes);
    if (!o->out) return;
    TT_ASSERT(c->nout < OUTPUTS);
    c->out[c->nout].host = host;
    c->out[c->nout].device = there;
    c->out[c->nout++].bytes = o->bytes;
}

/* All operands of a list, which ends with one that has no member. */
static void place_all(call *c, const operand *o)
{
    for (; o->member; o++) place(c, o);
}

#define PLACE(c, ...) place_all(c, (const operand[]){__VA_ARGS__, {0}})

/* Operators are timed one by one when there is a profile. */
static void end(call *c)
{
    for (int i = 0; i < c->nout && !c->ctx->status; i++)
        c->ctx->device->get(c->ctx, c->out[i].host, c->out[i].device,
                            c->out[i].bytes);
    if (c->ctx->profiling) cuda_wait(c->ctx);
    tt_arena_reset(&c->ctx->scratch, c->mark);
}

/* ---- grids --------------------------------------------------------------- */

typedef struct work {
    int64_t items;
    int threads;             /* of a block, one an item                       */
    bool strides;            /* up to some blocks a multiprocessor            */
} work;

static work each(int64_t items)
{
    return (work){items, ELEMENT_THREADS, true};
}

static work rows(int64_t n)              /* 16 threads a row                  */
{
    return (work){16 * n, ROW_THREADS, false};
}

static work columns(int64_t c)
{
    return (work){c, COLUMN_THREADS, false};
}

static void launch(call *c, cuda_kernel k, work w, const void *args)
{
    const int64_t most = 16 * cuda_multiprocessors();
    const int64_t blocks = cuda_blocks(w.items, w.threads);
    const cuda_grid g = {w.strides && blocks > most ? most : blocks, 1,
                         w.threads, 0};
    cuda_launch(c->ctx, k, g, args);
}

/* A whole operator: its operands placed, its kernel started. */
static void run(tt_ctx *ctx, cuda_kernel k, work w, void *args,
                const operand *operands)
{
    call c = begin(ctx);
    place_all(&c, operands);
    launch(&c, k, w, args);
    end(&c);
}

#define RUN(kernel, work, args, ...)                                           \
    run(ctx, CUDA_##kernel, work, &(args),                                     \
        (const operand[]){__VA_ARGS__, {0}})

static cuda_grid tiles(int64_t n, int64_t o, int64_t shared)
{
    return (cuda_grid){o ? cuda_blocks(o, TILE_COLS) : 0,
                       cuda_blocks(n, TILE_ROWS), TILE_THREADS, shared};
}

static bool aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* ---- weights ------------------------------------------------------------- */

/* The kernel that widens a type; 0, which is another one, where none does. */
static cuda_kernel widens(tt_dtype type)
{
    static const cuda_kernel kernel[TT_DTYPE_COUNT] = {
        [TT_F64] = CUDA_widen_f64, [TT_F32] = CUDA_widen_f32,
        [TT_BF16] = CUDA_widen_bf16, [TT_F16] = CUDA_widen_f16,
        [TT_F8_E5M2] = CUDA_widen_f8_e5m2, [TT_F8_E4M3] = CUDA_widen_f8_e4m3,
        [TT_Q8_0] = CUDA_widen_q8_0, [TT_Q4_0] = CUDA_widen_q4_0,
        [TT_Q4_1] = CUDA_widen_q4_1, [TT_Q5_0] = CUDA_widen_q5_0,
        [TT_Q5_1] = CUDA_widen_q5_1, [TT_Q2_K] = CUDA_widen_q2_k,
        [TT_Q3_K] = CUDA_widen_q3_k, [TT_Q4_K] = CUDA_widen_q4_k,
        [TT_Q5_K] = CUDA_widen_q5_k, [TT_Q6_K] = CUDA_widen_q6_k,
    };
    return kernel[type];
}

/* What no kernel reads (integers, odd addresses) is widened by the host: slow,
 * the same bits. */
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
    PLACE(c, READ(wide, n));
    return wide;
}

/* The weights as floats on the GPU. */
static const float *weights(call *c, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    const cuda_kernel k = widens(w->dtype);
    const char *stored = w->data;
    if (!k) return widen_on_host(c, w);
    PLACE(c, READ(stored, tt_tensor_bytes(w)));
    if (tt_dtype_block(w->dtype) == 1 &&
        (uintptr_t)stored % tt_dtype_size(w->dtype))
        return widen_on_host(c, w);
    if (w->dtype == TT_F32 && w->scale == 0)
        return (const float *)(const void *)stored;
    cuda_widen_args a = {room(c, 4 * n), stored, n, w->scale, 0};
    launch(c, k, each(n), &a);
    return a.to;
}

/* ---- what follows linear ------------------------------------------------- */

/* Values that a group's pointer of n rows reaches. */
static int64_t grouped(int64_t n, int64_t c, int64_t stride, int64_t group)
{
    return n ? (n - 1) / group * stride + c : 0;
}

static const cuda_epilogue plain = {.kind = CUDA_PLAIN};
static const cuda_epilogue gelu = {.kind = CUDA_GELU};

static cuda_epilogue added(const tt_gate_add_args *to)
{
    return (cuda_epilogue){to->gate ? CUDA_GATE : CUDA_ADD, to->x, to->gate,
                           to->stride, to->rows};
}

/* Its arrays, of n rows of o. */
static void place_epilogue(call *c, cuda_epilogue *e, int64_t n, int64_t o)
{
    if (e->gate)
        PLACE(c, READ(e->gate, grouped(n, o, e->stride, e->rows)));
    PLACE(c, CHANGE(e->x, n * o));
}

/* ---- products in class f32 ----------------------------------------------- */

static void linear(tt_ctx *ctx, const tt_linear_args *a, cuda_epilogue then)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1];
    call c = begin(ctx);
    cuda_linear_args d = {a->y, a->x, weights(&c, a->w), a->b, a->n, o, k,
                          then};
    PLACE(&c, WRITE(d.y, a->n * o), READ(d.x, a->n * k), READ(d.b, o));
    place_epilogue(&c, &d.then, a->n, o);
    const bool vec = k % 4 == 0 && o % 4 == 0 && aligned(d.y) && aligned(d.x) &&
                     aligned(d.w) && aligned(d.b) && aligned(d.then.x) &&
                     aligned(d.then.gate) && d.then.stride % 4 == 0;
    cuda_launch(ctx, vec ? CUDA_linear_vec : CUDA_linear,
                tiles(a->n, o, TILE_SHARED), &d);
    end(&c);
}

void cuda_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    linear(ctx, a, plain);
}

void cuda_linear_gelu(tt_ctx *ctx, const tt_linear_args *a)
{
    linear(ctx, a, gelu);
}

void cuda_linear_add(tt_ctx *ctx, const tt_linear_args *a,
                     const tt_gate_add_args *to)
{
    linear(ctx, a, added(to));
}

void cuda_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    const int64_t taps = (int64_t)a->kt * a->kh * a->kw;
    const int64_t pixels = a->Ho * a->Wo;
    call c = begin(ctx);
    TT_ASSERT(a->kt <= CUDA_FRAMES);
    cuda_conv_args d = {
        .y = a->y, .w = weights(&c, a->w), .b = a->b,
        .Hi = a->Hi, .Wi = a->Wi, .Cin = a->Cin,
        .Ho = a->Ho, .Wo = a->Wo, .Cout = a->Cout,
        .kt = a->kt, .kh = a->kh, .kw = a->kw, .stride = a->stride,
        .pad_top = a->pad_top, .pad_left = a->pad_left, .up = a->up,
    };
    PLACE(&c, WRITE(d.y, pixels * a->Cout), READ(d.b, a->Cout));
    bool vec = a->Cin % 4 == 0 && a->Cout % 4 == 0 && taps > 0 &&
               aligned(d.y) && aligned(d.w) && aligned(d.b);
    for (int i = 0; i < a->kt; i++) {
        d.frame[i] = a->frame[i];
        PLACE(&c, READ(d.frame[i], a->Hi * a->Wi * a->Cin));
        vec = vec && aligned(d.frame[i]);
    }
    cuda_launch(ctx, vec ? CUDA_conv_vec : CUDA_conv,
                tiles(pixels, a->Cout, TILE_SHARED), &d);
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
        .o = a->o, .q = a->q, .k = a->k, .v = a->v,
        .T = a->T, .N = a->N, .H = a->H, .D = a->D,
        .q_stride = a->q_stride, .kv_stride = a->kv_stride,
        .rel_bias = a->rel_bias, .key_mask = a->key_mask, .scale = a->scale,
    };
    PLACE(&c, WRITE(d.o, a->T * width),
          READ(d.q, (a->T - 1) * a->q_stride + width), READ(d.k, keys),
          READ(d.v, keys), READ(d.rel_bias, a->H * (2 * a->N - 1)),
          READ(d.key_mask, a->N));
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

/* ---- products in the classes sm80 and sm90 ------------------------------- */

static int64_t up_to(int64_t n, int64_t unit)
{
    return cuda_blocks(n, unit) * unit;
}

/* n rows of `heads` times k numbers as factors, each head filled up to `width`.
 */
static const uint16_t *factors(call *c, const float *x, int64_t n,
                               int64_t heads, int64_t k, int64_t stride,
                               int64_t width)
{
    cuda_factors_args d = {NULL, x, n, heads, k, stride, width};
    PLACE(c, READ(d.from, n ? (n - 1) * stride + heads * k : 0));
    d.to = room(c, 2 * n * heads * width);
    launch(c, CUDA_factors, each(n * heads * (width / 8)), &d);
    return d.to;
}

/* Weights [o, k] as factors, rows filled up to `width`: those stored so where
 * they lie. */
static const uint16_t *weight_factors(call *c, const tt_tensor *w,
                                      int64_t width)
{
    const int64_t o = w->dim[0], k = w->dim[1];
    if (w->dtype == TT_BF16 && w->scale == 0 && k == width &&
        cuda_holds(w->data) && aligned(w->data))
        return w->data;
    return factors(c, weights(c, w), o, 1, k, k, width);
}

static void mma_linear(tt_ctx *ctx, const tt_linear_args *a,
                       cuda_epilogue then)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1], width = up_to(k, 8);
    call c = begin(ctx);
    cuda_mma_linear_args d = {
        .y = a->y, .x = factors(&c, a->x, a->n, 1, k, k, width),
        .w = weight_factors(&c, a->w, width), .b = a->b,
        .n = a->n, .o = o, .k = width, .then = then,
    };
    PLACE(&c, WRITE(d.y, a->n * o), READ(d.b, o));
    place_epilogue(&c, &d.then, a->n, o);
    if (cuda_wgmma())
        cuda_launch(ctx, CUDA_wgmma_linear, tiles(a->n, o, WGMMA_SHARED), &d);
    else
        cuda_launch(ctx, CUDA_mma_linear, tiles(a->n, o, MMA_SHARED), &d);
    end(&c);
}

void cuda_mma_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    mma_linear(ctx, a, plain);
}

void cuda_mma_linear_gelu(tt_ctx *ctx, const tt_linear_args *a)
{
    mma_linear(ctx, a, gelu);
}

void cuda_mma_linear_add(tt_ctx *ctx, const tt_linear_args *a,
                         const tt_gate_add_args *to)
{
    mma_linear(ctx, a, added(to));
}

void cuda_mma_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const int64_t H = a->H, D = a->D, width = up_to(D, 16);
    const bool fast = D == MMA_CHANNELS && !a->rel_bias && !a->key_mask;
    call c = begin(ctx);
    cuda_mma_attention_args d = {
        .o = a->o, .q = factors(&c, a->q, a->T, H, D, a->q_stride, width),
        .k = factors(&c, a->k, a->N, H, D, a->kv_stride, width),
        .v = factors(&c, a->v, a->N, H, D, a->kv_stride, width),
        .T = a->T, .N = a->N, .H = H, .D = D, .width = width,
        .rel_bias = a->rel_bias, .key_mask = a->key_mask, .scale = a->scale,
    };
    PLACE(&c, WRITE(d.o, a->T * H * D), READ(d.rel_bias, H * (2 * a->N - 1)),
          READ(d.key_mask, a->N));
    const cuda_grid g = {cuda_blocks(a->T, MMA_QUERIES),
                         H * cuda_blocks(D, MMA_CHANNELS), MMA_THREADS,
                         MMA_ATTENTION_SHARED};
    cuda_launch(ctx, fast ? CUDA_mma_attention_128 : CUDA_mma_attention, g, &d);
    end(&c);
}

/* A frame of a convolution as factors: one that holds them where it lies. */
static const uint16_t *frame_factors(call *c, const tt_conv_args *a,
                                     const tt_real *frame)
{
    const int64_t n = a->Hi * a->Wi * a->Cin;
    const uint16_t *stored = (const void *)frame;
    if (!frame) return NULL;
    if (!a->bf16) return factors(c, frame, 1, 1, n, n, up_to(n, 8));
    PLACE(c, READ(stored, n));
    return stored;
}

/* Factors of windows that are written down at a time, about. */
#define WINDOWS ((int64_t)1 << 22)

/* The class's linear layer over windows of any width. */
static void windows_conv(call *c, const cuda_mma_conv_args *d, int64_t width)
{
    const int64_t pixels = d->Ho * d->Wo;
    const int64_t fit = WINDOWS / (width ? width : 1);
    const int64_t most = fit > TILE_ROWS ? fit : TILE_ROWS;
    const int64_t step = pixels < most ? pixels : most;
    cuda_windows_args v = {.to = room(c, 2 * step * width), .of = *d,
                           .width = width};
    for (; v.first < pixels; v.first += step) {
        v.n = pixels - v.first < step ? pixels - v.first : step;
        launch(c, CUDA_windows, each(v.n * width / 8), &v);
        const cuda_mma_linear_args l = {
            .y = d->y + v.first * d->Cout, .x = v.to, .w = d->w, .b = d->b,
            .n = v.n, .o = d->Cout, .k = width,
        };
        cuda_launch(c->ctx, CUDA_mma_linear, tiles(v.n, l.o, MMA_SHARED), &l);
    }
}

void cuda_mma_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    const int64_t k = (int64_t)a->kt * a->kh * a->kw * a->Cin;
    const int64_t pixels = a->Ho * a->Wo, width = up_to(k, 8);
    const tt_tensor w = tt_tensor_reshape(a->w, 2, (int64_t[]){a->Cout, k});
    bool eights = k > 0 && a->Cin % 8 == 0;
    if (!a->by_class) {
        cuda_conv(ctx, a);
        return;
    }
    call c = begin(ctx);
    TT_ASSERT(a->kt <= CUDA_FRAMES);
    cuda_mma_conv_args d = {
        .y = a->y, .w = weight_factors(&c, &w, width), .b = a->b,
        .Hi = a->Hi, .Wi = a->Wi, .Cin = a->Cin,
        .Ho = a->Ho, .Wo = a->Wo, .Cout = a->Cout,
        .kt = a->kt, .kh = a->kh, .kw = a->kw, .stride = a->stride,
        .pad_top = a->pad_top, .pad_left = a->pad_left, .up = a->up,
    };
    PLACE(&c, WRITE(d.y, pixels * a->Cout), READ(d.b, a->Cout));
    for (int i = 0; i < a->kt; i++) {
        d.frame[i] = frame_factors(&c, a, a->frame[i]);
        eights = eights && aligned(d.frame[i]);
    }
    if (eights)
        cuda_launch(ctx, CUDA_mma_conv, tiles(pixels, a->Cout, MMA_SHARED), &d);
    else
        windows_conv(&c, &d, width);
    end(&c);
}

/* ---- rows and columns ---------------------------------------------------- */

static void layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a,
                       const tt_modulate_args *to)
{
    const int64_t n = a->n, c = a->c;
    const int64_t reach = to->scale ? grouped(n, c, to->stride, to->rows) : 0;
    cuda_layer_norm_args d = {*a, *to};
    d.then.x = NULL;                     /* y, on which side it may be        */
    RUN(layer_norm, rows(n), d, WRITE(d.is.y, n * c), READ(d.is.x, n * c),
        READ(d.is.w, c), READ(d.is.b, c), READ(d.then.scale, reach),
        READ(d.then.shift, reach));
}

void cuda_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *a)
{
    layer_norm(ctx, a, &(tt_modulate_args){0});
}

void cuda_norm_modulate(tt_ctx *ctx, const tt_layer_norm_args *a,
                        const tt_modulate_args *to)
{
    layer_norm(ctx, a, to);
}

void cuda_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *a)
{
    tt_rms_norm_args d = *a;
    RUN(rms_norm, rows(a->n), d, WRITE(d.y, a->n * a->c),
        READ(d.x, a->n * a->c), READ(d.w, a->c));
}

void cuda_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *a)
{
    tt_channel_norm_args d = *a;
    RUN(channel_norm, rows(a->n), d, WRITE(d.y, a->n * a->c),
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
    RUN(rope, each(n / 2), d, WRITE(d.y, n), READ(d.x, n));
}

/* ---- verbs of the device ------------------------------------------------- */

void cuda_narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    cuda_narrow_args d = {(void *)to, from, n};
    RUN(narrow_bf16, each(n), d, WRITE(d.to, n), READ(d.from, n));
}

void cuda_total(tt_ctx *ctx, const tt_total_args *a)
{
    tt_total_args d = *a;
    RUN(total, columns(a->c), d, WRITE(d.y, a->c), READ(d.s, a->n * a->c));
}

void cuda_most(tt_ctx *ctx, const tt_most_args *a)
{
    tt_most_args d = *a;
    RUN(most, rows(a->n), d, WRITE(d.y, a->n), READ(d.x, a->n * a->c));
}

void cuda_choose(tt_ctx *ctx, const tt_choose_args *a)
{
    call c = begin(ctx);
    cuda_choose_args d = {*a, room(&c, a->n),
                          a->count - a->first - (a->n - a->end)};
    PLACE(&c, WRITE(d.is.list, a->count + 1), WRITE(d.is.then, a->count),
          READ(d.is.x, a->n), READ(d.is.used, a->known));
    launch(&c, CUDA_choose_rows, each(a->n), &d);
    cuda_launch(ctx, CUDA_choose_list,
                (cuda_grid){1, 1, CHOOSE_THREADS, CHOOSE_SHARED}, &d);
    end(&c);
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

void cuda_apart(tt_ctx *ctx, const tt_apart_args *a)
{
    tt_apart_args d = *a;
    RUN(apart, columns(a->n), d, WRITE(d.far, a->n), READ(d.mean, a->n * a->c),
        READ(d.x, a->n * a->c));
}

void cuda_rates(tt_ctx *ctx, const tt_rates_args *a)
{
    call c = begin(ctx);
    tt_rates_args d = *a;
    PLACE(&c, WRITE(d.rate, a->n), READ(d.far, a->n * a->c));
    cuda_launch(ctx, CUDA_rates,
                (cuda_grid){1, 1, RATES_THREADS, RATES_SHARED}, &d);
    end(&c);
}

void cuda_follow(tt_ctx *ctx, const tt_follow_args *a)
{
    tt_follow_args d = *a;
    RUN(follow, each(a->n * a->c), d, CHANGE(d.x, a->n * a->c),
        READ(d.mean, a->n * a->c), READ(d.rate, a->n));
}

void cuda_trust(tt_ctx *ctx, const tt_trust_args *a)
{
    tt_trust_args d = *a;
    RUN(trust, columns(a->c), d, WRITE(d.mean, a->c), WRITE(d.sd, a->c),
        READ(d.m, (a->F - 1) * a->step + 2 * a->c));
}

void cuda_gain(tt_ctx *ctx, const tt_gain_args *a)
{
    tt_gain_args d = *a;
    RUN(gain, columns(a->c), d, WRITE(d.gain, a->c), READ(d.sd, a->c),
        READ(d.m2, a->c));
}

void cuda_judge(tt_ctx *ctx, const tt_judge_args *a)
{
    call c = begin(ctx);
    const int64_t rivals = a->n - a->first;
    cuda_judge_args d = {*a, room(&c, rivals * (int64_t)sizeof *d.mass)};
    PLACE(&c, WRITE(d.is.list, a->n - 1), WRITE(d.is.score, rivals),
          READ(d.is.q, a->c), READ(d.is.m, (a->n - 1) * a->step + a->c),
          READ(d.is.time, a->n));
    cuda_launch(ctx, CUDA_judge, (cuda_grid){1, 1, JUDGE_THREADS, 0}, &d);
    end(&c);
}
