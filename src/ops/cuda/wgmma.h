/* wgmma.h: the tensor cores of sm_90 as kernels see them: words next to those
 * of kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warpgroup, four warps side by side, multiplies what lies in shared memory.
 * It goes on at once; sums may be read when the product was waited for, and so
 * may its factors be overwritten. Factors come by copies of whole blocks, which
 * one thread starts; whoever needs them waits for what arrives. Source: PTX
 * ISA, "Asynchronous warpgroup level matrix instructions", "mbarrier",
 * "cp.async.bulk". */
#ifndef TT_CUDA_WGMMA_H
#define TT_CUDA_WGMMA_H

#include "ops/cuda/mma.h"

/* Where 8 factors of a block lie (args.h): rows of 128 bytes, whose chunks of
 * 16 bytes are exchanged by the row's number, so that 8 rows lie in different
 * banks. */
DEVICE int swizzled(int row, int chunk)
{
    return row * BLOCK_K + (chunk ^ (row & 7)) * 8;
}

/* And where factor k of a row lies in a matrix of `across` blocks a row. */
DEVICE int64_t in_blocks(int row, int64_t k, int64_t across)
{
    return (row / BLOCK_ROWS * across + k / BLOCK_K) * BLOCK_FACTORS +
           swizzled(row % BLOCK_ROWS, (int)(k % BLOCK_K / 8)) + k % 8;
}

DEVICE uint4 eight_of(float4 a, float4 b)
{
    return uint4{two_factors(a.x, a.y), two_factors(a.z, a.w),
                 two_factors(b.x, b.y), two_factors(b.z, b.w)};
}

/* A matrix [rows, 16] of a block in shared memory, from factor k of its first
 * row on: k is a multiple of 16, the row one of 8. Groups of 8 rows are 1024
 * bytes apart. */
DEVICE uint64_t matrix_at(const bf16 *first_row, int k)
{
    const uint64_t address = shared_address(first_row) + 2 * k;
    return (address & 0x3ffff) >> 4 | (uint64_t)1 << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Turned: a matrix [columns, 16] whose 16 numbers are rows of two blocks side
 * by side, from the first on, which is a multiple of 16, and whose columns are
 * the 64 factors of one block and the 64 of the other. */
DEVICE uint64_t transposed_at(const bf16 *pair)
{
    const uint64_t address = shared_address(pair);
    return (address & 0x3ffff) >> 4 | (uint64_t)(BLOCK_BYTES >> 4) << 16 |
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
/* ---- what arrives -------------------------------------------------------- */

/* Counts turns: one ends when so many threads and bytes have arrived as it
 * waits for. Lies in shared memory. */
typedef uint64_t arrivals;

/* By one thread; then show them all, to threads after a barrier and to copies.
 */
DEVICE void arrivals_of(arrivals *at, int threads)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(shared_address(at)), "r"(threads) : "memory");
}

DEVICE void arrivals_show()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* A thread has come. */
DEVICE void arrive(arrivals *at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :: "r"(shared_address(at)) : "memory");
}

/* And so many bytes will. */
DEVICE void arrive_and(arrivals *at, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(at)), "r"(bytes) : "memory");
}

/* Until turn number `turn` has ended; the one before the first, -1, has. */
DEVICE void await(arrivals *at, int turn)
{
    asm volatile("{.reg .pred p; AGAIN: "
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                 "@!p bra AGAIN;}"
                 :: "r"(shared_address(at)), "r"(turn & 1) : "memory");
}

/* Bytes, a multiple of 16, of global memory on their way to shared memory. */
DEVICE void copy_block(void *to, const void *from, int bytes, arrivals *at)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier"
                 "::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes),
                    "r"(shared_address(at)) : "memory");
}

/* An asynchronous copy of 16 bytes by each thread, or zeros; through L1, for
 * windows that overlap. */
DEVICE void copy16_or_zeros(void *to, const void *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

/* This thread arrives when its copies so far have. */
DEVICE void arrive_after_copies(arrivals *at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                 :: "r"(shared_address(at)) : "memory");
}

/* Products of this thread read copies by threads only after this fence, which
 * follows the wait for them. */
DEVICE void fence_async_proxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- products ------------------------------------------------------------ */

/* No use of the sums, or of rows, moves past this: after a wait, and before
 * the fence of products that go on with them. */
template <int N> DEVICE void wgmma_tie(sums (&acc)[N])
{
    UNROLL
    for (int i = 0; i < N; i++)
        UNROLL
        for (int e = 0; e < 4; e++)
            asm volatile("" : "+f"(acc[i].r[e]) :: "memory");
}

template <int N> DEVICE void wgmma_tie(factors_of (&rows)[N])
{
    UNROLL
    for (int i = 0; i < N; i++)
        UNROLL
        for (int e = 0; e < 4; e++)
            asm volatile("" : "+r"(rows[i].r[e]) :: "memory");
}

/* Before the first product, and before every one after a use of the sums or of
 * rows in registers. */
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

#define FOUR(io, s) io(s.r[0]), io(s.r[1]), io(s.r[2]), io(s.r[3])
#define SIXTEEN(io, i) FOUR(io, acc[i]), FOUR(io, acc[i + 1]), \
                       FOUR(io, acc[i + 2]), FOUR(io, acc[i + 3])
#define SIXTY_FOUR(io) SIXTEEN(io, 0), SIXTEEN(io, 4), SIXTEEN(io, 8), \
                       SIXTEEN(io, 12)
#define OUT(x) "=f"(x)
#define INOUT(x) "+f"(x)
#define ALL_64                                                               \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "   \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "   \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "   \
    "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "   \
    "%58, %59, %60, %61, %62, %63"
#define NEXT_48                                                              \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "   \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "   \
    "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, "   \
    "%105, %106, %107, %108, %109, %110, %111"
#define LAST_16                                                              \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, " \
    "%124, %125, %126, %127"
#define M64 "wgmma.mma_async.sync.aligned.m64"
#define K16 "k16.f32.bf16.bf16 "
#define M64N128 M64 "n128" K16

/* acc [64, 128] = a [64, 16] b [128, 16]^T. Number e of acc[j] lies in row
 * 16 warp + sum_row(lane, e) and column 8 j + sum_col(lane, e). */
DEVICE void wgmma_first(sums (&acc)[16], uint64_t a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0; "
                 M64N128 "{" ALL_64 "}, %64, %65, p, 1, 1, 0, 0;}"
                 : SIXTY_FOUR(OUT) : "l"(a), "l"(b));
}

/* += in place of = */
DEVICE void wgmma(sums (&acc)[16], uint64_t a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
                 M64N128 "{" ALL_64 "}, %64, %65, p, 1, 1, 0, 0;}"
                 : SIXTY_FOUR(INOUT) : "l"(a), "l"(b));
}

/* The same of 224 and 256 columns; the sums go on, or begin. */
DEVICE void wgmma(sums (&acc)[28], uint64_t a, uint64_t b, bool on)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %114, 0; " M64 "n224" K16
                 "{" ALL_64 ", " NEXT_48 "}, %112, %113, p, 1, 1, 0, 0;}"
                 : SIXTY_FOUR(INOUT), SIXTEEN(INOUT, 16), SIXTEEN(INOUT, 20),
                   SIXTEEN(INOUT, 24)
                 : "l"(a), "l"(b), "r"((int)on));
}

DEVICE void wgmma(sums (&acc)[32], uint64_t a, uint64_t b, bool on)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; " M64 "n256" K16
                 "{" ALL_64 ", " NEXT_48 ", " LAST_16 "}, %128, %129, p, 1, 1, "
                 "0, 0;}"
                 : SIXTY_FOUR(INOUT), SIXTEEN(INOUT, 16), SIXTEEN(INOUT, 20),
                   SIXTEEN(INOUT, 24), SIXTEEN(INOUT, 28)
                 : "l"(a), "l"(b), "r"((int)on));
}

/* acc [64, 128] += a [64, 16] b [16, 128]: a as mma takes it, 16 rows a warp; b
 * transposed. */
DEVICE void wgmma(sums (&acc)[16], const factors_of &a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
                 M64N128 "{" ALL_64 "}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;}"
                 : SIXTY_FOUR(INOUT)
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b));
}

/* The same with 8 columns more. */
DEVICE void wgmma(sums (&acc)[17], const factors_of &a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
                 "wgmma.mma_async.sync.aligned.m64n136k16.f32.bf16.bf16 "
                 "{" ALL_64 ", %64, %65, %66, %67}, "
                 "{%68, %69, %70, %71}, %72, p, 1, 1, 1;}"
                 : SIXTY_FOUR(INOUT), FOUR(INOUT, acc[16])
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b));
}

/* Factors to shared memory by a thread; products after the next barrier or
 * arrival see those before written(). */
DEVICE void store_factors(bf16 *to, uint4 v) { store16(to, v); }
DEVICE void written()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The same of 96 and of 192 columns. */
#define FORTY_EIGHT SIXTEEN(INOUT, 0), SIXTEEN(INOUT, 4), SIXTEEN(INOUT, 8)
#define NINETY_SIX FORTY_EIGHT, SIXTEEN(INOUT, 12), SIXTEEN(INOUT, 16),        \
                   SIXTEEN(INOUT, 20)
#define ALL_48                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "           \
    "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "           \
    "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "           \
    "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define ALL_96                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "           \
    "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "           \
    "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "           \
    "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "           \
    "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "           \
    "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "           \
    "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "           \
    "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

DEVICE void wgmma(sums (&acc)[12], uint64_t a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
                 "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
                 ALL_48 "}, %48, %49, p, 1, 1, 0, 0;}"
                 : FORTY_EIGHT : "l"(a), "l"(b));
}

DEVICE void wgmma(sums (&acc)[24], uint64_t a, uint64_t b)
{
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
                 ALL_96 "}, %96, %97, p, 1, 1, 0, 0;}"
                 : NINETY_SIX : "l"(a), "l"(b));
}

/* ---- registers ----------------------------------------------------------- */

/* A warpgroup that multiplies takes the registers that one that brings factors
 * leaves: so many a thread, from here on. */
template <int N> DEVICE void registers_take()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
}

template <int N> DEVICE void registers_leave()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}
#else
/* A kernel whose instructions this GPU has not. */
DEVICE void nothing_here() { asm volatile("trap;"); }
#endif

#else
#define HAS_WGMMA 1
#endif

#if HAS_WGMMA
/* This warp needs what arrived no more. */
DEVICE void release(arrivals *at)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(at);
}
#endif
#endif
