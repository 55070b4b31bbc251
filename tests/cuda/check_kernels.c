/* check_kernels.c: every CUDA kernel against golden, bit by bit.
 *
 *   check_kernels [--brief] [part of a name [first]]
 *
 * --brief: of the classes of tensor cores, two kinds of numbers a shape. first:
 * until a result differs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The operators of the backend cuda run on the GPU that its driver finds; with
 * the shim (tests/cuda/driver.cpp) in LD_LIBRARY_PATH that is the CPU, and every
 * case runs in three orders of threads. Shapes are odd on purpose, inputs
 * include subnormal numbers, products that underflow to -0, NaN and infinity.
 * Arrays on the GPU are allocated one by one, to the byte, and what is only
 * read must come back unchanged. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "ops/backend.h"
#include "core/device.h"

static tt_ctx *ctx;
static tt_class cls = TT_CLASS_F32;
static const char *only;
static bool first, brief;
static uint64_t state = 88172645463325252u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

enum { NORMAL, SUBNORMAL, BIG, WIDE, UNDERFLOW, SPECIAL, KINDS, CANCEL = KINDS };

/* Zeros, and numbers of every size that come back with the other sign: what is
 * left of their sum is rounding, and shows its order. */
static double cancelling(double u)
{
    static double held;
    const double back = -held;
    if (uniform() < 0.3) return 0;
    held = held ? 0 : ldexp((double)(float)u, (int)(uniform() * 90));
    return held ? held : back;
}

/* Products of two of this size are lost; of the tensor cores' classes, those
 * that a step keeps and then cuts to nothing. */
static double underflowing(void)
{
    return cls == TT_CLASS_F32 ? 1e-23 : 3e-23;
}

static double number(int kind)
{
    const double u = 2 * uniform() - 1;
    switch (kind) {
    case SUBNORMAL: return u * 1e-39;
    case BIG: return u * 1e15;
    case WIDE: return ldexp(u, (int)(uniform() * 60) - 30);
    case CANCEL: return cancelling(u);
    case UNDERFLOW: return uniform() < 0.3 ? -0.0 : u * underflowing();
    case SPECIAL:
        return uniform() > 0.01 ? u : uniform() < 0.5 ? NAN : INFINITY;
    default: return u;
    }
}

/* ---- operands ------------------------------------------------------------ */

/* An array an operator is given. Its values are on the GPU unless `host`. */
typedef struct operand {
    enum { NONE, FLOATS, DOUBLES, BYTES } type;
    int64_t n;
    bool host, written;
    void *data;
    bool scratch;            /* holds nothing afterwards                   */
} operand;

#define OPERANDS 9
typedef void call_fn(void *const *p, const void *shape);

static size_t bytes_of(const operand *o)
{
    static const size_t size[] = {0, 4, 8, 1};
    return (size_t)o->n * size[o->type];
}

static operand floats(int64_t n, int kind)
{
    operand o = {.type = FLOATS, .n = n};
    float *x = malloc((size_t)n * sizeof *x + 1);
    TT_ASSERT(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)number(kind);
    o.data = x;
    return o;
}

static operand doubles(int64_t n)
{
    operand o = {.type = DOUBLES, .n = n, .host = true};
    double *x = malloc((size_t)n * sizeof *x + 1);
    TT_ASSERT(x);
    for (int64_t i = 0; i < n; i++) x[i] = number(NORMAL);
    o.data = x;
    return o;
}

static operand written(operand o)
{
    o.written = true;
    return o;
}

static operand output(int64_t n)
{
    return written(floats(n, NORMAL));
}

static bool same(const operand *o, const void *a, const void *b, int64_t *at)
{
    for (int64_t i = 0; i < o->n; i++) {
        const float *f = a, *g = b;
        const double *d = a, *e = b;
        *at = i;
        if (o->type == FLOATS && isnan(f[i]) && isnan(g[i])) continue;
        if (o->type == DOUBLES && isnan(d[i]) && isnan(e[i])) continue;
        const size_t size = bytes_of(o) / (size_t)o->n;
        if (memcmp((const char *)a + (size_t)i * size,
                   (const char *)b + (size_t)i * size, size)) return false;
    }
    return true;
}

/* ---- one case ------------------------------------------------------------ */

static void *copy_of(const operand *o, const void *data, bool device)
{
    const size_t n = bytes_of(o);
    if (o->type == NONE) return NULL;
    if (!device) {
        void *p = malloc(n + 1);
        TT_ASSERT(p);
        return memcpy(p, data, n);
    }
    void *p = ctx->device->alloc(ctx->device, n ? n : 1);
    TT_ASSERT(p);
    ctx->device->put(ctx, p, data, n);
    return p;
}

static void run_on(const char *backend, call_fn *f, const void *shape,
                   const operand *o, void **result)
{
    void *p[OPERANDS];
    const bool device = !strcmp(backend, "cuda");
    ctx->ops = tt_ops_class(tt_ops_find(backend), cls);
    for (int i = 0; i < OPERANDS; i++)
        p[i] = copy_of(&o[i], o[i].data, device && !o[i].host);
    f(p, shape);
    for (int i = 0; i < OPERANDS; i++) {
        result[i] = NULL;
        if (o[i].type == NONE) continue;
        result[i] = p[i];
        if (!device || o[i].host) continue;
        result[i] = malloc(bytes_of(&o[i]) + 1);
        TT_ASSERT(result[i]);
        ctx->device->get(ctx, result[i], p[i], bytes_of(&o[i]));
        ctx->device->free(ctx->device, p[i], bytes_of(&o[i]));
    }
}

static void compare(const char *what, const char *order, const operand *o,
                    void *const *want, void *const *got)
{
    for (int i = 0; i < OPERANDS; i++) {
        int64_t at = 0;
        if (o[i].type == NONE || o[i].scratch) continue;
        const bool ok = same(&o[i], o[i].written ? want[i] : o[i].data, got[i],
                             &at);
        expect(ok, "%s, %s: %s %d differs at %lld", what, order,
               o[i].written ? "result" : "input", i, (long long)at);
        if (!ok && first) exit(test_end());
    }
}

static void check(call_fn *f, const void *shape, operand *o, const char *fmt,
                  ...) TT_PRINTF(4, 5);
static void check(call_fn *f, const void *shape, operand *o, const char *fmt,
                  ...)
{
    static const char *const orders[] = {"forward", "reverse", "random"};
    char what[200];
    void *want[OPERANDS], *got[OPERANDS];
    va_list ap;
    int named = 0;
    if (cls != TT_CLASS_F32)
        named = snprintf(what, sizeof what, "%s ", tt_class_name(cls));
    va_start(ap, fmt);
    vsnprintf(what + named, sizeof what - (size_t)named, fmt, ap);
    va_end(ap);
    const bool asked_for = !only || strstr(what, only);
    static int turn;
    const bool kinds = cls != TT_CLASS_F32 && strstr(what, " kind ");
    turn += kinds;
    if (brief && kinds && (turn + turn / KINDS) % 3) {
        for (int k = 0; k < OPERANDS; k++) free(o[k].data);
        return;
    }
    if (asked_for) run_on("golden", f, shape, o, want);
    for (int i = 0; asked_for && i < 3; i++) {
        setenv("TT_SHIM_ORDER", orders[i], 1);
        run_on("cuda", f, shape, o, got);
        expect_ok(ctx->status, what);
        compare(what, orders[i], o, want, got);
        for (int k = 0; k < OPERANDS; k++) free(got[k]);
    }
    for (int k = 0; asked_for && k < OPERANDS; k++) free(want[k]);
    for (int k = 0; k < OPERANDS; k++) free(o[k].data);
}

/* ---- linear -------------------------------------------------------------- */

typedef struct linear_shape {
    int64_t n, o, k;
    tt_dtype type;
    float scale;
    bool rows;
} linear_shape;

static void call_linear(void *const *p, const void *shape)
{
    const linear_shape *s = shape;
    tt_tensor w = tt_tensor_make(p[2], s->type, 2, (int64_t[]){s->o, s->k});
    float each[64];
    w.scale = s->scale;
    w.row = s->k;
    for (int64_t i = 0; s->rows && i < s->o; i++)
        each[i] = 0.0123f * (float)(i + 1);
    if (s->rows) w.row_scale = each;
    tt_linear(ctx, p[0], p[1], s->n, &w, p[3]);
}

/* Random bytes, but numbers below 2, subnormal ones too: the highest bit of
 * exponents is 0. */
static operand stored(const linear_shape *s)
{
    const tt_tensor w = tt_tensor_make(NULL, s->type, 2,
                                       (int64_t[]){s->o, s->k});
    operand o = {.type = BYTES, .n = tt_tensor_bytes(&w)};
    uint8_t *b = malloc((size_t)o.n + 1);
    TT_ASSERT(b);
    const int64_t size = tt_dtype_block(s->type) > 1
                             ? 1 : (int64_t)tt_dtype_size(s->type);
    for (int64_t i = 0; i < o.n; i++)
        b[i] = (uint8_t)((int)(uniform() * 256) &
                         (i % size == size - 1 ? 0xbf : 0xff));
    o.data = b;
    return o;
}

static void test_linear(void)
{
    static const linear_shape shapes[] = {
        {1, 1, 1, 0, 0, 0},      {3, 5, 7, 0, 0, 0},      {130, 129, 300, 0, 0, 0},
        {5, 260, 1536, 0, 0, 0}, {129, 8, 16, 0, 0, 0},   {64, 132, 257, 0, 0, 0},
        {200, 140, 1025, 0, 0, 0}, {128, 128, 512, 0, 0, 0}, {33, 7, 3, 0, 0, 0},
        {1, 4, 8, 0, 0, 0},      {257, 300, 20, 0, 0, 0}, {70, 64, 769, 0, 0, 0},
        {2, 4, 0, 0, 0, 0},      {7, 33, 1536, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            linear_shape s = shapes[i];
            s.type = TT_F32;
            operand o[OPERANDS] = {
                output(s.n * s.o), floats(s.n * s.k, kind),
                floats(s.o * s.k, kind == BIG ? NORMAL : kind),
            };
            if (i % 2) o[3] = floats(s.o, kind);
            check(call_linear, &s, o, "linear %lldx%lldx%lld kind %d",
                  (long long)s.n, (long long)s.o, (long long)s.k, kind);
        }
}

static void test_stored(void)
{
    static const tt_dtype types[] = {
        TT_F32, TT_BF16, TT_F16, TT_F64, TT_F8_E4M3, TT_F8_E5M2, TT_Q8_0,
        TT_Q4_0, TT_Q4_1, TT_Q5_0, TT_Q5_1, TT_Q2_K, TT_Q3_K, TT_Q4_K, TT_Q5_K,
        TT_Q6_K, TT_IQ4_NL, TT_IQ4_XS, TT_I8,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int way = 0; way < 4; way++) { /* 1: scaled, 2: another width,
                                               3: scaled by row              */
            const bool scaled = way % 2;
            const linear_shape s = {5, 37, way > 1 ? 301 : 256, types[i],
                                    scaled ? 0.0123f : 0, way == 3};
            if (way > 1 && tt_dtype_block(types[i]) > 1) continue;
            operand o[OPERANDS] = {output(s.n * s.o),
                                   floats(s.n * s.k, NORMAL), stored(&s)};
            check(call_linear, &s, o, "linear stored as %s%s",
                  tt_dtype_name(s.type),
                  way == 3 ? ", scaled by row" : scaled ? ", scaled"
                  : way ? ", odd" : "");
        }
    /* outputs that lie by fours; numbers of its own */
    const uint64_t held = state;
    for (int64_t k = 256; k < 320; k += 45) {
        const linear_shape s = {5, 36, k, TT_BF16, 0, 0};
        operand o[OPERANDS] = {output(s.n * s.o), floats(s.n * k, NORMAL),
                               stored(&s)};
        check(call_linear, &s, o, "linear stored as bf16, by fours, of %lld",
              (long long)k);
    }
    state = held;
}

/* ---- linear and what follows --------------------------------------------- */

typedef struct fused_shape {
    linear_shape is;
    enum { GELU_OF, ADDED, GATED, FUSED } then;
    int64_t stride, rows;
} fused_shape;
static const char *const fused_names[FUSED] = {"gelu", "add", "gate"};

/* y, x, w, b; what y is added to, and its gates. */
static void call_fused(void *const *p, const void *shape)
{
    const fused_shape *s = shape;
    const int64_t n = s->is.n, o = s->is.o;
    const tt_tensor w = tt_tensor_make(p[2], TT_F32, 2,
                                       (int64_t[]){o, s->is.k});
    const tt_linear_args a = {p[0], p[1], n, &w, p[3]};
    const tt_gate_add_args to = {p[4], p[0], n, o, p[5], s->stride, s->rows};
    if (s->then == GELU_OF) tt_linear_gelu(ctx, p[0], p[1], n, &w, p[3]);
    else tt_linear_add(ctx, &a, &to);
}

static void test_fused_kind(const linear_shape *is, int then, int kind)
{
    const int64_t n = is->n, o = is->o, k = is->k;
    /* a stride that is no multiple of 4 */
    const fused_shape s = {*is, then, 2 * o + (kind == BIG), n / 3 + 1};
    operand p[OPERANDS] = {
        output(n * o), floats(n * k, kind),
        floats(o * k, kind == BIG ? NORMAL : kind),
    };
    p[0].scratch = then != GELU_OF;
    if (kind % 2) p[3] = floats(o, kind);
    if (then != GELU_OF) p[4] = written(floats(n * o, kind));
    if (then == GATED)
        p[5] = floats((n - 1) / s.rows * s.stride + o,
                      kind == UNDERFLOW ? NORMAL : kind);
    check(call_fused, &s, p, "linear %s %lldx%lldx%lld kind %d",
          fused_names[then], (long long)n, (long long)o, (long long)k, kind);
}

/* y, x, w, b, scale, shift. */
static void call_modulated(void *const *p, const void *shape)
{
    const fused_shape *s = shape;
    const int64_t n = s->is.n, c = s->is.o;
    tt_norm_modulate(ctx,
                     &(tt_layer_norm_args){p[0], p[1], n, c, p[2], p[3], 1e-6},
                     &(tt_modulate_args){p[0], n, c, p[4], p[5], s->stride,
                                         s->rows});
}

static void test_modulated(int64_t n, int64_t c, int kind, bool affine)
{
    const fused_shape s = {{n, c, 0, TT_F32, 0, 0}, FUSED, 2 * c, n / 3 + 1};
    const int64_t reach = (n - 1) / s.rows * s.stride + c;
    operand p[OPERANDS] = {output(n * c), floats(n * c, kind)};
    if (affine) p[2] = floats(c, kind);
    if (affine) p[3] = floats(c, NORMAL);
    p[4] = floats(reach, kind);
    p[5] = floats(reach, NORMAL);
    check(call_modulated, &s, p, "norm_modulate%s %lldx%lld kind %d",
          affine ? " affine" : "", (long long)n, (long long)c, kind);
}

/* Numbers of its own: those of the cases after it stay what they are. */
static void test_fused(void)
{
    static const linear_shape shapes[] = {
        {1, 1, 1, 0, 0, 0}, {5, 7, 300, 0, 0, 0}, {130, 132, 520, 0, 0, 0},
        {67, 129, 20, 0, 0, 0}, {33, 36, 8, 0, 0, 0},
    };
    const uint64_t held = state;
    expect(tt_ops_class(tt_ops_find("cuda"), cls)->fused != NULL,
           "%s: cuda has pairs in one", tt_class_name(cls));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const linear_shape *s = &shapes[i];
            for (int then = 0; then < FUSED; then++)
                test_fused_kind(s, then, kind);
            if (cls != TT_CLASS_F32) continue;
            test_modulated(s->n, s->o, kind, false);
            test_modulated(s->n, s->o, kind, true);
        }
    state = held;
}

/* Three layers of one x: y, y, y, x, w, w, w, b. */
static void call_linears(void *const *p, const void *shape)
{
    const linear_shape *s = shape;
    tt_tensor w[3];
    tt_linear_args a[3];
    for (int i = 0; i < 3; i++) {
        w[i] = tt_tensor_make(p[4 + i], TT_F32, 2, (int64_t[]){s->o, s->k});
        a[i] = (tt_linear_args){p[i], p[3], s->n, &w[i], i ? p[7] : NULL};
    }
    tt_linears(ctx, a, 3);
}

/* Hidden, x, w of both layers, what is added to, gates, the first one's bias,
 * and where outputs would be. */
static void call_mlp(void *const *p, const void *shape)
{
    const fused_shape *s = shape;
    const int64_t n = s->is.n, o = s->is.o, k = s->is.k, hidden = s->rows;
    const tt_tensor up = tt_tensor_make(p[2], TT_F32, 2,
                                        (int64_t[]){hidden, k});
    const tt_tensor down = tt_tensor_make(p[3], TT_F32, 2,
                                          (int64_t[]){o, hidden});
    tt_mlp(ctx, &(tt_linear_args){p[0], p[1], n, &up, p[6]},
           &(tt_linear_args){p[7], p[0], n, &down, NULL},
           &(tt_gate_add_args){p[4], p[7], n, o, p[5], s->stride, n / 3 + 1});
}

/* The last two of `hidden` and `o` do not fill blocks, or do not lie by fours. */
static void test_several(void)
{
    static const struct { int64_t n, o, k, hidden; } shapes[] = {
        {130, 36, 72, 128}, {257, 260, 20, 576}, {5, 8, 12, 64},
        {129, 12, 8, 72},   {140, 7, 16, 64},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < KINDS; kind += kind == NORMAL ? SPECIAL : 1) {
            const int64_t n = shapes[i].n, o = shapes[i].o, k = shapes[i].k;
            const int64_t hidden = shapes[i].hidden;
            const linear_shape s = {n, o, k, TT_F32, 0, 0};
            const fused_shape m = {s, GATED, o, hidden};
            const int64_t reach = (n - 1) / (n / 3 + 1) * o + o;
            operand l[OPERANDS] = {
                output(n * o), output(n * o), output(n * o), floats(n * k, kind),
                floats(o * k, kind), floats(o * k, NORMAL),
                floats(o * k, NORMAL), floats(o, NORMAL),
            };
            operand p[OPERANDS] = {
                output(n * hidden), floats(n * k, kind),
                floats(hidden * k, kind), floats(o * hidden, NORMAL),
                written(floats(n * o, NORMAL)), floats(reach, NORMAL),
                floats(hidden, NORMAL), output(n * o),
            };
            p[0].scratch = p[7].scratch = true;
            check(call_linears, &s, l, "linear layers of one x %lldx%lldx%lld "
                  "kind %d", (long long)n, (long long)o, (long long)k, kind);
            check(call_mlp, &m, p, "linear layers of an FFN %lldx%lldx%lldx%lld"
                  " kind %d", (long long)n, (long long)hidden, (long long)o,
                  (long long)k, kind);
        }
}

/* Products of what comes before them: of a norm n x k, modulated or with weights
 * of its own, two layers or an FFN; of attention, whose D k / D heads are its
 * rows, one layer. */
typedef struct after_shape {
    int64_t n, k, o, hidden;
    bool affine;
    int64_t D, N;
} after_shape;

/* y, y, what the norm gives, x, w, w, and two arrays of the norm. */
static tt_normed normed_of(const after_shape *s, void *const *p, tt_real *y)
{
    tt_normed x = {{y, p[3], s->n, s->k, NULL, NULL, 1e-6},
                   {y, s->n, s->k, p[6], p[7], s->k, s->n / 3 + 1}};
    if (!s->affine) return x;
    x.norm.w = p[6];
    x.norm.b = p[7];
    x.mod = (tt_modulate_args){0};
    return x;
}

static void call_norm_linears(void *const *p, const void *shape)
{
    const after_shape *s = shape;
    const tt_normed x = normed_of(s, p, p[2]);
    tt_tensor w[2];
    tt_linear_args a[2];
    for (int i = 0; i < 2; i++) {
        w[i] = tt_tensor_make(p[4 + i], TT_F32, 2, (int64_t[]){s->o, s->k});
        a[i] = (tt_linear_args){p[i], p[2], s->n, &w[i], NULL};
    }
    tt_norm_linears(ctx, &x, a, s->affine ? 1 : 2);
}

/* What is added to, hidden, what the norm gives, x, w, w, two arrays of the norm,
 * and where outputs would be. */
static void call_norm_mlp(void *const *p, const void *shape)
{
    const after_shape *s = shape;
    const int64_t n = s->n, o = s->o;
    const tt_normed x = normed_of(s, p, p[2]);
    const tt_tensor up = tt_tensor_make(p[4], TT_F32, 2,
                                        (int64_t[]){s->hidden, s->k});
    const tt_tensor down = tt_tensor_make(p[5], TT_F32, 2,
                                          (int64_t[]){o, s->hidden});
    tt_norm_mlp(ctx, &x, &(tt_linear_args){p[1], p[2], n, &up, NULL},
                &(tt_linear_args){p[8], p[1], n, &down, NULL},
                &(tt_gate_add_args){p[0], p[8], n, o, NULL, 0, 0});
}

/* What is added to, o, q, k, v, w, b, gates, and where outputs would be. */
static void call_attention_add(void *const *p, const void *shape)
{
    const after_shape *s = shape;
    const tt_tensor w = tt_tensor_make(p[5], TT_F32, 2,
                                       (int64_t[]){s->o, s->k});
    const tt_attention_args x = {
        .o = p[1], .q = p[2], .k = p[3], .v = p[4], .T = s->n, .N = s->N,
        .H = s->k / s->D, .D = s->D, .q_stride = s->k, .kv_stride = s->k,
        .scale = 0.5f};
    tt_attention_add(ctx, &x, &(tt_linear_args){p[8], p[1], s->n, &w, p[6]},
                     &(tt_gate_add_args){p[0], p[8], s->n, s->o, p[7], s->o,
                                         s->n / 3 + 1});
}

static void check_after(const after_shape *s, int kind)
{
    const int64_t n = s->n, k = s->k, o = s->o, groups = 3 * (k + o);
    operand l[OPERANDS] = {
        output(n * o), output(n * o), output(n * k), floats(n * k, kind),
        floats(o * k, NORMAL), floats(o * k, NORMAL), floats(groups, NORMAL),
        floats(groups, NORMAL),
    };
    operand m[OPERANDS] = {
        output(n * o), output(n * s->hidden), output(n * k),
        floats(n * k, kind), floats(s->hidden * k, NORMAL),
        floats(o * s->hidden, NORMAL), floats(groups, NORMAL),
        floats(groups, NORMAL), output(n * o),
    };
    operand t[OPERANDS] = {
        output(n * o), output(n * k), floats(n * k, kind),
        floats(s->N * k, kind), floats(s->N * k, kind), floats(o * k, NORMAL),
        floats(o, NORMAL), floats(groups, NORMAL), output(n * o),
    };
    l[1].scratch = s->affine;        /* one layer: nothing is there           */
    l[2].scratch = m[1].scratch = m[2].scratch = m[8].scratch = true;
    t[1].scratch = t[8].scratch = true;
    check(call_norm_linears, s, l, "linear layers of a norm%s %lldx%lldx%lld "
          "kind %d", s->affine ? " affine" : "", (long long)n, (long long)o,
          (long long)k, kind);
    check(call_norm_mlp, s, m, "linear layers of an FFN of a norm%s "
          "%lldx%lldx%lldx%lld kind %d", s->affine ? " affine" : "",
          (long long)n, (long long)s->hidden, (long long)o, (long long)k, kind);
    check(call_attention_add, s, t, "linear of an attention T%lld N%lld H%lld "
          "D%lld o%lld kind %d", (long long)n, (long long)s->N,
          (long long)(k / s->D), (long long)s->D, (long long)o, kind);
}

/* Of the last three, rows do not fill blocks, outputs do not lie by fours, and
 * heads are not 128 wide. */
static void test_after(void)
{
    static const after_shape shapes[] = {
        {130, 256, 36, 128, true, 128, 200}, {257, 128, 260, 192, false, 128, 5},
        {70, 384, 132, 64, false, 128, 130}, {5, 128, 8, 64, true, 128, 300},
        {129, 72, 12, 64, false, 24, 33},    {140, 128, 7, 64, true, 128, 9},
        {131, 128, 8, 64, false, 64, 40},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < KINDS; kind += kind == NORMAL ? SPECIAL : 1)
            check_after(&shapes[i], kind);
}

/* ---- convolution --------------------------------------------------------- */

/* A convolution, the type of its weights, and bytes of a frame's begin that it
 * does not see. */
typedef struct conv_shape {
    tt_conv_args a;
    tt_dtype type;
    int64_t skew;
} conv_shape;

static void call_conv(void *const *p, const void *shape)
{
    const conv_shape *s = shape;
    tt_conv_args a = s->a;
    const int64_t dim[] = {a.Cout, a.kt, a.kh, a.kw, a.Cin};
    const tt_real *frame[4];
    const tt_tensor w = tt_tensor_make(p[1], s->type, 5, dim);
    for (int i = 0; i < 4; i++)
        frame[i] = p[3 + i] ? (void *)((char *)p[3 + i] + s->skew) : NULL;
    a.y = p[0];
    a.w = &w;
    a.b = p[2];
    a.frame = frame;
    tt_conv(ctx, &a);
}

/* Values as packed bf16 numbers. */
static operand narrowed(operand o)
{
    char *x = o.data;
    for (int64_t i = 0; i < o.n; i++) {
        float v;
        memcpy(&v, x + 4 * i, sizeof v);
        const uint16_t half = tt_bf16_from_f32(v);
        memcpy(x + 2 * i, &half, sizeof half);
    }
    return (operand){.type = BYTES, .n = 2 * o.n, .data = x};
}

static void check_conv(const conv_shape *s, int x, int w, int frames, bool bias,
                       const char *name)
{
    const tt_conv_args *c = &s->a;
    const int64_t k = (int64_t)c->kt * c->kh * c->kw * c->Cin;
    operand o[OPERANDS] = {output(c->Ho * c->Wo * c->Cout),
                           floats(c->Cout * k, w)};
    if (s->type == TT_BF16) o[1] = narrowed(o[1]);
    if (bias) o[2] = floats(c->Cout, NORMAL);
    for (int f = 0; f < c->kt; f++) {
        if (!(frames >> f & 1)) continue;
        o[3 + f] = floats(c->Hi * c->Wi * c->Cin + s->skew, x);
        if (c->bf16) o[3 + f] = narrowed(o[3 + f]);
    }
    check(call_conv, s, o, "conv %s", name);
}

/* Of another class also by that class's sum, of frames of values and of bf16
 * numbers. */
static void test_conv(void)
{
    const int ways = cls == TT_CLASS_F32 ? 1 : 3;
    for (int v = 0; v < 24 * ways; v++) {
        const int way = v / 24, n = v % 24;
        conv_shape s = {{.kt = n % 3 ? 3 : 1, .kh = n % 4 ? 3 : 1,
                         .stride = n % 8 == 7 ? 2 : 1,
                         .up = n % 5 == 4 ? 2 : 1,
                         .by_class = way > 0, .bf16 = way > 1},
                        way == 2 && n % 2 ? TT_BF16 : TT_F32, 0};
        tt_conv_args *c = &s.a;
        char name[64];
        if (way && n == 4) c->kt = 4;
        c->kw = c->kh;
        c->Hi = 1 + n % 12;
        c->Wi = 17 - n % 7;
        c->Cin = n % 2 ? 24 : way && n % 4 ? 16 : 7;
        c->Cout = n % 3 ? n % 4 ? 132 : 20 : 3;
        c->pad_top = c->pad_left = c->stride == 2 ? 0 : c->kh / 2;
        c->Ho = (c->Hi * c->up + c->stride - 1) / c->stride;
        c->Wo = c->Wi * c->up / c->stride;
        const int x = c->stride == 2 ? NORMAL : n / 2 % KINDS;
        const int w = c->kt == 4 ? SPECIAL : c->stride == 2 ? NORMAL
                    : way > 1 ? x : n % KINDS;
        if (way > 1 && n % 12 == 5) s.skew = 4;
        snprintf(name, sizeof name, "variant %d%s%s", n,
                 c->by_class ? " by class" : "", c->bf16 ? " of bf16" : "");
        check_conv(&s, x, w, n % 4 < 2 ? 15 : 14, (n + way / 2) % 2,
                   name);
    }
}

/* Windows that are written down in more than one piece. */
static void test_pieces(void)
{
    const conv_shape s = {{.kt = 3, .kh = 7, .kw = 7, .stride = 1, .up = 1,
                           .Hi = 65, .Wi = 70, .Cin = 7, .Ho = 65, .Wo = 70,
                           .Cout = 3, .pad_top = 3, .pad_left = 3,
                           .by_class = true}, TT_F32, 0};
    check_conv(&s, NORMAL, NORMAL, 15, true, "in pieces");
}

/* Several tiles of channels, whose weights lie in parts of blocks. Numbers of
 * its own, as test_fused. */
static void test_channels(void)
{
    const uint64_t held = state;
    for (int Cout = 97; Cout < 512; Cout += 161) {
        const conv_shape s = {{.kt = 1, .kh = 3, .kw = 3, .stride = 1, .up = 1,
                               .Hi = 5, .Wi = 4, .Cin = 16, .Ho = 5, .Wo = 4,
                               .Cout = Cout, .pad_top = 1, .pad_left = 1,
                               .by_class = true}, TT_BF16, 0};
        char name[64];
        snprintf(name, sizeof name, "of %d channels by class", Cout);
        check_conv(&s, NORMAL, NORMAL, 1, true, name);
    }
    state = held;
}

/* ---- attention ----------------------------------------------------------- */

static void call_attention(void *const *p, const void *shape)
{
    tt_attention_args a = *(const tt_attention_args *)shape;
    a.o = p[0];
    a.q = p[1];
    a.k = p[2];
    a.v = p[3];
    a.rel_bias = p[4];
    a.key_mask = p[5];
    tt_attention(ctx, &a);
}

/* Some keys are hidden; of every third kind the first half, of the next one
 * all. */
static operand mask(int64_t n, int kind)
{
    operand o = {.type = BYTES, .n = n, .host = true};
    uint8_t *b = malloc((size_t)n + 1);
    TT_ASSERT(b);
    for (int64_t i = 0; i < n; i++)
        b[i] = uniform() < 0.7 && kind % 3 != 2 && (kind % 3 != 1 || i >= n / 2);
    o.data = b;
    return o;
}

/* Keys or values, as the arguments say. */
static operand keys_of(const tt_attention_args *a, int kind)
{
    const int64_t n = (a->N - 1) * a->kv_stride + a->H * a->D;
    return a->bf16 ? narrowed(floats(n, kind)) : floats(n, kind);
}

static void check_attention(const tt_attention_args *a, bool bias, int kind)
{
    const int64_t width = a->H * a->D;
    operand o[OPERANDS] = {
        output(a->T * width), floats((a->T - 1) * a->q_stride + width, kind),
        keys_of(a, kind == BIG ? NORMAL : kind), keys_of(a, kind),
    };
    if (bias) {
        o[4] = floats(a->H * (2 * a->N - 1), NORMAL);
        o[5] = mask(a->N, kind);
    }
    check(call_attention, a, o, "attention%s T%lld N%lld H%lld D%lld kind %d",
          a->bf16 ? " of bf16" : "", (long long)a->T, (long long)a->N,
          (long long)a->H, (long long)a->D, kind);
}

static void test_attention(void)
{
    static const struct { int64_t T, N, H, D, extra; bool bias; } shapes[] = {
        {1, 1, 1, 128, 0, 0},     {3, 5, 2, 128, 0, 0},
        {64, 512, 1, 128, 0, 0},  {65, 513, 2, 128, 128, 0},
        {70, 1030, 1, 128, 4, 0}, {64, 769, 1, 128, 0, 0},
        {100, 300, 3, 128, 0, 0}, {10, 255, 1, 128, 0, 0},
        {66, 257, 1, 128, 0, 0},  {1, 1537, 1, 128, 0, 0},
        {5, 700, 2, 64, 0, 0},    {9, 33, 3, 22, 5, 0},
        {40, 40, 2, 16, 0, 1},    {30, 600, 1, 384, 0, 0},
        {7, 7, 4, 6, 0, 1},       {20, 20, 1, 128, 0, 1},
        {33, 290, 1, 128, 1, 0},  {530, 530, 1, 8, 0, 1},
        {200, 300, 2, 128, 0, 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (shapes[i].T * shapes[i].N > 20000 && kind % 2) continue;
            tt_attention_args a = {.T = shapes[i].T, .N = shapes[i].N,
                                   .H = shapes[i].H, .D = shapes[i].D};
            const int64_t width = a.H * a.D;
            a.q_stride = width + shapes[i].extra;
            a.kv_stride = width + 2 * shapes[i].extra;
            a.scale = (float)(1 / sqrt((double)a.D));
            if (kind == NORMAL) a.scale *= 8;
            check_attention(&a, shapes[i].bias, kind);
            a.bf16 = cls != TT_CLASS_F32 && kind == NORMAL;
            if (a.bf16) check_attention(&a, shapes[i].bias, kind);
        }
}

/* Keys and values that an earlier call prepared: p[4] and p[5] are those of that
 * call, of which the leading ones alone are those of p[2] and p[3]. */
static void call_prepared(void *const *p, const void *shape)
{
    tt_attention_args a = *(const tt_attention_args *)shape;
    const int64_t good = a.n_packed, skipped = good * a.kv_stride;
    const size_t skip = (size_t)skipped * (a.bf16 ? 2 : 4);
    a.o = p[0];
    a.q = p[1];
    a.k = p[2];
    a.v = p[3];
    a.n_packed = 0;
    if (!ctx->ops->packed) {
        tt_attention(ctx, &a);
        return;
    }
    const int64_t n = a.H * ctx->ops->packed(ctx, a.N, a.D);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t T = a.T;
    a.packed = tt_values(ctx, n);
    a.k = p[4];
    a.v = p[5];
    a.T = 0;
    tt_attention(ctx, &a);
    a.T = T;
    a.n_packed = good;
    a.k = (void *)((char *)p[2] + skip);
    a.v = (void *)((char *)p[3] + skip);
    tt_attention(ctx, &a);
    tt_arena_reset(&ctx->scratch, mark);
}

static operand leading(const tt_attention_args *a, const operand *of)
{
    operand o = keys_of(a, NORMAL);
    const size_t n = (size_t)(a->n_packed * a->kv_stride) * (a->bf16 ? 2 : 4);
    memcpy(o.data, of->data, n < bytes_of(of) ? n : bytes_of(of));
    return o;
}

static void test_prepared(void)
{
    static const struct { int64_t T, N, H, D, good, extra; } shapes[] = {
        {3, 520, 2, 128, 512, 0},   {70, 1100, 1, 128, 512, 4},
        {5, 300, 2, 128, 300, 0},   {3, 520, 2, 24, 512, 0},
        {4, 1100, 1, 40, 512, 3},   {5, 130, 2, 64, 130, 0},
    };
    if (cls == TT_CLASS_F32) return;
    const size_t n = sizeof shapes / sizeof *shapes;
    for (size_t v = 0; v < 2 * n; v++) {
        const size_t i = v % n;
        tt_attention_args a = {.T = shapes[i].T, .N = shapes[i].N,
                               .H = shapes[i].H, .D = shapes[i].D,
                               .n_packed = shapes[i].good, .scale = 0.5f,
                               .bf16 = v >= n};
        a.q_stride = a.H * a.D;
        a.kv_stride = a.H * a.D + shapes[i].extra;
        operand o[OPERANDS] = {
            output(a.T * a.q_stride), floats(a.T * a.q_stride, NORMAL),
            keys_of(&a, NORMAL), keys_of(&a, NORMAL),
        };
        o[4] = leading(&a, &o[2]);
        o[5] = leading(&a, &o[3]);
        check(call_prepared, &a, o, "attention of prepared keys%s T%lld N%lld "
              "D%lld", a.bf16 ? ", bf16," : "", (long long)a.T, (long long)a.N,
              (long long)a.D);
    }
}

/* More tiles than multiprocessors, so that some are whole: where it is asked for
 * by name, for a GPU. */
static void test_whole(void)
{
    const tt_attention_args a = {.T = 129, .N = 130, .H = 67, .D = 128,
                                 .q_stride = 67 * 128, .kv_stride = 67 * 128,
                                 .scale = 0.5f};
    if (!only || !strstr(only, "whole")) return;
    operand o[OPERANDS] = {
        output(a.T * a.q_stride), floats(a.T * a.q_stride, NORMAL),
        floats(a.N * a.q_stride, NORMAL), floats(a.N * a.q_stride, NORMAL),
    };
    check(call_attention, &a, o, "attention of whole tiles");
}

/* ---- rows, columns, elements --------------------------------------------- */

enum {
    LAYER_NORM, LAYER_NORM_AFFINE, RMS_NORM, CHANNEL_NORM,
    LAYER_NORM_IN_PLACE, RMS_NORM_IN_PLACE, CHANNEL_NORM_IN_PLACE, MODULATE, GATE_ADD, ADD, MUL, GELU, SILU, COL_MEAN, COL_MOMENT, COL_BLEND, COL_AVERAGE, ROW_OPS
};
static const char *const row_names[ROW_OPS] = {
    "layer_norm", "layer_norm affine", "rms_norm", "channel_norm",
    "layer_norm in place", "rms_norm in place", "channel_norm in place",
    "modulate", "gate_add", "add", "mul", "gelu_tanh",
    "silu", "col_mean", "col_moment", "col_blend", "col_blend average",
};

#define AVERAGE_TAU 0.1
typedef struct row_shape {
    int op;
    int64_t n, c, rows;
} row_shape;

/* y, x, w, b in memory of values; three arrays of doubles. */
static void call_row(void *const *p, const void *shape)
{
    const row_shape *s = shape;
    const int64_t n = s->n, c = s->c;
    switch (s->op) {
    case LAYER_NORM:
        tt_layer_norm(ctx, p[0], p[1], n, c, NULL, NULL, 1e-6);
        break;
    case LAYER_NORM_AFFINE:
        tt_layer_norm(ctx, p[0], p[1], n, c, p[2], p[3], 1e-6);
        break;
    case RMS_NORM: tt_rms_norm(ctx, p[0], p[1], n, c, p[2], 1e-6); break;
    case RMS_NORM_IN_PLACE:
        tt_rms_norm(ctx, p[0], p[0], n, c, p[2], 1e-6);
        break;
    case CHANNEL_NORM: tt_channel_norm(ctx, p[0], p[1], n, c, p[2]); break;
    case LAYER_NORM_IN_PLACE:
        tt_layer_norm(ctx, p[0], p[0], n, c, p[2], p[3], 1e-6);
        break;
    case CHANNEL_NORM_IN_PLACE:
        tt_channel_norm(ctx, p[0], p[0], n, c, p[2]);
        break;
    case MODULATE:
        tt_modulate(ctx, p[0], n, c, p[2], p[3], 2 * c, s->rows);
        break;
    case GATE_ADD:
        tt_gate_add(ctx, p[0], p[1], n, c, p[2], 2 * c, s->rows);
        break;
    case ADD: tt_add(ctx, p[0], p[1], n * c); break;
    case MUL: tt_mul(ctx, p[0], p[1], n * c); break;
    case GELU: tt_gelu_tanh(ctx, p[0], n * c); break;
    case SILU: tt_silu(ctx, p[0], n * c); break;
    case COL_MEAN: tt_col_mean(ctx, p[4], p[1], n, c); break;
    case COL_MOMENT: tt_col_moment(ctx, p[4], p[1], p[5], n, c); break;
    case COL_BLEND:
        tt_col_blend(ctx, p[0], n, c, p[4], p[5], p[6], 0.35);
        break;
    default: tt_col_blend(ctx, p[0], n, c, NULL, NULL, p[6], AVERAGE_TAU);
    }
}

/* Of a row's average little but the rounding of its products is left. */
static void cancel_average(operand *target, const operand *x)
{
    double *to = target->data;
    for (int64_t i = 0; i < target->n; i++)
        to[i] = -(1 - AVERAGE_TAU) * (double)((float *)x->data)[i] / AVERAGE_TAU;
}

static void test_rows(void)
{
    static const int64_t shapes[][2] = {
        {18, 96}, {5, 37}, {1, 16}, {2, 15}, {3, 1536}, {33, 1}, {70, 65},
        {135, 3}, {4, 105},
    };
    for (int op = 0; op < ROW_OPS; op++)
        for (int kind = 0; kind <= CANCEL; kind++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                const row_shape s = {op, shapes[i][0], shapes[i][1],
                                     (shapes[i][0] + 1) / 2};
                const int64_t groups = (s.n - 1) / s.rows * 2 * s.c + s.c;
                operand o[OPERANDS] = {
                    written(floats(s.n * s.c, kind)), floats(s.n * s.c, kind),
                    floats(op < MODULATE ? s.c : groups, kind),
                    floats(op < MODULATE ? s.c : groups, NORMAL),
                    written(doubles(s.c)), doubles(s.c), doubles(s.c),
                };
                if (op == COL_AVERAGE && kind == CANCEL)
                    cancel_average(&o[6], &o[0]);
                /* statistics may be on either side */
                o[4].host = o[5].host = o[6].host = i % 2;
                check(call_row, &s, o, "%s %lldx%lld kind %d", row_names[op],
                      (long long)s.n, (long long)s.c, kind);
            }
}

/* SiLU and GELU of floats of every size and sign. */
static void test_gates(void)
{
    const int64_t n = 65536;
    for (int op = GELU; op <= SILU; op++) {
        const row_shape s = {op, 1, n, 1};
        operand o[OPERANDS] = {output(n)};
        uint32_t *bits = o[0].data;
        for (int64_t i = 0; i < n; i++) bits[i] = (uint32_t)(i * 65521);
        check(call_row, &s, o, "%s of all sizes", row_names[op]);
    }
}

/* ---- what is chosen ------------------------------------------------------ */

typedef struct choice {
    enum { LOCATE, PICK, NARROW } verb;
    int64_t n, c, count;
} choice;

/* The verb of the GPU, or that of the host. */
static void call_verb(void *const *p, const void *shape)
{
    const choice *s = shape;
    const tt_device *gpu = ctx->device;
    if (strcmp(ctx->ops->name, "cuda")) ctx->device = NULL;
    switch (s->verb) {
    case LOCATE:
        tt_locate(ctx, &(tt_locate_args){p[0], p[1], 7, s->count, s->n, s->c,
                                         s->c < 4 ? 1 : 4});
        break;
    case NARROW: tt_narrow(ctx, p[0], p[1], s->n); break;
    default:
        tt_pick(ctx, &(tt_pick_args){p[0], p[1], p[2], s->count, s->c, s->c + 3,
                                     s->c + 1});
    }
    ctx->device = gpu;
}

static operand bytes(int64_t n, int most)
{
    operand o = {.type = BYTES, .n = n, .data = malloc((size_t)n + 1)};
    uint8_t *b = o.data;
    TT_ASSERT(b);
    for (int64_t i = 0; i < n; i++) b[i] = (uint8_t)(uniform() * most);
    return o;
}

/* Numbers of every size; ties; one NaN, for a payload is no one's. */
static void test_narrow(int64_t n)
{
    const choice s = {NARROW, n, 1, 0};
    operand o[OPERANDS] = {written(bytes(2 * n, 256)), floats(n, NORMAL)};
    float *x = o[1].data;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t u = (uint32_t)i * 65521u, low = i % 3 ? 0x8000u : u;
        const uint32_t bits = (u & 0xffff0000u) | (low & 0xffffu);
        memcpy(x + i, &bits, sizeof bits);
        if (isnan(x[i])) memcpy(x + i, &(uint32_t){0x7fff0000u}, 4);
    }
    check(call_verb, &s, o, "narrow %lld", (long long)n);
}

/* Half of those that compete stay. */
static operand numbers(int64_t n, int most)
{
    operand o = bytes(4 * n, 1);
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)o.data)[i] = (int32_t)(uniform() * most);
    return o;
}

/* n tokens from inside a frame of L, with times and without. */
static void test_locate(int64_t n, int64_t L)
{
    choice s = {LOCATE, n, L, L - 1};
    operand time = numbers(n / L + 2, 1000);
    time.host = true;
    operand o[OPERANDS] = {written(bytes(12 * n, 256)), time};
    check(call_verb, &s, o, "locate %lld of %lld", (long long)n, (long long)L);
    operand without[OPERANDS] = {written(bytes(12 * n, 256))};
    check(call_verb, &s, without, "locate %lld of %lld without times",
          (long long)n, (long long)L);
}

/* Some rows, and with no list the first ones. */
static void test_pick(int64_t n, int64_t c, int64_t count)
{
    choice s = {PICK, n, c, count};
    operand list = bytes(4 * count, 1);
    for (int64_t k = 0; k < count; k++)
        ((int32_t *)list.data)[k] = (int32_t)(uniform() * (double)n);
    operand o[OPERANDS] = {output(count * (c + 1)),
                           floats(n * (c + 3), NORMAL), list};
    check(call_verb, &s, o, "pick %lldx%lld", (long long)n, (long long)c);
    s.count = n;
    operand whole[OPERANDS] = {output(n * (c + 1)),
                               floats(n * (c + 3), NORMAL)};
    check(call_verb, &s, whole, "pick all of %lldx%lld", (long long)n,
          (long long)c);
}

static void call_nothing(void *const *p, const void *shape)
{
    (void)p, (void)shape;
}

/* What is only put there and got: a few words, and more. */
static void test_words(void)
{
    static const int64_t n[] = {1, 2, 5, 64, 255, 256, 257, 3000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        operand o[OPERANDS] = {floats(n[i], WIDE)};
        check(call_nothing, NULL, o, "words %lld", (long long)n[i]);
    }
}

static void test_choices(void)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {4, 96, 9}, {3, 37, 2}, {70, 65, 40}, {5, 3000, 300},
        {600, 3, 7},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        test_pick(shapes[i][0], shapes[i][1], shapes[i][2]);
    for (int64_t n = 1; n < 70000; n = 256 * n - 1) test_narrow(n);
    for (int64_t L = 1; L < 2000; L = 6 * L + 1) test_locate(9 * L + 2, L);
    test_locate(400, 3);
}

typedef struct rope_shape {
    int64_t T, H, D, npos;
} rope_shape;

static void call_rope(void *const *p, const void *shape)
{
    const rope_shape *s = shape;
    const int64_t c = s->D / 2;
    const tt_rope_table table = {p[2], p[3], s->npos,
                                 {c - 2 * (c / 3), c / 3, c / 3}};
    tt_rope(ctx, p[0], p[1], s->T, s->H, s->D, &table, p[4]);
}

/* Equal parts and equal angles: of a cos - b sin the rounding is left, and
 * shows which product it was of. */
static void cancel_pairs(operand *x, operand *cosine, operand *sine)
{
    float *v = x->data;
    for (int64_t i = 0; i + 1 < x->n; i += 2) v[i] = v[i + 1] = (float)number(0);
    memcpy(sine->data, cosine->data, bytes_of(sine));
}

static void test_rope(void)
{
    static const rope_shape shapes[] = {
        {1, 1, 2, 3}, {7, 3, 22, 40}, {50, 2, 128, 60}, {33, 5, 10, 9},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind <= KINDS; kind++) {
            const rope_shape *s = &shapes[i];
            const int64_t n = s->T * s->H * s->D, angles = s->npos * s->D / 2;
            operand o[OPERANDS] = {output(n), floats(n, kind), doubles(angles),
                                   doubles(angles)};
            o[4] = (operand){.type = BYTES, .n = 12 * s->T, .host = true};
            if (kind == KINDS) cancel_pairs(&o[1], &o[2], &o[3]);
            int32_t *pos = malloc((size_t)(12 * s->T));
            TT_ASSERT(pos);
            for (int64_t t = 0; t < 3 * s->T; t++)
                pos[t] = (int32_t)(uniform() * (double)s->npos);
            o[4].data = pos;
            check(call_rope, s, o, "rope %lldx%lldx%lld kind %d",
                  (long long)s->T, (long long)s->H, (long long)s->D, kind);
        }
}

/* ---- classes ------------------------------------------------------------- */

/* Does this GPU compute in class c? Where not, the backend says so. */
static bool has_class(tt_class c)
{
    tt_real x = 1, w = 1, y = 0;
    const tt_tensor t = tt_tensor_make(&w, TT_F32, 2, (int64_t[]){1, 1});
    ctx->ops = tt_ops_class(tt_ops_find("cuda"), c);
    tt_linear(ctx, &y, &x, 1, &t, NULL);
    const bool has = ctx->status == TT_OK;
    expect(has || (ctx->status == TT_EUNSUPPORTED &&
                   strstr(tt_message(ctx), tt_class_name(c))),
           "class %s: %s", tt_class_name(c), tt_message(ctx));
    tt_clear(ctx);
    return has;
}

static void test_classes(void)
{
    int n = 0;
    for (int c = TT_CLASS_SM80; c <= TT_CLASS_SM90; c++) {
        if (!has_class((tt_class)c)) continue;
        n++;
        cls = (tt_class)c;
        test_linear();
        test_stored();
        test_conv();
        test_pieces();
        test_channels();
        test_fused();
        test_attention();
        test_prepared();
        test_several();
        test_after();
        test_whole();
    }
    expect(n == 1, "%d classes of tensor cores, not one", n);
}

int main(int argc, char **argv)
{
    ctx = test_begin("cuda/kernels");
    brief = argc > 1 && !strcmp(argv[1], "--brief");
    only = argc > 1 + brief ? argv[1 + brief] : NULL;
    first = argc > 2 + brief;
    if (!expect_ok(tt_ops_use(ctx, "cuda"), "the backend cuda opens"))
        return test_end();
    test_linear();
    test_stored();
    test_fused();
    test_conv();
    test_attention();
    test_rows();
    test_gates();
    test_choices();
    test_words();
    test_rope();
    test_classes();
    return test_end();
}
