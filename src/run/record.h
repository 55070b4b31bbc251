/* record.h: the run record, run.json: how a result came to be.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Facts are collected while the run goes on and written once at its end, by
 * tt_run_record. */
#ifndef TT_RUN_RECORD_H
#define TT_RUN_RECORD_H

#include <sys/stat.h>

#include "core/context.h"

typedef struct record_file {
    const char *role;          /* "transformer", "noise"                      */
    const char *path;
    const char *origin;        /* "Wan names, torch zip", or NULL             */
    struct stat was;           /* the file when it was opened                 */
    bool there;                /* and one it was, not a folder or a pipe      */
    struct record_file *next;
} record_file;

typedef struct record_chunk {
    int64_t chunk, frames;
    double seconds;
    struct record_chunk *next;
} record_chunk;

typedef struct record {
    tt_arena mem;
    record_file *files, **last_file;
    record_chunk *chunks, **last_chunk;
    int64_t resumed_after;     /* chunks an earlier session made; their times
                                  are not known (NAN)                         */
    double text_seconds, rollout_seconds;
} record;

void record_begin(record *r);
void record_end(record *r);

/* A file that went into the run; hashed when the record is written. */
void record_input(tt_ctx *ctx, record *r, const char *role, const char *path,
                  const char *origin);
void record_add_chunk(tt_ctx *ctx, record *r, int64_t chunk, int64_t frames,
                      double seconds);
/* Forget the chunks: the next video begins. */
void record_next_video(record *r);

#endif
