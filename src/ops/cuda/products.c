/* products.c: linear, convolution and attention, in class f32 and in those of
 * tensor cores.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/cuda/call.h"

/* ---- grids --------------------------------------------------------------- */

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
        [TT_I8] = CUDA_widen_i8,     [TT_IQ4_NL] = CUDA_widen_iq4_nl,
        [TT_IQ4_XS] = CUDA_widen_iq4_xs,
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

/* Are they floats as they stand? */
static bool products_plain(const tt_tensor *w)
{
    return w->dtype == TT_F32 && w->scale == 0;
}

/* The weights as floats on the GPU. */
static const float *products_weights(call *c, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    const cuda_kernel k = widens(w->dtype);
    const char *stored = w->data;
    if (!k) return widen_on_host(c, w);
    PLACE(c, READ(stored, tt_tensor_bytes(w)));
    if (tt_dtype_block(w->dtype) == 1 &&
        (uintptr_t)stored % tt_dtype_size(w->dtype))
        return widen_on_host(c, w);
    if (products_plain(w))
        return (const float *)(const void *)stored;
    cuda_widen_args a = {workspace(c, 4 * n), stored, n, w->row_scale, w->row,
                         w->scale, 0};
    if (a.rows) PLACE(c, READ(a.rows, n / a.row));
    launch(c, k, each(n), &a);
    return a.to;
}

/* ---- what follows linear ------------------------------------------------- */

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

/* linear and its pairs, by a function that takes what follows. */
#define LINEAR(name, way)                                                      \
    void cuda_##name(tt_ctx *ctx, const tt_linear_args *a)                     \
    {                                                                          \
        way(ctx, a, (cuda_epilogue){.kind = CUDA_PLAIN});                      \
    }                                                                          \
    void cuda_##name##_gelu(tt_ctx *ctx, const tt_linear_args *a)              \
    {                                                                          \
        way(ctx, a, (cuda_epilogue){.kind = CUDA_GELU});                       \
    }                                                                          \
    void cuda_##name##_add(tt_ctx *ctx, const tt_linear_args *a,               \
                           const tt_gate_add_args *to)                         \
    {                                                                          \
        way(ctx, a, added(to));                                                \
    }

/* ---- products in class f32 ----------------------------------------------- */

static void products_linear(tt_ctx *ctx, const tt_linear_args *a,
                            cuda_epilogue then)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1];
    call c = begin(ctx);
    cuda_linear_args d = {a->y, a->x, products_weights(&c, a->w), a->b, a->n,
                          o, k, then};
    PLACE(&c, WRITE(d.y, a->n * o), READ(d.x, a->n * k), READ(d.b, o));
    place_epilogue(&c, &d.then, a->n, o);
    const bool vec = k % 4 == 0 && o % 4 == 0 && aligned(d.y) && aligned(d.x) &&
                     aligned(d.w) && aligned(d.b) && aligned(d.then.x) &&
                     aligned(d.then.gate) && d.then.stride % 4 == 0;
    cuda_launch(ctx, vec ? CUDA_linear_vec : CUDA_linear,
                tiles(a->n, o, TILE_SHARED), &d);
    end(&c);
}

LINEAR(linear, products_linear)

/* What conv's kernels know of its extents. */
#define EXTENTS(a)                                                             \
    .Hi = (a)->Hi, .Wi = (a)->Wi, .Cin = (a)->Cin,                             \
    .Ho = (a)->Ho, .Wo = (a)->Wo, .Cout = (a)->Cout,                           \
    .kt = (a)->kt, .kh = (a)->kh, .kw = (a)->kw, .stride = (a)->stride,        \
    .pad_top = (a)->pad_top, .pad_left = (a)->pad_left, .up = (a)->up

void cuda_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    const int64_t taps = (int64_t)a->kt * a->kh * a->kw;
    const int64_t pixels = a->Ho * a->Wo;
    call c = begin(ctx);
    TT_ASSERT(a->kt <= CUDA_FRAMES);
    cuda_conv_args d = {
        .y = a->y, .w = products_weights(&c, a->w), .b = a->b,
        EXTENTS(a),
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

/* Values that take as much as n rows of `width` factors. */
static int64_t factors_scratch(int64_t n, int64_t width)
{
    return (n * width + 1) / 2;
}

/* n rows of `heads` times k numbers as factors, each head filled up to `width`.
 */
static const uint16_t *products_factors(call *c, const float *x, int64_t n,
                                        int64_t heads, int64_t k,
                                        int64_t stride, int64_t width)
{
    uint16_t *to = workspace(c, 4 * factors_scratch(n * heads, width));
    PLACE(c, READ(x, n ? (n - 1) * stride + heads * k : 0));
    launch(c, CUDA_factors, each(n * heads * (width / 8)),
           &(cuda_factors_args){to, x, n, heads, k, stride, width});
    return to;
}

/* Are weights [o, k] factors as they stand? */
static bool products_rounded(const tt_tensor *w, int64_t width)
{
    return w->dtype == TT_BF16 && w->scale == 0 && w->dim[1] == width;
}

/* Weights [o, k] as factors, rows filled up to `width`: those stored so where
 * they lie. */
static const uint16_t *weight_factors(call *c, const tt_tensor *w,
                                      int64_t width)
{
    const int64_t o = w->dim[0], k = w->dim[1];
    if (products_rounded(w, width) && cuda_holds(w->data) && aligned(w->data))
        return w->data;
    return products_factors(c, products_weights(c, w), o, 1, k, k, width);
}

/* ---- the same in blocks (wgmma) ------------------------------------------ */

/* Blocks of a row of k numbers, one at least. */
static int64_t blocks_of(int64_t k)
{
    return k > BLOCK_K ? cuda_blocks(k, BLOCK_K) : 1;
}

/* Values that take as much as n rows of k factors in blocks. */
static int64_t blocks_scratch(int64_t n, int64_t k)
{
    return cuda_blocks(n, BLOCK_ROWS) * blocks_of(k) * (BLOCK_FACTORS / 2);
}

/* n rows of k numbers, `stride` apart, in blocks: floats, or bf16 numbers. */
static void fill_blocks(call *c, cuda_kernel kernel, uint16_t *to,
                        const void *x, int64_t n, int64_t k, int64_t stride)
{
    cuda_blocks_args d = {to, x, n, k, stride};
    launch(c, kernel, (work){cuda_blocks(n, BLOCK_ROWS) * blocks_of(k) *
                             BLOCKS_THREADS, BLOCKS_THREADS, false}, &d);
}

static const uint16_t *products_blocks(call *c, const float *x, int64_t n,
                                       int64_t k, int64_t stride)
{
    uint16_t *to = workspace(c, 4 * blocks_scratch(n, k));
    PLACE(c, READ(x, n ? (n - 1) * stride + k : 0));
    fill_blocks(c, CUDA_blocks, to, x, n, k, stride);
    return to;
}

/* Do weights go into blocks as they are stored? */
static bool stored_blocks(const tt_tensor *w)
{
    return products_rounded(w, w->dim[1]) && (uintptr_t)w->data % 2 == 0;
}

/* Weights [o, k] in blocks; those stored as bf16 need no widening. */
static const uint16_t *weight_blocks(call *c, const tt_tensor *w)
{
    const int64_t o = w->dim[0], k = w->dim[1];
    const uint16_t *stored = w->data;
    if (!stored_blocks(w))
        return products_blocks(c, products_weights(c, w), o, k, k);
    uint16_t *to = workspace(c, 4 * blocks_scratch(o, k));
    PLACE(c, READ(stored, o * k));
    fill_blocks(c, CUDA_blocks_bf16, to, stored, o, k, k);
    return to;
}

/* Do outputs lie together by fours, as the kernel stores them? */
static bool by_fours(const tt_linear_args *a, const cuda_epilogue *then)
{
    return (a->w->dim[0] | then->stride) % 4 == 0 && aligned(a->y) &&
           aligned(a->b) && aligned(then->x) && aligned(then->gate);
}

static void launch_wgmma(call *c, const cuda_wgmma_linear_args *d)
{
    const bool gelu = d->then.kind == CUDA_GELU;
    const int64_t cols = gelu ? WGMMA_GELU_COLS : WGMMA_COLS;
    const int64_t tiles = cuda_blocks(d->n, BLOCK_ROWS) *
                          cuda_blocks(d->o, cols) * d->layers;
    const int64_t most = cuda_multiprocessors();
    const cuda_grid g = {tiles < most ? tiles : most, 1, WGMMA_THREADS,
                         WGMMA_SHARED(cols)};
    cuda_launch(c->ctx, gelu ? CUDA_wgmma_linear_gelu : CUDA_wgmma_linear, g,
                d);
}

/* Layers of one x and shape, whose outputs lie by fours. x: in blocks, or NULL.
 * to: where outputs go in blocks, or NULL. */
static void wgmma_linears(tt_ctx *ctx, const tt_linear_args *a, int layers,
                          const uint16_t *x, uint16_t *to, cuda_epilogue then)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1];
    call c = begin(ctx);
    cuda_wgmma_linear_args d = {
        .x = x ? x : products_blocks(&c, a->x, a->n, k, k), .blocks = to,
        .layers = layers, .n = a->n, .o = o, .k = BLOCK_K * blocks_of(k),
        .then = then,
    };
    TT_ASSERT(layers <= WGMMA_LAYERS);
    for (int i = 0; i < layers; i++) {
        d.layer[i] = (cuda_wgmma_layer){a[i].y, weight_blocks(&c, a[i].w),
                                        a[i].b};
        if (!to) PLACE(&c, WRITE(d.layer[i].y, a->n * o));
        PLACE(&c, READ(d.layer[i].b, o));
    }
    place_epilogue(&c, &d.then, a->n, o);
    launch_wgmma(&c, &d);
    end(&c);
}

/* Does this attention have a kernel of wgmma? */
static bool by_blocks(const tt_attention_args *a)
{
    return cuda_wgmma() && a->D == MMA_CHANNELS && !a->rel_bias && !a->key_mask;
}

/* Blocks of threads of an attention, one a multiprocessor: the last ones, which
 * leave some idle, have half the queries where there is room for twice as many.
 */
static int64_t halves(cuda_wgmma_attention_args *d)
{
    const int64_t all = (d->tiles = cuda_blocks(d->T, BLOCK_ROWS)) * d->H;
    const int64_t rest = all % cuda_multiprocessors();
    d->whole = 2 * rest <= cuda_multiprocessors() ? all - rest : all;
    return 2 * all - d->whole;
}

/* ---- keys and values as attention reads them ----------------------------- */

/* Keys, then values, as factors: of all heads [N, H, width], or in
 * blocks. */
typedef struct prepared {
    const uint16_t *k, *v;
} prepared;

int64_t cuda_mma_packed(tt_ctx *ctx, int64_t N, int64_t D)
{
    (void)ctx;
    return up_to(N, BLOCK_ROWS) * up_to(D, 16);
}

/* Rows from `first` on: floats, or bf16 numbers. */
static void prepare_rows(call *c, const tt_attention_args *a, uint16_t *to,
                         const void *x, int64_t first, int64_t n)
{
    const int64_t row = a->H * a->D, width = up_to(a->D, 16);
    const int64_t numbers = (n - 1) * a->kv_stride + row;
    call_place(c, &(operand){&x, (size_t)numbers * (a->bf16 ? 2 : 4), true,
                             false});
    if (by_blocks(a))
        fill_blocks(c, a->bf16 ? CUDA_blocks_bf16 : CUDA_blocks,
                    to + first / BLOCK_ROWS * a->H * WGMMA_PAIR, x, n, row,
                    a->kv_stride);
    else
        launch(c, a->bf16 ? CUDA_factors_bf16 : CUDA_factors,
               each(n * a->H * (width / 8)),
               &(cuda_factors_args){to + first * a->H * width, x, n, a->H, a->D,
                                    a->kv_stride, width});
}

/* Are rows of bf16 numbers what attention by mma reads? */
static bool stored_factors(const tt_attention_args *a)
{
    return a->bf16 && !by_blocks(a) && !a->packed && a->D % 16 == 0 &&
           a->kv_stride == a->H * a->D && aligned(a->k) && aligned(a->v) &&
           cuda_holds(a->k) && cuda_holds(a->v);
}

/* Of the first `n_packed` keys all is there. */
static prepared products_prepare(call *c, const tt_attention_args *a)
{
    const int64_t each = cuda_mma_packed(c->ctx, a->N, a->D);
    const int64_t n_packed = a->n_packed, rest = a->N - n_packed;
    float *to = a->packed;
    if (stored_factors(a))
        return (prepared){(const void *)a->k, (const void *)a->v};
    if (to) PLACE(c, CHANGE(to, a->H * each));
    else to = workspace(c, 4 * a->H * each);
    uint16_t *const k = (void *)to, *const v = to ? k + a->H * each : NULL;
    if (rest && to) {
        prepare_rows(c, a, k, a->k, n_packed, rest);
        prepare_rows(c, a, v, a->v, n_packed, rest);
    }
    return (prepared){k, v};
}

/* blocks: where o goes rounded and in blocks, or NULL. */
static void wgmma_attention(call *c, const tt_attention_args *a, prepared p,
                            uint16_t *blocks)
{
    const int64_t width = a->H * a->D;
    cuda_wgmma_attention_args d = {
        .o = blocks ? NULL : a->o, .blocks = blocks, .q = a->q, .k = p.k,
        .v = p.v, .T = a->T, .N = a->N, .H = a->H, .q_stride = a->q_stride,
        .scale = a->scale,
    };
    PLACE(c, WRITE(d.o, a->T * width),
          READ(d.q, (a->T - 1) * a->q_stride + width));
    const cuda_grid g = {halves(&d), 1, WGMMA_ATTENTION_THREADS,
                         WGMMA_ATTENTION_SHARED};
    cuda_launch(c->ctx, CUDA_wgmma_attention, g, &d);
}

static void mma_attention(call *c, const tt_attention_args *a, prepared p)
{
    const int64_t H = a->H, D = a->D, width = up_to(D, 16);
    const bool fast = D == MMA_CHANNELS && !a->rel_bias && !a->key_mask;
    cuda_mma_attention_args d = {
        .o = a->o, .q = products_factors(c, a->q, a->T, H, D, a->q_stride,
                                         width),
        .k = p.k, .v = p.v, .T = a->T, .N = a->N, .H = H, .D = D,
        .width = width, .rel_bias = a->rel_bias, .key_mask = a->key_mask,
        .scale = a->scale,
    };
    PLACE(c, WRITE(d.o, a->T * H * D), READ(d.rel_bias, H * (2 * a->N - 1)),
          READ(d.key_mask, a->N));
    const cuda_grid g = {cuda_blocks(a->T, MMA_QUERIES),
                         H * cuda_blocks(D, MMA_CHANNELS), MMA_THREADS,
                         MMA_ATTENTION_SHARED};
    cuda_launch(c->ctx, fast ? CUDA_mma_attention_128 : CUDA_mma_attention, g,
                &d);
}

static void products_attention(tt_ctx *ctx, const tt_attention_args *a,
                               uint16_t *blocks)
{
    call c = begin(ctx);
    const prepared p = products_prepare(&c, a);
    if (a->T && by_blocks(a)) wgmma_attention(&c, a, p, blocks);
    else if (a->T) mma_attention(&c, a, p);
    end(&c);
}

void cuda_mma_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    products_attention(ctx, a, NULL);
}

void cuda_mma_attention_add(tt_ctx *ctx, const tt_attention_args *x,
                            const tt_linear_args *a, const tt_gate_add_args *to)
{
    const cuda_epilogue then = added(to);
    if (!by_blocks(x) || !by_fours(a, &then)) {
        cuda_mma_attention(ctx, x);
        cuda_mma_linear_add(ctx, a, to);
        return;
    }
    call c = begin(ctx);
    uint16_t *o = workspace(&c, 4 * blocks_scratch(x->T, x->H * x->D));
    products_attention(ctx, x, o);
    wgmma_linears(ctx, a, 1, o, NULL, then);
    end(&c);
}

/* ---- which of the two ---------------------------------------------------- */

static void mma_linear(tt_ctx *ctx, const tt_linear_args *a,
                       cuda_epilogue then)
{
    const int64_t o = a->w->dim[0], k = a->w->dim[1], width = up_to(k, 8);
    if (cuda_wgmma() && by_fours(a, &then)) {
        wgmma_linears(ctx, a, 1, NULL, NULL, then);
        return;
    }
    call c = begin(ctx);
    cuda_mma_linear_args d = {
        .y = a->y, .x = products_factors(&c, a->x, a->n, 1, k, k, width),
        .w = weight_factors(&c, a->w, width), .b = a->b,
        .n = a->n, .o = o, .k = width, .then = then,
    };
    PLACE(&c, WRITE(d.y, a->n * o), READ(d.b, o));
    place_epilogue(&c, &d.then, a->n, o);
    cuda_launch(ctx, CUDA_mma_linear, tiles(a->n, o, MMA_SHARED), &d);
    end(&c);
}

LINEAR(mma_linear, mma_linear)

static const cuda_epilogue plain = {.kind = CUDA_PLAIN};

/* Are these layers one launch? */
static bool in_one(const tt_linear_args *a, int n)
{
    bool alike = cuda_wgmma() && n <= WGMMA_LAYERS;
    for (int i = 0; i < n; i++)
        alike = alike && a[i].w->dim[0] == a->w->dim[0] &&
                by_fours(&a[i], &plain);
    return alike;
}

void cuda_mma_linears(tt_ctx *ctx, const tt_linear_args *a, int n)
{
    if (in_one(a, n)) wgmma_linears(ctx, a, n, NULL, NULL, plain);
    else for (int i = 0; i < n; i++) cuda_mma_linear(ctx, &a[i]);
}

/* Workspace for the results of a norm as factors, in whole blocks. */
static uint16_t *norm_blocks(call *c, const tt_normed *x)
{
    return workspace(c, 4 * blocks_scratch(x->norm.n, x->norm.c));
}

void cuda_mma_norm_linears(tt_ctx *ctx, const tt_normed *x,
                           const tt_linear_args *a, int n)
{
    if (!in_one(a, n) || x->norm.c % BLOCK_K) {
        cuda_norm(ctx, x, NULL);
        cuda_mma_linears(ctx, a, n);
        return;
    }
    call c = begin(ctx);
    uint16_t *to = norm_blocks(&c, x);
    cuda_norm(ctx, x, to);
    wgmma_linears(ctx, a, n, to, NULL, plain);
    end(&c);
}

/* Do GELU's outputs, as factors in whole blocks, fit where they would lie as
 * floats? */
static bool stay_blocks(const tt_linear_args *up, const tt_linear_args *down,
                        const tt_gate_add_args *to)
{
    const int64_t n = up->n, width = up->w->dim[0];
    const cuda_epilogue then[] = {{.kind = CUDA_GELU}, added(to)};
    return cuda_wgmma() && width % BLOCK_K == 0 && cuda_holds(up->y) &&
           blocks_scratch(n, width) <= n * width && by_fours(up, &then[0]) &&
           by_fours(down, &then[1]);
}

/* x: in blocks, or NULL. */
static void wgmma_mlp(tt_ctx *ctx, const uint16_t *x, const tt_linear_args *up,
                      const tt_linear_args *down, const tt_gate_add_args *to)
{
    uint16_t *hidden = (uint16_t *)(void *)up->y;
    wgmma_linears(ctx, up, 1, x, hidden, (cuda_epilogue){.kind = CUDA_GELU});
    wgmma_linears(ctx, down, 1, hidden, NULL, added(to));
}

void cuda_mma_mlp(tt_ctx *ctx, const tt_linear_args *up,
                  const tt_linear_args *down, const tt_gate_add_args *to)
{
    if (stay_blocks(up, down, to)) {
        wgmma_mlp(ctx, NULL, up, down, to);
    } else {
        cuda_mma_linear_gelu(ctx, up);
        cuda_mma_linear_add(ctx, down, to);
    }
}

void cuda_mma_norm_mlp(tt_ctx *ctx, const tt_normed *x,
                       const tt_linear_args *up, const tt_linear_args *down,
                       const tt_gate_add_args *to)
{
    if (!stay_blocks(up, down, to) || x->norm.c % BLOCK_K) {
        cuda_norm(ctx, x, NULL);
        cuda_mma_mlp(ctx, up, down, to);
        return;
    }
    call c = begin(ctx);
    uint16_t *blocks = norm_blocks(&c, x);
    cuda_norm(ctx, x, blocks);
    wgmma_mlp(ctx, blocks, up, down, to);
    end(&c);
}

/* A frame of a convolution as factors: one that holds them where it lies. */
static const uint16_t *frame_factors(call *c, const tt_conv_args *a,
                                     const tt_real *frame)
{
    const int64_t n = a->Hi * a->Wi * a->Cin;
    const uint16_t *stored = (const void *)frame;
    if (!frame) return NULL;
    if (!a->bf16) return products_factors(c, frame, 1, 1, n, n, up_to(n, 8));
    PLACE(c, READ(stored, n));
    return stored;
}

/* Factors of windows that are written down at a time, about. */
#define WINDOWS ((int64_t)1 << 22)

/* Rows of windows that are written down at a time. */
static int64_t windows_step(int64_t pixels, int64_t width)
{
    const int64_t fit = WINDOWS / (width ? width : 1);
    const int64_t most = fit > TILE_ROWS ? fit : TILE_ROWS;
    return pixels < most ? pixels : most;
}

/* The class's linear layer over windows of any width. */
static void windows_conv(call *c, const cuda_mma_conv_args *d, int64_t width)
{
    const int64_t pixels = d->Ho * d->Wo;
    const int64_t step = windows_step(pixels, width);
    cuda_windows_args v = {.to = workspace(c, 4 * factors_scratch(step, width)),
                           .of = *d, .width = width};
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

/* Weights [Cout, k] of a convolution, and k. */
static tt_tensor conv_weights(const tt_conv_args *a, int64_t *k)
{
    *k = (int64_t)a->kt * a->kh * a->kw * a->Cin;
    return tt_tensor_reshape(a->w, 2, (int64_t[]){a->Cout, *k});
}

/* Can windows be read where they lie, 8 factors at a time? */
static bool in_eights(const tt_conv_args *a, int64_t k)
{
    return k > 0 && a->Cin % 8 == 0;
}

static void wgmma_conv(call *c, const cuda_mma_conv_args *d)
{
    const int64_t cols = d->Cout > 96 ? 192 : 96;
    const cuda_grid g = {cuda_blocks(d->Cout, cols),
                         cuda_blocks(d->Ho * d->Wo, WGMMA_CONV_ROWS),
                         WGMMA_CONV_THREADS, WGMMA_CONV_SHARED(cols)};
    cuda_launch(c->ctx, cols == 96 ? CUDA_wgmma_conv_96 : CUDA_wgmma_conv_192,
                g, d);
}

void cuda_mma_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    int64_t k;
    const tt_tensor w = conv_weights(a, &k);
    const int64_t pixels = a->Ho * a->Wo, width = up_to(k, 8);
    bool eights = in_eights(a, k);
    if (!a->by_class) {
        cuda_conv(ctx, a);
        return;
    }
    call c = begin(ctx);
    TT_ASSERT(a->kt <= CUDA_FRAMES);
    cuda_mma_conv_args d = {.y = a->y, .b = a->b, EXTENTS(a)};
    PLACE(&c, WRITE(d.y, pixels * a->Cout), READ(d.b, a->Cout));
    for (int i = 0; i < a->kt; i++) {
        d.frame[i] = frame_factors(&c, a, a->frame[i]);
        eights = eights && aligned(d.frame[i]);
    }
    const bool by_wgmma = eights && cuda_wgmma();
    d.w = by_wgmma ? weight_blocks(&c, &w) : weight_factors(&c, &w, width);
    if (by_wgmma)
        wgmma_conv(&c, &d);
    else if (eights)
        cuda_launch(ctx, CUDA_mma_conv, tiles(pixels, a->Cout, MMA_SHARED), &d);
    else
        windows_conv(&c, &d, width);
    end(&c);
}
