/* test_scales.c: 8-bit weights and their scales, in every spelling, and those
 * that must be refused. Self-made files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"
#include "tests/harness.h"

static tt_ctx *ctx;
static tt_arena arena;
static char path[600], out[600];

#define Q "encoder.block.0.layer.0.SelfAttention.q."
#define FP8 "{\"format\": \"float8_e4m3fn\"}"

typedef struct scaled {
    const char *what;
    tt_dtype type;           /* of the weight, [3, 2]                        */
    const char *scale;       /* name of the scale; NULL: none                */
    int rank;
    int64_t dim[2];
    float value[4];
    const char *note;        /* comfy_quant of the layer; NULL: none         */
    const char *meta;        /* _quantization_metadata; NULL: none           */
    const char *word;        /* of the refusal; NULL: accepted               */
} scaled;

static const unsigned char codes[24] = {0x38, 0xb8, 0x40, 0x01, 0x7e, 0x3c};
static const float f8[6] = {1, -1, 2, 0x1p-9f, 448, 1.5f};

static float stored(const scaled *c, int i)
{
    return c->type == TT_I8 ? (float)(signed char)codes[i] : f8[i];
}

static void make_file(const scaled *c)
{
    const float one[1] = {1};
    tt_st_writer *o;
    expect_ok(tt_st_create(ctx, &o, path), path);
    if (c->meta) tt_st_meta(o, "_quantization_metadata", c->meta);
    tt_st_add(o, "shared.weight", TT_F32, 1, (int64_t[]){1}, one);
    tt_st_add(o, Q "weight", c->type, 2, (int64_t[]){3, 2}, codes);
    tt_st_add(o, Q "input_scale", TT_F32, 0, NULL, one);
    if (c->scale)
        tt_st_add(o, c->scale, TT_F32, c->rank, c->dim, c->value);
    if (c->note)
        tt_st_add(o, Q "comfy_quant", TT_U8, 1,
                  (int64_t[]){(int64_t)strlen(c->note)}, c->note);
    expect_ok(tt_st_finish(o), path);
}

static void accepted(const scaled *c, tt_weights *w)
{
    const bool rows = c->rank > 0 && c->dim[0] == 3;
    const tt_tensor *t = tt_weights_find(w, "blocks.0.attn.q.weight");
    tt_real *x = t ? tt_read_real(ctx, &arena, t) : NULL;
    if (!expect(x && tt_weights_count(w) == 2, "%s: %lld tensors", c->what,
                (long long)tt_weights_count(w))) return;
    for (int i = 0; i < 6; i++) {
        const float by = c->scale ? c->value[rows ? i / 2 : 0] : 1;
        expect(x[i] == (tt_real)stored(c, i) * (tt_real)by, "%s: value %d is "
               "%g", c->what, i, (double)x[i]);
    }
}

static void one(const scaled *c)
{
    tt_weights *w = NULL;
    make_file(c);
    const tt_status s = tt_weights_open(ctx, &w, path, TT_MODEL_T5, NULL);
    if (c->word) {
        expect(s && strstr(tt_message(ctx), c->word)
                   && strstr(tt_message(ctx), path), "%s: %s", c->what,
               s ? tt_message(ctx) : "accepted");
        tt_clear(ctx);
        /* nor are its codes copied as if they were numbers */
        tt_convert(ctx, out, path, &(tt_convert_options){.kind = -1, .ema = -1,
                                                         .dtype = TT_F32});
        expect(ctx->status && strstr(tt_message(ctx), c->word)
                   && access(out, F_OK), "%s: convert: %s", c->what,
               ctx->status ? tt_message(ctx) : "accepted");
        tt_clear(ctx);
    } else if (expect_ok(s, c->what)) {
        accepted(c, w);
    }
    tt_weights_close(w);
}

#define E4 TT_F8_E4M3

static void all(void)
{
#define META(format) "{\"format_version\": \"1.0\", \"layers\": {\"a\": "      \
                     "{\"format\": \"" format "\"}}}"
#define META_Q(format) "{\"layers\": {\"encoder.block.0.layer.0.Self"          \
                       "Attention.q\": {\"format\": \"" format "\"}}}"
#define IS_F8 "q.weight' is F8_E4M3, expected "
    static const scaled list[] = {
        {"one", E4, Q "scale_weight", 0, {0}, {0.125f}, 0, 0, 0},
        {"[1]", E4, Q "weight_scale", 1, {1}, {3}, 0, 0, 0},
        {"[1, 1]", E4, Q "weight_scale", 2, {1, 1}, {3}, 0, 0, 0},
        {"rows [3]", E4, Q "weight_scale", 1, {3}, {3, 0.3f, 7}, 0, 0, 0},
        {"rows [3, 1]", E4, Q "scale_weight", 2, {3, 1}, {3, 0.3f, 7}, 0, 0, 0},
        {"int8", TT_I8, Q "weight_scale", 0, {0}, {0.01f}, 0, 0, 0},
        {"int8 rows", TT_I8, Q "weight_scale", 2, {3, 1}, {1, .1f, 7}, 0, 0, 0},
        {"note", E4, Q "weight_scale", 0, {0}, {0.5f}, FP8, 0, 0},
        {"metadata", E4, Q "weight_scale", 0, {0}, {0.5f}, 0,
         META("float8_e4m3fn"), 0},
        {"metadata of it", E4, Q "weight_scale", 0, {0}, {0.5f}, 0,
         META_Q("float8_e4m3fn"), 0},
        {"note of e5m2", TT_F8_E5M2, Q "weight_scale", 0, {0}, {0.5f},
         FP8, 0, "q.weight' is F8_E5M2, expected F8_E4M3"},
        {"note of int8", E4, Q "weight_scale", 0, {0}, {0.5f},
         "{\"format\": \"int8_tensorwise\"}", 0, IS_F8 "I8"},
        {"metadata of e5m2", E4, Q "weight_scale", 0, {0}, {0.5f}, 0,
         META_Q("float8_e5m2"), IS_F8 "F8_E5M2"},
        {"metadata of int8", E4, Q "weight_scale", 0, {0}, {0.5f}, 0,
         META_Q("int8_tensorwise"), IS_F8 "I8"},
        {"float32", TT_F32, Q "weight_scale", 0, {0}, {0.5f}, FP8, 0,
         "q.weight' is F32, expected F8_E4M3"},
        {"plain", E4, NULL, 0, {0}, {0}, 0, 0, 0},
        {"note alone", E4, NULL, 0, {0}, {0}, FP8, 0, "without its scale"},
        {"metadata alone", E4, NULL, 0, {0}, {0}, 0, META("float8_e5m2"),
         "without its scale"},
        {"other", E4, "encoder.block.0.layer.0.SelfAttention.k.weight_scale",
         0, {0}, {1}, 0, 0, "without its scale"},
        {"columns", E4, Q "weight_scale", 2, {1, 3}, {1, 1, 1}, 0, 0,
         "is [1, 3], expected"},
        {"blocks", E4, Q "weight_scale", 2, {2, 2}, {1, 1, 1, 1}, 0, 0,
         "per block"},
        {"two of three", E4, Q "weight_scale", 1, {2}, {1, 1}, 0, 0, "[3, 1]"},
        {"four", TT_I8, Q "weight_scale", 2, {4, 1}, {1, 1, 1, 1}, 0, 0,
         "is [4, 1]"},
        {"none", E4, Q "weight_scale", 1, {0}, {0}, 0, 0, "is [0]"},
        {"zero", E4, Q "weight_scale", 0, {0}, {0}, 0, 0, "positive"},
        {"negative", E4, Q "weight_scale", 0, {0}, {-1}, 0, 0, "positive"},
        {"NaN", E4, Q "weight_scale", 0, {0}, {NAN}, 0, 0, "positive"},
        {"NaN row", TT_I8, Q "weight_scale", 1, {3}, {1, 1, NAN}, 0, 0,
         "positive"},
        {"infinite row", E4, Q "weight_scale", 1, {3}, {1, INFINITY, 1}, 0, 0,
         "positive"},
        {"nvfp4", E4, Q "weight_scale", 0, {0}, {1}, "{\"format\": \"nvfp4\"}",
         0, "quantised as nvfp4"},
        {"rotated", TT_I8, Q "weight_scale", 0, {0}, {1},
         "{\"format\": \"int8_tensorwise\", \"convrot\": true}", 0, "convrot"},
        {"mxfp8", E4, Q "weight_scale", 0, {0}, {1}, 0, META("mxfp8"),
         "a is quantised as mxfp8"},
        {"rotated by a number", TT_I8, Q "weight_scale", 0, {0}, {1},
         "{\"format\": \"int8_tensorwise\", \"convrot\": 1}", 0, "convrot"},
        {"a list of layers", E4, Q "weight_scale", 0, {0}, {1}, 0,
         "{\"layers\": [1]}", "expected an object, and in it layers"},
        {"a list", E4, Q "weight_scale", 0, {0}, {1}, 0, "[1]",
         "_quantization_metadata: expected an object"},
        {"no JSON", E4, Q "weight_scale", 0, {0}, {1}, "{\"format\": ", 0,
         "comfy_quant': not valid JSON"},
        {"no format", E4, Q "weight_scale", 0, {0}, {1}, "[]", 0,
         "without a name"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) one(&list[i]);
}

/* What belongs to no weight stays for the model to refuse. */
static void lonely(void)
{
    static const char *const name[] = {"shared.comfy_quant",
                                       "norm.comfy_quant", "norm.weight_scale"};
    const float one[1] = {1};
    for (int i = 0; i < 3; i++) {
        tt_st_writer *o;
        tt_weights *w = NULL;
        expect_ok(tt_st_create(ctx, &o, path), path);
        tt_st_add(o, "shared.weight", E4, 1, (int64_t[]){1}, codes);
        tt_st_add(o, "shared.weight_scale", TT_F32, 1, (int64_t[]){1}, one);
        if (i < 2)
            tt_st_add(o, name[i], TT_U8, 1, (int64_t[]){sizeof FP8 - 1}, FP8);
        else
            tt_st_add(o, name[i], TT_F32, 1, (int64_t[]){1}, one);
        expect_ok(tt_st_finish(o), path);
        expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_T5, NULL), name[i]);
        expect(tt_weights_count(w) == 1 + (i > 0), "%s: %lld tensors", name[i],
               (long long)tt_weights_count(w));
        tt_weights_close(w);
    }
}

int main(void)
{
    ctx = test_begin("io/scales");
    tmp_path(path, sizeof path, "scales");
    tmp_path(out, sizeof out, "converted");
    all();
    lonely();
    unlink(path);
    tt_arena_free(&arena);
    return test_end();
}
