/* math_ref.h: what the elementary functions are checked by, for math_scan and
 * for the test of mathfn.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table of the double functions of tether/mathfn.h, each with its domain,
 * a fixed sequence of inputs (hard ones first, then random), and, where the
 * build has MPFR, the true value: `hi` correctly rounded, and `rest`, how much
 * more it is, in units of the last place of hi, so that an error is known to
 * a small part of an ulp even where results are subnormal. */
#ifndef TT_TOOLS_MATH_REF_H
#define TT_TOOLS_MATH_REF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tether/mathfn.h"
#ifdef TT_HAVE_MPFR
#include <mpfr.h>
#endif

typedef enum math_id {
    MATH_EXP, MATH_LOG, MATH_TANH, MATH_SIN, MATH_COS, MATH_TURN_SIN,
    MATH_TURN_COS, MATH_POW10000, MATH_COUNT
} math_id;

typedef struct math_fn {
    const char *name;
    double lo, hi;    /* domain of the random inputs                          */
    double limit;     /* largest error allowed, in ulp                        */
} math_fn;

/* pow is exp(y log 10000) with a product rounded on the way: its error grows
 * with |y log 10000| <= 9.3, by definition. */
static const math_fn math_table[MATH_COUNT] = {
    {"exp", -745.2, 709.8, 1.0},
    {"log", 0.0, 0x1p1023, 1.0},
    {"tanh", -22.1, 22.1, 1.0},
    {"sin", -0x1p30, 0x1p30, 1.0},
    {"cos", -0x1p30, 0x1p30, 1.0},
    {"turn_sin", 0.0, 0xffffffffp0, 1.0},
    {"turn_cos", 0.0, 0xffffffffp0, 1.0},
    {"pow10000", -1.0, 0.0, 16.0},
};

static inline double math_own(math_id f, double x)
{
    double s, c;
    switch (f) {
    case MATH_EXP: return tt_exp(x);
    case MATH_LOG: return tt_log(x);
    case MATH_TANH: return tt_tanh(x);
    case MATH_SIN: tt_sincos(x, &s, &c); return s;
    case MATH_COS: tt_sincos(x, &s, &c); return c;
    case MATH_TURN_SIN: tt_sincos_turn((uint32_t)x, &s, &c); return s;
    case MATH_TURN_COS: tt_sincos_turn((uint32_t)x, &s, &c); return c;
    default: return tt_pow(10000.0, x);
    }
}

/* The i-th of 2^64 mixed words. */
static inline uint64_t math_word(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#define MATH_HARD 4096 /* the first inputs of every sequence                  */

/* Doubles next to `x`: 4 each side, by i. */
static inline double math_near(double x, uint64_t i)
{
    for (uint64_t k = 0; k < i % 9; k++)
        x = nextafter(x, i & 16 ? (double)INFINITY : -(double)INFINITY);
    return x;
}

/* Where reductions change branch or cancel most. */
static inline double math_hard(math_id f, uint64_t i)
{
    double k = (double)(i / 32) - 64;          /* -64 .. 63 */
    switch (f) {
    case MATH_EXP: return math_near((k * 16 + (double)(i % 16) + 0.5)
                                    * 0.69314718055994531, i);
    case MATH_LOG: return math_near((i & 64 ? 1.0 : 1.4142135623730951)
                                    * ldexp(1, i & 128 ? (int)k * 16 : 0), i);
    case MATH_TANH: return math_near((k + 0.5) * 0.34657359027997265, i);
    case MATH_SIN:
    case MATH_COS: return math_near(rint(ldexp(k, (int)(i % 32) / 2))
                                    * 0.78539816339744831, i);
    case MATH_TURN_SIN:
    case MATH_TURN_COS:
        return (double)(uint32_t)((i / 32 << 25) + (i % 32) - 16);
    default: return -(double)(i % 128) / (double)(i / 128 + 1 + i % 128);
    }
}

/* The i-th input: hard ones, then by turns uniform in the domain, uniform in
 * the exponent, and (log) close to 1. */
static inline double math_input(math_id f, uint64_t i)
{
    const math_fn *m = &math_table[f];
    if (i < MATH_HARD) return math_hard(f, i);
    uint64_t w = math_word(i * MATH_COUNT + (uint64_t)f);
    double u = (double)(w >> 11) * 0x1p-53;
    bool turn = f == MATH_TURN_SIN || f == MATH_TURN_COS;
    if (turn) return (double)(uint32_t)(w >> 32);
    if (f == MATH_LOG)
        return i % 3 ? ldexp(1 + u, (int)(w % 2098) - 1074) : 0.7 + 0.8 * u;
    if (i % 2) return m->lo + (m->hi - m->lo) * u;
    double x = ldexp(1 + u, (int)(w % 64) - 54);
    x = w & 64 ? -x : x;
    return x < m->lo ? m->lo * u : x > m->hi ? m->hi * u : x;
}

/* Exponent of the last place of a correctly rounded result. */
static inline int math_last_place(double hi)
{
    int e;
    frexp(hi, &e);
    return e - 53 < -1074 ? -1074 : e - 53;
}

/* |got - true value| in units of the last place of hi. */
static inline double math_ulps(double got, double hi, double rest)
{
    if (!isfinite(hi)) return got == hi ? 0 : (double)INFINITY;
    double err = fabs(ldexp(got - hi, -math_last_place(hi)) - rest);
    return err >= 0 ? err : (double)INFINITY;
}

#ifdef TT_HAVE_MPFR
#define MATH_BITS 256

/* Temporaries, made once. */
typedef struct math_mpfr {
    mpfr_t x, y;
} math_mpfr;

static inline void math_mpfr_init(math_mpfr *m)
{
    mpfr_init2(m->x, MATH_BITS);
    mpfr_init2(m->y, MATH_BITS);
}

static inline void math_mpfr_clear(math_mpfr *m)
{
    mpfr_clear(m->x);
    mpfr_clear(m->y);
    mpfr_free_cache();
}

static inline void math_true(math_mpfr *m, math_id f, double x, double *hi,
                             double *rest)
{
    /* half and quarter turns, where a rounded pi would not give zero */
    double zero = f == MATH_TURN_COS ? 0x1p30 : 0;
    mpfr_set_d(m->x, x, MPFR_RNDN);
    if (f == MATH_TURN_SIN || f == MATH_TURN_COS) {
        mpfr_const_pi(m->y, MPFR_RNDN);
        mpfr_mul(m->x, m->x, m->y, MPFR_RNDN);
        mpfr_div_2ui(m->x, m->x, 31, MPFR_RNDN);
    }
    switch (f) {
    case MATH_EXP: mpfr_exp(m->y, m->x, MPFR_RNDN); break;
    case MATH_LOG: mpfr_log(m->y, m->x, MPFR_RNDN); break;
    case MATH_TANH: mpfr_tanh(m->y, m->x, MPFR_RNDN); break;
    case MATH_SIN:
    case MATH_TURN_SIN: mpfr_sin(m->y, m->x, MPFR_RNDN); break;
    case MATH_COS:
    case MATH_TURN_COS: mpfr_cos(m->y, m->x, MPFR_RNDN); break;
    default:
        mpfr_ui_pow(m->y, 10000, m->x, MPFR_RNDN);
    }
    if ((f == MATH_TURN_SIN || f == MATH_TURN_COS)
        && fmod(x, 0x1p31) == zero)
        mpfr_set_zero(m->y, 1);
    *hi = mpfr_get_d(m->y, MPFR_RNDN);
    *rest = 0;
    if (!isfinite(*hi)) return;
    mpfr_sub_d(m->y, m->y, *hi, MPFR_RNDN);
    mpfr_mul_2si(m->y, m->y, -math_last_place(*hi), MPFR_RNDN);
    *rest = mpfr_get_d(m->y, MPFR_RNDN);
}
#endif

#endif
