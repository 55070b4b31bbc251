/* grab.c: which past frames deserve a memory slot (GRAB).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, "GRAB", eqs. 4-10.
 * Source  tethercache/grab.py
 * Model   the M survivors are chosen anew at every commit; an old member can
 *         lose its place.
 * Holds   candidates are in time order: members in slot order, then the
 *         evicted frames.
 * Differs from Source in summation order only. Code: the full product of all
 *         queries and keys, then its mean. We: the mean is linear, so
 *           mean_{q,k} <q, k> = <mean q, mean k>,
 *         which at 1.3B replaces 381 GFLOP per layer and chunk by additions.
 * Next    tame.c */
#include "cache/grab.h"

#include "tether/mathfn.h"
#include "team/team.h"

#include <math.h>
#include <string.h>

/* In place: x[i] = exp(x[i] - max) / sum. */
static void relevance_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > top) top = x[i];
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Eq. 7, the temporal scale: half the span of the candidates, at least 1. */
static double relevance_scale(const int64_t *index, int64_t n)
{
    int64_t lo = index[0], hi = index[0];
    for (int64_t i = 1; i < n; i++) {
        if (index[i] < lo) lo = index[i];
        if (index[i] > hi) hi = index[i];
    }
    const double half = 0.5 * (double)(hi - lo + 1);
    return half > 1 ? half : 1;
}

/* Eqs. 8 and 9, diversity of candidate c: 1 less its redundancy, which is the
 * heaviest neighbour, by importance times closeness in time. */
static double relevance_div(const int64_t *index, const double *mass,
                            int64_t n, int64_t c, double sigma)
{
    double most = 0;
    for (int64_t o = 0; o < n; o++) {
        if (o == c) continue;
        const double gap = fabs((double)(index[c] - index[o]));
        const double sim = tt_exp(-gap / sigma) * mass[o];
        if (sim > most) most = sim;
    }
    return 1 - most > 0 ? 1 - most : 0;
}

void grab_begin(tt_ctx *ctx, grab_round *r, int64_t capacity, int64_t M,
                int64_t L, int64_t H, int64_t D)
{
    tt_arena *a = &ctx->scratch;
    *r = (grab_round){ .M = M, .L = L, .H = H, .D = D, .heads = H };
    r->kbar = tt_alloc(ctx, a, capacity, sizeof *r->kbar, "candidates");
    r->index = tt_alloc(ctx, a, capacity, sizeof *r->index, "candidates");
    r->mass = tt_alloc0(ctx, a, capacity, sizeof *r->mass, "candidates");
    r->div = tt_alloc0(ctx, a, capacity, sizeof *r->div, "candidates");
    r->score = tt_alloc0(ctx, a, capacity, sizeof *r->score, "candidates");
    r->keep = tt_alloc0(ctx, a, capacity, sizeof *r->keep, "candidates");
    if (ctx->status) r->M = 0;   /* P stays 0: nothing below touches them */
}

/* Eq. 4. */
void grab_pool(grab_round *r, const double *kbar, int64_t index)
{
    if (!r->keep) return;        /* grab_begin failed */
    r->kbar[r->P] = kbar;
    r->index[r->P] = index;
    r->P++;
}

/* The mean query, then the mean keys of all candidates: [1 + P, heads, D] of
 * all heads, because a sum over parts of them would be another sum. */
static const double *all_means(tt_ctx *ctx, const grab_round *r,
                               const double *qbar)
{
    const int64_t width = r->H * r->D;
    const size_t bytes = (size_t)width * sizeof *qbar;
    double *held = tt_alloc(ctx, &ctx->scratch, (1 + r->P) * width,
                            sizeof *held, "means");
    if (held) memcpy(held, qbar, bytes);
    for (int64_t c = 0; held && c < r->P; c++)
        memcpy(held + (1 + c) * width, r->kbar[c], bytes);
    return tt_team_all_heads(ctx, held, 1 + r->P, r->heads,
                             (size_t)r->D * sizeof *held);
}

/* Eq. 6. */
void grab_importance(tt_ctx *ctx, grab_round *r, const double *qbar,
                     double temperature)
{
    const int64_t width = r->heads * r->D;
    if (!ctx->status && r->P == 0) return;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const double *q = all_means(ctx, r, qbar);
    /* summed over all heads at once: sum_h <qbar_h, kbar_h> is one product */
    const double norm = (double)r->heads * sqrt((double)r->D);
    const double t = temperature > 1e-6 ? temperature : 1e-6; /* grab.py */
    for (int64_t c = 0; q && c < r->P; c++) {
        const double *k = q + (1 + c) * width;
        double dot = 0;
        for (int64_t i = 0; i < width; i++) dot += q[i] * k[i];
        r->mass[c] = dot / norm / t;
    }
    tt_arena_reset(&ctx->scratch, m);
    if (q) relevance_softmax(r->mass, r->P);
}

/* Eqs. 7-9. */
void grab_diversity(tt_ctx *ctx, grab_round *r)
{
    if (ctx->status || r->P == 0) return;
    const double sigma = relevance_scale(r->index, r->P);
    for (int64_t c = 0; c < r->P; c++)
        r->div[c] = relevance_div(r->index, r->mass, r->P, c, sigma);
}

/* Eq. 5. */
void grab_score(tt_ctx *ctx, grab_round *r, double alpha)
{
    if (ctx->status) return;
    for (int64_t c = 0; c < r->P; c++)
        r->score[c] = r->P <= r->M ? 0 : r->mass[c] + alpha * r->div[c];
}

/* True when candidate a goes before b. */
static bool better(const double *score, int64_t a, int64_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

/* Eq. 10. */
void grab_select(tt_ctx *ctx, grab_round *r, double *margin)
{
    double kept = INFINITY, dropped = -INFINITY;
    *margin = INFINITY;
    for (int64_t c = 0; c < r->P && !ctx->status; c++)
        if (!(fabs(r->score[c]) < INFINITY))
            tt_fail(ctx, TT_EFORMAT,
                    "the importance of frame %lld is not a finite number: the "
                    "queries or keys hold NaN or infinity; check the weights",
                    (long long)r->index[c]);
    if (ctx->status) return;
    for (int64_t c = 0; c < r->P; c++) {
        int64_t rank = 0;        /* candidates that go before c */
        for (int64_t o = 0; o < r->P; o++) rank += better(r->score, o, c);
        r->keep[c] = rank < r->M;
        if (r->keep[c] && r->score[c] < kept) kept = r->score[c];
        if (!r->keep[c] && r->score[c] > dropped) dropped = r->score[c];
    }
    *margin = kept - dropped;
}
