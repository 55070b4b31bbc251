/* philox.c: the counter-based generator Philox4x32-10.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 *         1, 2, 3", SC 2011. */
#include "rollout/run.h"

static uint32_t mulhilo(uint32_t *hi, uint32_t a, uint32_t b)
{
    const uint64_t p = (uint64_t)a * b;
    *hi = (uint32_t)(p >> 32);
    return (uint32_t)p;
}

void philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint32_t hi0, hi1;
        const uint32_t lo0 = mulhilo(&hi0, 0xD2511F53u, c0);
        const uint32_t lo1 = mulhilo(&hi1, 0xCD9E8D57u, c2);
        c0 = hi1 ^ c1 ^ k0;
        c1 = lo1;
        c2 = hi0 ^ c3 ^ k1;
        c3 = lo0;
        k0 += 0x9E3779B9u;       /* golden ratio  */
        k1 += 0xBB67AE85u;       /* sqrt(3) - 1   */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
