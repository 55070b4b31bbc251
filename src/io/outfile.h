/* outfile.h: files that appear under their final name only when complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Writing goes to a temporary name in the same directory; tt_out_finish
 * flushes and renames, tt_out_abort deletes. A file that was there before is
 * replaced; one that someone else made meanwhile stays, and finishing fails,
 * unless ctx->overwrite is set. A target that exists and is not
 * a regular file (a device, a pipe) is written directly; a symbolic link is
 * followed and stays one. Every message names the final path. */
#ifndef TT_IO_OUTFILE_H
#define TT_IO_OUTFILE_H

#include <stdio.h>

#include "core/context.h"

typedef struct tt_out {
    FILE *file;
    char *path;      /* as the user gave it, for messages                     */
    char *final;     /* where it ends: links resolved                         */
    char *temporary; /* where it is now; NULL: written directly               */
    bool is_new;     /* nothing had the final name at the start               */
    int held;        /* 1 + a descriptor that locks `temporary`; 0: none      */
    tt_arena mem;    /* owns the names                                        */
} tt_out;

/* Open `path` for writing through a temporary name. The caller's tt_out is
 * overwritten. Errors  TT_EIO with the system's reason. */
tt_status tt_out_open(tt_ctx *ctx, tt_out *o, const char *path);

/* n bytes. Errors  TT_EIO naming the path ("No space left on device"). */
tt_status tt_out_write(tt_ctx *ctx, tt_out *o, const void *data, size_t n);

/* Flush to the disk, close, rename. On an error the temporary is deleted; where
 * only its name was refused it becomes NAME.kept, and the message says so. */
tt_status tt_out_finish(tt_ctx *ctx, tt_out *o);

/* Close and delete; harmless after finish and on a zeroed tt_out. */
void tt_out_abort(tt_out *o);

/* The file that writing to `path` makes or replaces, in `mem`: links are
 * followed, also one to a file that is not there yet. */
char *tt_out_target(tt_ctx *ctx, tt_arena *mem, const char *path);

/* TT_OK when a file could be created at `path`: the directory exists and is
 * writable and the path is not a directory. Creates nothing. */
tt_status tt_out_check(tt_ctx *ctx, const char *path);

#endif
