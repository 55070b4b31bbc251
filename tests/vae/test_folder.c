/* test_folder.c: what the VAE remembers, in files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  pictures, latents and slots have the bits that they have in memory,
 *           in class f32 and in one whose frames are bf16, and of the small
 *           VAE; nothing is left in the folder.
 * Refused   no folder; a full disk; values that are in memory of a device. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/folder.h"
#include "tests/harness.h"
#include "tests/run_case/vae_case.h"

enum { H = 3, W = 2, T = 4, VALUES = 64 * H * W * 3 };

static tt_ctx *ctx;

typedef struct results {
    tt_real rgb[(1 + 4 * (T - 1)) * VALUES], z[16 * H * W];
    int frames;
    int64_t bytes;           /* of a decoder                                  */
} results;

static tt_status keep(void *user, const tt_real *rgb, int64_t h, int64_t w)
{
    results *r = user;
    const int64_t n = h * w * 3;
    if (n == VALUES && r->frames < 1 + 4 * (T - 1))
        memcpy(r->rgb + r->frames * n, rgb, (size_t)n * sizeof *rgb);
    r->frames++;
    return TT_OK;
}

/* The slots of a decoder after its last frame; `size` bytes are a value. */
static void same_slots(const tt_vae_decoder *a, const tt_vae_decoder *b,
                       size_t size)
{
    const tt_real *x[2], *y[2];
    int64_t dim[3], other[3];
    int i = 0, n;
    for (; (n = tt_vae_decoder_slot(a, i, x, dim)) >= 0; i++) {
        if (!expect(tt_vae_decoder_slot(b, i, y, other) == n, "slot %d", i))
            continue;
        for (int k = 0; k < n; k++)
            expect_bits("slot", x[k], y[k],
                        (size_t)(dim[0] * dim[1] * dim[2]) * size);
    }
    expect(i == 32, "%d slots", i);
}

static tt_vae_decoder *decode(results *r, const tt_vae *v)
{
    tt_vae_decoder *d = NULL;
    tt_real z[16 * H * W] = {0};
    r->bytes = tt_vae_decoder_bytes(v, H, W);
    if (!expect_ok(tt_vae_decoder_open(ctx, &d, v, H, W), "open")) return NULL;
    for (int t = 0; t < T; t++) {
        for (int64_t i = 0; i < tt_vae_z(v) * H * W; i++)
            z[i] = (tt_real)((double)((i * 7 + t * 5) % 13) / 6 - 1);
        expect_ok(tt_vae_decode_next(ctx, d, z, keep, r), "decode");
    }
    return d;
}

static void encode(results *r, const tt_vae *v)
{
    tt_vae_encoder *e = NULL;
    bool ready = false;
    int made = 0;
    if (!expect_ok(tt_vae_encoder_open(ctx, &e, v, 8 * H, 8 * W), "open"))
        return;
    for (int t = 0; t < 5; t++) {
        expect_ok(tt_vae_encode_next(ctx, e, r->z, &ready, r->rgb + t * VALUES),
                  "encode");
        made += ready;
    }
    expect(made == 2, "%d latents of 5 frames", made);
    tt_vae_encoder_close(e);
}

static tt_vae *open_vae(tt_class cls)
{
    const char *path = ref_path("vae_full_a/weights.safetensors");
    tt_weights *w = NULL;
    tt_vae *v = NULL;
    if (expect_ok(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL), path)
        && expect_ok(tt_vae_load_parts(ctx, &v, w, TT_VAE_DECODER
                                                   | TT_VAE_ENCODER), path))
        expect_ok(tt_vae_use_class(ctx, v, cls), "class");
    return v;
}

static void check(tt_class cls)
{
    static results a, b;
    a = b = (results){.frames = 0};
    tt_vae *v = open_vae(cls);
    if (!v) return;
    tt_vae_decoder *c = decode(&a, v);
    encode(&a, v);
    expect(tt_vae_folder(v) == NULL, "in memory at first");
    expect_ok(tt_vae_use_folder(ctx, v, folder), folder);
    expect(!strcmp(tt_vae_folder(v), folder), "and then in files");
    tt_vae_decoder *d = decode(&b, v);
    encode(&b, v);
    expect(a.frames == 1 + 4 * (T - 1) && b.frames == a.frames, "%d frames",
           b.frames);
    expect_bits("pictures", a.rgb, b.rgb, sizeof a.rgb);
    expect_bits("latents", a.z, b.z, sizeof a.z);
    same_slots(c, d, cls == TT_CLASS_F32 ? sizeof(tt_real) : 2);
    expect(b.bytes > 0 && b.bytes < a.bytes / 2, "%lld of %lld bytes in memory",
           (long long)b.bytes, (long long)a.bytes);
    expect_ok(tt_vae_use_folder(ctx, v, NULL), "in memory again");
    tt_vae_decoder_close(c);
    tt_vae_decoder_close(d);
    tt_vae_close(v);
}

/* The small VAE remembers less. */
static void check_tiny(void)
{
    static results a, b;
    tt_vae *v = NULL;
    tt_weights *w = vae_made_weights(ctx, ref_path("vae_taehv"), 7,
                                     (const char *[]){"encoder.", NULL});
    if (!w || !expect_ok(tt_vae_load_tiny(ctx, &v, w), "a small VAE")) return;
    tt_vae_decoder_close(decode(&a, v));
    tt_vae_use_folder(ctx, v, at("nobody"));
    tt_vae_decoder *d;
    expect_status(tt_vae_decoder_open(ctx, &d, v, H, W), TT_EIO, "no folder");
    tt_vae_use_folder(ctx, v, folder);
    tt_vae_decoder_close(decode(&b, v));
    expect(a.frames == b.frames && b.bytes < a.bytes, "%d frames", b.frames);
    expect_bits("pictures", a.rgb, b.rgb, sizeof a.rgb);
    tt_vae_close(v);
}

static void check_refused(void)
{
    tt_vae *v = open_vae(TT_CLASS_F32);
    tt_vae_decoder *d;
    tt_vae_encoder *e;
    struct rlimit was, none;
    if (!v) return;
    tt_vae_use_folder(ctx, v, at("nobody"));
    expect_status(tt_vae_decoder_open(ctx, &d, v, H, W), TT_EIO, "no folder");
    expect(!d, "no decoder");
    expect_status(tt_vae_encoder_open(ctx, &e, v, 8, 8), TT_EIO, "no folder");
    expect(!e, "no encoder");

    /* a disk that is full, as far as we are told */
    getrlimit(RLIMIT_FSIZE, &was);
    none = was;
    none.rlim_cur = 4096;
    expect_ok(tt_vae_use_folder(ctx, v, folder), "a folder");
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    expect_status(tt_vae_decoder_open(ctx, &d, v, H, W), TT_EIO, "a full disk");
    expect_status(tt_vae_encoder_open(ctx, &e, v, 8, 8), TT_EIO, "a full disk");
    setrlimit(RLIMIT_FSIZE, &was);
    expect(!d && !e, "no decoder and no encoder");
    tt_vae_use_folder(ctx, v, "");
    expect_status(tt_vae_decoder_open(ctx, &d, v, H, W), TT_EIO, "no name");
    tt_vae_close(v);
}

int main(void)
{
    ctx = test_begin("vae/folder");
    expect(tt_vae_folder(NULL) == NULL, "no VAE");
    if (ctx->device) {
        tt_vae *v = open_vae(TT_CLASS_F32);
        if (v) expect_status(tt_vae_use_folder(ctx, v, "."), TT_EUNSUPPORTED,
                             "files for a device");
        tt_vae_close(v);
        return test_end();
    }
    if (!folder_make()) return test_end();
    check(TT_CLASS_F32);
    if (sizeof(tt_real) == 4) check(TT_CLASS_VDP);
    check_tiny();
    check_refused();
    folder_remove_empty();
    return test_end();
}
