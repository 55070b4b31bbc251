/* test_stream.c: what must hold for any decode, and what must be refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties on the model of vae_full_a: equal bits for every split, any
 * company, any number of threads; memory that stops growing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "ops/backend.h"
#include "core/device.h"
#include "vae/vae_internal.h"

static tt_ctx *ctx;

static tt_vae *open_vae(const char *path, unsigned parts)
{
    tt_weights *w = NULL;
    tt_vae *v = NULL;
    if (expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL), path))
        expect_ok(tt_vae_load_parts(ctx, &v, w, parts), path);
    return v;
}

/* Latents z [C, T, h, w] of a case, rearranged to [T, C, h, w]. */
typedef struct latents {
    tt_real *z;
    int64_t T, h, w;
} latents;

static bool read_latents(test_case *c, latents *out, const char *name)
{
    const tt_entry *e = tt_file_find(c->inputs, name);
    if (!expect(e && e->t.rank == 5, "no latents %s", name)) return false;
    const int64_t C = e->t.dim[1];
    out->T = e->t.dim[2];
    out->h = e->t.dim[3];
    out->w = e->t.dim[4];
    const int64_t n = out->h * out->w;
    const tt_real *z = tt_read_real(ctx, &c->arena, &e->t);
    out->z = tt_alloc(ctx, &c->arena, C * out->T * n, sizeof *z, "latents");
    if (!z || !out->z) return false;
    for (int64_t j = 0; j < C; j++)
        for (int64_t t = 0; t < out->T; t++)
            memcpy(out->z + (t * C + j) * n, z + (j * out->T + t) * n,
                   (size_t)n * sizeof *z);
    return true;
}

typedef struct film {
    tt_real *x;
    size_t n, capacity;    /* values                                          */
    int64_t frames;
} film;

static tt_status keep(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    film *f = user;
    const size_t n = (size_t)(h * w * 3);
    if (f->n + n > f->capacity) {
        f->capacity = 2 * (f->n + n);
        f->x = realloc(f->x, f->capacity * sizeof *f->x);
    }
    memcpy(f->x + f->n, rgb, n * sizeof *rgb);
    f->n += n;
    f->frames++;
    return TT_OK;
}

/* Decode everything; after every `group[i]` latents, disturb: give scratch
 * memory back and let another video advance by one frame. */
static film decode(const tt_vae *v, const latents *z, const tt_json *group)
{
    film f = {0}, other = {0};
    tt_vae_decoder *d = NULL, *e = NULL;
    const int64_t n = tt_vae_z(v) * z->h * z->w;
    int64_t i = 0, left = group ? tt_json_whole(tt_json_at(group, 0), 0) : z->T;
    expect_ok(tt_vae_decoder_open(ctx, &d, v, z->h, z->w), "open");
    expect_ok(tt_vae_decoder_open(ctx, &e, v, z->h, z->w), "open");
    for (int64_t t = 0; t < z->T; t++) {
        const int64_t before = f.frames;
        expect_ok(tt_vae_decode_next(ctx, d, z->z + t * n, keep, &f), "next");
        expect(f.frames - before == (t ? 4 : 1), "frames of latent %lld",
               (long long)t);
        if (--left == 0 && group) {
            left = tt_json_whole(tt_json_at(group, ++i), 0);
            tt_arena_free(&ctx->scratch);
            tt_vae_decode_next(ctx, e, z->z + (z->T - 1) * n, keep, &other);
        }
    }
    expect(left == 0, "the split covers all latents");
    tt_vae_decoder_close(d);
    tt_vae_decoder_close(e);
    free(other.x);
    return f;
}

static void same_film(const char *what, film a, film b)
{
    if (expect(a.n == b.n && a.n > 0, "%s: sizes", what))
        expect_bits(what, a.x, b.x, a.n * sizeof *a.x);
}

static void check_splits(test_case *c, const tt_vae *v)
{
    const tt_json *run = tt_json_get(c->json, "runs");
    int splits = 0;
    for (run = tt_json_first(run); run; run = tt_json_next(run)) {
        const tt_json *split = tt_json_get(run, "splits");
        char name[64];
        latents z;
        if (!split) continue;
        snprintf(name, sizeof name, "%s.z", tt_json_str(run, "run", ""));
        if (!read_latents(c, &z, name)) continue;
        film whole = decode(v, &z, NULL);
        for (split = tt_json_first(split); split; splits++) {
            film f = decode(v, &z, split);
            same_film("split of a decode", f, whole);
            free(f.x);
            split = tt_json_next(split);
        }
        free(whole.x);
    }
    expect(splits >= 4, "the case names splits");
}

static void check_threads_and_backends(test_case *c, const tt_vae *v)
{
    latents z;
    const int threads = ctx->nthreads;
    const tt_ops *ops = ctx->ops;
    if (!read_latents(c, &z, "dec_t3_odd.z")) return;
    ctx->nthreads = 1;
    film one = decode(v, &z, NULL);
    for (int n = 2; n <= 3; n++) {
        ctx->nthreads = n;
        film more = decode(v, &z, NULL);
        same_film("number of threads", more, one);
        free(more.x);
    }
    ctx->nthreads = threads;
    free(one.x);
    const tt_ops *exact = tt_ops_find("exact");
    if (exact && !test_guarded()) {   /* there the operators are the guard's */
        ctx->ops = exact;
        film a = decode(v, &z, NULL);
        ctx->ops = tt_ops_find("golden");
        film b = decode(v, &z, NULL);
        same_film("exact and golden", a, b);
        free(a.x);
        free(b.x);
    }
    ctx->ops = ops;
}

/* Memory after 3 latents is memory for ever, and the plan covers it. */
static void check_memory(test_case *c, const tt_vae *v)
{
    latents z;
    film f = {0};
    tt_vae_decoder *d = NULL;
    if (!read_latents(c, &z, "dec_t7.z")) return;
    const int64_t n = tt_vae_z(v) * z.h * z.w;
    tt_arena_free(&ctx->scratch);
    ctx->scratch.peak = 0;
    expect_ok(tt_vae_decoder_open(ctx, &d, v, z.h, z.w), "open");
    size_t peak = 0;
    for (int64_t t = 0; t < 3 * z.T; t++) {
        tt_vae_decode_next(ctx, d, z.z + t % z.T * n, keep, &f);
        if (t == 2) peak = ctx->scratch.peak;
    }
    expect_ok(ctx->status, "decode");
    expect(peak > 0 && ctx->scratch.peak == peak,
           "scratch grew from %zu to %zu", peak, ctx->scratch.peak);
    /* history by hand: the table of slots in src/vae/README.md */
    const int64_t px = z.h * z.w, dim = tt_vae_dim(v);
    const int64_t slots =
        2 * px * (16 + 11 * 4 * dim + 4 * (2 + 6 * 4) * dim
                  + 16 * 6 * 2 * dim + 64 * 7 * dim);
    const int64_t bytes = tt_vae_decoder_bytes(v, z.h, z.w);
    expect(bytes > slots * (int64_t)sizeof(tt_real)
               && bytes < 2 * slots * (int64_t)sizeof(tt_real),
           "plan of %lld bytes for %lld of history", (long long)bytes,
           (long long)slots * (long long)sizeof(tt_real));
    tt_vae_decoder_close(d);
    free(f.x);
}

static tt_status refuse(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    (void)rgb;
    (void)h;
    (void)w;
    ++*(int *)user;
    return TT_EIO;
}

/* The value of a device at x becomes `value`; what it was. */
static tt_real exchange(tt_real *x, tt_real value)
{
    tt_host *h = tt_get(ctx, x, 1);
    if (!h) return 0;
    const tt_real was = *h;
    *h = value;
    tt_put(ctx, x, h, 1);
    return was;
}

static void check_bad_input(test_case *c, const tt_vae *v)
{
    latents z;
    int calls = 0;
    tt_vae_decoder *d = NULL;
    if (!read_latents(c, &z, "dec_t7.z")) return;
    const int64_t n = tt_vae_z(v) * z.h * z.w;
    expect_ok(tt_vae_decoder_open(ctx, &d, v, z.h, z.w), "open");
    expect_status(tt_vae_decode_next(ctx, d, z.z, refuse, &calls), TT_EIO,
                  "a receiver that fails");
    expect(calls == 1, "a receiver that fails is called once");
    tt_vae_decoder_close(d);

    expect_ok(tt_vae_decoder_open(ctx, &d, v, z.h, z.w), "open");
    z.z[n - 1] = (tt_real)NAN;
    expect_status(tt_vae_decode_next(ctx, d, z.z, refuse, &calls), TT_EFORMAT,
                  "latents with NaN");
    tt_vae_decoder_close(d);
    expect_status(tt_vae_decoder_open(ctx, &d, v, 0, 4), TT_EINVAL, "no rows");
    expect_status(tt_vae_decoder_open(ctx, &d, v, 1 << 30, 1 << 30), TT_EINVAL,
                  "an impossible size");
    expect(!d && tt_vae_decoder_bytes(v, 1 << 30, 1 << 30) == -1,
           "no decoder of impossible size");

    /* damaged weights: the last bias */
    tt_real *bias = (tt_real *)(uintptr_t)v->dec.head.b;
    const tt_real was = exchange(bias + 1, (tt_real)INFINITY);
    z.z[n - 1] = 0;
    expect_ok(tt_vae_decoder_open(ctx, &d, v, z.h, z.w), "open");
    expect_status(tt_vae_decode_next(ctx, d, z.z, refuse, &calls), TT_EFORMAT,
                  "weights with infinity");
    tt_vae_decoder_close(d);
    exchange(bias + 1, was);
    expect(calls == 1, "nothing damaged was handed out");
}

/* ---- latent statistics -------------------------------------------------- */

static void write_config(const char *dir, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fputs(text, f);
    fclose(f);
}

static void check_stats(void)
{
    double mean[48], std[48];
    char dir[600], file[700];
    tmp_path(dir, sizeof dir, "stats-XXXXXX");
    if (!expect(mkdtemp(dir) != NULL, "mkdtemp")) return;
    snprintf(file, sizeof file, "%s/vae.pth", dir);

    expect_ok(vae_find_stats(ctx, mean, std, 16, file), "Wan's constants");
    expect(mean[15] == -0.2921 && std[15] == 1.916, "Wan's constants");
    expect_status(vae_find_stats(ctx, mean, std, 2, file), TT_ESHAPE,
                  "2 channels without a config");
    write_config(dir, "{\"dim\": 1536}");
    expect_ok(vae_find_stats(ctx, mean, std, 16, file), "another config.json");

    write_config(dir, "{\"z_dim\": 2, \"latents_mean\": [0.5, -1], "
                      "\"latents_std\": [2, 4.25]}");
    expect_ok(vae_find_stats(ctx, mean, std, 2, file), "config next to a file");
    expect(mean[0] == 0.5 && mean[1] == -1 && std[1] == 4.25, "its values");
    mean[1] = 0;
    expect_ok(vae_find_stats(ctx, mean, std, 2, dir), "config in a folder");
    expect(mean[1] == -1, "its values");
    expect_status(vae_find_stats(ctx, mean, std, 3, file), TT_ESHAPE,
                  "z_dim disagrees");
    static const char *const bad[] = {
        "{\"latents_mean\": [0.5, 1], \"latents_std\": [2]}",
        "{\"latents_mean\": [0.5, 1]}",
        "{\"latents_mean\": [0.5, 1], \"latents_std\": [2, 0]}",
        "{\"latents_mean\": [0.5, 1e99], \"latents_std\": [2, 1]}",
        "{\"latents_mean\": [0.5, \"1\"], \"latents_std\": [2, 1]}",
        "{\"latents_mean\": ",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_config(dir, bad[i]);
        const tt_status s = vae_find_stats(ctx, mean, std, 2, file);
        expect(s == TT_ESHAPE || s == TT_EFORMAT, "refused: %s", bad[i]);
        expect(strstr(tt_message(ctx), "config.json") != NULL,
               "the sentence names the file: %s", tt_message(ctx));
        tt_clear(ctx);
    }
    snprintf(file, sizeof file, "%s/config.json", dir);
    unlink(file);
    rmdir(dir);
}

/* ---- loading ------------------------------------------------------------ */

static void check_loading(void)
{
    tt_weights *w = NULL;
    tt_vae *v = open_vae(ref_path("vae_pth/tiny_vae.pth"), TT_VAE_DECODER);
    expect(v && tt_vae_dim(v) == 4 && tt_vae_z(v) == 16, "sizes from shapes");
    tt_vae_close(v);
    v = open_vae(ref_path("vae_pth/tiny_vae.pth"), TT_VAE_ENCODER);
    expect(v && tt_vae_dim(v) == 4 && tt_vae_z(v) == 16, "sizes from shapes");
    tt_vae_close(v);
    v = open_vae(ref_path("vae_pth/tiny_vae.pth"),
                 TT_VAE_DECODER | TT_VAE_ENCODER);
    tt_vae_close(v);

    const char *path = ref_path("vae_pth/tiny_vae_legacy.pth");
    expect(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL) != TT_OK,
           "the legacy format is refused");
    expect(strstr(tt_message(ctx), "legacy") != NULL, "by name: %s",
           tt_message(ctx));
    tt_clear(ctx);

    path = ref_path("vae_attn/weights.safetensors");
    v = NULL;
    if (tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL) == TT_OK)
        tt_vae_load(ctx, &v, w);
    expect(ctx->status && !v, "weights of something else are refused");
    tt_clear(ctx);
}

static void check_encoder(test_case *c)
{
    tt_vae *v = open_vae(ref_path("vae_full_a/weights.safetensors"),
                         TT_VAE_ENCODER);
    tt_vae_encoder *e = NULL;
    int64_t n = 0;
    bool ready = false;
    const tt_real *video = case_input(c, "enc_t1.video", &n);
    tt_real *rgb = tt_alloc0(ctx, &c->arena, n, sizeof *rgb, "a picture");
    tt_real z[2][16 * 4 * 6];
    const int threads = ctx->nthreads;
    if (!v || !video || !rgb) return;
    for (int64_t i = 0; i < n / 3; i++)
        for (int k = 0; k < 3; k++) rgb[3 * i + k] = video[k * (n / 3) + i];
    for (int t = 0; t < 2; t++) {
        ctx->nthreads = t + 1;
        expect_ok(tt_vae_encoder_open(ctx, &e, v, 32, 48), "open");
        expect_ok(tt_vae_encode_next(ctx, e, z[t], &ready, rgb), "first");
        expect(ready, "the first frame gives a latent");
        for (int j = 1; j < 5; j++) {
            tt_vae_encode_next(ctx, e, z[t], &ready, rgb);
            expect(ready == (j == 4), "frame %d", j);
        }
        tt_vae_encoder_close(e);
    }
    ctx->nthreads = threads;
    expect_bits("encoder, number of threads", z[0], z[1], sizeof z[0]);
    expect_status(tt_vae_encoder_open(ctx, &e, v, 7, 48), TT_EINVAL, "7 rows");
    tt_vae_close(v);
}

int main(void)
{
    test_case c;
    ctx = test_begin("vae/stream");
    check_stats();
    check_loading();
    tt_vae *v = open_vae(ref_path("vae_full_a/weights.safetensors"),
                         TT_VAE_DECODER);
    if (v && case_open(&c, "vae_full_a")) {
        check_splits(&c, v);
        check_threads_and_backends(&c, v);
        check_memory(&c, v);
        check_bad_input(&c, v);
        check_encoder(&c);
        case_close(&c);
    }
    tt_vae_close(v);
    return test_end();
}
