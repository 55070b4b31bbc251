/* exif.c: how a picture is to be held, from its EXIF data.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Phones store what the sensor saw, and in EXIF data which way was up.
 * Format  EXIF 2.32: in a JPEG the segment APP1 "Exif\0\0", in a PNG the chunk
 *         eXIf, in a WebP the chunk EXIF, a TIFF itself; a TIFF header, and in
 *         its first directory entry 0x0112.
 * Holds   no byte outside the given ones is read; what makes no sense counts
 *         as no orientation. */
#include <string.h>

#include "io/picture.h"

enum { ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4 };

typedef struct tiff {
    const uint8_t *p;
    size_t n;
    bool little;
} tiff;

/* `bytes` of them at `at`; 0 where they are not there. */
static uint32_t exif_number(const tiff *t, size_t at, int bytes)
{
    uint32_t v = 0;
    if (at > t->n || t->n - at < (size_t)bytes) return 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)t->p[at + (size_t)i]
          << 8 * (t->little ? i : bytes - 1 - i);
    return v;
}

static int tiff_orientation(const uint8_t *p, size_t n)
{
    if (n < 8 || (memcmp(p, "II*", 4) && memcmp(p, "MM\0*", 4))) return 1;
    const tiff t = {p, n, p[0] == 'I'};
    const size_t first = exif_number(&t, 4, 4);
    const uint32_t entries = exif_number(&t, first, 2);
    for (uint32_t i = 0; i < entries; i++) {
        const size_t at = first + 2 + 12 * (size_t)i;
        if (at > n || n - at < 12) return 1;
        if (exif_number(&t, at, 2) != ORIENTATION) continue;
        const uint32_t type = exif_number(&t, at + 2, 2);
        const uint32_t v = type == TYPE_SHORT ? exif_number(&t, at + 8, 2)
                         : type == TYPE_LONG ? exif_number(&t, at + 8, 4) : 1;
        return v >= 1 && v <= 8 ? (int)v : 1;
    }
    return 1;
}

/* Segments up to the first scan. */
static int jpeg_orientation(const uint8_t *p, size_t n)
{
    static const uint8_t exif[6] = {'E', 'x', 'i', 'f'};
    for (size_t at = 2; at < n && n - at >= 4 && p[at] == 0xff;) {
        const uint8_t marker = p[at + 1];
        if (marker == 0xff) {                /* filled up                     */
            at++;
            continue;
        }
        if (marker == 0xda || marker == 0xd9) break;
        const size_t length = (size_t)p[at + 2] << 8 | p[at + 3];
        if (length < 2 || length > n - at - 2) break;
        if (marker == 0xe1 && length >= 2 + sizeof exif
            && !memcmp(p + at + 4, exif, sizeof exif))
            return tiff_orientation(p + at + 10, length - 8);
        at += 2 + length;
    }
    return 1;
}

/* Chunks, of a PNG that is whole. */
static int png_orientation(const uint8_t *p, size_t n)
{
    for (size_t at = 8; n - at >= 12;) {
        const size_t length = (size_t)p[at] << 24 | (size_t)p[at + 1] << 16
                            | (size_t)p[at + 2] << 8 | p[at + 3];
        if (length > n - at - 12) break;
        if (!memcmp(p + at + 4, "eXIf", 4))
            return tiff_orientation(p + at + 8, length);
        at += 12 + length;
    }
    return 1;
}

/* Chunks of a RIFF file, padded to even lengths. Some writers begin the data
 * as in a JPEG. */
static int webp_orientation(const uint8_t *p, size_t n)
{
    const tiff riff = {p, n, true};
    for (size_t at = 12; at < n && n - at >= 8;) {
        const size_t length = exif_number(&riff, at + 4, 4);
        if (length > n - at - 8) break;
        if (!memcmp(p + at, "EXIF", 4)) {
            const bool word = length >= 6 && !memcmp(p + at + 8, "Exif\0", 6);
            const size_t from = word ? 6 : 0;
            return tiff_orientation(p + at + 8 + from, length - from);
        }
        at += 8 + length + length % 2;
    }
    return 1;
}

int picture_orientation_other(const uint8_t *p, size_t n)
{
    if (n >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4))
        return webp_orientation(p, n);
    return tiff_orientation(p, n);
}

int picture_orientation(picture_kind kind, const uint8_t *p, size_t n)
{
    return kind == PICTURE_JPEG ? jpeg_orientation(p, n)
         : kind == PICTURE_PNG ? png_orientation(p, n) : 1;
}

void picture_upright(uint8_t *to, const uint8_t *from, int64_t *width,
                     int64_t *height, int orientation)
{
    const bool swap = orientation >= 5;
    const bool from_right = orientation == 2 || orientation == 3
                         || orientation >= 7;
    const bool from_below = orientation == 3 || orientation == 4
                         || orientation == 6 || orientation == 7;
    const int64_t w = *width, h = *height;
    *width = swap ? h : w;
    *height = swap ? w : h;
    for (int64_t y = 0; y < *height; y++)
        for (int64_t x = 0; x < *width; x++) {
            const int64_t a = swap ? y : x, b = swap ? x : y;
            const int64_t col = from_right ? w - 1 - a : a;
            const int64_t row = from_below ? h - 1 - b : b;
            memcpy(to + 3 * (y * *width + x), from + 3 * (row * w + col), 3);
        }
}
