/* table.c: one table, written as CSV and as JSON at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/table.h"

#include <stdio.h>
#include <string.h>

void table_begin(table *t, tt_ctx *ctx, const char *columns)
{
    memset(t, 0, sizeof *t);
    text_begin(&t->csv, ctx);
    text_begin(&t->json, ctx);
    text_add(&t->csv, "%s", columns);
    text_add(&t->json, TABLE_JSON);
    for (const char *s = columns; *s;) {
        size_t n = strcspn(s, ",");
        text_add(&t->json, "%s\"%.*s\"", t->columns ? ", " : "", (int)n, s);
        t->columns++;
        s += n;
        if (*s) s++;
    }
    text_add(&t->json, "],\n\"rows\": [");
    t->column = t->columns;
}

void table_end(table *t)
{
    text_end(&t->csv);
    text_end(&t->json);
}

void table_row(table *t)
{
    TT_ASSERT(t->column == t->columns); /* the row before is complete */
    text_add(&t->csv, "\n");
    text_add(&t->json, "%s\n[", t->rows ? "]," : "");
    t->rows++;
    t->column = 0;
}

static void next_field(table *t)
{
    TT_ASSERT(t->column < t->columns);
    if (t->column++) {
        text_add(&t->csv, ",");
        text_add(&t->json, ", ");
    }
}

void table_str(table *t, const char *s)
{
    next_field(t);
    text_csv(&t->csv, s);
    text_json(&t->json, s);
}

void table_num(table *t, double x)
{
    next_field(t);
    text_number(&t->csv, x, "");
    text_number(&t->json, x, "null");
}

tt_status table_save(table *t, const char *path, bool csv, bool json)
{
    tt_ctx *ctx = t->csv.ctx;
    char name[4096];
    TT_ASSERT(t->column == t->columns);
    text_add(&t->csv, "\n");
    text_add(&t->json, "%s\n]}\n", t->rows ? "]" : "");
    if ((size_t)snprintf(name, sizeof name, "%s.json", path) >= sizeof name)
        return tt_fail(ctx, TT_EINVAL, "the name of a table is too long");
    if (json) TT_TRY(text_save(&t->json, name));
    snprintf(name, sizeof name, "%s.csv", path);
    if (csv) TT_TRY(text_save(&t->csv, name));
    return ctx->status;
}
