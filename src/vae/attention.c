/* attention.c: the middle block's attention over the positions of one frame.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py AttentionBlock: one head as wide as the frame has channels,
 *         no mask, no position code, frames on their own.
 * Model   every position asks all: of a band's picture all lines are needed,
 *         and every rank computes all keys and values. */
#include "vae/vae_internal.h"

#include <math.h>
#include <stdio.h>

void vae_bind_attn(tt_bind *b, vae_attn *a, const char *prefix, int64_t c)
{
    char p[128];
    a->c = c;
    snprintf(p, sizeof p, "%s.norm", prefix);
    a->gamma = vae_bind_gamma(b, p, 3, c);
    snprintf(p, sizeof p, "%s.to_qkv", prefix);
    vae_bind_linear(b, &a->qkv, p, 2, c, 3 * c);
    snprintf(p, sizeof p, "%s.proj", prefix);
    vae_bind_linear(b, &a->proj, p, 2, c, c);
}

void vae_attn_step(tt_ctx *ctx, tt_real *x, const vae_attn *a, tt_band h,
                   int64_t w)
{
    const int64_t n = h.lines * w, all = h.of * w, c = a->c;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *qkv = tt_values(ctx, all * 3 * c);
    tt_real *y = tt_values(ctx, n * c);

    tt_channel_norm(ctx, y, x, n, c, a->gamma);
    const tt_real *whole = tt_team_all_lines(ctx, y, &h, w * c);
    tt_linear(ctx, qkv, whole, all, &a->qkv.w, a->qkv.b);
    if (!ctx->status)
        tt_attention(ctx, &(tt_attention_args){
                              .o = y, .q = qkv + h.first * w * 3 * c,
                              .k = qkv + c, .v = qkv + 2 * c,
                              .T = n, .N = all, .H = 1, .D = c,
                              .q_stride = 3 * c, .kv_stride = 3 * c,
                              .scale = (tt_real)(1 / sqrt((double)c))});
    tt_linear_add(ctx, &(tt_linear_args){qkv, y, n, &a->proj.w, a->proj.b},
                  &(tt_gate_add_args){.x = x, .y = qkv, .n = n, .c = c});
    tt_arena_reset(&ctx->scratch, m);
}
