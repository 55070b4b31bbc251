/* kernels_neon.c: AArch64 NEON kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * linear     7 rows x 12 lanes: 21 accumulators; with 8 rows gcc keeps three
 *            of them in memory, as it loads all factors first.
 * attention  4 rows x 16 queries: 16 accumulators; 16 queries because the
 *            bf16 class shares its softmax with the portable kernels.
 * NEON is part of every AArch64 CPU, so there is nothing to ask at run time. */
#include "ops/exact/exact.h"

#if (defined(__aarch64__) || defined(TT_FUSED_NEON)) && !defined(TT_REAL_DOUBLE)

#include <arm_neon.h>

/* 4 x 4 transpose: rows src + i*ld, columns to dst + i*to. */
static inline void transpose4(float *dst, int64_t to, const float *src,
                              int64_t ld)
{
    const float32x4x2_t a = vtrnq_f32(vld1q_f32(src), vld1q_f32(src + ld));
    const float32x4x2_t b = vtrnq_f32(vld1q_f32(src + 2 * ld),
                                      vld1q_f32(src + 3 * ld));
    for (int i = 0; i < 2; i++) {
        vst1q_f32(dst + i * to, vcombine_f32(vget_low_f32(a.val[i]),
                                             vget_low_f32(b.val[i])));
        vst1q_f32(dst + (i + 2) * to, vcombine_f32(vget_high_f32(a.val[i]),
                                                   vget_high_f32(b.val[i])));
    }
}

#define AQ 16
#define TURN transpose4
#include "ops/exact/kernels.h"

#define EIGHT(X, y)                                                            \
    X(0, y) X(1, y) X(2, y) X(3, y) X(4, y) X(5, y) X(6, y) X(7, y)
#define DECLARE(r, at)                                                         \
    float32x4_t x##r = vdupq_n_f32(0), y##r = x##r, z##r = x##r;
#define STEP(r, at)                                                            \
    {                                                                          \
        float32x4_t v = vdupq_n_f32(at(r));                                    \
        x##r = vfmaq_f32(x##r, v, b0);                                         \
        y##r = vfmaq_f32(y##r, v, b1);                                         \
        z##r = vfmaq_f32(z##r, v, b2);                                         \
    }
#define SEVEN(X, y)                                                            \
    X(0, y) X(1, y) X(2, y) X(3, y) X(4, y) X(5, y) X(6, y)
/* Seven broadcast rows against 12 lanes; `at(r)` is the scalar of row r. */
#define SUM_7x12(lanes, count, at)                                             \
    for (int64_t k = 0; k < (count); k++) {                                    \
        float32x4_t b0 = vld1q_f32((lanes) + k * 12);                          \
        float32x4_t b1 = vld1q_f32((lanes) + k * 12 + 4);                      \
        float32x4_t b2 = vld1q_f32((lanes) + k * 12 + 8);                      \
        SEVEN(STEP, at)                                                        \
    }

static void neon_conv_tile(float *c, int64_t ldc, const exact_window *w,
                           int64_t at, const float *b, int64_t kc, bool add,
                           const float *bias)
{
#define ROW_AT(r, at) const float *a##r = a + r * w->ld;
#define ROW(r) *a##r++
    SEVEN(DECLARE, 0)
    for (int64_t n; kc > 0; at += n, b += n * 12, kc -= n) {
        n = kc;
        const float *a = exact_piece(w, at, &n);
        SEVEN(ROW_AT, 0)
        SUM_7x12(b, n, ROW)
    }
#define LANES(s, y, at)                                                        \
    {                                                                          \
        if (add) s = vaddq_f32(vld1q_f32((y) + at), s);                        \
        if (bias) s = vaddq_f32(s, vld1q_f32(bias + at));                      \
        vst1q_f32((y) + at, s);                                                \
    }
#define FINISH(r, at)                                                          \
    LANES(x##r, c + r * ldc, 0)                                                \
    LANES(y##r, c + r * ldc, 4)                                                \
    LANES(z##r, c + r * ldc, 8)
    SEVEN(FINISH, 0)
}

static void neon_linear_tile(float *c, int64_t ldc, const float *a, int64_t ld,
                             const float *b, int64_t kc, bool add,
                             const float *bias)
{
    const exact_window rows = exact_rows(a, ld);
    neon_conv_tile(c, ldc, &rows, 0, b, kc, add, bias);
}

static void neon_pack(float *panel, const float *src, int64_t ld, int64_t kc)
{
    int64_t k = 0;
    for (; k + 4 <= kc; k += 4)
        for (int j = 0; j < 12; j += 4)
            transpose4(panel + k * 12 + j, 12, src + j * ld + k, ld);
    pack_columns(panel, src, ld, k, kc, 12);
}

/* Four broadcast rows against 16 lanes: `count` products join the sums xr, yr,
 * zr, ur, which were 0 or, where `from` is given, what lies there. */
#define FOUR(X, y) X(0, y) X(1, y) X(2, y) X(3, y)
#define DECLARE4(r, at) DECLARE(r, at) float32x4_t u##r = x##r;
#define BEGUN4(r, from, i)                                                     \
    ((from) ? vld1q_f32((from) + r * 16 + i) : vdupq_n_f32(0))
#define GO_ON4(r, from)                                                        \
    float32x4_t x##r = BEGUN4(r, from, 0), y##r = BEGUN4(r, from, 4),          \
                z##r = BEGUN4(r, from, 8), u##r = BEGUN4(r, from, 12);
#define STEP4(r, at) STEP(r, at) u##r = vfmaq_n_f32(u##r, b3, at(r));
#define STORE4(r, out)                                                         \
    vst1q_f32((out) + r * 16, x##r);                                           \
    vst1q_f32((out) + r * 16 + 4, y##r);                                       \
    vst1q_f32((out) + r * 16 + 8, z##r);                                       \
    vst1q_f32((out) + r * 16 + 12, u##r);
#define STEPS_4x16(lanes, count, at)                                           \
    for (int64_t k = 0; k < (count); k++) {                                    \
        float32x4_t b0 = vld1q_f32((lanes) + k * 16);                          \
        float32x4_t b1 = vld1q_f32((lanes) + k * 16 + 4);                      \
        float32x4_t b2 = vld1q_f32((lanes) + k * 16 + 8);                      \
        float32x4_t b3 = vld1q_f32((lanes) + k * 16 + 12);                     \
        FOUR(STEP4, at)                                                        \
    }

static void neon_score_tile(float *s, const float *key, const float *q,
                            int64_t D, int64_t live)
{
    (void)live;
#define KEY(r) key[r * D + k]
    FOUR(DECLARE4, 0)
    STEPS_4x16(q, D, KEY)
    FOUR(STORE4, s)
}

static void neon_value_tile(float *o, const float *begun, const float *part,
                            const float *v4, const float *p, int64_t n,
                            int64_t live, const float *alpha)
{
#define VALUE(r) v4[k * 4 + r]
#define GIVE(r, at)                                                            \
    JOIN_ROW(r, 0, x##r) JOIN_ROW(r, 4, y##r) JOIN_ROW(r, 8, z##r)             \
    JOIN_ROW(r, 12, u##r)
    (void)live;
    FOUR(GO_ON4, begun)
    STEPS_4x16(p, n, VALUE)
    FOUR(GIVE, 0)
}

/* 8 x 3 accumulators, nothing loaded. */
static double neon_fma_loop(int64_t n)
{
#define START(r, at)                                                           \
    float32x4_t x##r = vdupq_n_f32(r), y##r = vdupq_n_f32(r + 0.25f),          \
                z##r = vdupq_n_f32(r + 0.5f);
#define SAME(r) 0.999f
#define KEEP(r, at)                                                            \
    seed = vgetq_lane_f32(vaddq_f32(x##r, vaddq_f32(y##r, z##r)), 0);
    volatile float seed = 0.001f;
    float32x4_t b0 = vdupq_n_f32(seed), b1 = b0, b2 = b0;
    EIGHT(START, 0)
    for (int64_t k = 0; k < n; k++) {
        EIGHT(STEP, SAME)
    }
    EIGHT(KEEP, 0)
    return 2.0 * 8 * 3 * 4 * (double)n;
}

const tt_kernels tt_kernels_neon = {
    .name = "neon", .level = EXACT_NEON,
    .mr = 7, .nr = 12, .linear_tile = neon_linear_tile, .pack = neon_pack,
    .conv_tile = neon_conv_tile,
    .am = 4, .aq = AQ, .score_tile = neon_score_tile,
        .value_tile = neon_value_tile,
    .fma_loop = neon_fma_loop,
    KERNELS_COMMON,
};

#else
typedef int tt_no_exact_neon;
#endif
