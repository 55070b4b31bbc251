/* grab.h: one admission round of GRAB; see grab.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CACHE_GRAB_H
#define TT_CACHE_GRAB_H

#include "ops/ops.h"

/* A round: P candidates compete for M memory slots. Arrays are [P], in
 * ctx->scratch. */
typedef struct grab_round {
    int64_t P, M;
    int64_t L, H, D;
    int64_t heads;           /* of the model, of which H are held: all of them
                                unless the caller says so                     */
    const double **kbar;     /* [P] mean key [H, D] of a candidate, unrotated */
    int64_t *index;          /* [P] its global frame number                   */
    double *mass;            /* eq. 6: importance; sums to 1                  */
    double *div;             /* eq. 9: diversity, 0..1                        */
    double *score;           /* eq. 5                                         */
    uint8_t *keep;           /* eq. 10: 1 for the M best                      */
} grab_round;

/* An empty round with space for `capacity` candidates. */
void grab_begin(tt_ctx *ctx, grab_round *r, int64_t capacity, int64_t M,
                int64_t L, int64_t H, int64_t D);

/* The candidate pool (eq. 4), grown one by one: the frame of that global
 * number, whose mean key is kbar [H, D]. */
void grab_pool(grab_round *r, const double *kbar, int64_t index);

/* mass[c] = softmax over c of ell(c) / max(temperature, 1e-6), where ell(c) is
 * the mean of <q,k>/sqrt(D) over heads, queries and keys of candidate c
 * (eq. 6).
 *   qbar [H, D]  mean of the chunk's clean, unrotated queries over its tokens
 * Order   means by tt_col_mean, everything after in double; the sum over
 *         channels is one chain through all heads of the model.
 * Source  grab.py.   Vectors  ref_data/dit/grab_unit */
void grab_importance(tt_ctx *ctx, grab_round *r, const double *qbar,
                     double temperature);

/* div[c] = max(0, 1 - max over c' != c of mass(c') exp(-|g_c - g_c'| / sig)),
 * sig = max(1, (max g - min g + 1) / 2) (eqs. 7-9). */
void grab_diversity(tt_ctx *ctx, grab_round *r);

/* score = mass + alpha div (eq. 5); zeros when P <= M. */
void grab_score(tt_ctx *ctx, grab_round *r, double alpha);

/* keep = the M best scores (eq. 10), equal scores to the lower position.
 *   *margin   lowest kept - highest dropped score; infinite when none dropped
 * Errors  TT_EFORMAT when a score is not finite. */
void grab_select(tt_ctx *ctx, grab_round *r, double *margin);

#endif
