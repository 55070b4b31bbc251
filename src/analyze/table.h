/* table.h: one table, written as CSV and as JSON at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     table t;
 *     table_begin(&t, ctx, "run,frame,mean");
 *     table_row(&t); table_str(&t, "fifo"); table_num(&t, 0); ...
 *     table_save(&t, "out/drift", true, true);     out/drift.csv and .json
 *     table_end(&t);
 * JSON: {"columns": [...], "rows": [[...], ...]}. NAN is an empty field in CSV
 * and null in JSON. */
#ifndef ANALYZE_TABLE_H
#define ANALYZE_TABLE_H

#include <stdio.h>

#include "core/context.h"

/* Short texts, put together in memory and saved in one go, so that a file is
 * complete or absent. */
typedef struct table {
    tt_ctx *ctx;
    FILE *csv, *json;         /* NULL after a failure: nothing is added       */
    char *text[2];            /* of both                                      */
    size_t size[2];
    int64_t rows, column, columns;
} table;

/* How its JSON begins. */
#define TABLE_JSON "{\"columns\": ["

/* Names separated by commas. */
void table_begin(table *t, tt_ctx *ctx, const char *columns);
void table_end(table *t);
void table_row(table *t);
void table_str(table *t, const char *s);
void table_num(table *t, double x);
tt_status table_save(table *t, const char *path, bool csv, bool json);

#endif
