/* judge.cu: TAME's statistics and GRAB's choice, where the device decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The loops are those of core/device.c and core/relevance.h. A channel's
 * statistics are one thread, and so is what a candidate is worth; a sum over
 * candidates is added up by every thread that needs it. */
#include "ops/cuda/kernel.h"

/* Lower bound of a deviation, by that of m2 and n tokens. */
DEVICE double deviation(double m2, int64_t n)
{
    const double sd = sqrt_rn(div_rn(m2, wide(n)));
    return sd < 1e-6 ? 1e-6 : sd;
}

KERNEL(trust, tt_trust_args, COLUMN_THREADS, 1)
{
    const int64_t i = grid_thread();
    if (i >= a.c) return;
    double sum = 0.0, m2 = 0.0;
    for (int64_t f = 0; f < a.F; f++) sum = add_rn(sum, a.m[f * a.step + i]);
    const double mean = div_rn(sum, wide(a.F));
    for (int64_t f = 0; f < a.F; f++) {
        const double *m = a.m + f * a.step + i;
        const double d = add_rn(*m, -mean);
        const double apart = mul_rn(mul_rn(wide(a.L), d), d);
        m2 = add_rn(m2, add_rn(m[a.c], apart));
    }
    a.mean[i] = mean;
    a.sd[i] = deviation(m2, a.F * a.L);
}

KERNEL(gain, tt_gain_args, COLUMN_THREADS, 1)
{
    const int64_t i = grid_thread();
    if (i < a.c) a.gain[i] = div_rn(a.sd[i], deviation(a.m2[i], a.n));
}

/* ---- exp in double, as core/mathfn.c has it ------------------------------ */

DEVICE double power_of_2(int n)
{
    return double_of((uint64_t)(n + 1023) << 52);
}

/* exp(r + tail) - 1 - r */
DEVICE double expm1_rest(double r, double tail)
{
    double p = 1.0 / 87178291200.0;
    p = fma_rn(p, r, 1.0 / 6227020800.0);
    p = fma_rn(p, r, 1.0 / 479001600.0);
    p = fma_rn(p, r, 1.0 / 39916800.0);
    p = fma_rn(p, r, 1.0 / 3628800.0);
    p = fma_rn(p, r, 1.0 / 362880.0);
    p = fma_rn(p, r, 1.0 / 40320.0);
    p = fma_rn(p, r, 1.0 / 5040.0);
    p = fma_rn(p, r, 1.0 / 720.0);
    p = fma_rn(p, r, 1.0 / 120.0);
    p = fma_rn(p, r, 1.0 / 24.0);
    p = fma_rn(p, r, 1.0 / 6.0);
    p = fma_rn(p, r, 0.5);
    return fma_rn(p, mul_rn(r, r), fma_rn(tail, r, tail));
}

/* Adding 1.5 * 2^52 rounds to a whole number, whose low bits are in the sum. */
DEVICE double exp_f64(double x)
{
    if (x != x) return x;
    if (x > 710.0) return double_of((uint64_t)2047 << 52);      /* infinity */
    if (x < -746.0) return 0.0;
    const double shifted = add_rn(mul_rn(x, 0x1.71547652b82fep+0), 0x1.8p+52);
    const double n = add_rn(shifted, -0x1.8p+52);
    const double hi = fma_rn(n, -0x1.62e42fefa0000p-1, x);
    const double lo = mul_rn(n, 0x1.cf79abc9e3b3ap-40);
    const double r = add_rn(hi, -lo), tail = add_rn(add_rn(hi, -r), -lo);
    const double y = add_rn(1.0, add_rn(r, expm1_rest(r, tail)));
    const int k = (int32_t)(uint32_t)bits_of(shifted), k1 = k / 2;
    return mul_rn(mul_rn(y, power_of_2(k1)), power_of_2(k - k1));
}

/* ---- GRAB ---------------------------------------------------------------- */

DEVICE double importance(const tt_judge_args &a, int64_t candidate)
{
    const double *k = a.m + (a.first + candidate) * a.step;
    double dot = 0.0;
    for (int64_t i = 0; i < a.c; i++) dot = add_rn(dot, mul_rn(a.q[i], k[i]));
    return div_rn(div_rn(dot, a.norm), a.temperature);
}

/* Half the span of the candidates in time, at least 1. */
DEVICE double time_scale(const int32_t *time, int64_t n)
{
    int64_t lo = time[0], hi = lo;
    for (int64_t c = 1; c < n; c++) {
        if (time[c] < lo) lo = time[c];
        if (time[c] > hi) hi = time[c];
    }
    const double half = mul_rn(0.5, wide(hi - lo + 1));
    return half > 1.0 ? half : 1.0;
}

/* mass: not yet divided by their sum. */
DEVICE double diversity(const int32_t *time, const double *mass, double sum,
                        int64_t n, int64_t candidate)
{
    const double sigma = time_scale(time, n);
    double most = 0.0;
    for (int64_t o = 0; o < n; o++) {
        const int64_t ahead = time[candidate] - time[o];
        const double gap = wide(ahead < 0 ? ahead : -ahead);
        const double sim = mul_rn(exp_f64(div_rn(gap, sigma)),
                                  div_rn(mass[o], sum));
        if (o != candidate && sim > most) most = sim;
    }
    const double d = add_rn(1.0, -most);
    return d > 0.0 ? d : 0.0;
}

KERNEL(judge, cuda_judge_args, JUDGE_THREADS, 1)
{
    const tt_judge_args &is = a.is;
    const int64_t n = is.n - is.first;
    for (int64_t c = threadIdx.x; c < n; c += JUDGE_THREADS)
        is.score[c] = importance(is, c);
    __syncthreads();
    double top = is.score[0], sum = 0.0;
    for (int64_t c = 1; c < n; c++)
        if (is.score[c] > top) top = is.score[c];
    for (int64_t c = threadIdx.x; c < n; c += JUDGE_THREADS)
        a.mass[c] = exp_f64(add_rn(is.score[c], -top));
    __syncthreads();
    for (int64_t c = 0; c < n; c++) sum = add_rn(sum, a.mass[c]);
    for (int64_t c = threadIdx.x; c < n; c += JUDGE_THREADS) {
        const double div = diversity(is.time + is.first, a.mass, sum, n, c);
        is.score[c] = add_rn(div_rn(a.mass[c], sum), mul_rn(is.alpha, div));
    }
    __syncthreads();
    int64_t last = 0;
    for (int64_t c = 1; c < n; c++)
        if (!(is.score[c] > is.score[last])) last = c;
    for (int64_t i = threadIdx.x; i < is.n - 1; i += JUDGE_THREADS)
        is.list[i] = (int32_t)(i < is.first + last ? i : i + 1);
}
