/* wgmma_linear.cu: y = x w^T + b in class sm90, by the instructions that only
 * sm_90 has.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/tensor_core.c. A block of threads owns 128 x 128 outputs,
 * each of its two warpgroups 64 x 128, whose sums never leave registers until
 * they are done. One thread brings the factors of a step as soon as all warps
 * are done with those that lay in its place.
 *
 * Holds   k ascends in steps of 16, each output is one chain. Rows and columns
 *         behind the end are zeros, whose sums are not stored. */
#include "ops/cuda/rows.h"
#include "ops/cuda/wgmma.h"

#if HAS_WGMMA
#define WARPS (WGMMA_THREADS / 32)
#define STAGE (2 * BLOCK_FACTORS)

/* Step s lies at place s % WGMMA_STAGES, for the turn s / WGMMA_STAGES. */
DEVICE int place(int s) { return s % WGMMA_STAGES; }
DEVICE int turn(int s) { return s / WGMMA_STAGES; }

/* Blocks of factors in shared memory, x in front of w; what arrives there, and
 * who needs it no more. */
struct places {
    bf16 *mem;
    arrivals *full, *empty;
};

DEVICE places lay_out()
{
    SHARED(bf16, mem);
    arrivals *const first = (arrivals *)(mem + WGMMA_STAGES * STAGE);
    return {mem, first, first + WGMMA_STAGES};
}

/* The factors of step s on their way, by one thread. */
DEVICE void bring(const cuda_mma_linear_args &a, const places &p, int s)
{
    const bf16 *x = a.x + (blockIdx.y * (a.k / BLOCK_K) + s) * BLOCK_FACTORS;
    const bf16 *w = a.w + (blockIdx.x * (a.k / BLOCK_K) + s) * BLOCK_FACTORS;
    bf16 *to = p.mem + place(s) * STAGE;
    arrive_and(p.full + place(s), 2 * BLOCK_BYTES);
    copy_block(to, x, BLOCK_BYTES, p.full + place(s));
    copy_block(to + BLOCK_FACTORS, w, BLOCK_BYTES, p.full + place(s));
}

/* acc: the chains of 64 x 128 outputs go on over one step, or begin. */
template <bool FIRST>
DEVICE void step(sums (&acc)[16], const bf16 *mem, int own)
{
    const bf16 *x = mem + own * BLOCK_K, *w = mem + BLOCK_FACTORS;
    wgmma_begin();
    UNROLL
    for (int k = 0; k < BLOCK_K; k += 16)
        if (FIRST && k == 0) wgmma_first(acc, matrix_at(x, k), matrix_at(w, k));
        else wgmma(acc, matrix_at(x, k), matrix_at(w, k));
    wgmma_commit();
}

/* The outputs of a warpgroup. */
DEVICE void multiply(const cuda_mma_linear_args &a, const places &p)
{
    const int warp = threadIdx.x / 32, own = warp / 4 * 64;
    const int steps = (int)(a.k / BLOCK_K);
    sums acc[16];
    await(p.full, 0);
    step<true>(acc, p.mem, own);
    for (int s = 1; s < steps; s++) {
        await(p.full + place(s), turn(s));
        step<false>(acc, p.mem + place(s) * STAGE, own);
        wgmma_wait<1>();
        release(p.empty + place(s - 1));
        if (threadIdx.x == 0 && s - 1 + WGMMA_STAGES < steps) {
            await(p.empty + place(s - 1), turn(s - 1));
            bring(a, p, s - 1 + WGMMA_STAGES);
        }
        __syncwarp();
    }
    wgmma_wait<0>();
    wgmma_tie(acc);
    __syncthreads();                   /* all factors: sums take their place  */
    float *const mem = (float *)p.mem + 16 * warp * SUM_PITCH;
    UNROLL
    for (int j = 0; j < 16; j++) put_sums(mem + 8 * j, acc[j]);
    __syncwarp();
    put_rows({a.y, a.b, a.n, a.o, a.then}, mem,
             blockIdx.y * TILE_ROWS + 16 * warp);
}
#endif

KERNEL(wgmma_linear, cuda_mma_linear_args, WGMMA_THREADS, 2)
{
#if HAS_WGMMA
    const places p = lay_out();
    if (threadIdx.x == 0) {
        for (int i = 0; i < WGMMA_STAGES; i++) {
            arrivals_of(p.full + i, 1);
            arrivals_of(p.empty + i, WARPS);
        }
        arrivals_show();
        for (int s = 0; s < WGMMA_STAGES && s < (int)(a.k / BLOCK_K); s++)
            bring(a, p, s);
    }
    __syncthreads();
    multiply(a, p);
#else
    nothing_here();
#endif
}
