/* widen.cu: stored weights as floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: core/widen.c, core/quant.c, where the layouts stand. One thread an
 * element: a format says how many values its blocks of bytes have, and what
 * value l is. */
#include "ops/cuda/kernel.h"

template <class FORMAT> DEVICE void widen(const cuda_widen_args &a)
{
    const uint8_t *from = (const uint8_t *)a.from;
    for (int64_t i = grid_thread(); i < a.n; i += grid_threads()) {
        const int64_t block = i / FORMAT::values;
        const float v = FORMAT::value(from + block * FORMAT::bytes,
                                      (int)(i - block * FORMAT::values));
        const float scale = a.rows ? a.rows[i / a.row] : a.scale;
        a.to[i] = scale != 0.0f ? mul_rn(v, scale) : v;
    }
}

/* ---- one number a block -------------------------------------------------- */

/* A number of a narrow format with e bits of exponent and m of fraction: a
 * subnormal one is its fraction times the least step. */
DEVICE float widened(uint32_t h, int e, int m)
{
    const int bias = (1 << (e - 1)) - 1;
    const uint32_t sign = h >> (e + m) << 31;
    const uint32_t power = h >> m & ((1u << e) - 1);
    const uint32_t fraction = h & ((1u << m) - 1);
    if (power)
        return float_of(sign | (power + 127 - bias) << 23 |
                        fraction << (23 - m));
    /* 2^23 + fraction is exact, and so is what remains */
    const float whole = add_rn(float_of(0x4b000000u | fraction), -0x1p23f);
    const float step = float_of((uint32_t)(128 - bias - m) << 23);
    return float_of(bits_of(mul_rn(whole, step)) | sign);
}

/* The same where all bits of the exponent mean infinity and NaN. */
DEVICE float widened_ieee(uint32_t h, int e, int m)
{
    const uint32_t ones = (1u << e) - 1;
    if ((h >> m & ones) != ones) return widened(h, e, m);
    return float_of(h >> (e + m) << 31 | 0x7f800000u |
                    (h & ((1u << m) - 1)) << (23 - m));
}

struct format_f64 {
    static const int values = 1, bytes = 8;
    DEVICE static float value(const uint8_t *p, int)
    {
        return narrow(*(const double *)p);
    }
};

struct format_f32 {
    static const int values = 1, bytes = 4;
    DEVICE static float value(const uint8_t *p, int)
    {
        return float_of(*(const uint32_t *)p);
    }
};

struct format_bf16 {
    static const int values = 1, bytes = 2;
    DEVICE static float value(const uint8_t *p, int)
    {
        return float_of((uint32_t)*(const uint16_t *)p << 16);
    }
};

struct format_f16 {
    static const int values = 1, bytes = 2;
    DEVICE static float value(const uint8_t *p, int)
    {
        return widened_ieee(*(const uint16_t *)p, 5, 10);
    }
};

struct format_f8_e5m2 {
    static const int values = 1, bytes = 1;
    DEVICE static float value(const uint8_t *p, int)
    {
        return widened_ieee(*p, 5, 2);
    }
};

struct format_f8_e4m3 {              /* no infinity; all bits set are NaN     */
    static const int values = 1, bytes = 1;
    DEVICE static float value(const uint8_t *p, int)
    {
        return (*p & 127) == 127 ? float_of(0x7fc00000u) : widened(*p, 4, 3);
    }
};

struct format_i8 {
    static const int values = 1, bytes = 1;
    DEVICE static float value(const uint8_t *p, int)
    {
        return integer((int8_t)*p);
    }
};

/* ---- GGUF: blocks of 32 -------------------------------------------------- */

DEVICE float f16_at(const uint8_t *p)
{
    return widened_ieee(p[0] | (uint32_t)p[1] << 8, 5, 10);
}

/* Four bits of value l: of the first 16 values the low ones. */
DEVICE int half_byte(const uint8_t *q, int l)
{
    return l < 16 ? q[l] & 15 : q[l - 16] >> 4;
}

/* The fifth bit of value l, in its place. */
DEVICE int fifth_bit(const uint8_t *h, int l)
{
    return (h[l / 8] >> l % 8 & 1) << 4;
}

struct format_q8_0 {
    static const int values = 32, bytes = 34;
    DEVICE static float value(const uint8_t *p, int l)
    {
        return mul_rn(f16_at(p), integer((int8_t)p[2 + l]));
    }
};

struct format_q4_0 {
    static const int values = 32, bytes = 18;
    DEVICE static float value(const uint8_t *p, int l)
    {
        return mul_rn(f16_at(p), integer(half_byte(p + 2, l) - 8));
    }
};

struct format_q4_1 {
    static const int values = 32, bytes = 20;
    DEVICE static float value(const uint8_t *p, int l)
    {
        return add_rn(mul_rn(f16_at(p), integer(half_byte(p + 4, l))),
                      f16_at(p + 2));
    }
};

struct format_q5_0 {
    static const int values = 32, bytes = 22;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const int v = half_byte(p + 6, l) | fifth_bit(p + 2, l);
        return mul_rn(f16_at(p), integer(v - 16));
    }
};

struct format_q5_1 {
    static const int values = 32, bytes = 24;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const int v = half_byte(p + 8, l) | fifth_bit(p + 4, l);
        return add_rn(mul_rn(f16_at(p), integer(v)), f16_at(p + 2));
    }
};

/* ---- GGUF: blocks of 256 ------------------------------------------------- */

struct format_q2_k {
    static const int values = 256, bytes = 84;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const int sc = p[l / 16], shift = l % 128 / 32 * 2;
        const int v = p[16 + l / 128 * 32 + l % 32] >> shift & 3;
        const float s = mul_rn(f16_at(p + 80), integer(sc & 15));
        const float m = mul_rn(f16_at(p + 82), integer(sc >> 4));
        return add_rn(mul_rn(s, integer(v)), -m);
    }
};

struct format_q3_k {
    static const int values = 256, bytes = 110;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const uint8_t *q = p + 32, *sc = p + 96;
        const int i = l / 16, k = l % 32, shift = l % 128 / 32 * 2;
        const int low = i < 8 ? sc[i] & 15 : sc[i - 8] >> 4;
        const int high = sc[8 + i % 4] >> (2 * (i / 4)) & 3;
        const int bit = l / 128 * 4 + shift / 2;
        const int v = (q[l / 128 * 32 + k] >> shift & 3) -
                      ((p[k] >> bit & 1) ? 0 : 4);
        const float s = mul_rn(f16_at(p + 108),
                               integer((low | high << 4) - 32));
        return mul_rn(s, integer(v));
    }
};

/* Q4_K, and Q5_K, which has fifth bits in front of the others. */
template <bool FIFTH> struct format_q45_k {
    static const int values = 256, bytes = FIFTH ? 176 : 144;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const uint8_t *sc = p + 4, *q = p + (FIFTH ? 48 : 16);
        const int j = l / 32, k = l % 32;
        const int s = j < 4 ? sc[j] & 63
                            : (sc[j + 4] & 15) | sc[j - 4] >> 6 << 4;
        const int m = j < 4 ? sc[j + 4] & 63
                            : sc[j + 4] >> 4 | sc[j] >> 6 << 4;
        int v = q[32 * (j / 2) + k] >> (j % 2 * 4) & 15;
        if (FIFTH) v |= (p[16 + k] >> j & 1) << 4;
        return add_rn(mul_rn(mul_rn(f16_at(p), integer(s)), integer(v)),
                      -mul_rn(f16_at(p + 2), integer(m)));
    }
};
typedef format_q45_k<false> format_q4_k;
typedef format_q45_k<true> format_q5_k;

struct format_q6_k {
    static const int values = 256, bytes = 210;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const int half = l / 128, part = l % 128 / 32, k = l % 32;
        const int low = p[64 * half + k + 32 * (part % 2)] >> (part / 2 * 4);
        const int high = p[128 + 32 * half + k] >> (2 * part) & 3;
        const int8_t sc = (int8_t)p[192 + 8 * half + k / 16 + 2 * part];
        return mul_rn(mul_rn(f16_at(p + 208), integer(sc)),
                      integer(((low & 15) | high << 4) - 32));
    }
};

/* Four bits are the number of a value. */
DEVICE float iq4(int v)
{
    static const int8_t value[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    return integer(value[v]);
}

struct format_iq4_nl {
    static const int values = 32, bytes = 18;
    DEVICE static float value(const uint8_t *p, int l)
    {
        return mul_rn(f16_at(p), iq4(half_byte(p + 2, l)));
    }
};

struct format_iq4_xs {
    static const int values = 256, bytes = 136;
    DEVICE static float value(const uint8_t *p, int l)
    {
        const int j = l / 32, low = p[4 + j / 2] >> (j % 2 * 4) & 15;
        const int high = (p[2] | p[3] << 8) >> (2 * j) & 3;
        const float s = mul_rn(f16_at(p), integer((low | high << 4) - 32));
        return mul_rn(s, iq4(half_byte(p + 8 + 16 * j, l % 32)));
    }
};

/* ---- kernels ------------------------------------------------------------- */

#define WIDEN(format)                                                          \
    KERNEL(widen_##format, cuda_widen_args, ELEMENT_THREADS, 1)                \
    {                                                                          \
        widen<format_##format>(a);                                             \
    }
WIDEN(f64)
WIDEN(f32)
WIDEN(bf16)
WIDEN(f16)
WIDEN(f8_e5m2)
WIDEN(f8_e4m3)
WIDEN(q8_0)
WIDEN(q4_0)
WIDEN(q4_1)
WIDEN(q5_0)
WIDEN(q5_1)
WIDEN(q2_k)
WIDEN(q3_k)
WIDEN(q4_k)
WIDEN(q5_k)
WIDEN(q6_k)
WIDEN(i8)
WIDEN(iq4_nl)
WIDEN(iq4_xs)
