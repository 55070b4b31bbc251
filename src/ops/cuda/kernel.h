/* kernel.h: what the text of a kernel may use.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The same text is compiled three times: by nvcc for a GPU, by a C++ compiler
 * for the CPU, where threads are fibers (tests/cuda/shim.h), and by a C++
 * compiler with numbers that have no operators (tests/cuda/strict.h). Every
 * rounding is one of the functions below, one IEEE operation each, so that no
 * compiler flag can change a bit. Kernels are defined with KERNEL alone: one
 * struct of arguments, called `a`, as in golden.
 *
 * Not to be had here, on purpose: atomic operations (their order is undefined),
 * approximate functions but exp2_near and reciprocal_near, + - * / of floats.
 * A step of a tensor core is none of the IEEE operations, but is defined to
 * the bit as well. */
#ifndef TT_CUDA_KERNEL_H
#define TT_CUDA_KERNEL_H

#include "ops/cuda/args.h"

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define at_16(pointer) (pointer)         /* the shim looks whether it is      */
#define UNROLL_1 _Pragma("unroll 1")      /* not at all */
#define UNROLL_2 _Pragma("unroll 2")

/* A kernel of the struct `type`, in blocks of `threads` threads; `blocks` of
 * them share a multiprocessor, which sets the registers of a thread. */
#define KERNEL(name, type, threads, blocks)                                    \
    extern "C" __global__ void __launch_bounds__(threads, blocks)              \
        name(const __grid_constant__ type a)

/* The shared memory of the block, as large as its launch says. */
extern __shared__ __align__(1024) unsigned char shared_memory[];
#define SHARED(type, name)                                                     \
    type *const name = reinterpret_cast<type *>(shared_memory)

/* ---- numbers: round to nearest even, subnormals kept --------------------- */
DEVICE float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE float add_rn(float a, float b) { return __fadd_rn(a, b); }
DEVICE float mul_rn(float a, float b) { return __fmul_rn(a, b); }
DEVICE float div_rn(float a, float b) { return __fdiv_rn(a, b); }
DEVICE double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
DEVICE double add_rn(double a, double b) { return __dadd_rn(a, b); }
DEVICE double mul_rn(double a, double b) { return __dmul_rn(a, b); }
DEVICE double div_rn(double a, double b) { return __ddiv_rn(a, b); }
DEVICE double sqrt_rn(double a) { return __dsqrt_rn(a); }
DEVICE double wide(float a) { return (double)a; }       /* exact */
DEVICE double wide(int64_t n) { return __ll2double_rn(n); }
DEVICE float integer(int n) { return __int2float_rn(n); }  /* |n| < 2^24 */
DEVICE float narrow(double a) { return __double2float_rn(a); }
DEVICE float float_of(uint32_t bits) { return __uint_as_float(bits); }
DEVICE uint32_t bits_of(float a) { return __float_as_uint(a); }
DEVICE double double_of(uint64_t bits)
{
    return __longlong_as_double((int64_t)bits);
}

DEVICE uint64_t bits_of(double a) { return (uint64_t)__double_as_longlong(a); }
DEVICE float4 four(float x, float y, float z, float w)
{
    return make_float4(x, y, z, w);
}

/* ---- threads ------------------------------------------------------------- */
/* The value of the lane whose number differs by the bits m; all 32 call. */
DEVICE float lane_xor(float v, int m) { return __shfl_xor_sync(~0u, v, m); }
DEVICE double lane_xor(double v, int m) { return __shfl_xor_sync(~0u, v, m); }

/* Where a pointer to shared memory points, in bytes. */
DEVICE uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Copies from global to shared memory that arrive when they are waited for:
 * copy_wait<N> returns when all groups but the N last committed by this thread
 * have. Other threads see them after the next barrier. */
DEVICE void copy16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(to)), "l"(from));
}

DEVICE void copy4(void *to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"(shared_address(to)), "l"(from));
}

DEVICE void copy_commit() { asm volatile("cp.async.commit_group;"); }

template <int N> DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

DEVICE int least(int a, int b) { return min(a, b); }
DEVICE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- tensor cores -------------------------------------------------------- */
/* One step of m16n8k16, taken by a warp: c [16, 8] += a [16, 16] b [16, 8]. A
 * lane holds the r below; b is half of what load4x brings. What a step adds up
 * is src/ops/golden/tensor_core.md. */
typedef uint16_t bf16;
struct factors_of { uint32_t r[4]; };
struct sums { float r[4]; };

/* Four 8 x 8 matrices of bf16 numbers out of shared memory; lane l brings the
 * address of a row of matrix l / 8. Turned: rows become columns. */
DEVICE factors_of load4x(const bf16 *row)
{
    factors_of f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0,%1,%2,%3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(shared_address(row)));
    return f;
}

DEVICE factors_of load4x_transposed(const bf16 *row)
{
    factors_of f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0,%1,%2,%3}, [%4];"
                 : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
                 : "r"(shared_address(row)));
    return f;
}

DEVICE void mma(sums &c, const factors_of &a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]),
                   "r"(b0), "r"(b1));
}

/* Two numbers rounded to bf16, nearest even. */
DEVICE uint32_t two_factors(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* 2^x with a relative error below 2^-20 (NVIDIA documents two units in the last
 * place, 2^-22); +0 below -126. For weights alone: their exponents are such
 * that rounding to bf16 removes the error (ops/tensor_core.h). */
DEVICE float exp2_near(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x with a relative error below 2^-22: only where what follows corrects it
 * to the bits (epilogue.h). */
DEVICE float reciprocal_near(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The larger one: NaN when one is, or the other one. */
DEVICE float more_or_nan(float a, float b)
{
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
    return m;
}

DEVICE float more(float a, float b) { return fmaxf(a, b); }

#else
#include "shim.h"
#endif

/* Four floats that lie together, 16 bytes aligned. */
DEVICE float4 load4(const float *from) { return *(const float4 *)at_16(from); }
DEVICE void store4(float *to, float4 v) { *(float4 *)at_16(to) = v; }

/* 16 bytes, and zeros. */
DEVICE uint4 load16(const void *from) { return *(const uint4 *)at_16(from); }
DEVICE void store16(void *to, uint4 v) { *(uint4 *)at_16(to) = v; }
DEVICE void zero16(void *to) { store16(to, uint4{0, 0, 0, 0}); }

/* This thread's number in the grid, and how many there are. */
DEVICE int64_t grid_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

DEVICE int64_t grid_threads() { return (int64_t)gridDim.x * blockDim.x; }

#endif
