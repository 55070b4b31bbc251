/* choose.cu: where tokens are, and rows by a list of their numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The loops are those of core/device.c. */
#include "ops/cuda/kernel.h"

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
