/* test_load.c: checkpoints that must be refused, and how.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each test rewrites the smallest reference model with one thing wrong and
 * looks for the words a user needs in the sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness.h"
#include "dit/dit.h"

static tt_ctx *ctx;
static char folder[600], weights_path[700], config_path[700];

/* What is wrong with the copy; unset members change nothing. */
typedef struct damage {
    const char *drop;      /* leave this tensor out                           */
    const char *rename, *to;
    const char *extra;     /* add [4] ones under this name                    */
    const char *cut;       /* this tensor loses its last row                  */
    const char *nan;       /* element 1 of this tensor becomes NaN            */
} damage;

static void write_copy(const damage *d)
{
    tt_file *f = NULL;
    tt_st_writer *w = NULL;
    const char *from = ref_path("dit/layouts/wan/diffusion_pytorch_model."
                                "safetensors");
    if (!expect_ok(tt_file_open(ctx, &f, from), from)) return;
    tt_st_create(ctx, &w, weights_path);
    for (int64_t i = 0; i < tt_file_count(f) && !ctx->status; i++) {
        const tt_entry *e = tt_file_entry(f, i);
        const char *name = e->name;
        int64_t dim[TT_MAX_RANK];
        if (d->drop && !strcmp(name, d->drop)) continue;
        if (d->rename && !strcmp(name, d->rename)) name = d->to;
        memcpy(dim, e->t.dim, sizeof dim);
        if (d->cut && !strcmp(name, d->cut)) dim[0]--;
        const size_t bytes = (size_t)tt_tensor_count(&e->t) * 4;
        float *x = malloc(bytes);
        tt_gather(x, &e->t);
        if (d->nan && !strcmp(name, d->nan)) x[1] = NAN;
        tt_st_add(w, name, TT_F32, e->t.rank, dim, x);
        free(x);
    }
    const float one[4] = {1, 1, 1, 1};
    if (d->extra)
        tt_st_add(w, d->extra, TT_F32, 1, (int64_t[]){4}, one);
    expect_ok(tt_st_finish(w), "writing a damaged copy");
    tt_file_close(f);
}

static void write_config(const char *text)
{
    FILE *f = fopen(config_path, "w");
    if (!expect(f != NULL, "cannot write %s", config_path)) return;
    fputs(text, f);
    fclose(f);
}

static tt_status load(tt_dit **m, int64_t heads)
{
    tt_weights *w;
    *m = NULL;
    if (tt_weights_open(ctx, &w, weights_path, TT_MODEL_DIT, NULL) != TT_OK)
        return ctx->status;
    return tt_dit_load(ctx, m, w, NULL, heads);
}

/* Loading fails with these words (NULL: any) in one sentence. */
static void refused(const char *what, const char *a, const char *b)
{
    tt_dit *m;
    const tt_status s = load(&m, 0);
    expect(s != TT_OK && !m, "%s: was accepted", what);
    const char *said = tt_message(ctx);
    expect((!a || strstr(said, a)) && (!b || strstr(said, b)),
           "%s: the message lacks '%s' or '%s': %s", what, a ? a : "",
           b ? b : "", said);
    expect(strstr(said, "model.safetensors") || strstr(said, "config.json"),
           "%s: the message names no file: %s", what, said);
    tt_dit_close(m);
    tt_clear(ctx);
}

#define CONFIG "{\"num_heads\": 2, \"num_layers\": 1, \"eps\": 1e-6"

static void test_tensors(void)
{
    write_config(CONFIG "}");
    write_copy(&(damage){.drop = "blocks.0.ffn.2.bias"});
    refused("missing", "blocks.0.ffn.2.bias", "missing");
    write_copy(&(damage){.extra = "blocks.0.surprise"});
    refused("extra", "blocks.0.surprise", NULL);
    write_copy(&(damage){.cut = "blocks.0.norm3.weight"});
    refused("misshapen", "blocks.0.norm3.weight", "[47]");
    write_copy(&(damage){.cut = "blocks.0.ffn.0.weight"});
    refused("misshapen telling tensor", "ffn", NULL);
    write_copy(&(damage){.drop = "patch_embedding.weight"});
    refused("no patch embedding", "patch_embedding.weight", NULL);
    write_copy(&(damage){.rename = "blocks.0.modulation",
                         .to = "blocks.7.modulation"});
    refused("a hole in the blocks", "num_layers", "8");
    write_copy(&(damage){.extra = "img_emb.proj.0.weight"});
    refused("image-to-video", "image-to-video", NULL);
    write_copy(&(damage){.extra = "vace_blocks.0.modulation"});
    refused("VACE", "VACE", NULL);
}

static void test_config(void)
{
    write_copy(&(damage){0});
    write_config("{\"num_heads\": 2, \"model_type\": \"i2v\"}");
    refused("model type", "i2v", "t2v");
    write_config("{\"num_heads\": 2, \"patch_size\": [1, 4, 4]}");
    refused("patch size", "patch_size", "[1, 2, 2]");
    write_config("{\"num_heads\": 2, \"ffn_dim\": 64}");
    refused("foreign config", "ffn_dim", "64");
    write_config("{\"num_heads\": 5}");
    refused("uneven heads", "5 heads", NULL);
    write_config("{\"num_heads\": 16}");
    refused("odd head width", "16 heads", NULL);
    write_config("{\"num_heads\": 2,}");
    refused("broken JSON", "config.json", NULL);
    write_config("{\"num_heads\": 2, \"qk_norm\": false}");
    refused("no qk_norm", "qk_norm", NULL);
    write_config("{\"num_heads\": 2, \"qk_norm\": \"rms_norm\"}");
    refused("norm of each head", "qk_norm must be on", NULL);
    write_config("{\"num_heads\": 2, \"cross_attn_norm\": null}");
    refused("no cross_attn_norm", "cross_attn_norm must be on", NULL);
    write_config("{\"num_heads\": 2, \"patch_size\": [1, 2]}");
    refused("two patch sizes", "patch_size", "[1, 2, 2]");
    write_config("{\"num_heads\": 0}");
    refused("no heads", "num_heads is missing or not a positive", NULL);
    write_config("{\"num_heads\": 2, \"attention_head_dim\": 7}");
    refused("another head width", "num_attention_heads * attention_head_dim is "
            "14", "48");
    write_config("{\"num_heads\": 2, \"eps\": 1}");
    refused("eps 1", "eps must lie between 0 and 1", NULL);
    write_config("{\"num_heads\": 2, \"eps\": 0}");
    refused("eps 0", "eps must lie between 0 and 1", NULL);
    write_config("{\"num_heads\": 2, \"text_len\": -8}");
    refused("text_len", "text_len", NULL);
    write_config("{\"num_heads\": 2, \"text_len\": 1000000}");
    refused("a large text_len", "from 1 to 8192", NULL);
    unlink(config_path);
    refused("unknown width", "--heads", NULL);

    tt_dit *m;
    if (expect_ok(load(&m, 2), "heads by option"))
        expect(tt_dit_get_config(m)->heads == 2
               && tt_dit_get_config(m)->text_len == 0, "heads by option");
    tt_dit_close(m);
}

/* NaN in a weight is found where it does harm, and named. */
static void test_nan(void)
{
    write_config(CONFIG "}");
    write_copy(&(damage){.nan = "blocks.0.ffn.0.weight"});
    tt_dit *m;
    if (!expect_ok(load(&m, 0), "loading does not read values")) return;
    const tt_dit_config *c = tt_dit_get_config(m);
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .D = c->dim / c->heads, .grid_h = 1, .grid_w = 1,
                             .L = 1, .chunk = 1, .first_chunk = 1, .frames = 1};
    const tt_policy_options opt = tt_policy_defaults("full");
    const tt_pass pass = {.frames = 1};
    const double t[1] = {1000};
    tt_real *text = calloc((size_t)(3 * c->text_dim), sizeof *text);
    tt_real *x = calloc((size_t)(4 * c->in_dim), sizeof *x);
    tt_real *y = calloc((size_t)(4 * c->in_dim), sizeof *y);
    tt_prompt *p = NULL;
    tt_cache *cache = NULL;
    expect_ok(tt_prompt_make(ctx, &p, m, text, 3), "prompt");
    expect_ok(tt_cache_open(ctx, &cache, NULL, &opt, &geo), "cache");
    tt_dit_call call = {.h = 2, .w = 2, .t = t, .nt = 1, .prompt = p,
                        .cache = cache, .pass = &pass};
    tt_dit_forward(ctx, m, y, x, &call);
    expect(strstr(tt_message(ctx), "blocks.0.ffn.0.weight") != NULL,
           "NaN weight: %s", tt_message(ctx));
    expect_status(ctx->status, TT_EFORMAT, "NaN weight");

    call.h = 3;
    tt_dit_forward(ctx, m, y, x, &call);
    expect_status(ctx->status, TT_ESHAPE, "odd latent height");
    call.h = 4;
    tt_dit_forward(ctx, m, y, x, &call);
    expect_status(ctx->status, TT_ESHAPE, "another grid than the cache's");
    tt_pass bad = pass;
    call.h = 2;
    call.pass = &bad;
    bad.frames = geo.chunk + 1;
    tt_dit_forward(ctx, m, y, x, &call);
    expect_status(ctx->status, TT_ESHAPE, "more frames than a chunk");
    bad = pass;
    bad.start = geo.frames;
    tt_dit_forward(ctx, m, y, x, &call);
    expect_status(ctx->status, TT_ESHAPE, "frames after the end");
    tt_prompt_free(p);
    tt_cache_close(cache);
    tt_dit_close(m);
    free(text);
    free(x);
    free(y);
}

static void test_text_len(void)
{
    write_config(CONFIG ", \"text_len\": 4}");
    write_copy(&(damage){0});
    tt_dit *m;
    tt_prompt *p;
    if (!expect_ok(load(&m, 0), "text_len 4")) return;
    tt_real *text = calloc((size_t)(5 * tt_dit_get_config(m)->text_dim),
                           sizeof *text);
    expect_ok(tt_prompt_make(ctx, &p, m, text, 2), "two rows of four");
    tt_prompt_free(p);
    expect_status(tt_prompt_make(ctx, &p, m, text, 5), TT_ESHAPE,
                  "more rows than text_len");
    tt_dit_close(m);
    free(text);
}

/* Without a file: its sizes are those asked for, its numbers finite, and every
 * layer has weights. */
static void test_random(void)
{
    tt_dit *m;
    tt_prompt *p;
    tt_dit_config c = {.dim = 8, .ffn_dim = 16, .heads = 2, .layers = 3,
                       .freq_dim = 4, .in_dim = 2, .text_dim = 6,
                       .text_len = 4, .eps = 1e-6};
    const tt_real text[12] = {1, -1, 2};
    if (!expect_ok(tt_dit_random(ctx, &m, &c, 2), "a random one")) return;
    expect(tt_dit_get_config(m)->layers == 3 && !tt_dit_weights(m), "sizes");
    expect_ok(tt_prompt_make(ctx, &p, m, text, 2), "its prompt is finite");
    tt_prompt_free(p);
    tt_dit_close(m);
    c.heads = 3;
    expect_status(tt_dit_random(ctx, &m, &c, 2), TT_EINVAL, "3 heads of 8");
    c.heads = 2;
    expect_status(tt_dit_random(ctx, &m, &c, 0), TT_EINVAL, "no weights");
}

int main(void)
{
    ctx = test_begin("dit/load");
    tmp_path(folder, sizeof folder, "load");
    if (!expect(mkdir(folder, 0700) == 0, "cannot make %s", folder))
        return test_end();
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors",
             folder);
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);

    test_tensors();
    test_config();
    test_nan();
    test_text_len();
    test_random();

    unlink(weights_path);
    unlink(config_path);
    rmdir(folder);
    return test_end();
}
