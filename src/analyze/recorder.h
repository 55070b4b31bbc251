/* recorder.h: what a recorder has collected, for the file that writes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_RECORDER_H
#define ANALYZE_RECORDER_H

#include "core/context.h"
#include "analyze/analyze.h"
#include "io/io.h"

/* An event of any policy; of its fields those that a trace keeps. */
typedef struct rec_event {
    struct rec_event *next;
    tt_event e;                    /* values are copies                       */
} rec_event;

/* All events of a kind. */
typedef struct rec_kind {
    const tt_event_kind *kind;
    rec_event *first, **last;
    int64_t width[TT_EVENT_FIELDS];    /* longest row so far                  */
} rec_kind;

/* One compression of Deep Forcing, by source frame. */
typedef struct rec_choice {
    struct rec_choice *next;
    int64_t head[7];       /* layer, chunk, event, source tokens, kept tokens,
                              chosen tokens, frames the sinks moved           */
    int64_t nframes;
    int64_t *frame;        /* [nframes, 3] frame, candidates, chosen          */
    double *phi;           /* [nframes, 2] mean and largest of the candidates */
} rec_choice;

typedef struct rec_part {
    struct rec_part *next;
    int32_t row[5];
} rec_part;

typedef struct rec_chunk {
    struct rec_chunk *next;
    int64_t start, frames, ends[2];
    void *shown[TT_EVENT_FIELDS];  /* [layers, width] of a field, see below   */
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
    int64_t layers, slots, L;
    int64_t width, held;           /* H*D of the model, and of heads held     */
    bool so_far;                   /* what is there is not finished           */
    bool measures;                 /* statistics of keys and values           */
    tt_event shown;                /* of layer 0: which fields, how wide      */
    bool chooses;                  /* its events choose tokens                */
    int64_t nchunks, frames;       /* frames: of the video so far             */
    int64_t shift;                 /* video frame of the cache's frame 0      */
    rec_kind *kind;                /* [nkinds] of the policy's events         */
    int nkinds;
    rec_chunk *chunks, **last_chunk;
    rec_part *parts, **last_part;
    rec_choice *choices, **last_choice;
    tt_st_writer *latents, *features, *chosen; /* NULL: not wanted            */
};

/* Fields that a trace keeps as they are. */
static inline bool recorder_keeps(const tt_field *f)
{
    return f->flags & TT_FIELD_TRACED;
}

/* Events that choose tokens: Deep Forcing (recorder_compress.c). */
void recorder_take_choice(tt_recorder *r, const tt_event *e);

/* run.json, and the trace tensors. */
tt_status recorder_write_run(tt_recorder *r, const char *path);
tt_status recorder_write_trace(tt_recorder *r, const char *path);

#endif
