/* taehv_encoder.c: the tiny VAE's encoder: four frames in, a latent out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  madebyollin/taehv, taehv.py. Frames are grouped 4, 4, 4, ..., unlike
 *         the real encoder's 1, 4, 4. */
#include "vae/taehv.h"

enum { N = 64 };

void taehv_encoder_init(tt_ctx *ctx, taehv_encoder *e, tt_arena *a,
                        const taehv *m, int64_t height, int64_t width)
{
    *e = (taehv_encoder){.m = m, .height = height, .width = width};
    for (int i = 0; i < TAEHV_STAGES; i++) {
        const int64_t n = (height >> i) * (width >> i) * N;
        e->kept[i] = tt_values_in(ctx, a, n, "tiny VAE memory");
        for (int k = 0; k < 3; k++)
            e->before[i][k] = tt_values_in(ctx, a, n / 4, "tiny VAE memory");
    }
}

static void taehv_encoder_finish(tt_ctx *ctx, taehv_encoder *e,
                                 const tt_real *x, int64_t h, int64_t w)
{
    tt_real *z = tt_values(ctx, h * w * TAEHV_Z);
    taehv_conv(ctx, z, (const tt_real *[]){x}, &e->m->enc_out, h, w, 1, 1);
    const tt_host *host = tt_get(ctx, z, h * w * TAEHV_Z);
    for (int64_t i = 0; host && i < h * w; i++)
        for (int64_t c = 0; c < TAEHV_Z; c++)
            e->z[c * h * w + i] = host[i * TAEHV_Z + c];
    e->ready = true;
}

/* x [h, w, N] enters stage s: wait for a second frame, pool, halve. */
static void taehv_encoder_stage(tt_ctx *ctx, taehv_encoder *e, int s,
                                const tt_real *x, int64_t h, int64_t w)
{
    const taehv_stage *t = &e->m->enc[s];
    const int64_t n = h * w * N;
    if (ctx->status) return;
    if (t->time.kt == 2 && !e->keeps[s]) {
        tt_copy(ctx, e->kept[s], x, n);
        e->keeps[s] = true;
        return;
    }
    const tt_real *pair[2] = {e->kept[s], x};
    tt_real *p = tt_values(ctx, n), *y = tt_values(ctx, n / 4);
    e->keeps[s] = false;
    taehv_conv(ctx, p, t->time.kt == 2 ? pair : &x, &t->time, h, w, 1, 1);
    taehv_conv(ctx, y, (const tt_real *[]){p}, &t->space, h, w, 1, 2);
    for (int k = 0; k < 3; k++)
        taehv_mem_step(ctx, y, &t->mem[k], e->before[s][k], e->begun[s], h / 2,
                       w / 2);
    e->begun[s] = true;
    if (s + 1 < TAEHV_STAGES)
        taehv_encoder_stage(ctx, e, s + 1, y, h / 2, w / 2);
    else taehv_encoder_finish(ctx, e, y, h / 2, w / 2);
}

bool taehv_encode(tt_ctx *ctx, taehv_encoder *e, tt_host *z,
                  const tt_host *rgb)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t n = e->height * e->width * N;
    tt_real *x = tt_values(ctx, n);
    e->z = z;
    e->ready = false;
    const tt_real *frame = tt_send(ctx, rgb, 3 * e->height * e->width);
    taehv_conv(ctx, x, &frame, &e->m->enc_in, e->height, e->width, 1, 1);
    taehv_relu(ctx, x, n);
    taehv_encoder_stage(ctx, e, 0, x, e->height, e->width);
    tt_arena_reset(&ctx->scratch, mark);
    return e->ready && !ctx->status;
}
