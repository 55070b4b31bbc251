/* encoder.h: the `ffmpeg` program as a sink of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_ENCODER_H
#define TT_IO_ENCODER_H

#include "io/ffmpeg.h"
#include "io/video.h"

/* Can `path` be encoded here: is ffmpeg on PATH? TT_EUNSUPPORTED names the
 * y4m and PNG ways out. */
tt_status encoder_check(tt_ctx *ctx, const char *path);

/* Does this ending (".mp4") mean ffmpeg? */
bool encoder_knows(const char *ending);

/* Start ffmpeg writing `target` in the format that belongs to `ending`. */
tt_status encoder_start(tt_ctx *ctx, ffmpeg *e, const char *path,
                        const char *target, const char *ending,
                        const tt_video_format *f);
tt_status encoder_write(tt_ctx *ctx, ffmpeg *e, const void *data, size_t n);
/* A copy `to` of the fragmented mp4 or mov (`ending`) `from`, with one index at
 * its beginning, as every player knows it; without re-encoding. Where that
 * fails there is none, or it is empty: the fragments are the video then.
 * Errors  TT_EINTR alone */
void encoder_index(tt_ctx *ctx, const char *path, const char *ending,
                   const char *from, const char *to);
/* ffmpeg_finish and ffmpeg_abort end it. */

#endif
