/* cuts.c: which rows, heads and queries are whose.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   all three are cuts of a line at the same proportions: rows of a
 *         chunk or of a latent frame, heads, and the line `head * T + row` of
 *         all queries. A piece of the last lies in the heads that the second,
 *         rounded outwards, gives to the same rank.
 * Next    exchange.c */
#include "team/cuts.h"

int tt_team_rank(const tt_ctx *ctx)
{
    return ctx->team ? ctx->team->rank : 0;
}

int tt_team_size(const tt_ctx *ctx)
{
    return ctx->team ? ctx->team->size : 1;
}

/* Where the part of rank r begins on a line of n. */
static int64_t begin_of(const tt_team *t, int64_t n, int r)
{
    return n * t->share[r] / t->share[t->size];
}

tt_range cut_rows(const tt_team *t, int64_t T, int rank)
{
    return (tt_range){begin_of(t, T, rank), begin_of(t, T, rank + 1)};
}

tt_range cut_heads(const tt_team *t, int64_t H, int rank)
{
    const int64_t all = t->share[t->size];
    return (tt_range){begin_of(t, H, rank),
                      (H * t->share[rank + 1] + all - 1) / all};
}

static int64_t cuts_within(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i > n ? n : i;
}

tt_range cut_queries(const tt_team *t, int64_t H, int64_t T, int64_t h,
                     int rank)
{
    const tt_range line = cut_rows(t, H * T, rank);
    return (tt_range){cuts_within(line.lo - h * T, T),
                      cuts_within(line.hi - h * T, T)};
}

tt_range cut_first_heads(const tt_team *t, int64_t H, int rank)
{
    tt_range heads = cut_heads(t, H, rank);
    const int64_t before = rank ? cut_heads(t, H, rank - 1).hi : 0;
    if (heads.lo < before) heads.lo = before;
    if (heads.hi < heads.lo) heads.hi = heads.lo;
    return heads;
}

/* ---- ours ---------------------------------------------------------------- */

tt_range tt_team_rows(const tt_ctx *ctx, int64_t T)
{
    const tt_team *t = ctx->team;
    return t ? cut_rows(t, T, t->rank) : (tt_range){0, T};
}

tt_range tt_team_heads(const tt_ctx *ctx, int64_t H)
{
    const tt_team *t = ctx->team;
    return t ? cut_heads(t, H, t->rank) : (tt_range){0, H};
}

tt_range tt_team_queries(const tt_ctx *ctx, int64_t H, int64_t T, int64_t h)
{
    const tt_team *t = ctx->team;
    return t ? cut_queries(t, H, T, h, t->rank) : (tt_range){0, T};
}

tt_band tt_team_band(const tt_ctx *ctx, int64_t T, int64_t each)
{
    const tt_range own = tt_team_rows(ctx, T);
    tt_band b = {.of = T * each, .first = own.lo * each,
                 .lines = cut_size(own) * each};
    if (tt_team_size(ctx) == 1) return b;
    b.each = each;
    b.above = b.lines > 0 && own.lo > 0;
    b.below = b.lines > 0 && own.hi < T;
    return b;
}

tt_status tt_team_share(tt_ctx *ctx, const double *share, int n)
{
    tt_team *t = ctx->team;
    if (ctx->status) return ctx->status;
    if (n != tt_team_size(ctx))
        return tt_fail(ctx, TT_EINVAL, "%d shares for %d ranks: one number per "
                       "rank is needed", n, tt_team_size(ctx));
    for (int r = 0; r < n; r++)
        if (!(share[r] >= 1 && share[r] <= 1000)
            || share[r] != (double)(int64_t)share[r])
            return tt_fail(ctx, TT_EINVAL, "the share of rank %d is %g: a "
                           "whole number from 1 to 1000 is needed", r,
                           share[r]);
    for (int r = 0; t && r < n; r++)
        t->share[r + 1] = t->share[r] + (int64_t)share[r];
    return TT_OK;
}
