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

#include "tether/device.h"

void tame_learn(tt_ctx *ctx, tt_wide *out, const tt_real *x, int64_t L,
                int64_t c)
{
    if (ctx->status) return;
    tt_col_mean(ctx, out, x, L, c);
    tt_col_moment(ctx, out + c, x, out, L, c);
}

/* Eq. 11, and eq. 12 over it. */
void tame_trusted(tt_ctx *ctx, tame_stats *out, const tt_wide *m, int64_t F,
                  int64_t L, int64_t c, int64_t step)
{
    out->mean = tt_wides(ctx, c);
    out->sd = tt_wides(ctx, c);
    tt_trust(ctx, &(tt_trust_args){out->mean, out->sd, m, F, L, c, step});
}

void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c)
{
    tt_wide *m = tt_wides(ctx, 2 * c);
    tame_learn(ctx, m, x, n, c);
    tame_trusted(ctx, out, m, 1, n, c, 2 * c);
}

/* Eq. 13. */
bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const tt_wide *own, const tame_stats *trusted, double tau)
{
    if (!trusted || tau == 0 || ctx->status) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_wide *gain = tt_wides(ctx, c);
    tt_gain(ctx, &(tt_gain_args){gain, trusted->sd, own + c, n, c});
    tt_col_blend(ctx, x, n, c, own, gain, trusted->mean, tau);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status == TT_OK;
}
