/* embed.c: what enters the network: latent patches, time and text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing wan/modules/causal_model.py (patch_embedding,
 *         time_embedding, time_projection, text_embedding) and model.py
 *         (sinusoidal_embedding_1d).
 * Next    block.c */
#include "dit/model.h"
#include "ops/backend.h"
#include "tether/mathfn.h"

/* One row of patch features: channel, then row, then column of the 2x2 patch,
 * the order of the convolution weight [dim, C, 1, 2, 2].
 *   rows [F*L, C*4]   x [F, C, h, w]
 * Token order is frame, patch row, patch column. */
static void gather_patches(tt_host *rows, const tt_host *x, int64_t F,
                           int64_t C, int64_t h, int64_t w)
{
    for (int64_t f = 0; f < F; f++)
        for (int64_t py = 0; py < h / 2; py++)
            for (int64_t px = 0; px < w / 2; px++)
                for (int64_t c = 0; c < C; c++) {
                    const tt_host *p = x + ((f * C + c) * h + 2 * py) * w
                                         + 2 * px;
                    *rows++ = p[0];
                    *rows++ = p[1];
                    *rows++ = p[w];
                    *rows++ = p[w + 1];
                }
}

void tt_dit_patch(tt_ctx *ctx, const tt_dit *m, tt_real *tokens,
                  const tt_host *x, int64_t F, int64_t h, int64_t w)
{
    if (ctx->status) return;
    const int64_t C = m->cfg.in_dim, T = F * (h / 2) * (w / 2);
    const tt_range own = tt_team_rows(ctx, T);          /* alone: all rows   */
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *rows = tt_values(ctx, T * C * 4);          /* [T, C*4]          */
    tt_host *host = tt_map_write(ctx, rows, T * C * 4);
    if (host) gather_patches(host, x, F, C, h, w);
    tt_put(ctx, rows, host, T * C * 4);
    dit_apply(ctx, tokens, dit_row(rows, own.lo, C * 4), own.hi - own.lo,
              &m->patch);
    TT_TAP_ROWS(ctx, "tokens", tokens, own.hi - own.lo, m->cfg.dim);
    tt_arena_reset(&ctx->scratch, mark);
}

/* s[j] = cos(t w_j), s[half + j] = sin(t w_j), w_j = 10000^(-j/half): all
 * cosines first, all in double. */
static void sinusoid(double *s, double t, int64_t half)
{
    for (int64_t j = 0; j < half; j++) {
        const double w = tt_pow(10000.0, -(double)j / (double)half);
        tt_sincos(t * w, &s[half + j], &s[j]);
    }
}

/* The same as most ports have it: frequencies and angles in float32. */
static void sinusoid_f32(double *s, double t, int64_t half)
{
    for (int64_t j = 0; j < half; j++) {
        const float k = -9.2103404f * (float)j / (float)half; /* ln 10000 */
        const float angle = (float)t * (float)tt_exp((double)k);
        tt_sincos((double)angle, &s[half + j], &s[j]);
    }
}

void tt_dit_time(tt_ctx *ctx, const tt_dit *m, double *wave, tt_real *e,
                 tt_real *e0, const double *t, int64_t nt)
{
    if (ctx->status) return;
    const int64_t dim = m->cfg.dim, freq = m->cfg.freq_dim;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *in = tt_values(ctx, nt * freq);            /* [nt, freq_dim]    */
    tt_real *hidden = tt_values(ctx, nt * dim);         /* [nt, dim]         */
    if (!wave)
        wave = tt_alloc(ctx, &ctx->scratch, nt * freq, sizeof *wave,
                        "time sinusoid");
    if (!e) e = tt_values(ctx, nt * dim);

    tt_host *host = tt_map_write(ctx, in, nt * freq);
    for (int64_t i = 0; host && i < nt; i++)
        (ctx->ops->time32 ? sinusoid_f32 : sinusoid)(wave + i * freq, t[i],
                                                     freq / 2);
    for (int64_t i = 0; host && i < nt * freq; i++) host[i] = (tt_host)wave[i];
    tt_put(ctx, in, host, nt * freq);
    /* e = W2 silu(W0 sinusoid + b0) + b2, time_embedding */
    dit_apply(ctx, hidden, in, nt, &m->time0);
    tt_silu(ctx, hidden, nt * dim);
    dit_apply(ctx, e, hidden, nt, &m->time2);
    TT_TAP(ctx, "e", e, nt, dim);

    /* e0 = W1 silu(e) + b1, time_projection; e itself goes to the head */
    if (e0) {
        tt_copy(ctx, hidden, e, nt * dim);
        tt_silu(ctx, hidden, nt * dim);
        dit_apply(ctx, e0, hidden, nt, &m->time_proj);
        TT_TAP(ctx, "e0", e0, nt, 6, dim);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

void tt_dit_text(tt_ctx *ctx, const tt_dit *m, tt_real *context,
                 const tt_real *text, int64_t rows)
{
    if (ctx->status) return;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *hidden = tt_values(ctx, rows * m->cfg.dim);   /* [rows, dim]    */
    dit_apply_gelu(ctx, hidden, text, rows, &m->text0);
    dit_apply(ctx, context, hidden, rows, &m->text2);
    TT_TAP_ROWS(ctx, "context", context, rows, m->cfg.dim);
    tt_arena_reset(&ctx->scratch, mark);
}
