/* y4m.h: YUV4MPEG2 in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_Y4M_H
#define TT_IO_Y4M_H

#include "io/stream.h"

#define Y4M_MAGIC "YUV4MPEG2"

typedef struct y4m {
    io_stream *in;          /* borrowed; its name is in messages              */
    int64_t width, height;
    int64_t sx, sy;         /* luma samples per chroma sample; 0: luma alone  */
    int64_t cwidth, cheight;/* of a chroma plane                              */
    bool full;              /* 0..255 instead of 16..235                      */
    uint8_t *planes;        /* one stored frame                               */
    int64_t frames;         /* read so far                                    */
} y4m;

/* Read the header; the magic word has been read already. Memory for one frame
 * comes from `a`. */
tt_status y4m_open(tt_ctx *ctx, tt_arena *a, y4m *v, io_stream *in);
/* The next frame into rgb [height, width, 3]; *more is false at the end. */
tt_status y4m_next(tt_ctx *ctx, y4m *v, uint8_t *rgb, bool *more);

#endif
