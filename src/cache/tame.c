/* tame.c: admitted frames are drawn towards trusted statistics (TAME).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, "TAME", eqs. 11-13.
 * Source  tethercache/tame.py
 * Model   per head and channel, on unrotated keys and on values separately.
 *         The pool is the sink and the memory as they were before the round,
 *         edited members included. Paper: frozen sink statistics are kept as
 *         metadata. Code, and we: recomputed every round.
 * Differs from Source in accumulating in double. With float sums a constant
 *         channel may leave x - mu = 1 ulp, which the 1e-6 below then
 *         amplifies a million times. */
#include "cache/tame.h"

#include <math.h>

#include "tether/device.h"

/* tame.py: lower bound of a standard deviation. */
#define SD_MIN 1e-6

static double deviation(double m2, int64_t n)
{
    const double sd = sqrt(m2 / (double)n);
    return sd < SD_MIN ? SD_MIN : sd;
}

static void allocate(tt_ctx *ctx, tame_stats *out, int64_t c)
{
    out->mean = tt_alloc(ctx, &ctx->scratch, c, sizeof(double), "statistics");
    out->sd = tt_alloc(ctx, &ctx->scratch, c, sizeof(double), "statistics");
}

void tame_learn(tt_ctx *ctx, tt_wide *out, const tt_real *x, int64_t L,
                int64_t c)
{
    if (ctx->status) return;
    tt_col_mean(ctx, out, x, L, c);
    tt_col_moment(ctx, out + c, x, out, L, c);
}

/* Eq. 12. */
tame_stats tame_of(double *m, int64_t n, int64_t c)
{
    for (int64_t i = 0; i < c; i++) m[c + i] = deviation(m[c + i], n);
    return (tame_stats){ m, m + c };
}

void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c)
{
    tt_wide *there = tt_wides(ctx, 2 * c);
    tame_learn(ctx, there, x, n, c);
    double *m = tt_get_wides(ctx, there, 2 * c);
    if (m) *out = tame_of(m, n, c);
}

/* Eq. 11, and eq. 12 over it. Frame by frame: sums of different channels do not
 * wait for each other. */
void tame_trusted(tt_ctx *ctx, tame_stats *out, const tame_moments *frame,
                  int64_t F, int64_t L, int64_t c)
{
    allocate(ctx, out, c);
    if (ctx->status) return;
    double *restrict mean = out->mean, *restrict m2 = out->sd;
    for (int64_t i = 0; i < c; i++) mean[i] = m2[i] = 0;
    for (int64_t f = 0; f < F; f++)
        for (int64_t i = 0; i < c; i++) mean[i] += frame[f].mean[i];
    for (int64_t i = 0; i < c; i++) mean[i] /= (double)F;
    for (int64_t f = 0; f < F; f++)
        for (int64_t i = 0; i < c; i++) {
            const double d = frame[f].mean[i] - mean[i];
            m2[i] += frame[f].m2[i] + (double)L * d * d;
        }
    for (int64_t i = 0; i < c; i++) m2[i] = deviation(m2[i], F * L);
}

/* Eq. 13. */
bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const tame_stats *own, const tame_stats *trusted, double tau)
{
    if (!trusted || tau == 0 || ctx->status) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    double *gain = tt_alloc(ctx, &ctx->scratch, c, sizeof *gain, "gains");
    for (int64_t i = 0; i < c && gain; i++)
        gain[i] = trusted->sd[i] / own->sd[i];
    tt_col_blend(ctx, x, n, c, own->mean, gain, trusted->mean, tau);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status == TT_OK;
}
