/* latents_file.h: the latents of a run, appended chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * While the run goes on the file is called "<path>.unfinished": a safetensors
 * header for the complete video, followed by the frames there are so far,
 * flushed to the disk after every chunk. The header also says what the run is
 * made from, so the same run, and no other, can go on from it. With the last
 * frame the file is complete and gets its final name. */
#ifndef CLI_LATENTS_FILE_H
#define CLI_LATENTS_FILE_H

#include <stdio.h>

#include "tether/context.h"

typedef struct latents_file {
    tt_ctx *ctx;
    FILE *file;
    const char *path;       /* final name; NULL: keep no file                 */
    char *unfinished;
    int64_t frames;         /* of the video                                   */
    int64_t done;           /* frames in the file                             */
    size_t frame_bytes, header_bytes;
    bool complete;          /* resumed, and it has its final name already     */
    tt_arena mem;
} latents_file;

/* Start, or with `resume` go on (also from a complete file of the same run,
 * whose video was not decoded to the end).
 *   dim   [rollouts, frames, C, h, w] of tt_real, rollouts 1 but for CausVid
 *   run   describes the run in one line
 * After a resume f->done frames are in the file and are read by
 * latents_file_read.
 * Errors  TT_EINVAL   the unfinished file belongs to another run
 *         TT_EFORMAT  it is no latents file; one that ends within its header
 *                     holds nothing to go on from and is begun anew */
tt_status latents_file_open(tt_ctx *ctx, latents_file *f, const char *path,
                            const int64_t dim[5], const char *run,
                            bool resume);
tt_status latents_file_read(latents_file *f, tt_real *frames);
/* Keep only the first `frames` of what is there. */
tt_status latents_file_cut(latents_file *f, int64_t frames);
tt_status latents_file_append(latents_file *f, const tt_real *frames,
                              int64_t n);
/* Complete: rename. */
tt_status latents_file_finish(latents_file *f);
/* Leave: an unfinished file stays, unless it holds no frame yet. */
void latents_file_close(latents_file *f);

#endif
