/* measure.h: the analyses themselves, as functions of plain arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is summed in double. */
#ifndef ANALYZE_MEASURE_H
#define ANALYZE_MEASURE_H

#include "analyze/recording.h"

/* ---- A, A': drift (drift.c) ---------------------------------------------- */

/* Mean and population standard deviation of F frames in N statistics. */
typedef struct frame_stats {
    int64_t F, N;
    double *mean, *sd;      /* [F, N]                                         */
} frame_stats;

/* Of the latents: N = C channels, over the pixels of a frame. */
frame_stats stats_of_latents(tt_recording *r, tt_arena *mem);
/* Of keys (values = false) or values: N = layers * H*D; layer -1: all. */
frame_stats stats_of_features(tt_recording *r, tt_arena *mem, bool values,
                              int64_t layer);

/* What the first T frames of `s` have in common, pooled over frames and
 * elements:  mean = mean_f mean_f;  sd^2 = mean_f sd_f^2 + mean_f
 * (mean_f - mean)^2.  mean, sd [N] */
void stats_pool(double *mean, double *sd, const frame_stats *s, int64_t T);

typedef struct drift_kind {
    bool norm, l1;
} drift_kind;

/* out[f] = sqrt(mean_n ((x[f][n] - ref[n]) / scale[n])^2), or with l1 the
 * mean of |.|; scale = 1 without norm. A scale of 0 counts as 1e-12. */
void drift_curve(double *out, const double *x, const double *ref,
                 const double *scale, int64_t F, int64_t N, drift_kind kind);

/* x[f] = mean of x[max(0, f-w+1) .. f], in place. */
void running_mean(double *x, int64_t n, int64_t w);

/* ---- B: weights of summaries (biography.c) ------------------------------- */

/* How much of every source frame is in the long-term (-2) and short-term (-3)
 * summaries of `layer` after every chunk:
 *   w <- (1 - alpha) w + alpha * share among the tokens evicted by the chunk,
 *   w = share when the summaries are made
 *   out [2, chunks, frames], long first
 * A negative alpha is unknown: its weights stay 0.
 * A frame is evicted when it is gone from a slot that was neither overwritten
 * by a summary nor memory. False, and out zero, when there are none. */
bool summary_weights(double *out, const tt_recording *r, int64_t layer,
                     double alpha_long, double alpha_short);

/* ---- C: retention (retention.c) ------------------------------------------ */

/* [chunks, frames]: share of the frame readable, mean over layers, or of one
 * layer. */
void retention_map(double *out, const tt_recording *r, int64_t layer);

/* One step. Ages count back from the newest frame. */
typedef struct retention_step {
    double distinct;    /* frames of which anything is readable               */
    double span;        /* newest - oldest of them                            */
    double mean_age;    /* weighted by how much is readable                   */
    double band_share;  /* of what is readable, the part with age <= BAND     */
    double band_full;   /* of the frames with age <= BAND, the readable part  */
} retention_step;
#define RETENTION_BAND 21

/* Mean over layers (or of one layer) after chunk `c`. */
retention_step retention_at(const tt_recording *r, int64_t c, int64_t layer);

typedef struct retention_summary {
    retention_step last, mean;   /* after the last chunk; mean over chunks    */
    double admissions, rejections, edits; /* frames, sum over layers; NAN     */
    double admitted;             /* frames that entered memory later than its
                                    first members, sum over layers            */
    double lifetime;             /* mean number of chunks such a frame stays in
                                    memory, until the end at most; NAN        */
} retention_summary;
retention_summary retention_sum_up(const tt_recording *r, int64_t layer);

/* ---- E: pixels (pixels.c) ------------------------------------------------ */

typedef struct pixel_row {
    double mean[3], sd[3];  /* R, G, B, 0..255                                */
    double saturation;      /* mean of (max-min)/max, 0 for black             */
    double sharpness;       /* variance of the 4-neighbour Laplacian of grey
                               (299 R + 587 G + 114 B)/1000, inner pixels     */
    double change;          /* mean |difference| to the frame before; NAN     */
} pixel_row;

/* prev NULL for the first frame. rgb [h, w, 3] */
pixel_row pixel_measure(const uint8_t *rgb, const uint8_t *prev, int64_t w,
                        int64_t h);
/* VBench temporal_flickering: (255 - mean change) / 255; NAN for one frame. */
double pixel_flickering(const pixel_row *row, int64_t n);

#endif
