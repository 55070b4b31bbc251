/* head.c: from tokens back to a latent.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py, CausalHead, unpatchify. */
#include "dit/model.h"

enum { SHIFT, SCALE, MOD_ROWS };

/* y = W (LN(x) (1 + scale) + shift) + b; shift and scale are the rows of
 * modulation + e, the same e (before its silu and projection) for both. */
void tt_dit_head(tt_ctx *ctx, const tt_dit *m, tt_real *y, const tt_real *x,
                 int64_t T, const tt_real *e, int64_t ne)
{
    if (ctx->status) return;
    const int64_t dim = m->cfg.dim;
    TT_ASSERT(T % ne == 0);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *mod =                             /* [ne, 2, dim]          */
        dit_modulation(ctx, m->head_modulation, e, ne, MOD_ROWS, dim, true);
    tt_real *a = tt_values(ctx, T * dim);           /* [T, dim]              */

    tt_norm_modulate(
        ctx, &(tt_layer_norm_args){a, x, T, dim, NULL, NULL, m->cfg.eps},
        &(tt_modulate_args){a, T, dim, dit_row(mod, SCALE, dim),
                            dit_row(mod, SHIFT, dim), MOD_ROWS * dim, T / ne});
    dit_apply(ctx, y, a, T, &m->head);
    TT_TAP_ROWS(ctx, "head", y, T, 4 * m->cfg.in_dim);
    tt_arena_reset(&ctx->scratch, mark);
}

/* Value (dy*2 + dx)*C + c of a token goes to channel c at (2py+dy, 2px+dx):
 * channel fastest, the opposite of the patch embedding. */
void tt_dit_unpatch(tt_host *latent, const tt_host *y, int64_t F, int64_t C,
                    int64_t h, int64_t w)
{
    for (int64_t f = 0; f < F; f++)
        for (int64_t py = 0; py < h / 2; py++)
            for (int64_t px = 0; px < w / 2; px++)
                for (int64_t dy = 0; dy < 2; dy++)
                    for (int64_t dx = 0; dx < 2; dx++)
                        for (int64_t c = 0; c < C; c++)
                            latent[((f * C + c) * h + 2 * py + dy) * w
                                   + 2 * px + dx] = *y++;
}
