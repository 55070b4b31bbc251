/* test_video_in.c: y4m, PNG, JPEG, numbered pictures, ffmpeg, resizing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  resized pictures and a JPEG row, made with Pillow; YCbCr of
 *                primaries; the definition of the pixel scale.
 * Properties     what the writers of video.h write is read back; every damaged
 *                file is refused with a sentence (run with SAN=address,
 *                undefined to see that nothing else happens). */
#include "io/video.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/picture.h"
#include "tests/folder.h"

static tt_ctx *ctx;

static void put(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f) {
        expect(fwrite(data, 1, n, f) == n, "%s is written", path);
        fclose(f);
    }
}

static size_t get(const char *path, uint8_t *data, size_t capacity)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(data, 1, capacity, f) : 0;
    if (f) fclose(f);
    return n;
}

/* All frames of `path` into rgb (room for `most` bytes, NULL: thrown away);
 * their number, or -1 with the failure in ctx. */
static int64_t read_video(const char *path, uint8_t *rgb, int64_t most,
                          int64_t *w, int64_t *h)
{
    tt_video_in *v;
    int64_t frames = 0;
    bool more = true;
    if (tt_video_in_open(ctx, &v, path)) return -1;
    *w = tt_video_in_width(v);
    *h = tt_video_in_height(v);
    const int64_t n = 3 * *w * *h;
    uint8_t *one = malloc((size_t)n);
    while (one && tt_video_in_frame(v, one, &more) == TT_OK && more) {
        if (rgb && (frames + 1) * n <= most)
            memcpy(rgb + frames * n, one, (size_t)n);
        frames++;
    }
    free(one);
    tt_video_in_close(v);
    return ctx->status ? -1 : frames;
}

static void expect_refused(const char *path, tt_status want, const char *word)
{
    int64_t w, h;
    read_video(path, NULL, 0, &w, &h);
    expect(ctx->status == want && strstr(tt_message(ctx), word),
           "%s: status %d, expected %d with `%s`: %s", path, ctx->status, want,
           word, tt_message(ctx));
    tt_clear(ctx);
}

/* ---- pixels -------------------------------------------------------------- */

static void test_scale(void)
{
    const uint8_t bytes[4] = {0, 255, 51, 204};
    const double want[4] = {-1, 1, -0.6, 0.6};
    tt_real got[4];
    tt_real_from_rgb8(got, bytes, 4);
    expect_close_f64("pixel scale", got, 4, want, 1.2e-7);
    uint8_t back[3];
    for (int i = 0; i < 256; i++) {
        const uint8_t b[3] = {(uint8_t)i, 0, 0};
        tt_real_from_rgb8(got, b, 3);
        tt_rgb8_from_real(back, got, 1, 3, 1);
        if (abs(back[0] - i) > 1) break; /* truncation may lose one */
        if (i == 255) expect(true, "bytes survive the scale");
    }
    expect(back[0] == 255, "255 is 1 and back");
}

static void test_yuv(void)
{
    int worst = 0;
    for (int r = 0; r < 256; r += 5)
        for (int g = 0; g < 256; g += 5)
            for (int b = 0; b < 256; b += 5) {
                const uint8_t in[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)b};
                uint8_t y, cb, cr, out[3];
                tt_yuv_from_rgb(&y, &cb, &cr, in, 1);
                tt_rgb_from_yuv(out, &y, &cb, &cr, 1, false);
                for (int c = 0; c < 3; c++)
                    if (abs(out[c] - in[c]) > worst)
                        worst = abs(out[c] - in[c]);
            }
    /* half a step of Y and of Cb: 0.5 * 255/219 + 0.5 * 1.772 * 255/224,
     * rounded: 2 */
    expect(worst <= 2, "BT.601 and back: off by %d", worst);

    /* JPEG's formula: Y 76 Cb 84 Cr 255 is red, full range */
    const uint8_t y[3] = {0, 255, 76}, cb[3] = {128, 128, 84};
    const uint8_t cr[3] = {128, 128, 255};
    const uint8_t want[9] = {0, 0, 0, 255, 255, 255, 254, 0, 0};
    uint8_t got[9];
    tt_rgb_from_yuv(got, y, cb, cr, 3, true);
    expect_bits("full range", got, want, 6);
    expect(got[6] == 254 && got[7] < 2 && got[8] < 2, "red: %d %d %d", got[6],
           got[7], got[8]);
}

static void formula_picture(uint8_t *rgb, int w, int h)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++, rgb += 3) {
            rgb[0] = (uint8_t)(x * 37 + y * 11);
            rgb[1] = (uint8_t)(x * y * 5 + 17);
            rgb[2] = (uint8_t)(255 - x * 13 - y * 7);
        }
}

/* Image.fromarray(formula).resize((w, h), Image.BILINEAR) of Pillow 13.0 */
static void test_resize(void)
{
    static const struct {
        int w, h;
        const char *sha256;
        uint8_t first[6];
    } known[] = {
        {5, 4, "fd7ec62d0c626b6f52638c9aad0af7b1aad4e98717c35df3c4549460856085"
         "34", {48, 21, 235, 133, 31, 205}},
        {16, 12, "5cb3ae96e3e83e00674b6da4c87079312ae7e7e69c042fb3a2faa6546d2f"
         "7441", {0, 17, 255, 27, 17, 246}},
    };
    uint8_t in[13 * 9 * 3], out[16 * 12 * 3];
    formula_picture(in, 13, 9);
    for (int i = 0; i < 2; i++) {
        tt_sha256 s;
        char hex[65];
        expect_ok(tt_rgb_resize(ctx, out, known[i].w, known[i].h, in, 13, 9),
                  "resize");
        expect_bits("first pixels", out, known[i].first, 6);
        tt_sha256_init(&s);
        tt_sha256_add(&s, out, (size_t)(3 * known[i].w * known[i].h));
        tt_sha256_hex(&s, hex);
        expect(!strcmp(hex, known[i].sha256), "13x9 to %dx%d: %s", known[i].w,
               known[i].h, hex);
    }
    tt_rgb_resize(ctx, out, 13, 9, in, 13, 9);
    expect_bits("the same size changes nothing", out, in, sizeof in);
}

/* ---- y4m ----------------------------------------------------------------- */

static tt_status write_video(const char *path, int w, int h, int frames,
                             uint8_t *kept)
{
    tt_video_format f = {.width = w, .height = h, .fps = 16,
                         .frames = frames};
    tt_video *v;
    TT_TRY(tt_video_open(ctx, &v, path, &f));
    for (int i = 0; i < frames; i++, kept += 3 * w * h) {
        formula_picture(kept, w, h);
        for (int k = 0; k < 3 * w * h; k++)
            kept[k] = (uint8_t)(kept[k] + 40 * i);
        tt_video_frame(v, kept);
    }
    return tt_video_finish(v);
}

static void test_y4m_round_trip(void)
{
    uint8_t wrote[3 * 3 * 32 * 17], got[sizeof wrote];
    int64_t w = 0, h = 0;
    expect_ok(write_video(at("a.y4m"), 32, 17, 3, wrote), "write y4m");
    expect(read_video(at("a.y4m"), got, sizeof got, &w, &h) == 3 && w == 32
           && h == 17, "3 frames of 32x17: %s", tt_message(ctx));
    int worst = 0;
    for (size_t i = 0; i < sizeof got; i++)
        if (abs(got[i] - wrote[i]) > worst) worst = abs(got[i] - wrote[i]);
    expect(worst <= 2, "y4m written and read back: off by %d", worst);
}

/* One frame of given planes, grey ramps: checks sampling, not colours. */
static void check_y4m(const char *header, const uint8_t *planes, size_t n,
                      int64_t w, int64_t h, const uint8_t *want)
{
    uint8_t file[512], got[192];
    int64_t gw = 0, gh = 0;
    const int m = snprintf((char *)file, sizeof file, "%sFRAME\n", header);
    memcpy(file + m, planes, n);
    put(at("b.y4m"), file, (size_t)m + n);
    const int64_t frames = read_video(at("b.y4m"), got, sizeof got, &gw, &gh);
    if (expect(frames == 1 && gw == w && gh == h, "%s: %s", header,
               tt_message(ctx)))
        expect_bits(header, got, want, (size_t)(3 * w * h));
    tt_clear(ctx);
}

/* rgb of one sample each, by the formula checked above. */
static void colours(uint8_t *rgb, int n, const uint8_t *y, const int *cb,
                    const int *cr, bool full)
{
    for (int i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)cb[i], r = (uint8_t)cr[i];
        tt_rgb_from_yuv(rgb + 3 * i, y + i, &b, &r, 1, full);
    }
}

static void test_y4m_sampling(void)
{
    const uint8_t y[9] = {16, 50, 80, 100, 120, 140, 160, 200, 235};
    uint8_t planes[27], want[27];
    /* 3x3, 4:2:0: chroma is 2x2 */
    const uint8_t chroma[8] = {90, 110, 130, 150, 100, 120, 140, 160};
    const int cb420[9] = {90, 90, 110, 90, 90, 110, 130, 130, 150};
    const int cr420[9] = {100, 100, 120, 100, 100, 120, 140, 140, 160};
    memcpy(planes, y, 9);
    memcpy(planes + 9, chroma, 8);
    colours(want, 9, y, cb420, cr420, false);
    check_y4m("YUV4MPEG2 W3 H3 F16:1\n", planes, 17, 3, 3, want);
    check_y4m("YUV4MPEG2 H3 W3 C420mpeg2 Ip A0:0 XYSCSS=420MPEG2\n", planes,
              17, 3, 3, want);
    colours(want, 9, y, cb420, cr420, true);
    check_y4m("YUV4MPEG2 W3 H3 C420jpeg XCOLORRANGE=FULL\n", planes, 17, 3, 3,
              want);
    /* 3x2, 4:2:2: chroma is 2x2 */
    const int cb422[6] = {90, 90, 110, 130, 130, 150};
    const int cr422[6] = {100, 100, 120, 140, 140, 160};
    memcpy(planes + 6, chroma, 8);
    colours(want, 6, y, cb422, cr422, false);
    check_y4m("YUV4MPEG2 W3 H2 C422\n", planes, 14, 3, 2, want);
    /* 2x1, 4:4:4, and luma alone */
    const uint8_t full[6] = {50, 60, 90, 110, 100, 120};
    const int cb444[2] = {90, 110}, cr444[2] = {100, 120};
    const int grey[2] = {128, 128};
    colours(want, 2, full, cb444, cr444, false);
    check_y4m("YUV4MPEG2 W2 H1 C444\n", full, 6, 2, 1, want);
    colours(want, 2, full, grey, grey, false);
    check_y4m("YUV4MPEG2 W2 H1 Cmono\n", full, 2, 2, 1, want);
}

static void test_y4m_refusals(void)
{
    static const struct { const char *text, *word; } bad[] = {
        {"YUV4MPEG2", "header"},
        {"YUV4MPEG2 W2 H2", "one line"},
        {"YUV4MPEG2x W2 H2\n", "one line"},
        {"YUV4MPEG2 W2\n", "size"},
        {"YUV4MPEG2 H2\n", "size"},
        {"YUV4MPEG2 W0 H2\n", "W0"},
        {"YUV4MPEG2 W-2 H2\n", "W-2"},
        {"YUV4MPEG2 W+2 H2\n", "W+2"},
        {"YUV4MPEG2 W2 W2 H2\n", "twice"},
        {"YUV4MPEG2 W99999999999999999999999 H2\n", "not a size"},
        {"YUV4MPEG2 W4294967298 H2\n", "not a size"},
        {"YUV4MPEG2 W2147483647 H2147483647\n", "outside"},
        {"YUV4MPEG2 W16384 H16384\n", "outside"},
        {"YUV4MPEG2 W16385 H1\n", "outside"},
        {"YUV4MPEG2 W2 H2 C420p10\n", "8-bit"},
        {"YUV4MPEG2 W2 H2 C411\n", "8-bit"},
        {"YUV4MPEG2 W2 H2 It\n", "interlaced"},
        {"YUV4MPEG2 W2 H2 F16\n", "ratio"},
        {"YUV4MPEG2 W2 H2 XCOLORRANGE=SOME\n", "FULL"},
        {"YUV4MPEG2 W2 H2 Q7\n", "not a known"},
        {"YUV4MPEG2 W2 H2 \x1b[31m\n", "not a known"},
        {"YUV4MPEG2 W2 H2\nFRAMEX\n123456", "FRAME"},
        {"YUV4MPEG2 W2 H2\nframe\n123456", "FRAME"},
        {"YUV4MPEG2 W2 H2\nFRAME", "FRAME"},
        {"YUV4MPEG2 W2 H2\nFRAME\n12345", "5 of 6 bytes"},
        {"YUV4MPEG2 W2 H2\nFRAME\n123456F", "FRAME"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(at("bad.y4m"), bad[i].text, strlen(bad[i].text));
        expect_refused(at("bad.y4m"), TT_EFORMAT, bad[i].word);
    }
    char text[4096];
    memset(text, ' ', sizeof text);
    memcpy(text, "YUV4MPEG2 W2 H2", 15);
    put(at("bad.y4m"), text, sizeof text);
    expect_refused(at("bad.y4m"), TT_EFORMAT, "one line");
    memcpy(text, "YUV4MPEG2 W2\0H2\n", 16);
    put(at("bad.y4m"), text, 100);
    expect_refused(at("bad.y4m"), TT_EFORMAT, "one line");

    int64_t w, h;
    const char *none = "YUV4MPEG2 W2 H2\n";
    put(at("none.y4m"), none, strlen(none));
    expect(read_video(at("none.y4m"), NULL, 0, &w, &h) == 0,
           "a header alone is a video without frames");
    put(at("empty"), "", 0);
    expect_refused(at("empty"), TT_EFORMAT, "empty");
    expect_refused(at("missing"), TT_EIO, "No such file");
}

/* ---- pictures ------------------------------------------------------------ */

/* All is right with it but the name of a chunk. */
static void test_chunk_name(void)
{
    tt_arena a = {0};
    uint8_t *rgb;
    int64_t w, h;
    tt_picture_read(ctx, &a, &rgb, &w, &h,
                    ref_path("fuzz/picture/png_chunk_without_name"));
    expect(strstr(tt_message(ctx), "not four letters") != NULL, "\"%s\"",
           tt_message(ctx));
    expect_status(ctx->status, TT_EFORMAT, "a chunk without a name");
    tt_arena_free(&a);
}

static void test_png_pattern(void)
{
    uint8_t wrote[3 * 3 * 13 * 9], got[sizeof wrote];
    int64_t w = 0, h = 0;
    expect_ok(write_video(at("f/%03d.png"), 13, 9, 3, wrote), "write PNGs");
    expect(read_video(at("f/%03d.png"), got, sizeof got, &w, &h) == 3
           && w == 13 && h == 9, "3 PNGs: %s", tt_message(ctx));
    expect_bits("PNG pattern", got, wrote, sizeof wrote);
    expect(read_video(at("f/001.png"), got, sizeof got, &w, &h) == 1,
           "one PNG is one frame");
    expect_bits("one PNG", got, wrote + 3 * 13 * 9, 3 * 13 * 9);

    /* from 1; a gap; another size */
    expect(unlink(at("f/000.png")) == 0
           && read_video(at("f/%03d.png"), got, sizeof got, &w, &h) == 2,
           "numbers may begin with 1");
    expect_ok(tt_png_write(ctx, at("f/004.png"), wrote, 13, 9), "PNG");
    expect_refused(at("f/%03d.png"), TT_EIO, "003.png is missing");
    expect_ok(tt_png_write(ctx, at("f/003.png"), wrote, 9, 13), "PNG");
    expect_refused(at("f/%03d.png"), TT_EFORMAT, "9x13");
    expect_refused(at("g/%d.png"), TT_EIO, "no frame 0 or 1");
    expect_refused(at("g/%d%d.png"), TT_EIO, "No such file");
    /* a name that only looks like a pattern */
    expect_ok(tt_png_write(ctx, at("x.png"), wrote, 13, 9), "PNG");
    expect(rename(at("x.png"), at("100%d.png")) == 0
           && read_video(at("100%d.png"), got, sizeof got, &w, &h) == 1,
           "a file of that very name comes first");
}

/* 16x8 grey ramp 0, 16, ..., 240, quality 50; its first row as libjpeg
 * decodes it. */
static const uint8_t jpeg[167] = {
    255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1, 0, 0, 1, 0, 1, 0,
    0, 255, 219, 0, 67, 0, 16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17,
    16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60,
    57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81,
    87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101,
    103, 99, 255, 192, 0, 11, 8, 0, 8, 0, 16, 1, 1, 17, 0, 255, 196, 0, 21,
    0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 7, 255, 196, 0,
    22, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 66, 255,
    218, 0, 8, 1, 1, 0, 0, 63, 0, 54, 146, 74, 2, 73, 63, 255, 217};
static const uint8_t jpeg_row[16] = {0, 13, 32, 49, 63, 80, 99, 112, 128, 141,
                                     160, 177, 191, 208, 227, 240};

static void test_jpeg(void)
{
    uint8_t got[16 * 8 * 3];
    int64_t w = 0, h = 0;
    put(at("a.jpg"), jpeg, sizeof jpeg);
    bool good = read_video(at("a.jpg"), got, sizeof got, &w, &h) == 1
             && w == 16 && h == 8;
    for (int i = 0; good && i < 16; i++)
        good = abs(got[3 * i] - jpeg_row[i]) <= 1
            && got[3 * i] == got[3 * i + 2];
    expect(good, "a JPEG as libjpeg decodes it, to 1: %s", tt_message(ctx));
    tt_clear(ctx);
}

/* ---- damage -------------------------------------------------------------- */

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8
         | (uint32_t)p[3];
}

/* ---- orientation --------------------------------------------------------- */

/* EXIF data with one entry before the orientation; its length. */
static size_t exif_of(uint8_t *p, bool little, int orientation)
{
    static const uint8_t big[] = {
        'M', 'M', 0, 42, 0, 0, 0, 8, 0, 2,
        1, 0x0f, 0, 2, 0, 0, 0, 4, 'a', 'b', 'c', 0,
        1, 0x12, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t small[] = {
        'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0,
        0x0f, 1, 2, 0, 4, 0, 0, 0, 'a', 'b', 'c', 0,
        0x12, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    memcpy(p, little ? small : big, sizeof big);
    p[little ? 30 : 31] = (uint8_t)orientation;
    return sizeof big;
}

/* The fixture with EXIF data in a segment after another one. */
static void put_jpeg_exif(const char *path, const uint8_t *exif, size_t n)
{
    uint8_t file[600] = {0xff, 0xd8, 0xff, 0xfe, 0, 4, 'h', 'i', 0xff, 0xe1, 0,
                         (uint8_t)(n + 8), 'E', 'x', 'i', 'f', 0, 0};
    memcpy(file + 18, exif, n);
    memcpy(file + 18 + n, jpeg + 2, sizeof jpeg - 2);
    put(path, file, 18 + n + sizeof jpeg - 2);
}

/* The PNG in `plain` with a chunk eXIf after its IHDR. */
static void put_png_exif(const char *path, const char *plain,
                         const uint8_t *exif, size_t n)
{
    uint8_t file[4096], whole[4200];
    const size_t size = get(plain, file, sizeof file);
    memcpy(whole, file, 33);
    memcpy(whole + 33, (uint8_t[]){0, 0, 0, (uint8_t)n, 'e', 'X', 'I', 'f'}, 8);
    memcpy(whole + 41, exif, n);
    const uint32_t crc = picture_crc32(0, whole + 37, n + 4);
    for (int i = 0; i < 4; i++)
        whole[41 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    memcpy(whole + 45 + n, file + 33, size - 33);
    put(path, whole, size + 12 + n);
}

/* Where pixel x, y of the upright picture is stored, of w x h: what EXIF says
 * of its first row and column, 1 = top and left, 6 = right and top ... */
static void stored_at(int orientation, int w, int h, int x, int y, int *col,
                      int *row)
{
    static const char *const sides[9] = {
        NULL, "tl", "tr", "br", "bl", "lt", "rt", "rb", "lb"};
    /* row 0 of the stored picture is the upright one's side [0], column 0 its
     * side [1] */
    const char *s = sides[orientation];
    const bool swap = s[0] == 'l' || s[0] == 'r';
    const int up_w = swap ? h : w, up_h = swap ? w : h;
    *row = s[0] == 't' ? y : s[0] == 'b' ? up_h - 1 - y
         : s[0] == 'l' ? x : up_w - 1 - x;
    *col = s[1] == 'l' ? x : s[1] == 'r' ? up_w - 1 - x
         : s[1] == 't' ? y : up_h - 1 - y;
}

static bool is_upright(const char *path, const uint8_t *stored, int w, int h,
                       int orientation)
{
    static uint8_t got[3 * 16 * 16];
    int64_t gw = 0, gh = 0;
    bool good = read_video(path, got, sizeof got, &gw, &gh) == 1
        && gw == (orientation > 4 ? h : w) && gh == (orientation > 4 ? w : h);
    for (int y = 0; good && y < gh; y++)
        for (int x = 0; x < gw; x++) {
            int col, row;
            stored_at(orientation, w, h, x, y, &col, &row);
            good = good && !memcmp(got + 3 * (y * gw + x),
                                   stored + 3 * (row * w + col), 3);
        }
    return good;
}

static void test_orientation(void)
{
    static uint8_t stored[3 * 16 * 8], rgb[3 * 13 * 9];
    uint8_t exif[64];
    int64_t w, h;
    formula_picture(rgb, 13, 9);
    expect_ok(tt_png_write(ctx, at("o.png"), rgb, 13, 9), "PNG");
    put(at("o.jpg"), jpeg, sizeof jpeg);
    expect(read_video(at("o.jpg"), stored, sizeof stored, &w, &h) == 1, "JPEG");
    for (int i = 0; i < 10; i++)
        for (int little = 0; little < 2; little++) {
            const size_t n = exif_of(exif, little, i);
            const int o = i < 1 || i > 8 ? 1 : i;
            put_jpeg_exif(at("e.jpg"), exif, n);
            put_png_exif(at("e.png"), at("o.png"), exif, n);
            expect(is_upright(at("e.jpg"), stored, 16, 8, o),
                   "JPEG of orientation %d: %s", i, tt_message(ctx));
            expect(is_upright(at("e.png"), rgb, 13, 9, o),
                   "PNG of orientation %d: %s", i, tt_message(ctx));
        }
    /* cut short, or a directory somewhere else: as without */
    for (size_t n = 0; n < 34; n++) {
        exif_of(exif, true, 6);
        put_jpeg_exif(at("e.jpg"), exif, n);
        expect(is_upright(at("e.jpg"), stored, 16, 8, n < 34 ? 1 : 6),
               "EXIF of %zu bytes: %s", n, tt_message(ctx));
    }
    for (int i = 4; i < 8; i++) {
        exif_of(exif, true, 6);
        exif[i] = 0xff;
        put_jpeg_exif(at("e.jpg"), exif, 38);
        expect(is_upright(at("e.jpg"), stored, 16, 8, 1), "a directory beyond "
               "the end: %s", tt_message(ctx));
    }
}

/* A WebP with nothing but EXIF data, begun as in a JPEG or not; a TIFF. */
static void put_webp_exif(const char *path, const uint8_t *exif, size_t n,
                          bool word)
{
    static const uint8_t begin[] = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E',
                                    'B', 'P', 'V', 'P', '8', 'L', 3, 0, 0, 0,
                                    1, 2, 3, 0, 'E', 'X', 'I', 'F'};
    uint8_t file[200] = {0};
    size_t at = sizeof begin;
    memcpy(file, begin, at);
    file[at] = (uint8_t)(n + (word ? 6 : 0));
    at += 4;
    if (word) memcpy(file + at, "Exif\0", 6), at += 6;
    memcpy(file + at, exif, n);
    put(path, file, at + n);
}

/* Pictures that ffmpeg reads are refused where they are not upright. */
static void test_orientation_other(void)
{
    uint8_t exif[64];
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 6; k++) {
            tt_video_in *v = NULL;
            const size_t n = exif_of(exif, k % 2, i);
            if (k < 4) put_webp_exif(at("e.webp"), exif, n, k > 1);
            else put(at("e.webp"), exif, n);
            const bool opened = !tt_video_in_open(ctx, &v, at("e.webp"));
            const bool said = strstr(tt_message(ctx), "save it as one of");
            expect(!opened && said == (i > 1 && i < 9),
                   "orientation %d: %s", i, tt_message(ctx));
            tt_clear(ctx);
            tt_video_in_close(v);
        }
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* What is inside a PNG may be hostile; make its CRCs right. */
static void repair(uint8_t *p, size_t n)
{
    for (size_t k = 8; k < n && n - k >= 12;) {
        const size_t length = be32(p + k);
        if (length > n - k - 12) return;
        uint32_t c = 0xffffffff;
        for (size_t i = 0; i < length + 4; i++) {
            c ^= p[k + 4 + i];
            for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
        }
        put_be32(p + k + 8 + length, ~c);
        k += 12 + length;
    }
}

static bool reads(const char *path)
{
    tt_arena a = {0};
    uint8_t *rgb;
    int64_t w, h;
    unsigned sum = 0;
    if (tt_picture_read(ctx, &a, &rgb, &w, &h, path) == TT_OK)
        for (int64_t i = 0; i < 3 * w * h; i++) sum += rgb[i];
    const bool good = ctx->status == TT_OK && sum < UINT32_MAX;
    expect(good || *tt_message(ctx), "a refusal has a sentence");
    tt_clear(ctx);
    tt_arena_free(&a);
    return good;
}

/* Every truncation and every changed byte of a PNG is noticed. */
static void test_damaged_png(void)
{
    uint8_t file[2048], rgb[13 * 9 * 3];
    formula_picture(rgb, 13, 9);
    expect_ok(tt_png_write(ctx, at("d.png"), rgb, 13, 9), "PNG");
    const size_t n = get(at("d.png"), file, sizeof file);
    int missed = 0;
    for (size_t k = 0; k < n; k++) {
        file[k] ^= 1 << k % 8;
        put(at("e.png"), file, n);
        missed += reads(at("e.png"));
        file[k] ^= 1 << k % 8;
        put(at("e.png"), file, k);
        missed += reads(at("e.png"));
    }
    expect(missed == 0, "%d damaged PNGs were read", missed);

    /* sizes of 2^31, of 16384^2, of more than there is data for */
    static const uint32_t side[][2] = {{0x80000000, 1}, {16384, 16384},
                                       {0, 9}, {4096, 4096}};
    for (int i = 0; i < 4; i++) {
        put_be32(file + 16, side[i][0]);
        put_be32(file + 20, side[i][1]);
        repair(file, n);
        put(at("e.png"), file, n);
        expect(!reads(at("e.png")), "a PNG of %u x %u", side[i][0],
               side[i][1]);
    }
}

static uint32_t chance(uint32_t *s)
{
    *s = *s * 1664525 + 1013904223;
    return *s >> 8;
}

/* A few random bytes, with the CRCs of a PNG made right: nothing to expect but
 * that it comes back (the sanitizers look on). */
static void test_hostile(void)
{
    uint8_t file[2048], mutated[2048], rgb[13 * 9 * 3];
    uint32_t s = 7;
    formula_picture(rgb, 13, 9);
    expect_ok(tt_png_write(ctx, at("d.png"), rgb, 13, 9), "PNG");
    const size_t size[2] = {get(at("d.png"), file, sizeof file), sizeof jpeg};
    for (int kind = 0; kind < 2; kind++) {
        const uint8_t *from = kind ? jpeg : file;
        int good = 0;
        for (int i = 0; i < 1500; i++) {
            size_t n = size[kind];
            memcpy(mutated, from, n);
            for (uint32_t k = chance(&s) % 4; k < 4; k++)
                mutated[chance(&s) % n] = (uint8_t)chance(&s);
            if (chance(&s) % 8 == 0) n = 1 + chance(&s) % n;
            if (!kind) repair(mutated, n);
            put(at("h"), mutated, n);
            good += reads(at("h"));
        }
        expect(good < 1500, "some were refused (%d were not)", good);
    }
    /* a JPEG with more scans than any picture needs */
    static uint8_t scans[3 + 201 * 4] = {0xff, 0xd8, 0xff};
    for (int i = 0; i < 201; i++)
        memcpy(scans + 2 + 4 * i, "\xff\xda\0\x08", 4);
    put(at("scans.jpg"), scans, sizeof scans);
    expect_refused(at("scans.jpg"), TT_EFORMAT, "more than 200 scans");
    /* a JPEG table with 16 * 255 symbols */
    memcpy(mutated, jpeg, sizeof jpeg);
    for (size_t k = 0; k + 20 < sizeof jpeg; k++)
        if (jpeg[k] == 255 && jpeg[k + 1] == 196) {
            memset(mutated + k + 5, 255, 16);
            break;
        }
    put(at("h"), mutated, sizeof jpeg);
    expect(!reads(at("h")), "an overfull Huffman table is refused");
}

/* ---- ffmpeg -------------------------------------------------------------- */

static void test_ffmpeg(void)
{
    static uint8_t wrote[5 * 3 * 32 * 16], got[sizeof wrote];
    tt_video_format f = {.width = 32, .height = 16, .fps = 16, .frames = 5};
    char path[4096];
    int64_t w = 0, h = 0;
    put(at("text.mp4"), "not a video at all\n", 19);
    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", "/nowhere", 1);
    expect_refused(at("text.mp4"), TT_EUNSUPPORTED, "ffmpeg");
    setenv("PATH", path, 1);
    const bool have = tt_video_check(ctx, at("m.gif"), &f) == TT_OK;
    tt_clear(ctx);
    if (!have) {
        skip("no gif read: ffmpeg is not installed");
        return;
    }

    expect_refused(at("text.mp4"), TT_EIO, "ffmpeg failed");
    expect_refused(folder, TT_EIO, "cannot read");
    expect_ok(write_video(at("m.gif"), 32, 16, 5, wrote), "gif");
    /* a list of other files is not followed */
    static const char list[] = "ffconcat version 1.0\nfile m.gif\n";
    put(at("list.mp4"), list, sizeof list - 1);
    expect_refused(at("list.mp4"), TT_EIO, "ffmpeg failed");
    expect(read_video(at("m.gif"), got, sizeof got, &w, &h) == 5 && w == 32
           && h == 16, "5 frames of 32x16: %s", tt_message(ctx));
    double sum = 0;
    for (size_t i = 0; i < sizeof got; i++) sum += abs(got[i] - wrote[i]);
    expect(sum / sizeof got < 20, "the frames resemble what was written: %g",
           sum / sizeof got);
    /* stopped early: ffmpeg is ended, nothing waits */
    tt_video_in *v;
    bool more;
    if (expect_ok(tt_video_in_open(ctx, &v, at("m.gif")), "open")) {
        expect_ok(tt_video_in_frame(v, got, &more), "one frame");
        tt_video_in_close(v);
    }
}

int main(void)
{
    ctx = test_begin("io/video_in");
    if (!folder_make())
        return test_end();

    test_chunk_name();
    test_scale();
    test_yuv();
    test_resize();
    test_y4m_round_trip();
    test_y4m_sampling();
    test_y4m_refusals();
    test_png_pattern();
    test_jpeg();
    test_orientation();
    test_orientation_other();
    test_damaged_png();
    test_hostile();
    test_ffmpeg();

    folder_remove();
    return test_end();
}
