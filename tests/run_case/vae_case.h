/* vae_case.h: a reference case of the VAE while it runs, shared by the files
 * about its parts and the whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_RUN_CASE_VAE_CASE_H
#define TT_RUN_CASE_VAE_CASE_H

#include "tests/run_case/run_case.h"
#include "vae/taehv.h"
#include "vae/vae_internal.h"

#define VAE_REAL (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)

typedef struct vae_case {
    tt_ctx *ctx;
    const tt_json *json;
    const char *dir;
    tt_st_writer *out;
    tt_arena arena;
    tt_file *inputs;
    tt_weights *weights;       /* of parts, "<run>.<key>"                     */
    const char *run;           /* prefix of every name                        */
} vae_case;

/* dst [n, inner, c] from src [n, c, inner]. */
void vae_turn(tt_real *dst, const tt_real *src, int64_t n, int64_t c,
              int64_t inner);
/* n values until the end of the run. */
tt_real *vae_scratch(vae_case *k, int64_t n);
/* Input "<run>.<name>", channel axis (the second) moved last; its shape as
 * stored in dim. NULL when absent. */
tt_real *vae_get_frames(vae_case *k, const char *name, int64_t dim[5]);
/* Output "<run>.<name>" of this shape from x with channels last. */
void vae_put_frames(vae_case *k, const char *name, const tt_real *x, int rank,
                    const int64_t *dim);
void vae_put_video(vae_case *k, const char *name, const tt_real *x, int64_t t,
                   const int64_t hwc[3]);

/* Weights, NULL on a failure. All tensors of a file under their own names; and
 * tensors made from the names in dir/keys.tsv (README_vae.md, "Procedural
 * weights"), but none whose name starts with one of `without`. */
tt_weights *vae_part_weights(tt_ctx *ctx, const char *path);
tt_weights *vae_made_weights(tt_ctx *ctx, const char *dir, uint64_t seed,
                             const char *const *without);
/* One of the latter; its values in `arena`. */
tt_tensor vae_made_tensor(tt_ctx *ctx, tt_arena *arena, uint64_t seed,
                          const char *name, int rank, const int64_t *dim);

/* What a decoder gave. */
typedef struct film {
    tt_real *raw;     /* [F, H, W, 3]                                         */
    uint8_t *rgb;
    int64_t frames, capacity;
} film;

/* Runs of a case: vae_parts.c, vae_whole.c, vae_tiny.c. */
void vae_run_conv(vae_case *k, const tt_json *run);
void vae_run_norm(vae_case *k, const tt_json *run);
void vae_run_res(vae_case *k, const tt_json *run);
void vae_run_attn(vae_case *k, const tt_json *run);
void vae_run_resample(vae_case *k, const tt_json *run);
void vae_run_whole(vae_case *k, const tt_json *run);
void vae_run_tiny(vae_case *k, const tt_json *run);

#endif
