/* shim.h: a GPU made of fibers: the words of kernel.h for a C++ compiler.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every thread of a block is a fiber; barriers and shuffles switch between
 * them, in an order that TT_SHIM_ORDER chooses: forward, reverse, random. A
 * kernel whose result depends on the order has a race. Asynchronous copies
 * arrive when they are waited for, no sooner, and spoil their target before;
 * shared memory begins as NaN. What the shim cannot see stands in
 * src/ops/cuda/README.md. */
#ifndef TT_TESTS_CUDA_SHIM_H
#define TT_TESTS_CUDA_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- the words of CUDA --------------------------------------------------- */
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- the engine (shim.cpp) ----------------------------------------------- */
/* A kernel as the driver finds it, under the name shim_NAME. */
struct shim_kernel {
    void (*run)(const void *args);
    size_t bytes;          /* of its arguments                                */
    unsigned threads;      /* of a block, at most                             */
};

/* Run a grid. Mistakes of the kernel end the program with a sentence. */
void shim_run(const shim_kernel *k, const char *name, dim3 grid, dim3 block,
              size_t shared, const void *args);
void shim_fail(const char *what);

void shim_block_barrier();
void shim_warp_barrier();
void *shim_shared();
/* 64 bytes for each lane of this warp, seen by all of them. */
char *shim_slots();
int shim_lane();
void shim_copy(void *to, const void *from, int bytes);
void shim_commit();
void shim_wait(int leave);

/* Bytes of shared memory from its begin to p; back, NULL outside of it. */
uint32_t shim_shared_offset(const void *p);
const void *shim_shared_at(uint32_t offset, int bytes);
/* What arrives (wgmma.h): turns of threads and bytes, at a place in shared
 * memory. Copies arrive when a turn that has ended is waited for. */
void shim_arrivals_of(void *at, int threads);
void shim_arrivals_show();
void shim_arrive(void *at, int bytes);
void shim_await(void *at, int turn);
void shim_copy_block(void *to, const void *from, int bytes, void *at);
/* Copies of this thread arrive there too. A thread that waited for them needs
 * the fence before it multiplies. */
void shim_arrive_after_copies(void *at);
void shim_fence_async_proxy();
/* A thread that stored factors fences them before it meets others. */
void shim_stored_factors();
void shim_written();
/* Products that are computed when they are waited for: shim_mma.h. */
struct shim_product;
void shim_product_open(const shim_product &p);
void shim_product_commit();
void shim_product_wait(int leave);
void shim_product_begin();

/* The GPU: TT_SHIM_GPU, its compute capability times ten; 90 when not set. */
int shim_gpu();

/* ---- kernel.h ------------------------------------------------------------ */
#define DEVICE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_1
#define UNROLL_2

#define KERNEL(name, type, nthreads, nblocks)                                  \
    static void name(const type &a);                                           \
    static void name##_run(const void *args)                                   \
    {                                                                          \
        name(*static_cast<const type *>(args));                                \
    }                                                                          \
    extern "C" __attribute__((visibility("default")))                          \
    const shim_kernel shim_##name;                                             \
    const shim_kernel shim_##name = {name##_run, sizeof(type), nthreads};      \
    static void name(const type &a)

/* Where a GPU reads or writes 16 bytes at once. */
template <class T> static inline T *at_16(T *p)
{
    if ((uintptr_t)p % 16) shim_fail("16 bytes that are not aligned");
    return p;
}

#define SHARED(type, name) type *const name = static_cast<type *>(shim_shared())

static inline void __syncthreads() { shim_block_barrier(); }
static inline void __syncwarp() { shim_warp_barrier(); }

DEVICE float fma_rn(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

DEVICE float add_rn(float a, float b) { return a + b; }
DEVICE float mul_rn(float a, float b) { return a * b; }
DEVICE float div_rn(float a, float b) { return a / b; }
DEVICE double fma_rn(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

DEVICE double add_rn(double a, double b) { return a + b; }
DEVICE double mul_rn(double a, double b) { return a * b; }
DEVICE double div_rn(double a, double b) { return a / b; }
DEVICE double sqrt_rn(double a) { return __builtin_sqrt(a); }
DEVICE double wide(float a) { return (double)a; }
DEVICE double wide(int64_t n) { return (double)n; }
DEVICE float integer(int n) { return (float)n; }
DEVICE float narrow(double a) { return (float)a; }
DEVICE float4 four(float x, float y, float z, float w) { return {x, y, z, w}; }

DEVICE float float_of(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, 4);
    return a;
}

DEVICE uint32_t bits_of(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, 4);
    return bits;
}

DEVICE double double_of(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, 8);
    return a;
}

DEVICE uint64_t bits_of(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, 8);
    return bits;
}

template <class T> static inline T lane_xor(T v, int m)
{
    char *slots = shim_slots();
    memcpy(slots + 64 * shim_lane(), &v, sizeof v);
    shim_warp_barrier();
    memcpy(&v, slots + 64 * (shim_lane() ^ m), sizeof v);
    shim_warp_barrier();
    return v;
}

DEVICE void copy16(void *to, const void *from) { shim_copy(to, from, 16); }
DEVICE void copy4(void *to, const void *from) { shim_copy(to, from, 4); }
DEVICE void copy_commit() { shim_commit(); }
template <int N> DEVICE void copy_wait() { shim_wait(N); }

DEVICE int least(int a, int b) { return a < b ? a : b; }
DEVICE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

DEVICE uint32_t shared_address(const void *p) { return shim_shared_offset(p); }

#include "shim_mma.h"

#endif
