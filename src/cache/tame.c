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

#include "core/device.h"

#include <math.h>

#define SD_MIN 1e-6          /* tame.py: lower bound of a deviation           */

void tame_learn(tt_ctx *ctx, tt_wide *out, const tt_real *x, int64_t L,
                int64_t c)
{
    if (ctx->status) return;
    tt_col_mean(ctx, out, x, L, c);
    tt_col_moment(ctx, out + c, x, out, L, c);
}

/* Eq. 12, the deviation of n tokens whose squared deviations have that sum. */
static double deviation(double m2, int64_t n)
{
    const double sd = sqrt(m2 / (double)n);
    return sd < SD_MIN ? SD_MIN : sd;
}

/* Eq. 11, and eq. 12 over it. Frame by frame: sums of different channels do not
 * wait for each other. */
void tame_trusted(tt_ctx *ctx, tame_stats *out, const double *m, int64_t F,
                  int64_t L, int64_t c, int64_t step)
{
    tt_arena *a = &ctx->scratch;
    double *mean = out->mean = tt_alloc0(ctx, a, c, sizeof *mean, "statistics");
    double *sd = out->sd = tt_alloc0(ctx, a, c, sizeof *sd, "statistics");
    if (ctx->status) return;
    for (int64_t f = 0; f < F; f++)
        for (int64_t i = 0; i < c; i++) mean[i] += m[f * step + i];
    for (int64_t i = 0; i < c; i++) mean[i] /= (double)F;
    for (int64_t f = 0; f < F; f++) {
        const double *own = m + f * step;
        for (int64_t i = 0; i < c; i++) {
            const double d = own[i] - mean[i];
            sd[i] += own[c + i] + (double)L * d * d;
        }
    }
    for (int64_t i = 0; i < c; i++) sd[i] = deviation(sd[i], F * L);
}

void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c)
{
    tt_wide *m = tt_wides(ctx, 2 * c);
    tame_learn(ctx, m, x, n, c);
    tame_trusted(ctx, out, tt_get_wides(ctx, m, 2 * c), 1, n, c, 2 * c);
}

/* Eq. 13: x = (1 - tau) x + tau (gain (x - own mean) + trusted mean). */
bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const double *own, const tame_stats *trusted, double tau)
{
    if (!trusted || tau == 0 || ctx->status) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    double *gain = tt_alloc(ctx, &ctx->scratch, c, sizeof *gain, "gain");
    for (int64_t i = 0; gain && i < c; i++)
        gain[i] = trusted->sd[i] / deviation(own[c + i], n);
    tt_col_blend(ctx, x, n, c, own, gain, trusted->mean, tau);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status == TT_OK;
}
