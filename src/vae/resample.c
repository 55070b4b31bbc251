/* resample.c: doubling and halving, in space and in time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py Resample. Up: time first, then space. Down: space first,
 *         then time.
 * Model   The temporal parts do nothing on the first chunk (one frame stays
 *         one frame). Up: the first frame never becomes history, so the
 *         second chunk sees zeros. Down: it does become history. */
#include "vae/vae_internal.h"

#include <stdio.h>

/* Rows [first, first + n) of a packed convolution. */
static vae_conv conv_rows(const vae_conv *c, int64_t first, int64_t n)
{
    vae_conv part = *c;
    const int64_t row = (int64_t)c->kt * c->kh * c->kw * c->cin;
    part.cout = n;
    if (c->w.data) {
        const int64_t dim[5] = {n, c->kt, c->kh, c->kw, c->cin};
        const char *data = c->w.data;
        data += (size_t)(first * row) * tt_dtype_size(c->w.dtype);
        part.w = tt_tensor_like(&c->w, data, 5, dim);
    }
    if (c->b) part.b = c->b + first;
    return part;
}

void vae_bind_resample(tt_bind *b, vae_resample *r, const char *prefix,
                       vae_mode mode, int64_t c)
{
    const bool up = mode == VAE_UP2D || mode == VAE_UP3D;
    char p[128];
    *r = (vae_resample){.mode = mode, .c = c};
    snprintf(p, sizeof p, "%s.resample.1", prefix);
    vae_bind_conv(b, &r->space, p, 2, c, up ? c / 2 : c, 1, 3);
    snprintf(p, sizeof p, "%s.time_conv", prefix);
    if (mode == VAE_UP3D) {
        vae_conv both;
        vae_bind_conv(b, &both, p, 3, c, 2 * c, 3, 1);
        r->half[0] = conv_rows(&both, 0, c);
        r->half[1] = conv_rows(&both, c, c);
    }
    if (mode == VAE_DOWN3D) vae_bind_conv(b, &r->time, p, 3, c, c, 3, 1);
}

/* x with the lines next to it. */
static const tt_real *with_halo(tt_ctx *ctx, const tt_real *x,
                                const tt_band *h, int64_t width)
{
    if (!h->each) return x;
    tt_real *y = tt_values(ctx, (h->above + h->lines + h->below) * width);
    if (y) tt_copy(ctx, y + h->above * width, x, h->lines * width);
    tt_team_halo(ctx, y, h, width);
    return y;
}

void vae_up_space(tt_ctx *ctx, tt_real *y, const tt_real *x,
                  const vae_resample *r, tt_band h, int64_t w)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_real *const frame[1] = {with_halo(ctx, x, &h, w * r->c)};
    const vae_conv *c = &r->space;
    /* the line above is two lines of the doubled picture */
    tt_conv(ctx, &(tt_conv_args){.y = y, .frame = frame, .w = &c->w, .b = c->b,
                                 .Hi = h.above + h.lines + h.below, .Wi = w,
                                 .Cin = c->cin, .Ho = 2 * h.lines, .Wo = 2 * w,
                                 .Cout = c->cout, .kt = 1, .kh = 3, .kw = 3,
                                 .stride = 1, .pad_top = 1 - 2 * (int)h.above,
                                 .pad_left = 1, .up = 2});
    tt_arena_reset(&ctx->scratch, m);
}

void vae_up_time(tt_ctx *ctx, tt_real *earlier, tt_real *later,
                 const vae_resample *r, vae_slot *s)
{
    tt_real *const older = vae_slot_lines(s, s->older);
    tt_real *const newer = vae_slot_lines(s, s->newer);
    const tt_real *const frame[3] = {s->count == 2 ? older : NULL,
                                     s->count >= 1 ? newer : NULL,
                                     vae_slot_input(s)};
    vae_conv_frame(ctx, earlier, frame, &r->half[0], s);
    vae_conv_frame(ctx, later, frame, &r->half[1], s);
    if (s->count == 0 && newer) {
        /* the official slot is [zero, x] from its first frame on */
        tt_zero(ctx, newer, s->dim[0] * s->width);
        s->count = 1;
    }
    vae_slot_push(s);
}

void vae_down_space(tt_ctx *ctx, tt_real *y, const tt_real *x,
                    const vae_resample *r, int64_t h, int64_t w)
{
    const tt_real *const frame[1] = {x};
    const vae_conv *c = &r->space;
    /* zeros on the right and at the bottom only */
    tt_conv(ctx, &(tt_conv_args){.y = y, .frame = frame, .w = &c->w, .b = c->b,
                                 .Hi = h, .Wi = w, .Cin = c->cin,
                                 .Ho = h / 2, .Wo = w / 2, .Cout = c->cout,
                                 .kt = 1, .kh = 3, .kw = 3, .stride = 2,
                                 .pad_top = 0, .pad_left = 0, .up = 1});
}

bool vae_down_time(tt_ctx *ctx, tt_real *y, const vae_resample *r, vae_slot *s,
                   bool first_chunk, int64_t k)
{
    const tt_real *const frame[3] = {s->older, s->newer, vae_slot_input(s)};
    const int64_t n = s->dim[0] * s->dim[1] * s->dim[2];
    const bool out = first_chunk || k % 2 == 1;
    if (first_chunk) tt_copy(ctx, y, frame[2], n);
    else if (out)
        vae_conv_frame(ctx, y, frame, &r->time, s);
    vae_slot_push(s);
    return out;
}
