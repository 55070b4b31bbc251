/* decoder.c: one latent frame in, one or four picture frames out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py Decoder3d.forward, WanVAE_.cached_decode.
 * Model   Depth first. The official code carries all frames of a latent frame
 *         (1, then 2, then 4) through each layer; here a frame that leaves a
 *         temporal upsampling runs to its picture before its sibling starts.
 *         No layer can tell the difference, because a causal convolution only
 *         sees the frames in order, and one frame per stage is in memory.
 *         On several ranks every frame is a band of one, cut at the same
 *         places in all sizes; rank 0 gets the pictures.
 * Holds   Everything that outlives a call is in d->slots and d->frame; the
 *         slots' indices are the official ones.
 * Next    causal_conv.c, resblock.c, attention.c, resample.c */
#include "core/finite.h"
#include "vae/taehv.h"
#include "vae/vae_internal.h"

#include <stdio.h>

#define STAGES 4

struct tt_vae_decoder {
    tt_arena arena;
    tt_arena past;        /* of the slots, or of `tiny`; maybe files          */
    const tt_vae *v;
    int64_t h, w;         /* latent size                                      */
    tt_band band[STAGES]; /* lines of a stage's frames that are ours          */
    int64_t frame;        /* latent frames decoded so far                     */
    vae_slots slots;
    tt_frame_fn emit;     /* of the call in progress                          */
    void *user;
    taehv_decoder tiny;   /* instead of the slots                             */
};

/* Slots of a stage: its first residual block, then in pairs; where the stage
 * ends in a temporal upsampling, its slot is the one after the three pairs. */
static const int stage_slot[STAGES] = {5, 12, 19, 25};
#define HEAD_SLOT 31
/* Frames there for one latent frame. */
static const int64_t stage_rate[STAGES] = {1, 2, 4, 4};

/* ---- sizes -------------------------------------------------------------- */

/* Width of the frames that enter and leave stage s. */
static int64_t width_in(const tt_vae *v, int s)
{
    const int64_t times[STAGES] = {4, 2, 2, 1};
    return times[s] * v->dim;
}

static int64_t width_out(const tt_vae *v, int s)
{
    const int64_t times[STAGES] = {4, 4, 2, 1};
    return times[s] * v->dim;
}

/* All slots in order; bytes they take. h: lines of every stage. a NULL: plan
 * only. */
static int64_t add_slots(tt_ctx *ctx, tt_arena *a, vae_slots *s,
                         const tt_vae *v, const tt_band *h, int64_t w)
{
    int64_t bytes = vae_slots_add(ctx, a, s, h[0], w, v->z);
    for (int i = 1; i < stage_slot[1]; i++)
        bytes += vae_slots_add(ctx, a, s, h[0], w, 4 * v->dim);
    for (int stage = 1; stage < STAGES; stage++) {
        const int first = stage_slot[stage];
        const int end = stage < 3 ? stage_slot[stage + 1] : HEAD_SLOT + 1;
        w *= 2;
        for (int i = first; i < end; i++)
            bytes += vae_slots_add(ctx, a, s, h[stage], w,
                                   i == first ? width_in(v, stage)
                                              : width_out(v, stage));
    }
    TT_ASSERT(s->count == HEAD_SLOT + 1);
    return bytes;
}

/* True when every frame of this size can be counted in 64 bits. */
static bool size_fits(const tt_vae *v, int64_t h, int64_t w)
{
    const int64_t dim[4] = {h, w, 64, v->dim + v->z + 3};
    int64_t bytes;
    /* 512: more frames than ever exist at once */
    return h >= 1 && w >= 1
           && tt_checked_size(&bytes, dim, 4, sizeof(tt_real) * 512);
}

int64_t tt_vae_history_bytes(const tt_vae *v, int64_t h, int64_t w)
{
    if (!v || !size_fits(v, h, w)) return -1;
    vae_slots plan = {.bf16 = v->cls != TT_CLASS_F32};
    const tt_band whole[STAGES] = {vae_whole(h), vae_whole(2 * h),
                                   vae_whole(4 * h), vae_whole(8 * h)};
    if (v->tiny)
        return taehv_decoder_bytes(h, w, true)
             - taehv_decoder_bytes(h, w, false);
    return add_slots(NULL, NULL, &plan, v, whole, w);
}

int64_t tt_vae_decoder_bytes(const tt_vae *v, int64_t h, int64_t w)
{
    if (!v) return -1;
    if (!size_fits(v, h, w)) return -1;
    if (v->tiny) return taehv_decoder_bytes(h, w, !v->folder);
    const int64_t n = h * w, real = (int64_t)sizeof(tt_real);
    int64_t bytes = v->folder ? 0 : tt_vae_history_bytes(v, h, w);
    /* two frames per stage, the shortcut of stage 1, the picture */
    for (int s = 0; s < STAGES; s++)
        bytes += 2 * width_out(v, s) * (n << 2 * s) * real;
    return bytes + (width_out(v, 1) * 4 + 3 * 64) * n * real;
}

/* Products of a pixel with all weights of these convolutions. */
static double decoder_products(const vae_res *r)
{
    return (double)(tt_tensor_count(&r->conv1.w) + tt_tensor_count(&r->conv2.w)
                    + (r->cin != r->cout ? r->cin * r->cout : 0));
}

double tt_vae_decoder_operations(const tt_vae *v, int64_t h, int64_t w)
{
    if (!v || !size_fits(v, h, w)) return 0;
    if (v->tiny) return taehv_decoder_operations(v->tiny, h, w);
    const vae_decoder_net *d = &v->dec;
    const double n = (double)(h * w), c = (double)d->attn.c;
    double all = (double)tt_tensor_count(&d->conv1.w) + 4 * c * c + 2 * n * c;
    for (int i = 0; i < 2; i++) all += decoder_products(&d->middle[i]);
    for (int s = 0; s < STAGES; s++) {
        const double area = (double)((int64_t)1 << 2 * s);
        const double pixels = area * (double)stage_rate[s];
        for (int i = 0; i < 3; i++)
            all += pixels * decoder_products(&d->res[s][i]);
        if (s == STAGES - 1) break;
        all += 4 * area * (double)stage_rate[s + 1]
             * (double)tt_tensor_count(&d->up[s].space.w);
        if (d->up[s].mode == VAE_UP3D)
            all += 2 * pixels * (double)tt_tensor_count(&d->up[s].half[0].w);
    }
    all += 256 * (double)tt_tensor_count(&d->head.w);
    return 2 * n * all;
}

/* ---- open and close ----------------------------------------------------- */

tt_status tt_vae_decoder_open(tt_ctx *ctx, tt_vae_decoder **out,
                              const tt_vae *v, int64_t h, int64_t w)
{
    tt_arena a = {0};
    *out = NULL;
    TT_TRY(ctx->status);
    if (!(v->parts & TT_VAE_DECODER))
        return tt_fail(ctx, TT_EINVAL, "only the encoder half of this VAE was "
                       "loaded; tt_vae_load_parts takes TT_VAE_DECODER");
    if (!size_fits(v, h, w))
        return tt_fail(ctx, TT_EINVAL,
                       "cannot decode latents of %lld x %lld: both sides must "
                       "be at least 1 and the frames must fit in memory",
                       (long long)h, (long long)w);
    tt_vae_decoder *d = tt_alloc0(ctx, &a, 1, sizeof *d, "VAE decoder");
    if (!d) return ctx->status;
    *d = (tt_vae_decoder){.arena = a, .past = {.folder = v->folder}, .v = v,
                          .h = h, .w = w,
                          .slots = {.bf16 = v->cls != TT_CLASS_F32}};
    for (int s = 0; s < STAGES; s++) d->band[s] = tt_team_band(ctx, h, 1 << s);
    if (!v->tiny)
        add_slots(ctx, &d->past, &d->slots, v, d->band, w);
    else if (tt_team_rank(ctx) == 0)
        taehv_decoder_init(ctx, &d->tiny, &d->past, v->tiny, h, w,
                           TAEHV_TRIM);
    if (ctx->status) {
        tt_vae_decoder_close(d);
        return ctx->status;
    }
    *out = d;
    return TT_OK;
}

void tt_vae_decoder_close(tt_vae_decoder *d)
{
    if (!d) return;
    tt_arena_free(&d->past);
    tt_arena a = d->arena;
    tt_arena_free(&a);
}

int tt_vae_decoder_slot(const tt_vae_decoder *d, int slot,
                        const tt_real *frame[2], int64_t dim[3])
{
    if (!d) return -1;
    if (slot < 0 || slot >= d->slots.count) return -1;
    const vae_slot *s = &d->slots.slot[slot];
    for (int i = 0; i < 3; i++) dim[i] = s->dim[i];
    return vae_slot_view(s, frame);
}

/* ---- decode ------------------------------------------------------------- */

static void decoder_swap(tt_real **a, tt_real **b)
{
    tt_real *t = *a;
    *a = *b;
    *b = t;
}

/* Tap x, our lines of a frame of stage s, as a whole. */
static void tap(tt_ctx *ctx, const tt_vae_decoder *d, const char *name, int s,
                tt_real *x, int64_t c)
{
    if (!TT_TAPPED(ctx)) return;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const int64_t w = d->w << s;
    const tt_band *b = &d->band[s];
    tt_real *whole = tt_team_all_lines(ctx, x, b, w * c);
    TT_TAP(ctx, name, whole, d->h << s, w, c);
    if (ctx->inject && whole != x) /* every rank injects */
        tt_copy(ctx, x, whole + b->first * w * c, b->lines * w * c);
    tt_arena_reset(&ctx->scratch, m);
}

/* After upsamples.`layer`, the t-th frame of this latent frame there. */
static void decoder_tap_layer(tt_ctx *ctx, const tt_vae_decoder *d, int layer,
                              int t, tt_real *x, int64_t c)
{
    if (!TT_TAPPED(ctx)) return;
    char name[32];
    if (layer < 3) snprintf(name, sizeof name, "up.%d", layer);
    else snprintf(name, sizeof name, "up.%d/t.%d", layer, t);
    tap(ctx, d, name, (layer + 1) / 4, x, c);
}

/* A picture goes to the caller. */
static void decoder_show(tt_ctx *ctx, tt_vae_decoder *d, const tt_real *rgb)
{
    const int64_t h = 8 * d->h, w = 8 * d->w;
    const tt_host *picture = tt_get(ctx, rgb, h * w * 3);
    if (!picture) return;
    if (!tt_all_finite(picture, h * w * 3)) {
        tt_fail(ctx, TT_EFORMAT,
                "the VAE turned latent frame %lld, which is finite, into "
                "pixels that are NaN or infinite: its weights%s%s are damaged "
                "or do not belong to these latents", (long long)d->frame,
                d->v->w ? " in " : "",
                d->v->w ? tt_weights_path(d->v->w) : "");
        return;
    }
    const tt_status s = d->emit(d->user, picture, h, w);
    if (s) tt_fail(ctx, s, "the receiver of decoded frames gave up");
}

/* Norm, SiLU and the last convolution; the t-th picture of this latent frame
 * goes to the caller. */
static void head(tt_ctx *ctx, tt_vae_decoder *d, int t, const tt_real *x)
{
    const vae_decoder_net *net = &d->v->dec;
    vae_slot *slot = &d->slots.slot[HEAD_SLOT];
    const int64_t w = slot->dim[1];
    char name[32], word = 0;
    vae_norm_silu(ctx, slot, x, net->gamma);
    tt_real *rgb = tt_values(ctx, slot->dim[0] * w * 3);
    vae_conv_step(ctx, rgb, &net->head, slot);
    snprintf(name, sizeof name, "rgb/t.%d", t);
    tap(ctx, d, name, STAGES - 1, rgb, 3);
    rgb = tt_team_lines_to_first(ctx, rgb, &slot->band, w * 3);
    if (tt_team_rank(ctx) == 0) decoder_show(ctx, d, rgb);
    tt_team_broadcast(ctx, &word, 1); /* whom it goes to may be slow */
}

static void decoder_stage(tt_ctx *ctx, tt_vae_decoder *d, int s, int t,
                          const tt_real *x);

/* The three residual blocks of a stage on *x; *y is the other frame. */
static void decoder_blocks(tt_ctx *ctx, tt_vae_decoder *d, int s, int t,
                           tt_real **x, tt_real **y)
{
    for (int i = 0; i < 3; i++) {
        vae_slot *slot = &d->slots.slot[stage_slot[s] + 2 * i];
        vae_res_step(ctx, *y, *x, &d->v->dec.res[s][i], slot);
        decoder_swap(x, y);
        decoder_tap_layer(ctx, d, 4 * s + i, t, *x, width_out(d->v, s));
    }
}

/* From stage s to the next one: one frame, or two through time_conv. */
static void decoder_leave(tt_ctx *ctx, tt_vae_decoder *d, int s, int t,
                          tt_real *x, tt_real *y)
{
    const vae_resample *up = &d->v->dec.up[s];
    vae_slot *slot = &d->slots.slot[stage_slot[s] + 6];
    if (up->mode == VAE_UP2D || d->frame == 0) {
        decoder_stage(ctx, d, s + 1, t, x);
        return;
    }
    vae_slot_copy(ctx, slot, x);
    vae_up_time(ctx, y, x, up, slot);
    decoder_stage(ctx, d, s + 1, 2 * t, y);
    decoder_stage(ctx, d, s + 1, 2 * t + 1, x);
}

/* Stage s = 1..3 on frame t of this latent frame. x is what the stage before
 * left; its spatial upsampling comes first. */
static void decoder_stage(tt_ctx *ctx, tt_vae_decoder *d, int s, int t,
                          const tt_real *x)
{
    const tt_vae *v = d->v;
    const int64_t n = d->band[s].lines * (d->w << s) * width_out(v, s);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *a = tt_values(ctx, n), *b = tt_values(ctx, n);
    vae_up_space(ctx, a, x, &v->dec.up[s - 1], d->band[s - 1],
                 d->w << (s - 1));
    decoder_tap_layer(ctx, d, 4 * s - 1, t, a, width_in(v, s));
    decoder_blocks(ctx, d, s, t, &a, &b);
    if (s == STAGES - 1) head(ctx, d, t, a);
    else decoder_leave(ctx, d, s, t, a, b);
    tt_arena_reset(&ctx->scratch, m);
}

/* z in the VAE's own scale, as rank 0 has it; the receiver of the frame before
 * may have been slow. */
static void denormalise(tt_ctx *ctx, const tt_vae_decoder *d, tt_real *zd,
                        const tt_host *z)
{
    const int64_t n = d->h * d->w, all = n * d->v->z;
    tt_host *host = tt_map_write(ctx, zd, all);
    if (host) vae_denormalise(host, z, d->v, n);
    tt_team_broadcast(ctx, host, all * (int64_t)sizeof *host);
    tt_put(ctx, zd, host, all);
}

/* From the latent frame to the end of stage 0, all at latent resolution. */
static void front(tt_ctx *ctx, tt_vae_decoder *d, const tt_host *z)
{
    const tt_vae *v = d->v;
    const vae_decoder_net *net = &v->dec;
    const tt_band band = d->band[0];
    const int64_t w = d->w, n = band.lines * w, c = 4 * v->dim;
    vae_slot *slot = d->slots.slot;
    tt_real *zd = tt_values(ctx, d->h * w * v->z);
    tt_real *a = tt_values(ctx, n * c), *b = tt_values(ctx, n * c);
    if (ctx->status) return;

    denormalise(ctx, d, zd, z);
    TT_TAP(ctx, "denorm", zd, d->h, w, v->z);
    tt_real *in = vae_slot_draft(ctx, &slot[0]);
    tt_linear(ctx, in, zd + band.first * w * v->z, n, &net->conv2.w,
              net->conv2.b);
    tap(ctx, d, "conv2", 0, in, v->z);
    vae_slot_copy(ctx, &slot[0], in);
    vae_conv_step(ctx, a, &net->conv1, &slot[0]);
    tap(ctx, d, "conv1", 0, a, c);
    vae_res_step(ctx, b, a, &net->middle[0], &slot[1]);
    tap(ctx, d, "middle.0", 0, b, c);
    vae_attn_step(ctx, b, &net->attn, band, w);
    tap(ctx, d, "middle.1", 0, b, c);
    vae_res_step(ctx, a, b, &net->middle[1], &slot[3]);
    tap(ctx, d, "middle.2", 0, a, c);
    decoder_blocks(ctx, d, 0, 0, &a, &b);
    decoder_leave(ctx, d, 0, 0, a, b);
}

/* The tiny decoder's [0, 1] on the other's scale. */
static tt_status emit_tiny(void *user, const tt_host *rgb, int64_t height,
                           int64_t width)
{
    tt_vae_decoder *d = user;
    const int64_t n = 3 * height * width;
    tt_host *x = (tt_host *)rgb; /* the decoder's own, not read again */
    for (int64_t i = 0; i < n; i++) x[i] = 2 * x[i] - 1;
    return d->emit(d->user, x, height, width);
}

tt_status tt_vae_decode_next(tt_ctx *ctx, tt_vae_decoder *d, const tt_host *z,
                             tt_frame_fn emit, void *user)
{
    if (ctx->status) return ctx->status;
    if (!tt_all_finite(z, d->v->z * d->h * d->w))
        return tt_fail(ctx, TT_EFORMAT,
                       "latent frame %lld holds NaN or infinite values, which "
                       "the VAE cannot decode", (long long)d->frame);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const size_t scope = tt_scope(ctx, "vae/frame.%lld", (long long)d->frame);
    d->emit = emit;
    d->user = user;
    const tt_ops *before = tt_class_begin(ctx, d->v->cls);
    if (!d->v->tiny) front(ctx, d, z);
    else if (tt_team_rank(ctx) == 0)
        taehv_decode(ctx, &d->tiny, z, emit_tiny, d);
    tt_class_end(ctx, before);
    d->frame++;
    tt_scope_end(ctx, scope);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
