/* output.h: where tables and figures go.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_OUTPUT_H
#define ANALYZE_OUTPUT_H

#include "analyze/figures.h"
#include "analyze/table.h"

/* Do the runs, and the run they are compared with, have what the options ask
 * for? Before anything is read from them. */
tt_status output_check(tt_ctx *ctx, tt_recording *const *run, int n,
                       const tt_analyze_options *opt);

/* Refuse to replace what stands under these names (ended by NULL) in the folder
 * and was not made by an analysis; with ctx->overwrite nothing is refused. */
tt_status output_keep(tt_ctx *ctx, const tt_analyze_options *opt,
                      const char *const *name);

/* Begin the table of that name: its columns are listed in output.c. */
void output_begin(table *t, tt_ctx *ctx, const char *name);

/* Save as folder/name.csv and .json, or .svg, as the options say; ends the
 * table or figure. */
tt_status output_table(tt_ctx *ctx, table *t, const char *name,
                       const tt_analyze_options *opt);
tt_status output_figure(tt_ctx *ctx, figure *f, const char *name,
                        const tt_analyze_options *opt);

/* Every figure the runs have something for, one after the other; fn ends the
 * figure. */
typedef void (*output_fn)(tt_ctx *ctx, figure *f, const char *name,
                          void *user);
tt_status output_figures(tt_ctx *ctx, tt_recording *const *run, int n,
                         const drift_run *drift, int ndrift,
                         const tt_analyze_options *opt, output_fn fn,
                         void *user);

#endif
