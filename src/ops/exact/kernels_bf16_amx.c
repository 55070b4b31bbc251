/* kernels_bf16_amx.c: the bf16 class on AMX (TDPBF16PS).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel is in bf16_amx.h. TDPBF16PS treats subnormals as zero and flushes
 * whatever MXCSR says. Its registers belong to a thread, whose configuration is
 * loaded by begin and given back by end. */
#include "ops/exact/bf16.h"

#if defined(TT_HAVE_AMX) && !defined(TT_REAL_DOUBLE)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What eight tiles are: 16 rows of 64 bytes. A constant: gcc 12 tells its
 * optimizer of 8 bytes only that _tile_loadconfig reads, and those of a
 * variable after them were never written. */
static const struct {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tiles = {
    .palette = 1,
    .bytes_per_row = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static unsigned unit_begin(void)
{
    _tile_loadconfig(&tiles);
    return 0;
}

static void unit_end(unsigned state)
{
    (void)state;
    _tile_release();
}

#define TILE_STATE (void)0
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, at, stride) _tile_loadd(t, at, stride)
#define TILE_DOT(c, a, b) _tile_dpbf16ps(c, a, b)
#define TILE_STORE(t, at, stride) _tile_stored(t, at, stride)
#include "ops/exact/bf16_amx.h"

const tt_bf16_kernels tt_bf16_amx = {
    .name = "amx", .begin = unit_begin, .end = unit_end, BF16_AMX};

bool bf16_amx_present(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILEDATA = 18 };
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (!(d >> 22 & 1) || !(d >> 24 & 1)) return false; /* BF16, TILE */
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return false;
    if (!(a >> 5 & 1)) return false; /* AVX512_BF16, for softmax */
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA) == 0;
}

/* As many sums as a tile of the kernel has; nothing is loaded. */
double bf16_amx_loop(int64_t n)
{
    const int64_t rounds = n / 8;
    const unsigned state = unit_begin();
    for (int64_t k = 0; k < rounds; k++) {
        TILE_DOT(0, 6, 7);
        TILE_DOT(1, 6, 7);
        TILE_DOT(2, 6, 7);
        TILE_DOT(3, 6, 7);
        TILE_DOT(4, 6, 7);
        TILE_DOT(5, 6, 7);
    }
    unit_end(state);
    return 6.0 * TILE_ROWS * 16 * 2 * BF16_GROUP * (double)rounds;
}

#else
typedef int tt_no_bf16_amx;
#endif
