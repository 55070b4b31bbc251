/* ffmpeg_in.h: the `ffmpeg` program as a source of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_FFMPEG_IN_H
#define TT_IO_FFMPEG_IN_H

#include "io/ffmpeg.h"

typedef struct ffmpeg_in {
    ffmpeg child;           /* ffmpeg_abort ends it at any time               */
} ffmpeg_in;

/* Decode `path`, which must outlive it, of that format (NULL: ffmpeg finds it;
 * it takes an animated PNG with a long text before its frames for a picture).
 * TT_EUNSUPPORTED without ffmpeg. */
tt_status ffmpeg_in_start(tt_ctx *ctx, ffmpeg_in *v, const char *path,
                          const char *format);
/* The size of the next frame; *more is false, and ffmpeg's exit status
 * checked, at the end. */
tt_status ffmpeg_in_header(tt_ctx *ctx, ffmpeg_in *v, int64_t *width,
                           int64_t *height, bool *more);
/* Its n = 3 * width * height bytes. */
tt_status ffmpeg_in_pixels(tt_ctx *ctx, ffmpeg_in *v, uint8_t *rgb, size_t n);

#endif
