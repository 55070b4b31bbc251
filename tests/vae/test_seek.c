/* test_seek.c: a decode that begins in the middle of a video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  from every latent frame on it gives the bits of a decode from the
 *           beginning, by the VAE of vae_full_a and by a tiny one. */
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/run_case/vae_case.h"

enum { LONG = 42, TINY_LONG = 12 }; /* latent frames */

static tt_ctx *ctx;
static int64_t length;

static tt_status keep(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    film *f = user;
    const int64_t n = h * w * 3;
    if (f->frames < f->room)
        memcpy(f->raw + f->frames * n, rgb, (size_t)n * sizeof *rgb);
    f->frames++;
    return TT_OK;
}

/* The pictures of latents [from, length). */
static film decode(const tt_vae *v, tt_arena *mem, const tt_real *z,
                   int64_t from, int64_t back)
{
    film f = {.room = 4 * length};
    tt_vae_decoder *d = NULL;
    f.raw = tt_alloc(ctx, mem, f.room * 64 * 3, sizeof *f.raw, "pictures");
    expect_ok(tt_vae_decoder_open(ctx, &d, v, 1, 1), "open");
    const int64_t first = from ? tt_vae_decoder_seek(d, from) : 0;
    expect(first == (from > back ? from - back : 0), "%lld begins at %lld",
           (long long)from, (long long)first);
    for (int64_t t = first; t < length && f.raw; t++)
        expect_ok(tt_vae_decode_next(ctx, d, z + t * tt_vae_z(v), keep, &f),
                  "next");
    tt_vae_decoder_close(d);
    return f;
}

static void check(const tt_vae *v, const char *name, int64_t back)
{
    const int64_t from[] = {1, 2, 9, length - 3, length - 1};
    const int64_t n = length * tt_vae_z(v);
    tt_arena mem = {0};
    tt_real *z = tt_alloc(ctx, &mem, n, sizeof *z, "latents");
    uint64_t x = 1;
    for (int64_t i = 0; z && i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        z[i] = (tt_real)((double)(x >> 40) / (1 << 22) - 2);
    }
    const film whole = decode(v, &mem, z, 0, back);
    expect(whole.frames == 4 * length - 3, "%s: all pictures", name);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        const film f = decode(v, &mem, z, from[i], back);
        const int64_t before = 4 * from[i] - 3;
        if (expect(f.frames + before == whole.frames, "%s from %lld: %lld "
                   "pictures", name, (long long)from[i], (long long)f.frames))
            expect_bits(name, f.raw, whole.raw + before * 64 * 3,
                        (size_t)(f.frames * 64 * 3) * sizeof *f.raw);
    }
    tt_arena_free(&mem);
}

static void check_vae(void)
{
    const char *path = ref_path("vae_full_a/weights.safetensors");
    tt_weights *w = NULL;
    tt_vae *v = NULL;
    if (expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL), path)
        && expect_ok(tt_vae_load(ctx, &v, w), path))
        check(v, "the VAE", 38);
    tt_vae_close(v);
}

static void check_tiny(void)
{
    tt_vae *v = NULL;
    tt_weights *w = vae_made_weights(ctx, ref_path("vae_taehv"), 7,
                                     (const char *[]){"encoder.", NULL});
    if (expect(w != NULL, "made weights")
        && expect_ok(tt_vae_load_tiny(ctx, &v, w), "a tiny VAE"))
        check(v, "the tiny VAE", 8);
    tt_vae_close(v);
}

int main(void)
{
    ctx = test_begin("vae/seek");
    expect(tt_vae_decoder_seek(NULL, 3) == -1, "no decoder");
    length = LONG;
    check_vae();
    length = TINY_LONG;
    check_tiny();
    return test_end();
}
