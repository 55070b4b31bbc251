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

void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c) {
    out->mean = tt_alloc(ctx, &ctx->scratch, c, sizeof(double), "statistics");
    out->sd = tt_alloc(ctx, &ctx->scratch, c, sizeof(double), "statistics");
    tt_col_mean(ctx, out->mean, x, n, c);
    tt_col_moment(ctx, out->sd, x, out->mean, n, c);
    if (ctx->status) return;
    for (int64_t i = 0; i < c; i++) {
        const double sd = sqrt(out->sd[i] / (double)n);
        out->sd[i] = sd < SD_MIN ? SD_MIN : sd;
    }
}

void tame_trusted(tt_ctx *ctx, tame_pool *out, const tt_real *k,
                  const tt_real *v, int64_t n, int64_t c) {
    *out = (tame_pool){ .tokens = n };
    if (n == 0) return;
    tame_stat(ctx, &out->k, k, n, c);
    tame_stat(ctx, &out->v, v, n, c);
}

bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const tame_stats *trusted, double tau) {
    if (!trusted || tau == 0) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tame_stats own;
    tame_stat(ctx, &own, x, n, c);
    if (ctx->status) return false;
    for (int64_t r = 0; r < n; r++) {
        tt_real *row = x + r * c;
        for (int64_t i = 0; i < c; i++) {
            const double whitened = (row[i] - own.mean[i]) / own.sd[i];
            const double aligned = trusted->sd[i] * whitened + trusted->mean[i];
            row[i] = (tt_real)((1 - tau) * row[i] + tau * aligned);
        }
    }
    tt_arena_reset(&ctx->scratch, m);
    return true;
}
