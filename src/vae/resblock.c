/* resblock.c: the residual block, where nearly all of the VAE's work is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py ResidualBlock.
 * Holds   Without a shortcut a step needs three frames in all: x, y and the
 *         spare frame of its slots; y serves as the value between the two
 *         convolutions. */
#include "vae/vae_internal.h"

#include <stdio.h>

void vae_bind_res(tt_bind *b, vae_res *r, const char *prefix, int64_t cin,
                  int64_t cout)
{
    char p[128];
    *r = (vae_res){.cin = cin, .cout = cout};
    snprintf(p, sizeof p, "%s.residual.0", prefix);
    r->gamma1 = vae_bind_gamma(b, p, 4, cin);
    snprintf(p, sizeof p, "%s.residual.2", prefix);
    vae_bind_conv(b, &r->conv1, p, 3, cin, cout, 3, 3);
    snprintf(p, sizeof p, "%s.residual.3", prefix);
    r->gamma2 = vae_bind_gamma(b, p, 4, cout);
    snprintf(p, sizeof p, "%s.residual.6", prefix);
    vae_bind_conv(b, &r->conv2, p, 3, cout, cout, 3, 3);
    if (cin == cout) return;
    snprintf(p, sizeof p, "%s.shortcut", prefix);
    vae_bind_linear(b, &r->shortcut, p, 3, cin, cout);
}

void vae_res_step(tt_ctx *ctx, tt_real *y, const tt_real *x, const vae_res *r,
                  vae_slot *s)
{
    const int64_t n = s[0].dim[0] * s[0].dim[1];
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);

    vae_norm_silu(ctx, &s[0], x, r->gamma1);
    vae_conv_step(ctx, y, &r->conv1, &s[0]);
    vae_norm_silu(ctx, &s[1], y, r->gamma2);
    vae_conv_step(ctx, y, &r->conv2, &s[1]);

    const tt_real *h = x;
    if (r->cin != r->cout) {
        tt_real *cut = tt_values(ctx, n * r->cout);
        tt_linear(ctx, cut, x, n, &r->shortcut.w, r->shortcut.b);
        h = cut;
    }
    tt_add(ctx, y, h, n * r->cout);
    tt_arena_reset(&ctx->scratch, m);
}
