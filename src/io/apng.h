/* apng.h: PNG chunks, and animated PNG frame by frame.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_APNG_H
#define TT_IO_APNG_H

#include "io/outfile.h"
#include "io/video.h"

/* Pixels rgb [height, width, 3], rows `stride` bytes apart, as the zlib stream
 * of an IDAT chunk: *data points into the block returned, which the caller
 * frees; NULL when memory is short. */
uint8_t *png_deflate(const uint8_t **data, size_t *n, const uint8_t *rgb,
                     int64_t width, int64_t height, int64_t stride);

/* Signature and IHDR; one chunk; the text chunk `parameters` (NULL: none). */
tt_status png_begin(tt_ctx *ctx, tt_out *out, int64_t width, int64_t height);
tt_status png_chunk(tt_ctx *ctx, tt_out *out, const char *type,
                    const uint8_t *data, size_t n);
tt_status png_text(tt_ctx *ctx, tt_out *out, const char *text);

/* An animation that is being written: every frame goes to the file at once,
 * one frame is remembered. */
typedef struct apng {
    int64_t width, height;
    int fps;
    int64_t frames;         /* written so far                                 */
    uint32_t sequence;      /* number of the next fcTL or fdAT                */
    uint8_t *last;          /* [height, width, 3] of the frame before         */
} apng;

/* The number of frames is written by apng_end: `out` must be a file, not a
 * pipe. `mem` keeps the frame that is remembered. */
tt_status apng_begin(tt_ctx *ctx, tt_arena *mem, apng *a, tt_out *out,
                     const tt_video_format *f);
tt_status apng_frame(tt_ctx *ctx, apng *a, tt_out *out, const uint8_t *rgb);
tt_status apng_end(tt_ctx *ctx, apng *a, tt_out *out);

#endif
