/* test_border.c: wrong arguments of a caller are failures with a sentence.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  none: every call here breaks a rule of its header. */
#include <string.h>

#include "tests/folder.h"
#include "cache/policy.h"
#include "io/io.h"
#include "ops/ops.h"
#include "vae/vae.h"
#include "tether/tether.h"

static tt_ctx *ctx;

static void refused(tt_status got, const char *words, const char *what)
{
    expect(got == TT_EINVAL && strstr(tt_message(ctx), words),
           "%s: %s", what, tt_message(ctx));
    tt_clear(ctx);
}

static void check_writer(void)
{
    static const float x[6] = {0};
    static const int64_t dim[] = {2, 3};
    tt_st_writer *w = NULL;
    tt_st_create(ctx, &w, at("file.safetensors"));
    if (!expect(w != NULL, "a writer")) return;
    refused(tt_st_write(w, x, 4), "more bytes", "bytes of no tensor");
    refused(tt_st_append(w, 0, 1, x), "can grow", "rows of no tensor");
    refused(tt_st_add(w, "a", TT_NONE, 2, dim, x), "needs a type", "no type");
    refused(tt_st_add(w, "a", TT_F32, 9, dim, x), "needs a type", "rank 9");
    refused(tt_st_add(w, "a", TT_F32, 2, dim, NULL), "without data", "no data");
    expect_ok(tt_st_add(w, "a", TT_F32, 2, dim, x), "a tensor");
    refused(tt_st_append(w, 1, 1, x), "can grow", "axis 1 after one of 2");
    refused(tt_st_append(w, 2, 1, x), "can grow", "axis 2");
    refused(tt_st_reserve(w, 100), "before the first", "room too late");
    refused(tt_st_open_tensor(w, "b", TT_Q8_0, 2, dim), "plain type", "Q8_0");
    expect_ok(tt_st_open_tensor(w, "b", TT_F32, 2, dim), "an open tensor");
    refused(tt_st_write(w, x, 28), "more bytes", "28 bytes of 24");
    expect_ok(tt_st_write(w, x, 20), "20 bytes of 24");
    refused(tt_st_add(w, "c", TT_F32, 2, dim, x), "not all", "the next tensor");
    refused(tt_st_finish(w), "not all", "a file that is not complete");
    folder_remove_empty();
}

static void check_vae(void)
{
    tt_weights *w = NULL;
    tt_vae *v = NULL;
    tt_vae_encoder *e;
    tt_vae_decoder *d;
    const char *model = "ref_data/demo";
    tt_weights_open(ctx, &w, model, TT_MODEL_VAE, NULL);
    tt_vae_load(ctx, &v, w);
    if (!expect_ok(ctx->status, "the decoder")) return;
    refused(tt_vae_encoder_open(ctx, &e, v, 64, 64), "only the decoder",
            "an encoder of the decoder half");
    tt_vae_close(v);
    tt_weights_open(ctx, &w, model, TT_MODEL_VAE, NULL);
    tt_vae_load_parts(ctx, &v, w, TT_VAE_ENCODER);
    if (!expect_ok(ctx->status, "the encoder")) return;
    refused(tt_vae_decoder_open(ctx, &d, v, 8, 8), "only the encoder",
            "a decoder of the encoder half");
    tt_vae_close(v);
}

static void check_cache(void)
{
    static tt_real x[4096];
    const tt_geometry geo = {.layers = 2, .H = 1, .D = 4, .grid_h = 2,
                             .grid_w = 2, .L = 4, .chunk = 3, .first_chunk = 3,
                             .frames = 6};
    const tt_policy_options opt = tt_policy_defaults("full");
    const tt_pass first = {.frames = 3}, wide = {.frames = 4},
                  late = {.start = 6, .frames = 3};
    const tt_qkv qkv = {x, x, x};
    tt_cache *c = NULL;
    tt_cache_open(ctx, &c, NULL, &opt, &geo);
    if (!expect_ok(ctx->status, "a cache")) return;
    expect(!tt_cache_layer(c, 2) && !tt_cache_layer(c, -1), "no such layer");
    expect(!tt_cache_look(c, 2) && !tt_cache_look(c, -1), "nor to look at");
    tt_cache_write(ctx, c, 2, &first, &qkv);
    refused(ctx->status, "only 2 layers", "layer 2 of 2");
    tt_cache_write(ctx, c, 0, &wide, &qkv);
    refused(ctx->status, "chunks of 3", "a chunk of 4");
    tt_cache_write(ctx, c, 0, &late, &qkv);
    refused(ctx->status, "videos of 6", "a chunk after the end");
    tt_cache_close(c);
}

int main(void)
{
    ctx = test_begin("api/border");
    tt_rope_table table;
    tt_arena mem = {0};
    refused(tt_rope_make(ctx, &mem, &table, 3, 4), "even width", "odd heads");
    refused(tt_rope_make(ctx, &mem, &table, 8, 0), "position", "no positions");
    if (folder_make()) check_writer();
    check_vae();
    check_cache();
    return test_end();
}
