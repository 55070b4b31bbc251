/* test_video.c: pixels, PNG, y4m, contact sheet, atomic output.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  ref_data/vae_full_a: u8 computed from the given video_raw.
 * Properties     round trip of y4m conversion, names that appear only when
 *                complete, one sentence for every refusal. */
#include "io/video.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "io/place.h"
#include "io/shows.h"
#include "io/outfile.h"


static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* ---- pixels -------------------------------------------------------------- */

static void test_u8(tt_ctx *ctx, test_case *c, const char *run)
{
    char name[64];
    snprintf(name, sizeof name, "%s.video_raw", run);
    const tt_entry *raw = tt_file_find(c->expected, name);
    snprintf(name, sizeof name, "%s.u8", run);
    const tt_entry *want = tt_file_find(c->expected, name);
    if (!expect(raw && want, "%s: tensors of vae_full_a", run)) return;

    int64_t frames = raw->t.dim[2], pixels = raw->t.dim[3] * raw->t.dim[4];
    tt_arena a = {0};
    tt_real *v = tt_read_real(ctx, &a, &raw->t);
    uint8_t *got = tt_alloc(ctx, &a, frames * pixels, 3, "frames");
    if (v && got) {
        for (int64_t f = 0; f < frames; f++)
            tt_rgb8_from_real(got + 3 * f * pixels, v + f * pixels, pixels, 1,
                              frames * pixels);
        expect_bits(run, got, want->t.data, (size_t)(3 * frames * pixels));
    }
    tt_arena_free(&a);
}

static void test_conversion(void)
{
    const tt_real edge[6] = {-2, -1, 1, 2, 0, (tt_real)-0.9999999};
    const uint8_t want[6] = {0, 0, 255, 255, 127, 0};
    uint8_t got[6];
    tt_rgb8_from_real(got, edge, 2, 3, 1);
    expect_bits("clamp and truncate", got, want, 6);

    tt_real nan3[3];
    nan3[0] = nan3[1] = nan3[2] = (tt_real)(0.0f / (float)(got[0]));
    tt_rgb8_from_real(got, nan3, 1, 3, 1);
    expect(got[0] == 0 && got[2] == 0, "NaN becomes 0");
}

/* BT.601: black, white, primaries; and every colour within the range. */
static void test_yuv(void)
{
    const uint8_t rgb[15] = {0, 0, 0,   255, 255, 255, 255, 0, 0,
                             0, 255, 0, 0,   0,   255};
    const uint8_t y[5] = {16, 235, 81, 145, 41};
    const uint8_t cb[5] = {128, 128, 90, 54, 240};
    const uint8_t cr[5] = {128, 128, 240, 34, 110};
    uint8_t a[5], b[5], c[5];
    tt_yuv_from_rgb(a, b, c, rgb, 5);
    expect_bits("Y of primaries", a, y, 5);
    expect_bits("Cb of primaries", b, cb, 5);
    expect_bits("Cr of primaries", c, cr, 5);

    bool inside = true;
    for (int r = 0; r < 256; r += 15)
        for (int g = 0; g < 256; g += 15)
            for (int blue = 0; blue < 256; blue += 15) {
                uint8_t p[3] = {(uint8_t)r, (uint8_t)g, (uint8_t)blue};
                tt_yuv_from_rgb(a, b, c, p, 1);
                inside = inside && a[0] >= 16 && a[0] <= 235 && b[0] >= 16
                      && b[0] <= 240 && c[0] >= 16 && c[0] <= 240;
            }
    expect(inside, "every colour stays inside the limited range");
}

/* ---- files --------------------------------------------------------------- */

static void paint(uint8_t *rgb, int w, int h, int frame)
{
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++) {
            rgb[3 * (i * w + j)] = (uint8_t)(8 * i + frame);
            rgb[3 * (i * w + j) + 1] = (uint8_t)(5 * j);
            rgb[3 * (i * w + j) + 2] = (uint8_t)(40 * frame);
        }
}

static tt_status write_video(tt_ctx *ctx, const char *path, int frames)
{
    uint8_t rgb[3 * 32 * 16];
    tt_video_format f = {.width = 32, .height = 16, .fps = 16,
                         .frames = frames};
    tt_video *v;
    TT_TRY(tt_video_open(ctx, &v, path, &f));
    for (int i = 0; i < frames; i++) {
        paint(rgb, 32, 16, i);
        tt_video_frame(v, rgb);
    }
    return tt_video_finish(v);
}

static void test_y4m(tt_ctx *ctx)
{
    const char *path = at("a.y4m");
    expect_ok(write_video(ctx, path, 3), "y4m");
    int64_t head = (int64_t)strlen("YUV4MPEG2 W32 H16 F16:1 Ip A1:1 C444 "
                                   "XCOLORRANGE=LIMITED\n");
    expect(size_of(path) == head + 3 * (6 + 3 * 32 * 16), "y4m size");
}

static void test_pngs(tt_ctx *ctx)
{
    expect_ok(write_video(ctx, at("frames/%03d.png"), 2), "png pattern");
    expect(exists(at("frames/000.png")) && exists(at("frames/001.png"))
           && !exists(at("frames/002.png")), "names of the pattern");
    expect_ok(write_video(ctx, at("one.png"), 1), "single png");
    expect_status(write_video(ctx, at("two.png"), 2), TT_EINVAL,
                  "two frames in one png");
    expect(!exists(at("two.png")), "nothing left of the refused png");

    FILE *f = fopen(at("one.png"), "rb");
    unsigned char head[24] = {0};
    if (expect(f && fread(head, 1, 24, f) == 24, "png can be read"))
        expect(!memcmp(head, "\x89PNG\r\n\x1a\n", 8) && head[19] == 32
               && head[23] == 16, "png signature and size");
    if (f) fclose(f);
}

/* ---- animated PNG -------------------------------------------------------- */

static uint32_t be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8
         | p[3];
}

/* CRC-32 bit by bit, as the standard defines it. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
    }
    return ~c;
}

static size_t put_chunk(uint8_t *to, const char *type, const uint8_t *data,
                        size_t n)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(n >> (24 - 8 * i));
    memcpy(to + 4, type, 4);
    if (n) memcpy(to + 8, data, n);
    const uint32_t c = crc_of(to + 4, n + 4);
    for (int i = 0; i < 4; i++) to[8 + n + i] = (uint8_t)(c >> (24 - 8 * i));
    return n + 12;
}

/* One frame's rectangle as a PNG of its own, read by our reader and put where
 * it belongs on `canvas` [16, 32, 3]. */
static void show_frame(tt_ctx *ctx, uint8_t *canvas, const uint8_t *control,
                       const uint8_t *data, size_t n)
{
    static uint8_t png[1 << 14];
    uint8_t head[13] = {0}, *rgb;
    int64_t w, h;
    tt_arena a = {0};
    memcpy(head, control + 4, 8); /* width and height */
    head[8] = 8;
    head[9] = 2;
    memcpy(png, "\x89PNG\r\n\x1a\n", 8);
    size_t at_byte = 8 + put_chunk(png + 8, "IHDR", head, 13);
    at_byte += put_chunk(png + at_byte, "IDAT", data, n);
    at_byte += put_chunk(png + at_byte, "IEND", NULL, 0);
    FILE *f = fopen(at("rectangle.png"), "wb");
    if (f) fwrite(png, 1, at_byte, f);
    if (f) fclose(f);
    const int64_t x = be(control + 12), y = be(control + 16);
    if (expect_ok(tt_picture_read(ctx, &a, &rgb, &w, &h,
                                  at("rectangle.png")), "a rectangle")
        && expect(x + w <= 32 && y + h <= 16, "it lies in the picture"))
        for (int64_t i = 0; i < h; i++)
            memcpy(canvas + 3 * ((y + i) * 32 + x), rgb + 3 * i * w,
                   (size_t)(3 * w));
    tt_arena_free(&a);
}

/* Frame i of the animation: a square that moves, and stands still in 3. */
static void square(uint8_t *rgb, int i)
{
    memset(rgb, 90, 3 * 32 * 16);
    const int x = 2 * (i == 3 ? 2 : i);
    for (int k = 0; k < 4; k++) memset(rgb + 3 * ((5 + k) * 32 + x), 200, 12);
}

enum { SHOWN = 6 };

static tt_status write_animation(tt_ctx *ctx, const char *path,
                                 const char *comment, int stop)
{
    uint8_t rgb[3 * 32 * 16];
    const tt_video_format f = {.width = 32, .height = 16, .fps = 16,
                               .frames = SHOWN, .comment = comment};
    tt_video *v;
    TT_TRY(tt_video_open(ctx, &v, path, &f));
    for (int i = 0; i < stop; i++) {
        square(rgb, i);
        tt_video_frame(v, rgb);
    }
    if (stop == SHOWN) return tt_video_finish(v);
    expect(!exists(path), "no name before the end");
    tt_video_abort(v);
    return ctx->status;
}

static void test_apng(tt_ctx *ctx)
{
    static uint8_t file[1 << 16], canvas[3 * 32 * 16], want[3 * 32 * 16];
    const char *path = at("a.apng"), *text = "a square\nSteps: 4, Seed: 7";
    expect_ok(write_animation(ctx, path, text, SHOWN), "apng");
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    if (f) fclose(f);
    if (!expect(n > 8 && n < sizeof file, "the file")) return;

    const uint8_t *control = NULL;
    uint32_t sequence = 0;
    int frames = 0, texts = 0, ends = 0, order = 0;
    for (size_t i = 8; i + 12 <= n;) {
        const uint8_t *c = file + i, *data = c + 8;
        const size_t len = be(c);
        if (!expect(len <= n - i - 12 && crc_of(c + 4, len + 4)
                                         == be(data + len), "a chunk"))
            return;
        if (!memcmp(c + 4, "acTL", 4))
            expect(be(data) == SHOWN && be(data + 4) == 0 && !frames
                   && ++order == 1, "acTL: frames, for ever, before IDAT");
        if (!memcmp(c + 4, "tEXt", 4))
            texts += len == 11 + strlen(text)
                  && !memcmp(data, "parameters", 11)
                  && !memcmp(data + 11, text, strlen(text));
        if (!memcmp(c + 4, "fcTL", 4)) {
            control = data;
            expect(be(data) == sequence++ && !data[20] && data[21] == 1
                   && !data[22] && data[23] == 16 && !data[24] && !data[25],
                   "fcTL %d: order, 1/16 s, leave, replace", frames);
        }
        const bool first = !memcmp(c + 4, "IDAT", 4);
        if (first || !memcmp(c + 4, "fdAT", 4)) {
            if (!expect(control && first == !frames, "data has its control"))
                return;
            if (!first) expect(be(data) == sequence++, "fdAT: order");
            show_frame(ctx, canvas, control, data + (first ? 0 : 4),
                       len - (first ? 0 : 4));
            square(want, frames);
            expect_bits("an animated frame", canvas, want, sizeof want);
            if (frames == 1)
                expect(be(control + 4) == 6 && be(control + 8) == 4,
                       "only what has changed is written");
            frames++;
        }
        ends += !memcmp(c + 4, "IEND", 4) && i + 12 == n;
        i += 12 + len;
    }
    expect(frames == SHOWN && texts == 1 && ends == 1 && order == 1,
           "%d frames, %d texts, %d ends", frames, texts, ends);

    expect_ok(write_animation(ctx, at("half.apng"), NULL, 3), "given up");
    expect(!exists(at("half.apng")), "nothing is left of it");
    const tt_video_format form = {.width = 32, .height = 16, .fps = 16};
    expect_status(tt_video_check(ctx, "/dev/null/../null.apng", &form), TT_EIO,
                  "no such folder");
    const char *umlaut = "K\xc3\xa4se";
    expect_ok(tt_png_write_text(ctx, at("u.png"), want, 32, 16, umlaut),
              "a text in UTF-8");
    f = fopen(at("u.png"), "rb");
    const size_t m = f ? fread(file, 1, sizeof file, f) : 0;
    if (f) fclose(f);
    expect(m > 60 && !memcmp(file + 37, "iTXtparameters\0\0\0\0\0K\xc3\xa4se",
                             24), "is iTXt");
}

static void test_refusals(tt_ctx *ctx)
{
    tt_video_format f = {.width = 32, .height = 16, .fps = 16, .frames = 3};
    expect_status(tt_video_check(ctx, "x.avi", &f), TT_EINVAL, "ending");
    expect_status(tt_video_check(ctx, "x%d%d.png", &f), TT_EINVAL, "pattern");
    expect_status(tt_video_check(ctx, "x%s.png", &f), TT_EINVAL, "pattern %s");
    expect_status(tt_video_check(ctx, at("no/such/dir.y4m"), &f), TT_EIO,
                  "missing directory");
    expect_status(tt_video_check(ctx, "", &f), TT_EINVAL, "empty name");
    f.width = INT64_C(1) << 40;
    expect_status(tt_video_check(ctx, at("b.y4m"), &f), TT_EINVAL, "huge");
    uint8_t one[3] = {0};
    expect_status(tt_png_write(ctx, at("b.png"), one, INT64_C(1) << 32, 1),
                  TT_EINVAL, "png bounds come before stb");
    expect(!exists(at("b.y4m")) && !exists(at("b.png")), "nothing created");
}

/* A file has its name only when it is complete. */
static void test_atomic(tt_ctx *ctx)
{
    uint8_t rgb[3 * 32 * 16] = {0};
    tt_video_format f = {.width = 32, .height = 16, .fps = 16, .frames = 2};
    tt_video *v;
    if (!expect_ok(tt_video_open(ctx, &v, at("c.y4m"), &f), "open")) return;
    tt_video_frame(v, rgb);
    expect(!exists(at("c.y4m")), "no final name while writing");
    tt_video_abort(v);
    expect(!exists(at("c.y4m")), "no final name after abort");

    tt_out o;
    expect_ok(tt_out_open(ctx, &o, at("d")), "out open");
    tt_out_write(ctx, &o, "new", 3);
    tt_fail(ctx, TT_EIO, "a failure elsewhere");
    tt_out_finish(ctx, &o);
    tt_clear(ctx);
    expect(!exists(at("d")), "finish after a failure deletes");

    expect_ok(tt_out_open(ctx, &o, "/dev/null"), "a device");
    expect_ok(tt_out_finish(ctx, &o), "a device is written directly");
    struct stat st;
    expect(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode),
           "the device is still one");
}

static void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    if (!expect(f != NULL, "create %s", path)) return;
    fputs(text, f);
    fclose(f);
}

/* A link under the temporary name is not followed; a file of a killed process
 * is no hindrance; long names that begin alike have two. */
static void test_planted(tt_ctx *ctx)
{
    static const char *const name = ".e.part";
    char one[320], two[320];
    tt_out o, p;
    put_text(at("victim"), "precious");
    for (int i = 0; i < 2; i++) {
        if (i) put_text(at(name), "left");
        else expect(!symlink(at("victim"), at(name)), "plant a link");
        expect_ok(tt_out_open(ctx, &o, at("e")), "open");
        tt_out_write(ctx, &o, "new", 3);
        expect_ok(tt_out_finish(ctx, &o), "finish");
        expect(!strcmp(text_of(at("victim")), "precious"), "not followed");
        expect(!strcmp(text_of(at("e")), "new") && !exists(at(name)),
               "written under its name");
    }
    expect_ok(tt_out_open(ctx, &o, at("e")), "open");
    expect_ok(tt_out_open(ctx, &p, at("e")), "the same by someone else");
    expect(exists(at(name)) && strcmp(o.temporary, p.temporary),
           "what is being written stays: %s", p.temporary);
    tt_out_abort(&p);
    tt_out_write(ctx, &o, "one", 3);
    expect_ok(tt_out_finish(ctx, &o), "finish");
    expect(!strcmp(text_of(at("e")), "one"), "written");
    for (int i = 0; i < 2; i++) {
        char *c = i ? two : one;
        const size_t n = (size_t)snprintf(c, sizeof one, "%s", at(""));
        memset(c + n, 'x', 220);
        c[n + 220] = i ? 'b' : 'a';
        c[n + 221] = 0;
    }
    expect_ok(tt_out_open(ctx, &o, one), "a long name");
    expect_ok(tt_out_open(ctx, &p, two), "another");
    tt_out_write(ctx, &o, "1", 1);
    tt_out_write(ctx, &p, "2", 1);
    expect_ok(tt_out_finish(ctx, &o), "finish");
    expect_ok(tt_out_finish(ctx, &p), "finish");
    expect(!strcmp(text_of(one), "1"), "the first file");
    expect(!strcmp(text_of(two), "2"), "the second file");
}

/* A file that appears while one of its name is written stays, unless told
 * otherwise; one that was there is replaced. */
static void test_meanwhile(tt_ctx *ctx)
{
    tt_out o;
    for (int i = 0; i < 3; i++) {
        const bool there = i == 1, stays = i == 0;
        unlink(at("f"));
        ctx->overwrite = i == 2;
        if (there) put_text(at("f"), "old");
        expect_ok(tt_out_open(ctx, &o, at("f")), "open");
        tt_out_write(ctx, &o, "new", 3);
        if (!there) put_text(at("f"), "theirs");
        const tt_status s = tt_out_finish(ctx, &o);
        expect(stays ? s == TT_EIO && strstr(tt_message(ctx), "made meanwhile")
                     : s == TT_OK, "case %d: %s", i, tt_message(ctx));
        expect(!strcmp(text_of(at("f")), stays ? "theirs" : "new"),
               "case %d: %s", i, text_of(at("f")));
        expect(!exists(at(".f.part")) && exists(at("f.kept")) == stays
               && (!stays || (!strcmp(text_of(at("f.kept")), "new")
                              && strstr(tt_message(ctx), "f.kept"))),
               "case %d: what was written is not lost", i);
        unlink(at("f.kept"));
        tt_clear(ctx);
    }
    ctx->overwrite = false;
    /* where the system cannot rename so */
    put_text(at("g"), "new");
    expect(place_link(at("g"), at("f")) && errno == EEXIST
           && exists(at("g")), "taken: %s", strerror(errno));
    unlink(at("f"));
    expect(!place_link(at("g"), at("f")) && !exists(at("g"))
           && !strcmp(text_of(at("f")), "new"), "free");
}

/* The same for numbered pictures. */
static void test_pictures_meanwhile(tt_ctx *ctx)
{
    uint8_t rgb[3 * 32 * 16] = {0};
    tt_video_format f = {.width = 32, .height = 16, .fps = 16, .frames = 2};
    tt_video *v;
    if (!expect_ok(tt_video_open(ctx, &v, at("h%d.png"), &f), "open")) return;
    expect_ok(tt_video_frame(v, rgb), "frame 0");
    put_text(at("h1.png"), "theirs");
    expect_status(tt_video_frame(v, rgb), TT_EIO, "frame 1");
    tt_video_abort(v);
    tt_clear(ctx);
    expect(!strcmp(text_of(at("h1.png")), "theirs"), "it stays");
    if (!expect_ok(tt_video_open(ctx, &v, at("h%d.png"), &f), "open")) return;
    for (int i = 0; i < 2; i++) tt_video_frame(v, rgb);
    expect_ok(tt_video_finish(v), "over pictures that were there");
    expect(size_of(at("h1.png")) > 8, "replaced");
}

static void test_no_space(tt_ctx *ctx)
{
    if (!exists("/dev/full")) return;
    tt_out o;
    uint8_t block[8192] = {0};
    expect_ok(tt_out_open(ctx, &o, "/dev/full"), "open /dev/full");
    for (int i = 0; i < 4; i++) tt_out_write(ctx, &o, block, sizeof block);
    expect_status(tt_out_finish(ctx, &o), TT_EIO, "no space is reported");
}

static void test_sheet(tt_ctx *ctx)
{
    uint8_t rgb[3 * 32 * 16];
    tt_sheet *s;
    if (!expect_ok(tt_sheet_open(ctx, &s, at("sheet.png"), 32, 16, 9),
                   "sheet open")) return;
    for (int i = 0; i < 9; i++) {
        paint(rgb, 32, 16, i);
        tt_sheet_frame(s, rgb);
    }
    expect_ok(tt_sheet_finish(s), "sheet");
    expect(size_of(at("sheet.png")) > 100, "sheet written");
}

static void test_preview(void)
{
    tt_real z[2 * 16 * 2 * 3] = {0};
    uint8_t rgb[2 * 4 * 2 * 3 * 4 * 3];
    z[16 * 6 + 5] = 100;  /* frame 1, channel 0, last pixel: bright, reddish */
    const tt_preview p = tt_preview_layout(2, 2, 3);
    tt_latent_preview(rgb, &p, z, 16, 2, 3);
    size_t last = sizeof rgb - 3;
    expect(rgb[0] == 128 && rgb[1] == 128 && rgb[2] == 128,
           "zero latents are grey");
    expect(rgb[last] == 255, "the last pixel shows frame 1");

    /* Whatever the chunk, the picture stays within the bounds. */
    const int64_t sizes[][3] = {{3, 60, 104}, {1024, 60, 104}, {40, 2, 2000},
                                {3, 2048, 2048}, {1024, 2048, 2048},
                                {1024, 2048, 2}, {1, 2, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t F = sizes[i][0], h = sizes[i][1], w = sizes[i][2];
        const tt_preview q = tt_preview_layout(F, h, w);
        const int64_t rows = (q.frames + q.columns - 1) / q.columns;
        expect(q.frames >= 1 && q.frames <= F && q.zoom >= 1
               && q.width == q.columns * w * q.zoom
               && q.height == rows * h * q.zoom
               && q.width <= TT_PICTURE_SIDE_MAX
               && q.height <= TT_PICTURE_SIDE_MAX
               && q.width * q.height <= TT_PICTURE_AREA_MAX,
               "%d frames of %dx%d: %d, zoom %d, %dx%d", (int)F, (int)w,
               (int)h, (int)q.frames, (int)q.zoom, (int)q.width,
               (int)q.height);
        expect(i == 4 || q.frames == F, "all of them are shown");
    }
}

/* The smallest files with a picture; without their last byte they have none. */
static void test_shows(tt_ctx *ctx)
{
#define BYTES(text) text, sizeof text - 1
    static const struct { const char *name, *bytes; size_t n; } file[] = {
        {"s.mp4", BYTES("\0\0\0\12ftyp\0\0" "\0\0\0\10moov"
                        "\0\0\0\11moof\0" "\0\0\0\12mdat\1\2")},
        {"s.webm", BYTES("\x1a\x45\xdf\xa3\x82\0\0" "\x18\x53\x80\x67"
                         "\x01\xff\xff\xff\xff\xff\xff\xff"
                         "\xec\x40\x03\x1f\x43\xb6" "\x1f\x43\xb6\x75\xff"
                         "\xe7\x81\0" "\xa3\x85\x81\0\0\x80\1")},
        {"s.gif", BYTES("GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff"
                        "!\xf9\4\0\0\0\0\0,\0\0\0\0\1\0\1\0\0"
                        "\2\2\x44\1\0")}};
#undef BYTES
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        for (size_t k = 0; k <= file[i].n; k++) {
            FILE *f = fopen(at(file[i].name), "wb");
            expect(f && fwrite(file[i].bytes, 1, k, f) == k && !fclose(f)
                   && shows_picture(at(file[i].name)) == (k == file[i].n),
                   "%s, %zu of %zu bytes", file[i].name, k, file[i].n);
        }
    expect_ok(write_video(ctx, at("s.y4m"), 1), "y4m");
    expect(shows_picture(at("s.y4m")), "a y4m of one frame");
    expect(!truncate(at("s.y4m"), size_of(at("s.y4m")) - 1)
           && !shows_picture(at("s.y4m")), "and of less");
    FILE *f = fopen(at("s.y4m"), "wb");
    expect(f && fprintf(f, "YUV4MPEG2 W-4 H2 F16:1\nFRAME\n%24s", "") > 0
           && !fclose(f) && !shows_picture(at("s.y4m")), "a side below zero");
    expect(!shows_picture(at("none.mp4")), "no file");
}

/* ---- colours ------------------------------------------------------------- */

/* An ffmpeg of our own says what it was asked for. */
static void test_colours_asked(tt_ctx *ctx)
{
    static const char *const endings[] = {"mp4", "mov", "mkv", "webm", "gif"};
    char path[4096], asked[4096];
    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
    mkdir(at("bin"), 0777);
    FILE *f = fopen(at("bin/ffmpeg"), "w");
    if (!expect(f != NULL, "an ffmpeg")) return;
    fprintf(f, "#!/bin/sh\nPATH='%s'\necho \"$*\" >> '%s'\nfor a; do :; done\n"
            "exec cat > \"${a#file:}\"\n", path, at("asked"));
    fclose(f);
    chmod(at("bin/ffmpeg"), 0777);
    setenv("PATH", at("bin"), 1);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "a.%s", endings[i]);
        expect_ok(write_video(ctx, at(name), 1), name);
        f = fopen(at("asked"), "r");
        const bool read = f && fgets(asked, sizeof asked, f);
        if (f) fclose(f);
        unlink(at("asked"));
        const bool reported = read
            && strstr(asked, " scale=out_color_matrix=bt709:out_range=tv")
            && strstr(asked, " -colorspace bt709 -color_primaries bt709 "
                      "-color_trc bt709 -color_range tv ");
        expect(read && reported == (i < 4),
               "%s: BT.709, converted and described: %s", endings[i], asked);
    }
    setenv("PATH", path, 1);
}

static bool holds(const char *path, const void *bytes, size_t n)
{
    static char all[1 << 16];
    FILE *f = fopen(path, "rb");
    const size_t size = f ? fread(all, 1, sizeof all, f) : 0;
    if (f) fclose(f);
    size_t i = 0;
    while (i + n <= size && memcmp(all + i, bytes, n)) i++;
    return i + n <= size;
}

/* Flat frames of primaries. What is read back goes by the description: it is
 * at most 3 off where conversion and description agree. */
static void test_colours(tt_ctx *ctx)
{
    static const struct {
        const char *name;
        size_t n;
        uint8_t says[12];              /* 1 is BT.709; range 1 is limited     */
    } kinds[] = {
        {"c.mp4", 10, {'n', 'c', 'l', 'x', 0, 1, 0, 1, 0, 1}},
        {"c.mkv", 4, {0x55, 0xb1, 0x81, 1}},
        {"c.webm", 4, {0x55, 0xb1, 0x81, 1}},
    };
    static const uint8_t colour[6][3] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255},
                                         {255, 255, 0}, {255, 0, 255},
                                         {200, 30, 90}};
    const tt_video_format f = {.width = 64, .height = 48, .fps = 16,
                               .frames = 6};
    static uint8_t rgb[3 * 64 * 48];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *path = at(kinds[k].name);
        tt_video *v;
        tt_video_in *in;
        bool more = true;
        int worst = 0;
        if (tt_video_open(ctx, &v, path, &f) == TT_OK)
            for (int i = 0; i < 6; i++) {
                for (int p = 0; p < 64 * 48; p++)
                    memcpy(rgb + 3 * p, colour[i], 3);
                tt_video_frame(v, rgb);
            }
        expect_ok(tt_video_finish(v), path);
        expect(holds(path, kinds[k].says, kinds[k].n), "%s describes its "
               "colours", path);
        if (!expect_ok(tt_video_in_open(ctx, &in, path), path)) continue;
        for (int i = 0; i < 6; i++) {
            expect(!tt_video_in_frame(in, rgb, &more) && more, "frame %d", i);
            for (int c = 0; c < 3; c++) {
                const int d = abs(rgb[3 * (24 * 64 + 32) + c] - colour[i][c]);
                worst = d > worst ? d : worst;
            }
        }
        tt_video_in_close(in);
        expect(worst <= 3, "%s: colours are off by %d", path, worst);
    }
}

/* Only where ffmpeg is installed; without it the refusal names a way out. */
static void test_ffmpeg(tt_ctx *ctx)
{
    tt_video_format f = {.width = 32, .height = 16, .fps = 16, .frames = 5};
    if (tt_video_check(ctx, at("m.mp4"), &f) == TT_EUNSUPPORTED) {
        expect(strstr(tt_message(ctx), ".y4m") != NULL, "names the y4m way");
        skip("no mp4 and gif written: ffmpeg is not installed");
        tt_clear(ctx);
        return;
    }
    tt_clear(ctx);
    expect_ok(write_video(ctx, at("m.mp4"), 5), "mp4");
    expect(size_of(at("m.mp4")) > 300, "mp4 written");
    expect_ok(write_video(ctx, at("m.mkv"), 5), "mkv");
    expect(shows_picture(at("m.mkv")), "mkv written");
    expect_ok(write_video(ctx, at("m.gif"), 5), "gif");
    expect(size_of(at("m.gif")) > 100 && shows_picture(at("m.gif")),
           "gif written");
    test_colours(ctx);
}

int main(void)
{
    tt_ctx *ctx = test_begin("io/video");
    if (!folder_make())
        return test_end();

    test_case c;
    if (case_open(&c, "vae_full_a") && expect(c.expected != NULL, "expected")) {
        const char *runs[] = {"dec_t1", "dec_t2_taps", "dec_t7",
                              "dec_t3_odd", "dec_t2_1x1"};
        for (int i = 0; i < 5; i++) test_u8(ctx, &c, runs[i]);
        case_close(&c);
    }
    test_conversion();
    test_yuv();
    test_y4m(ctx);
    test_pngs(ctx);
    test_apng(ctx);
    test_refusals(ctx);
    test_atomic(ctx);
    test_planted(ctx);
    test_meanwhile(ctx);
    test_pictures_meanwhile(ctx);
    test_no_space(ctx);
    test_sheet(ctx);
    test_preview();
    test_shows(ctx);
    test_colours_asked(ctx);
    test_ffmpeg(ctx);

    folder_remove();
    return test_end();
}
