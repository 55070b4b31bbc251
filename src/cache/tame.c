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

void tame_learn(tt_ctx *ctx, tame_moments *out, const tt_real *x, int64_t L,
                int64_t c)
{
    tt_col_mean(ctx, out->mean, x, L, c);
    tt_col_moment(ctx, out->m2, x, out->mean, L, c);
}

/* Eq. 12. */
void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c)
{
    allocate(ctx, out, c);
    tame_learn(ctx, &(tame_moments){ out->mean, out->sd }, x, n, c);
    for (int64_t i = 0; i < c && !ctx->status; i++)
        out->sd[i] = deviation(out->sd[i], n);
}

/* Eq. 11, and eq. 12 over it. */
void tame_trusted(tt_ctx *ctx, tame_stats *out, const tame_moments *frame,
                  int64_t F, int64_t L, int64_t c)
{
    allocate(ctx, out, c);
    for (int64_t i = 0; i < c && !ctx->status; i++) {
        double mean = 0, m2 = 0;
        for (int64_t f = 0; f < F; f++) mean += frame[f].mean[i];
        mean /= (double)F;
        for (int64_t f = 0; f < F; f++) {
            const double d = frame[f].mean[i] - mean;
            m2 += frame[f].m2[i] + (double)L * d * d;
        }
        out->mean[i] = mean;
        out->sd[i] = deviation(m2, F * L);
    }
}

/* Eq. 13. */
bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const tame_stats *trusted, double tau)
{
    if (!trusted || tau == 0) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tame_stats own;
    tame_stat(ctx, &own, x, n, c);
    for (int64_t i = 0; i < c && !ctx->status; i++)
        own.sd[i] = trusted->sd[i] / own.sd[i];
    tt_col_blend(ctx, x, n, c, own.mean, own.sd, trusted->mean, tau);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status == TT_OK;
}
