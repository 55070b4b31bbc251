/* causal_conv.c: 3-D convolutions that look into the past, one frame a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py CausalConv3d and the feature cache of its callers.
 * Model   Output frame t reads input frames t-2, t-1, t. Before the first
 *         frame the input is zero: NULL history, which tt_conv skips without
 *         changing a bit.
 * Holds   slot.count grows 0, 1, 2 and stays; frames move by swapping
 *         pointers only. A frame becomes history with its lines of other
 *         ranks: they come once. */
#include "vae/vae_internal.h"

#include "core/parallel.h"
#include "io/weights.h"

#include <stdio.h>
#include <string.h>

/* ---- slots -------------------------------------------------------------- */

int64_t vae_slots_add(tt_ctx *ctx, tt_arena *a, vae_slots *s, tt_band h,
                      int64_t w, int64_t c)
{
    TT_ASSERT(s->count < VAE_MAX_SLOTS);
    vae_slot *slot = &s->slot[s->count++];
    const bool bf16 = s->bf16 && w * c % 2 == 0;
    const int64_t width = bf16 ? w * c / 2 : w * c;
    const int64_t n = (h.above + h.lines + h.below) * width;
    int i = 0;
    while (i < s->nsizes && s->size[i] != n) i++;
    const bool fresh = i == s->nsizes;
    if (fresh) {
        TT_ASSERT(i < VAE_MAX_SIZES);
        s->nsizes++;
        s->size[i] = n;
        s->spare[i] = NULL;
    }
    *slot = (vae_slot){.dim = {h.lines, w, c}, .width = width, .band = h,
                       .spare = &s->spare[i], .bf16 = bf16};
    if (a) {
        slot->older = tt_values_in(ctx, a, n, "history of the VAE");
        slot->newer = tt_values_in(ctx, a, n, "history of the VAE");
        if (fresh) s->spare[i] = tt_values_in(ctx, a, n, "history of the VAE");
    }
    return (fresh ? 3 : 2) * n * (int64_t)sizeof(tt_real);
}

void vae_slot_push(vae_slot *s)
{
    tt_real *freed = s->older;
    s->older = s->newer;
    s->newer = *s->spare;
    *s->spare = freed;
    if (s->count < 2) s->count++;
}

tt_real *vae_slot_draft(tt_ctx *ctx, const vae_slot *s)
{
    return s->bf16 ? tt_values(ctx, s->dim[0] * s->dim[1] * s->dim[2])
                   : vae_slot_input(s);
}

void vae_slot_copy(tt_ctx *ctx, const vae_slot *s, const tt_real *x)
{
    const int64_t n = s->dim[0] * s->dim[1] * s->dim[2];
    if (s->bf16) tt_narrow(ctx, vae_slot_input(s), x, n);
    else tt_copy(ctx, vae_slot_input(s), x, n);
}

int vae_slot_view(const vae_slot *s, const tt_real *frame[2])
{
    int n = 0;
    if (s->count == 2) frame[n++] = vae_slot_lines(s, s->older);
    if (s->count >= 1) frame[n++] = vae_slot_lines(s, s->newer);
    return n;
}

/* ---- weights ------------------------------------------------------------ */

static void copy_element(unsigned char *d, const unsigned char *s, size_t n)
{
    switch (n) {
    case 1: *d = *s; break;
    case 2: memcpy(d, s, 2); break;
    case 4: memcpy(d, s, 4); break;
    default: memcpy(d, s, 8); break;
    }
}

/* [cout, cin, taps] -> [cout, taps, cin], element type unchanged. By all
 * threads: what costs is the first touch of as many bytes as the VAE has. */
static void *repack(tt_bind *b, const tt_tensor *t, int64_t cout, int64_t cin,
                    int64_t taps)
{
    const size_t size = tt_dtype_size(t->dtype);
    unsigned char *out = tt_alloc(b->ctx, b->arena, cout * cin * taps, size,
                                  "repacked VAE weights");
    if (!out) return NULL;
    TT_PARALLEL_FOR_DYNAMIC(b->ctx, cout * cin * taps)
    for (int64_t o = 0; o < cout; o++) {
        const int64_t at = o * cin * taps;
        const unsigned char *in = (const unsigned char *)t->data
                                  + (size_t)at * size;
        for (int64_t c = 0; c < cin; c++)
            for (int64_t k = 0; k < taps; k++, in += size)
                copy_element(out + (size_t)(at + k * cin + c) * size, in,
                             size);
    }
    return out;
}

void vae_bind_conv(tt_bind *b, vae_conv *c, const char *prefix, int dims,
                   int64_t cin, int64_t cout, int kt, int k)
{
    const int64_t stored3[5] = {cout, cin, kt, k, k};
    const int64_t stored2[4] = {cout, cin, k, k};
    const int64_t packed[5] = {cout, kt, k, k, cin};
    char name[160];
    *c = (vae_conv){.cin = cin, .cout = cout, .kt = kt, .kh = k, .kw = k};
    snprintf(name, sizeof name, "%s.weight", prefix);
    tt_tensor t = tt_bind_tensor(b, name, dims == 3 ? 5 : 4,
                                 dims == 3 ? stored3 : stored2);
    if (t.data) {
        const int64_t taps = (int64_t)kt * k * k;
        /* without a channel or a tap axis to move, the stored order is ours */
        const bool ours = taps == 1 || cin == 1;
        const void *w = ours ? t.data : repack(b, &t, cout, cin, taps);
        c->w = tt_tensor_like(&t, w, 5, packed);
        c->w = tt_place(b->ctx, b->arena, &c->w);
        if (w != t.data) tt_weights_release(b->w, &t);
    }
    snprintf(name, sizeof name, "%s.bias", prefix);
    c->b = tt_bind_real(b, name, 1, &cout);
}

void vae_bind_linear(tt_bind *b, vae_linear *l, const char *prefix, int dims,
                     int64_t in, int64_t out)
{
    const int64_t stored[5] = {out, in, 1, 1, 1};
    char name[160];
    *l = (vae_linear){0};
    snprintf(name, sizeof name, "%s.weight", prefix);
    tt_tensor t = tt_bind_tensor(b, name, 2 + dims, stored);
    if (t.data) l->w = tt_tensor_reshape(&t, 2, stored);
    l->w = tt_place(b->ctx, b->arena, &l->w);
    snprintf(name, sizeof name, "%s.bias", prefix);
    l->b = tt_bind_real(b, name, 1, &out);
}

const tt_real *vae_bind_gamma(tt_bind *b, const char *prefix, int rank,
                              int64_t c)
{
    const int64_t stored[4] = {c, 1, 1, 1};
    char name[160];
    snprintf(name, sizeof name, "%s.gamma", prefix);
    return tt_bind_real(b, name, rank, stored);
}

/* ---- steps -------------------------------------------------------------- */

/* Frames are [above + H + below, W, C]: where there is a line above, the window
 * of our first line begins on it instead of on padding. */
static void conv_band(tt_ctx *ctx, tt_real *y, const tt_real *const *frame,
                      const vae_conv *c, const vae_slot *s, const tt_band *h)
{
    const int64_t w = s->dim[1];
    tt_conv(ctx, &(tt_conv_args){.y = y, .frame = frame, .w = &c->w, .b = c->b,
                                 .Hi = h->above + h->lines + h->below, .Wi = w,
                                 .Cin = c->cin, .Ho = h->lines, .Wo = w,
                                 .Cout = c->cout, .kt = c->kt, .kh = c->kh,
                                 .kw = c->kw, .stride = 1, .up = 1,
                                 .bf16 = s->bf16,
                                 .pad_top = c->kh / 2 - (int)h->above,
                                 .pad_left = c->kw / 2});
}

void vae_conv_frame(tt_ctx *ctx, tt_real *y, const tt_real *const *frame,
                    const vae_conv *c, const vae_slot *s)
{
    const tt_band whole = vae_whole(s->dim[0]);
    conv_band(ctx, y, frame, c, s, &whole);
}

void vae_conv_step(tt_ctx *ctx, tt_real *y, const vae_conv *c, vae_slot *s)
{
    TT_ASSERT(c->kt == 3 && c->cin == s->dim[2]);
    tt_team_halo(ctx, *s->spare, &s->band, s->width);
    const tt_real *const frame[3] = {s->count == 2 ? s->older : NULL,
                                     s->count >= 1 ? s->newer : NULL,
                                     *s->spare};
    conv_band(ctx, y, frame, c, s, &s->band);
    vae_slot_push(s);
}

/* Values that are rounded at a time: what they pass through stays in caches. A
 * device takes more of them, for it has to be told each time. */
#define PIECE ((int64_t)1 << 19)
#define DEVICE_PIECE ((int64_t)1 << 22)

/* The input of a slot of bf16 numbers. */
static void norm_silu_bf16(tt_ctx *ctx, const vae_slot *s, const tt_real *x,
                           const tt_real *gamma)
{
    const int64_t n = s->dim[0] * s->dim[1], c = s->dim[2];
    /* even, so that two numbers that share a value stay together */
    const int64_t piece = ctx->device ? DEVICE_PIECE : PIECE;
    const int64_t step = piece < n * c ? (piece / c / 2 + 1) * 2 : n;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *in = vae_slot_input(s);
    tt_real *y = tt_values(ctx, step * c);
    for (int64_t r = 0; in && y && r < n; r += step) {
        const int64_t rows = n - r < step ? n - r : step;
        tt_channel_norm(ctx, y, x + r * c, rows, c, gamma);
        tt_silu(ctx, y, rows * c);
        tt_narrow(ctx, in + r * c / 2, y, rows * c);
    }
    tt_arena_reset(&ctx->scratch, m);
}

void vae_norm_silu(tt_ctx *ctx, vae_slot *s, const tt_real *x,
                   const tt_real *gamma)
{
    const int64_t n = s->dim[0] * s->dim[1], c = s->dim[2];
    tt_real *in = vae_slot_input(s);
    if (s->bf16) {
        norm_silu_bf16(ctx, s, x, gamma);
        return;
    }
    tt_channel_norm(ctx, in, x, n, c, gamma);
    tt_silu(ctx, in, n * c);
}
