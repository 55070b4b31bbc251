/* counter.h: values that follow from a place alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_COUNTER_H
#define TT_CORE_COUNTER_H

#include <stdint.h>

/* Uniform in [-1, 1), from a counter (splitmix64). */
static inline float counter_uniform(uint64_t key, int64_t i)
{
    uint64_t x = key + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (float)(x >> 40) * 0x1p-23f - 1;
}

#endif
