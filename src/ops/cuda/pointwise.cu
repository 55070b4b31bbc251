/* pointwise.cu: element-wise operators.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/pointwise.c. One thread an element, in strides of the
 * grid: no order is involved. */
#include "ops/cuda/epilogue.h"

#define EACH(i, n) int64_t i = grid_thread(); i < (n); i += grid_threads()

KERNEL(modulate, tt_modulate_args, ELEMENT_THREADS, 1)
{
    for (EACH(e, a.n * a.c)) {
        const int64_t r = e / a.c, i = e - r * a.c;
        const int64_t at = r / a.rows * a.stride + i;
        a.x[e] = fma_rn(a.x[e], add_rn(1.0f, a.scale[at]), a.shift[at]);
    }
}

KERNEL(gate_add, tt_gate_add_args, ELEMENT_THREADS, 1)
{
    for (EACH(e, a.n * a.c)) {
        const int64_t r = e / a.c, i = e - r * a.c;
        a.x[e] = fma_rn(a.y[e], a.gate[r / a.rows * a.stride + i], a.x[e]);
    }
}

KERNEL(add, tt_add_args, ELEMENT_THREADS, 1)
{
    for (EACH(i, a.n)) a.x[i] = add_rn(a.x[i], a.y[i]);
}

KERNEL(mul, tt_mul_args, ELEMENT_THREADS, 1)
{
    for (EACH(i, a.n)) a.x[i] = mul_rn(a.x[i], a.y[i]);
}

KERNEL(gelu_tanh, tt_gelu_tanh_args, ELEMENT_THREADS, 1)
{
    for (EACH(i, a.n)) a.x[i] = gelu_f32(a.x[i]);
}

KERNEL(silu, tt_silu_args, ELEMENT_THREADS, 1)
{
    for (EACH(i, a.n))
        a.x[i] = div_rn(a.x[i], add_rn(1.0f, exp_f32(-a.x[i])));
}

KERNEL(narrow_bf16, cuda_narrow_args, ELEMENT_THREADS, 1)
{
    for (EACH(i, a.n)) a.to[i] = (uint16_t)two_factors(a.from[i], 0.0f);
}

/* A thread has a pair of all heads, which share its angle. */
KERNEL(rope, cuda_rope_args, ELEMENT_THREADS, 1)
{
    const int pairs = (int)(a.D / 2);
    for (EACH(e, a.T * pairs)) {
        const int64_t t = e / pairs;
        const int j = (int)(e - t * pairs);
        const int64_t p = a.pos[3 * t + (j >= a.row0) + (j >= a.col0)];
        const double c = a.cos[p * pairs + j], s = a.sin[p * pairs + j];
        UNROLL_2
        for (int64_t h = 0; h < a.H; h++) {
            const int64_t at = ((t * a.H + h) * pairs + j) * 2;
            const double re = wide(a.x[at]), im = wide(a.x[at + 1]);
            a.y[at] = narrow(fma_rn(re, c, -mul_rn(im, s)));
            a.y[at + 1] = narrow(fma_rn(re, s, mul_rn(im, c)));
        }
    }
}

KERNEL(words, cuda_words_args, FEW_WORDS, 1)
{
    const int64_t i = threadIdx.x;
    if (i < a.n) a.to[i] = (uint32_t)a.word[i];
}
