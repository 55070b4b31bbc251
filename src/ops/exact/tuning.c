/* tuning.c: see tuning.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/tuning.h"

/* What all had before there was a tuner. */
#define UNTUNED                                                                \
    {.rows = 320, .packed_rows = 640, .slice = 2, .tiles = 16, .units = 4,     \
     .bf16_rows = 64, .transposed_rows = 160, .once_rows = 2560,               \
     .far = 8388608, .group = 8, .head_groups = 2, .value_keys = 256,          \
     .conv_inputs = 458752,                                                    \
     .conv_slice = 2, .tc_slice = 32, .tc_panels = 32, .tc_rows = 64,          \
     .piece = 16384, .cols = 64}

static const exact_tuning table[EXACT_BEST] = {
    [EXACT_GENERIC] = UNTUNED,
    [EXACT_NEON] = UNTUNED,
    [EXACT_AVX2] =
        {.rows = 320, .packed_rows = 640, .slice = 2, .tiles = 16, .units = 4,
         .bf16_rows = 64, .transposed_rows = 33, .once_rows = 2560,
         .far = 8388608, .group = 8, .head_groups = 2, .value_keys = 256,
         .conv_inputs = 458752,
         .conv_slice = 2, .tc_slice = 32, .tc_panels = 64, .tc_rows = 64,
         .piece = 16384, .cols = 64},
    [EXACT_AVX512] =
        {.rows = 320, .packed_rows = 640, .slice = 2, .tiles = 16, .units = 4,
         .bf16_rows = 64, .transposed_rows = 160, .once_rows = 2560,
         .far = 8388608, .group = 8, .head_groups = 3, .value_keys = 128,
         .conv_inputs = 655360,
         .conv_slice = 2, .tc_slice = 32, .tc_panels = 64, .tc_rows = 64,
         .piece = 16384, .cols = 64},
    [EXACT_AVX512BF16] =
        {.rows = 320, .packed_rows = 640, .slice = 2, .tiles = 16, .units = 4,
         .bf16_rows = 64, .transposed_rows = 160, .once_rows = 2560,
         .far = 8388608, .group = 8, .head_groups = 6, .value_keys = 128,
         .conv_inputs = 458752,
         .conv_slice = 2, .tc_slice = 32, .tc_panels = 64, .tc_rows = 64,
         .piece = 16384, .cols = 64},
    [EXACT_AMX_MODEL] = UNTUNED,
    [EXACT_AMX] =
        {.rows = 320, .packed_rows = 320, .slice = 6, .tiles = 16, .units = 4,
         .bf16_rows = 64, .transposed_rows = 160, .once_rows = 2560,
         .far = 8388608, .group = 8, .head_groups = 2, .value_keys = 128,
         .conv_inputs = 688128,
         .conv_slice = 2, .tc_slice = 32, .tc_panels = 64, .tc_rows = 64,
         .piece = 16384, .cols = 64},
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
