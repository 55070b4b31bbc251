/* record.h: the run record, run.json: how a result came to be.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Facts are collected while the run goes on and written once at its end. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "cli/options.h"
#include "tether/analyze.h"
#include "tether/context.h"
#include "tether/rollout.h"

typedef struct record_file {
    const char *role;          /* "transformer", "noise"                      */
    const char *path;
    const char *origin;        /* "Wan names, torch zip", or NULL             */
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
    double text_seconds, rollout_seconds, decode_seconds;
    int argc;                  /* of the command, for "command_line"          */
    char **argv;
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

/* What is said about the video itself. */
typedef struct record_video {
    const char *prompt;        /* the first; NULL: from embeddings            */
    const tt_recorder_scene *scene; /* [nscenes]; 0: one prompt               */
    int nscenes;
    const char *noise_file;    /* NULL: from the generator                    */
    uint64_t seed;
    int64_t sample, latents, given, width, height, frames;
    const tt_dit_config *model;
    const tt_rollout_options *rollout;
} record_video;

/* Write `path`: options, seed, versions, determinism class, SHA-256 of every
 * input file (reads all of them), times of every chunk. */
tt_status record_write(tt_ctx *ctx, const record *r, const char *path,
                       const opt_command *cmd, const void *settings,
                       const record_video *v);

#endif
