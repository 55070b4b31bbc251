/* frames_file.h: the frames that a decoding has made so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * While latents are decoded every frame is kept as it leaves the VAE, in
 * "<output>.frames": a decoding that was interrupted makes its outputs again
 * from these, in seconds, and goes on. So no container has to be continued in
 * its middle, and every output has the bytes of a run that was not
 * interrupted. The file goes when the outputs are complete.
 *
 * A line of HEADER bytes that says what the frames are made with, then one
 * record per frame: the SHA-256 of all latents up to the frame's own and of
 * the frame, in hex, then the frame. What a crash has torn, lost or damaged is
 * found by that, so nothing is flushed to the disk while the work goes on.
 *
 * One decoding at a time: the file is locked (flock) from claim to close. The
 * system takes the lock back when a program dies. */
#ifndef CLI_FRAMES_FILE_H
#define CLI_FRAMES_FILE_H

#include "core/context.h"
#include "io/io.h"

typedef struct frames_file {
    tt_ctx *ctx;
    const char *path;       /* NULL: nothing is kept                          */
    int fd;                 /* holds the lock; only with a path               */
    bool resume, overwrite; /* what may become of frames that are there       */
    size_t size;            /* bytes of a frame                               */
    bool there;             /* a decoding began here before                   */
    int64_t done;           /* frames in the file                             */
    bool opened;            /* by frames_file_open                            */
    bool full;              /* it could not be written: no more go in         */
    tt_arena mem;           /* the name                                       */
} frames_file;

/* Take the name for this decoding; path NULL: none is kept. A file that cannot
 * be made is warned about, and nothing is kept. frames_file_close gives the
 * name back.
 * Errors  TT_EINVAL  another program is decoding to that name; or frames are
 *                    there and neither `resume` nor `overwrite` says what to
 *                    do; or a file of that name is none of ours */
tt_status frames_file_claim(tt_ctx *ctx, frames_file *f, const char *path,
                            bool resume, bool overwrite);

/* Begin, or with `resume` go on: f->done frames may be there, which
 * frames_file_holds has to find good.
 *   what    what frames are made with, at most 400 bytes without a newline
 *   size    of a frame in bytes    all    frames there will be: twice the room
 *           for what is missing must be free, else a warning, and none is kept
 * Errors  TT_EINVAL  the frames there were made with something else, and
 *                    `overwrite` was not given */
tt_status frames_file_open(frames_file *f, const char *what, size_t size,
                           int64_t all);
/* Read frame i. Is it whole, and made from latents with the digest `of`? */
bool frames_file_holds(const frames_file *f, int64_t i, const tt_sha256 *of,
                       void *frame);
/* Read it, found good before. */
bool frames_file_read(const frames_file *f, int64_t i, void *frame);
/* Keep the first n; what follows is made again. */
void frames_file_cut(frames_file *f, int64_t n);
/* Append one. A file that cannot be written is warned about, and takes no
 * more. */
void frames_file_add(frames_file *f, const tt_sha256 *of, const void *frame);
/* Leave: with `keep` the file stays, if there is a frame in it; what was
 * claimed and not opened stays as it was. Harmless on a zeroed frames_file. */
void frames_file_close(frames_file *f, bool keep);

#endif
