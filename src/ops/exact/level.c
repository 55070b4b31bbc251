/* level.c: the instruction level that TT_CPU asks for, and its check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/level.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/exact/bf16.h"
#include "ops/backend.h"

static const char *const names[EXACT_BEST] = {
    "generic", "neon", "avx2", "avx512", "avx512bf16", "amx-model", "amx"};

/* -1 when it is no level */
static int level_find(const char *name)
{
    for (int l = 0; l < EXACT_BEST; l++)
        if (strcmp(names[l], name) == 0) return l;
    return -1;
}

/* The environment belongs to the process, and so does what was read of it. */
static atomic_int wanted = -1;

void exact_level_reread(void)
{
    const char *wish = getenv("TT_CPU");
    const int level = wish && *wish ? level_find(wish) : EXACT_BEST;
    wanted = level < 0 ? EXACT_BEST : level;
}

exact_level exact_level_wanted(void)
{
    if (wanted < 0) exact_level_reread();
    return (exact_level)wanted;
}

#ifndef TT_REAL_DOUBLE

static bool level_here(exact_level level)
{
#if defined(__x86_64__)
    const tt_kernels *best = exact_kernels_up_to(EXACT_BEST);
    if (level == EXACT_AVX2) return best != &tt_kernels_generic;
    if (level == EXACT_AVX512 || level == EXACT_AMX_MODEL)
        return best == &tt_kernels_avx512;
#if defined(TT_HAVE_AVX512BF16)
    if (level == EXACT_AVX512BF16)
        return best == &tt_kernels_avx512 && vdp_present();
#endif
#if defined(TT_HAVE_AMX)
    if (level == EXACT_AMX)
        return best == &tt_kernels_avx512 && bf16_amx_present();
#endif
#elif defined(__aarch64__) || defined(TT_OS_NEON)
    if (level == EXACT_NEON)
        return exact_kernels_up_to(EXACT_BEST) == &tt_kernels_neon;
#endif
    return level == EXACT_GENERIC;
}

#else

/* Nothing of the double build depends on it. */
static bool level_here(exact_level level)
{
    (void)level;
    return true;
}

#endif

tt_status tt_level_check(tt_ctx *ctx)
{
    TT_TRY(ctx->status);
    const char *wish = getenv("TT_CPU");
    char here[128] = "";
    size_t n = 0;
    if (!wish || !*wish) return TT_OK;
    const int level = level_find(wish);
    if (level >= 0 && level_here((exact_level)level)) return TT_OK;
    for (int l = 0; l < EXACT_BEST; l++)
        if (level_here((exact_level)l))
            n += (size_t)snprintf(here + n, sizeof here - n, "%s%s",
                                  n ? ", " : "", names[l]);
    return tt_fail(ctx, TT_EINVAL, "TT_CPU=%s %s; here it can be %s, or unset "
                   "for the best of them", wish,
                   level < 0 ? "is not an instruction level"
                             : "is a level that this CPU or build lacks",
                   here);
}
