/* ffmpeg.h: the `ffmpeg` program as a child process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_FFMPEG_H
#define TT_IO_FFMPEG_H

#include <stdio.h>
#include <sys/types.h>

#include "core/context.h"

typedef struct ffmpeg {
    pid_t pid;          /* 0: none                                            */
    int fd;             /* our end of its standard input or output            */
    FILE *said;         /* its messages, an unnamed file                      */
    const char *path;   /* for messages                                       */
    const char *verb;   /* "read" or "write", for messages                    */
} ffmpeg;

/* Is there an `ffmpeg` on PATH? */
bool ffmpeg_found(void);

/* Start it with these NULL-terminated arguments. `verb` "write": we write to
 * its standard input; "read": we read its standard output. */
tt_status ffmpeg_start(tt_ctx *ctx, ffmpeg *e, const char *verb,
                       const char *path, const char *const *argv);
/* Until our end can be read (POLLIN) or written (POLLOUT), or ffmpeg is gone.
 * Errors  TT_EINTR  the user asked to stop while ffmpeg was stuck */
tt_status ffmpeg_wait(tt_ctx *ctx, const ffmpeg *e, short events);
/* Close our end and wait; TT_EIO with its last line unless it exits 0. A
 * writer that says that it could not write has failed too: some versions of
 * ffmpeg report a full disk and exit 0. Other words are a warning. */
tt_status ffmpeg_finish(tt_ctx *ctx, ffmpeg *e);
/* Close our end of its input and let it complete what it has, at most for
 * three seconds; then as ffmpeg_abort. */
void ffmpeg_leave(ffmpeg *e);
/* Kill and reap; harmless on a zeroed ffmpeg. */
void ffmpeg_abort(ffmpeg *e);

#endif
