/* vae_cases.c: reference cases of the VAE: tensors in and out, which run is
 * which.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README_vae.md. Tensors of a case are [1, C, T, H, W]; the
 *         library works on frames [H, W, C]. Seen as [C, n] and [n, C] with
 *         n = T*H*W, one is the transpose of the other. */
#include "tests/run_case/vae_case.h"

#include <stdio.h>
#include <string.h>

/* ---- tensors in and out ------------------------------------------------- */

void vae_turn(tt_real *dst, const tt_real *src, int64_t n, int64_t c,
              int64_t inner)
{
    for (int64_t b = 0; b < n; b++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t i = 0; i < inner; i++)
                dst[(b * inner + i) * c + k] = src[(b * c + k) * inner + i];
}

tt_real *vae_scratch(vae_case *k, int64_t n)
{
    return tt_alloc(k->ctx, &k->arena, n, sizeof(tt_real), "a VAE case");
}

tt_real *vae_get_frames(vae_case *k, const char *name, int64_t dim[5])
{
    char full[160];
    snprintf(full, sizeof full, "%s.%s", k->run, name);
    const tt_entry *e = tt_file_find(k->inputs, full);
    if (!e || (e->t.rank != 5 && e->t.rank != 4)) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no input %s of 4 or 5 dimensions",
                k->dir, full);
        return NULL;
    }
    int64_t inner = 1;
    for (int i = 0; i < e->t.rank; i++) {
        dim[i] = e->t.dim[i];
        if (i >= 2) inner *= dim[i];
    }
    tt_real *raw = tt_read_real(k->ctx, &k->arena, &e->t);
    tt_real *x = vae_scratch(k, dim[0] * dim[1] * inner);
    if (raw && x) vae_turn(x, raw, dim[0], dim[1], inner);
    return x;
}

void vae_put_frames(vae_case *k, const char *name, const tt_real *x, int rank,
                    const int64_t *dim)
{
    char full[160];
    int64_t inner = 1;
    for (int i = 2; i < rank; i++) inner *= dim[i];
    tt_real *y = vae_scratch(k, dim[0] * dim[1] * inner);
    if (!y) return;
    vae_turn(y, x, dim[0], inner, dim[1]);
    snprintf(full, sizeof full, "%s.%s", k->run, name);
    tt_st_add(k->out, full, VAE_REAL, rank, dim, y);
}

void vae_put_video(vae_case *k, const char *name, const tt_real *x, int64_t t,
                   const int64_t hwc[3])
{
    const int64_t dim[5] = {1, hwc[2], t, hwc[0], hwc[1]};
    vae_put_frames(k, name, x, 5, dim);
}

/* ---- dispatch ----------------------------------------------------------- */

static const struct {
    const char *kind;
    void (*run)(vae_case *k, const tt_json *run);
    bool parts; /* weights.safetensors holds "<run>.<key>" */
} kinds[] = {
    {"causal_conv3d", vae_run_conv, true},
    {"rms_norm", vae_run_norm, true},
    {"residual_block", vae_run_res, true},
    {"attention_block", vae_run_attn, true},
    {"resample", vae_run_resample, true},
    {"vae_full", vae_run_whole, false},
    {"vae_full_procedural", vae_run_whole, false},
    {"vae_pth", vae_run_whole, false},
    {"taehv_procedural", vae_run_tiny, false},
};

tt_status run_vae_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out)
{
    const char *kind = tt_json_str(json, "kind", "");
    const size_t n = sizeof kinds / sizeof kinds[0];
    size_t i = 0;
    while (i < n && strcmp(kinds[i].kind, kind) != 0) i++;
    if (i == n) return TT_EUNSUPPORTED; /* someone else's */
    vae_case k = {.ctx = ctx, .json = json, .dir = dir, .out = out};
    char path[600];
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    TT_TRY(tt_file_open(ctx, &k.inputs, path));
    snprintf(path, sizeof path, "%s/weights.safetensors", dir);
    if (kinds[i].parts) k.weights = vae_part_weights(ctx, path);
    const tt_json *run = tt_json_first(tt_json_get(json, "runs"));
    for (; run && !ctx->status; run = tt_json_next(run)) {
        k.run = tt_json_str(run, "run", "");
        kinds[i].run(&k, run);
        tt_arena_free(&k.arena);
    }
    tt_weights_close(k.weights);
    tt_file_close(k.inputs);
    return ctx->status;
}
