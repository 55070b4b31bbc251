/* bf16_choose.c: which kernels of classes amx and vdp this CPU runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An instruction that is a class is trusted after it has answered a question
 * whose answer the portable kernel knows: products with small, subnormal and
 * hair-thin sums. */
#include "ops/exact/bf16.h"

#ifndef TT_REAL_DOUBLE

#include <stdatomic.h>

enum { M = BF16_MAX_MR, N = BF16_MAX_NR, K = 3 * BF16_GROUP };

/* A quarter of the rows and lanes hold ordinary numbers; the others factors
 * whose products lie on both sides of FLT_MIN and a hair apart. */
static void bf16_choose_question(float *x, float *w)
{
    static const float hair[2][4] = {
        {0x1p-63f, 0x1p-100f, -0x1p-100f, -0x1.8p-100f},
        {0x1p-63f, 0x1p-50f, 0x1p-51f, 0x1.02p-51f},
    };
    static const float small[8] = {0x1p-63f, -0x1p-64f, 0x1.8p-63f, -0.0f,
                                   0x1p-130f, -0x1p-130f, 0, 0x1p-50f};
    uint32_t s = 1;
    for (int i = 0; i < (M + N) * K; i++) {
        s = s * 1664525u + 1013904223u;
        int side = i >= M * K, row = i / K - (side ? M : 0);
        float v = row % 4 == 0   ? (float)(int32_t)s * 0x1p-31f
                  : row % 4 == 1 ? small[s >> 29]
                  : s >> 30      ? 0 : hair[side][s >> 28 & 3];
        if (side) w[i - M * K] = v;
        else x[i] = v;
    }
}

/* y [M, N] = x w^T by these kernels, tile by tile, in two slices of K. */
static void bf16_choose_answer(const tt_bf16_kernels *kn, float *y,
                               const float *x, const float *w)
{
    const int64_t first = BF16_GROUP, rest = K - BF16_GROUP, mr = kn->mr;
    float a[M * K], more[M * K], b[N * K], next[N * K], c[M * N];
    kn->pack_rows(a, M, x, K, M, first);
    kn->pack_rows(more, M, x + first, K, M, rest);
    for (int64_t n = 0; n < N; n += kn->nr) {
        kn->pack_lanes(b, w + n * K, K, kn->nr, first);
        kn->pack_lanes(next, w + n * K + first, K, kn->nr, rest);
        for (int64_t r = 0; r < M; r += mr) {
            unsigned state = kn->begin();
            kn->tile(c, bf16_row(a, r, kn->size), bf16_packed(M), b, 1,
                     false);
            kn->tile(c, bf16_row(more, r, kn->size), bf16_packed(M), next,
                     rest / BF16_GROUP, true);
            kn->end(state);
            for (int64_t i = 0; i < mr; i++)
                memcpy(y + (r + i) * N + n, c + i * kn->nr,
                       (size_t)kn->nr * sizeof *y);
        }
    }
}

bool bf16_same_answer(const tt_bf16_kernels *a, const tt_bf16_kernels *b)
{
    float x[M * K], w[N * K], ya[M * N], yb[M * N];
    bf16_choose_question(x, w);
    bf16_choose_answer(a, ya, x, w);
    bf16_choose_answer(b, yb, x, w);
    return memcmp(ya, yb, sizeof ya) == 0;
}

#if defined(TT_HAVE_AMX)
static bool amx_usable(tt_ctx *ctx)
{
    if (ctx->matrix_unit == 0) {
        bool there = bf16_amx_present();
        bool right = there && bf16_same_answer(&tt_bf16_amx, &tt_bf16_generic);
        if (there && !right)
            tt_warn(ctx, "this CPU's AMX unit does not give the bits of the "
                    "bf16 class; the AVX-512 kernels are used instead");
        ctx->matrix_unit = right ? 1 : -1;
    }
    return ctx->matrix_unit > 0;
}
#endif

const tt_bf16_kernels *exact_bf16_kernels(tt_ctx *ctx)
{
    (void)ctx;
#if defined(__x86_64__)
    const tt_kernels *f32 = exact_kernels();
    const exact_level level = exact_level_wanted();
    if (f32 == &tt_kernels_avx512) {
        if (level == EXACT_AMX_MODEL) return &tt_bf16_amx_model;
#if defined(TT_HAVE_AMX)
        if (level >= EXACT_AMX && amx_usable(ctx))
            return &tt_bf16_amx;
#endif
        return &tt_bf16_avx512;
    }
    if (f32 == &tt_kernels_avx2) return &tt_bf16_avx2;
#endif
    return &tt_bf16_generic;
}

#if defined(TT_HAVE_AVX512BF16)
/* Whether VDPBF16PS is used at a level: 0 not yet known. It belongs to the CPU,
 * and so to the process. */
static atomic_int pairs_right, pairs_fast;

static bool pairs_usable(tt_ctx *ctx)
{
    if (pairs_right == 0) {
        const bool there = vdp_present();
        const bool right =
            there && bf16_same_answer(&tt_vdp_avx512bf16, &tt_vdp_generic);
        if (there && !right)
            tt_warn(ctx, "this CPU's VDPBF16PS does not give the bits of class "
                    "vdp; multiply-adds are used instead");
        pairs_right = right ? 1 : -1;
    }
    return pairs_right > 0;
}

static bool pairs_chosen(tt_ctx *ctx, exact_level level)
{
    if (level < EXACT_AVX512BF16 || !pairs_usable(ctx)) return false;
    if (level == EXACT_AVX512BF16) return true;
    if (pairs_fast == 0) pairs_fast = vdp_faster() ? 1 : -1;
    return pairs_fast > 0;
}
#endif

const tt_bf16_kernels *exact_vdp_kernels(tt_ctx *ctx)
{
    (void)ctx;
#if defined(__x86_64__)
    const tt_kernels *f32 = exact_kernels();
    if (f32 == &tt_kernels_avx512) {
#if defined(TT_HAVE_AVX512BF16)
        if (pairs_chosen(ctx, exact_level_wanted())) return &tt_vdp_avx512bf16;
#endif
        return &tt_vdp_avx512;
    }
    if (f32 == &tt_kernels_avx2) return &tt_vdp_avx2;
#endif
    return &tt_vdp_generic;
}

void exact_amx_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    bf16_linear(ctx, a, exact_bf16_kernels(ctx));
}

void exact_amx_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    bf16_attention(ctx, a, exact_bf16_kernels(ctx));
}

void exact_vdp_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    bf16_linear(ctx, a, exact_vdp_kernels(ctx));
}

void exact_vdp_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    bf16_attention(ctx, a, exact_vdp_kernels(ctx));
}

#else
typedef int tt_no_bf16_choose;
#endif
