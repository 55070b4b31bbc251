/* plain_class.c: the sums of a class, bit by bit, right or with a mistake.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>
#include <math.h>

#include "core/fma.h"
#include "ops/bf16.h"

/* Zeros and subnormal numbers have exponent -126. */
static int exponent(float x)
{
    return fabsf(x) < FLT_MIN ? -126 : ilogbf(x);
}

/* As a tensor core gives it: cut towards zero, and -0 is +0. */
static float core_sum(const sum_rule *r, double exact)
{
    float y = (float)exact;
    if (!r->nearest && fabs(exact) < 0x1p128 && fabs((double)y) > fabs(exact))
        y = nextafterf(y, 0);
    return (r->flush ? bf16_flush(y) : y) + 0;
}

/* c and n products, all cut to multiples of one power of two and added, which
 * a double holds exactly. */
static float core_step(const sum_rule *r, float c, const float *a, int64_t step,
                       const float *b, int64_t n)
{
    double term[CORE_BLOCK_MOST + 1], sum = 0;
    int e[CORE_BLOCK_MOST + 1], top = r->least;
    float special = isfinite(c) ? 0 : c;
    term[n] = (double)c;
    e[n] = isfinite(c) ? exponent(c) : 0;
    for (int64_t k = 0; k < n; k++) {
        const float x = a[k * step];
        term[k] = (double)x * (double)b[k];
        if (!isfinite(x) || !isfinite(b[k])) special += x * b[k];
        else e[k] = exponent(x) + exponent(b[k]);
    }
    if (special != 0) return special;            /* NaN too */
    for (int64_t k = 0; k <= n; k++)
        if (term[k] != 0 && e[k] > top) top = e[k];
    for (int64_t k = 0; k <= n; k++) sum += trunc(ldexp(term[k],
                                                        r->bits - top));
    return core_sum(r, ldexp(sum, top - r->bits));
}

/* c + a b in one rounding, or as the fault has it. */
static float plain_class_add_product(const sum_rule *r, float c, float a,
                                     float b)
{
    if (r->unfused) return c + (float)(a * b);
    if (r->order == SUM_FLOAT || r->keep) return fma_f32(a, b, c);
    return bf16_fma(a, b, c);
}

/* c and the next n products, at most a block of them; zeros fill it. */
static float block_sum(const sum_rule *r, float c, const float *a, int64_t step,
                       const float *b, int64_t n)
{
    const bool pair = r->order == SUM_PAIRS;
    float half[2] = {0, 0};
    if (r->order == SUM_CORE) return core_step(r, c, a, step, b, n);
    for (int i = 0; i < (r->order == SUM_FLOAT ? n : r->block); i++) {
        const int k = pair && !r->even_first ? 1 - i : i;
        float *s = pair ? &c : &half[r->order == SUM_HALVES ? k % 2 : 0];
        *s = plain_class_add_product(r, *s, k < n ? a[k * step] : 0,
                                     k < n ? b[k] : 0);
    }
    if (r->order == SUM_FLOAT) return c + half[0];
    if (r->order == SUM_HALVES)
        c = r->keep ? c + (half[0] + half[1])
                    : bf16_add(c, bf16_add(half[0], half[1]));
    return c;
}

static float chain_of(const sum_rule *r, float c, const float *a, int64_t step,
                      const float *b, int64_t n)
{
    if (r->order == SUM_FLOAT) c = -0.0f;    /* it leaves any sum what it is */
    for (int64_t k = 0; k < n; k += r->block) {
        const int64_t left = n - k < r->block ? n - k : r->block;
        c = block_sum(r, c, a + k * step, step, b + k, left);
        if (r->f16) c = tt_format_round(TT_FMT_F16, c);
    }
    return c;
}

int64_t plain_part(const sum_rule *r, int64_t n)
{
    const int64_t part = (n + r->parts - 1) / r->parts;
    const int64_t tile = r->tile ? r->tile : 16;
    return (part + tile - 1) / tile * tile;
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

#endif
