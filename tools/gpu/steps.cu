/* steps.cu: do the tensor cores of this GPU compute what the classes say?
 *
 *   nvcc -std=c++17 -arch=sm_90a -Iinclude -Isrc -o steps tools/gpu/steps.cu
 *   steps [millions of sums, default 100]
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies fragments of random factors by mma.sync, and by wgmma where there
 * is one, through the words of the kernels, and compares every sum with
 * ops/tensor_core.h, bit by bit, NaN with NaN. Factors are of like size, of all
 * sizes, small ones with zeros, equal ones that cancel, and a few are not
 * finite. Prints the first sums that differ, with their factors. */
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "ops/cuda/wgmma.h"
#include "ops/tensor_core.h"

/* ---- numbers, made alike on both sides ----------------------------------- */

static __host__ __device__ uint64_t mixed(uint64_t i)
{
    i += 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return i ^ i >> 31;
}

/* Factor i of product p, as bf16. */
static __host__ __device__ uint32_t factor(uint64_t p, uint32_t i)
{
    const uint64_t r = mixed(p << 20 | i);
    const uint32_t sign = (uint32_t)r & 0x8000u;
    const uint32_t low = (uint32_t)(r >> 16) & 127;
    const uint32_t any = (uint32_t)(r >> 32) & 255;
    switch (p % 5) {
    case 0: return sign | (120 + any % 16) << 7 | low;
    case 1: return sign | (any % 255) << 7 | low;
    case 2: return any < 80 ? sign : sign | (any % 70) << 7 | low;
    case 3: return sign | (any % 40 == 0 ? 110u : 127u) << 7 | (low & 1);
    default: return any < 2 ? sign | 255u << 7 | (any ? 0 : low)
                            : sign | (110 + any % 40) << 7 | low;
    }
}

/* Sum i before the product. */
static __host__ __device__ uint32_t before(uint64_t p, uint32_t i)
{
    const uint64_t r = mixed(~(p << 20 | i));
    const uint32_t any = (uint32_t)(r >> 32) % 60;
    if (any < 6) return any < 3 ? 0 : (uint32_t)r & 0x807fffffu;
    return ((uint32_t)r & 0x807fffffu) | (97 + any) << 23;
}

/* ---- on the GPU ---------------------------------------------------------- */

/* A warp a product: a [16, 16] factors 0.., b [8, 16] from 256 on. */
__global__ void by_mma(float *out, uint64_t first)
{
    const uint64_t p = first + blockIdx.x;
    const int l = threadIdx.x;
    factors_of a;
    sums c;
    uint32_t b[2];
    for (int w = 0; w < 4; w++) {
        const int at = (l / 4 + w % 2 * 8) * 16 + w / 2 * 8 + l % 4 * 2;
        a.r[w] = factor(p, at) | factor(p, at + 1) << 16;
    }
    for (int w = 0; w < 2; w++) {
        const int at = 256 + l / 4 * 16 + w * 8 + l % 4 * 2;
        b[w] = factor(p, at) | factor(p, at + 1) << 16;
    }
    for (int e = 0; e < 4; e++)
        c.r[e] = __uint_as_float(before(p, sum_row(l, e) * 8 + sum_col(l, e)));
    mma(c, a, b[0], b[1]);
    for (int e = 0; e < 4; e++)
        out[blockIdx.x * 128 + sum_row(l, e) * 8 + sum_col(l, e)] = c.r[e];
}

#if HAS_WGMMA
/* Where sum e of fragment j of thread t of a warpgroup lies in 64 x 128. */
static __device__ int place(int t, int j, int e)
{
    const int row = 16 * (t / 32) + sum_row(t & 31, e);
    return row * 128 + 8 * j + sum_col(t & 31, e);
}

/* A warpgroup's sums before the product, and where they go. */
static __device__ void fill(sums (&acc)[16], uint64_t p)
{
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++)
            acc[j].r[e] = __uint_as_float(before(p, place(threadIdx.x, j, e)));
    /* what threads wrote to shared memory is there for the tensor cores */
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    wgmma_begin();
}

static __device__ void take(float *out, sums (&acc)[16])
{
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_tie(acc);
    UNROLL
    for (int j = 0; j < 16; j++)
        UNROLL
        for (int e = 0; e < 4; e++)
            out[(int64_t)blockIdx.x * 8192 + place(threadIdx.x, j, e)] =
                acc[j].r[e];
}
#endif

/* A warpgroup a product: a [64, 16], b [128, 16] from 1024 on. */
__global__ void by_wgmma(float *out, uint64_t first)
{
#if HAS_WGMMA
    bf16 *const mem = reinterpret_cast<bf16 *>(shared_memory);
    const uint64_t p = first + blockIdx.x;
    sums acc[16];
    for (int i = threadIdx.x; i < 192 * 16; i += 128)
        mem[swizzled(i / 16, i % 16 / 8) + i % 8] = (bf16)factor(p, i);
    fill(acc, p);
    wgmma(acc, matrix_at(mem, 0), matrix_at(mem + 64 * BLOCK_K, 0));
    take(out, acc);
#endif
}

/* The same with a in registers and b transposed: columns lie side by side. */
__global__ void by_transposed(float *out, uint64_t first)
{
#if HAS_WGMMA
    bf16 *const mem = reinterpret_cast<bf16 *>(shared_memory);
    const uint64_t p = first + blockIdx.x;
    const int l = threadIdx.x & 31, row = threadIdx.x / 32 * 16;
    sums acc[16];
    factors_of a;
    for (int i = threadIdx.x; i < 128 * 16; i += 128) {
        const int n = i / 16, k = i % 16;
        mem[n / 64 * BLOCK_FACTORS + swizzled(k, n % 64 / 8) + n % 8] =
            (bf16)factor(p, 1024 + i);
    }
    for (int w = 0; w < 4; w++) {
        const int at = (row + l / 4 + w % 2 * 8) * 16 + w / 2 * 8 + l % 4 * 2;
        a.r[w] = factor(p, at) | factor(p, at + 1) << 16;
    }
    fill(acc, p);
    wgmma(acc, a, transposed_at(mem));
    take(out, acc);
#endif
}

/* ---- here ---------------------------------------------------------------- */

struct shape {
    const char *name;
    int rows, cols, threads;
    int shared;
    void (*kernel)(float *out, uint64_t first);
};

static tc_unit unit;
static std::atomic<long> differing;

static void compare_one(const shape &s, uint64_t p, const float *got)
{
    std::vector<float> x(16 * s.rows), y(16 * s.cols);
    for (int i = 0; i < 16 * s.rows; i++) x[i] = tc_float(factor(p, i) << 16);
    for (int i = 0; i < 16 * s.cols; i++)
        y[i] = tc_float(factor(p, 16 * s.rows + i) << 16);
    for (int i = 0; i < s.rows * s.cols; i++) {
        const float c = tc_float(before(p, i));
        const float *a = &x[i / s.cols * 16], *b = &y[i % s.cols * 16];
        const float want = tc_chain(unit, c, a, 1, b, 16);
        if (tc_bits(want) == tc_bits(got[i])
            || (isnan(want) && isnan(got[i])) || differing++ > 4)
            continue;
        printf("%s: %a, want %a: %a", s.name, got[i], want, c);
        for (int k = 0; k < 16; k++) printf(" + %a * %a", a[k], b[k]);
        printf("\n");
    }
}

static bool failed(cudaError_t e)
{
    if (e) printf("FAIL steps: %s\n", cudaGetErrorString(e));
    return e != cudaSuccess;
}

static bool compare(const shape &s, long wanted)
{
    const int size = s.rows * s.cols, most = (1 << 24) / size;
    const unsigned n = std::max(1u, std::thread::hardware_concurrency());
    std::vector<float> got((size_t)most * size);
    float *out;
    if (failed(cudaMalloc(&out, got.size() * sizeof(float)))) return false;
    long done = 0;
    differing = 0;
    for (uint64_t first = 0; done < wanted; first += most) {
        done += most * size;
        s.kernel<<<most, s.threads, s.shared>>>(out, first);
        if (failed(cudaMemcpy(got.data(), out, got.size() * sizeof(float),
                              cudaMemcpyDeviceToHost)))
            return false;
        std::vector<std::thread> team;
        for (unsigned t = 0; t < n; t++)
            team.emplace_back([&, t] {
                for (int i = (int)t; i < most; i += (int)n)
                    compare_one(s, first + i, &got[(size_t)i * size]);
            });
        for (std::thread &t : team) t.join();
    }
    cudaFree(out);
    printf("%s: %ld sums, %ld differ\n", s.name, done, differing.load());
    return differing == 0;
}

int main(int argc, char **argv)
{
    static const shape mma_shape = {"mma.sync m16n8k16", 16, 8, 32, 0, by_mma};
    static const shape wgmma_shape = {"wgmma m64n128k16", 64, 128, 128,
                                      192 * BLOCK_K * 2, by_wgmma};
    static const shape transposed_shape = {"wgmma m64n128k16, b transposed", 64,
                                           128,
                                           128, 2 * BLOCK_BYTES, by_transposed};
    const long wanted = (argc > 1 ? atol(argv[1]) : 100) * 1000000;
    cudaDeviceProp device;
    if (failed(cudaGetDeviceProperties(&device, 0))) return 1;
    unit = device.major < 9 ? tc_sm80 : tc_sm90;
    printf("%s, steps of %d products\n", device.name, unit.block);
    bool equal = compare(mma_shape, wanted);
    if (device.major == 9 && device.minor == 0) {
        equal = compare(wgmma_shape, wanted) && equal;
        equal = compare(transposed_shape, wanted) && equal;
    }
    return !equal;
}
