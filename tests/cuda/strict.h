/* strict.h: the words of kernel.h with numbers that have no operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Kernel text compiled with -include strict.h and -fsyntax-only must hold: all
 * it may do with a number is to compare it, to negate it, and to give it to a
 * function of kernel.h. A sum written with + does not compile, nor a conversion
 * that might round. Nothing here has a body: no code is made of it. */
#ifndef TT_TESTS_CUDA_STRICT_H
#define TT_TESTS_CUDA_STRICT_H
#define TT_TESTS_CUDA_SHIM_H       /* stands in for shim.h */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number made of a constant of type C, and of nothing else. */
template <class C> struct strict {
    C constant;
    strict() = default;
    constexpr strict(C c) : constant(c) {}
    template <class T> strict(T) = delete;
    strict operator-() const;
    bool operator<(strict) const;
    bool operator>(strict) const;
    bool operator<=(strict) const;
    bool operator>=(strict) const;
    bool operator==(strict) const;
    bool operator!=(strict) const;
};
typedef strict<float> strict_float;
typedef strict<double> strict_double;
#define float strict_float
#define double strict_double

struct dim3 { unsigned x, y, z; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

#define DEVICE inline
#define UNROLL
#define UNROLL_1
#define UNROLL_2
#define KERNEL(name, type, threads, blocks) void name(const type &a)
#define at_16(pointer) (pointer)
#define SHARED(type, name) type *const name = (type *)shared_memory()

void *shared_memory();
void __syncthreads();
void __syncwarp();
float fma_rn(float a, float b, float c);
float add_rn(float a, float b);
float mul_rn(float a, float b);
float div_rn(float a, float b);
double fma_rn(double a, double b, double c);
double add_rn(double a, double b);
double mul_rn(double a, double b);
double div_rn(double a, double b);
double sqrt_rn(double a);
double wide(float a);
double wide(int64_t n);
float integer(int n);
float narrow(double a);
float float_of(uint32_t bits);
uint32_t bits_of(float a);
double double_of(uint64_t bits);
uint64_t bits_of(double a);
float4 four(float x, float y, float z, float w);
float lane_xor(float v, int m);
double lane_xor(double v, int m);
void copy16(void *to, const void *from);
void copy4(void *to, const void *from);
void copy_commit();
template <int N> void copy_wait();
typedef uint16_t bf16;
struct factors_of { uint32_t r[4]; };
struct sums { float r[4]; };
factors_of load4x(const bf16 *row);
factors_of load4x_transposed(const bf16 *row);
void mma(sums &c, const factors_of &a, uint32_t b0, uint32_t b1);
uint32_t two_factors(float low, float high);
float reciprocal_near(float x);
float more_or_nan(float a, float b);
float exp2_near(float x);
float more(float a, float b);
uint32_t shared_address(const void *p);
template <int N> void wgmma_tie(sums (&acc)[N]);
template <int N> void wgmma_tie(factors_of (&rows)[N]);
void wgmma_begin();
void wgmma_commit();
template <int N> void wgmma_wait();
template <int N> void wgmma_first(sums (&acc)[N], uint64_t a, uint64_t b);
template <int N> void wgmma(sums (&acc)[N], uint64_t a, uint64_t b);
void wgmma(sums (&acc)[16], const factors_of &a, uint64_t b);
template <int N>
void wgmma(sums (&acc)[N], uint64_t a, uint64_t b, bool on);
template <int N> void registers_take();
template <int N> void registers_leave();
typedef uint64_t arrivals;
void arrivals_of(arrivals *at, int threads);
void arrivals_show();
void store_factors(bf16 *to, uint4 v);
void written();
void wgmma(sums (&acc)[17], const factors_of &a, uint64_t b);
void arrive(arrivals *at);
void arrive_and(arrivals *at, int bytes);
void await(arrivals *at, int turn);
void copy_block(void *to, const void *from, int bytes, arrivals *at);
void copy16_or_zeros(void *to, const void *from, bool there);
void arrive_after_copies(arrivals *at);
void fence_async_proxy();
int least(int a, int b);
int64_t least(int64_t a, int64_t b);

#endif
