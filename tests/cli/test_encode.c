/* test_encode.c: `tether encode`, and given pictures and videos of `generate`.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  the encoder runs of ref_data/vae_full_a, through the program.
 * Properties     pictures, y4m and raw frames of the same pixels give the same
 *                bits; what `generate` is given comes out in front, as
 *                `encode` makes it; refusals leave nothing; a pipe whose
 *                other end is not there does not keep a signal waiting. */
#include <fcntl.h>

#include "tests/cli/program.h"
#include "io/video.h"

enum { W = 48, H = 32, FRAMES = 13 };

/* Tensor `latents` of a file into `a`; NULL and a failed check without it. */
static tt_real *latents_of(tt_arena *a, const char *path, int64_t dim[5])
{
    tt_file *f = NULL;
    tt_real *x = NULL;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return NULL;
    const tt_entry *e = tt_file_find(f, "latents");
    if (expect(e && e->t.rank == 5 && e->t.dim[0] == 1, "%s: latents", path)) {
        memcpy(dim, e->t.dim, 5 * sizeof *dim);
        x = tt_read_real(ctx, a, &e->t);
    }
    tt_file_close(f);
    return x;
}

/* Are the first `frames` latent frames of two files the same bits? */
static void expect_same(const char *what, const char *path_a,
                        const char *path_b, int64_t frames)
{
    tt_arena a = {0};
    int64_t m[5], n[5];
    const tt_real *x = latents_of(&a, path_a, m);
    const tt_real *y = latents_of(&a, path_b, n);
    if (x && y && expect(m[1] >= frames && n[1] >= frames && m[2] == n[2]
                         && m[3] == n[3] && m[4] == n[4],
                         "%s: %lld and %lld frames, or other sizes", what,
                         (long long)m[1], (long long)n[1]))
        expect_bits(what, x, y,
                    (size_t)(frames * m[2] * m[3] * m[4]) * sizeof *x);
    tt_arena_free(&a);
}

/* ---- reference runs ------------------------------------------------------ */

static void test_reference(test_case *c, const char *name)
{
    char key[64];
    int64_t dim[5];
    tt_st_writer *w;
    snprintf(key, sizeof key, "%s.video", name);
    const tt_entry *in = tt_file_find(c->inputs, key);
    if (!expect(in != NULL, "%s in inputs", key)) return;
    if (!expect_ok(tt_st_create(ctx, &w, at("raw")), "raw")) return;
    tt_real *video = tt_read_real(ctx, &c->arena, &in->t);
    tt_st_add(w, "video", sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 5,
              in->t.dim, video);
    expect_ok(tt_st_finish(w), "raw");
    expect(run("encode --vae %s/weights.safetensors --raw-in %s --overwrite "
               "-o %s", c->dir, at("raw"), at("z")) == 0, "%s: %s", name, said);
    expect(!strstr(said, "dropped") == !strstr(name, "dropped"),
           "a warning when frames are dropped, and only then: %s", said);

    tt_real *z = latents_of(&c->arena, at("z"), dim);
    if (!z) return;
    const int64_t n = dim[1], C = dim[2], pixels = dim[3] * dim[4];
    tt_real *turned = tt_alloc(ctx, &c->arena, n * C * pixels, sizeof *turned,
                               "latents");
    for (int64_t f = 0; f < n; f++)
        for (int64_t k = 0; k < C; k++)
            memcpy(turned + (k * n + f) * pixels, z + (f * C + k) * pixels,
                   (size_t)pixels * sizeof *z);
    /* README_vae.md: 8 * official max_abs + 1e-6 * max_ref; double 1e-12 */
    snprintf(key, sizeof key, "%s.z", name);
    const tt_json *o = tt_json_get(tt_json_get(c->json, "official_f32_vs_f64"),
                                   key);
    const double top = tt_json_num(o, "max_ref", -1);
    double tol = 8 * tt_json_num(o, "max_abs", 0) + 1e-6 * top;
    if (sizeof(tt_real) == 8) tol = 1e-12 * top;
    expect(top > 0, "the case states its error");
    expect_close(name, turned, n * C * pixels, case_expected(c, key), tol, 0);
}

/* ---- the same pixels by every way in ------------------------------------- */

static void paint(uint8_t *rgb, int frame)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++, rgb += 3) {
            rgb[0] = (uint8_t)(4 * x + 9 * frame);
            rgb[1] = (uint8_t)(7 * y);
            rgb[2] = (uint8_t)(x * y / 6 + 30 * frame);
        }
}

/* The same frames as f/000.png ..., v.y4m and raw. */
static void write_inputs(void)
{
    static tt_real raw[3 * FRAMES * H * W], one[3 * H * W];
    static uint8_t rgb[3 * H * W];
    const tt_video_format f = {.width = W, .height = H, .fps = 16,
                               .frames = FRAMES};
    tt_video *png, *y4m;
    if (!expect_ok(tt_video_open(ctx, &png, at("f/%03d.png"), &f), "png")
        || !expect_ok(tt_video_open(ctx, &y4m, at("v.y4m"), &f), "y4m"))
        return;
    for (int i = 0; i < FRAMES; i++) {
        paint(rgb, i);
        tt_video_frame(png, rgb);
        tt_video_frame(y4m, rgb);
        tt_real_from_rgb8(one, rgb, 3 * H * W);
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < H * W; k++)
                raw[(c * FRAMES + i) * H * W + k] = one[3 * k + c];
    }
    expect_ok(tt_video_finish(png), "png");
    expect_ok(tt_video_finish(y4m), "y4m");
    const int64_t dim[5] = {1, 3, FRAMES, H, W};
    tt_st_writer *w;
    if (!expect_ok(tt_st_create(ctx, &w, at("raw")), "raw")) return;
    tt_st_add(w, "video", sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 5, dim, raw);
    expect_ok(tt_st_finish(w), "raw");
}

/* The class of the VAE that a file names; NULL: none. */
static const char *class_of(const char *path)
{
    static char text[64];
    tt_file *f = NULL;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return NULL;
    const char *is = tt_file_meta(f, "vae_class");
    if (is) snprintf(text, sizeof text, "%s", is);
    tt_file_close(f);
    return is ? text : NULL;
}

static void test_class(void)
{
    char e[900];
    if (sizeof(tt_real) == 8) return; /* which has class f32 alone */
    snprintf(e, sizeof e, "encode -q --vae %s -i %s --frames 1",
             ref_path("vae_full_a/weights.safetensors"), at("v.y4m"));
    expect(run("%s -o %s", e, at("c32")) == 0 && !class_of(at("c32")),
           "f32 is not named: %s", said);
    expect(run("%s --vae-class vdp -o %s", e, at("cv")) == 0, "%s", said);
    const char *is = class_of(at("cv"));
    expect(is && !strcmp(is, "vdp"), "class %s", is ? is : "is not named");
}

static void test_ways_in(void)
{
    char vae[700];
    snprintf(vae, sizeof vae, "%s",
             ref_path("vae_full_a/weights.safetensors"));
    write_inputs();
    expect(run("encode -q --vae %s --raw-in %s -o %s", vae, at("raw"),
               at("a")) == 0, "raw: %s", said);
    expect(run("encode -q --vae %s -i %s -o %s", vae, at("f/%03d.png"),
               at("b")) == 0, "pattern: %s", said);
    expect_same("PNGs and raw frames", at("a"), at("b"), 4);
    expect(run("encode -q --vae %s -i %s -o %s", vae, at("v.y4m"), at("c"))
           == 0 && run("encode -q --vae %s -i - -o %s < %s", vae, at("d"),
                       at("v.y4m")) == 0, "y4m: %s", said);
    expect_same("y4m and standard input", at("c"), at("d"), 4);
    if (!test_guarded())
        expect(run("encode -q --vae %s -i %s -o %s --history-dir %s", vae,
                   at("v.y4m"), at("kept"), folder) == 0
               && same_files(at("c"), at("kept")), "in files: %s", said);

    /* y4m costs colour precision: at most 2 steps of 255 in any value */
    tt_arena a = {0};
    int64_t dim[5];
    const tt_real *x = latents_of(&a, at("a"), dim);
    const tt_real *y = latents_of(&a, at("c"), dim);
    double sum = 0, top = 0;
    for (int64_t i = 0; x && y && i < 4 * dim[2] * dim[3] * dim[4]; i++) {
        sum += (x[i] - y[i]) * (x[i] - y[i]);
        top += x[i] * x[i];
    }
    expect(top > 0 && sum > 0 && sum < 0.01 * top, "y4m is near: %g of %g",
           sum, top);
    tt_arena_free(&a);

    /* frames 4..8 of the video are a video of their own */
    for (int i = 0; i < 5; i++) {
        char source[300];
        snprintf(source, sizeof source, "%s/f/%03d.png", folder, i + 4);
        char to[300];
        snprintf(to, sizeof to, "%s/part%d.png", folder, i);
        expect(link(source, to) == 0, "%s", to);
    }
    expect(run("encode -q --vae %s -i %s -o %s --skip 4 --frames 5", vae,
               at("f/%03d.png"), at("e")) == 0
           && run("encode -q --vae %s -i %s -o %s", vae, at("part%d.png"),
                  at("g")) == 0, "part: %s", said);
    expect_same("--skip and --frames", at("e"), at("g"), 2);
    expect(run("encode --vae %s -i %s -o %s -W 16 -H 48 --frames 1", vae,
               at("v.y4m"), at("h")) == 0 && strstr(said, "2x6"),
           "resized: %s", said);
}

static void test_refusals(void)
{
    char m[900];
    snprintf(m, sizeof m, "encode --vae %s -o %s",
             ref_path("vae_full_a/weights.safetensors"), at("never"));
    uint8_t rgb[3 * 130 * 90] = {0};
    expect_ok(tt_png_write(ctx, at("odd.png"), rgb, 130, 90), "png");
    refuses(2, "-W 128 -H 96", "%s -i %s", m, at("odd.png"));
    refuses(2, "multiple of 16", "%s -i %s -W 130 -H 96", m, at("odd.png"));
    refuses(2, "as it is", "%s --raw-in %s -W 48", m, at("raw"));
    refuses(2, "one of", "%s -i %s --raw-in %s", m, at("v.y4m"), at("raw"));
    refuses(2, "needs", "%s -i", m);
    refuses(2, "13 frames", "%s -i %s --skip 13", m, at("v.y4m"));
    refuses(2, "13 frames", "%s -i %s --skip 10 --frames 4", m, at("v.y4m"));
    refuses(1, "No such file", "%s -i %s", m, at("missing.png"));
    refuses(1, "no tensor `video`", "%s --raw-in %s", m, at("a"));
    refuses(1, "YUV4MPEG2", "%s -i - < %s", m, at("odd.png"));
    expect(!exists(at("never")), "nothing was left");
}

/* ---- generate ------------------------------------------------------------ */

static void test_generate(void)
{
    char g[1600], command[1400];
    snprintf(command, sizeof command, "%.*s/tools/make_checkpoint --preset "
             "demo %s > /dev/null 2>&1",
             (int)(strrchr(tether, '/') - tether), tether, at("demo"));
    if (!expect(system(for_shell(command)) == 0, "the demo model")) return;
    snprintf(g, sizeof g, "generate -q -m %s -p \"a cat\" --latents 3 "
             "--no-decode", at("demo"));

    expect(run("%s -W 64 -H 48 --image %s --latents-out %s --record %s", g,
               at("odd.png"), at("i"), at("run.json")) == 0, "image: %s",
           said);
    expect(run("encode -q -m %s -i %s -W 64 -H 48 -o %s", at("demo"),
               at("odd.png"), at("j")) == 0, "encode: %s", said);
    expect_same("--image is the first latent", at("i"), at("j"), 1);
    tt_arena a = {0};
    int64_t dim[5];
    if (latents_of(&a, at("i"), dim))
        expect(dim[1] == 4 && dim[3] == 6 && dim[4] == 8, "1 + 3 latents");
    const tt_json *j = NULL;
    expect_ok(tt_json_file(ctx, &a, &j, at("run.json"), 1 << 20), "record");
    expect(j && tt_json_int(tt_json_get(j, "video"), "given_latents", 0) == 1,
           "the record tells of the given frame");
    tt_arena_free(&a);

    /* 9 frames of 13: 3 latents; as frames and as latents */
    expect(run("%s --initial-video %s --initial-frames 9 --latents-out %s", g,
               at("f/%03d.png"), at("k")) == 0, "video: %s", said);
    expect(run("encode -q -m %s -i %s --skip 4 -o %s", at("demo"),
               at("f/%03d.png"), at("l")) == 0, "encode: %s", said);
    expect_same("--initial-video in front", at("k"), at("l"), 3);
    expect(run("%s --initial-latents %s --latents-out %s", g, at("l"),
               at("m")) == 0, "latents: %s", said);
    expect_same("from frames or from their latents", at("k"), at("m"), 6);

    refuses(2, "are 9 and 21", "%s --initial-video %s --latents-out %s", g,
            at("v.y4m"), at("never"));
    expect(run("%s --initial-video %s --independent-first-frame "
               "--latents-out %s", g, at("v.y4m"), at("n")) == 0,
           "13 frames are 1 + 3 latents: %s", said);
    refuses(2, "9 are needed", "%s --initial-video %s --initial-frames 5 "
            "--latents-out %s", g, at("v.y4m"), at("never"));
    refuses(2, "only 13", "%s --initial-video %s --initial-frames 21 "
            "--latents-out %s", g, at("v.y4m"), at("never"));
    refuses(2, "--initial-video", "%s --image %s --initial-video %s "
            "--latents-out %s", g, at("odd.png"), at("v.y4m"), at("never"));
    refuses(2, "--image", "%s --image %s --no-independent-first-frame "
            "--latents-out %s", g, at("odd.png"), at("never"));
    refuses(2, "standard input", "%s --initial-video - --latents-out %s", g,
            at("never"));
    refuses(1, "missing", "%s --image %s --latents-out %s", g,
            at("missing.png"), at("never"));
    expect(!exists(at("never")) && !exists(at("never.unfinished")),
           "nothing was left");
}

/* ---- pipes --------------------------------------------------------------- */

static void test_pipes(void)
{
    char g[1600], e[900];
    snprintf(g, sizeof g, "generate -m %s --latents 3 --no-decode "
             "--latents-out %s", at("demo"), at("never"));
    snprintf(e, sizeof e, "encode --vae %s",
             ref_path("vae_full_a/weights.safetensors"));
    if (!expect(!mkfifo(at("pipe.y4m"), 0600), "a pipe")) return;
    stops(SIGINT, "interrupted", "%s -i %s -o %s", e, at("pipe.y4m"),
          at("never"));
    stops(SIGTERM, "interrupted", "%s --prompt-file %s", g, at("pipe.y4m"));
    stops(SIGHUP, "interrupted", "%s --scene-file %s --cache infinity", g,
          at("pipe.y4m"));
    char d[900];
    snprintf(d, sizeof d, "decode --vae %s --latents %s -o %s --overwrite",
             ref_path("vae_full_a/weights.safetensors"), at("a"),
             at("pipe.y4m"));
    stops(SIGINT, "interrupted", "%s", d);
    refuses(2, "read twice", "%s -p x --image %s", g, at("pipe.y4m"));
    refuses(2, "read twice", "%s -p x --initial-video %s", g, at("pipe.y4m"));

    /* a writer that has said something and says no more */
    const int fd = open(at("pipe.y4m"), O_RDWR | O_CLOEXEC);
    static const char some[] = "YUV4MPEG2 W48 H32 F16:1\nFRAME\n...";
    expect(fd >= 0 && write(fd, some, sizeof some) == sizeof some, "a writer");
    stops(SIGINT, "interrupted", "%s -i %s -o %s", e, at("pipe.y4m"),
          at("never"));

    /* a reader that takes nothing: the pipe is full */
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, some, sizeof some) > 0) continue;
    stops(SIGTERM, "interrupted", "%s", d);
    close(fd);
    expect(!exists(at("never")) && !exists(at("never.unfinished")),
           "nothing was left");

    /* and one that comes late */
    char before[1200];
    snprintf(before, sizeof before, "(sleep 0.3; exec cat %s > %s) & ",
             at("v.y4m"), at("pipe.y4m"));
    expect(run_after(before, "%s -q -i %s -o %s", e, at("pipe.y4m"), at("p"))
           == 0, "a writer that comes late: %s", said);
    expect_same("through a pipe", at("c"), at("p"), 4);
    if (access("/dev/stdin", F_OK)) {
        skip("a prompt through /dev/stdin: it leads nowhere without /proc");
        return;
    }
    snprintf(before, sizeof before, "(sleep 0.1; echo a cat) | ");
    expect(run_after(before, "%s --prompt-file /dev/stdin --latents-out %s", g,
                     at("q")) == 0, "a prompt through a pipe: %s", said);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/encode", argv)) return test_end();
    start_in = ".";              /* reference data have relative paths */

    test_case c;
    if (case_open(&c, "vae_full_a")) {
        test_reference(&c, "enc_t1");
        test_reference(&c, "enc_t5_taps");
        test_reference(&c, "enc_t9");
        test_reference(&c, "enc_t12_dropped");
        case_close(&c);
    }
    test_ways_in();
    test_class();
    test_refusals();
    test_generate();
    test_pipes();
    return program_end();
}
