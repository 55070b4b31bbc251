/* table.c: one table, written as CSV and as JSON at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/jsonout.h"
#include "io/outfile.h"

static void begin_rows(table *t, const char *columns)
{
    fprintf(t->csv, "%s", columns);
    fputs(TABLE_JSON, t->json);
    for (const char *s = columns; *s;) {
        const size_t n = strcspn(s, ",");
        fprintf(t->json, "%s\"%.*s\"", t->columns ? ", " : "", (int)n, s);
        t->columns++;
        s += n;
        if (*s) s++;
    }
    fputs("],\n\"rows\": [", t->json);
    t->column = t->columns;
}

void table_begin(table *t, tt_ctx *ctx, const char *columns)
{
    *t = (table){.ctx = ctx};
    t->csv = open_memstream(&t->text[0], &t->size[0]);
    t->json = open_memstream(&t->text[1], &t->size[1]);
    if (t->csv && t->json) {
        begin_rows(t, columns);
        return;
    }
    tt_fail(ctx, TT_ENOMEM, "out of memory for a table");
    table_end(t);
}

void table_end(table *t)
{
    if (t->csv) fclose(t->csv);
    if (t->json) fclose(t->json);
    t->csv = t->json = NULL;
    for (int i = 0; i < 2; i++) free(t->text[i]);
    t->text[0] = t->text[1] = NULL;
}

void table_row(table *t)
{
    TT_ASSERT(t->column == t->columns); /* the row before is complete */
    if (!t->csv) return;
    fputc('\n', t->csv);
    fprintf(t->json, "%s\n[", t->rows++ ? "]," : "");
    t->column = 0;
}

static bool table_next_field(table *t)
{
    if (!t->csv) return false;
    TT_ASSERT(t->column < t->columns);
    if (t->column++) {
        fputc(',', t->csv);
        fputs(", ", t->json);
    }
    return true;
}

/* Quoted where it holds a comma, a quote or a line end. */
static void put_csv(FILE *f, const char *s)
{
    const bool quoted = strpbrk(s, ",\"\r\n") != NULL;
    if (quoted) fputc('"', f);
    for (; *s; s++) {
        if (quoted && *s == '"') fputc('"', f);
        fputc(*s, f);
    }
    if (quoted) fputc('"', f);
}

void table_str(table *t, const char *s)
{
    if (!table_next_field(t)) return;
    put_csv(t->csv, s);
    json_string(t->json, s);
}

static void table_put_number(FILE *f, double x, const char *otherwise)
{
    if (!isfinite(x)) fputs(otherwise, f);
    else if (fabs(x) < 1e15 && x == (double)(int64_t)x)
        fprintf(f, "%lld", (long long)x);
    else fprintf(f, "%.9g", x);
}

void table_num(table *t, double x)
{
    if (!table_next_field(t)) return;
    table_put_number(t->csv, x, "");
    table_put_number(t->json, x, "null");
}

static tt_status save_text(table *t, int i, const char *path,
                           const char *ending)
{
    tt_out out;
    char name[4096];
    if ((size_t)snprintf(name, sizeof name, "%s%s", path, ending)
        >= sizeof name)
        return tt_fail(t->ctx, TT_EINVAL, "the name of a table is too long");
    TT_TRY(tt_out_open(t->ctx, &out, name));
    tt_out_write(t->ctx, &out, t->text[i], t->size[i]);
    return tt_out_finish(t->ctx, &out);
}

tt_status table_save(table *t, const char *path, bool csv, bool json)
{
    TT_TRY(t->ctx->status);
    TT_ASSERT(t->column == t->columns);
    fputc('\n', t->csv);
    fprintf(t->json, "%s\n]}\n", t->rows ? "]" : "");
    if (fflush(t->csv) || fflush(t->json) || ferror(t->csv) || ferror(t->json))
        return tt_fail(t->ctx, TT_ENOMEM, "out of memory for a table");
    if (json) TT_TRY(save_text(t, 1, path, ".json"));
    return csv ? save_text(t, 0, path, ".csv") : TT_OK;
}
