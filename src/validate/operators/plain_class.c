/* plain_class.c: the products of a class, bit by bit, right or with a mistake.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A class is its golden definition with another chain (sum_rule of plain.h);
 * what surrounds the chain stays. Elements are made one after the other and
 * compared at once: a fault that is not the one costs a few of them. */
#include "validate/operators/plain.h"

#ifndef TT_REAL_DOUBLE

#include <math.h>
#include <string.h>

#include "core/fma.h"
#include "ops/bf16.h"
#include "ops/frozen.h"

/* ---- one step of a tensor core ------------------------------------------- */

/* x = *m * 2^(*e - 23); zeros and subnormal numbers have exponent -126. */
static void split(float x, int64_t *m, int *e)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const int field = (int)(u >> 23 & 255);
    *m = (int64_t)(u & 0x7fffff) | (field ? 0x800000 : 0);
    if (u >> 31) *m = -*m;
    *e = (field ? field : 1) - 127;
}

static float towards_zero(double x)
{
    const float y = (float)x;
    if (!(fabs((double)y) > fabs(x)) || fabs(x) >= 0x1p128) return y;
    return nextafterf(y, 0);
}

/* c and n products, all cut to multiples of one power of two and added. The
 * product of two significands has 46 fraction bits. */
static float core_step(const sum_rule *r, float c, const float *a, int64_t step,
                       const float *b, int64_t n)
{
    int64_t m[CORE_BLOCK_MOST + 1], x, y, sum = 0;
    int e[CORE_BLOCK_MOST + 1], ex, ey, top = r->least;
    float special = isfinite(c) ? 0 : c;
    split(c, &m[n], &e[n]);
    m[n] *= 0x800000;
    for (int64_t k = 0; k < n; k++) {
        const float p = a[k * step] * b[k];
        if (!isfinite(a[k * step]) || !isfinite(b[k])) special += p;
        split(a[k * step], &x, &ex);
        split(b[k], &y, &ey);
        m[k] = x * y;
        e[k] = ex + ey;
    }
    if (special != 0) return special;            /* NaN too */
    for (int64_t k = 0; k <= n; k++)
        if (m[k]) top = e[k] > top ? e[k] : top;
    for (int64_t k = 0; k <= n; k++) {
        const int drop = 46 - r->bits + top - e[k];
        if (m[k] && drop < 63) sum += m[k] / ((int64_t)1 << drop);
    }
    const double exact = ldexp((double)sum, top - r->bits);
    const float s = (r->nearest ? (float)exact : towards_zero(exact)) + 0;
    return r->flush ? bf16_flush(s) : s;
}

/* ---- chains -------------------------------------------------------------- */

/* c + a b in one rounding, or as the fault has it. */
static float plain_class_add_product(const sum_rule *r, float c, float a,
                                     float b)
{
    if (r->unfused) return c + (float)(a * b);
    if (r->order == SUM_FLOAT || r->keep) return fma_f32(a, b, c);
    return bf16_fma(a, b, c);
}

static float core(const sum_rule *r, float c, const float *a, int64_t step,
                  const float *b, int64_t n)
{
    for (int64_t k = 0; k < n; k += r->block) {
        const int64_t left = n - k < r->block ? n - k : r->block;
        c = core_step(r, c, a + k * step, step, b + k, left);
        if (r->f16) c = tt_format_round(TT_FMT_F16, c);
    }
    return c;
}

static float pairs(const sum_rule *r, float c, const float *a, int64_t step,
                   const float *b, int64_t n)
{
    for (int64_t k = 0; k < n; k += 2)
        for (int i = 0; i < 2; i++) {
            const int64_t at = k + (r->even_first ? i : 1 - i);
            c = plain_class_add_product(r, c, at < n ? a[at * step] : 0,
                                        at < n ? b[at] : 0);
            if (r->f16) c = tt_format_round(TT_FMT_F16, c);
        }
    return c;
}

static float plain_class_halves(const sum_rule *r, float c, const float *a,
                                int64_t step, const float *b, int64_t n)
{
    for (int64_t k0 = 0; k0 < n; k0 += r->block) {
        float half[2] = {0, 0};
        for (int64_t k = k0; k < k0 + r->block; k++)
            half[k % 2] = plain_class_add_product(r, half[k % 2],
                                                  k < n ? a[k * step] : 0,
                                                  k < n ? b[k] : 0);
        c = r->keep ? c + (half[0] + half[1])
                    : bf16_add(c, bf16_add(half[0], half[1]));
        if (r->f16) c = tt_format_round(TT_FMT_F16, c);
    }
    return c;
}

/* Blocks of their own, then added: Order dot of ops.h. */
static float plain_class_blocks(const sum_rule *r, float c, const float *a,
                                int64_t step, const float *b, int64_t n)
{
    for (int64_t k0 = 0; k0 < n; k0 += r->block) {
        float s = 0;
        for (int64_t k = k0; k < n && k < k0 + r->block; k++)
            s = plain_class_add_product(r, s, a[k * step], b[k]);
        c = k0 ? c + s : s;
    }
    return c;
}

static float chain_of(const sum_rule *r, float c, const float *a, int64_t step,
                      const float *b, int64_t n)
{
    switch (r->order) {
    case SUM_CORE: return core(r, c, a, step, b, n);
    case SUM_PAIRS: return pairs(r, c, a, step, b, n);
    case SUM_HALVES: return plain_class_halves(r, c, a, step, b, n);
    default: return plain_class_blocks(r, c, a, step, b, n);
    }
}

int64_t plain_part(const sum_rule *r, int64_t n)
{
    const int64_t tile = r->tile ? r->tile : 16;
    return ((n + r->parts - 1) / r->parts + tile - 1) / tile * tile;
}

float plain_chain(const sum_rule *r, float c, const float *a, int64_t step,
                  const float *b, int64_t n)
{
    if (r->order != SUM_CORE && !r->keep) c = bf16_flush(c);
    if (!r->parts) return chain_of(r, c, a, step, b, n);
    const int64_t part = plain_part(r, n);
    for (int64_t k = 0; k < n; k += part) {
        const int64_t some = n - k < part ? n - k : part;
        const float s = chain_of(r, k ? 0 : c, a + k * step, step, b + k, some);
        c = k ? c + s : s;
    }
    return c;
}

float plain_factor_bf16(float x)
{
    return tt_format_round(TT_FMT_BF16, x);
}

float plain_factor_tf32(float x)
{
    return tt_format_round(TT_FMT_TF32, x);
}

/* ---- is it what was computed? -------------------------------------------- */

/* Rows x [n, width] that are `stride` apart. */
static float *plain_class_factors(tt_ctx *ctx, const golden_class *class,
                                  const tt_real *x, int64_t n, int64_t stride,
                                  int64_t width)
{
    float *y = tt_scratch(ctx, n * width);
    for (int64_t i = 0; y && i < n * width; i++)
        y[i] = class->factor(x[i / width * stride + i % width]);
    return y;
}

static bool gives_linear(tt_ctx *ctx, const op_call *q,
                         const golden_class *class, const double *got)
{
    const int64_t o = q->w->dim[0], n = q->c;
    /* on tensor cores a sum of -0 becomes +0 */
    const bool zero = class->attend && class->attend != golden_attend_blocks;
    const tt_real *wide = plain_weight(ctx, q->w);
    const float *w = wide
        ? plain_class_factors(ctx, class, wide, o, n, n) : NULL;
    for (int64_t r = 0; w && r < q->n; r++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        const float *x = plain_class_factors(ctx, class, q->x + r * n, 1, n, n);
        for (int64_t c = 0; x && c < o; c++) {
            float s = class->chain(0, x, 1, w + c * n, n);
            if (zero) s += 0.0f;
            if (q->b) s += q->b[c];
            if (!value_same_bits((double)s, got[r * o + c])) return false;
        }
        tt_arena_reset(&ctx->scratch, mark);
    }
    return !ctx->status;
}

static bool gives_head(tt_ctx *ctx, const tt_attention_args *a, int64_t h,
                       const golden_class *class, const double *got)
{
    const int64_t D = a->D, at = h * D;
    golden_head r = {.class = class, .a = a, .h = h};
    float *o = tt_scratch(ctx, 2 * D);
    r.q = plain_class_factors(ctx, class, a->q + at, a->T, a->q_stride, D);
    r.k = plain_class_factors(ctx, class, a->k + at, a->N, a->kv_stride, D);
    r.v = plain_class_factors(ctx, class, a->v + at, a->N, a->kv_stride, D);
    for (int64_t i = 0; !ctx->status && i < a->T; i++) {
        class->attend(&r, i, o, o + D);
        for (int64_t d = 0; d < D; d++)
            if (!value_same_bits((double)o[d], got[(i * a->H + h) * D + d]))
                return false;
    }
    return !ctx->status;
}

bool plain_class_gives(tt_ctx *ctx, const op_call *q, const golden_class *class,
                       const double *got)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    bool yes = q->kind == OP_LINEAR || class->attend;
    if (q->kind == OP_LINEAR) yes = gives_linear(ctx, q, class, got);
    for (int64_t h = 0; q->kind == OP_ATTENTION && yes && h < q->attn.H; h++)
        yes = gives_head(ctx, &q->attn, h, class, got);
    tt_arena_reset(&ctx->scratch, mark);
    return yes;
}

#endif
