/* test_inputs.c: latents and embeddings as other programs write them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "io/inputs.h"
#include "tests/harness.h"

static tt_ctx *ctx;
static tt_arena arena;
static char path[600];

/* A tensor, and another one: empty, or a copy; NULL: none. */
static void make_file(const char *name, const char *more, tt_dtype type,
                      int rank, const int64_t *dim, const void *data)
{
    const bool version = more && strstr(more, "version");
    tt_st_writer *o;
    expect_ok(tt_st_create(ctx, &o, path), path);
    tt_st_add(o, name, type, rank, dim, data);
    if (version) tt_st_add(o, more, TT_F32, 1, (int64_t[]){0}, data);
    else if (more) tt_st_add(o, more, type, rank, dim, data);
    expect_ok(tt_st_finish(o), path);
}

static float x[WAN_Z * 3 * 2 * 4];

#define VERSION "latent_format_version_0"

static void comfy(void)
{
    int64_t dim[5] = {-1, -1, -1, -1, -1};
    const int64_t theirs[5] = {1, WAN_Z, 3, 2, 4};
    for (int i = 0; i < WAN_Z * 24; i++) x[i] = (float)(i % 17 - 8) / 4;
    make_file("latent_tensor", VERSION, TT_F32, 5, theirs, x);
    const tt_real *y = input_read(ctx, &arena, path, "latents", 5, dim);
    if (!expect(y && dim[1] == 3 && dim[2] == WAN_Z && dim[4] == 4,
                "axes: %s", tt_message(ctx))) return;
    for (int i = 0; i < WAN_Z * 24; i++) {
        const int t = i / (WAN_Z * 8), c = i / 8 % WAN_Z, k = i % 8;
        const float z = x[(c * 3 + t) * 8 + k];
        const float inv = 1 / (float)wan_latent_std[c];
        const float want = (z - (float)wan_latent_mean[c]) * inv;
        expect((float)y[i] == want, "value %d: %g, not %g", i, (double)y[i],
               (double)want);
    }
}

static void refused_with(const char *name, const char *more,
                         const char *asked, tt_dtype type, int rank,
                         const int64_t *dim, const char *word)
{
    int64_t want[5] = {-1, -1, -1, -1, -1};
    make_file(name, more, type, rank, dim, x);
    input_read(ctx, &arena, path, asked, strcmp(asked, "text") ? 5 : 3, want);
    expect(ctx->status && strstr(tt_message(ctx), word)
               && strstr(tt_message(ctx), path), "%s for %s: %s", name, asked,
           ctx->status ? tt_message(ctx) : "accepted");
    tt_clear(ctx);
}

static void refused(const char *name, const char *asked, tt_dtype type,
                    int rank, const int64_t *dim, const char *word)
{
    refused_with(name, VERSION, asked, type, rank, dim, word);
}

static void embeddings(int rank)
{
    int64_t dim[3] = {1, -1, 8};
    const int64_t theirs[3] = {1, 5, 8};
    make_file("prompt_embeds", NULL, TT_F32, rank, theirs + 3 - rank, x);
    const tt_real *y = input_read(ctx, &arena, path, "text", 3, dim);
    expect(y && dim[1] == 5 && (float)y[39] == x[39], "embeddings of rank %d: "
           "%s", rank, tt_message(ctx));
    tt_clear(ctx);
}

int main(void)
{
    ctx = test_begin("io/inputs");
    tmp_path(path, sizeof path, "inputs");
    comfy();
    embeddings(3);
    embeddings(2);
    refused("latent_tensor", "latents", TT_F32, 5,
            (int64_t[]){1, 12, 4, 2, 4}, "ComfyUI");
    refused("latent_tensor", "latents", TT_F32, 4, (int64_t[]){1, 16, 2, 4},
            "ComfyUI");
    refused("latent_tensor", "latents", TT_I32, 5,
            (int64_t[]){1, 16, 1, 2, 4}, "ComfyUI");
    refused("latent_tensor", "noise", TT_F32, 5, (int64_t[]){1, 16, 1, 2, 4},
            "no tensor `noise`");
    refused("prompt_embeds", "text", TT_F32, 1, (int64_t[]){8},
            "prompt_embeds");
    refused_with("latent_tensor", NULL, "latents", TT_F32, 5,
                 (int64_t[]){1, 16, 1, 2, 4}, "1 / 0.18215");
    refused_with("latent_tensor", "latents", "latents", TT_F32, 5,
                 (int64_t[]){1, 16, 1, 2, 4}, "both `latents` and `latent_te");
    refused_with("text", "prompt_embeds", "text", TT_F32, 3,
                 (int64_t[]){1, 5, 8}, "both `text` and `prompt_embeds`");
    x[3] = NAN;
    refused("latent_tensor", "latents", TT_F32, 5,
            (int64_t[]){1, 16, 1, 2, 4}, "not finite");
    unlink(path);
    tt_arena_free(&arena);
    return test_end();
}
