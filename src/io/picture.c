/* picture.c: one PNG or JPEG into bytes, through stb_image.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   nothing is decoded before the file is known to be one of the two
 *         formats, a PNG is whole (chunk lengths and CRCs), and the size is
 *         inside the bounds of video.h. No single allocation of the decoder
 *         exceeds ALLOC_MAX, whatever the file says. A JPEG has few scans:
 *         each may go over the whole picture and take ten bytes.
 * Source  torchvision's transforms on Image.open(...).convert("RGB"):
 *         alpha is dropped, not blended. Unlike there, a picture is taken as
 *         its EXIF orientation says (exif.c). */
#include <stdlib.h>
#include <string.h>

#include "io/map.h"
#include "io/picture.h"
#include "io/video.h"

enum { FILE_MAX = 1 << 28, ALLOC_MAX = 1 << 30, SCANS_MAX = 200 };

/* Zeroed: what a damaged file leaves unwritten is the same every time. */
static void *bounded_alloc(size_t n)
{
    return n > ALLOC_MAX ? NULL : calloc(n ? n : 1, 1);
}

static void *bounded_realloc(void *p, size_t n)
{
    return n > ALLOC_MAX ? NULL : realloc(p, n ? n : 1);
}

/* The vendored header is held to its own standards, not to ours. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wextra"
#endif
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_NO_SIMD /* the same bytes on every machine */
#define STBI_MAX_DIMENSIONS TT_PICTURE_SIDE_MAX
#define STBI_ASSERT(x) ((void)0) /* some only say that a file is corrupt */
#define STBI_MALLOC(n) bounded_alloc(n)
#define STBI_REALLOC(p, n) bounded_realloc(p, n)
#define STBI_FREE(p) free(p)
#include "third_party/stb_image.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
/* said at the end of the file, of functions that were left out */
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

/* ---- what kind of file --------------------------------------------------- */

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a,
                                     '\n'};

picture_kind picture_sniff(const uint8_t *head, size_t n)
{
    if (n >= sizeof png_magic && !memcmp(head, png_magic, sizeof png_magic))
        return PICTURE_PNG;
    if (n >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff)
        return PICTURE_JPEG;
    return PICTURE_NONE;
}

const char *picture_unread(const uint8_t *head, size_t n)
{
    static const struct { const char *name; int at, n; const char *bytes; }
    known[] = {
        {"WebP", 8, 4, "WEBP"}, {"BMP", 0, 2, "BM"}, {"TIFF", 0, 4, "II*\0"},
        {"TIFF", 0, 4, "MM\0*"}, {"AVIF", 4, 8, "ftypavif"},
        {"HEIC", 4, 8, "ftypheic"}, {"HEIC", 4, 8, "ftypmif1"},
        {"JPEG XL", 0, 2, "\xff\x0a"}, {"JPEG XL", 4, 4, "JXL "}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= (size_t)(known[i].at + known[i].n)
            && !memcmp(head + known[i].at, known[i].bytes, (size_t)known[i].n))
            return known[i].name;
    return NULL;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8
         | (uint32_t)p[3];
}

/* Half a byte at a time. */
uint32_t picture_crc32(uint32_t crc, const uint8_t *p, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t c = ~crc;
    for (size_t i = 0; i < n; i++) {
        c = table[(c ^ p[i]) & 15] ^ c >> 4;
        c = table[(c ^ p[i] >> 4) & 15] ^ c >> 4;
    }
    return ~c;
}

static bool are_letters(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int c = p[i] | 0x20;
        if (c < 'a' || c > 'z') return false;
    }
    return true;
}

/* Every chunk up to IEND lies in the file, has a name and the CRC it states.
 * NULL when so, else what is wrong. */
static const char *png_damage(const uint8_t *p, size_t n)
{
    size_t at = sizeof png_magic;
    while (n - at >= 12) {
        const uint32_t length = be32(p + at);
        if (length > n - at - 12) return "it ends inside a chunk";
        if (picture_crc32(0, p + at + 4, (size_t)length + 4)
            != be32(p + at + 8 + length))
            return "a chunk has the wrong CRC";
        if (!are_letters(p + at + 4, 4))
            return "the name of a chunk is not four letters";
        if (!memcmp(p + at + 4, "IEND", 4)) return NULL;
        at += 12 + (size_t)length;
    }
    return "it ends before its IEND chunk";
}

/* Beginnings of scans (SOS, its length) anywhere in the file, in a thumbnail
 * too: picture data cannot look like one. */
static const char *jpeg_damage(const uint8_t *p, size_t n)
{
    int scans = 0;
    for (size_t i = 0; i + 4 <= n; i++) {
        const uint8_t *at = memchr(p + i, 0xff, n - i - 3);
        if (!at) break;
        i = (size_t)(at - p);
        scans += at[1] == 0xda && at[2] == 0 && at[3] >= 8 && at[3] <= 14;
    }
    return scans > SCANS_MAX ? "it has more than 200 scans" : NULL;
}

/* A block of 64 pixels takes one bit at least, and 12 bytes a pixel of memory:
 * a few bytes do not get it for a picture that they cannot hold. */
static bool jpeg_can_hold(int bytes, int w, int h)
{
    return 64 * (8 * (int64_t)bytes) >= (int64_t)w * h;
}

/* ---- reading ------------------------------------------------------------- */

tt_status picture_check_size(tt_ctx *ctx, const char *path, int64_t width,
                             int64_t height)
{
    if (width >= 1 && height >= 1 && width <= TT_PICTURE_SIDE_MAX
        && height <= TT_PICTURE_SIDE_MAX
        && width * height <= TT_PICTURE_AREA_MAX) return TT_OK;
    return tt_fail(ctx, TT_EFORMAT, "%s: %lldx%lld pixels are outside what "
                   "this program reads (sides 1 to %d, at most %lld pixels)",
                   path, (long long)width, (long long)height,
                   TT_PICTURE_SIDE_MAX, (long long)TT_PICTURE_AREA_MAX);
}

tt_status tt_picture_read(tt_ctx *ctx, tt_arena *a, uint8_t **rgb,
                          int64_t *width, int64_t *height, const char *path)
{
    io_map map;
    int w = 0, h = 0, channels;
    stbi_uc *pixels = NULL;
    *rgb = NULL;
    if (ctx->status) return ctx->status;
    TT_TRY(io_map_open(ctx, &map, path));
    const uint8_t *p = map.data;
    const int n = map.size > FILE_MAX ? 0 : (int)map.size;
    const picture_kind kind = picture_sniff(p, (size_t)n);
    const char *damage = kind == PICTURE_PNG ? png_damage(p, (size_t)n)
                       : kind == PICTURE_JPEG ? jpeg_damage(p, (size_t)n)
                                              : NULL;

    const char *other = picture_unread(p, (size_t)n);

    if (kind == PICTURE_NONE && other)
        tt_fail(ctx, TT_EFORMAT, "%s is a %s picture, and neither a PNG nor a "
                "JPEG, which are read; convert it", path, other);
    else if (kind == PICTURE_NONE)
        tt_fail(ctx, TT_EFORMAT, "%s is neither a PNG nor a JPEG picture "
                "of less than 256 MB", path);
    else if (damage)
        tt_fail(ctx, TT_EFORMAT, "%s: damaged %s: %s", path,
                kind == PICTURE_PNG ? "PNG" : "JPEG", damage);
    else if (!stbi_info_from_memory(p, n, &w, &h, &channels))
        tt_fail(ctx, TT_EFORMAT, "%s: damaged picture: its header cannot be "
                "read", path);
    if (!ctx->status) picture_check_size(ctx, path, w, h);
    if (!ctx->status && kind == PICTURE_JPEG && !jpeg_can_hold(n, w, h))
        tt_fail(ctx, TT_EFORMAT, "%s: damaged JPEG: %dx%d pixels do not go "
                "into its %d bytes", path, w, h, n);
    if (!ctx->status) {
        pixels = stbi_load_from_memory(p, n, &w, &h, &channels, 3);
        if (!pixels)
            tt_fail(ctx, TT_EFORMAT, "%s: damaged picture: %s", path,
                    stbi_failure_reason());
    }
    *width = w;
    *height = h;
    if (pixels) *rgb = tt_alloc(ctx, a, (int64_t)w * h, 3, path);
    if (*rgb)
        picture_upright(*rgb, pixels, width, height,
                        picture_orientation(kind, p, (size_t)n));
    free(pixels);
    io_map_close(&map);
    return ctx->status;
}
