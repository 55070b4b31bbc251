/* figures.h: the analyses of several runs as pictures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_FIGURES_H
#define ANALYZE_FIGURES_H

#include "analyze/measure.h"
#include "analyze/plot.h"

enum { CURVES = 6, RUNS_MAX = 1024 };
extern const char *const curve_names[CURVES]; /* "mean" ... "v_std"           */

/* Drift of one run (or of the mean over runs of one label). */
typedef struct drift_run {
    const char *label;
    int64_t n[CURVES];          /* frames; 0: not recorded                    */
    double *curve[CURVES];      /* mean, std of latents; of k; of v           */
} drift_run;

/* Mean of curve k over the last quarter of its frames, rounded up: one frame
 * of a curve says little. NaN when it was not recorded. */
double drift_last_quarter(const drift_run *run, int k);

/* Each begins *f; false when the runs do not hold what it needs (f is then
 * unused) or after a failure recorded in ctx. */
bool figure_drift(figure *f, tt_ctx *ctx, const drift_run *run, int n,
                  const tt_analyze_options *opt);
bool figure_features(figure *f, tt_ctx *ctx, const drift_run *run, int n,
                     const tt_analyze_options *opt);
bool figure_biography(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt);
bool figure_retention(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt);
bool figure_selection(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt);
bool figure_pixels(figure *f, tt_ctx *ctx, const char *const *label,
                   pixel_row *const *row, const int64_t *frames, int n);

/* Drift of all runs with the options applied, memory in `mem`; the number of
 * entries of `out` [n] filled (fewer than n with opt->average). 0 after a
 * failure. */
int drift_all(drift_run *out, tt_ctx *ctx, tt_arena *mem,
              tt_recording *const *run, int n, const tt_analyze_options *opt);

#endif
