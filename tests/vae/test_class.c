/* test_class.c: the VAE in arithmetic classes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  in every class but f32: exact gives golden's bits, at 1 and 3
 *             threads, whatever goes on between two latents, decoding and
 *             encoding; all convolutions are of the class; the decoder takes
 *             less memory; a backend without convolutions of the class says so.
 * Distance    of a decode by the model of full width from float64, printed of
 *             those whose kernels are fast; the others round alike. A
 *             product of rounded factors is 2^-8 off at most, and a picture is
 *             after 60 layers at most, whose errors have nothing to do with
 *             each other: 2^-8 sqrt(60) of the rms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/run_case/vae_case.h"

enum { Z = 16, H = 1, W = 2, T = 4, PICTURES = 4 * T - 3, SIZE = 64 * H * W };

static tt_ctx *ctx;
static tt_real latents[T * Z * H * W];

static tt_status keep(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    film *f = user;
    const int64_t n = 3 * h * w;
    memcpy(f->raw + f->frames++ * n, rgb, (size_t)n * sizeof *rgb);
    return TT_OK;
}

static tt_real *zeros(tt_arena *mem, int64_t n)
{
    return tt_alloc0(ctx, mem, n, sizeof(tt_real), "a test");
}

/* ---- golden and exact ---------------------------------------------------- */

/* All pictures; with `company` another video takes turns with it and scratch
 * is given back. */
static film decode(tt_arena *mem, const tt_vae *v, bool company)
{
    film f = {.raw = zeros(mem, PICTURES * 3 * SIZE)};
    film other = {.raw = zeros(mem, PICTURES * 3 * SIZE)};
    tt_vae_decoder *d = NULL, *e = NULL;
    tt_vae_decoder_open(ctx, &d, v, H, W);
    tt_vae_decoder_open(ctx, &e, v, H, W);
    for (int64_t t = 0; t < T && !ctx->status; t++) {
        tt_vae_decode_next(ctx, d, latents + t * Z * H * W, keep, &f);
        if (!company) continue;
        tt_arena_free(&ctx->scratch);
        tt_vae_decode_next(ctx, e, latents, keep, &other);
    }
    tt_vae_decoder_close(d);
    tt_vae_decoder_close(e);
    expect(f.frames == PICTURES, "%lld pictures", (long long)f.frames);
    return f;
}

/* The latent frame of five pictures. */
static tt_real *encode(tt_arena *mem, const tt_vae *v)
{
    tt_real *z = zeros(mem, Z * H * W), *rgb = zeros(mem, 3 * SIZE);
    tt_vae_encoder *e = NULL;
    bool ready;
    tt_vae_encoder_open(ctx, &e, v, 8 * H, 8 * W);
    for (int t = 0; t < 5 && !ctx->status; t++) {
        for (int i = 0; i < 3 * SIZE; i++)
            rgb[i] = (tt_real)(i * (7919 + t) % 997) / 500 - 1;
        tt_vae_encode_next(ctx, e, z, &ready, rgb);
    }
    tt_vae_encoder_close(e);
    return z;
}

static void check_class(tt_vae *v, tt_class cls)
{
    static const struct { const char *backend; int threads; bool company; } by[]
        = {{"exact", 1, false}, {"exact", 3, true}, {"exact", 2, false}};
    const int64_t float_bytes = tt_vae_decoder_bytes(v, H, W);
    tt_arena mem = {0};
    const int threads = ctx->nthreads;
    const film f32 = decode(&mem, v, false);
    ctx->ops = tt_ops_find("golden");
    expect_ok(tt_vae_use_class(ctx, v, cls), tt_class_name(cls));
    expect(tt_vae_class(v) == cls, "the class it was given");
    expect(tt_vae_decoder_bytes(v, H, W) < float_bytes * 3 / 4, "memory");
    const film want = decode(&mem, v, false);
    const tt_real *z = encode(&mem, v);
    expect(memcmp(want.raw, f32.raw, 3 * SIZE * sizeof *f32.raw),
           "%s is not f32", tt_class_name(cls));
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        char what[64];
        snprintf(what, sizeof what, "%s by %s, %d threads", tt_class_name(cls),
                 by[i].backend, by[i].threads);
        ctx->ops = tt_ops_find(by[i].backend);
        ctx->nthreads = by[i].threads;
        const film f = decode(&mem, v, by[i].company);
        expect_bits(what, f.raw, want.raw,
                    PICTURES * 3 * SIZE * sizeof *f.raw);
        expect_bits(what, encode(&mem, v), z, Z * H * W * sizeof *z);
    }
    ctx->nthreads = threads;
    expect_ok(tt_vae_use_class(ctx, v, TT_CLASS_F32), "back");
    const film back = decode(&mem, v, false);
    expect_bits("f32 again", back.raw, f32.raw,
                PICTURES * 3 * SIZE * sizeof *back.raw);
    tt_arena_free(&mem);
}

/* ---- who computes -------------------------------------------------------- */

static int convolutions[TT_CLASS_COUNT], asked;

static void spy_conv(tt_ctx *c, const tt_conv_args *a)
{
    convolutions[c->ops->cls]++;
    asked += a->by_class;
    tt_ops_class(tt_ops_find("exact"), c->ops->cls)->conv(c, a);
}

/* Every convolution of a decode and an encode is one of that class, and asks
 * for its sum. */
static void check_computed(tt_vae *v)
{
    const tt_ops *before = ctx->ops, *exact = tt_ops_find("exact");
    static tt_ops own[2];
    const tt_ops *of_class[TT_CLASS_COUNT] = {&own[0]};
    tt_arena mem = {0};
    of_class[TT_CLASS_VDP] = &own[1];
    for (int i = 0; i < 2; i++) {
        own[i] = *tt_ops_class(exact, i ? TT_CLASS_VDP : TT_CLASS_F32);
        own[i].conv = spy_conv;
        own[i].of_class = of_class;
    }
    ctx->ops = &own[0];
    for (int i = 0; i < 2; i++) {
        const tt_class cls = i ? TT_CLASS_VDP : TT_CLASS_F32;
        memset(convolutions, 0, sizeof convolutions);
        asked = 0;
        expect_ok(tt_vae_use_class(ctx, v, cls), "a class");
        decode(&mem, v, false);
        const int decoding = convolutions[cls];
        encode(&mem, v);
        const int n = convolutions[cls], others = convolutions[i ? 0
                                                           : TT_CLASS_VDP];
        expect(decoding > 0 && n > decoding && !others && asked == (i ? n : 0)
               && !ctx->by_class, "%s: %d and %d convolutions, %d by class, "
               "%d of another", tt_class_name(cls), decoding, n - decoding,
               asked, others);
    }
    tt_vae_use_class(ctx, v, TT_CLASS_F32);
    ctx->ops = before;
    tt_arena_free(&mem);
}

/* ---- a large frame ------------------------------------------------------- */

/* What is normalised and rounded piece by piece is what it is as a whole. */
static void check_pieces(void)
{
    enum { WIDE = 7000, C = 80 };
    const int64_t n = (int64_t)WIDE * C;
    vae_slots s = {.bf16 = true};
    tt_arena mem = {0};
    vae_slots_add(ctx, &mem, &s, vae_whole(1), WIDE, C);
    tt_real *x = zeros(&mem, n), *want = zeros(&mem, n),
        *gamma = zeros(&mem, C);
    for (int64_t i = 0; i < n; i++) x[i] = (tt_real)(i * 7919 % 997) / 400 - 1;
    for (int64_t i = 0; i < C; i++) gamma[i] = 1 + (tt_real)i / 64;
    vae_norm_silu(ctx, &s.slot[0], x, gamma);
    tt_channel_norm(ctx, x, x, WIDE, C, gamma);
    tt_silu(ctx, x, n);
    tt_narrow(ctx, want, x, n);
    expect_bits("a frame in pieces", vae_slot_input(&s.slot[0]), want, 2 * n);
    tt_arena_free(&mem);
}

/* ---- who has not --------------------------------------------------------- */

static void check_refused(tt_vae *v)
{
    const tt_ops *before = ctx->ops;
    tt_ops without = *tt_ops_find("golden");
    const tt_ops *of_class[TT_CLASS_COUNT] = {&without};
    tt_ops vdp = without;
    vdp.cls = TT_CLASS_VDP;
    vdp.by_class = false;
    of_class[TT_CLASS_VDP] = &vdp;
    without.of_class = of_class;
    without.name = "other";
    const tt_class cls[] = {TT_CLASS_VDP, TT_CLASS_AMX};
    ctx->ops = &without;
    for (int i = 0; i < 2; i++) {
        expect(tt_vae_use_class(ctx, v, cls[i]) == TT_EINVAL
               && strstr(tt_message(ctx), sizeof(tt_real) == 8
                      ? "double" : "backend other has no convolutions")
               && tt_vae_class(v) == TT_CLASS_F32, "%s", tt_message(ctx));
        tt_clear(ctx);
    }
    ctx->ops = before;
}

/* ---- how far from float64 ------------------------------------------------ */

/* rms of the difference of x [F, H, W, 3] from y [3, F, H, W], of that of y. */
static double distance(const film *x, const tt_real *y, const int64_t *dim)
{
    const int64_t n = dim[2] * dim[3] * dim[4];
    double off = 0, all = 0;
    for (int64_t c = 0; c < 3; c++)
        for (int64_t i = 0; i < n; i++) {
            const double want = (double)y[c * n + i];
            const double d = (double)x->raw[3 * i + c] - want;
            off += d * d;
            all += want * want;
        }
    return sqrt(off / all);
}

static film decode_wide(test_case *c, const tt_vae *v)
{
    const tt_entry *e = tt_file_find(c->inputs, "dec_t2.z");
    const int64_t *dim = e->t.dim, n = dim[3] * dim[4];
    film f = {.raw = zeros(&c->arena, 5 * 64 * 3 * n)};
    const tt_real *z = tt_read_real(ctx, &c->arena, &e->t);
    tt_real *frame = zeros(&c->arena, Z * n);
    tt_vae_decoder *d = NULL;
    tt_vae_decoder_open(ctx, &d, v, dim[3], dim[4]);
    for (int64_t t = 0; t < dim[2] && z && frame && !ctx->status; t++) {
        for (int64_t k = 0; k < Z; k++)
            memcpy(frame + k * n, z + (k * dim[2] + t) * n,
                   (size_t)n * sizeof *z);
        tt_vae_decode_next(ctx, d, frame, keep, &f);
    }
    tt_vae_decoder_close(d);
    return f;
}

static void check_distance(void)
{
    static const char *const without[] = {"encoder.", "conv1.", NULL};
    test_case c;
    tt_vae *v = NULL;
    if (!case_open(&c, "vae_fullwidth")) return;
    const tt_entry *e = tt_file_find(c.expected_f64, "dec_t2.video_raw");
    tt_weights *w = vae_made_weights(ctx, c.dir, 1, without);
    if (expect(e && w, "the case")
        && expect_ok(tt_vae_load(ctx, &v, w), "VAE"))
        for (int cls = 0; cls <= TT_CLASS_VDP; cls++) {
            if (!tt_ops_class(ctx->ops, (tt_class)cls)) continue;
            tt_vae_use_class(ctx, v, (tt_class)cls);
            const film f = decode_wide(&c, v);
            const tt_real *y = tt_read_real(ctx, &c.arena, &e->t);
            const double off = y ? distance(&f, y, e->t.dim) : NAN;
            printf("%s: %.2g of the rms from float64\n",
                   tt_class_name((tt_class)cls), off);
            expect(off < (cls ? sqrt(60) * 0x1p-8 : 1e-5), "that is far");
        }
    tt_vae_close(v);
    case_close(&c);
}

int main(void)
{
    ctx = test_begin("vae/class");
    tt_weights *w = NULL;
    tt_vae *v = NULL;
    const char *path = ref_path("vae_full_a/weights.safetensors");
    for (int i = 0; i < T * Z * H * W; i++)
        latents[i] = (tt_real)(i * 7919 % 997) / 400 - (tt_real)1.2;
    if (expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL), path)
        && expect_ok(tt_vae_load_parts(ctx, &v, w, TT_VAE_DECODER
                                       | TT_VAE_ENCODER), path)) {
        /* under the guard values are out of reach of tables but its own */
        const bool all = sizeof(tt_real) == 4 && !test_guarded();
        for (int c = 1; all && c < TT_CLASS_COUNT; c++)
            check_class(v, (tt_class)c);
        if (all) check_computed(v);
        if (all) check_pieces();
        check_refused(v);
    }
    tt_vae_close(v);
    check_distance();
    return test_end();
}
