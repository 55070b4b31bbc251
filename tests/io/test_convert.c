/* test_convert.c: conversion to safetensors. Properties: there and back gives
 * the same bits; every Diffusers name is the published one; rounding is
 * tt_bf16_from_f32's and tt_f16_from_f32's; a refused conversion leaves no
 * file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/folder.h"

static tt_ctx *ctx;

static bool run(const char *out, const char *in, tt_dtype dtype,
                bool diffusers)
{
    tt_convert_options o = {.kind = -1, .ema = -1, .dtype = dtype,
                            .diffusers = diffusers};
    return expect_ok(tt_convert(ctx, out, in, &o), in);
}

static bool same_view(const tt_tensor *x, const tt_tensor *y)
{
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (int d = 0; same && d < x->rank; d++) same = x->dim[d] == y->dim[d];
    return same && !memcmp(x->data, y->data, (size_t)tt_tensor_bytes(x));
}

/* Wan -> Diffusers -> Wan. */
static void there_and_back(const char *what, tt_model_kind kind,
                           const char *in)
{
    const char *d = at("d.safetensors"), *b = at("b.safetensors");
    tt_weights *x = NULL, *y = NULL;
    if (!run(d, in, TT_NONE, true) || !run(b, d, TT_NONE, false)) return;
    expect_ok(tt_weights_open(ctx, &x, in, kind, NULL), in);
    expect_ok(tt_weights_open(ctx, &y, d, kind, NULL), d);
    if (x && y) {
        expect(strstr(tt_weights_origin(y), "Diffusers")
                   || strstr(tt_weights_origin(y), "Hugging"),
               "%s: %s", what, tt_weights_origin(y));
        tt_weights_close(y);
        expect_ok(tt_weights_open(ctx, &y, b, kind, NULL), b);
    }
    if (x && y && expect(tt_weights_count(x) == tt_weights_count(y), "%s",
                         what))
        for (int64_t i = 0; i < tt_weights_count(x); i++) {
            const char *name = tt_weights_name(x, i);
            const tt_tensor *t = tt_weights_find(y, name);
            expect(t && same_view(tt_weights_find(x, name), t), "%s: %s",
                   what, name);
        }
    tt_weights_close(x);
    tt_weights_close(y);
    unlink(d);
    unlink(b);
}

/* All 194 names of the VAE. */
static void vae_names(void)
{
    char line[300], wan[100], shape[60], diffusers[120];
    const char *in = at("v.safetensors"), *out = at("w.safetensors");
    FILE *f = fopen(ref_path("vae_fullwidth/keys.tsv"), "r");
    tt_st_writer *w;
    tt_file *g = NULL;
    float n = 0;
    if (!expect(f != NULL, "keys.tsv")) return;
    expect_ok(tt_st_create(ctx, &w, in), in);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%99s %59s %119s", wan, shape, diffusers) == 3
            && shape[0] == '[') {
            int rank = 1;
            for (const char *p = shape; *p; p++) rank += *p == ',';
            tt_st_add(w, wan, TT_F32, rank, (int64_t[]){1, 1, 1, 1, 1}, &n);
            n++;
        }
    expect_ok(tt_st_finish(w), in);
    expect(n == 194, "%g keys", (double)n);
    if (run(out, in, TT_NONE, true)
        && expect_ok(tt_file_open(ctx, &g, out), out)) {
        rewind(f);
        n = 0;
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "%99s %59s %119s", wan, shape, diffusers) != 3
                || shape[0] != '[')
                continue;
            const tt_entry *e = tt_file_find(g, diffusers);
            float got = -1;
            if (e) tt_widen_at_f32(&got, &e->t, 0, 1);
            expect(got == n, "%s is not %s", wan, diffusers);
            n++;
        }
    }
    tt_file_close(g);
    fclose(f);
    unlink(in);
    unlink(out);
}

/* 100000 values: more than one piece. */
static void types(void)
{
    enum { N = 100000 };
    static float x[N];
    const char *in = at("x.safetensors"), *out = at("y.safetensors");
    static const tt_dtype to[] = {TT_F32, TT_BF16, TT_F16};
    int64_t dim[] = {N / 50, 50}, id[] = {7};
    tt_st_writer *w;
    tt_file *f;
    uint32_t s = 1;
    for (int i = 0; i < N; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = ((float)(s >> 8) - 8388608.0f) * 0x1p-12f;
    }
    expect_ok(tt_st_create(ctx, &w, in), in);
    tt_st_add(w, "x", TT_F32, 2, dim, x);
    tt_st_add(w, "step", TT_I64, 0, dim, id);
    tt_st_add(w, "empty", TT_F32, 1, (int64_t[]){0}, NULL);
    expect_ok(tt_st_finish(w), in);
    for (int k = 0; k < 3; k++) {
        if (!run(out, in, to[k], false)) continue;
        if (!expect_ok(tt_file_open(ctx, &f, out), out)) continue;
        const tt_entry *e = tt_file_find(f, "x");
        const tt_entry *step = tt_file_find(f, "step");
        int bad = 0;
        expect(tt_file_count(f) == 3 && e->t.dtype == to[k] && e->t.rank == 2
                   && step->t.dtype == TT_I64 && step->t.rank == 0,
               "types of %s", tt_dtype_name(to[k]));
        for (int i = 0; i < N; i++) {
            const float want =
                to[k] == TT_F32 ? x[i]
                : to[k] == TT_BF16 ? tt_f32_from_bf16(tt_bf16_from_f32(x[i]))
                                   : tt_f32_from_f16(tt_f16_from_f32(x[i]));
            float v;
            tt_widen_at_f32(&v, &e->t, i, 1);
            bad += memcmp(&v, &want, 4) != 0;
        }
        expect(bad == 0, "%s: %d values", tt_dtype_name(to[k]), bad);
        tt_file_close(f);
        unlink(out);
    }
    x[70000] = 70000;
    expect_ok(tt_st_create(ctx, &w, in), in);
    tt_st_add(w, "big", TT_F32, 2, dim, x);
    expect_ok(tt_st_finish(w), in);
    tt_convert_options o = {.kind = -1, .ema = -1, .dtype = TT_F16};
    tt_status st = tt_convert(ctx, out, in, &o);
    expect(st == TT_EUNSUPPORTED && strstr(tt_message(ctx), "70000")
               && strstr(tt_message(ctx), "big"), "%s", tt_message(ctx));
    tt_clear(ctx);
    expect(access(out, F_OK) != 0, "a refused conversion left a file");
    o = (tt_convert_options){.kind = -1, .ema = -1, .diffusers = true};
    expect_status(tt_convert(ctx, out, in, &o), TT_EUNSUPPORTED, "renaming");
    unlink(in);
}

/* Quantised values become what they stand for; strided ones are gathered. */
static void odd_inputs(void)
{
    const char *out = at("z.safetensors");
    tt_arena a = {0};
    tt_file *x = NULL, *y = NULL;
    static const char *const in[] = {"formats/gguf_ok_quants.gguf",
                                     "formats/pt_ok_strides.pt"};
    for (int k = 0; k < 2; k++) {
        if (!run(out, ref_path("%s", in[k]), TT_NONE, false)) continue;
        expect_ok(tt_file_open(ctx, &x, ref_path("%s", in[k])), in[k]);
        expect_ok(tt_file_open(ctx, &y, out), out);
        expect(tt_file_count(x) == tt_file_count(y), "%s: count", in[k]);
        for (int64_t i = 0; i < tt_file_count(x); i++) {
            const tt_entry *e = tt_file_entry(x, i);
            const tt_entry *g = tt_file_find(y, e->name);
            if (!expect(g != NULL, "%s: no %s", in[k], e->name)) continue;
            tt_real *u = tt_read_real(ctx, &a, &e->t);
            tt_real *v = tt_read_real(ctx, &a, &g->t);
            expect_bits(e->name, u, v,
                        (size_t)tt_tensor_count(&e->t) * sizeof *u);
        }
        tt_file_close(x);
        tt_file_close(y);
        unlink(out);
    }
    tt_arena_free(&a);
}

int main(void)
{
    ctx = test_begin("io/convert");
    if (!folder_make()) return test_end();
    there_and_back("DiT", TT_MODEL_DIT, ref_path("dit/layouts/wan"));
    there_and_back("Self-Forcing", TT_MODEL_DIT,
                   ref_path("dit/layouts/selfforcing_pt"));
    there_and_back("VAE", TT_MODEL_VAE, ref_path("vae_pth/tiny_vae.pth"));
    there_and_back("umT5", TT_MODEL_T5, ref_path("t5_basic"));
    vae_names();
    types();
    odd_inputs();
    folder_remove_empty();
    return test_end();
}
