/* test_grab.c: properties of one admission round.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "cache/grab.h"
#include "cache/tame.h"
#include "tether/mathfn.h"

enum { P = 7, M = 4, L = 5, H = 3, D = 8, W = H * D, T = 15 };

static void fill(tt_real *x, int n, uint32_t s)
{
    for (int i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (tt_real)((double)s / 2147483648.0 - 1);
    }
}

/* The official definition: the mean of all logits, query by query, key by key.
 * The identity must agree to double rounding. */
static void check_identity(tt_ctx *ctx)
{
    static tt_real q[T * W], k[P * L * W];
    static double qbar[W], kbar[P][W];
    double want[P], sum = 0, margin;
    const int64_t index[P] = { 3, 5, 9, 10, 20, 21, 22 };
    fill(q, T * W, 1);
    fill(k, P * L * W, 2);
    for (int c = 0; c < P; c++) {
        double ell = 0;
        for (int h = 0; h < H; h++)
            for (int t = 0; t < T; t++)
                for (int l = 0; l < L; l++)
                    for (int d = 0; d < D; d++)
                        ell += (double)q[t * W + h * D + d]
                               * (double)k[(c * L + l) * W + h * D + d];
        want[c] = tt_exp(ell / (H * T * L) / sqrt(D) / 0.05);
        sum += want[c];
    }
    tt_col_mean(ctx, qbar, q, T, W);
    grab_round r;
    grab_begin(ctx, &r, P, M, L, H, D);
    for (int c = 0; c < P; c++) {
        tt_col_mean(ctx, kbar[c], k + c * L * W, L, W);
        grab_pool(&r, kbar[c], index[c]);
    }
    grab_importance(ctx, &r, qbar, 0.05);
    grab_diversity(ctx, &r);
    grab_score(ctx, &r, 0.35);
    grab_select(ctx, &r, &margin);
    if (!expect(!ctx->status && r.P == P, "a round")) return;
    double worst = 0, low = INFINITY, high = -INFINITY;
    for (int c = 0; c < P; c++) {
        worst = fmax(worst, fabs(r.mass[c] - want[c] / sum));
        if (r.keep[c]) low = fmin(low, r.score[c]);
        else high = fmax(high, r.score[c]);
    }
    expect(worst < 1e-13, "mean identity: off by %g", worst);
    expect(margin == low - high && margin > 0, "margin %g", margin);

    /* a temperature below 1e-6 counts as 1e-6 (grab.py) */
    double clamped[P];
    grab_importance(ctx, &r, qbar, 1e-6);
    memcpy(clamped, r.mass, sizeof clamped);
    grab_importance(ctx, &r, qbar, 1e-9);
    expect_bits("temperature clamp", r.mass, clamped, sizeof clamped);
}

/* Equal scores: the older candidate stays. */
static void check_ties(tt_ctx *ctx)
{
    const uint8_t want[6] = { 0, 1, 1, 0, 1, 0 };
    double score[6] = { 0.25, 0.5, 0.5, 0.25, 0.75, 0.5 }, margin;
    int64_t index[6] = {0};
    uint8_t keep[6];
    grab_round r = { .P = 6, .M = 3, .score = score, .index = index,
                     .keep = keep };
    grab_select(ctx, &r, &margin);
    expect(!memcmp(keep, want, 6) && margin == 0, "ties");
    r.M = 6;
    grab_select(ctx, &r, &margin);
    expect(margin == INFINITY && keep[0] && keep[5], "no one dropped");
    score[2] = NAN;
    grab_select(ctx, &r, &margin);
    expect_status(ctx->status, TT_EFORMAT, "NaN score");
}

/* The edit is affine per channel and moves mean and deviation as stated:
 * mean = (1-tau) mu_x + tau mu_T, sd = (1-tau) sd_x + tau sd_T. */
static void check_edit(tt_ctx *ctx, double tau)
{
    enum { N = 40, NT = 90 };
    static tt_real x[N * W], t[NT * W];
    tame_stats before, after, trusted;
    fill(x, N * W, 3);
    fill(t, NT * W, 4);
    for (int i = 0; i < NT * W; i++) t[i] = 3 + t[i] * (tt_real)2.5;
    static double own[2 * W];
    tame_stat(ctx, &before, x, N, W);
    tame_learn(ctx, own, x, N, W);
    tame_stat(ctx, &trusted, t, NT, W);
    const bool did = tame_edit(ctx, x, N, W, own, &trusted, tau);
    tame_stat(ctx, &after, x, N, W);
    if (!expect(!ctx->status && did == (tau > 0), "edited")) return;
    const double tol = sizeof(tt_real) == 8 ? 1e-14 : 1e-6;
    for (int c = 0; c < W; c++) {
        const double mean = (1 - tau) * before.mean[c] + tau * trusted.mean[c];
        const double sd = (1 - tau) * before.sd[c] + tau * trusted.sd[c];
        expect(fabs(after.mean[c] - mean) <= tol
               && fabs(after.sd[c] - sd) <= tol,
               "tau %g channel %d: mean %g sd %g, expected %g %g", tau, c,
               after.mean[c], after.sd[c], mean, sd);
    }
}

int main(void)
{
    tt_ctx *ctx = test_begin("cache/grab");
    check_identity(ctx);
    check_ties(ctx);
    check_edit(ctx, 0);
    check_edit(ctx, 0.35);
    check_edit(ctx, 1);
    return test_end();
}
