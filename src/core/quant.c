/* quant.c: GGUF's quantised blocks widened to float32.
 *
 * Source  ggml-org/ggml, ggml-common.h (layout) and ggml-quants.c (order of
 *         operations)
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A block holds 32 or 256 consecutive values as small integers with
 *         one or two float16 factors; the 256-value types ("K") split it in
 *         sub-blocks of 16 or 32 with small integer factors of their own.
 * Holds   Every product and sum below is rounded once, in the order of the
 *         brackets, without fused multiply-add: bits equal ggml's.
 * Vectors ref_data/formats/gguf_ok_quants.gguf */
#include "core/quant.h"

static float f16(const unsigned char *p)
{
    return tt_f32_from_f16((uint16_t)(p[0] | p[1] << 8));
}

/* d*q: d, i8 q[32] */
static void q8_0(float *y, const unsigned char *p)
{
    const float d = f16(p);
    const signed char *q = (const signed char *)(p + 2);
    for (int l = 0; l < 32; l++) y[l] = d * (float)q[l];
}

/* d*(v-8): d, q[16] */
static void q4_0(float *y, const unsigned char *p)
{
    const float d = f16(p);
    for (int l = 0; l < 16; l++) {
        y[l] = d * (float)((p[2 + l] & 15) - 8);
        y[l + 16] = d * (float)((p[2 + l] >> 4) - 8);
    }
}

/* d*v + m: d, m, q[16] */
static void q4_1(float *y, const unsigned char *p)
{
    const float d = f16(p), m = f16(p + 2);
    for (int l = 0; l < 16; l++) {
        y[l] = d * (float)(p[4 + l] & 15) + m;
        y[l + 16] = d * (float)(p[4 + l] >> 4) + m;
    }
}

/* The fifth bits: bit l of h for element l. */
static uint32_t fifth_bits(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
         | (uint32_t)p[3] << 24;
}

/* d*(v-16): d, u32 h, q[16] */
static void q5_0(float *y, const unsigned char *p)
{
    const float d = f16(p);
    const uint32_t h = fifth_bits(p + 2);
    for (int l = 0; l < 16; l++) {
        const int lo = (int)(p[6 + l] & 15u) | (int)(h >> l & 1u) << 4;
        const int hi = (int)(p[6 + l] >> 4) | (int)(h >> (l + 16) & 1u) << 4;
        y[l] = d * (float)(lo - 16);
        y[l + 16] = d * (float)(hi - 16);
    }
}

/* d*v + m: d, m, u32 h, q[16] */
static void q5_1(float *y, const unsigned char *p)
{
    const float d = f16(p), m = f16(p + 2);
    const uint32_t h = fifth_bits(p + 4);
    for (int l = 0; l < 16; l++) {
        const int lo = (int)(p[8 + l] & 15u) | (int)(h >> l & 1u) << 4;
        const int hi = (int)(p[8 + l] >> 4) | (int)(h >> (l + 16) & 1u) << 4;
        y[l] = d * (float)lo + m;
        y[l + 16] = d * (float)hi + m;
    }
}

/* sc[16], q[64], d, dmin; 16 sub-blocks of 16 */
static void q2_k(float *y, const unsigned char *p)
{
    const unsigned char *sc = p, *q = p + 16;
    const float d = f16(p + 80), dmin = f16(p + 82);
    for (int half = 0; half < 2; half++, q += 32)
        for (int shift = 0; shift < 8; shift += 2)
            for (int part = 0; part < 2; part++, sc++) {
                const float s = d * (float)(*sc & 15);
                const float m = dmin * (float)(*sc >> 4);
                for (int l = 0; l < 16; l++)
                    *y++ = s * (float)(q[16 * part + l] >> shift & 3) - m;
            }
}

/* hm[32], q[64], sc[12], d; 16 sub-blocks of 16 */
static void q3_k(float *y, const unsigned char *p)
{
    const unsigned char *hm = p, *q = p + 32, *sc = p + 96;
    const float d = f16(p + 108);
    for (int i = 0; i < 16; i++) {
        const int half = i / 8, shift = i % 8 / 2 * 2, part = i % 2;
        const int low = i < 8 ? sc[i] & 15 : sc[i - 8] >> 4;
        const int high = sc[8 + i % 4] >> (2 * (i / 4)) & 3;
        const float s = d * (float)((low | high << 4) - 32);
        const int bit = 4 * half + shift / 2;
        for (int l = 0; l < 16; l++) {
            const int k = 16 * part + l;
            const int v = (q[32 * half + k] >> shift & 3)
                        - ((hm[k] >> bit & 1) ? 0 : 4);
            *y++ = s * (float)v;
        }
    }
}

/* 6-bit factor s and minimum m of sub-block j, packed in 12 bytes. */
static void scale_min(int *s, int *m, const unsigned char *sc, int j)
{
    if (j < 4) {
        *s = sc[j] & 63;
        *m = sc[j + 4] & 63;
    } else {
        *s = (sc[j + 4] & 15) | (sc[j - 4] >> 6) << 4;
        *m = (sc[j + 4] >> 4) | (sc[j] >> 6) << 4;
    }
}

/* d, dmin, sc[12], q[128], and for Q5_K h[32] in front of q; 8 sub-blocks of
 * 32, two in the low and high halves of the same bytes */
static void q45_k(float *y, const unsigned char *p, const unsigned char *h,
                  const unsigned char *q)
{
    const float d = f16(p), dmin = f16(p + 2);
    for (int j = 0; j < 8; j++) {
        const unsigned char *b = q + 32 * (j / 2);
        const int shift = j % 2 * 4;
        int s, m;
        scale_min(&s, &m, p + 4, j);
        const float ds = d * (float)s, dm = dmin * (float)m;
        for (int l = 0; l < 32; l++) {
            int v = b[l] >> shift & 15;
            if (h) v |= (h[l] >> j & 1) << 4;
            *y++ = ds * (float)v - dm;
        }
    }
}

/* ql[128], qh[64], i8 sc[16], d; 16 sub-blocks of 16 */
static void q6_k(float *y, const unsigned char *p)
{
    const unsigned char *ql = p, *qh = p + 128;
    const signed char *sc = (const signed char *)(p + 192);
    const float d = f16(p + 208);
    for (int half = 0; half < 2; half++, ql += 64, qh += 32, sc += 8)
        for (int part = 0; part < 4; part++)
            for (int l = 0; l < 32; l++) {
                const int low = ql[l + 32 * (part % 2)] >> (part / 2 * 4) & 15;
                const int v = (low | (qh[l] >> (2 * part) & 3) << 4) - 32;
                *y++ = (d * (float)sc[l / 16 + 2 * part]) * (float)v;
            }
}

/* What four bits mean in both types below. */
static const signed char iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

static void iq4_32(float *y, float d, const unsigned char *q)
{
    for (int l = 0; l < 16; l++) {
        y[l] = d * (float)iq4[q[l] & 15];
        y[l + 16] = d * (float)iq4[q[l] >> 4];
    }
}

/* d, u16 high, sc[4], q[128]; 8 sub-blocks of 32, their factors of 6 bits */
static void iq4_xs(float *y, const unsigned char *p)
{
    const float d = f16(p);
    const int high = p[2] | p[3] << 8;
    for (int j = 0; j < 8; j++) {
        const int s = (p[4 + j / 2] >> (j % 2 * 4) & 15)
                    | (high >> (2 * j) & 3) << 4;
        iq4_32(y + 32 * j, d * (float)(s - 32), p + 8 + 16 * j);
    }
}

void quant_widen(float *dst, const unsigned char *src, tt_dtype t,
                 int64_t nblocks)
{
    const size_t size = tt_dtype_size(t);
    const int64_t block = tt_dtype_block(t);
    for (int64_t i = 0; i < nblocks; i++, src += size, dst += block)
        switch (t) {
        case TT_Q8_0: q8_0(dst, src); break;
        case TT_Q4_0: q4_0(dst, src); break;
        case TT_Q4_1: q4_1(dst, src); break;
        case TT_Q5_0: q5_0(dst, src); break;
        case TT_Q5_1: q5_1(dst, src); break;
        case TT_Q2_K: q2_k(dst, src); break;
        case TT_Q3_K: q3_k(dst, src); break;
        case TT_Q4_K: q45_k(dst, src, NULL, src + 16); break;
        case TT_Q5_K: q45_k(dst, src, src + 16, src + 48); break;
        case TT_Q6_K: q6_k(dst, src); break;
        case TT_IQ4_NL: iq4_32(dst, f16(src), src + 2); break;
        case TT_IQ4_XS: iq4_xs(dst, src); break;
        default: break;
        }
}
