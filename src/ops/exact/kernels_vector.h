/* kernels_vector.h: the vectors the common kernels are written in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three types, as wide as the instruction set this file is compiled for:
 *     vd   VD doubles, one register
 *     vf   VD floats, half a register
 *     vs   VS = 2 VD floats, one register
 * Explicit vectors, because in-place calls (y == x) keep compilers from making
 * them. +, -, * and / on them are those of the elements; the rest, elementwise
 * too, is
 *     VD_FMA, VF_FMA, VS_FMA(a, b, c)   a*b + c rounded once
 *     VD_WIDEN(v)                       a vf as doubles
 *     VS_LESS(a, b), VS_MORE(a, b)      a < b ? a : b,  a > b ? a : b
 *     VS_SCALE(p, n)                    p * 2^n rounded once; optional
 *     VS_AROUND(at, v)                  a store to where vectors begin, around
 *                                       the caches if the CPU can; then
 *                                       VS_AROUND_END() */
#ifndef TT_OPS_KERNELS_VECTOR_H
#define TT_OPS_KERNELS_VECTOR_H

#include <stdint.h>
#include <string.h>

#include "core/fma.h"

#if defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
#define VD 8
#define VD_FMA(a, b, c) (vd)_mm512_fmadd_pd(a, b, c)
#define VF_FMA(a, b, c) (vf)_mm256_fmadd_ps(a, b, c)
#define VS_FMA(a, b, c) (vs)_mm512_fmadd_ps(a, b, c)
#define VD_WIDEN(v) (vd)_mm512_cvtps_pd(v)
#define VS_LESS(a, b) (vs)_mm512_min_ps(a, b)
#define VS_MORE(a, b) (vs)_mm512_max_ps(a, b)
#define VS_SCALE(p, n) (vs)_mm512_scalef_ps(p, n)
#define VS_AROUND(at, v) _mm512_stream_ps(at, (__m512)(v))
#define VS_AROUND_END() _mm_sfence()

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VD 4
#define VD_FMA(a, b, c) (vd)_mm256_fmadd_pd(a, b, c)
#define VF_FMA(a, b, c) (vf)_mm_fmadd_ps(a, b, c)
#define VS_FMA(a, b, c) (vs)_mm256_fmadd_ps(a, b, c)
#define VD_WIDEN(v) (vd)_mm256_cvtps_pd(v)
#define VS_LESS(a, b) (vs)_mm256_min_ps(a, b)
#define VS_MORE(a, b) (vs)_mm256_max_ps(a, b)
#define VS_AROUND(at, v) _mm256_stream_ps(at, (__m256)(v))
#define VS_AROUND_END() _mm_sfence()

#elif defined(__aarch64__) || defined(TT_FUSED_NEON)
#include <arm_neon.h>
#define VD 2
#define VD_FMA(a, b, c) \
    (vd)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#define VF_FMA(a, b, c) \
    (vf)vfma_f32((float32x2_t)(c), (float32x2_t)(a), (float32x2_t)(b))
#define VS_FMA(a, b, c) \
    (vs)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define VD_WIDEN(v) (vd)vcvt_f64_f32((float32x2_t)(v))
#define VS_LESS(a, b) VS_PICK(vcltq_f32, (float32x4_t)(a), (float32x4_t)(b))
#define VS_MORE(a, b) VS_PICK(vcgtq_f32, (float32x4_t)(a), (float32x4_t)(b))
#define VS_PICK(test, a, b) (vs)vbslq_f32(test(a, b), a, b)

#else
#define VD 2
#define VECTORS_PLAIN
#endif
#define VS (2 * VD)
#ifndef VS_AROUND
#define VS_AROUND(at, v) vs_store(at, v)
#define VS_AROUND_END() (void)0
#endif

/* Vectors of long chains taken side by side, as registers allow. */
#if VD == 8
#define SIDE 8
#else
#define SIDE 4
#endif

typedef double vd __attribute__((vector_size(8 * VD)));
typedef float vf __attribute__((vector_size(4 * VD)));
typedef float vs __attribute__((vector_size(8 * VD)));
typedef int32_t vi __attribute__((vector_size(8 * VD)));

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define UNROLL_ALL UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_ALL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))
#define EACH(n) UNROLL for (int i = 0; i < (n); i++)

/* Ask the first cache for what lies so many bytes after x, if anything. */
INLINE void ask_near(const void *x, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)bytes));
}

/* Ask memory for what an even stream through x reads a page later: CPUs foresee
 * such streams too late, or stop at the end of a page. Past the end of an array
 * nothing comes of it. (An integer, as a pointer may not point there.) */
#ifndef AHEAD
#define AHEAD 4096 /* bytes */
#endif
INLINE void ask_ahead(const float *x)
{
    ask_near(x, AHEAD);
}

/* Ask the second cache for what lies so many bytes after x, if anything. */
INLINE void prefetch_at(const void *x, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)bytes), 0, 2);
}

INLINE vd vd_all(double x)
{
    vd v = {0};
    return v + x;
}

INLINE vd vd_load(const double *x)
{
    vd v;
    memcpy(&v, x, sizeof v);
    return v;
}

INLINE void vd_store(double *x, vd v)
{
    memcpy(x, &v, sizeof v);
}

INLINE vf vf_load(const float *x)
{
    vf v;
    memcpy(&v, x, sizeof v);
    return v;
}

INLINE void vf_store(float *x, vf v)
{
    memcpy(x, &v, sizeof v);
}

INLINE vf narrow(vd v)
{
    return __builtin_convertvector(v, vf);
}

INLINE vs vs_all(float x)
{
    vs v = {0};
    return v + x;
}

INLINE vs vs_load(const float *x)
{
    vs v;
    memcpy(&v, x, sizeof v);
    return v;
}

INLINE void vs_store(float *x, vs v)
{
    memcpy(x, &v, sizeof v);
}

#ifdef VECTORS_PLAIN
#define VD_FMA vd_fma
#define VF_FMA vf_fma
#define VS_FMA vs_fma
#define VD_WIDEN(v) __builtin_convertvector(v, vd)
#define VS_LESS vs_less
#define VS_MORE vs_more

INLINE vd vd_fma(vd a, vd b, vd c)
{
    for (int i = 0; i < VD; i++) c[i] = fma_f64(a[i], b[i], c[i]);
    return c;
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    for (int i = 0; i < VD; i++) c[i] = fma_f32(a[i], b[i], c[i]);
    return c;
}

INLINE vs vs_fma(vs a, vs b, vs c)
{
    for (int i = 0; i < VS; i++) c[i] = fma_f32(a[i], b[i], c[i]);
    return c;
}

INLINE vs vs_less(vs a, vs b)
{
    for (int i = 0; i < VS; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
}

INLINE vs vs_more(vs a, vs b)
{
    for (int i = 0; i < VS; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
}
#endif

/* Of exp_f32 (core/mathfn.h) of every lane of n vectors, operation by
 * operation: x = p of p * 2^k, and the sum whose lowest bits are k. n is a
 * constant. Each is one long chain of dependent operations, so several are
 * taken side by side. */
INLINE void vs_exp_parts(vs *x, vs *shifted, int n)
{
    static const float factor[] = {1.98412698e-4f, 1.38888889e-3f,
                                   8.33333333e-3f, 4.16666667e-2f,
                                   1.66666667e-1f, 0.5f};
    vs k[SIDE], p[SIDE];
    EACH(n) shifted[i] = VS_FMA(x[i], vs_all(1.44269502e+00f),
                                vs_all(12582912.0f));
    EACH(n) k[i] = shifted[i] - 12582912.0f;
    EACH(n) x[i] = VS_FMA(k[i], vs_all(-0x1.62e400p-1f), x[i]);
    EACH(n) x[i] = VS_FMA(k[i], vs_all(-0x1.7f7d1cp-20f), x[i]);
    EACH(n) p[i] = vs_all(2.48015873e-5f);
    UNROLL
    for (int j = 0; j < 6; j++)
        EACH(n) p[i] = VS_FMA(p[i], x[i], vs_all(factor[j]));
    EACH(n) x[i] = 1.0f + VS_FMA(p[i], x[i] * x[i], x[i]);
}

/* x = exp_f32 where -104 <= x <= 89. Its last two multiplications, by powers of
 * two whose product is 2^k, round once: so may any instruction that does
 * both. */
INLINE void vs_exp_within(vs *x, int n)
{
    vs shifted[SIDE];
    vs_exp_parts(x, shifted, n);
#ifdef VS_SCALE
    EACH(n) x[i] = VS_SCALE(x[i], shifted[i] - 12582912.0f);
#else
    EACH(n) {
        vi whole = (vi)shifted[i] - 0x4b400000, half = whole >> 1;
        x[i] = x[i] * (vs)((half + 127) << 23) *
               (vs)((whole - half + 127) << 23);
    }
#endif
}

/* x = exp_f32. */
INLINE void vs_exp(vs *x, int n)
{
    EACH(n) x[i] = VS_MORE(vs_all(-104.0f), VS_LESS(vs_all(89.0f), x[i]));
    vs_exp_within(x, n);
}

/* x = exp_f32 where x <= 0. Of more it makes any number; a NaN stays one. */
INLINE void vs_exp_below(vs *x, int n)
{
    EACH(n) x[i] = VS_MORE(vs_all(-104.0f), x[i]);
    vs_exp_within(x, n);
}

/* x = exp_f32 where -87 <= x <= 0: no result is subnormal, and k may be added
 * to the exponent of p. A NaN stays one if its 9 lowest bits are zero. */
INLINE void vs_exp_near(vs *x, int n)
{
    vs shifted[SIDE];
    vs_exp_parts(x, shifted, n);
    EACH(n) x[i] = (vs)((vi)x[i] + ((vi)shifted[i] << 23));
}

#endif
