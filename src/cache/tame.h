/* tame.h: trusted statistics and the edit; see tame.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CACHE_TAME_H
#define TT_CACHE_TAME_H

#include "ops/ops.h"

/* Mean and population standard deviation of every channel over tokens, the
 * latter at least 1e-6 (eq. 12). */
typedef struct tame_stats {
    double *mean, *sd;           /* [c], in ctx->scratch                      */
} tame_stats;

/* What is remembered of the frame x [L, c], where its values are: mean and sum
 * of squared deviations of every channel, its moments [2, c].
 * Order  tt_col_mean, tt_col_moment: double, two passes, so that a constant
 *        channel has exactly its value as mean and 0 as deviation. */
void tame_learn(tt_ctx *ctx, tt_wide *out, const tt_real *x, int64_t L,
                int64_t c);

/* Statistics of the trusted pool (eq. 11): F >= 1 frames of L tokens, from
 * their moments, rows of m `step` apart, without reading them again:
 *   mean = sum_f mean_f / F,   m2 = sum_f (m2_f + L (mean_f - mean)^2). */
void tame_trusted(tt_ctx *ctx, tame_stats *out, const double *m, int64_t F,
                  int64_t L, int64_t c, int64_t step);

/* Stat(x), x [n, c], n >= 1 (eq. 12): the two above. */
void tame_stat(tt_ctx *ctx, tame_stats *out, const tt_real *x, int64_t n,
               int64_t c);

/* y = (1-tau) x + tau (sd_T (x - mu_x) / sd_x + mu_T) per channel, in place
 * (eq. 13), x [n, c], own: its moments. In double, rounded once.
 * Returns  true when something was edited: not for tau = 0, nor with
 *          trusted = NULL.
 * Source  tame.py.   Vectors  ref_data/dit/tame_unit */
bool tame_edit(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
               const double *own, const tame_stats *trusted, double tau);

#endif
