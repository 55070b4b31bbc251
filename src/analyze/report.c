/* report.c: a comparison of runs as one HTML page.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is inside the file: figures as SVG, contact sheets as PNG in
 * base64, no script, nothing fetched. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "tether/version.h"

enum { SHEET_LIMIT = 1 << 26 };

static const char style[] =
    "body{font:15px/1.45 system-ui,Helvetica,Arial,sans-serif;color:#222;"
    "max-width:1180px;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "th:first-child,td:first-child{text-align:left}"
    "thead th{border-bottom:2px solid #888;vertical-align:bottom}"
    "svg{max-width:100%;height:auto}img{max-width:100%}"
    "figure{margin:0 0 1.5em}figcaption{color:#666}.runs{overflow-x:auto}";

static void add_head(text *t, const char *title)
{
    text_add(t, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
             "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
             "content=\"width=device-width\">\n<title>");
    text_xml(t, title);
    text_add(t, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    text_xml(t, title);
    text_add(t, "</h1>\n");
}

static void add_facts(text *t, tt_recording *const *run, int n)
{
    bool same = n > 0 && run[0]->prompt;
    for (int i = 1; i < n && same; i++)
        same = run[i]->prompt && !strcmp(run[i]->prompt, run[0]->prompt);
    if (same) {
        text_add(t, "<p>Prompt: <q>");
        text_xml(t, run[0]->prompt);
        text_add(t, "</q></p>\n");
    }
    text_add(t, "<p>%d run%s with the same model and noise, one cache policy "
             "each. tether %s.</p>\n", n, n == 1 ? "" : "s", tt_version());
}

/* ---- numbers ------------------------------------------------------------- */

static void add_cell(text *t, double x)
{
    if (isfinite(x)) text_add(t, "<td>%.4g</td>", x);
    else text_add(t, "<td>&ndash;</td>");
}

static void add_row(text *t, const tt_recording *r, const drift_run *drift,
                    const tt_analyze_options *opt)
{
    text_add(t, "<tr><td>");
    text_xml(t, r->label);
    text_add(t, "</td>");
    for (int k = 0; k < 2; k++)
        add_cell(t, drift ? drift_last_quarter(drift, k) : NAN);
    if (r->readable && r->chunks) {
        retention_summary s = retention_sum_up(r, opt->layer);
        const double v[] = {s.last.distinct, s.last.span, s.last.mean_age,
                            100 * s.last.band_share, s.admissions,
                            s.rejections, s.edits, s.lifetime};
        for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) add_cell(t, v[i]);
    } else {
        for (int i = 0; i < 8; i++) add_cell(t, NAN);
    }
    text_add(t, "</tr>\n");
}

static void add_table(text *t, tt_recording *const *run, int n,
                      const drift_run *drift, const tt_analyze_options *opt)
{
    static const char *const column[] = {
        "policy", "latent drift of the mean, last quarter",
        "latent drift of the deviation, last quarter",
        "frames readable at the end", "span of them, frames",
        "their mean age, frames", "of age 21 or less, %", "frames admitted",
        "frames rejected", "frames edited", "chunks an admitted frame stays"};
    text_add(t, "<h2>Numbers</h2>\n<div class=\"runs\"><table>\n<thead><tr>");
    for (size_t i = 0; i < sizeof column / sizeof column[0]; i++)
        text_add(t, "<th>%s</th>", column[i]);
    text_add(t, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < n; i++)
        add_row(t, run[i], drift ? &drift[i] : NULL, opt);
    text_add(t, "</tbody></table></div>\n<p>Frames admitted, rejected and "
             "edited are sums over the layers; what is readable is a mean over "
             "them. Drift is a distance from the beginning of the same video: "
             "a low one can also mean that nothing moves.</p>\n");
}

/* ---- pictures ------------------------------------------------------------ */

static void add_sheets(text *t, tt_ctx *ctx, tt_recording *const *run, int n)
{
    bool begun = false;
    for (int i = 0; i < n && !ctx->status; i++) {
        tt_arena mem = {0};
        size_t size;
        if (!run[i]->sheet || !files_exist(run[i]->sheet)) continue;
        const char *png = files_read(ctx, &mem, run[i]->sheet, SHEET_LIMIT,
                                     &size);
        if (png) {
            if (!begun) text_add(t, "<h2>Videos</h2>\n");
            begun = true;
            text_add(t, "<figure><img alt=\"contact sheet\" "
                     "src=\"data:image/png;base64,");
            text_base64(t, (const uint8_t *)png, size);
            text_add(t, "\"><figcaption>");
            text_xml(t, run[i]->label);
            if (run[i]->video) {
                text_add(t, " (");
                text_xml(t, run[i]->video);
                text_add(t, ")");
            }
            text_add(t, "</figcaption></figure>\n");
        }
        tt_arena_free(&mem);
    }
}

static void add_figure(tt_ctx *ctx, figure *f, const char *name, void *user)
{
    text *t = user;
    (void)ctx;
    text_add(t, "<figure id=\"%s\">\n", name);
    figure_svg(t, f);
    text_add(t, "</figure>\n");
    figure_end(f);
}

tt_status tt_report_write(tt_ctx *ctx, const char *path, const char *title,
                          tt_recording *const *run, int n,
                          const tt_analyze_options *opt)
{
    tt_arena mem = {0};
    text t;
    TT_TRY(output_check(ctx, run, n, opt));
    drift_run *drift = tt_alloc(ctx, &mem, n, sizeof *drift, "a report");
    TT_TRY(ctx->status);
    int ndrift = drift_all(drift, ctx, &mem, run, n, opt);
    text_begin(&t, ctx);
    if (!ctx->status) {
        add_head(&t, title);
        add_facts(&t, run, n);
        add_table(&t, run, n, ndrift == n ? drift : NULL, opt);
        add_sheets(&t, ctx, run, n);
        text_add(&t, "<h2>What the caches did</h2>\n");
        output_figures(ctx, run, n, drift, ndrift, opt, add_figure, &t);
        text_add(&t, "</body>\n</html>\n");
    }
    if (!ctx->status) text_save(&t, path);
    text_end(&t);
    tt_arena_free(&mem);
    return ctx->status;
}

tt_status tt_analyze_folder(tt_ctx *ctx, const char *path)
{
    TT_TRY(ctx->status);
    return files_make_folder(ctx, path);
}
