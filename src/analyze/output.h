/* output.h: where tables go.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_OUTPUT_H
#define ANALYZE_OUTPUT_H

#include "analyze/measure.h"
#include "analyze/table.h"

/* Do the runs, and the run they are compared with, have what the options ask
 * for? Before anything is read from them. */
tt_status output_check(tt_ctx *ctx, tt_recording *const *run, int n,
                       const tt_analyze_options *opt);

/* Refuse to replace what stands under these names (ended by NULL), or as
 * PAGE.html, in the folder and was not made by an analysis; with ctx->overwrite
 * nothing is refused. */
tt_status output_keep(tt_ctx *ctx, const tt_analyze_options *opt,
                      const char *const *name, const char *page);

/* Begin the table of that name: its columns are listed in output.c. */
void output_begin(table *t, tt_ctx *ctx, const char *name);

/* Save as folder/name.csv and .json, as the options say; ends the table. */
tt_status output_table(tt_ctx *ctx, table *t, const char *name,
                       const tt_analyze_options *opt);

#endif
