/* arm_neon.h: the names of NEON that the kernels use, for WebAssembly.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The multiply-add is the relaxed one: kernels are chosen where it is fused
 * (os_fuses), elsewhere the generic ones are, with the exact function of
 * core/fma.h. */
#pragma GCC system_header
#ifndef TT_OS_WASM_NEON_H
#define TT_OS_WASM_NEON_H

#include <stdint.h>
#include <wasm_simd128.h>

typedef float float32x4_t __attribute__((vector_size(16)));
typedef float float32x2_t __attribute__((vector_size(8)));
typedef double float64x2_t __attribute__((vector_size(16)));
typedef int32_t os_i32x4 __attribute__((vector_size(16)));
typedef struct { float32x4_t val[2]; } float32x4x2_t;
#define OS_IN static inline __attribute__((always_inline))

OS_IN float32x4_t vld1q_f32(const float *p)
{
    return (float32x4_t)wasm_v128_load(p);
}
OS_IN void vst1q_f32(float *p, float32x4_t v)
{
    wasm_v128_store(p, (v128_t)v);
}
OS_IN float32x4_t vdupq_n_f32(float x)
{
    return (float32x4_t){x, x, x, x};
}
OS_IN float32x4_t vaddq_f32(float32x4_t a, float32x4_t b)
{
    return a + b;
}
OS_IN float64x2_t vcvt_f64_f32(float32x2_t v)
{
    return __builtin_convertvector(v, float64x2_t);
}
OS_IN float32x4_t vfmaq_f32(float32x4_t c, float32x4_t a, float32x4_t b)
{
    return (float32x4_t)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b,
                                                (v128_t)c);
}
OS_IN float64x2_t vfmaq_f64(float64x2_t c, float64x2_t a, float64x2_t b)
{
    return (float64x2_t)wasm_f64x2_relaxed_madd((v128_t)a, (v128_t)b,
                                                (v128_t)c);
}
OS_IN float32x4_t vfmaq_n_f32(float32x4_t c, float32x4_t a, float x)
{
    return vfmaq_f32(c, a, vdupq_n_f32(x));
}
OS_IN float32x2_t vget_low_f32(float32x4_t v)
{
    return __builtin_shufflevector(v, v, 0, 1);
}
OS_IN float32x2_t vget_high_f32(float32x4_t v)
{
    return __builtin_shufflevector(v, v, 2, 3);
}
OS_IN float32x4_t vcombine_f32(float32x2_t a, float32x2_t b)
{
    return __builtin_shufflevector(a, b, 0, 1, 2, 3);
}
OS_IN float32x2_t vfma_f32(float32x2_t c, float32x2_t a, float32x2_t b)
{
    return vget_low_f32(vfmaq_f32(vcombine_f32(c, c), vcombine_f32(a, a),
                                  vcombine_f32(b, b)));
}
OS_IN float32x4x2_t vtrnq_f32(float32x4_t a, float32x4_t b)
{
    return (float32x4x2_t){{__builtin_shufflevector(a, b, 0, 4, 2, 6),
                            __builtin_shufflevector(a, b, 1, 5, 3, 7)}};
}
#define vcltq_f32(a, b) ((os_i32x4)((a) < (b)))
#define vcgtq_f32(a, b) ((os_i32x4)((a) > (b)))
#define vbslq_f32(m, a, b)                                                     \
    ((float32x4_t)(((m) & (os_i32x4)(a)) | (~(m) & (os_i32x4)(b))))
#define vgetq_lane_f32(v, i) ((v)[i])

#endif
