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

enum { CURVES = 6, RUNS_MAX = 1024 };
extern const char *const curve_names[CURVES]; /* "mean" ... "v_std"           */

/* Drift of one run (or of the mean over runs of one label). */
typedef struct drift_run {
    const char *label;
    int64_t n[CURVES];          /* frames; 0: not recorded                    */
    double *curve[CURVES];      /* mean, std of latents; of k; of v           */
} drift_run;

/* Drift of all runs with the options applied, memory in `mem`; the number of
 * entries of `out` [n] filled (fewer than n with opt->average). 0 after a
 * failure. */
int drift_all(drift_run *out, tt_ctx *ctx, tt_arena *mem,
              tt_recording *const *run, int n, const tt_analyze_options *opt);

/* Mean of curve k over the last quarter of its frames, rounded up: one frame
 * of a curve says little. NaN when it was not recorded. */
double drift_last_quarter(const drift_run *run, int k);

/* Root mean square of latent frame f less the frame before; NaN for the
 * first. z [2, C, P] to work in. */
double frame_motion(float *z, const tt_recording *r, int64_t f);

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

/* ---- D: decisions of TetherCache (edits.c) ------------------------------- */

/* Candidates of a round that were in memory before. They come first, and memory
 * is full when rounds are held: as many as are kept. */
int64_t round_members(const tt_recording *r, int64_t round);

/* Before the edit of a frame that is admitted: mean and deviation of every
 * channel, [4, width] as in kv_stats. */
typedef struct frame_edit {
    int64_t round, layer, frame;
    const double *trusted;   /* of sinks and members                          */
    const float *own;
} frame_edit;
typedef void (*edit_fn)(void *user, const tt_recording *r,
                        const frame_edit *e);

/* All edits, layer by layer and in the order of rounds; none where the run
 * lacks statistics, rounds or tau. */
tt_status edits_all(tt_ctx *ctx, const tt_recording *r, edit_fn fn,
                    void *user);

/* Keys or values of an edit in a few numbers. An edit with tau takes distance
 * to (1 - tau) distance, spread to (1 - tau) spread + tau. */
typedef struct edit_part {
    double distance;   /* rms over channels of (own mean - trusted) / trusted
                          deviation                                           */
    double spread;     /* mean over channels of own / trusted deviation       */
    int64_t channel;   /* the one farthest away                               */
    double own[2], trusted[2]; /* its mean and deviation                      */
} edit_part;
edit_part edit_sum_up(const tt_recording *r, const frame_edit *e, bool values);

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
