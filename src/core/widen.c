/* widen.c: stored numbers as float or double.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   stored data is little-endian and possibly unaligned; every load
 *         here assembles bytes, so hosts of either byte order read the same
 *         values.
 * Next    quant.c */
#include "core/tensor.h"

#include <string.h>

#include "core/quant.h"
#include "tether/status.h"

/* ---- 8- and 16-bit floats ------------------------------------------------ */

static float f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint32_t bits_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

float tt_f32_from_bf16(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

uint16_t tt_bf16_from_f32(float x)
{
    uint32_t u = bits_from_f32(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    u += 0x7fffu + ((u >> 16) & 1u);
    return (uint16_t)(u >> 16);
}

/* Without branches, for loops over many. In float32's fields a subnormal lacks
 * the hidden bit: it is given one and the value of that bit subtracted again,
 * which is exact. */
static inline float f16_value(uint32_t h)
{
    uint32_t u = (h & 0x7fffu) << 13, e = u & 0x0f800000u;
    uint32_t special = 0x7f800000u | (u & 0x7fffffu)
                     | ((u & 0x7fffffu) ? 0x400000u : 0u);
    float tiny = f32_from_bits(u + (113u << 23)) - f32_from_bits(113u << 23);
    uint32_t t = bits_from_f32(tiny), v = u + (112u << 23);
    v = e == 0 ? t : e == 0x0f800000u ? special : v;
    return f32_from_bits(v | (h & 0x8000u) << 16);
}

/* The upper half of a float16. */
static inline float e5m2_value(uint32_t b)
{
    return f16_value(b << 8);
}

/* Without infinity; all bits set are NaN. */
static inline float e4m3_value(uint32_t b)
{
    uint32_t u = (b & 0x7fu) << 20, e = u & 0x07800000u;
    float tiny = f32_from_bits(u + (121u << 23)) - f32_from_bits(121u << 23);
    uint32_t t = bits_from_f32(tiny), v = u + (120u << 23);
    v = e == 0 ? t : (b & 0x7fu) == 0x7fu ? 0x7fc00000u : v;
    return f32_from_bits(v | (b & 0x80u) << 24);
}

float tt_f32_from_f16(uint16_t h)
{
    return f16_value(h);
}

float tt_f32_from_f8e5m2(uint8_t b)
{
    return e5m2_value(b);
}

float tt_f32_from_f8e4m3(uint8_t b)
{
    return e4m3_value(b);
}

uint16_t tt_f16_from_f32(float x)
{
    uint32_t u = bits_from_f32(x), sign = (u >> 16) & 0x8000u;
    uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* >= 65520 */
    if (a < 0x33000001u) return (uint16_t)sign;              /* <= 2^-25  */
    int e = (int)(a >> 23) - 112;
    uint32_t m = (a & 0x7fffffu) | 0x800000u;
    int shift = e <= 0 ? 14 - e : 13;
    uint32_t q = m >> shift, rest = m & ((1u << shift) - 1u);
    uint32_t mid = 1u << (shift - 1);
    if (rest > mid || (rest == mid && (q & 1u))) q++;
    /* q carries the hidden bit; a carry out of the mantissa moves into e */
    uint32_t h = e <= 0 ? q : ((uint32_t)(e - 1) << 10) + q;
    return (uint16_t)(sign | h);
}

/* ---- widening ------------------------------------------------------------ */

static uint64_t load_le(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static double element(const unsigned char *p, tt_dtype t)
{
    uint64_t u = load_le(p, tt_dtype_size(t));
    double d;
    switch (t) {
    case TT_F64: memcpy(&d, &u, 8); return d;
    case TT_F32: return (double)f32_from_bits((uint32_t)u);
    case TT_F16: return (double)tt_f32_from_f16((uint16_t)u);
    case TT_BF16: return (double)tt_f32_from_bf16((uint16_t)u);
    case TT_F8_E4M3: return (double)tt_f32_from_f8e4m3((uint8_t)u);
    case TT_F8_E5M2: return (double)tt_f32_from_f8e5m2((uint8_t)u);
    case TT_I64: return (double)(int64_t)u;
    case TT_I32: return (double)(int32_t)(uint32_t)u;
    case TT_I16: return (double)(int16_t)(uint16_t)u;
    case TT_I8: return (double)(int8_t)(uint8_t)u;
    case TT_U64: case TT_U32: case TT_U16: case TT_U8: return (double)u;
    case TT_BOOL: return u ? 1.0 : 0.0;
    default: return 0.0;
    }
}

/* In a form that compilers make vectors of: weights are widened in every pass,
 * and are most of what is. */
static void widen_bf16(float *restrict dst, const unsigned char *restrict p,
                       int64_t n)
{
    const bool little = tt_host_little_endian();
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, 2);
        if (!little) h = (uint16_t)(h << 8 | h >> 8);
        const uint32_t u = (uint32_t)h << 16;
        memcpy(&dst[i], &u, 4);
    }
}

void tt_widen_f32(float *dst, const void *src, tt_dtype t, int64_t n)
{
    const unsigned char *p = src;
    const size_t size = tt_dtype_size(t);
    const int64_t block = tt_dtype_block(t);
    if (t == TT_F32 && tt_host_little_endian()) {
        if (n > 0) memcpy(dst, src, (size_t)n * 4);
    } else if (t == TT_BF16) {
        widen_bf16(dst, p, n);
    } else if (t == TT_F16) {
        for (int64_t i = 0; i < n; i++)
            dst[i] = f16_value((uint32_t)p[2 * i]
                               | (uint32_t)p[2 * i + 1] << 8);
    } else if (t == TT_F8_E4M3) {
        for (int64_t i = 0; i < n; i++) dst[i] = e4m3_value(p[i]);
    } else if (t == TT_F8_E5M2) {
        for (int64_t i = 0; i < n; i++) dst[i] = e5m2_value(p[i]);
    } else if (block > 1) {
        TT_ASSERT(n % block == 0);
        quant_widen(dst, p, t, n / block);
    } else {
        for (int64_t i = 0; i < n; i++)
            dst[i] = (float)element(p + (size_t)i * size, t);
    }
}

void tt_widen(tt_real *dst, const void *src, tt_dtype t, int64_t n)
{
#ifdef TT_REAL_DOUBLE
    const unsigned char *p = src;
    const size_t size = tt_dtype_size(t);
    const int64_t block = tt_dtype_block(t);
    float some[256];
    TT_ASSERT(n % block == 0);
    for (int64_t i = 0; i < n / block; i++, p += size) {
        if (block == 1) {
            dst[i] = element(p, t);
            continue;
        }
        quant_widen(some, p, t, 1);
        for (int64_t k = 0; k < block; k++)
            dst[i * block + k] = (double)some[k];
    }
#else
    tt_widen_f32(dst, src, t, n);
#endif
}

/* Where element `first` of a packed view is stored. */
static const unsigned char *stored_at(const tt_tensor *t, int64_t first)
{
    const int64_t block = tt_dtype_block(t->dtype);
    TT_ASSERT(first % block == 0);
    return (const unsigned char *)t->data
         + (size_t)(first / block) * tt_dtype_size(t->dtype);
}

/* Values of a big-endian host are brought into stored order, SOME at a time. */
enum { SOME = 64 };

static bool must_swap(const tt_tensor *t)
{
    return t->native && tt_dtype_block(t->dtype) == 1
           && !tt_host_little_endian();
}

/* Elements from `first` on as they are stored; when that takes a copy, at most
 * SOME of the *n. */
static const void *stored(unsigned char buf[8 * SOME], const tt_tensor *t,
                          int64_t first, int64_t *n)
{
    if (!must_swap(t)) return stored_at(t, first);
    if (*n > SOME) *n = SOME;
    memcpy(buf, stored_at(t, first), (size_t)*n * tt_dtype_size(t->dtype));
    tt_swap_stored(buf, t->dtype, *n);
    return buf;
}

/* How many of the n elements from `at` on have one scale, and which. */
static int64_t of_one_scale(float *scale, const tt_tensor *t, int64_t at,
                            int64_t n)
{
    *scale = t->row_scale ? t->row_scale[at / t->row] : t->scale;
    const int64_t left = t->row_scale ? t->row - at % t->row : n;
    return left < n ? left : n;
}

void tt_widen_at_f32(float *dst, const tt_tensor *t, int64_t first, int64_t n)
{
    unsigned char buf[8 * SOME];
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i;
        const void *src = stored(buf, t, first + i, &k);
        tt_widen_f32(dst + i, src, t->dtype, k);
    }
    for (int64_t i = 0, k; t->scale != 0 && i < n; i += k) {
        float scale;
        k = of_one_scale(&scale, t, first + i, n - i);
        for (int64_t j = i; j < i + k; j++) dst[j] *= scale;
    }
}

void tt_widen_at(tt_real *dst, const tt_tensor *t, int64_t first, int64_t n)
{
    unsigned char buf[8 * SOME];
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i;
        const void *src = stored(buf, t, first + i, &k);
        tt_widen(dst + i, src, t->dtype, k);
    }
    for (int64_t i = 0, k; t->scale != 0 && i < n; i += k) {
        float scale;
        k = of_one_scale(&scale, t, first + i, n - i);
        for (int64_t j = i; j < i + k; j++) dst[j] *= (tt_real)scale;
    }
}
