/* recording.h: a recorded run in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Integers are widened and checked once, here: every index below is in range
 * afterwards. What a run lacks is NULL with a count of 0. */
#ifndef ANALYZE_RECORDING_H
#define ANALYZE_RECORDING_H

#include "analyze/analyze.h"
#include "io/io.h"

struct tt_recording {
    tt_ctx *ctx;
    tt_arena mem;                  /* holds this struct as well               */
    tt_file *file[4];              /* latents, trace, features, chosen tokens */
    const char *path, *label, *prompt, *video;
    const char *seed;              /* as run.json has it; NULL: unknown       */
    double seconds;                /* it took; negative: unknown              */
    const char *policy;            /* "" when unknown                         */
    int64_t S, K, M, R;            /* -1: unknown                             */
    double alpha, tau;             /* GRAB, TAME; NAN: unknown                */
    double alpha_long, alpha_short;/* memrope; negative: unknown              */

    int64_t n, C, P;               /* latents: frames, channels, pixels       */
    const tt_tensor *latents;      /* [1, n, C, h, w] or NULL                 */

    int64_t nfeatures, feature_layers, width;
    const tt_tensor *features;     /* [nfeatures, layers, 4, width] or NULL   */

    int64_t chunks, layers, slots, frames;
    const int64_t *start, *count;  /* [chunks] frames of a chunk              */
    const int64_t *src, *region;   /* [chunks, layers, slots]                 */
    const double *share;           /* [chunks, layers, slots]                 */
    const double *readable;        /* [chunks, layers, frames]                */
    const int64_t *part;           /* [nparts, 5]                             */
    int64_t nparts;
    const int64_t *counters;       /* [chunks, layers, 3]                     */

    int64_t rounds, candidates;    /* candidates: of the widest round         */
    const int64_t *grab_layer, *grab_chunk, *grab_sub;  /* [rounds]           */
    const int64_t *grab_candidates, *grab_keep;  /* [rounds, candidates]      */
    const double *grab_mass, *grab_div, *grab_scores;
    const double *grab_margin;     /* [rounds]                                */

    const int64_t *event;          /* [events, 7], see tt_recorder_finish     */
    int64_t events, event_frames, chosen;
    const int64_t *event_frame;    /* [event_frames, 4]                       */
    const double *event_phi;       /* [event_frames, 2]                       */
    const tt_tensor *chosen_token; /* [chosen, 6] F64                         */
};

/* Frame `f` of the latents, widened: z [C, P]. */
void recording_frame(float *z, const tt_recording *r, int64_t f);

#endif
