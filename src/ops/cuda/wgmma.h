/* wgmma.h: the tensor cores of sm_90 as kernels see them: words beside those of
 * kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warpgroup, four warps side by side, multiplies what lies in shared memory.
 * It goes on at once; sums may be read when the product was waited for, and so
 * may its factors be overwritten. Source: PTX ISA, "Asynchronous warpgroup
 * level matrix instructions". */
#ifndef TT_CUDA_WGMMA_H
#define TT_CUDA_WGMMA_H

#include "ops/cuda/mma.h"

/* Rows of 64 factors, 128 bytes, in groups of 8, which begin at a multiple of
 * 1024 bytes: chunk c of 16 bytes lies at c ^ (row & 7), so that 8 rows lie in
 * different banks. */
#define SWIZZLED_K 64
DEVICE int swizzled(int row, int chunk)
{
    return row * SWIZZLED_K + (chunk ^ (row & 7)) * 8;
}

/* A matrix of such rows, from factor k of its first row on: k is a multiple of
 * 16, the row one of 8. Groups of rows are 1024 bytes apart. */
DEVICE uint64_t matrix_at(const bf16 *first_row, int k)
{
    const uint64_t address = shared_address(first_row) + 2 * k;
    return (address & 0x3ffff) >> 4 | (uint64_t)1 << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#ifdef __CUDACC__

/* The instructions exist where the compiler makes code for sm_90a. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WGMMA 1
#else
#define HAS_WGMMA 0
#endif

#if HAS_WGMMA
/* What threads wrote to shared memory is there for the tensor cores; then a
 * barrier makes it so for all threads. */
DEVICE void wgmma_show() { asm volatile("fence.proxy.async;" ::: "memory"); }

/* Before the first product, and before every one behind a use of the sums. */
DEVICE void wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}

/* Behind the last wait: no use of the sums moves in front of it. */
DEVICE void wgmma_end(float (&acc)[64])
{
    UNROLL
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(acc[i]) :: "memory");
}

#define EIGHT(i)                                                               \
    "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3]),        \
    "+f"(acc[i + 4]), "+f"(acc[i + 5]), "+f"(acc[i + 6]), "+f"(acc[i + 7])

/* acc [64, 128] += a [64, 16] b [128, 16]^T. Number 4 j + e of a lane lies in
 * row 16 warp + sum_row(lane, e) and column 8 j + sum_col(lane, e). */
DEVICE void wgmma(float (&acc)[64], uint64_t a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; "
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;}"
                 : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32),
                   EIGHT(40), EIGHT(48), EIGHT(56)
                 : "l"(a), "l"(b), "r"(1));
}
#endif

#else
#define HAS_WGMMA 1
#endif
#endif
