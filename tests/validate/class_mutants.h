/* class_mutants.h: linear layers of the classes with one fault each.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written apart from the definitions: sums of a tensor core in double, which
 * holds them exactly. One line per fault: name, the class that the backend says
 * it computes, what is wrong, what a fitting hint says, and the fault. */
#ifndef TT_TESTS_VALIDATE_CLASS_MUTANTS_H
#define TT_TESTS_VALIDATE_CLASS_MUTANTS_H

#include <float.h>
#include <math.h>

#include "validate/validate.h"

/* Products of a step and fraction bits of a tensor core; 0: one chain of fused
 * multiply-adds. */
typedef struct class_mutant {
    const char *name, *cls, *what, *hint;
    int block, bits;
    int least;           /* exponent that a step goes by, 0: -133             */
    bool f16, tf32, even_first;
    int parts;
} class_mutant;

static const class_mutant class_mutants[] = {
    {"SM90_BLOCKS", "sm90", "blocks of 8 products", "blocks of 8 products",
     .block = 8, .bits = 25},
    {"SM90_BITS", "sm90", "24 fraction bits", "24 fraction bits where 25",
     .block = 16, .bits = 24},
    {"SM90_SPLIT", "sm90", "split-K in two", "split-K: sums of 2 parts",
     .block = 16, .bits = 25, .parts = 2},
    {"SM90_F16", "sm90", "sums kept in f16", "sums are kept in f16",
     .block = 16, .bits = 25, .f16 = true},
    {"SM90_TF32", "sm90", "inputs rounded to tf32", "rounded to tf32",
     .block = 8, .bits = 25, .tf32 = true},
    {"SM90_AMPERE", "sm90", "class sm80", "it computes class sm80",
     .block = 8, .bits = 24, .least = -132},
    {"SM80_BLOCKS", "sm80", "blocks of 16 products", "blocks of 16 products",
     .block = 16, .bits = 24, .least = -132},
    {"SM80_HOPPER", "sm80", "class sm90", "it computes class sm90",
     .block = 16, .bits = 25},
    {"SM80_SPLIT", "sm80", "split-K in four", "split-K: sums of 4 parts",
     .block = 8, .bits = 24, .least = -132, .parts = 4},
    {"VDP_EVEN", "vdp", "the even product first", "even product of a pair",
     .even_first = true},
    {"VDP_SPLIT", "vdp", "split-K in two", "split-K: sums of 2 parts",
     .parts = 2},
    {"AMX_ZEN", "amx", "class vdp", "it computes class vdp", .parts = 0},
};
enum { CLASS_MUTANTS = sizeof class_mutants / sizeof *class_mutants };

static inline float cm_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static inline float cm_factor(const class_mutant *m, tt_real x)
{
    const float y = tt_format_round(m->tf32 ? TT_FMT_TF32 : TT_FMT_BF16,
                                    (float)x);
    return m->bits ? y : cm_flush(y);
}

/* Exponent of a factor: zero and subnormal numbers have -126. */
static inline int cm_exponent(float x)
{
    return fabsf(x) < FLT_MIN ? -126 : ilogbf(x);
}

static inline float cm_round(const class_mutant *m, double x)
{
    float y = (float)x;
    if (fabs(x) < 0x1p128 && fabs((double)y) > fabs(x))
        y = nextafterf(y, 0);
    return m->f16 ? tt_format_round(TT_FMT_F16, y) : y;
}

static inline float cm_core(const class_mutant *m, float c, const float *x,
                            const float *w, int64_t n)
{
    double terms[33], special = isfinite(c) ? 0 : (double)c, sum = 0;
    int top = m->least ? m->least : -133, e[33] = {0};
    for (int64_t k = 0; k < n; k++) {
        terms[k] = (double)x[k] * (double)w[k];
        if (!isfinite(terms[k])) special += terms[k];
        else e[k] = cm_exponent(x[k]) + cm_exponent(w[k]);
    }
    if (special != 0) return (float)special;     /* NaN too */
    terms[n] = (double)c;
    e[n] = cm_exponent(c);
    for (int64_t k = 0; k <= n; k++)
        if (terms[k] != 0 && e[k] > top) top = e[k];
    for (int64_t k = 0; k <= n; k++)
        sum += trunc(ldexp(terms[k], m->bits - top));
    return cm_round(m, ldexp(sum, top - m->bits)) + 0;
}

/* fma flushed as the x86 units do: by the size before the last rounding. */
static inline float cm_fma(float a, float b, float c)
{
    const double exact = (double)a * (double)b + (double)c;
    if (fabs(exact) < 0x1.ffffffp-127)
        return copysignf(0, fmaf(a, b, c));
    return fmaf(a, b, c);
}

static inline float cm_chain(const class_mutant *m, const float *x,
                             const float *w, int64_t n)
{
    float c = 0;
    if (m->bits) {
        for (int64_t k = 0; k < n; k += m->block)
            c = cm_core(m, c, x + k, w + k, n - k < m->block ? n - k
                                                             : m->block);
        return c;
    }
    for (int64_t k = 0; k < n; k += 2)
        for (int i = 0; i < 2; i++) {
            const int64_t at = m->even_first ? k + i : k + 1 - i;
            c = cm_fma(at < n ? x[at] : 0, at < n ? w[at] : 0, c);
        }
    return c;
}

/* Which of them, in ctx->ops->self. */
static inline void class_mutant_linear(tt_ctx *ctx, const tt_linear_args *p)
{
    const class_mutant *m = ctx->ops->self;
    const int64_t o = p->w->dim[0], n = p->w->dim[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t parts = m->parts ? m->parts : 1;
    const int64_t part = ((n + parts - 1) / parts + 15) / 16 * 16;
    tt_real *wide = tt_scratch(ctx, o * n);
    float *w = tt_alloc(ctx, &ctx->scratch, (o + p->n) * n, sizeof *w, "test");
    float *x = w + o * n;
    if (ctx->status) return;
    tt_widen_at(wide, p->w, 0, o * n);
    for (int64_t k = 0; k < o * n; k++) w[k] = cm_factor(m, wide[k]);
    for (int64_t k = 0; k < p->n * n; k++) x[k] = cm_factor(m, p->x[k]);
    for (int64_t at = 0; at < p->n * o; at++) {
        const float *a = x + at / o * n, *b = w + at % o * n;
        float s = 0;
        for (int64_t k = 0; k < n; k += part) {
            const float t = cm_chain(m, a + k, b + k,
                                     n - k < part ? n - k : part);
            s = k ? s + t : t;
        }
        if (m->bits) s += 0.0f;
        p->y[at] = p->b ? (tt_real)s + p->b[at % o] : (tt_real)s;
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* The class's table with the faulty layer; false: there is no such class. */
static inline bool class_mutant_table(tt_ops *t, const class_mutant *m)
{
    tt_class cls;
    if (!tt_class_find(&cls, m->cls)) return false;
    *t = *tt_ops_class(tt_ops_default(), cls);
    t->name = m->name;
    t->linear = class_mutant_linear;
    t->self = (void *)(uintptr_t)m;
    return true;
}

#endif
