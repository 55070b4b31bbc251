/* encoder.c: picture frames in, a latent frame after the 1st, 5th, 9th ...
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  vae.py Encoder3d.forward, WanVAE_.encode.
 * Model   As the decoder, a frame at a time and depth first. A frame runs
 *         through the stages until a temporal downsampling keeps it back; the
 *         one that completes its pair goes on. The official chunks (1, then 4
 *         frames) only say which frame that is.
 * Holds   Everything that outlives a call is in e->slots and e->frame; the
 *         slots' order is the official one. */
#include "core/finite.h"
#include "vae/vae_internal.h"

#include <stdio.h>

#define STAGES 4

struct tt_vae_encoder {
    tt_arena arena;
    tt_arena past;         /* of the slots; maybe files                       */
    const tt_vae *v;
    int64_t height, width; /* pixels                                          */
    int64_t frame;         /* pixel frames seen so far                        */
    vae_slots slots;
    tt_host *z;            /* of the call in progress                         */
    bool ready;
};

/* Slots of a stage: its two residual blocks in pairs, then the temporal
 * downsampling of stages 1 and 2. */
static const int stage_slot[STAGES] = {1, 5, 10, 15};
#define MIDDLE_SLOT 19
#define HEAD_SLOT 23

/* Width of the frames that enter and leave stage s. */
static int64_t encoder_width_in(const tt_vae *v, int s)
{
    const int64_t times[STAGES] = {1, 1, 2, 4};
    return times[s] * v->dim;
}

static int64_t encoder_width_out(const tt_vae *v, int s)
{
    const int64_t times[STAGES] = {1, 2, 4, 4};
    return times[s] * v->dim;
}

/* ---- open and close ----------------------------------------------------- */

static void encoder_add_slots(tt_ctx *ctx, tt_arena *a, vae_slots *s,
                              const tt_vae *v, int64_t h, int64_t w)
{
    vae_slots_add(ctx, a, s, vae_whole(h), w, 3);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < 4; i++)
            vae_slots_add(ctx, a, s, vae_whole(h >> stage), w >> stage,
                          i == 0 ? encoder_width_in(v, stage)
                                 : encoder_width_out(v, stage));
        if (stage == 1 || stage == 2)
            vae_slots_add(ctx, a, s, vae_whole(h >> (stage + 1)),
                          w >> (stage + 1), encoder_width_out(v, stage));
    }
    while (s->count <= HEAD_SLOT)
        vae_slots_add(ctx, a, s, vae_whole(h >> 3), w >> 3, 4 * v->dim);
}

tt_status tt_vae_encoder_open(tt_ctx *ctx, tt_vae_encoder **out,
                              const tt_vae *v, int64_t height, int64_t width)
{
    *out = NULL;
    TT_TRY(ctx->status);
    if (!(v->parts & TT_VAE_ENCODER))
        return tt_fail(ctx, TT_EINVAL, "only the decoder half of this VAE was "
                       "loaded; tt_vae_load_parts takes TT_VAE_ENCODER");
    const int64_t dim[3] = {height, width, v->dim + v->z + 3};
    int64_t bytes;
    tt_arena a = {0};
    if (height < 8 || width < 8
        || !tt_checked_size(&bytes, dim, 3, sizeof(tt_real) * 512))
        return tt_fail(ctx, TT_EINVAL,
                       "cannot encode frames of %lld x %lld pixels: both sides "
                       "must be at least 8 and the frames must fit in memory",
                       (long long)height, (long long)width);
    tt_vae_encoder *e = tt_alloc0(ctx, &a, 1, sizeof *e, "VAE encoder");
    if (!e) return ctx->status;
    *e = (tt_vae_encoder){
        .arena = a, .past = {.folder = v->folder}, .v = v, .height = height,
        .width = width};
    encoder_add_slots(ctx, &e->past, &e->slots, v, height, width);
    if (ctx->status) {
        tt_vae_encoder_close(e);
        return ctx->status;
    }
    *out = e;
    return TT_OK;
}

void tt_vae_encoder_close(tt_vae_encoder *e)
{
    if (!e) return;
    tt_arena_free(&e->past);
    tt_arena a = e->arena;
    tt_arena_free(&a);
}

/* ---- encode ------------------------------------------------------------- */

/* Tap after downsamples.`layer`, the k-th frame of its chunk there. */
static void tap_layer(tt_ctx *ctx, int layer, int64_t k, tt_real *x,
                      int64_t h, int64_t w, int64_t c)
{
    if (!TT_TAPPED(ctx)) return;
    char name[32];
    snprintf(name, sizeof name, "down.%d/t.%lld", layer, (long long)k);
    TT_TAP(ctx, name, x, h, w, c);
}

/* Middle, head and the rows of conv1 that give mu. x, y: two frames. */
static void back(tt_ctx *ctx, tt_vae_encoder *e, tt_real *x, tt_real *y)
{
    const tt_vae *v = e->v;
    const vae_encoder_net *net = &v->enc;
    const int64_t h = e->height / 8, w = e->width / 8, n = h * w;
    vae_slot *slot = &e->slots.slot[MIDDLE_SLOT];
    tt_real *moments = tt_values(ctx, n * 2 * v->z);
    tt_real *mu = tt_values(ctx, n * v->z);

    vae_res_step(ctx, y, x, &net->middle[0], &slot[0]);
    TT_TAP(ctx, "middle.0", y, h, w, 4 * v->dim);
    vae_attn_step(ctx, y, &net->attn, vae_whole(h), w);
    TT_TAP(ctx, "middle.1", y, h, w, 4 * v->dim);
    vae_res_step(ctx, x, y, &net->middle[1], &slot[2]);
    TT_TAP(ctx, "middle.2", x, h, w, 4 * v->dim);
    slot = &e->slots.slot[HEAD_SLOT];
    vae_norm_silu(ctx, slot, x, net->gamma);
    vae_conv_step(ctx, moments, &net->head, slot);
    TT_TAP(ctx, "head", moments, h, w, 2 * v->z);
    tt_linear(ctx, mu, moments, n, &net->mu.w, net->mu.b);
    const tt_host *moment = tt_get(ctx, mu, n * v->z);
    if (!moment) return;
    vae_normalise(e->z, moment, v, n);
    TT_TAP_HOST(ctx, "latent", e->z, v->z, h, w);
    e->ready = true;
    if (!tt_all_finite(e->z, n * v->z))
        tt_fail(ctx, TT_EFORMAT,
                "the VAE turned picture frame %lld, which is finite, into "
                "latents that are NaN or infinite: its weights are damaged",
                (long long)e->frame);
}

/* Stage s on frame k of its chunk there, in *x; y is another such frame. */
static void encoder_stage(tt_ctx *ctx, tt_vae_encoder *e, int s, int64_t k,
                          tt_real *x, tt_real *y)
{
    const tt_vae *v = e->v;
    const int64_t h = e->height >> s, w = e->width >> s;
    const int64_t c = encoder_width_out(v, s);
    vae_slot *slot = &e->slots.slot[stage_slot[s]];

    vae_res_step(ctx, y, x, &v->enc.res[s][0], &slot[0]);
    tap_layer(ctx, 3 * s, k, y, h, w, c);
    vae_res_step(ctx, x, y, &v->enc.res[s][1], &slot[2]);
    tap_layer(ctx, 3 * s + 1, k, x, h, w, c);
    if (s == STAGES - 1) {
        back(ctx, e, x, y);
        return;
    }
    const vae_resample *down = &v->enc.down[s];
    /* the next stage may be twice as wide */
    const int64_t next = (h / 2) * (w / 2) * encoder_width_out(v, s + 1);
    tt_real *a = tt_values(ctx, next), *b = tt_values(ctx, next);
    if (down->mode == VAE_DOWN2D) {
        vae_down_space(ctx, a, x, down, h, w);
    } else {
        vae_down_space(ctx, vae_slot_input(&slot[4]), x, down, h, w);
        if (!vae_down_time(ctx, a, down, &slot[4], e->frame == 0, k)) return;
        if (e->frame > 0) k /= 2;
    }
    tap_layer(ctx, 3 * s + 2, k, a, h / 2, w / 2, c);
    encoder_stage(ctx, e, s + 1, k, a, b);
}

tt_status tt_vae_encode_next(tt_ctx *ctx, tt_vae_encoder *e, tt_host *z,
                             bool *ready, const tt_host *rgb)
{
    *ready = false;
    TT_TRY(ctx->status);
    const int64_t n = e->height * e->width, d = e->v->dim;
    if (!tt_all_finite(rgb, n * 3))
        return tt_fail(ctx, TT_EFORMAT,
                       "picture frame %lld holds NaN or infinite values, which "
                       "the VAE cannot encode", (long long)e->frame);
    /* chunk 0 is frame 0; chunk j is the four frames that end with 4j */
    const int64_t chunk = (e->frame + 3) / 4;
    const int64_t k = e->frame == 0 ? 0 : (e->frame - 1) % 4;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const size_t scope = tt_scope(ctx, "vae_encoder/frame.%lld",
                                  (long long)chunk);
    tt_real *a = tt_values(ctx, n * d), *b = tt_values(ctx, n * d);
    e->z = z;
    e->ready = false;
    const tt_ops *before = tt_class_begin(ctx, e->v->cls);
    tt_put(ctx, vae_slot_input(&e->slots.slot[0]), rgb, n * 3);
    vae_conv_step(ctx, a, &e->v->enc.conv1, &e->slots.slot[0]);
    if (TT_TAPPED(ctx)) {
        char name[32];
        snprintf(name, sizeof name, "conv1/t.%lld", (long long)k);
        TT_TAP(ctx, name, a, e->height, e->width, d);
    }
    encoder_stage(ctx, e, 0, k, a, b);
    tt_class_end(ctx, before);
    e->frame++;
    *ready = e->ready && !ctx->status;
    tt_scope_end(ctx, scope);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
