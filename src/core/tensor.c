/* tensor.c: storage types, checked sizes, widening.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   stored data is little-endian and possibly unaligned; every load
 *         here assembles bytes, so hosts of either byte order read the same
 *         values. */
#include "tether/tensor.h"

#include <stdio.h>
#include <string.h>

#include "core/quant.h"
#include "tether/status.h"

static const struct {
    const char *name;
    size_t size;       /* of an element or block                              */
    int64_t block;
} dtypes[TT_DTYPE_COUNT] = {
    [TT_NONE] = {"?", 0, 1},          [TT_F64] = {"F64", 8, 1},
    [TT_F32] = {"F32", 4, 1},         [TT_F16] = {"F16", 2, 1},
    [TT_BF16] = {"BF16", 2, 1},       [TT_F8_E4M3] = {"F8_E4M3", 1, 1},
    [TT_F8_E5M2] = {"F8_E5M2", 1, 1}, [TT_I64] = {"I64", 8, 1},
    [TT_I32] = {"I32", 4, 1},         [TT_I16] = {"I16", 2, 1},
    [TT_I8] = {"I8", 1, 1},           [TT_U64] = {"U64", 8, 1},
    [TT_U32] = {"U32", 4, 1},         [TT_U16] = {"U16", 2, 1},
    [TT_U8] = {"U8", 1, 1},           [TT_BOOL] = {"BOOL", 1, 1},
    [TT_Q8_0] = {"Q8_0", 34, 32},     [TT_Q4_0] = {"Q4_0", 18, 32},
    [TT_Q4_1] = {"Q4_1", 20, 32},     [TT_Q5_0] = {"Q5_0", 22, 32},
    [TT_Q5_1] = {"Q5_1", 24, 32},     [TT_Q2_K] = {"Q2_K", 84, 256},
    [TT_Q3_K] = {"Q3_K", 110, 256},   [TT_Q4_K] = {"Q4_K", 144, 256},
    [TT_Q5_K] = {"Q5_K", 176, 256},   [TT_Q6_K] = {"Q6_K", 210, 256},
};

static bool known(tt_dtype t)
{
    return t > TT_NONE && t < TT_DTYPE_COUNT;
}

size_t tt_dtype_size(tt_dtype t)
{
    return known(t) ? dtypes[t].size : 0;
}

int64_t tt_dtype_block(tt_dtype t)
{
    return known(t) ? dtypes[t].block : 1;
}

bool tt_dtype_is_real(tt_dtype t)
{
    return known(t) && (t <= TT_F8_E5M2 || t >= TT_Q8_0);
}

const char *tt_dtype_name(tt_dtype t)
{
    return known(t) ? dtypes[t].name : "?";
}

tt_dtype tt_dtype_from_name(const char *name)
{
    for (int t = TT_NONE + 1; t < TT_DTYPE_COUNT; t++)
        if (dtypes[t].block == 1 && strcmp(dtypes[t].name, name) == 0)
            return (tt_dtype)t;
    return TT_NONE;
}

bool tt_checked_mul(int64_t *out, int64_t a, int64_t b)
{
    if (a < 0 || b < 0) return false;
    if (b != 0 && a > INT64_MAX / b) return false;
    *out = a * b;
    return true;
}

bool tt_checked_add(int64_t *out, int64_t a, int64_t b)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b) return false;
    *out = a + b;
    return true;
}

bool tt_checked_size(int64_t *out, const int64_t *dim, int rank, size_t size)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0 || !tt_checked_mul(&n, n, dim[i])) return false;
    /* 32-bit machines: what no object can hold is refused here, so that a
     * result may be converted to size_t */
    return tt_checked_mul(&n, n, (int64_t)size) && n <= PTRDIFF_MAX
           && tt_checked_add(out, n, 0);
}

int64_t tt_tensor_count(const tt_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->dim[i];
    return n;
}

int64_t tt_tensor_bytes(const tt_tensor *t)
{
    return tt_tensor_count(t) / tt_dtype_block(t->dtype)
         * (int64_t)tt_dtype_size(t->dtype);
}

/* The stride of the next axis outwards; 0 where that is beyond an int64_t, as
 * in an empty tensor: beside an extent of 0 the others may be anything. */
static int64_t outer(int64_t stride, int64_t dim)
{
    return tt_checked_mul(&stride, stride, dim) ? stride : 0;
}

tt_tensor tt_tensor_make(const void *data, tt_dtype dtype, int rank,
                         const int64_t *dim)
{
    tt_tensor t = {.data = data, .dtype = dtype, .rank = rank, .native = true};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t.dim[i] = dim[i];
        t.stride[i] = step;
        step = outer(step, dim[i]);
    }
    return t;
}

tt_tensor tt_tensor_stored(const void *data, tt_dtype dtype, int rank,
                           const int64_t *dim)
{
    tt_tensor t = tt_tensor_make(data, dtype, rank, dim);
    t.native = false;
    return t;
}

tt_tensor tt_tensor_like(const tt_tensor *t, const void *data, int rank,
                         const int64_t *dim)
{
    tt_tensor r = tt_tensor_make(data, t->dtype, rank, dim);
    r.scale = t->scale;
    r.native = t->native;
    return r;
}

tt_tensor tt_tensor_reshape(const tt_tensor *t, int rank, const int64_t *dim)
{
    tt_tensor r = tt_tensor_like(t, t->data, rank, dim);
    TT_ASSERT(tt_tensor_packed(t) && tt_tensor_count(&r) == tt_tensor_count(t));
    return r;
}

bool tt_tensor_packed(const tt_tensor *t)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dim[i] != 1 && t->stride[i] != step) return false;
        step = outer(step, t->dim[i]);
    }
    return true;
}

const char *tt_shape_string(char *buf, size_t n, int rank, const int64_t *dim)
{
    size_t at = 0;
    if (n == 0) return buf;
    at += (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? ", " : "",
                               (long long)dim[i]);
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

/* ---- byte order ---------------------------------------------------------- */

bool tt_host_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char b;
    memcpy(&b, &one, 1);
    return b == 1;
}

void tt_swap_stored(void *data, tt_dtype t, int64_t n)
{
    const size_t size = tt_dtype_size(t);
    unsigned char *p = data;
    if (tt_host_little_endian() || tt_dtype_block(t) > 1 || size < 2) return;
    for (int64_t i = 0; i < n; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char low = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = low;
        }
}

const tt_real *tt_tensor_in_place(const tt_tensor *t)
{
    const bool ok = t->dtype == (sizeof(tt_real) == 8 ? TT_F64 : TT_F32) &&
                    (t->native || tt_host_little_endian()) && t->scale == 0 &&
                    (uintptr_t)t->data % sizeof(tt_real) == 0 &&
                    tt_tensor_packed(t);
    return ok ? t->data : NULL;
}

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

/* A float with `ebits` exponent and `mbits` mantissa bits, IEEE specials. */
static float small_float(uint32_t u, int ebits, int mbits, bool ieee)
{
    uint32_t sign = (u >> (ebits + mbits)) & 1u;
    uint32_t emax = (1u << ebits) - 1u, mmax = (1u << mbits) - 1u;
    uint32_t e = (u >> mbits) & emax, m = u & mmax;
    int bias = (1 << (ebits - 1)) - 1;
    uint32_t out;
    if (e == 0) {
        /* subnormal: m * 2^(1 - bias - mbits), exact in float32 */
        float v = (float)m * f32_from_bits((uint32_t)(127 + 1 - bias - mbits)
                                           << 23);
        return sign ? -v : v;
    }
    if (ieee && e == emax)
        out = 0x7f800000u | (m << (23 - mbits)) | (m ? 0x400000u : 0u);
    else if (!ieee && e == emax && m == mmax)
        out = 0x7fc00000u;
    else
        out = ((uint32_t)((int)e - bias + 127) << 23) | (m << (23 - mbits));
    return f32_from_bits(out | (sign << 31));
}

/* The same without branches, for loops over many. In float32's fields a
 * subnormal lacks the hidden bit: it is given one and the value of that bit
 * subtracted again, which is exact. */
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
    return small_float(b, 5, 2, true);
}

float tt_f32_from_f8e4m3(uint8_t b)
{
    return small_float(b, 4, 3, false);
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

void tt_widen_f32(float *dst, const void *src, tt_dtype t, int64_t n)
{
    const unsigned char *p = src;
    const size_t size = tt_dtype_size(t);
    const int64_t block = tt_dtype_block(t);
    if (t == TT_F32 && tt_host_little_endian()) {
        if (n > 0) memcpy(dst, src, (size_t)n * 4);
    } else if (t == TT_BF16) {
        for (int64_t i = 0; i < n; i++) {
            uint32_t u = (uint32_t)p[2 * i] << 16
                         | (uint32_t)p[2 * i + 1] << 24;
            memcpy(&dst[i], &u, 4);
        }
    } else if (t == TT_F16) {
        for (int64_t i = 0; i < n; i++)
            dst[i] = f16_value((uint32_t)p[2 * i]
                               | (uint32_t)p[2 * i + 1] << 8);
    } else if (t == TT_F8_E4M3) {
        for (int64_t i = 0; i < n; i++) dst[i] = e4m3_value(p[i]);
    } else if (t == TT_F8_E5M2) { /* the upper half of a float16 */
        for (int64_t i = 0; i < n; i++) dst[i] = f16_value((uint32_t)p[i] << 8);
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

void tt_widen_at_f32(float *dst, const tt_tensor *t, int64_t first, int64_t n)
{
    unsigned char buf[8 * SOME];
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i;
        const void *src = stored(buf, t, first + i, &k);
        tt_widen_f32(dst + i, src, t->dtype, k);
    }
    if (t->scale != 0)
        for (int64_t i = 0; i < n; i++) dst[i] *= t->scale;
}

void tt_widen_at(tt_real *dst, const tt_tensor *t, int64_t first, int64_t n)
{
    unsigned char buf[8 * SOME];
    for (int64_t i = 0, k; i < n; i += k) {
        k = n - i;
        const void *src = stored(buf, t, first + i, &k);
        tt_widen(dst + i, src, t->dtype, k);
    }
    if (t->scale != 0)
        for (int64_t i = 0; i < n; i++) dst[i] *= (tt_real)t->scale;
}
