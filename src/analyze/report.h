/* report.h: parts of the page that compares runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_REPORT_H
#define ANALYZE_REPORT_H

#include "analyze/recording.h"
#include "analyze/text.h"

/* The strips of frames (report_strips.c); nothing where no video is. */
void report_strips(text *t, tt_ctx *ctx, tt_recording *const *run, int n);

#endif
