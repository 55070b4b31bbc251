/* level.h: the instruction level that TT_CPU asks for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_EXACT_LEVEL_H
#define TT_OPS_EXACT_LEVEL_H

#include <stdbool.h>

/* Each allows itself and what stands before it; best is without TT_CPU. */
typedef enum exact_level {
    EXACT_GENERIC,
    EXACT_NEON,
    EXACT_AVX2,
    EXACT_AVX512,
    EXACT_AVX512BF16,  /* AVX-512, and VDPBF16PS in class vdp                 */
    EXACT_AMX_MODEL,   /* for tests: AMX with its instructions in C           */
    EXACT_AMX,
    EXACT_BEST
} exact_level;

/* What TT_CPU says: read at the first call, not at every operator call. A
 * value that is no level counts as EXACT_BEST; tt_level_check refuses it. */
exact_level exact_level_wanted(void);

/* Read TT_CPU again: for tests, which go through the levels. */
void exact_level_reread(void);

#endif
