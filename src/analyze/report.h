/* report.h: parts of the page that shows runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_REPORT_H
#define ANALYZE_REPORT_H

#include <stdio.h>

#include "analyze/measure.h"

/* One run of `runs` as JSON, without what it lacks (report_run.c). */
void report_run(FILE *f, tt_ctx *ctx, const tt_recording *r, int runs);

/* [0.5, null, 2] */
void report_reals(FILE *f, const double *x, int64_t n, int digits);

/* `, "film": {...}`: the pictures of its video, each at most `wide` pixels
 * across (film.c); nothing where no video is. */
void report_film(FILE *f, tt_ctx *ctx, const tt_recording *r, int64_t wide);

#endif
