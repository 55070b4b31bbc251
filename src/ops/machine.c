/* machine.c: peak multiply-add rate and streaming, to hold operators against.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/machine.h"

#include "core/parallel.h"
#include "ops/exact/bf16.h"

#define PIECE 65536   /* values per unit of streaming */

#ifndef TT_REAL_DOUBLE

static double all_threads(tt_ctx *ctx, double loop(int64_t n), int64_t n)
{
    double flops = 0;
    TT_PARALLEL_FOR(ctx)
    for (int t = 0; t < ctx->nthreads; t++) {
        double mine = loop(n);
        if (t == 0) flops = mine * ctx->nthreads;
    }
    return flops;
}

double tt_machine_fma(tt_ctx *ctx, int64_t n)
{
    return all_threads(ctx, exact_kernels()->fma_loop, n);
}

#else

/* A double build checks algorithms, not speed. */
double tt_machine_fma(tt_ctx *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return 0;
}

#endif

double tt_machine_vdp(tt_ctx *ctx, int64_t n)
{
#if defined(TT_HAVE_AVX512BF16) && !defined(TT_REAL_DOUBLE)
    if (exact_vdp_kernels(ctx) == &tt_vdp_avx512bf16)
        return all_threads(ctx, vdp_loop, n);
#endif
    (void)ctx;
    (void)n;
    return 0;
}

double tt_machine_amx(tt_ctx *ctx, int64_t n)
{
#if defined(TT_HAVE_AMX) && !defined(TT_REAL_DOUBLE)
    if (exact_bf16_kernels(ctx) == &tt_bf16_amx)
        return all_threads(ctx, bf16_amx_loop, n);
#endif
    (void)ctx;
    (void)n;
    return 0;
}

static void stream_piece(tt_stream kind, tt_real *restrict x,
                         tt_real *restrict y, int64_t n)
{
    volatile tt_real one = 1, keep;
    tt_real f = one, sum[16] = {0};
    switch (kind) {
    case TT_STREAM_SCALE:
        for (int64_t i = 0; i < n; i++) x[i] *= f;
        break;
    case TT_STREAM_ADD:
        for (int64_t i = 0; i < n; i++) x[i] += y[i];
        break;
    case TT_STREAM_COPY:
        for (int64_t i = 0; i < n; i++) y[i] = f * x[i];
        break;
    default:
        for (int64_t i = 0; i + 16 <= n; i += 16)
            for (int j = 0; j < 16; j++) sum[j] += x[i + j];
        for (int j = 0; j < 16; j++) keep = sum[j];
        (void)keep;
    }
}

void tt_machine_stream(tt_ctx *ctx, tt_stream kind, tt_real *x, tt_real *y,
                       int64_t n)
{
    if (ctx->status) return;
    TT_PARALLEL_FOR(ctx)
    for (int64_t i = 0; i < n; i += PIECE)
        stream_piece(kind, x + i, y ? y + i : NULL,
                     n - i < PIECE ? n - i : PIECE);
}
