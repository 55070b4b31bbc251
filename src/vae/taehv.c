/* taehv.c: the tiny VAE's weights and its decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   Depth first, as in decoder.c: a frame runs to the end before its
 *         sibling is made. Doubling in space and the 1x1 "grow" commute, so
 *         grow runs on the small frame.
 * Next    taehv_encoder.c */
#include "vae/taehv.h"

#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"

/* Channels inside the decoder's stages, and after their last convolution.  */
static const int64_t dec_width[TAEHV_STAGES + 1] = {256, 128, 64, 64};
static const int dec_grow[TAEHV_STAGES] = {1, 2, 2};
static const int enc_pool[TAEHV_STAGES] = {2, 2, 1};

/* ---- weights ------------------------------------------------------------ */

/* [cout, frames*n, k, k], whose channel groups stand `newest` first or last,
 * as [cout, frames, k, k, n] with the oldest frame first. */
static void *taehv_repack(tt_bind *b, const tt_tensor *t, int64_t cout,
                          int64_t n, int frames, int64_t taps,
                          bool newest_first)
{
    const size_t size = tt_dtype_size(t->dtype);
    unsigned char *out = tt_alloc(b->ctx, b->arena, cout * frames * taps * n,
                                  size, "repacked tiny VAE weights");
    const unsigned char *in = t->data;
    for (int64_t o = 0; out && o < cout; o++)
        for (int64_t g = 0; g < frames; g++)
            for (int64_t c = 0; c < n; c++)
                for (int64_t k = 0; k < taps; k++, in += size) {
                    const int64_t f = newest_first ? frames - 1 - g : g;
                    const int64_t at = ((o * frames + f) * taps + k) * n + c;
                    memcpy(out + (size_t)at * size, in, size);
                }
    return out;
}

/* A convolution "<side>.<index><tail>": n channels of `frames` frames each to
 * cout, k x k. */
typedef struct conv_at {
    const char *side, *tail;
    int index;
    int64_t n, cout;
    int frames, k;
    bool no_bias, newest_first;
} conv_at;

static void bind_conv(tt_bind *b, vae_conv *c, const conv_at *a)
{
    char full[96];
    const int k = a->k, frames = a->frames ? a->frames : 1;
    const int64_t stored[4] = {a->cout, frames * a->n, k, k};
    const int64_t packed[5] = {a->cout, frames, k, k, a->n};
    *c = (vae_conv){.cin = a->n, .cout = a->cout, .kt = frames, .kh = k,
                    .kw = k};
    snprintf(full, sizeof full, "%s.%d%s.weight", a->side, a->index, a->tail);
    const tt_tensor t = tt_bind_tensor(b, full, 4, stored);
    const void *w = t.data ? taehv_repack(b, &t, a->cout, a->n, frames,
                                          (int64_t)k * k,
                                          a->newest_first) : NULL;
    if (w) {
        c->w = tt_tensor_like(&t, w, 5, packed);
        c->w = tt_place(b->ctx, b->arena, &c->w);
        tt_weights_release(b->w, &t);
    }
    if (a->no_bias) return;
    snprintf(full, sizeof full, "%s.%d%s.bias", a->side, a->index, a->tail);
    c->b = tt_bind_real(b, full, 1, &a->cout);
}

static void bind_mem(tt_bind *b, taehv_mem *m, const char *side, int index,
                     int64_t n)
{
    static const char *const tail[] = {".conv.0", ".conv.2", ".conv.4"};
    for (int i = 0; i < 3; i++)
        bind_conv(b, &m->c[i], &(conv_at){side, tail[i], index, n, n,
                                          i == 0 ? 2 : 1, 3, false, true});
}

static void bind_decoder(taehv *m, tt_bind *b)
{
    static const char side[] = "decoder";
    bind_conv(b, &m->dec_in, &(conv_at){side, "", 1, .n = TAEHV_Z,
                                        .cout = dec_width[0], .k = 3});
    for (int i = 0; i < TAEHV_STAGES; i++) {
        taehv_stage *t = &m->dec[i];
        const int64_t n = dec_width[i];
        for (int k = 0; k < 3; k++)
            bind_mem(b, &t->mem[k], side, 3 + 6 * i + k, n);
        bind_conv(b, &t->time, &(conv_at){side, ".conv", 7 + 6 * i, .n = n,
                                          .cout = dec_grow[i] * n, .k = 1,
                                          .no_bias = true});
        bind_conv(b, &t->space, &(conv_at){side, "", 8 + 6 * i, .n = n,
                                           .cout = dec_width[i + 1], .k = 3,
                                           .no_bias = true});
    }
    bind_conv(b, &m->dec_out, &(conv_at){side, "", 22,
                                         .n = dec_width[TAEHV_STAGES],
                                         .cout = 3, .k = 3});
}

static void bind_encoder(taehv *m, tt_bind *b)
{
    enum { N = 64 };
    static const char side[] = "encoder";
    bind_conv(b, &m->enc_in, &(conv_at){side, "", 0, .n = 3, .cout = N,
                                        .k = 3});
    for (int i = 0; i < TAEHV_STAGES; i++) {
        taehv_stage *t = &m->enc[i];
        bind_conv(b, &t->time, &(conv_at){side, ".conv", 2 + 5 * i, .n = N,
                                          .cout = N, .frames = enc_pool[i],
                                          .k = 1, .no_bias = true});
        bind_conv(b, &t->space, &(conv_at){side, "", 3 + 5 * i, .n = N,
                                           .cout = N, .k = 3,
                                           .no_bias = true});
        for (int k = 0; k < 3; k++)
            bind_mem(b, &t->mem[k], side, 4 + 5 * i + k, N);
    }
    bind_conv(b, &m->enc_out, &(conv_at){side, "", 17, .n = N,
                                         .cout = TAEHV_Z, .k = 3});
}

void taehv_bind(taehv *m, tt_bind *b, unsigned parts)
{
    if (parts & TT_VAE_DECODER) bind_decoder(m, b);
    if (parts & TT_VAE_ENCODER) bind_encoder(m, b);
}

/* ---- parts -------------------------------------------------------------- */

void taehv_relu(tt_ctx *ctx, tt_real *x, int64_t n)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_host *h = tt_get(ctx, x, n);
    for (int64_t i = 0; h && i < n; i++) h[i] = h[i] > 0 ? h[i] : 0;
    tt_put(ctx, x, h, n);
    tt_arena_reset(&ctx->scratch, mark);
}

void taehv_conv(tt_ctx *ctx, tt_real *y, const tt_real *const *frame,
                const vae_conv *c, int64_t h, int64_t w, int up, int stride)
{
    tt_conv(ctx, &(tt_conv_args){.y = y, .frame = frame, .w = &c->w, .b = c->b,
                                 .Hi = h, .Wi = w, .Cin = c->cin,
                                 .Ho = h * up / stride, .Wo = w * up / stride,
                                 .Cout = c->cout, .kt = c->kt, .kh = c->kh,
                                 .kw = c->kw, .stride = stride, .up = up,
                                 .pad_top = c->kh / 2, .pad_left = c->kw / 2});
}

void taehv_mem_step(tt_ctx *ctx, tt_real *x, const taehv_mem *b,
                    tt_real *before, bool begun, int64_t h, int64_t w)
{
    const int64_t n = h * w * b->c[0].cout;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *p = tt_values(ctx, n), *q = tt_values(ctx, n);
    taehv_conv(ctx, p, (const tt_real *[]){begun ? before : NULL, x}, &b->c[0],
               h, w, 1, 1);
    taehv_relu(ctx, p, n);
    taehv_conv(ctx, q, (const tt_real *[]){p}, &b->c[1], h, w, 1, 1);
    taehv_relu(ctx, q, n);
    taehv_conv(ctx, p, (const tt_real *[]){q}, &b->c[2], h, w, 1, 1);
    tt_copy(ctx, before, x, n);
    tt_add(ctx, x, p, n);
    taehv_relu(ctx, x, n);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- decoder ------------------------------------------------------------ */

void taehv_decoder_init(tt_ctx *ctx, taehv_decoder *d, tt_arena *a,
                        const taehv *m, int64_t h, int64_t w, int64_t trim)
{
    *d = (taehv_decoder){.m = m, .h = h, .w = w, .trim = trim};
    for (int i = 0; i < TAEHV_STAGES; i++)
        for (int k = 0; k < 3; k++)
            d->before[i][k] = tt_values_in(ctx, a, (h * w << 2 * i)
                                           * dec_width[i], "tiny VAE memory");
}

int64_t taehv_decoder_bytes(int64_t h, int64_t w, bool memory)
{
    int64_t n = 0;
    for (int i = 0; i < TAEHV_STAGES; i++)
        n += (memory ? 7 : 4) * (h * w << 2 * i) * dec_width[i];
    return (n + (h * w << 6) * 67) * (int64_t)sizeof(tt_real);
}

double taehv_decoder_operations(const taehv *m, int64_t h, int64_t w)
{
    double all = (double)tt_tensor_count(&m->dec_in.w), frames = 1, area = 1;
    for (int s = 0; s < TAEHV_STAGES; s++, area *= 4) {
        const taehv_stage *t = &m->dec[s];
        double block = 0;
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 3; i++)
                block += (double)tt_tensor_count(&t->mem[k].c[i].w);
        block += (double)tt_tensor_count(&t->time.w);
        all += frames * area * block;
        frames *= dec_grow[s];
        all += frames * 4 * area * (double)tt_tensor_count(&t->space.w);
    }
    all += frames * area * (double)tt_tensor_count(&m->dec_out.w);
    return 2 * (double)(h * w) * all;
}

static void taehv_show(tt_ctx *ctx, taehv_decoder *d, tt_real *x, int64_t h,
                       int64_t w)
{
    tt_real *rgb = tt_values(ctx, 3 * h * w);
    taehv_relu(ctx, x, h * w * d->m->dec_out.cin);
    taehv_conv(ctx, rgb, (const tt_real *[]){x}, &d->m->dec_out, h, w, 1, 1);
    if (ctx->status || d->trim-- > 0) return;
    d->trim = 0;
    const tt_host *picture = tt_get(ctx, rgb, 3 * h * w);
    const tt_status s = picture ? d->emit(d->user, picture, h, w) : TT_OK;
    if (s && !ctx->status) tt_fail(ctx, s, "stopped while decoding");
}

/* x [h, w, c] enters stage s; it is spoiled. */
static void vae_taehv_stage(tt_ctx *ctx, taehv_decoder *d, int s, tt_real *x,
                            int64_t h, int64_t w, bool begun)
{
    const taehv_stage *t = &d->m->dec[s];
    const int64_t c = dec_width[s];
    for (int k = 0; k < 3; k++)
        taehv_mem_step(ctx, x, &t->mem[k], d->before[s][k], begun, h, w);
    for (int k = 0; k < dec_grow[s] && !ctx->status; k++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        const char *rows = t->time.w.data;  /* block k makes frame k */
        tt_tensor part = tt_tensor_like(
            &t->time.w,
            rows + (size_t)(k * c * c) * tt_dtype_size(t->time.w.dtype), 2,
            (int64_t[]){c, c});
        tt_real *g = tt_values(ctx, h * w * c);
        tt_real *y = tt_values(ctx, 4 * h * w * dec_width[s + 1]);
        tt_linear(ctx, g, x, h * w, &part, NULL);
        taehv_conv(ctx, y, (const tt_real *[]){g}, &t->space, h, w, 2, 1);
        if (s + 1 < TAEHV_STAGES)
            vae_taehv_stage(ctx, d, s + 1, y, 2 * h, 2 * w, begun || k > 0);
        else
            taehv_show(ctx, d, y, 2 * h, 2 * w);
        tt_arena_reset(&ctx->scratch, mark);
    }
}

void taehv_decode(tt_ctx *ctx, taehv_decoder *d, const tt_host *z,
                  tt_frame_fn emit, void *user)
{
    const int64_t n = d->h * d->w;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *in = tt_values(ctx, n * TAEHV_Z);
    tt_real *x = tt_values(ctx, n * dec_width[0]);
    tt_host *host = tt_map_write(ctx, in, n * TAEHV_Z);
    for (int64_t i = 0; host && i < n; i++)
        for (int64_t c = 0; c < TAEHV_Z; c++)
            host[i * TAEHV_Z + c] = 3 * tt_tanh_real(z[c * n + i] / 3);
    tt_put(ctx, in, host, n * TAEHV_Z);
    d->emit = emit;
    d->user = user;
    taehv_conv(ctx, x, (const tt_real *[]){in}, &d->m->dec_in, d->h, d->w, 1,
               1);
    taehv_relu(ctx, x, n * dec_width[0]);
    vae_taehv_stage(ctx, d, 0, x, d->h, d->w, d->begun);
    d->begun = true;
    tt_arena_reset(&ctx->scratch, mark);
}
