/* test_weights.c: the same model in every layout gives the same names and
 * values; prefixes, refusals, folders, binding.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/map.h"
#include "io/weights.h"
#include "tests/folder.h"
#include "core/device.h"

static tt_ctx *ctx;
static tt_arena arena;
static char warning[400];

static void keep_warning(void *user, const char *sentence)
{
    (void)user;
    snprintf(warning, sizeof warning, "%s", sentence);
}

/* A file of small tensors: `names` separated by spaces; "name:3x4" gives a
 * shape, else [1]. All values 1. */
static const char *make(const char *file, const char *names)
{
    const char *path = at(file);
    char copy[2000];
    float ones[512];
    tt_st_writer *w;
    for (int i = 0; i < 512; i++) ones[i] = 1;
    snprintf(copy, sizeof copy, "%s", names);
    if (!expect_ok(tt_st_create(ctx, &w, path), file)) return path;
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " ")) {
        int64_t dim[8] = {1};
        int rank = 1;
        char *shape = strchr(p, ':');
        if (shape) {
            *shape++ = '\0';
            for (rank = 0; *shape && rank < 8; rank++) {
                dim[rank] = strtol(shape, &shape, 10);
                if (*shape == 'x') shape++;
            }
        }
        tt_st_add(w, p, TT_F32, rank, dim, ones);
    }
    expect_ok(tt_st_finish(w), file);
    return path;
}

/* ---- layouts ------------------------------------------------------------- */

static bool same_shape(const tt_tensor *a, const tt_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dim[i] == b->dim[i];
    return same;
}

/* Names and shapes equal; values within `relative` of one another (below
 * 2^-14, where F16 has no more digits, of that). */
static void compare(const char *what, const tt_weights *a,
                    const tt_weights *b, double relative)
{
    expect(tt_weights_count(a) == tt_weights_count(b), "%s: %lld tensors",
           what, (long long)tt_weights_count(b));
    for (int64_t i = 0; i < tt_weights_count(a); i++) {
        const char *name = tt_weights_name(a, i);
        const tt_tensor *x = tt_weights_find(a, name);
        const tt_tensor *y = tt_weights_find(b, name);
        if (!expect(x && y, "%s: no %s", what, name)) continue;
        if (!expect(same_shape(x, y), "%s: shape of %s", what, name)) continue;
        expect(tt_tensor_packed(y), "%s: %s is not packed", what, name);
        tt_arena_mark m = tt_arena_here(&arena);
        tt_real *u = tt_read_real(ctx, &arena, x);
        tt_real *v = tt_read_real(ctx, &arena, y);
        int64_t bad = 0;
        for (int64_t k = 0; k < tt_tensor_count(x); k++)
            bad += !(fabs((double)u[k] - (double)v[k])
                     <= relative * (fabs((double)u[k]) + 0x1p-14));
        expect(bad == 0, "%s: %lld values of %s differ", what, (long long)bad,
               name);
        tt_arena_reset(&arena, m);
    }
}

static tt_weights *open_layout(const char *layout, int ema)
{
    tt_weights_options opt = {.ema = ema};
    tt_weights *w;
    expect_ok(tt_weights_open(ctx, &w, ref_path("dit/layouts/%s", layout),
                              TT_MODEL_DIT, &opt), layout);
    return w;
}

static void layouts(void)
{
    static const struct { const char *folder; double relative; } all[] = {
        {"wan", 0}, {"wan_sharded", 0}, {"prefixed", 0}, {"diffusers", 0},
        {"selfforcing_pt", 0}, {"selfforcing_pt_ema_only", 0},
        {"wan_bf16", 1.0 / 256}, {"wan_f16", 1.0 / 1024}};
    tt_weights *wan = open_layout("wan", -1), *w;
    for (size_t i = 0; wan && i < sizeof all / sizeof *all; i++) {
        w = open_layout(all[i].folder, -1);
        if (w) compare(all[i].folder, wan, w, all[i].relative);
        tt_weights_close(w);
    }
    w = open_layout("selfforcing_pt", -1);
    expect(w && strstr(tt_weights_origin(w), "generator_ema"), "origin");
    tt_weights_close(w);
    /* the raw generator is another set of values */
    w = open_layout("selfforcing_pt", 0);
    if (w && wan) {
        const tt_tensor *x = tt_weights_find(wan, "head.head.weight");
        const tt_tensor *y = tt_weights_find(w, "head.head.weight");
        expect(memcmp(x->data, y->data, 64) != 0, "generator is not the EMA");
        expect(strstr(tt_weights_origin(w), "generator_ema") == NULL,
               "origin %s", tt_weights_origin(w));
    }
    tt_weights_close(w);
    /* only the EMA is there: taken, and said */
    warning[0] = '\0';
    w = open_layout("selfforcing_pt_ema_only", 0);
    if (w && wan) compare("ema only", wan, w, 0);
    expect(strstr(warning, "generator_ema") != NULL, "no warning: %s",
           warning);
    tt_weights_close(w);
    tt_weights_close(wan);
}

/* The VAE under Diffusers' names: all 194 keys, from the list of pairs. */
static void vae_names(void)
{
    char line[300], wan[100], shape[60], diffusers[120];
    FILE *f = fopen(ref_path("vae_fullwidth/keys.tsv"), "r");
    const char *path = at("vae_diffusers.safetensors");
    tt_st_writer *w;
    tt_weights *v = NULL;
    int n = 0;
    if (!expect(f != NULL, "keys.tsv")) return;
    expect_ok(tt_st_create(ctx, &w, path), path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%99s %59s %119s", wan, shape, diffusers) != 3
            || shape[0] != '[')
            continue;
        int64_t dim[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        int rank = 1;
        for (const char *p = shape; *p; p++) rank += *p == ',';
        float number = (float)n++;
        tt_st_add(w, diffusers, TT_F32, rank, dim, &number);
    }
    expect_ok(tt_st_finish(w), path);
    expect(n == 194, "%d keys", n);
    expect_ok(tt_weights_open(ctx, &v, path, TT_MODEL_VAE, NULL), path);
    rewind(f);
    n = 0;
    while (v && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%99s %59s %119s", wan, shape, diffusers) != 3
            || shape[0] != '[')
            continue;
        const tt_tensor *t = tt_weights_find(v, wan);
        float number = -1;
        if (t) tt_widen_at_f32(&number, t, 0, 1);
        expect(number == (float)n++, "%s is not found as %s", diffusers, wan);
    }
    tt_weights_close(v);
    fclose(f);
    unlink(path);
}

static void t5_names(void)
{
    tt_weights *a = NULL, *b = NULL;
    expect_ok(tt_weights_open(ctx, &a, ref_path("t5_basic"), TT_MODEL_T5,
                              NULL), "t5_basic");
    expect_ok(tt_weights_open(ctx, &b,
                              ref_path("t5_hf_names/weights.safetensors"),
                              TT_MODEL_T5, NULL), "t5_hf_names");
    if (a && b) {
        expect(tt_weights_count(a) == tt_weights_count(b), "count");
        for (int64_t i = 0; i < tt_weights_count(a); i++)
            expect(tt_weights_find(b, tt_weights_name(a, i)) != NULL,
                   "no %s", tt_weights_name(a, i));
    }
    tt_weights_close(a);
    tt_weights_close(b);
}

/* ---- prefixes ------------------------------------------------------------ */

static void prefixes(void)
{
    /* every way a wrapper may have spelt blocks.0.self_attn.q.weight */
    static const char *const same[] = {
        "blocks.0.self_attn.q.weight", "model.blocks.0.self_attn.q.weight",
        "module.model.blocks.0.self_attn.q.weight",
        "model.module.blocks.0.self_attn.q.weight",
        "model.diffusion_model.blocks.0.self_attn.q.weight",
        "diffusion_model.blocks.0.self_attn.q.weight",
        "net.blocks.0.self_attn.q.weight",
        "model._fsdp_wrapped_module.blocks.0._fsdp_wrapped_module."
        "self_attn.q.weight",
        "_orig_mod.model.blocks.0._checkpoint_wrapped_module."
        "self_attn.q.weight",
        "_fsdp_wrapped_module.module._orig_mod.model.blocks.0.self_attn.q."
        "weight",
    };
    tt_weights *w;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *path = make("prefix.safetensors", same[i]);
        if (!expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_DIT, NULL),
                       same[i]))
            continue;
        expect(!strcmp(tt_weights_name(w, 0), same[0]), "%s gave %s", same[i],
               tt_weights_name(w, 0));
        tt_weights_close(w);
    }
    /* all in one: only the asked model's tensors are seen */
    const char *path = make(
        "all.safetensors",
        "model.diffusion_model.head.modulation "
        "first_stage_model.decoder.middle.0.residual.0.gamma "
        "text_encoders.umt5xxl.transformer.shared.weight "
        "text_encoders.umt5xxl.transformer.spiece_model");
    static const char *const want[] = {
        "head.modulation", "decoder.middle.0.residual.0.gamma",
        "token_embedding.weight"};
    for (int k = 0; k < 3; k++) {
        if (!expect_ok(tt_weights_open(ctx, &w, path, (tt_model_kind)k, NULL),
                       want[k]))
            continue;
        expect(tt_weights_count(w) == 1
                   && !strcmp(tt_weights_name(w, 0), want[k]),
               "all in one: %s", want[k]);
        tt_weights_close(w);
    }
    unlink(path);
}

/* ---- refusals ------------------------------------------------------------ */

static void refuse(tt_model_kind kind, const char *names, const char *word)
{
    tt_weights *w;
    const char *path = make("refuse.safetensors", names);
    tt_status s = tt_weights_open(ctx, &w, path, kind, NULL);
    expect(s != TT_OK && w == NULL, "accepted: %s", names);
    expect(strstr(tt_message(ctx), word) != NULL, "%s: no '%s' in: %s", names,
           word, tt_message(ctx));
    expect(strstr(tt_message(ctx), "refuse.safetensors") != NULL,
           "file not named: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(w);
    unlink(path);
}

static void refusals(void)
{
    refuse(TT_MODEL_DIT, "head.modulation img_emb.proj.0.weight",
           "image-to-video");
    refuse(TT_MODEL_DIT, "head.modulation blocks.0.cross_attn.k_img.weight",
           "image-to-video");
    refuse(TT_MODEL_DIT, "condition_embedder.time_proj.weight "
           "condition_embedder.image_embedder.ff.weight", "image-to-video");
    refuse(TT_MODEL_DIT, "head.modulation vace_blocks.0.x", "VACE");
    refuse(TT_MODEL_VAE, "decoder.middle.0.residual.0.gamma "
           "decoder.upsamples.0.upsamples.0.residual.2.weight", "Wan2.2");
    refuse(TT_MODEL_VAE, "decoder.middle.0.residual.0.gamma "
           "decoder.conv1.weight:3x3x3x3", "three-dimensional");
    refuse(TT_MODEL_DIT, "model.head.modulation head.modulation", "same");
    refuse(TT_MODEL_DIT, "condition_embedder.time_proj.weight "
           "time_projection.1.weight", "same");
    refuse(TT_MODEL_DIT, "decoder.middle.0.residual.0.gamma", "VAE");
    refuse(TT_MODEL_VAE, "head.modulation", "transformer");
    refuse(TT_MODEL_T5, "head.modulation", "transformer");
    refuse(TT_MODEL_DIT, "something.else", "something.else");
}

/* ---- folders ------------------------------------------------------------- */

static void chosen(tt_model_kind kind, const char *want)
{
    tt_weights *w;
    if (!expect_ok(tt_weights_open(ctx, &w, folder, kind, NULL), want)) return;
    expect(!strcmp(tt_weights_path(w), at(want)), "%s, expected %s",
           tt_weights_path(w), want);
    tt_weights_close(w);
}

static void folders(void)
{
    tt_weights *w;
    expect_status(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL), TT_EIO,
                  "an empty folder");
    tt_weights_open(ctx, &w, folder, TT_MODEL_T5, NULL);
    expect(strstr(tt_message(ctx), "models_t5_umt5-xxl-enc-bf16.pth")
               && strstr(tt_message(ctx), "--text-encoder"),
           "message: %s", tt_message(ctx));
    tt_clear(ctx);
    /* by content */
    make("a.safetensors", "head.modulation");
    make("b.safetensors", "decoder.middle.0.residual.0.gamma");
    make("c.safetensors", "token_embedding.weight");
    chosen(TT_MODEL_DIT, "a.safetensors");
    chosen(TT_MODEL_VAE, "b.safetensors");
    chosen(TT_MODEL_T5, "c.safetensors");
    /* two that fit */
    make("d.safetensors", "head.modulation");
    expect_status(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL),
                  TT_EINVAL, "two transformers");
    /* by the published names, wherever other files lie */
    make("diffusion_pytorch_model.safetensors", "head.modulation");
    make("Wan2.1_VAE.pth", "decoder.middle.0.residual.0.gamma");
    make("text_encoder.safetensors", "shared.weight");
    chosen(TT_MODEL_DIT, "diffusion_pytorch_model.safetensors");
    chosen(TT_MODEL_VAE, "Wan2.1_VAE.pth");
    chosen(TT_MODEL_T5, "text_encoder.safetensors");
    static const char *const all[] = {
        "a.safetensors", "b.safetensors", "c.safetensors", "d.safetensors",
        "diffusion_pytorch_model.safetensors", "Wan2.1_VAE.pth",
        "text_encoder.safetensors"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unlink(at(all[i]));
    /* a Diffusers folder */
    mkdir(at("transformer"), 0700);
    make("transformer/diffusion_pytorch_model.safetensors",
         "condition_embedder.time_proj.weight");
    chosen(TT_MODEL_DIT, "transformer/diffusion_pytorch_model.safetensors");
    unlink(at("transformer/diffusion_pytorch_model.safetensors"));
    make("transformer/x.safetensors", "condition_embedder.time_proj.weight");
    chosen(TT_MODEL_DIT, "transformer/x.safetensors");
    unlink(at("transformer/x.safetensors"));
    rmdir(at("transformer"));
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

/* Shards without an index, the hub's cache, other programs' parts. */
static void links(void)
{
    tt_weights *w;
    char buf[4096];
    make("m-00001-of-00002.safetensors", "blocks.0.self_attn.q.weight:2x2");
    expect(tt_weights_open(ctx, &w, at("m-00001-of-00002.safetensors"),
                           TT_MODEL_DIT, NULL)
               && strstr(tt_message(ctx), "m-00002-of-00002.safetensors"),
           "one of two shards: %s", tt_message(ctx));
    tt_clear(ctx);
    rename(at("m-00001-of-00002.safetensors"),
           at("m-00002-of-00002.safetensors"));
    for (int i = 0; i < 2; i++) { /* the second alone, found by its folder */
        if (i) tt_convert(ctx, at("c.safetensors"),
                          at("m-00002-of-00002.safetensors"), NULL);
        else tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL);
        expect(ctx->status == TT_EIO && strstr(tt_message(ctx),
               "m-00001-of-00002.safetensors is not there"), "part 2 of 2: %s",
               tt_message(ctx));
        tt_clear(ctx);
    }
    make("m-00001-of-00002.safetensors", "blocks.0.self_attn.q.weight:2x2");
    make("m-00002-of-00002.safetensors", "head.modulation:1x2x4");
    for (int i = 0; i < 2; i++)
        if (expect_ok(tt_weights_open(ctx, &w, i ? folder
                                      : at("m-00002-of-00002.safetensors"),
                                      TT_MODEL_DIT, NULL), "two shards")) {
            expect(tt_weights_count(w) == 2, "two shards: %lld tensors",
                   (long long)tt_weights_count(w));
            tt_weights_close(w);
        }
    make("m-00002-of-00002.safetensors", "blocks.0.self_attn.q.weight:2x2");
    expect_status(tt_weights_open(ctx, &w, at("m-00001-of-00002.safetensors"),
                                  TT_MODEL_DIT, NULL), TT_EFORMAT, "a tensor "
                  "in two shards");
    unlink(at("m-00001-of-00002.safetensors"));
    unlink(at("m-00002-of-00002.safetensors"));
    mkdir(at("refs"), 0700);
    mkdir(at("snapshots"), 0700);
    mkdir(at("snapshots/a1"), 0700);
    write_file("refs/main", "a1");
    make("snapshots/a1/dit.safetensors", "head.modulation:1x2x4");
    expect(!strcmp(tt_folder_snapshot(buf, folder), buf), "a snapshot");
    chosen(TT_MODEL_DIT, "snapshots/a1/dit.safetensors");
    unlink(at("snapshots/a1/dit.safetensors"));
    expect(!symlink("../../blobs/none", at("snapshots/a1/dit.safetensors")),
           "symlink");
    expect(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL)
               && strstr(tt_message(ctx), "link"), "a link to nothing: %s",
           tt_message(ctx));
    tt_clear(ctx);
    unlink(at("snapshots/a1/dit.safetensors"));
    write_file("refs/main", "../../../etc");
    expect(tt_folder_snapshot(buf, folder) != buf, "refs/main leads outside");
    unlink(at("refs/main"));
    rmdir(at("refs"));
    rmdir(at("snapshots/a1"));
    rmdir(at("snapshots"));
    write_file(".metadata", "x");      /* any program's; no DCP by itself */
    expect(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL)
               && !strstr(tt_message(ctx), "DCP"), "%s", tt_message(ctx));
    tt_clear(ctx);
    write_file("a.distcp", "x");
    expect(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL)
               && strstr(tt_message(ctx), "DCP"), "DCP: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_convert(ctx, at("c.safetensors"), at("a.distcp"), NULL);
    expect(ctx->status && strstr(tt_message(ctx), "DCP"), "a file of it: %s",
           tt_message(ctx));
    tt_clear(ctx);
    tt_convert(ctx, at("c.safetensors"), folder, NULL);
    expect(ctx->status && strstr(tt_message(ctx), "DCP"), "convert: %s",
           tt_message(ctx));
    tt_clear(ctx);
    unlink(at("a.distcp"));
    unlink(at(".metadata"));
    /* an index whose file is not there: named where nothing else is found */
    write_file("m.safetensors.index.json", "{\"weight_map\": {\"head."
               "modulation\": \"lost.safetensors\"}}");
    expect(tt_weights_open(ctx, &w, folder, TT_MODEL_DIT, NULL)
               && strstr(tt_message(ctx), "lost.safetensors"), "an index: %s",
           tt_message(ctx));
    tt_clear(ctx);
    unlink(at("m.safetensors.index.json"));
}

/* Next to the model, and not of it. */
static void not_of_it(void)
{
    static const struct { tt_model_kind kind; const char *names; } all[] = {
        {TT_MODEL_DIT, "head.modulation model_type.SkyReels-V2 freqs"},
        {TT_MODEL_DIT, "head.modulation rope.freqs"},
        {TT_MODEL_T5, "shared.weight decoder.block.0.layer.0.SelfAttention.q."
                      "weight decoder.final_layer_norm.weight lm_head.weight"},
        {TT_MODEL_T5, "token_embd.weight dec.blk.0.attn_q.weight "
                      "output.weight"},
        {TT_MODEL_T5, "umt5xxl.transformer.shared.weight spiece_model"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tt_weights *w;
        make("beside.safetensors", all[i].names);
        if (!expect_ok(tt_weights_open(ctx, &w, at("beside.safetensors"),
                                       all[i].kind, NULL), all[i].names))
            continue;
        expect(tt_weights_count(w) == 1, "%s: %lld tensors", all[i].names,
               (long long)tt_weights_count(w));
        tt_weights_close(w);
    }
    unlink(at("beside.safetensors"));
}

/* ---- binding ------------------------------------------------------------- */

static void binding(void)
{
    static const int64_t d1[] = {1}, d23[] = {2, 3}, d32[] = {3, 2};
    static const char *const all[] = {"", NULL};
    static const char *const some[] = {"extra.", NULL};
    const char *path = make("bind.safetensors",
                            "time_projection.1.weight:2x3 head.head.bias "
                            "extra.y");
    tt_weights *w;
    tt_bind b;
    if (!expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_DIT, NULL), path))
        return;
    for (int round = 0; round < 3; round++) {
        tt_bind_begin(&b, ctx, w, &arena, "transformer");
        tt_tensor t = tt_bind_tensor(&b, "time_projection.1.weight", 2, d23);
        tt_real *x = tt_bind_real(&b, "head.head.bias", 1, d1);
        const tt_host *y = x ? tt_get(ctx, x, 1) : NULL;
        expect(t.data && y && y[0] == 1 && b.bound == 2, "bound");
        warning[0] = '\0';
        if (round == 0) {
            tt_status s = tt_bind_end(&b, NULL);
            expect(s == TT_ESHAPE && strstr(tt_message(ctx), "extra.y")
                       && strstr(tt_message(ctx), "1 unexpected"),
                   "message: %s", tt_message(ctx));
            tt_clear(ctx);
        } else {
            expect_ok(tt_bind_end(&b, round == 1 ? some : all), "ignored");
            expect((strstr(warning, "extra.y") != NULL) == (round == 2),
                   "warning: %s", warning);
        }
    }
    tt_bind_begin(&b, ctx, w, &arena, "transformer");
    tt_tensor t = tt_bind_tensor(&b, "time_projection.1.weight", 2, d32);
    expect(!t.data && !t.rank, "misshapen is empty");
    expect(!tt_bind_real(&b, "head.head.weight", 1, d1), "missing is NULL");
    tt_bind_real(&b, "head.head.bias", 1, d1);
    tt_status s = tt_bind_end(&b, all);
    expect(s == TT_ESHAPE && strstr(tt_message(ctx), "1 missing, 1 wrong")
               && strstr(tt_message(ctx), "[2, 3], expected [3, 2]")
               && strstr(tt_message(ctx), "head.head.weight is missing")
               && strstr(tt_message(ctx), "bind.safetensors"),
           "message: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(w);
    unlink(path);
}

/* A small parameter with a NaN is found when it is bound. */
static void not_finite(void)
{
    const char *path = at("nan.safetensors");
    float x[2] = {1, NAN};
    int64_t d2[] = {2}, id[] = {7}, one[] = {1};
    tt_st_writer *w;
    tt_weights *v;
    tt_bind b;
    expect_ok(tt_st_create(ctx, &w, path), path);
    tt_st_add(w, "head.head.bias", TT_F32, 1, d2, x);
    tt_st_add(w, "head.modulation", TT_I64, 1, one, id);
    expect_ok(tt_st_finish(w), path);
    if (!expect_ok(tt_weights_open(ctx, &v, path, TT_MODEL_DIT, NULL), path))
        return;
    tt_bind_begin(&b, ctx, v, &arena, "transformer");
    expect(!tt_bind_real(&b, "head.head.bias", 1, d2), "NaN accepted");
    tt_bind_tensor(&b, "head.modulation", 1, one);
    tt_status s = tt_bind_end(&b, NULL);
    expect(s == TT_ESHAPE && strstr(tt_message(ctx), "finite")
               && strstr(tt_message(ctx), "I64"),
           "message: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(v);
    unlink(path);
}

/* Released pages come back with the same content; memory that is no mapping
 * of the file is left alone. */
static void release(void)
{
    enum { N = 1 << 16 };
    const char *path = at("release.safetensors");
    static float x[N], copy[N];
    int64_t dim[] = {N};
    tt_st_writer *w;
    tt_weights *v;
    for (int i = 0; i < N; i++) copy[i] = x[i] = (float)i;
    expect_ok(tt_st_create(ctx, &w, path), path);
    tt_st_add(w, "head.modulation", TT_F32, 1, dim, x);
    expect_ok(tt_st_finish(w), path);
    if (!expect_ok(tt_weights_open(ctx, &v, path, TT_MODEL_DIT, NULL), path))
        return;
    const tt_tensor *t = tt_weights_find(v, "head.modulation");
    for (int round = 0; t && round < 2; round++) {
        expect_values("released", t, x, sizeof x);
        tt_weights_release(v, t);
    }
    tt_tensor own = tt_tensor_make(copy, TT_F32, 1, dim);
    tt_weights_release(v, &own);
    expect_bits("not ours", copy, x, sizeof x);
    expect(!tt_weights_large(v), "a small file is not large");
    expect(!tt_weights_crowded(v), "a small file fits every machine");
    tt_weights_close(v);
    unlink(path);
}

/* Page faults of reading a tensor. */
static long faults(const tt_tensor *t)
{
    struct rusage before, after;
    const volatile char *p = t->data;
    char sum = 0;
    getrusage(RUSAGE_SELF, &before);
    for (int64_t i = 0; i < tt_tensor_bytes(t); i += 4096) sum ^= p[i];
    getrusage(RUSAGE_SELF, &after);
    (void)sum;
    return after.ru_minflt - before.ru_minflt;
}

/* All of several tensors are given back, where a system does that (an emulator
 * may not). */
static void release_all(void)
{
    enum { N = 1 << 16, TENSORS = 3 };
    static const char *const name[TENSORS] = {
        "head.modulation", "head.head.bias", "head.head.weight"};
    const char *path = at("all.safetensors");
    static float x[N];
    const tt_tensor *t[TENSORS];
    int64_t dim[] = {N};
    tt_st_writer *w;
    tt_weights *v;
    bool there = true;
    expect_ok(tt_st_create(ctx, &w, path), path);
    for (int i = 0; i < TENSORS; i++) tt_st_add(w, name[i], TT_F32, 1, dim, x);
    expect_ok(tt_st_finish(w), path);
    if (!expect_ok(tt_weights_open(ctx, &v, path, TT_MODEL_DIT, NULL), path))
        return;
    for (int i = 0; i < TENSORS; i++) {
        t[i] = tt_weights_find(v, name[i]);
        there = there && t[i];
    }
    if (expect(there, "three tensors")) {
        faults(t[0]);
        tt_weights_release(v, t[0]);
        const bool gives = faults(t[0]) > 0;
        for (int i = 0; i < TENSORS; i++) faults(t[i]);
        weights_release_all(ctx, v, t, TENSORS);
        for (int i = 0; i < TENSORS; i++)
            expect(faults(t[i]) > 0 || !gives, "tensor %d stayed", i);
    }
    tt_weights_close(v);
    unlink(path);
}

/* Large files stay resident where the machine has the memory. */
static void crowded(void)
{
    const char *path = at("meminfo");
    const int64_t gb = INT64_C(1) << 30;
    FILE *f = fopen(path, "w");
    if (!expect(f != NULL, "%s", path)) return;
    fprintf(f, "MemTotal: 9000000 kB\nMemFree: 1 kB\n"
               "MemAvailable: 4194304 kB\nBuffers: 1 kB\n");
    fclose(f);
    expect(!io_crowded(gb, path) && !io_crowded(4 * gb, path), "4 GB are free");
    expect(io_crowded(4 * gb + 4096, path), "more than is free");
    unlink(path);
    expect(!io_crowded(gb, path) && io_crowded(gb + 1, path),
           "a system that does not say");
}

int main(void)
{
    ctx = test_begin("io/weights");
    ctx->warn = keep_warning;
    if (!folder_make()) return test_end();
    layouts();
    vae_names();
    t5_names();
    folders();
    links();
    not_of_it();
    prefixes();
    refusals();
    binding();
    not_finite();
    release();
    release_all();
    crowded();
    unlink(at("prefix.safetensors"));
    folder_remove_empty();
    tt_arena_free(&arena);
    return test_end();
}
