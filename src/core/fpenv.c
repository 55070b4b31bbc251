/* fpenv.c: see tether/fpenv.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/fpenv.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>
#if defined __x86_64__ || defined __SSE__
#include <xmmintrin.h>
#endif

#include "core/parallel.h"

/* The control word without its flags; `FLUSH` what flushes in it, `OURS` what
 * it must be. */
#if defined __x86_64__ || defined __SSE__
enum { FTZ = 0x8000, DAZ = 0x40, MASKS = 0x1f80, ROUNDING = 0x6000,
       OURS = MASKS };
static uint32_t control(void)
{
    return _mm_getcsr() & (FTZ | DAZ | MASKS | ROUNDING);
}

/* Its rounding mode, which fegetround does not know: it asks the x87 unit. */
static int own_rounding(tt_fpenv e)
{
    static const int mode[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                               FE_TOWARDZERO};
    return mode[(e & ROUNDING) >> 13];
}

static void set_control(uint32_t word)
{
    _mm_setcsr((_mm_getcsr() & 0x3fu) | word);
}
#elif defined __aarch64__ && defined __GNUC__
enum { FTZ = 1 << 24, DAZ = 1, MASKS = 0x9f00, ROUNDING = 3 << 22, OURS = 0 };
static uint32_t control(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (uint32_t)word & (FTZ | DAZ | MASKS | ROUNDING);
}

static void set_control(uint32_t word)
{
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    now &= ~(uint64_t)(FTZ | DAZ | MASKS | ROUNDING);
    __asm__ volatile("msr fpcr, %0" : : "r"(now | word));
}
#else
enum { FTZ = 0, DAZ = 0, MASKS = 0, OURS = 0 };
static uint32_t control(void)
{
    return OURS;
}

static void set_control(uint32_t word)
{
    (void)word;
}
#endif

#if !defined __x86_64__ && !defined __SSE__
static int own_rounding(tt_fpenv e)
{
    return (int)(e >> 32);
}
#endif

static tt_fpenv ours(void)
{
    return (uint64_t)(uint32_t)FE_TONEAREST << 32 | OURS;
}

tt_fpenv tt_fpenv_get(void)
{
    return (uint64_t)(uint32_t)fegetround() << 32 | control();
}

void tt_fpenv_set(tt_fpenv e)
{
    fesetround((int)(e >> 32));        /* of both units of an x86 */
    set_control((uint32_t)e);
}

tt_fpenv tt_fpenv_begin(void)
{
    const tt_fpenv before = tt_fpenv_get();
    if (before != ours()) tt_fpenv_set(ours());
    return before;
}

tt_fpenv tt_fpenv_begin_all(int threads)
{
    const tt_fpenv before = tt_fpenv_begin();
#ifdef _OPENMP
    if (threads > 1 && !tt_forked) {
#pragma omp parallel num_threads(threads)
        tt_fpenv_begin();
    }
#else
    (void)threads;
#endif
    return before;
}

int tt_fpenv_flushes(tt_fpenv e)
{
    return (e & (FTZ | DAZ)) != 0;
}

static const char *rounding_name(int mode)
{
    switch (mode) {
#ifdef FE_UPWARD
    case FE_UPWARD: return "the rounding mode (upward)";
#endif
#ifdef FE_DOWNWARD
    case FE_DOWNWARD: return "the rounding mode (downward)";
#endif
#ifdef FE_TOWARDZERO
    case FE_TOWARDZERO: return "the rounding mode (toward zero)";
#endif
    default: return "the rounding mode";
    }
}

const char *tt_fpenv_text(char *buf, size_t n, tt_fpenv e)
{
    const uint64_t other = e ^ ours();
    const char *part[4];
    int k = 0;
    if (other & FTZ) part[k++] = "FTZ";
    if (other & DAZ) part[k++] = "DAZ";
    if (other & MASKS) part[k++] = "floating-point traps";
    const int mode = other >> 32 ? (int)(e >> 32) : own_rounding(e);
    if (mode != FE_TONEAREST) part[k++] = rounding_name(mode);
    buf[0] = '\0';
    for (int i = 0; i < k; i++) {
        const size_t used = strlen(buf);
        snprintf(buf + used, n - used, "%s%s", !i ? "" : i + 1 < k ? ", "
                 : " and ", part[i]);
    }
    return buf;
}
