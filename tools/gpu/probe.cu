/* probe.cu: what this GPU can do at most, and what its instructions give.
 *
 *   make CUDA=1 cuda-programs, and on a GPU: build/FLAVOUR/gpu/probe [FILE]
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * exp2_near of every exponent that a weight of attention can have, against 2^x
 * rounded to bf16; reciprocal_near of 2^23 significands; FILE gets the 2^23
 * significands of ex2.approx. Then ceilings, of each the best of ten:
 * multiply-adds of floats, steps of mma.sync, wgmma of shared memory and of
 * registers, blocks from the second cache to shared memory, a copy of a
 * gigabyte. The status is 1 where an approximate instruction is worse than the
 * kernels need. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "ops/cuda/epilogue.h"
#include "ops/cuda/wgmma.h"
#include "ops/tensor_core.h"

static bool failed(const char *what, cudaError_t e)
{
    if (e) printf("FAIL %s: %s\n", what, cudaGetErrorString(e));
    return e != cudaSuccess;
}

/* Seconds of the fastest of ten. */
template <class WORK> static double seconds(WORK work)
{
    double best = 1e30;
    cudaEvent_t from, to;
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    for (int i = 0; i < 10; i++) {
        float ms = 0;
        cudaEventRecord(from);
        work();
        cudaEventRecord(to);
        cudaEventSynchronize(to);
        cudaEventElapsedTime(&ms, from, to);
        if (ms * 1e-3 < best) best = ms * 1e-3;
    }
    return best;
}

/* ---- approximate instructions -------------------------------------------- */

/* y[i] = f(from + i step) */
enum function { EX2, RECIPROCAL };
__global__ void values(float *y, function f, float from, float step, int n)
{
    const int i = (int)grid_thread();
    const float x = fma_rn((float)i, step, from);
    if (i < n) y[i] = f == EX2 ? exp2_near(x) : reciprocal_near(x);
}

static bool ask(std::vector<float> &y, float *device, function f, float from,
                float step)
{
    const int n = (int)y.size();
    values<<<(n + 255) / 256, 256>>>(device, f, from, step, n);
    return !failed("values", cudaMemcpy(y.data(), device, n * sizeof(float),
                                        cudaMemcpyDeviceToHost));
}

static bool weights(float *device)
{
    std::vector<float> y(127 * 1024 + 1), below(2);     /* -126 to 1          */
    long factors = 0, nearest = 0, whole = 0;
    double worst = 0;
    if (!ask(y, device, EX2, -126.0f, 0x1p-10f)
        || !ask(below, device, EX2, -126.0f - 0x1p-10f, 0x1p-10f))
        return false;
    for (size_t i = 0; i < y.size(); i++) {
        const double want = exp2((double)i / 1024 - 126);
        worst = fmax(worst, fabs(y[i] / want - 1));
        nearest += y[i] != (float)want;
        factors += tc_factor(y[i]) != tc_exp2((float)i / 1024 - 126);
        whole += i >= 1024 && y[i] != 2 * y[i - 1024];
    }
    printf("ex2: %zu exponents, %ld weights differ, %ld floats are not the "
           "nearest, worst 2^%.2f, %ld depend on the integer part; below -126 "
           "%a\n", y.size(), factors, nearest, log2(worst), whole, below[0]);
    return factors == 0 && below[0] == 0 && worst < 0x1p-20;
}

static bool significands(float *device, const char *file)
{
    std::vector<float> y(1 << 23);
    double worst = 0;
    if (!ask(y, device, RECIPROCAL, 1.0f, 0x1p-23f)) return false;
    for (size_t i = 0; i < y.size(); i++)
        worst = fmax(worst, fabs(y[i] * (1 + 0x1p-23 * (double)i) - 1));
    printf("rcp: 2^23 significands, worst 2^%.2f\n", log2(worst));
    if (!ask(y, device, EX2, 0.0f, 0x1p-23f)) return false;
    uint64_t digest = 0xcbf29ce484222325u;              /* FNV-1a             */
    for (float v : y)
        for (int b = 0; b < 32; b += 8)
            digest = (digest ^ (tc_bits(v) >> b & 255)) * 0x100000001b3u;
    printf("ex2: digest of 2^23 significands %016llx\n",
           (unsigned long long)digest);
    FILE *f = file ? fopen(file, "wb") : NULL;
    const bool wrote = f && fwrite(y.data(), 4, y.size(), f) == y.size();
    if (file && ((f && fclose(f)) || !wrote)) {
        printf("FAIL %s: cannot be written\n", file);
        return false;
    }
    return worst < 0x1p-22;
}

/* ---- ceilings ------------------------------------------------------------ */

#define ROUNDS 4096

__global__ void chains_of_fma(float *out, float x)
{
    float s[16];
    UNROLL
    for (int i = 0; i < 16; i++) s[i] = (float)(threadIdx.x + i);
    for (int r = 0; r < ROUNDS; r++) {
        UNROLL
        for (int i = 0; i < 16; i++) s[i] = fma_rn(s[i], x, x);
    }
    float all = 0;
    UNROLL
    for (int i = 0; i < 16; i++) all = add_rn(all, s[i]);
    out[grid_thread()] = all;
}

template <int N> DEVICE float sum_of(const sums (&s)[N])
{
    float all = 0;
    UNROLL
    for (int i = 0; i < N; i++) all = add_rn(all, s[i].r[0]);
    return all;
}

__global__ void chains_of_mma(float *out, uint32_t x)
{
    const uint32_t l = threadIdx.x * 2654435761u;       /* numbers below 1    */
    const factors_of a = {{x ^ (l & 0x7f807f), x, x ^ (l >> 8 & 0x7f807f), x}};
    sums s[8];
    clear(s);
    for (int r = 0; r < ROUNDS; r++) {
        UNROLL
        for (int i = 0; i < 8; i++) mma(s[i], a, x, x);
    }
    out[grid_thread()] = sum_of(s);
}

#define STAGES 6

/* Every block of threads brings `count` blocks of factors; those of one group
 * of `same` blocks bring the same ones, of `all`. */
__global__ void brings(const bf16 *from, int count, int same, int all)
{
#if HAS_WGMMA
    SHARED(bf16, mem);
    arrivals *const full = (arrivals *)(mem + STAGES * BLOCK_FACTORS);
    if (threadIdx.x) return;
    for (int i = 0; i < STAGES; i++) arrivals_of(full + i, 1);
    arrivals_show();
    for (int t = 0; t < count + STAGES; t++) {
        if (t >= STAGES) await(full + t % STAGES, t / STAGES - 1);
        if (t >= count) continue;
        const int at = (blockIdx.x / same * 61 + t) % all;
        arrive_and(full + t % STAGES, BLOCK_BYTES);
        copy_block(mem + t % STAGES * BLOCK_FACTORS,
                   from + (int64_t)at * BLOCK_FACTORS, BLOCK_BYTES,
                   full + t % STAGES);
    }
#endif
}

/* Two warpgroups, each 64 rows, of what lies in shared memory: columns as the
 * kernels have them. FROM_REGISTERS: rows are in registers, as weights are. */
template <int N, bool FROM_REGISTERS> __global__ void __launch_bounds__(256, 1)
    multiplies(float *out, int rounds)
{
#if HAS_WGMMA
    SHARED(bf16, mem);
    for (int i = threadIdx.x; i < 4 * BLOCK_FACTORS; i += 256)
        mem[i] = (bf16)(0x3f00 + (i * 2654435761u >> 20 & 0x80ff));
    written();
    __syncthreads();
    const uint64_t a = matrix_at(mem + threadIdx.x / 128 * 64 * BLOCK_K, 0);
    const uint64_t b = FROM_REGISTERS ? transposed_at(mem)
                                      : matrix_at(mem + BLOCK_FACTORS, 0);
    const factors_of x = {{0x3f813f02u + threadIdx.x, 0x3f833f04u,
                           0xbf853f06u, 0x3f87bf08u}};
    sums acc[N / 8];
    clear(acc);
    wgmma_tie(acc);
    for (int r = 0; r < rounds; r++) {
        wgmma_begin();
        UNROLL
        for (int k = 0; k < 4; k++)
            if constexpr (FROM_REGISTERS) wgmma(acc, x, b + 2 * BLOCK_K * k);
            else if constexpr (N > 192) wgmma(acc, a + 2 * k, b + 2 * k, true);
            else wgmma(acc, a + 2 * k, b + 2 * k);
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    wgmma_tie(acc);
    out[grid_thread()] = sum_of(acc);
#endif
}

static int multiprocessors;

template <int N, bool FROM_REGISTERS> static void wgmma_rate(float *memory)
{
    const int rounds = 20000, shared = 4 * BLOCK_BYTES;
    auto *const kernel = multiplies<N, FROM_REGISTERS>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         shared);
    const double s = seconds([&] {
        kernel<<<multiprocessors, 256, shared>>>(memory, rounds);
    });
    printf("wgmma m64n%dk16, %s: %.0f TFLOP/s\n", N,
           FROM_REGISTERS ? "rows in registers" : "both in shared memory",
           1e-12 * multiprocessors * 2.0 * rounds * 4 * 2 * 64 * N * 16 / s);
}

static void second_cache(bf16 *memory)
{
    static const struct { int each, same, all; const char *what; } ways[] = {
        {2, 1, 1024, "16 MB, two blocks of threads a multiprocessor"},
        {2, 12, 1024, "the same, 12 blocks of threads read the same"},
        {1, 1, 1024, "16 MB, one block of threads a multiprocessor"},
        {2, 1, 16384, "256 MB"},
    };
    const int shared = STAGES * (BLOCK_BYTES + 8), count = 4096;
    cudaFuncSetAttribute(brings, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         shared);
    for (const auto &w : ways) {
        const int blocks = w.each * multiprocessors;
        const double s = seconds([&] {
            brings<<<blocks, 32, shared>>>(memory, count, w.same, w.all);
        });
        printf("to shared memory: %.2f TB/s (%s)\n",
               1e-12 * blocks * count * BLOCK_BYTES / s, w.what);
    }
}

static void every_gpu(char *memory, size_t half)
{
    const int threads = 256, blocks = 8 * multiprocessors;
    const double all = (double)blocks * threads * ROUNDS;
    const double fma = seconds([&] {
        chains_of_fma<<<blocks, threads>>>((float *)memory, 0.5f);
    });
    const double product = seconds([&] {
        chains_of_mma<<<blocks, threads>>>((float *)memory, 0x3f2a3f55u);
    });
    const double copy = seconds([&] {
        cudaMemcpyAsync(memory, memory + half, half, cudaMemcpyDeviceToDevice);
    });
    printf("fma %.1f TFLOP/s, mma %.0f TFLOP/s, copy %.2f TB/s\n",
           32 * all / fma * 1e-12, all / 32 * 8 * 4096 / product * 1e-12,
           2 * (double)half / copy * 1e-12);
}

/* Of all floats: those whose GELU without a division is not the one with it. */
__global__ void gelus(unsigned long long *bad)
{
    unsigned long long n = 0;
    for (uint64_t i = grid_thread(); i < (uint64_t)1 << 30;
         i += grid_threads()) {
        float v[4];
        UNROLL
        for (int k = 0; k < 4; k++)
            v[k] = float_of((uint32_t)i + ((uint32_t)k << 30));
        gelu_all(v);
        UNROLL
        for (int k = 0; k < 4; k++) {
            const uint32_t bits = (uint32_t)i + ((uint32_t)k << 30);
            const float want = gelu_f32(float_of(bits));
            n += bits_of(want) != bits_of(v[k])
                 && (want == want || v[k] == v[k]);
        }
    }
    if (n) atomicAdd(bad, n);
}

/* Numbers of one quarter of all floats stand in for each other in gelu_all, so
 * most of these calls divide; the fast way is asked for by itself. */
__global__ void close_gelus(unsigned long long *bad)
{
    unsigned long long n = 0;
    for (uint64_t i = grid_thread(); i < (uint64_t)1 << 32;
         i += grid_threads()) {
        const float v = float_of((uint32_t)i);
        n += gelu_is_close(v) && bits_of(gelu_close(v)) != bits_of(gelu_f32(v));
    }
    if (n) atomicAdd(bad, n);
}

static bool gelu_right(void *memory)
{
    unsigned long long *const bad = (unsigned long long *)memory;
    unsigned long long n[2] = {1, 1};
    cudaMemset(bad, 0, sizeof n);
    gelus<<<multiprocessors * 8, 256>>>(bad);
    close_gelus<<<multiprocessors * 8, 256>>>(bad + 1);
    cudaMemcpy(n, bad, sizeof n, cudaMemcpyDeviceToHost);
    printf("gelu of all floats: %llu differ, %llu without a division\n", n[0],
           n[1]);
    return n[0] == 0 && n[1] == 0;
}

int main(int argc, char **argv)
{
    cudaDeviceProp d;
    char *memory = nullptr;
    const size_t half = (size_t)1 << 29;
    if (failed("a GPU", cudaGetDeviceProperties(&d, 0))
        || failed("memory", cudaMalloc(&memory, 2 * half)))
        return 1;
    cudaMemset(memory, 0x3f, 2 * half);
    multiprocessors = d.multiProcessorCount;
    printf("%s, %d multiprocessors, second cache %d MB\n", d.name,
           multiprocessors, d.l2CacheSize >> 20);
    bool right = weights((float *)memory);
    right &= significands((float *)memory, argc > 1 ? argv[1] : NULL);
    right &= gelu_right(memory);
    every_gpu(memory, half);
    if (d.major == 9) {
        second_cache((bf16 *)memory);
        wgmma_rate<128, false>((float *)memory);
        wgmma_rate<224, false>((float *)memory);
        wgmma_rate<256, false>((float *)memory);
        wgmma_rate<128, true>((float *)memory);
        wgmma_rate<136, true>((float *)memory);
    }
    right &= !failed("the end", cudaDeviceSynchronize());
    return !right;
}
