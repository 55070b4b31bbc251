/* taehv.h: the tiny decoder and encoder for previews.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  madebyollin/taehv, taehv.py ("taew2_1")
 * Model   A frame is [H, W, C], channels last. Latents are on the diffusion
 *         scale, without mean and std; pixels are in [0, 1]. Time enters in
 *         three ways: a memory block sees the input it had for the frame
 *         before (zeros at first), "grow" makes two frames of one, "pool" one
 *         of two.
 * Vectors ref_data/vae_taehv */
#ifndef TT_VAE_TAEHV_H
#define TT_VAE_TAEHV_H

#include "vae/vae_internal.h"

enum { TAEHV_Z = 16, TAEHV_STAGES = 3, TAEHV_TRIM = 3 };
/* y = relu(c2(relu(c1(relu(c0(x_t, x_{t-1}))))) + x_t) */
typedef struct taehv_mem {
    vae_conv c[3];         /* c[0] reads two frames                           */
} taehv_mem;

typedef struct taehv_stage {
    taehv_mem mem[3];
    vae_conv time;         /* 1x1: decoder n -> grow*n; encoder pool*n -> n   */
    vae_conv space;        /* 3x3 without bias: decoder on the doubled frame,
                              encoder with stride 2                           */
} taehv_stage;

typedef struct taehv {
    vae_conv dec_in, dec_out, enc_in, enc_out;
    taehv_stage dec[TAEHV_STAGES], enc[TAEHV_STAGES];
} taehv;

void taehv_bind(taehv *m, tt_bind *b, unsigned parts);

/* ---- decoder ------------------------------------------------------------ */

typedef struct taehv_decoder {
    const taehv *m;
    int64_t h, w;
    tt_real *before[TAEHV_STAGES][3]; /* what a memory block remembers        */
    bool begun;
    int64_t trim;          /* frames not yet shown at the start               */
    tt_frame_fn emit;
    void *user;
} taehv_decoder;

/* Memory from `a`. `trim` is the number of frames to leave out (3 in use). */
void taehv_decoder_init(tt_ctx *ctx, taehv_decoder *d, tt_arena *a,
                        const taehv *m, int64_t h, int64_t w, int64_t trim);
/* Bytes of frames in flight, and with `memory` of what it remembers. */
int64_t taehv_decoder_bytes(int64_t h, int64_t w, bool memory);
/* Multiplications and additions of a latent frame. */
double taehv_decoder_operations(const taehv *m, int64_t h, int64_t w);
/* z [16, h, w] gives 4 frames [8h, 8w, 3], before clamping to [0, 1]. */
void taehv_decode(tt_ctx *ctx, taehv_decoder *d, const tt_host *z,
                  tt_frame_fn emit, void *user);

/* ---- encoder ------------------------------------------------------------ */

typedef struct taehv_encoder {
    const taehv *m;
    int64_t height, width;             /* pixels, multiples of 8              */
    tt_real *before[TAEHV_STAGES][3];
    bool begun[TAEHV_STAGES];
    tt_real *kept[TAEHV_STAGES];       /* the first frame of a pool           */
    bool keeps[TAEHV_STAGES];
    tt_host *z;
    bool ready;
} taehv_encoder;

void taehv_encoder_init(tt_ctx *ctx, taehv_encoder *e, tt_arena *a,
                        const taehv *m, int64_t height, int64_t width);
/* One frame rgb [H, W, 3] in [0, 1]; after every fourth z [16, H/8, W/8] is
 * written and the result true. At the end repeat the last frame until it
 * is. */
bool taehv_encode(tt_ctx *ctx, taehv_encoder *e, tt_host *z,
                  const tt_host *rgb);

/* A memory block in place on x [h, w, n]; `before` becomes x. */
void taehv_mem_step(tt_ctx *ctx, tt_real *x, const taehv_mem *b,
                    tt_real *before, bool begun, int64_t h, int64_t w);
/* y = conv(frames); up 2 doubles the input first, stride 2 halves. */
void taehv_conv(tt_ctx *ctx, tt_real *y, const tt_real *const *frame,
                const vae_conv *c, int64_t h, int64_t w, int up, int stride);
void taehv_relu(tt_ctx *ctx, tt_real *x, int64_t n);

#endif
