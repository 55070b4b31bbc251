/* choose.cu: what a device chooses by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The loops are those of core/device.c. A row is among the best when fewer
 * others are better than may stay: each thread counts them, so nothing is
 * sorted. One block then writes the list, a stretch of rows a thread. */
#include "ops/cuda/kernel.h"

#define LANES 16
#define LOWEST float_of(0xff800000u)              /* -infinity */

KERNEL(total, tt_total_args, COLUMN_THREADS, 1)
{
    const int64_t i = grid_thread();
    if (i >= a.c) return;
    double sum = 0.0;
    for (int64_t r = 0; r < a.n; r++) sum = add_rn(sum, a.s[r * a.c + i]);
    a.y[i] = narrow(mul_rn(sum, a.times));
}

/* A maximum has no order, but for a NaN in front. */
KERNEL(most, tt_most_args, ROW_THREADS, 1)
{
    const int64_t row = grid_thread() / LANES;
    const float *x = a.x + least(row, a.n - 1) * a.c;
    float best = LOWEST;
    for (int64_t i = threadIdx.x % LANES; i < a.c; i += LANES)
        if (x[i] > best) best = x[i];
    UNROLL
    for (int h = LANES / 2; h > 0; h /= 2) {
        const float other = lane_xor(best, h);
        if (other > best) best = other;
    }
    if (row >= a.n || threadIdx.x % LANES) return;
    a.y[row] = x[0] != x[0] ? x[0] : add_rn(best, 0.0f);
}

DEVICE bool is_finite(float x)
{
    return (bits_of(x) >> 23 & 255) != 255;
}

DEVICE float rank_of(float x)
{
    return is_finite(x) ? x : LOWEST;
}

DEVICE int32_t used_of(const tt_choose_args *a, int64_t row)
{
    return row < a->known ? a->used[row] : 0;
}

DEVICE bool between(const tt_choose_args *a, int64_t row)
{
    return row >= a->first && row < a->end;
}

DEVICE bool competes(const tt_choose_args *a, int64_t row)
{
    return between(a, row) && (a->most == 0 || used_of(a, row) < a->most);
}

KERNEL(choose_rows, cuda_choose_args, ELEMENT_THREADS, 1)
{
    const float *const at = a.is.x;
    for (int64_t i = grid_thread(); i < a.is.n; i += grid_threads()) {
        int64_t better = 0;
        const bool rival = competes(&a.is, i);
        const float x = rank_of(at[i]);
        for (int64_t j = a.is.first; j < (rival ? a.is.end : 0); j++) {
            const float y = rank_of(at[j]);
            better += competes(&a.is, j) && (y > x || (y == x && j < i));
        }
        a.stays[i] = rival ? better < a.best : !between(&a.is, i);
    }
}

KERNEL(choose_list, cuda_choose_args, CHOOSE_THREADS, 1)
{
    SHARED(int32_t, stay);                        /* rows that do, by thread */
    int32_t *const strange = stay + CHOOSE_THREADS;
    const int64_t n = a.is.n, each = (n + CHOOSE_THREADS - 1) / CHOOSE_THREADS;
    const int64_t begin = least(threadIdx.x * each, n);
    const int64_t end = least(begin + each, n);
    int32_t count = 0, first = (int32_t)n;
    for (int64_t i = end - 1; i >= begin; i--) {
        count += a.stays[i];
        if (between(&a.is, i) && !is_finite(a.is.x[i])) first = (int32_t)i;
    }
    stay[threadIdx.x] = count;
    strange[threadIdx.x] = first;
    __syncthreads();
    int64_t to = 0;
    for (unsigned t = 0; t < threadIdx.x; t++) to += stay[t];
    for (int64_t i = begin; i < end; i++) {
        if (!a.stays[i]) continue;
        a.is.list[to] = (int32_t)i;
        a.is.then[to++] = used_of(&a.is, i) + between(&a.is, i);
    }
    if (threadIdx.x) return;
    for (int t = 1; t < CHOOSE_THREADS; t++) first = least(first, strange[t]);
    a.is.list[a.is.count] = first;
}

KERNEL(locate, cuda_locate_args, ELEMENT_THREADS, 1)
{
    for (int64_t i = grid_thread(); i < a.n; i += grid_threads()) {
        const int64_t f = (a.first + i) / a.L, s = (a.first + i) % a.L;
        a.to[3 * i] = (int32_t)(a.times ? a.time[f] : a.t0 + f);
        a.to[3 * i + 1] = (int32_t)(s / a.w);
        a.to[3 * i + 2] = (int32_t)(s % a.w);
    }
}

KERNEL(pick, tt_pick_args, ELEMENT_THREADS, 1)
{
    for (int64_t e = grid_thread(); e < a.n * a.c; e += grid_threads()) {
        const int64_t i = e / a.c, w = e - i * a.c;
        const int64_t row = a.list ? a.list[i] : i;
        a.to[i * a.to_step + w] = a.from[row * a.step + w];
    }
}

/* ---- averages whose rates the device finds ------------------------------- */

KERNEL(apart, tt_apart_args, COLUMN_THREADS, 1)
{
    const int64_t row = grid_thread();
    if (row >= a.n) return;
    double sum = 0.0;
    for (int64_t i = row * a.c; i < (row + 1) * a.c; i++) {
        const double d = add_rn(a.mean[i], -wide(a.x[i]));
        sum = add_rn(sum, mul_rn(d, d));
    }
    a.far[row] = sqrt_rn(sum);
}

KERNEL(rates, tt_rates_args, RATES_THREADS, 1)
{
    SHARED(double, tops);                         /* the largest, by thread */
    double top = 0.0;
    for (int64_t r = threadIdx.x; r < a.n; r += RATES_THREADS) {
        double sum = 0.0;
        for (int64_t i = r * a.c; i < (r + 1) * a.c; i++)
            sum = add_rn(sum, a.far[i]);
        a.rate[r] = div_rn(sum, wide(a.c));
        if (a.rate[r] > top) top = a.rate[r];
    }
    tops[threadIdx.x] = top;
    __syncthreads();
    for (int t = 0; t < RATES_THREADS; t++)
        if (tops[t] > top) top = tops[t];
    const double all = add_rn(top, 1e-8), range = add_rn(a.high, -a.low);
    for (int64_t r = threadIdx.x; r < a.n; r += RATES_THREADS)
        a.rate[r] = add_rn(a.low, mul_rn(div_rn(a.rate[r], all), range));
}

KERNEL(follow, tt_follow_args, ELEMENT_THREADS, 1)
{
    for (int64_t e = grid_thread(); e < a.n * a.c; e += grid_threads()) {
        const double rate = a.rate[e / a.c], rest = add_rn(1.0, -rate);
        a.x[e] = narrow(add_rn(mul_rn(rate, a.mean[e]),
                               mul_rn(rest, wide(a.x[e]))));
    }
}
