/* tap.c: what is shared out, shown as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "team/cuts.h"
#include "core/device.h"

/* n of all ranks together. */
static int64_t total(tt_ctx *ctx, int64_t n)
{
    const tt_team *t = ctx->team;
    int64_t of[TT_TEAM_MAX] = {0}, sum = 0;
    tt_parcels out = {.data = (char *)&n}, in = {.data = (char *)of};
    for (int r = 0; r < t->size; r++) {
        out.n[r] = in.n[r] = sizeof n;
        in.at[r] = r * (int64_t)sizeof n;
    }
    team_exchange(ctx, &out, &in, false);
    for (int r = 0; r < t->size; r++) sum += of[r];
    return sum;
}

void tt_team_tap_rows(tt_ctx *ctx, const char *name, tt_real *x, int rank,
                      const int64_t *dim)
{
    int64_t all[TT_MAX_RANK], width = 1;
    if (tt_team_size(ctx) == 1) {
        tt_tap_values(ctx, name, x, rank, dim);
        return;
    }
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    memcpy(all, dim, (size_t)rank * sizeof *dim);
    for (int i = 1; i < rank; i++) width *= dim[i];
    all[0] = total(ctx, dim[0]);
    tt_real *whole = tt_team_all_rows(ctx, x, all[0], width);
    if (whole) tt_tap_values(ctx, name, whole, rank, all);
    if (whole && ctx->inject)
        tt_copy(ctx, x, whole + tt_team_rows(ctx, all[0]).lo * width,
                dim[0] * width);
    tt_arena_reset(&ctx->scratch, m);
}

void tt_team_tap_heads(tt_ctx *ctx, const char *name, tt_real *x, int64_t n,
                       int64_t H, int64_t D)
{
    const int64_t dim[] = {n, H, D};
    const tt_range held = tt_team_heads(ctx, H);
    if (tt_team_size(ctx) == 1) {
        tt_tap_values(ctx, name, x, 3, dim);
        return;
    }
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const int64_t own = cut_size(held) * D;
    tt_host *ours = tt_get(ctx, x, n * own);
    tt_host *all = tt_team_all_heads(ctx, ours, n, H, (size_t)D * sizeof *all);
    if (all)
        tt_tap_emit(ctx, name, sizeof *all == 8 ? TT_F64 : TT_F32, all, 3, dim);
    if (all && ctx->inject) {
        for (int64_t i = 0; i < n; i++)
            memcpy(ours + i * own, all + (i * H + held.lo) * D,
                   (size_t)own * sizeof *all);
        tt_put(ctx, x, ours, n * own);
    }
    tt_arena_reset(&ctx->scratch, m);
}
