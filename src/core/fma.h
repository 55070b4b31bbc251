/* fma.h: a * b + c with one rounding, the same bits on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * C libraries are not all right: one that rounds the product first changes the
 * bits of most results. So fmaf and fma are taken from the instruction set,
 * or, where it has none, from fma.c, and never from the C library. */
#ifndef TT_CORE_FMA_H
#define TT_CORE_FMA_H

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)        \
    || defined(__ARM_FEATURE_FMA) || defined(__powerpc__)                      \
    || defined(__s390x__) || defined(__riscv_flen)                             \
    || defined(__loongarch_frlen)
#define FMA_INSTRUCTION 1
#endif

/* By integers and sums alone: for every machine, and what tests compare. */
float fma_soft_f32(float a, float b, float c);
double fma_soft_f64(double a, double b, double c);

/* By the instruction if this CPU has one, else by the two above. */
float fma_call_f32(float a, float b, float c);
double fma_call_f64(double a, double b, double c);

static inline float fma_f32(float a, float b, float c)
{
#ifdef FMA_INSTRUCTION
    return __builtin_fmaf(a, b, c);
#else
    return fma_call_f32(a, b, c);
#endif
}

static inline double fma_f64(double a, double b, double c)
{
#ifdef FMA_INSTRUCTION
    return __builtin_fma(a, b, c);
#else
    return fma_call_f64(a, b, c);
#endif
}

/* What the library takes from the compiler and the C library and cannot do
 * without. */
typedef struct fma_library {
    float (*fma_f32)(float a, float b, float c);
    double (*fma_f64)(double a, double b, double c);
    float (*sqrt_f32)(float x);
    double (*sqrt_f64)(double x);
    double (*rint_f64)(double x);
} fma_library;

/* Those of this build. */
extern const fma_library fma_here;

/* The name of the first one whose result is not the right one in a hard case;
 * NULL if there is none. Normal numbers alone: flushing is no matter here. */
const char *fma_wrong(const fma_library *l);

#endif
