/* vae_internal.h: the parts of the VAE, shared by its files and its tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/vae.py: CausalConv3d, ResidualBlock,
 *         AttentionBlock, Resample.
 * Model   A frame is [H, W, C], channels last. Every part takes one frame at
 *         a time; what it must remember of earlier frames lies in a vae_slot.
 *         Stepping singly is exact: a causal convolution reads two frames
 *         back, whatever number of frames a call brings.
 *         A part's frame is a tt_band of a picture (team.h): alone all of it.
 * Holds   Parts own nothing: weights live in the model's arena or in the
 *         mapped checkpoint, slots in the decoder's or encoder's arena. */
#ifndef TT_VAE_INTERNAL_H
#define TT_VAE_INTERNAL_H

#include "ops/backend.h"
#include "core/device.h"
#include "io/io.h"
#include "ops/ops.h"
#include "team/team.h"
#include "vae/vae.h"

/* ---- weights ------------------------------------------------------------ */

typedef struct vae_conv {
    tt_tensor w;      /* [cout, kt, kh, kw, cin], stored type                 */
    const tt_real *b; /* [cout]                                               */
    int64_t cin, cout;
    int kt, kh, kw;
} vae_conv;

typedef struct vae_linear {
    tt_tensor w;      /* [o, i], a view of a 1x1 convolution                  */
    const tt_real *b; /* [o]                                                  */
} vae_linear;

typedef struct vae_res {
    int64_t cin, cout;
    const tt_real *gamma1; /* [cin]  residual.0                               */
    vae_conv conv1;        /*        residual.2, cin -> cout                  */
    const tt_real *gamma2; /* [cout] residual.3                               */
    vae_conv conv2;        /*        residual.6, cout -> cout                 */
    vae_linear shortcut;   /* only when cin != cout                           */
} vae_res;

typedef struct vae_attn {
    int64_t c;
    const tt_real *gamma;  /* [c]                                             */
    vae_linear qkv;        /* c -> 3c                                         */
    vae_linear proj;       /* c -> c                                          */
} vae_attn;

typedef enum vae_mode {
    VAE_UP2D, VAE_UP3D, VAE_DOWN2D, VAE_DOWN3D
} vae_mode;

typedef struct vae_resample {
    vae_mode mode;
    int64_t c;        /* width of its input                                   */
    vae_conv space;   /* resample.1: up c -> c/2, down c -> c                 */
    vae_conv time;    /* DOWN3D: c -> c                                       */
    vae_conv half[2]; /* UP3D: the rows of time_conv (c -> 2c) that make the
                         earlier and the later of the two output frames       */
} vae_resample;

/* Take a part's tensors under `prefix` (its path without trailing '.').
 * Convolutions are repacked once, into the arena of `b`. `dims` of a
 * convolution is 3 ([o, i, kt, kh, kw] stored) or 2 ([o, i, kh, kw]). */
void vae_bind_conv(tt_bind *b, vae_conv *c, const char *prefix, int dims,
                   int64_t cin, int64_t cout, int kt, int k);
void vae_bind_linear(tt_bind *b, vae_linear *l, const char *prefix, int dims,
                     int64_t in, int64_t out);
const tt_real *vae_bind_gamma(tt_bind *b, const char *prefix, int rank,
                              int64_t c);
void vae_bind_res(tt_bind *b, vae_res *r, const char *prefix, int64_t cin,
                  int64_t cout);
void vae_bind_attn(tt_bind *b, vae_attn *a, const char *prefix, int64_t c);
void vae_bind_resample(tt_bind *b, vae_resample *r, const char *prefix,
                       vae_mode mode, int64_t c);

/* ---- memory of a causal convolution ------------------------------------- */

/* The last two inputs of one convolution. The next input is written straight
 * into *spare, a frame that all slots of one size share; a step then swaps it
 * with the oldest frame, so nothing is ever copied. In a class whose factors
 * are bf16 frames hold bf16 numbers, two in the room of a value: what every
 * product would round is rounded once. */
typedef struct vae_slot {
    tt_real *older, *newer; /* [above + H + below, W, C]; valid are the newest
                               `count`                                        */
    tt_real **spare;
    int64_t dim[3];         /* H, W, C                                        */
    int64_t width;          /* values that a line has the room of             */
    tt_band band;           /* its H lines                                    */
    int count;              /* 0, 1 or 2                                      */
    bool bf16;
} vae_slot;

/* A whole picture of h lines. */
static inline tt_band vae_whole(int64_t h)
{
    return (tt_band){.of = h, .lines = h};
}

#define VAE_MAX_SLOTS 32
#define VAE_MAX_SIZES 8

typedef struct vae_slots {
    vae_slot slot[VAE_MAX_SLOTS];
    int count;
    tt_real *spare[VAE_MAX_SIZES];
    int64_t size[VAE_MAX_SIZES];
    int nsizes;
    bool bf16;              /* frames of slots whose lines have even numbers  */
} vae_slots;

/* Append a slot for a band of frames [h, w, c]; its two frames, and the spare
 * of a new size, come from `a`. `s` must not move afterwards. a NULL: only
 * count, and return the bytes the slot adds. */
int64_t vae_slots_add(tt_ctx *ctx, tt_arena *a, vae_slots *s, tt_band h,
                      int64_t w, int64_t c);
/* Our lines of a frame of the slot. */
static inline tt_real *vae_slot_lines(const vae_slot *s, tt_real *frame)
{
    return frame ? frame + s->band.above * s->width : NULL;
}
/* Where the next input of this slot's convolution is to be: as values, where
 * the slot is not bf16. */
static inline tt_real *vae_slot_input(const vae_slot *s)
{
    return s->spare ? vae_slot_lines(s, *s->spare) : NULL;
}
/* Where to write it as values before it is copied there: in scratch, or there
 * itself. */
tt_real *vae_slot_draft(tt_ctx *ctx, const vae_slot *s);
/* Write x there. */
void vae_slot_copy(tt_ctx *ctx, const vae_slot *s, const tt_real *x);
/* Make the input just written the newest frame. */
void vae_slot_push(vae_slot *s);
/* Frames held (0..2), oldest first. */
int vae_slot_view(const vae_slot *s, const tt_real *frame[2]);

/* ---- parts -------------------------------------------------------------- */

/* y [H, W, cout] = one output frame from kt input frames of the slot, oldest
 * first, NULL for zeros, without lines of other ranks; same-size spatial
 * padding. */
void vae_conv_frame(tt_ctx *ctx, tt_real *y, const tt_real *const *frame,
                    const vae_conv *c, const vae_slot *s);
/* The same with the input in the slot's spare frame and history in the slot;
 * the input then becomes history. kt is 3. */
void vae_conv_step(tt_ctx *ctx, tt_real *y, const vae_conv *c, vae_slot *s);
/* slot input = silu(norm(x)), what stands before every 3x3x3 convolution. */
void vae_norm_silu(tt_ctx *ctx, vae_slot *s, const tt_real *x,
                   const tt_real *gamma);

/* y = conv2(silu(norm2(conv1(silu(norm1(x)))))) + shortcut(x). Two slots. */
void vae_res_step(tt_ctx *ctx, tt_real *y, const tt_real *x, const vae_res *r,
                  vae_slot *s);
/* x += proj(attention(norm(x))) over the positions of one frame, of which x is
 * a band. */
void vae_attn_step(tt_ctx *ctx, tt_real *x, const vae_attn *a, tt_band h,
                   int64_t w);

/* y [2h, 2w, c/2] = conv(nearest 2x of the band x [h, w, c]). */
void vae_up_space(tt_ctx *ctx, tt_real *y, const tt_real *x,
                  const vae_resample *r, tt_band h, int64_t w);
/* Two frames from the one in the slot's spare frame (UP3D, any chunk but the
 * first; the first passes unchanged and leaves no trace). */
void vae_up_time(tt_ctx *ctx, tt_real *earlier, tt_real *later,
                 const vae_resample *r, vae_slot *s);
/* y [h/2, w/2, c] of x [h, w, c]; odd extents lose their last line. */
void vae_down_space(tt_ctx *ctx, tt_real *y, const tt_real *x,
                    const vae_resample *r, int64_t h, int64_t w);
/* Temporal half of DOWN3D on the frame in the slot's spare frame, the k-th of
 * its chunk. First chunk: y = the frame. Later: one y for every second frame.
 * True when y was written. */
bool vae_down_time(tt_ctx *ctx, tt_real *y, const vae_resample *r, vae_slot *s,
                   bool first_chunk, int64_t k);

/* ---- the model ---------------------------------------------------------- */

typedef struct vae_decoder_net {
    vae_linear conv2;
    vae_conv conv1;
    vae_res middle[2];      /* middle.0, middle.2                             */
    vae_attn attn;          /* middle.1                                       */
    vae_res res[4][3];      /* upsamples.{4s+i}                               */
    vae_resample up[3];     /* upsamples.{4s+3}: 3D, 3D, 2D                   */
    const tt_real *gamma;   /* head.0                                         */
    vae_conv head;          /* head.2                                         */
} vae_decoder_net;

typedef struct vae_encoder_net {
    vae_conv conv1;
    vae_res res[4][2];      /* downsamples.{3s+i}                             */
    vae_resample down[3];   /* downsamples.{3s+2}: 2D, 3D, 3D                 */
    vae_res middle[2];
    vae_attn attn;
    const tt_real *gamma;
    vae_conv head;          /* 4d -> 2z                                       */
    vae_linear mu;          /* conv1 (top level), the z rows of mu only       */
} vae_encoder_net;

struct tt_vae {
    tt_arena arena;
    tt_weights *w;          /* its own: closed with it                        */
    unsigned parts;         /* TT_VAE_DECODER, TT_VAE_ENCODER                 */
    int64_t dim, z;
    tt_host *mean, *inv;    /* [z], inv = 1/std                               */
    vae_decoder_net dec;
    vae_encoder_net enc;
    struct taehv *tiny;     /* instead of dec and enc: taehv.h                */
    tt_class cls;           /* of its products                                */
    const char *folder;     /* of the files that hold histories; NULL: none   */
};

/* As tt_vae_load_parts with latent statistics given instead of looked up. */
tt_status vae_load(tt_ctx *ctx, tt_vae **out, tt_weights *w, unsigned parts,
                   const double *mean, const double *std);

/* latents.c: config.json next to `path`, else Wan's constants. mean, std [z] */
tt_status vae_find_stats(tt_ctx *ctx, double *mean, double *std, int64_t z,
                         const char *path);
/* Round the statistics to float as the official code does; into v. */
void vae_set_stats(tt_ctx *ctx, tt_vae *v, const double *mean,
                   const double *std);
/* y [h*w, z] = z / inv + mean of z [z, h*w]. */
void vae_denormalise(tt_host *y, const tt_host *z, const tt_vae *v, int64_t n);
/* z [z, h*w] = (mu - mean) * inv of mu [h*w, z]. */
void vae_normalise(tt_host *z, const tt_host *mu, const tt_vae *v, int64_t n);

#endif
