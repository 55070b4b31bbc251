/* recorder.h: what a recorder has collected, for the file that writes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_RECORDER_H
#define ANALYZE_RECORDER_H

#include "analyze/text.h"
#include "tether/analyze.h"
#include "tether/io.h"

typedef struct rec_round {
    struct rec_round *next;
    int64_t layer, chunk, sub, P;
    int64_t *candidates, *memory;  /* [P], [M]                                */
    double *mass, *div, *score;    /* [P]                                     */
    uint8_t *keep;                 /* [P]                                     */
    double margin;
} rec_round;

/* One compression of Deep Forcing, by source frame. */
typedef struct rec_event {
    struct rec_event *next;
    int64_t head[7];       /* layer, chunk, event, source tokens, kept tokens,
                              chosen tokens, frames the sinks moved           */
    int64_t nframes;
    int64_t *frame;        /* [nframes, 3] frame, candidates, chosen          */
    double *phi;           /* [nframes, 2] mean and largest of the candidates */
} rec_event;

typedef struct rec_part {
    struct rec_part *next;
    int32_t row[5];
} rec_part;

typedef struct rec_chunk {
    struct rec_chunk *next;
    int64_t start, frames, ends[2];
    uint8_t *filled;               /* [layers]                                */
    int64_t *memory, *counters;    /* [layers, M], [layers, 3]                */
    int32_t *src;                  /* [layers, slots]                         */
    float *share;                  /* [layers, slots]                         */
    uint8_t *region;               /* [layers, slots]                         */
    float *readable;               /* [layers, nreadable]                     */
    int64_t nreadable;             /* frames of the video so far              */
} rec_chunk;

struct tt_recorder {
    tt_ctx *ctx;
    tt_arena mem;                  /* holds this struct as well               */
    tt_cache *cache;
    tt_recorder_options opt;
    int64_t layers, slots, L, width;   /* width: H*D                          */
    int64_t M, P;                  /* of the widest round                     */
    bool tether;
    int64_t nchunks, frames;       /* frames: of the video so far             */
    int64_t shift;                 /* video frame of the cache's frame 0      */
    rec_round *rounds, **last_round;
    rec_chunk *chunks, **last_chunk;
    rec_part *parts, **last_part;
    rec_event *events, **last_event;
    tt_st_writer *latents, *features, *chosen; /* NULL: not wanted            */
};

/* Listens to Deep Forcing (recorder_compress.c). */
void recorder_on_compress(void *user, const tt_compress_record *c);

/* run.json, and the trace tensors. */
tt_status recorder_write_run(tt_recorder *r, const char *path);
tt_status recorder_write_trace(tt_recorder *r, const char *path);

#endif
