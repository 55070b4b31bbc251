/* picture.h: what readers of pictures and videos share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_PICTURE_H
#define TT_IO_PICTURE_H

#include "core/context.h"

typedef enum picture_kind { PICTURE_NONE, PICTURE_PNG, PICTURE_JPEG }
    picture_kind;

/* What a file that begins with these bytes is. */
picture_kind picture_sniff(const uint8_t *head, size_t n);

/* What a picture that is not read is called: "WebP"; NULL: nothing known. 16
 * bytes tell. */
const char *picture_unread(const uint8_t *head, size_t n);

/* How the file says that its picture is to be held, 1 to 8 as EXIF counts: 1 is
 * as it is stored, and what a file without a word, or with a damaged one, has.
 * A PNG is whole (chunk lengths and CRCs). */
int picture_orientation(picture_kind kind, const uint8_t *p, size_t n);

/* The same of any other file: of a WebP or a TIFF what it says, else 1. */
int picture_orientation_other(const uint8_t *p, size_t n);

/* The stored picture `from` [*height, *width, 3] as it is to be held, in `to`;
 * from orientation 5 on width and height are exchanged. */
void picture_upright(uint8_t *to, const uint8_t *from, int64_t *width,
                     int64_t *height, int orientation);

/* TT_EFORMAT naming the file when a picture of this size is outside the
 * bounds of video.h. */
tt_status picture_check_size(tt_ctx *ctx, const char *path, int64_t width,
                             int64_t height);

/* CRC-32 of ISO 3309, as PNG has it: of the bytes that gave `crc` (0: none)
 * and n more. */
uint32_t picture_crc32(uint32_t crc, const uint8_t *p, size_t n);

#endif
