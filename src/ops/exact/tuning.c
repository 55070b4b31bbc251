/* tuning.c: see tuning.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/tuning.h"

#include <stddef.h>

#define MB ((int64_t)1 << 20)

#define ROW                                                                    \
    {.rows = 320, .packed_rows = 640, .slice = 2, .tiles = 16, .units = 4,     \
     .far = 8 * MB, .group = 8, .head_groups = 2, .conv_tiles = 4,             \
     .conv_slice = 2, .tc_slice = 32, .tc_panels = 32, .tc_rows = 64,          \
     .piece = 16384, .cols = 64}

static const exact_tuning table[EXACT_BEST] = {
    [EXACT_GENERIC] = ROW,
    [EXACT_NEON] = ROW,
    [EXACT_AVX2] = ROW,
    [EXACT_AVX512] = ROW,
    [EXACT_AVX512BF16] = ROW,
    [EXACT_AMX_MODEL] = ROW,
    [EXACT_AMX] = ROW,
};

static const exact_tuning *instead;

const exact_tuning *exact_tuned(exact_level level)
{
    return instead ? instead : &table[level];
}

void exact_tune(const exact_tuning *row)
{
    instead = row;
}
