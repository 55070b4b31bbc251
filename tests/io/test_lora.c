/* test_lora.c: LoRAs merged into weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  every spelling of a key, against W + f up down in float64 from
 *   the file, and bit by bit against the order of io.h by plain loops; a weight
 *   without a key keeps its bits. What `convert` writes has the same bits.
 * Refused        what fits no weight, by name; what is no LoRA; damage. */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fma.h"
#include "io/lora.h"
#include "tests/folder.h"
#include "ops/ops.h"

static tt_ctx *ctx;
static const char *tiny; /* a transformer: width 80, 3 blocks                 */

/* Names of Wan and of Diffusers; columns of a convolution count as one. */
static const struct { const char *wan, *diffusers; int64_t rows, columns; }
modules[] = {
    {"blocks.0.self_attn.q", "blocks.0.attn1.to_q", 80, 80},
    {"blocks.2.cross_attn.o", "blocks.2.attn2.to_out.0", 80, 80},
    {"blocks.1.ffn.0", "blocks.1.ffn.net.0.proj", 208, 80},
    {"blocks.1.ffn.2", "blocks.1.ffn.net.2", 80, 208},
    {"time_projection.1", "condition_embedder.time_proj", 480, 80},
    {"text_embedding.0", "condition_embedder.text_embedder.linear_1", 80, 48},
    {"head.head", "proj_out", 64, 80},
    {"patch_embedding", "patch_embedding", 80, 64}};
enum { MODULES = sizeof modules / sizeof *modules, MOST = 512 * 300 };

/* From -1/8 to 1/8, with all bits that a float has: sums round. */
static float value(int64_t seed, int64_t i)
{
    uint32_t x = (uint32_t)(seed * 7919 + i * 104729 + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (float)(int32_t)(x ^ x >> 13) * 0x1p-34f;
}

/* The key of a module: flat has _ for every dot. */
static const char *key_of(const char *prefix, const char *module, bool flat,
                          const char *tail)
{
    static char ring[4][256];
    static int turn;
    char *b = ring[turn++ % 4], name[128];
    snprintf(name, sizeof name, "%s", module);
    for (char *c = name; flat && *c; c++)
        if (*c == '.') *c = '_';
    snprintf(b, sizeof ring[0], "%s%s%s", prefix, name, tail);
    return b;
}

/* A tensor of values; bf16: stored so. */
static void put(tt_st_writer *w, const char *name, int64_t a, int64_t b,
                int64_t seed)
{
    static float v[MOST];
    for (int64_t i = 0; i < a * b; i++) v[i] = value(seed, i);
    tt_st_add(w, name, TT_F32, 2, (int64_t[]){a, b}, v);
}

static void put_number(tt_st_writer *w, const char *name, float x)
{
    tt_st_add(w, name, TT_F32, 0, NULL, &x);
}

static tt_weights *open_with(const char *path, tt_model_kind kind,
                             const char *lora)
{
    const tt_weights_options o = {.ema = -1, .lora = lora};
    tt_weights *w = NULL;
    expect_ok(tt_weights_open(ctx, &w, path, kind, &o), lora ? lora : path);
    return w;
}

/* ---- the order, by plain loops ------------------------------------------- */

/* W[i] for W [rows, n] with factor * up down, in float32 and in float64. */
static void product(float *w, double *exact, const float *up, const float *down,
                    float f, int64_t rows, int64_t r, int64_t n)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0, s = 0;
            double all = 0;
            for (int64_t k = 0; k < r; k++) {
                const float u = up[i * r + k], d = down[k * n + j];
                if (k % TT_DOT_BLOCK == 0) {
                    if (k) sum = k == TT_DOT_BLOCK ? s : sum + s;
                    s = 0;
                }
                s = fma_soft_f32(u, d, s);
                all += (double)u * d;
            }
            sum = r > TT_DOT_BLOCK ? sum + s : s;
            exact[i * n + j] += (double)f * all;
            w[i * n + j] = fma_soft_f32(f, sum, w[i * n + j]);
        }
}

/* The weight `name` of two sets: bit by bit `want`, and near `exact`. */
static void compare(const tt_weights *w, const char *name, const float *want,
                    const double *exact, int64_t n, const char *what)
{
    static float got[MOST];
    double worst = 0;
    const tt_tensor *t = tt_weights_find(w, name);
    if (!expect(t && t->dtype == TT_F32 && tt_tensor_count(t) == n, "%s: %s",
                what, name)) return;
    tt_widen_at_f32(got, t, 0, n);
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(got[i] - exact[i]));
    expect(worst < 1e-6, "%s: %s is %g from float64", what, name, worst);
    expect_bits(name, got, want, (size_t)n * sizeof *got);
}

static int64_t base_values(const char *path, tt_model_kind kind,
                           const char *name, float *v, double *exact)
{
    tt_weights *w = open_with(path, kind, NULL);
    const tt_tensor *t = tt_weights_find(w, name);
    const int64_t n = t ? tt_tensor_count(t) : 0;
    if (n) tt_widen_at_f32(v, t, 0, n);
    for (int64_t i = 0; i < n; i++) exact[i] = v[i];
    tt_weights_close(w);
    return n;
}

static float base[MOST], up[MOST], down[MOST];
static double exact[MOST];

static void fill(int64_t m, int64_t rows, int64_t r, int64_t n)
{
    for (int64_t i = 0; i < rows * r; i++) up[i] = value(2 * m, i);
    for (int64_t i = 0; i < r * n; i++) down[i] = value(2 * m + 1, i);
}

/* ---- spellings ----------------------------------------------------------- */

static const struct spelling {
    const char *prefix, *down, *up;
    bool flat, diffusers;
    float alpha;                /* 0: none                                    */
    int64_t r;
} spellings[] = {
    {"diffusion_model.", ".lora_A.weight", ".lora_B.weight", false, false, 0,
     4},
    {"", ".lora_A", ".lora_B", false, false, 0, 1},
    {"lora_unet_", ".lora_down.weight", ".lora_up.weight", true, false, 2, 4},
    {"lycoris_", ".lora_down.weight", ".lora_up.weight", true, false, 3, 5},
    {"base_model.model.model.", ".lora_A.default.weight",
     ".lora_B.default.weight", false, false, 0, 8},
    {"generator.module._fsdp_wrapped_module.", ".lora_A.weight",
     ".lora_B.weight", false, false, 0, 300},
    {"transformer.", ".lora_A.weight", ".lora_B.weight", false, true, 16, 3},
    {"transformer.", ".lora.down.weight", ".lora.up.weight", false, true, 0, 3},
    {"lora_transformer_", ".lora_down.weight", ".lora_up.weight", true, true,
     1, 257},
    {"lora_unet__", ".lora_down.weight", ".lora_up.weight", true, false, 2, 4},
};

static void write_spelling(const char *path, const struct spelling *s)
{
    tt_st_writer *w;
    expect_ok(tt_st_create(ctx, &w, path), path);
    for (int m = 0; m < MODULES; m++) {
        const char *name = s->diffusers ? modules[m].diffusers : modules[m].wan;
        put(w, key_of(s->prefix, name, s->flat, s->down), s->r,
            modules[m].columns, 2 * m + 1);
        put(w, key_of(s->prefix, name, s->flat, s->up), modules[m].rows, s->r,
            2 * m);
        if (s->alpha)
            put_number(w, key_of(s->prefix, name, s->flat, ".alpha"), s->alpha);
    }
    expect_ok(tt_st_finish(w), path);
}

static bool has_key(const char *name)
{
    for (int m = 0; m < MODULES; m++) {
        const size_t n = strlen(modules[m].wan);
        if (!strncmp(name, modules[m].wan, n) && !strcmp(name + n, ".weight"))
            return true;
    }
    return false;
}

/* What has no key keeps type and bits. */
static void check_rest(const tt_weights *w, const char *what)
{
    tt_weights *was = open_with(tiny, TT_MODEL_DIT, NULL);
    bool same = tt_weights_count(w) == tt_weights_count(was);
    for (int64_t i = 0; same && i < tt_weights_count(w); i++) {
        const char *name = tt_weights_name(w, i);
        const tt_tensor *x = tt_weights_find(w, name);
        const tt_tensor *y = tt_weights_find(was, name);
        if (has_key(name)) continue;
        same = x->dtype == y->dtype
            && !memcmp(x->data, y->data, (size_t)tt_tensor_bytes(x));
    }
    expect(same, "%s: other weights", what);
    tt_weights_close(was);
}

static void check_spellings(void)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const struct spelling *s = &spellings[i];
        char list[1100];
        const char *path = at("lora.safetensors");
        write_spelling(path, s);
        snprintf(list, sizeof list, "%s:0.75", path);
        tt_weights *w = open_with(tiny, TT_MODEL_DIT, list);
        if (!w) continue;
        expect(strstr(tt_weights_origin(w), "LoRA lora.safetensors:0.75"),
               "origin: %s", tt_weights_origin(w));
        const float f = (float)(0.75 * (s->alpha ? s->alpha : (double)s->r)
                                / (double)s->r);
        for (int m = 0; m < MODULES; m++) {
            const char *name = key_of("", modules[m].wan, false, ".weight");
            const int64_t rows = modules[m].rows, n = modules[m].columns;
            base_values(tiny, TT_MODEL_DIT, name, base, exact);
            fill(m, rows, s->r, n);
            product(base, exact, up, down, f, rows, s->r, n);
            compare(w, name, base, exact, rows * n, s->prefix);
        }
        check_rest(w, s->prefix);
        tt_weights_close(w);
    }
}

/* PEFT has alpha in another file, and rules that change the factor. */
static void check_adapter(void)
{
    const char *path = at("lora.safetensors"), *name = "blocks.1.ffn.0.weight";
    const char *config = at("adapter_config.json");
    write_spelling(path, &spellings[0]);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(config, "w");
        if (!expect(f != NULL, "%s", config)) return;
        fprintf(f, "{\"r\": 4, \"lora_alpha\": 10, \"alpha_pattern\": {}, "
                "\"use_rslora\": %s}", i ? "true" : "false");
        fclose(f);
        tt_weights *w = NULL;
        tt_weights_options o = {.ema = -1, .lora = path};
        tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &o);
        if (i) {
            expect(ctx->status == TT_EUNSUPPORTED
                   && strstr(tt_message(ctx), "use_rslora"), "rank-stabilised: "
                   "%s", tt_message(ctx));
            tt_clear(ctx);
        } else if (expect_ok(ctx->status, "alpha of a config")) {
            base_values(tiny, TT_MODEL_DIT, name, base, exact);
            fill(2, 208, 4, 80);
            product(base, exact, up, down, 2.5f, 208, 4, 80);
            compare(w, name, base, exact, 208 * 80, "alpha of a config");
        }
        tt_weights_close(w);
    }
    unlink(config);
}

/* What is not as PEFT writes it, or more than it, is not ignored. */
static void check_settings(void)
{
    static const struct { const char *text, *word; } bad[] = {
        {"[1]", "JSON object"}, {"{\"lora_alpha\": \"8\"}", "a number"},
        {"{\"use_rslora\": 1}", "use_rslora"},
        {"{\"peft_type\": \"LOHA\"}", "LOHA"}};
    const char *path = at("lora.safetensors"), *name = "blocks.1.ffn.0.weight";
    const char *config = at("adapter_config.json");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *f = fopen(config, "w");
        if (!expect(f != NULL, "%s", config)) return;
        fputs(bad[i].text, f);
        fclose(f);
        tt_weights *w = NULL;
        tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &(tt_weights_options){
            .ema = -1, .lora = path});
        expect(ctx->status && strstr(tt_message(ctx), bad[i].word)
               && strstr(tt_message(ctx), config), "%s: %s", bad[i].text,
               tt_message(ctx));
        tt_clear(ctx);
        tt_weights_close(w);
    }
    unlink(config);
    /* as Diffusers writes it, into the file */
    tt_st_writer *f;
    expect_ok(tt_st_create(ctx, &f, path), path);
    tt_st_meta(f, "lora_adapter_metadata", "{\"transformer.r\": 4, "
               "\"transformer.lora_alpha\": 10}");
    put(f, "transformer.blocks.1.ffn.net.0.proj.lora_A.weight", 4, 80, 1);
    put(f, "transformer.blocks.1.ffn.net.0.proj.lora_B.weight", 208, 4, 0);
    expect_ok(tt_st_finish(f), path);
    tt_weights *w = open_with(tiny, TT_MODEL_DIT, path);
    base_values(tiny, TT_MODEL_DIT, name, base, exact);
    fill(0, 208, 4, 80);
    product(base, exact, up, down, 2.5f, 208, 4, 80);
    compare(w, name, base, exact, 208 * 80, "alpha of metadata");
    tt_weights_close(w);
}

/* [6, d] is [1, 6, d] wherever it goes: bound, merged and written. */
static void check_shape(void)
{
    const char *path = at("modulation.safetensors");
    const char *lora = at("lora.safetensors"), *name = "blocks.0.modulation";
    const char *out = at("whole.safetensors");
    tt_st_writer *f;
    expect_ok(tt_st_create(ctx, &f, path), path);
    put(f, "blocks.0.self_attn.q.weight", 80, 80, 3);
    put(f, name, 6, 80, 4);
    expect_ok(tt_st_finish(f), path);
    expect_ok(tt_st_create(ctx, &f, lora), lora);
    put(f, "blocks.0.diff_m", 6, 80, 1);
    expect_ok(tt_st_finish(f), lora);
    for (int merged = 0; merged < 2; merged++) {
        tt_convert_options o = {.kind = -1, .ema = -1,
                                .lora = merged ? lora : NULL};
        tt_file *file;
        base_values(path, TT_MODEL_DIT, name, base, exact);
        for (int i = 0; merged && i < 480; i++)
            base[i] = fma_soft_f32(1, value(1, i), base[i]);
        if (!expect_ok(tt_convert(ctx, out, path, &o), out)
            || !expect_ok(tt_file_open(ctx, &file, out), out)) return;
        const tt_entry *e = tt_file_find(file, name);
        expect(e && e->t.rank == 3 && e->t.dim[0] == 1 && e->t.dim[1] == 6,
               "[1, 6, d] is written");
        float got[480] = {0};
        if (e) tt_widen_at_f32(got, &e->t, 0, 480);
        expect_bits(name, got, base, sizeof got);
        tt_file_close(file);
    }
}

/* One after the other, in the order given: another order has other bits. */
static void check_two(void)
{
    char list[2200];
    const char *name = "blocks.1.ffn.0.weight";
    const char *a = at("a.safetensors"), *b = at("b.safetensors");
    write_spelling(a, &spellings[0]);
    write_spelling(b, &spellings[2]);
    snprintf(list, sizeof list, "%s\n%s:-1.5", a, b);
    tt_weights *w = open_with(tiny, TT_MODEL_DIT, list);
    fesetround(FE_UPWARD); /* a program that does so has the same bits */
    if (w) tt_weights_find(w, name);
    expect(fegetround() == FE_UPWARD, "its rounding again");
    fesetround(FE_TONEAREST);
    base_values(tiny, TT_MODEL_DIT, name, base, exact);
    fill(2, 208, 4, 80);
    product(base, exact, up, down, 1, 208, 4, 80);
    product(base, exact, up, down, -0.75f, 208, 4, 80);
    if (w) compare(w, name, base, exact, 208 * 80, "two");
    tt_weights_close(w);
}

/* By instructions and without: columns that fill tiles, and that do not. */
static void check_rows(void)
{
    static float x[300], y[300];
    for (int64_t n = 1; n < 300; n += 37)
        for (int64_t r = 1; r < 520; r += 257) {
            fill(n, 1, r, n);
            for (int64_t i = 0; i < n; i++) x[i] = y[i] = value(3, i);
            lora_row_here()(x, up, down, 0.3f, r, n);
            lora_row_plain(y, up, down, 0.3f, r, n);
            expect_bits("a row", x, y, (size_t)n * sizeof *x);
        }
}

/* ---- differences --------------------------------------------------------- */

static void check_differences(void)
{
    static const struct { const char *key, *wan; int64_t a, b; } row[] = {
        {"diffusion_model.blocks.0.norm3.diff", "blocks.0.norm3.weight", 1, 80},
        {"diffusion_model.blocks.0.self_attn.norm_q.diff",
         "blocks.0.self_attn.norm_q.weight", 1, 80},
        {"diffusion_model.blocks.1.ffn.0.diff_b", "blocks.1.ffn.0.bias", 1,
         208},
        {"diffusion_model.blocks.2.diff_m", "blocks.2.modulation", 6, 80},
        {"diffusion_model.head.diff_m", "head.modulation", 2, 80},
        {"diffusion_model.blocks.1.modulation.diff", "blocks.1.modulation", 6,
         80},
        {"lora_unet_head_head.diff", "head.head.weight", 64, 80},
        {"transformer.proj_out.diff_b", "head.head.bias", 1, 64}};
    enum { ROWS = sizeof row / sizeof *row };
    const char *path = at("diff.safetensors");
    char list[1100];
    tt_st_writer *f;
    expect_ok(tt_st_create(ctx, &f, path), path);
    for (int i = 0; i < ROWS; i++) put(f, row[i].key, row[i].a, row[i].b, i);
    expect_ok(tt_st_finish(f), path);
    snprintf(list, sizeof list, "%s:0.5", path);
    tt_weights *w = open_with(tiny, TT_MODEL_DIT, list);
    for (int i = 0; w && i < ROWS; i++) {
        const int64_t n = base_values(tiny, TT_MODEL_DIT, row[i].wan, base,
                                      exact);
        for (int64_t k = 0; k < n; k++) {
            base[k] = fma_soft_f32(0.5f, value(i, k), base[k]);
            exact[k] += 0.5 * value(i, k);
        }
        compare(w, row[i].wan, base, exact, row[i].a * row[i].b, "diff");
    }
    tt_weights_close(w);
}

/* A pair and a difference for one weight: the pair first. */
static void check_both(void)
{
    const char *path = at("both.safetensors"), *name = "head.head.weight";
    tt_st_writer *f;
    expect_ok(tt_st_create(ctx, &f, path), path);
    put(f, "head.head.diff", 64, 80, 9);
    put(f, "head.head.lora_A.weight", 2, 80, 1);
    put(f, "head.head.lora_B.weight", 64, 2, 0);
    expect_ok(tt_st_finish(f), path);
    tt_weights *w = open_with(tiny, TT_MODEL_DIT, path);
    base_values(tiny, TT_MODEL_DIT, name, base, exact);
    fill(0, 64, 2, 80);
    product(base, exact, up, down, 1, 64, 2, 80);
    for (int64_t k = 0; k < 64 * 80; k++) {
        base[k] = fma_soft_f32(1, value(9, k), base[k]);
        exact[k] += value(9, k);
    }
    if (w) compare(w, name, base, exact, 64 * 80, "both");
    expect(w && w->merged == 64 * 80 * 4 && w->merging == 2.0 * 64 * 80 * 3,
           "what merging takes: %lld bytes", w ? (long long)w->merged : -1);
    tt_weights_close(w);
}

/* ---- other weights ------------------------------------------------------- */

/* A matrix in fp8 with a scale. */
static void check_fp8(void)
{
    const char *path = at("fp8.safetensors"), *lora = at("lora.safetensors");
    const char *name = "blocks.0.self_attn.q.weight";
    static uint8_t stored[80 * 80];
    const float scale = 0.01f;
    tt_weights *was = open_with(tiny, TT_MODEL_DIT, NULL), *w;
    tt_st_writer *f;
    expect_ok(tt_st_create(ctx, &f, path), path);
    for (int64_t i = 0; i < tt_weights_count(was); i++) {
        const char *n = tt_weights_name(was, i);
        const tt_tensor *t = tt_weights_find(was, n);
        if (strcmp(n, name))
            tt_st_add(f, n, t->dtype, t->rank, t->dim, t->data);
    }
    for (int i = 0; i < 80 * 80; i++) stored[i] = (uint8_t)(i * 7 % 120);
    tt_st_add(f, name, TT_F8_E4M3, 2, (int64_t[]){80, 80}, stored);
    tt_st_add(f, "blocks.0.self_attn.q.scale_weight", TT_F32, 0, NULL, &scale);
    expect_ok(tt_st_finish(f), path);
    tt_weights_close(was);
    write_spelling(lora, &spellings[0]);
    base_values(path, TT_MODEL_DIT, name, base, exact);
    fill(0, 80, 4, 80);
    product(base, exact, up, down, 1, 80, 4, 80);
    w = open_with(path, TT_MODEL_DIT, lora);
    if (w) compare(w, name, base, exact, 80 * 80, "fp8");
    tt_weights_close(w);
}

/* Keys of both parts in one file: each takes its own. */
static void check_text_encoder(void)
{
    static const struct { const char *prefix, *q; bool flat; } how[] = {
        {"text_encoder.", "encoder.block.1.layer.0.SelfAttention.q", false},
        {"lora_te1_", "encoder.block.1.layer.0.SelfAttention.q", true},
        {"text_encoders.umt5xxl.transformer.", "blocks.1.attn.q", false},
        {"", "blocks.1.attn.q", false}};
    const char *t5 = ref_path("t5_basic"), *path = at("both.safetensors");
    const char *name = "blocks.1.attn.q.weight";
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        tt_weights *w = open_with(t5, TT_MODEL_T5, NULL);
        const tt_tensor *t = tt_weights_find(w, name);
        const int64_t rows = t->dim[0], n = t->dim[1];
        tt_weights_close(w);
        tt_st_writer *f;
        expect_ok(tt_st_create(ctx, &f, path), path);
        put(f, key_of(how[i].prefix, how[i].q, how[i].flat, ".lora_A.weight"),
            3, n, 1);
        put(f, key_of(how[i].prefix, how[i].q, how[i].flat, ".lora_B.weight"),
            rows, 3, 0);
        put(f, "lora_unet_blocks_0_norm3.diff", 1, 80, 5);
        expect_ok(tt_st_finish(f), path);
        w = open_with(t5, TT_MODEL_T5, path);
        base_values(t5, TT_MODEL_T5, name, base, exact);
        fill(0, rows, 3, n);
        product(base, exact, up, down, 1, rows, 3, n);
        if (w) compare(w, name, base, exact, rows * n, how[i].prefix);
        expect(weights_lora_others(w) == 1, "keys of the transformer");
        tt_weights_close(w);
        w = open_with(tiny, TT_MODEL_DIT, path);
        expect(weights_lora_others(w) == 2, "keys of the text encoder");
        tt_weights_close(w);
        expect_ok(tt_st_create(ctx, &f, path), path);
        put(f, "lora_unet_blocks_0_norm3.diff", 1, 80, 5);
        expect_ok(tt_st_finish(f), path);
        w = open_with(t5, TT_MODEL_T5, path);
        expect_status(tt_weights_lora_used(w), TT_ESHAPE, "nothing for it");
        tt_weights_close(w);
    }
}

/* The dictionary generator_lora of a training state; strided tensors. */
static void check_checkpoint(void)
{
    const char *path = ref_path("lora/generator_lora.pt");
    tt_file *f;
    tt_weights *w = open_with(tiny, TT_MODEL_DIT, path);
    expect_ok(tt_file_open(ctx, &f, path), path);
    const char *const key = "generator_lora.base_model.model.model.blocks.2."
                            "ffn.2.lora_%c.weight";
    char name[128];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, key, "BA"[i]);
        const tt_entry *e = tt_file_find(f, name);
        if (expect(e != NULL, "%s", name))
            tt_widen_at_f32(i ? down : up, &e->t, 0, tt_tensor_count(&e->t));
    }
    base_values(tiny, TT_MODEL_DIT, "blocks.2.ffn.2.weight", base, exact);
    product(base, exact, up, down, 1, 80, 2, 208);
    if (w) compare(w, "blocks.2.ffn.2.weight", base, exact, 80 * 208, path);
    char words[300];
    expect(tt_lora_describe(ctx, words, sizeof words, f)
               && !strcmp(words, "LoRA for the transformer of width 80, rank "
                          "2, without alpha: 2 pairs, 0 differences; --lora "
                          "FILE merges it"), "%s", words);
    tt_file_close(f);
    tt_weights_close(w);
    tt_weights_open(ctx, &w, path, TT_MODEL_DIT, NULL);
    expect(ctx->status == TT_EUNSUPPORTED
           && strstr(tt_message(ctx), "--lora FILE"), "as a model: %s",
           tt_message(ctx));
    tt_clear(ctx);
}

/* ---- convert ------------------------------------------------------------- */

static void check_convert(void)
{
    const char *out = at("merged.safetensors"), *path = at("lora.safetensors");
    write_spelling(path, &spellings[2]);
    tt_convert_options o = {.kind = -1, .ema = -1, .lora = path};
    tt_weights *x = open_with(tiny, TT_MODEL_DIT, path), *y = NULL;
    o.kind = TT_MODEL_DIT;
    expect_ok(tt_convert(ctx, out, tiny, &o), out);
    unlink(out);
    o.kind = -1;
    if (expect_ok(tt_convert(ctx, out, tiny, &o), out))
        y = open_with(out, TT_MODEL_DIT, NULL);
    for (int64_t i = 0; x && y && i < tt_weights_count(x); i++) {
        const char *name = tt_weights_name(x, i);
        const tt_tensor *a = tt_weights_find(x, name);
        const tt_tensor *b = tt_weights_find(y, name);
        char of_a[65], of_b[65];
        expect(b && a->dtype == b->dtype && !tt_tensor_digest(ctx, of_a, a)
               && !tt_tensor_digest(ctx, of_b, b) && !strcmp(of_a, of_b),
               "convert: %s", name);
    }
    tt_weights_close(x);
    tt_weights_close(y);
    o.kind = TT_MODEL_T5;
    tt_convert(ctx, at("t5.safetensors"), ref_path("t5_basic"), &o);
    expect(ctx->status == TT_ESHAPE
           && strstr(tt_message(ctx), "holds nothing for the umT5"),
           "nothing to merge: %s", tt_message(ctx));
    tt_clear(ctx);
}

/* ---- refused ------------------------------------------------------------- */

/* A file with the good pair of blocks.0.self_attn.q and one more tensor. */
static void refused(const char *more, int64_t a, int64_t b, float x,
                    tt_status want, const char *word)
{
    const char *path = at("bad.safetensors");
    static float v[MOST];
    tt_st_writer *f;
    tt_weights *w = NULL;
    for (int64_t i = 0; i < a * b; i++) v[i] = x;
    expect_ok(tt_st_create(ctx, &f, path), path);
    put(f, "blocks.0.self_attn.q.lora_A.weight", 4, 80, 1);
    put(f, "blocks.0.self_attn.q.lora_B.weight", 80, 4, 0);
    tt_st_add(f, more, TT_F32, a * b > 1 ? 2 : 0, (int64_t[]){a, b}, v);
    expect_ok(tt_st_finish(f), path);
    const tt_weights_options o = {.ema = -1, .lora = path};
    tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &o);
    if (w && !ctx->status) tt_weights_find(w, "blocks.1.ffn.2.bias");
    expect(ctx->status == want && strstr(tt_message(ctx), word)
               && strstr(tt_message(ctx), "bad.safetensors"),
           "%s: %d, expected %d and '%s': %s", more, (int)ctx->status,
           (int)want, word, tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(w);
}

/* A pair that fits no weight; the second is [80, r]. */
static void refused_pair(const char *first, const char *second, int rank,
                         const int64_t *dim, int64_t r, const char *word)
{
    const char *path = at("bad.safetensors");
    static const float v[80 * 64];
    tt_st_writer *f;
    tt_weights *w = NULL;
    expect_ok(tt_st_create(ctx, &f, path), path);
    tt_st_add(f, first, TT_F32, rank, dim, v);
    tt_st_add(f, second, TT_F32, 2, (int64_t[]){80, r}, v);
    expect_ok(tt_st_finish(f), path);
    tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &(tt_weights_options){
        .ema = -1, .lora = path});
    expect(ctx->status && strstr(tt_message(ctx), word), "%s: %s", first,
           tt_message(ctx));
    tt_clear(ctx);
    tt_weights_close(w);
}

static void check_refused(void)
{
    refused_pair("blocks.0.self_attn.q.lora_A.default.weight",
                 "blocks.0.self_attn.q.lora_B.x.weight", 2,
                 (int64_t[]){4, 80}, 4, "another adapter");
    refused_pair("blocks.0.self_attn.q.lora_A.weight",
                 "blocks.0.self_attn.q.lora_B.weight", 2, (int64_t[]){4, 80},
                 8, "lora_B.weight: it is [80, 8], of rank 8, and blocks.0."
                 "self_attn.q.lora_A.weight is [4, 80], of rank 4");
    refused_pair("patch_embedding.lora_A.weight",
                 "patch_embedding.lora_B.weight", 5,
                 (int64_t[]){4, 1, 2, 2, 16}, 4, "for another model");
    refused("blocks.7.self_attn.q.diff", 80, 80, 0, TT_ESHAPE,
            "1 of its 3 keys fit no weight of the diffusion transformer");
    refused("blocks.7.self_attn.q.diff", 80, 80, 0, TT_ESHAPE,
            "blocks.7.self_attn.q.diff");
    refused("blocks.0.self_attn.q.lora_B.bias", 1, 80, 0, TT_ESHAPE,
            "lora_B.bias");
    refused("blocks.0.self_attn.k.lora_A.weight", 4, 80, 0, TT_EFORMAT,
            "lora_up (lora_B) is missing");
    refused("blocks.0.self_attn.k.lora_B.weight", 80, 4, 0, TT_EFORMAT,
            "lora_down (lora_A) is missing");
    refused("blocks.0.self_attn.k.alpha", 1, 1, 4, TT_ESHAPE, "k.alpha");
    refused("vae.decoder.conv1.diff", 4, 4, 0, TT_ESHAPE, "vae.decoder");
    refused("blocks.0.self_attn.q.dora_scale", 1, 80, 1, TT_EUNSUPPORTED,
            "DoRA");
    refused("blocks.0.self_attn.q.lora_magnitude_vector", 1, 80, 1,
            TT_EUNSUPPORTED, "DoRA");
    refused("lora_unet_blocks_0_ffn_0.lokr_w1", 4, 4, 1, TT_EUNSUPPORTED,
            "LoKr");
    refused("lora_unet_blocks_0_ffn_0.hada_w1_a", 4, 4, 1, TT_EUNSUPPORTED,
            "LoHa");
    refused("blocks.0.self_attn.k.diff", 80, 81, 0, TT_ESHAPE,
            "for another model");
    refused("diffusion_model.blocks.0.self_attn.q.diff", 4, 80, 0, TT_ESHAPE,
            "[4, 80], and the weight blocks.0.self_attn.q.weight");
    refused("blocks.0.self_attn.q.alpha", 1, 1, INFINITY, TT_EFORMAT,
            "one finite number");
    refused("blocks.0.self_attn.q.alpha", 80, 2, 1, TT_EFORMAT,
            "one finite number");
    refused("blocks.1.ffn.2.diff_b", 1, 80, NAN, TT_EFORMAT, "not a finite");
    refused("lora_unet_blocks_0_self_attn_q.lora_A.weight", 4, 80, 0,
            TT_EFORMAT, "twice");
    refused("text_encoder.vae.x.diff", 4, 4, 0, TT_ESHAPE, "text_encoder.vae");
}

/* Lists: the strength, and what is no file. */
static void list_is(const char *list, const char *path, double strength)
{
    tt_lora l;
    const char *rest = list;
    expect_ok(tt_lora_next(ctx, &rest, &l), list);
    expect(!strcmp(l.path, path) && l.strength == strength, "%s: %s %g", list,
           l.path, l.strength);
}

static void check_lists(void)
{
    tt_lora l;
    const char *bad = "a.safetensors:much";
    list_is("a.safetensors", "a.safetensors", 1);
    list_is("a.safetensors:0.5", "a.safetensors", 0.5);
    list_is("a.safetensors:-2\nb", "a.safetensors", -2);
    list_is("c:/a:1e-3", "c:/a", 1e-3);
    expect(tt_lora_next(ctx, &bad, &l) == TT_EINVAL
           && strstr(tt_message(ctx), "is no strength"), "%s", tt_message(ctx));
    tt_clear(ctx);
    /* a file of that very name */
    char name[1100];
    snprintf(name, sizeof name, "%s", at("lora:2"));
    FILE *f = fopen(name, "w");
    if (f) fclose(f);
    list_is(name, name, 1);
    tt_weights *w = NULL;
    tt_weights_options o = {.ema = -1, .lora = "/nowhere/lora.safetensors"};
    expect_status(tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &o), TT_EIO,
                  "no file");
    o.lora = tiny;               /* not a LoRA */
    char path[600];
    snprintf(path, sizeof path, "%s/diffusion_pytorch_model.safetensors", tiny);
    o.lora = path;
    tt_weights_open(ctx, &w, tiny, TT_MODEL_DIT, &o);
    expect(ctx->status == TT_ESHAPE && strstr(tt_message(ctx), "is no LoRA")
               && strstr(tt_message(ctx), "--checkpoint FILE"), "%s",
           tt_message(ctx));
    tt_clear(ctx);
    o.lora = at("lora.safetensors");
    tt_weights_open(ctx, &w, ref_path("vae_fullwidth"), TT_MODEL_VAE, &o);
    expect(ctx->status != TT_OK, "into a VAE");
    tt_clear(ctx);
}

int main(void)
{
    ctx = test_begin("io/lora");
    if (!folder_make()) return test_end();
    tiny = strdup(ref_path("dit/models/tiny_b"));
    check_rows();
    check_spellings();
    check_adapter();
    check_settings();
    check_shape();
    check_two();
    check_differences();
    check_both();
    check_fp8();
    check_text_encoder();
    check_checkpoint();
    check_convert();
    check_refused();
    check_lists();
    folder_remove();
    free((char *)(uintptr_t)tiny);
    return test_end();
}
