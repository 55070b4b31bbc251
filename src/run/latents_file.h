/* latents_file.h: the latents of a run, appended chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * While the run goes on the file is called "<path>.unfinished": a safetensors
 * header for the complete video, followed by the frames there are so far,
 * flushed to the disk after every chunk. The header also says what the run is
 * made from, so the same run, and no other, can go on from it. With the last
 * frame the file is complete and gets its final name. A link is followed: both
 * names are next to the file it leads to.
 *
 * Two marks in the header take turns: a number of frames and their digest,
 * written when the frames are on the disk. One that is torn leaves the other.
 * Frames after both are made again.
 *
 * One run at a time: from claim to close the file is locked (flock), under
 * either name. The system takes the lock back when a program dies. */
#ifndef TT_RUN_LATENTS_FILE_H
#define TT_RUN_LATENTS_FILE_H

#include <stdio.h>
#include <sys/types.h>

#include "core/context.h"
#include "io/io.h"

typedef struct latents_file {
    tt_ctx *ctx;
    FILE *file;
    const char *path;       /* as given, for messages; NULL: keep no file     */
    char *final, *unfinished; /* links followed                               */
    bool resume, overwrite; /* what may become of work that is there          */
    bool may_grow;          /* a shorter one of the same run goes on          */
    bool locked;
    bool is_new;            /* nothing had the final name when it was claimed */
    int lock;               /* descriptor that holds it; only when claimed    */
    bool empty;             /* nothing to keep under the unfinished name      */
    bool reported;          /* ... and a warning has said so              */
    int64_t frames;         /* of the video                                   */
    int64_t done;           /* frames in the file                             */
    size_t frame_bytes, header_bytes;
    tt_sha256 sum;          /* of the frames that are done                    */
    int64_t summed;         /* how many those are                             */
    off_t mark[2];          /* where the marks are in the header              */
    int turn;               /* the mark to write next                         */
    bool complete;          /* resumed, and it has its final name already     */
    const char *theirs;     /* what the file there is made from; NULL: unknown*/
    int64_t length;         /* frames of a rollout that it is to have         */
    tt_arena mem;
} latents_file;

/* Take the name `path` (NULL: none is kept) for this run. The caller's
 * latents_file is overwritten; latents_file_close gives the name back.
 * Errors  TT_EINVAL   another run is writing it; or unfinished work is there
 *                     and neither `resume` nor `overwrite` says what to do
 *         TT_EFORMAT  to be resumed, and no latents file; one that ends within
 *                     its header holds nothing to go on from, begins anew
 *         TT_EIO      it cannot be written */
tt_status latents_file_claim(tt_ctx *ctx, latents_file *f, const char *path,
                             bool resume, bool overwrite);

/* Start the claimed file, or with `resume` go on (also from a complete file of
 * the same run, whose video was not decoded to the end).
 *   dim   [rollouts, frames, C, h, w] of tt_real, rollouts 1 but for CausVid
 *   run   describes the run in one line
 * After a resume f->done frames are in the file and are read by
 * latents_file_read; with f->may_grow also those of a run that was to be
 * shorter.
 * Errors  TT_EINVAL   the unfinished file belongs to another run, and
 *                     `overwrite` was not given; the sentence names the first
 *                     thing that differs
 *         TT_EFORMAT  frames in it are not those that were written */
tt_status latents_file_open(latents_file *f, const int64_t dim[5],
                            const char *run);
tt_status latents_file_read(latents_file *f, tt_real *frames);
/* Keep only the first `frames` of what is there. */
tt_status latents_file_cut(latents_file *f, int64_t frames);
tt_status latents_file_append(latents_file *f, const tt_real *frames,
                              int64_t n);
/* Complete: rename. The lock is kept. */
tt_status latents_file_finish(latents_file *f);
/* Leave: an unfinished file stays, unless it holds no frame yet. Harmless on
 * a zeroed latents_file. */
void latents_file_close(latents_file *f);

/* Frames of this very run, or with `may_grow` of a shorter one, in the file
 * `path`, or in what it is called until it is complete. 0: why[n] says what
 * differs, where there is a file. */
int64_t latents_file_look(tt_ctx *ctx, const char *path, const int64_t dim[5],
                          const char *run, bool may_grow, char *why, size_t n);
/* Is there one of any run? */
bool latents_file_of_a_run(tt_ctx *ctx, const char *path);

#endif
