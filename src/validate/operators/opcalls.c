/* opcalls.c: see opcalls.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/opcalls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------- */

/* splitmix64 */
static uint64_t rng_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t rng_below(uint64_t *state, int64_t n)
{
    return (int64_t)(rng_next(state) >> 11) % n;
}

static double rng_normal(uint64_t *state)
{
    double s = 0;                        /* twelve uniforms: variance 1 */
    for (int i = 0; i < 12; i++) s += (double)(rng_next(state) >> 11) * 0x1p-53;
    return s - 6;
}

/* ---- sizes --------------------------------------------------------------- */

static int64_t draw(uint64_t *rng, int64_t most)
{
    static const int64_t list[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24,
                                   31, 32, 33, 48, 63, 64, 65, 96, 127, 128,
                                   129, 256, 511, 512, 513, 600, 1024, 1030};
    int n = 0;
    while (n < (int)(sizeof list / sizeof *list) && list[n] <= most) n++;
    return list[rng_below(rng, n)];
}

static void size(op_sizes *s, const char *name, int64_t v, int64_t least)
{
    s->name[s->n] = name;
    s->v[s->n] = v;
    s->least[s->n++] = least;
}

static void sizes_conv(op_sizes *s, uint64_t *rng)
{
    size(s, "H", draw(rng, 17), 1);
    size(s, "W", draw(rng, 17), 1);
    size(s, "in", draw(rng, 33), 1);
    size(s, "out", draw(rng, 33), 1);
    size(s, "frames", rng_below(rng, 2) ? 3 : 1, 1);
    size(s, "kernel", rng_below(rng, 3) ? 3 : 1, 1);
    size(s, "mode", rng_below(rng, 4), 0);     /* 0, 1 plain, 2 stride, 3 up */
}

void sizes_draw(op_sizes *s, op_kind op, uint64_t *rng)
{
    s->n = 0;
    switch (op) {
    case OP_LINEAR:
        size(s, "n", draw(rng, 129), 1);
        size(s, "i", draw(rng, 1030), 1);
        size(s, "o", draw(rng, s->v[0] > 33 ? 33 : 129), 1);
        break;
    case OP_ATTENTION:
        size(s, "T", draw(rng, 65), 1);
        size(s, "N", draw(rng, 1030), 1);
        size(s, "H", 1 + rng_below(rng, 4), 1);
        size(s, "D", draw(rng, 64), 1);
        size(s, "bias", rng_below(rng, 4) == 0, 0); /* then T = N */
        size(s, "masked", rng_below(rng, 3) == 0 ? 1 + rng_below(rng, 5) : 0,
             0);
        if (s->v[4]) s->v[1] = s->v[0];
        break;
    case OP_CONV: sizes_conv(s, rng); break;
    case OP_MODULATE: case OP_GATE_ADD:
        size(s, "groups", 1 + rng_below(rng, 4), 1);
        size(s, "rows", draw(rng, 17), 1);
        size(s, "c", draw(rng, 129), 1);
        break;
    case OP_ROPE:
        size(s, "T", draw(rng, 17), 1);
        size(s, "H", 1 + rng_below(rng, 4), 1);
        size(s, "pairs", draw(rng, 32), 1);         /* D = 2 pairs */
        break;
    case OP_ADD: case OP_MUL: case OP_GELU_TANH: case OP_SILU:
        size(s, "n", draw(rng, 1030), 1);
        break;
    default:
        size(s, "n", draw(rng, 65), 1);
        size(s, "c", draw(rng, 600), 1);
    }
}

bool sizes_large(op_sizes *s, int *lay, op_kind op, int64_t i)
{
    static const struct large {
        op_kind op;
        int lay;
        int64_t v[SIZES_MAX];
    } list[] = {
        {OP_LINEAR, LAY_SCALED, {5, 33, 9}}, {OP_LINEAR, LAY_HEAVY, {5, 33, 9}},
        {OP_LINEAR, 0, {600, 3, 5}}, {OP_LINEAR, 0, {66000, 1, 1}},
        {OP_LINEAR, 0, {1, 2, 66000}}, {OP_ATTENTION, 0, {3, 40, 2, 128}},
        {OP_ATTENTION, 0, {2, 19, 1, 384}}, {OP_ATTENTION, 0, {600, 3, 1, 5}},
        {OP_ATTENTION, 0, {1, 66000, 1, 2}},
        {OP_ATTENTION, 0, {66000, 2, 1, 1}},
        {OP_ATTENTION, 0, {3, 5, 2, 8, 0, -1}},
        {OP_CONV, LAY_SCALED, {5, 7, 6, 4, 3, 3, 0}},
        {OP_CONV, LAY_HEAVY, {5, 7, 6, 4, 3, 3, 0}},
        {OP_CONV, 0, {363, 367, 1, 1, 1, 1, 0}},
        {OP_LAYER_NORM, 0, {66000, 2}}, {OP_LAYER_NORM, 0, {2, 5120}},
        {OP_RMS_NORM, 0, {66000, 2}}, {OP_RMS_NORM, 0, {2, 5120}},
        {OP_CHANNEL_NORM, 0, {66000, 2}}, {OP_CHANNEL_NORM, 0, {2, 1024}},
        {OP_MODULATE, 0, {2, 33000, 2}}, {OP_GATE_ADD, 0, {2, 33000, 2}},
        {OP_ADD, 0, {132000}}, {OP_MUL, 0, {132000}}, {OP_SILU, 0, {132000}},
        {OP_GELU_TANH, 0, {132000}}, {OP_ROPE, 0, {66000, 1, 1}},
        {OP_COL_MEAN, 0, {66000, 2}}, {OP_COL_MOMENT, 0, {66000, 2}},
        {OP_COL_BLEND, 0, {66000, 2}}};
    const struct large *l = list, *end = list + sizeof list / sizeof *list;
    uint64_t rng = 1;
    for (; l < end; l++)
        if (l->op == op && i-- == 0) break;
    if (l == end) return false;
    sizes_draw(s, op, &rng);                   /* for the names */
    for (int k = 0; k < s->n; k++) s->v[k] = l->v[k];
    *lay = l->lay;
    return true;
}

const char *sizes_string(char *buf, size_t n, const op_sizes *s)
{
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < s->n && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%s=%lld",
                                 i ? " " : "", s->name[i], (long long)s->v[i]);
    return buf;
}

/* ---- inputs -------------------------------------------------------------- */

const char *input_name(op_input in)
{
    static const char *const name[IN_KINDS] = {
        "normal", "zero", "denormal", "huge", "tiny", "one-hot", "constant",
        "offset", "mixed", "nonfinite"};
    return name[in];
}

bool input_applies(op_kind op, op_input in)
{
    const bool simple = op == OP_LINEAR || op == OP_ADD || op == OP_MUL ||
                        op == OP_MODULATE || op == OP_GATE_ADD ||
                        op == OP_GELU_TANH || op == OP_SILU;
    if (in == IN_NONFINITE) return simple;
    const bool norm = op == OP_LAYER_NORM || op == OP_RMS_NORM
                      || op == OP_CHANNEL_NORM;
    /* sums of squares of such values do not exist in float32 */
    if (in == IN_HUGE || in == IN_DENORMAL || in == IN_TINY)
        return simple || op == OP_CONV || op == OP_ROPE
               || (norm && in == IN_TINY);
    return true;
}

typedef struct maker {
    tt_ctx *ctx;
    op_input in;
    uint64_t rng;
    int lay;
} maker;

/* n elements between two margins: of 0xff, NaN in every floating-point type,
 * or of zeros around indices. */
static void *opcalls_place(maker *m, int64_t n, size_t size, bool real)
{
    enum { MARGIN = 64 };
    const size_t bytes = (size_t)n * size, shift = m->lay & LAY_ODD ? size : 0;
    char *p = tt_alloc(m->ctx, &m->ctx->scratch,
                       (int64_t)(bytes + 2 * MARGIN + shift), 1, "test input");
    if (!p) return NULL;
    memset(p, real ? 0xff : 0, bytes + 2 * MARGIN + shift);
    return p + MARGIN + shift;
}

/* Element i of n, rows of c values. */
static double value(maker *m, op_input in, int64_t i, int64_t n, int64_t c)
{
    const double x = rng_normal(&m->rng);
    switch (in) {
    case IN_ZERO: return 0;
    case IN_DENORMAL: return x * 0x1p-130;
    case IN_HUGE: return x * 0x1p40;
    case IN_TINY: return x * 0x1p-40;
    case IN_ONE_HOT: return i % c == (i / c * 7 + 3) % c;
    case IN_CONSTANT: return 0.75 + 0.25 * (double)(i / c % 3);
    case IN_OFFSET: return 30 + x;
    case IN_MIXED:                       /* of a single row: the elements */
        return n == c ? ldexp(x, (int)(i % 9) - 3)
                      : ldexp(x, (int)(i / c % 9) * 4 - 16);
    case IN_NONFINITE:
        return i == n / 2 ? NAN : i == n / 3 ? INFINITY : x;
    default: return x;
    }
}

static tt_real *opcalls_fill(maker *m, op_input in, int64_t n, int64_t c)
{
    tt_real *x = opcalls_place(m, n, sizeof *x, true);
    for (int64_t i = 0; x && i < n; i++) x[i] = (tt_real)value(m, in, i, n, c);
    return x;
}

/* Parameters: ordinary values whatever the activations are. */
static tt_real *params(maker *m, int64_t n, double scale)
{
    tt_real *x = opcalls_fill(m, IN_NORMAL, n, n);
    for (int64_t i = 0; x && i < n; i++) x[i] *= (tt_real)scale;
    return x;
}

static double *opcalls_doubles(maker *m, int64_t n, double offset)
{
    double *x = opcalls_place(m, n, sizeof *x, true);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = offset + 0.25 * rng_normal(&m->rng);
    return x;
}

/* Any 8-bit numbers but NaN, of variance 1/fan_in with their scale. */
static const tt_tensor *scaled_weight(maker *m, tt_tensor *w, int rank,
                                      const int64_t *dim, int64_t n)
{
    uint8_t *p = opcalls_place(m, n, 1, true);
    if (!w || !p) return NULL;
    for (int64_t i = 0; i < n; i++) {
        p[i] = (uint8_t)rng_below(&m->rng, 256);
        if ((p[i] & 0x7f) == 0x7f) p[i] -= 8;
    }
    *w = tt_tensor_make(p, TT_F8_E4M3, rank, dim);
    w->scale = (float)(0.01 / sqrt((double)(n / dim[0])));
    return w;
}

/* A weight view in one of three stored types, values of variance 1/fan_in. */
static const tt_tensor *opcalls_weight(maker *m, int rank, const int64_t *dim)
{
    tt_tensor *w = tt_alloc(m->ctx, &m->ctx->scratch, 1, sizeof *w, "weight");
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    if (m->lay & LAY_SCALED) return scaled_weight(m, w, rank, dim, n);
    const bool heavy = m->lay & LAY_HEAVY;
    const double scale = (heavy ? 4096 : 1) / sqrt((double)(n / dim[0]));
    const int type = heavy ? 0 : (int)rng_below(&m->rng, 3);
    const size_t size = type ? 2 : 4;
    char *p = opcalls_place(m, n, size, true);
    if (!w || !p) return NULL;
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)(scale * rng_normal(&m->rng));
        const uint16_t h = type == 1 ? tt_bf16_from_f32(x) : tt_f16_from_f32(x);
        if (type) memcpy(p + 2 * i, &h, 2);
        else memcpy(p + 4 * i, &x, 4);
    }
    *w = tt_tensor_make(p, type == 0 ? TT_F32 : type == 1 ? TT_BF16 : TT_F16,
                        rank, dim);
    return w;
}

static void make_attention(maker *m, op_call *q, const int64_t *v)
{
    const int64_t T = v[0], N = v[4] ? T : v[1], H = v[2], D = v[3];
    const int64_t gap = m->lay & LAY_WIDE ? D : 0;
    tt_attention_args *a = &q->attn;
    *a = (tt_attention_args){.T = T, .N = N, .H = H, .D = D,
                             .q_stride = H * D + gap,
                             .kv_stride = H * D + 2 * gap,
                             .scale = (tt_real)(1 / sqrt((double)D))};
    /* far from zero on both sides, the logits would be all rounding error */
    const bool far = m->in == IN_OFFSET || m->in == IN_MIXED;
    a->q = opcalls_fill(m, far ? IN_NORMAL : m->in, T * a->q_stride,
                        a->q_stride);
    tt_real *k = opcalls_fill(m, m->in, N * a->kv_stride, a->kv_stride);
    a->k = k;
    a->v = opcalls_fill(m, m->in, N * a->kv_stride, a->kv_stride);
    if (v[4]) a->rel_bias = params(m, H * (2 * N - 1), 2);
    if (v[5] && v[5] < N) {      /* the last keys are padding; -1: all are */
        const int64_t seen = v[5] < 0 ? 0 : N - v[5];
        uint8_t *mask = opcalls_place(m, N, 1, false);
        for (int64_t j = 0; mask && j < N; j++) mask[j] = j < seen;
        /* a hidden logit that overflows f16 is NaN where a mask is added */
        for (int64_t i = seen * a->kv_stride; k && i < N * a->kv_stride; i++)
            k[i] *= m->in == IN_MIXED ? (tt_real)0x1p-8 : 1;
        a->key_mask = mask;
    }
}

static void make_conv(maker *m, op_call *q, const int64_t *v)
{
    tt_conv_args *p = &q->conv;
    const int64_t cin = v[2], kt = v[4], k = v[5];
    const tt_real **frame = tt_alloc(m->ctx, &m->ctx->scratch, kt,
                                     sizeof *frame, "frames");
    *p = (tt_conv_args){.frame = frame, .Hi = v[0], .Wi = v[1], .Cin = cin,
                        .Ho = v[0], .Wo = v[1], .Cout = v[3], .kt = (int)kt,
                        .kh = (int)k, .kw = (int)k, .stride = 1, .up = 1,
                        .pad_top = (int)k / 2, .pad_left = (int)k / 2};
    if (v[6] == 2 && k == 3 && v[0] > 1 && v[1] > 1) { /* as the encoder's */
        p->stride = 2, p->pad_top = p->pad_left = 0;
        p->Ho = v[0] / 2, p->Wo = v[1] / 2;
    } else if (v[6] == 3) {
        p->up = 2, p->Ho = 2 * v[0], p->Wo = 2 * v[1];
    }
    for (int64_t i = 0; frame && i < kt; i++)
        frame[i] = i == 0 && rng_below(&m->rng, 3) == 0
                       ? NULL : opcalls_fill(m, m->in, v[0] * v[1] * cin, cin);
    p->w = opcalls_weight(m, 5, (int64_t[]){v[3], kt, k, k, cin});
    p->b = rng_below(&m->rng, 4) ? params(m, v[3], 1) : NULL;
}

static void opcalls_make_rope(maker *m, op_call *q, const int64_t *v)
{
    tt_rope_table *t = tt_alloc(m->ctx, &m->ctx->scratch, 1, sizeof *t, "rope");
    int32_t *pos = opcalls_place(m, 3 * v[0], sizeof *pos, false);
    q->n = v[0], q->H = v[1], q->D = 2 * v[2], q->c = q->H * q->D;
    q->x = opcalls_fill(m, m->in, q->n * q->c, q->D);
    if (t) tt_rope_make(m->ctx, &m->ctx->scratch, t, q->D, 1024);
    for (int64_t i = 0; pos && i < 3 * v[0]; i++)
        pos[i] = (int32_t)rng_below(&m->rng, i % 3 ? 60 : 1024);
    q->table = t;
    q->pos = pos;
}

static void make_groups(maker *m, op_call *q, const op_sizes *s)
{
    q->rows = s->v[1];
    q->stride = q->c + (m->lay & LAY_WIDE ? 5 : 0);
    q->a = params(m, s->v[0] * q->stride, 0.5);
    if (q->kind == OP_MODULATE) q->b = params(m, s->v[0] * q->stride, 0.5);
}

static void make_params(maker *m, op_call *q)
{
    const op_kind op = q->kind;
    const bool affine = op == OP_LAYER_NORM && rng_below(&m->rng, 2);
    if (affine || op == OP_RMS_NORM || op == OP_CHANNEL_NORM)
        q->a = params(m, q->c, 1);
    if (affine) q->b = params(m, q->c, 1);
    if (op == OP_COL_MOMENT || op == OP_COL_BLEND)
        q->mean = opcalls_doubles(m, q->c, m->in == IN_OFFSET ? 30 : 0);
    if (op != OP_COL_BLEND) return;
    q->gain = opcalls_doubles(m, q->c, 1);
    q->target = opcalls_doubles(m, q->c, 0);
    q->tau = 0.35;
    /* An average; none of the calls whose bits are stored is one. */
    if (rng_below(&m->rng, 4) == 3) q->mean = q->gain = NULL;
}

static void make_rows(maker *m, op_call *q, const op_sizes *s)
{
    const op_kind op = q->kind;
    const bool groups = op == OP_MODULATE || op == OP_GATE_ADD;
    q->n = groups ? s->v[0] * s->v[1] : s->n == 1 ? 1 : s->v[0];
    q->c = s->v[s->n - 1];
    q->eps = 1e-6;
    q->x = opcalls_fill(m, m->in, q->n * q->c, q->c);
    if (op == OP_ADD || op == OP_MUL || op == OP_GATE_ADD)
        q->y = opcalls_fill(m, m->in == IN_NONFINITE ? IN_NORMAL : m->in,
                            q->n * q->c, q->c);
    if (groups) make_groups(m, q, s);
    else make_params(m, q);
}

void call_make(tt_ctx *ctx, op_call *q, op_kind op, op_input in,
               const op_sizes *s, uint64_t seed, int lay)
{
    maker m = {.ctx = ctx, .in = in, .rng = seed, .lay = lay};
    memset(q, 0, sizeof *q);
    q->kind = op;
    q->in_place = lay & LAY_IN_PLACE;
    switch (op) {
    case OP_LINEAR:
        q->n = s->v[0], q->c = s->v[1];
        q->x = opcalls_fill(&m, in, q->n * q->c, q->c);
        q->w = opcalls_weight(&m, 2, (int64_t[]){s->v[2], q->c});
        /* next to a large bias no small sum is seen */
        q->b = rng_below(&m.rng, 4)
                   ? params(&m, s->v[2], in == IN_DENORMAL ? 0x1p-130 : 1)
                   : NULL;
        break;
    case OP_ATTENTION: make_attention(&m, q, s->v); break;
    case OP_CONV: make_conv(&m, q, s->v); break;
    case OP_ROPE: opcalls_make_rope(&m, q, s->v); break;
    default: make_rows(&m, q, s);
    }
}

uint64_t case_make(tt_ctx *ctx, op_call *q, op_sizes *s, uint64_t seed,
                   int64_t each, int64_t i)
{
    const op_kind op = (op_kind)(i / each);
    uint64_t rng = seed + (uint64_t)(i / each * 1000 + i % each);
    const uint64_t own = rng_next(&rng);
    sizes_draw(s, op, &rng);
    call_make(ctx, q, op, IN_NORMAL, s, own, 0);
    return own;
}
