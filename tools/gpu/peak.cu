/* peak.cu: what this GPU can do at most: the ceilings of measured rates.
 *
 *   nvcc -O2 -std=c++17 -arch=sm_90a -Iinclude -Isrc -o peak tools/gpu/peak.cu
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Multiply-adds of floats and steps of mma.sync in registers, and a copy of a
 * gigabyte; of each the best of ten. */
#include <stdio.h>

#include "ops/cuda/mma.h"

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

__global__ void chains_of_mma(float *out, uint32_t x)
{
    const factors_of a = {{x, x, x, x}};
    sums s[8];
    clear(s);
    for (int r = 0; r < ROUNDS; r++) {
        UNROLL
        for (int i = 0; i < 8; i++) mma(s[i], a, x, x);
    }
    float all = 0;
    UNROLL
    for (int i = 0; i < 8; i++) all = add_rn(all, s[i].r[0]);
    out[grid_thread()] = all;
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

int main()
{
    const size_t giga = 1u << 30;
    const int threads = 256;
    cudaDeviceProp device;
    cudaError_t e = cudaGetDeviceProperties(&device, 0);
    char *to = nullptr, *from = nullptr;
    if (!e) e = cudaMalloc(&to, giga);
    if (!e) e = cudaMalloc(&from, giga);
    if (e) {
        printf("FAIL peak: %s\n", cudaGetErrorString(e));
        return 1;
    }
    const int blocks = 8 * device.multiProcessorCount;
    const double all = (double)blocks * threads * ROUNDS;
    const double fma = seconds([&] {
        chains_of_fma<<<blocks, threads>>>((float *)to, 0.5f);
    });
    const double product = seconds([&] {
        chains_of_mma<<<blocks, threads>>>((float *)to, 0x3f803f80u);
    });
    const double copy = seconds([&] {
        cudaMemcpyAsync(to, from, giga, cudaMemcpyDeviceToDevice);
    });
    e = cudaGetLastError();
    printf("%s: fma %.1f TFLOP/s, mma %.1f TFLOP/s, copy %.0f GB/s\n",
           device.name, 32 * all / fma * 1e-12,
           all / 32 * 8 * 4096 / product * 1e-12, 2 * giga / copy * 1e-9);
    return e != cudaSuccess;
}
