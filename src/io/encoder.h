/* encoder.h: the `ffmpeg` program as a sink of raw frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_ENCODER_H
#define TT_IO_ENCODER_H

#include <stdio.h>
#include <sys/types.h>

#include "tether/video.h"

typedef struct encoder {
    pid_t pid;          /* 0: none                                            */
    int fd;             /* our end of its standard input                      */
    FILE *said;         /* its messages, an unnamed file                      */
    const char *path;   /* final name, for messages                           */
} encoder;

/* Can `path` be encoded here: is ffmpeg on PATH? TT_EUNSUPPORTED names the
 * y4m and PNG ways out. */
tt_status encoder_check(tt_ctx *ctx, const char *path);

/* Does this ending (".mp4") mean ffmpeg? */
bool encoder_knows(const char *ending);

/* Start ffmpeg writing `target` in the format that belongs to `ending`. */
tt_status encoder_start(tt_ctx *ctx, encoder *e, const char *path,
                        const char *target, const char *ending,
                        const tt_video_format *f);
tt_status encoder_write(tt_ctx *ctx, encoder *e, const void *data, size_t n);
/* Close its input and wait; TT_EIO with its last line unless it exits 0. */
tt_status encoder_finish(tt_ctx *ctx, encoder *e);
/* Kill and reap; harmless on a zeroed encoder. */
void encoder_abort(encoder *e);

#endif
