/* report.c: runs, alone or compared, as the data of the viewer's page.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The JSON: "kind" "runs", title, facts, "columns" and "rows" of the table of
 * numbers, "unit" of drift, and "runs" (report_run.c). Without scripts the page
 * is its title and that table.
 * Next    report_run.c, film.c, tools/viewer/runs.js */
#include "analyze/report.h"

#include <math.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "io/jsonout.h"
#include "io/page.h"
#include "io/outfile.h"

enum { COLUMNS = 11 };

static const char *const column[COLUMNS] = {
    "drift of the mean, last quarter", "drift of the deviation, last quarter",
    "frames readable at the end", "span of them, frames",
    "their mean age, frames", "of age 21 or less, %", "frames admitted",
    "frames rejected", "frames edited", "chunks an admitted frame stays",
    "seconds it took"};

/* What a row shows; NAN: unknown. */
static void report_find_values(double v[COLUMNS], const tt_recording *r,
                               const drift_run *drift,
                               const tt_analyze_options *opt)
{
    for (int k = 0; k < COLUMNS; k++) v[k] = NAN;
    for (int k = 0; k < 2 && drift; k++) v[k] = drift_last_quarter(drift, k);
    if (r->readable && r->chunks) {
        const retention_summary s = retention_sum_up(r, opt->layer);
        const double of[] = {s.last.distinct, s.last.span, s.last.mean_age,
                             100 * s.last.band_share, s.admissions,
                             s.rejections, s.edits, s.lifetime};
        memcpy(v + 2, of, sizeof of);
    }
    if (r->seconds >= 0) v[COLUMNS - 1] = r->seconds;
}

/* ---- without scripts ----------------------------------------------------- */

static void put_plain(FILE *f, const char *title, tt_recording *const *run,
                      int n, double (*v)[COLUMNS])
{
    fputs("<h1>", f);
    page_xml(f, title);
    fputs("</h1>\n<div class=\"wide\"><table>\n<tr><th>run</th>", f);
    for (int k = 0; k < COLUMNS; k++) fprintf(f, "<th>%s</th>", column[k]);
    for (int i = 0; i < n; i++) {
        fputs("</tr>\n<tr><td>", f);
        page_xml(f, run[i]->label);
        fputs("</td>", f);
        for (int k = 0; k < COLUMNS; k++)
            fprintf(f, isfinite(v[i][k]) ? "<td>%.4g</td>" : "<td></td>",
                    v[i][k]);
    }
    fputs("</tr>\n</table></div>\n", f);
}

/* ---- the data ------------------------------------------------------------ */

static void put_table(FILE *f, tt_recording *const *run, int n,
                      double (*v)[COLUMNS])
{
    fputs(",\n\"columns\": [\"run\"", f);
    for (int k = 0; k < COLUMNS; k++) fprintf(f, ", \"%s\"", column[k]);
    fputs("],\n\"rows\": [", f);
    for (int i = 0; i < n; i++) {
        fputs(i ? ",\n[" : "[", f);
        json_string(f, run[i]->label);
        for (int k = 0; k < COLUMNS; k++) {
            fputs(", ", f);
            page_number(f, v[i][k], 9);
        }
        fputc(']', f);
    }
    fputc(']', f);
}

static void put_unit(FILE *f, const tt_analyze_options *opt)
{
    fputs(",\n\"unit\": ", f);
    json_string(f, opt->norm ? "reference standard deviations"
                : opt->l1 ? "mean absolute distance"
                : "root mean square distance");
    fputs(", \"reference\": ", f);
    if (opt->reference_run) json_string(f, opt->reference_run->label);
    else fprintf(f, "%lld", (long long)opt->reference);
}

static void put_drift(FILE *f, const drift_run *drift, int n)
{
    fputs(",\n\"drift\": [", f);
    for (int i = 0; i < n; i++) {
        fputs(i ? ",\n{\"label\": " : "{\"label\": ", f);
        json_string(f, drift[i].label);
        for (int k = 0; k < CURVES; k++) {
            if (!drift[i].n[k]) continue;
            fprintf(f, ",\n\"%s\": ", curve_names[k]);
            report_reals(f, drift[i].curve[k], drift[i].n[k], 6);
        }
        fputc('}', f);
    }
    fputc(']', f);
}

/* What a page is made from. */
typedef struct report {
    const char *title;
    tt_recording *const *run;
    int n, ndrift;
    const drift_run *drift;       /* [ndrift]                                 */
    double (*v)[COLUMNS];         /* [n]                                      */
    const tt_analyze_options *opt;
} report;

static void put_page(FILE *f, tt_ctx *ctx, const report *r)
{
    page_open(f, r->title, NULL);
    put_plain(f, r->title, r->run, r->n, r->v);
    page_data(f);
    fputs("{\"kind\": \"runs\", \"title\": ", f);
    json_string(f, r->title);
    fputs(",\n", f);
    page_facts(f, r->opt->facts);
    put_table(f, r->run, r->n, r->v);
    put_unit(f, r->opt);
    put_drift(f, r->drift, r->ndrift);
    fputs(",\n\"runs\": [", f);
    for (int i = 0; i < r->n && !ctx->status; i++) {
        fputs(i ? ",\n" : "", f);
        report_run(f, ctx, r->run[i], r->n);
    }
    fputs("]}\n", f);
    page_close(f);
}

tt_status tt_report_write(tt_ctx *ctx, const char *path, const char *title,
                          tt_recording *const *run, int n,
                          const tt_analyze_options *opt)
{
    tt_arena mem = {0};
    tt_out out;
    TT_TRY(output_check(ctx, run, n, opt));
    drift_run *drift = tt_alloc(ctx, &mem, n, sizeof *drift, "a report");
    double (*v)[COLUMNS] = tt_alloc(ctx, &mem, n, sizeof *v, "a report");
    const int ndrift = v ? drift_all(drift, ctx, &mem, run, n, opt) : 0;
    for (int i = 0; i < n && !ctx->status; i++)
        report_find_values(v[i], run[i], ndrift == n ? &drift[i] : NULL, opt);
    if (!ctx->status && tt_out_open(ctx, &out, path) == TT_OK) {
        put_page(out.file, ctx, &(report){title, run, n, ndrift, drift, v,
                                          opt});
        if (ctx->status) tt_out_abort(&out);
        else tt_out_finish(ctx, &out);
    }
    tt_arena_free(&mem);
    return ctx->status;
}

tt_status tt_analyze_folder(tt_ctx *ctx, const char *path)
{
    TT_TRY(ctx->status);
    return files_make_folder(ctx, path);
}
