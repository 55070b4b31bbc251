/* report.c: a comparison of runs as one HTML page.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything is inside the file: figures as SVG, frames of the videos as PNG in
 * base64, no script, nothing fetched.
 * Next    report_strips.c, figures.c */
#include "analyze/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "core/page.h"
#include "tether/version.h"

enum { COLUMNS = 11, RATE = 16, SMOOTH = 12 };

static const char style[] =
    ".numbers th{white-space:normal;min-width:5.4em}"
    ".numbers th:first-child{min-width:9em}.numbers+p{margin-top:8px}"
    ".numbers td:first-child,.numbers th:first-child{position:sticky;left:0;"
    "background:var(--paper);white-space:normal}"
    ".strips{overflow-x:auto}.strips>div{min-width:760px}"
    ".strips figure{margin:0 0 10px}.strips img{width:100%;height:auto;"
    "display:block;border-radius:3px}"
    ".strips figcaption{position:sticky;left:0;width:max-content;"
    "max-width:min(100%,90vw);margin-bottom:3px}"
    ".times{display:grid;grid-template-columns:repeat(8,1fr);gap:4px;"
    "text-align:center;color:var(--soft);font-size:14px;margin-bottom:6px}"
    ".plot{overflow-x:auto;margin:0 0 26px}.plot svg{border-radius:6px}"
    "@media(max-width:640px){.plot svg{max-width:none}}";

static void add_head(text *t, const char *title)
{
    text_add(t, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
             "<meta charset=\"utf-8\">\n<meta name=\"generator\" "
             "content=\"tether %s\">\n<meta name=\"viewport\" "
             "content=\"width=device-width, initial-scale=1\">\n<title>",
             tt_version());
    text_xml(t, title);
    text_add(t, "</title>\n<style>");
    text_add(t, "%s", page_style[0]);
    text_add(t, "%s%s</style>\n</head>\n<body>\n", page_style[1], style);
}

/* ---- numbers ------------------------------------------------------------- */

/* What a row shows; NAN: unknown. The first two are best when small. */
static void find_values(double v[COLUMNS], const tt_recording *r,
                        const drift_run *drift, const tt_analyze_options *opt)
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

/* The least of a column; -1 with fewer than two of them. */
static int best_of(double (*v)[COLUMNS], int n, int k)
{
    int best = -1, known = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(v[i][k])) continue;
        known++;
        if (best < 0 || v[i][k] < v[best][k]) best = i;
    }
    return known > 1 ? best : -1;
}

/* Decimals that give the largest of a column three digits. */
static int decimals_of(double (*v)[COLUMNS], int n, int k)
{
    double top = 0;
    bool whole = true;
    for (int i = 0; i < n; i++) {
        if (!isfinite(v[i][k])) continue;
        top = fmax(top, fabs(v[i][k]));
        whole = whole && v[i][k] == floor(v[i][k]);
    }
    int digits = 0;
    while (digits < 6 && top > 0 && top < 100) {
        top *= 10;
        digits++;
    }
    return whole ? 0 : digits;
}

static void add_table(text *t, tt_recording *const *run, int n,
                      double (*v)[COLUMNS])
{
    static const char *const column[COLUMNS] = {
        "drift of the mean, last quarter",
        "drift of the deviation, last quarter", "frames readable at the end",
        "span of them, frames", "their mean age, frames",
        "of age 21 or less, %", "frames admitted", "frames rejected",
        "frames edited", "chunks an admitted frame stays", "seconds it took"};
    text_add(t, "<h2>Numbers</h2>\n<p>Of the two columns of drift the least is "
             "marked.</p>\n<div class=\"wide numbers\"><table>\n<thead><tr>"
             "<th>policy</th>");
    for (int k = 0; k < COLUMNS; k++) text_add(t, "<th>%s</th>", column[k]);
    text_add(t, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < n; i++) {
        text_add(t, "<tr><td>");
        text_xml(t, run[i]->label);
        text_add(t, "</td>");
        for (int k = 0; k < COLUMNS; k++) {
            const bool best = k < 2 && best_of(v, n, k) == i;
            if (isfinite(v[i][k]))
                text_add(t, best ? "<td><b class=\"ok\">%.*f</b></td>"
                                 : "<td>%.*f</td>", decimals_of(v, n, k),
                         v[i][k]);
            else
                text_add(t, "<td>&ndash;</td>");
        }
        text_add(t, "</tr>\n");
    }
    text_add(t, "</tbody></table></div>\n<p class=\"soft\">Frames admitted, "
             "rejected and edited are sums over the layers; what is readable "
             "is a mean over them. Drift is a distance from the beginning of "
             "the same video: a low one can also mean that nothing moves.</p>"
             "\n");
}

/* ---- the first screen ---------------------------------------------------- */

static void add_fact(text *t, const char *name, const char *value)
{
    const bool code = !strcmp(name, "command");
    text_add(t, "<dt>%s</dt><dd>%s", name, code ? "<code>" : "");
    text_xml(t, value);
    text_add(t, "%s</dd>\n", code ? "</code>" : "");
}

typedef const char *(*fact_fn)(const tt_recording *r);

static const char *prompt_of(const tt_recording *r)
{
    return r->prompt;
}

static const char *seed_of(const tt_recording *r)
{
    return r->seed;
}

/* A fact that all runs share. */
static void add_shared(text *t, const char *name, tt_recording *const *run,
                       int n, fact_fn of)
{
    for (int i = 0; i < n; i++)
        if (!of(run[i]) || strcmp(of(run[i]), of(run[0]))) return;
    if (n) add_fact(t, name, of(run[0]));
}

static void add_facts(text *t, tt_recording *const *run, int n,
                      const tt_analyze_options *opt)
{
    char buf[512];
    text_add(t, "<dl class=\"facts\">\n");
    for (int i = 0; opt->facts && opt->facts[i] && opt->facts[i + 1]; i += 2)
        add_fact(t, opt->facts[i], opt->facts[i + 1]);
    add_shared(t, "prompt", run, n, prompt_of);
    add_shared(t, "seed", run, n, seed_of);
    if (n && run[0]->latents && run[0]->latents->rank == 5) {
        const int64_t *dim = run[0]->latents->dim;
        snprintf(buf, sizeof buf, "%lldx%lld pixels", 8 * (long long)dim[4],
                 8 * (long long)dim[3]);
        add_fact(t, "size", buf);
    }
    add_fact(t, "machine", page_machine(buf, sizeof buf));
    add_fact(t, "date", page_date(buf, sizeof buf));
    snprintf(buf, sizeof buf, "tether %s (%s), %s, computes in %s",
             tt_version(), tt_git_revision(), tt_compiler(), tt_real_name());
    add_fact(t, "program", buf);
    text_add(t, "</dl>\n");
}

/* Shares of different lengths are different stretches of a video. */
static void add_lengths(text *t, tt_recording *const *run, int n)
{
    int64_t longest = 0;
    bool begun = false;
    for (int i = 0; i < n; i++)
        if (run[i]->n > longest) longest = run[i]->n;
    for (int i = 0; i < n; i++) {
        if (!run[i]->n || run[i]->n == longest) continue;
        text_add(t, begun ? ", " : "<p class=\"lead tie\">Runs are of unequal "
                 "length: ");
        begun = true;
        text_xml(t, run[i]->label);
        text_add(t, " has %lld latent frames", (long long)run[i]->n);
    }
    if (begun)
        text_add(t, ", the longest %lld. The last quarter of a shorter one "
                 "begins earlier.</p>\n", (long long)longest);
}

static void add_top(text *t, const char *title, tt_recording *const *run,
                    int n, double (*v)[COLUMNS], const tt_analyze_options *opt)
{
    int64_t longest = 0;
    const int best[2] = {best_of(v, n, 0), best_of(v, n, 1)};
    static const char *const of[2] = {"mean", "deviation"};
    for (int i = 0; i < n; i++)
        if (run[i]->n > longest) longest = run[i]->n;
    text_add(t, "<header class=\"top\">\n<div class=\"said\"><p class=\""
             "kicker\">tether &middot; compare</p>\n<h1>");
    text_xml(t, title);
    text_add(t, "</h1>\n<p class=\"lead\">%d run%s with the same model and "
             "noise, one cache policy each.", n, n == 1 ? "" : "s");
    for (int k = 0; k < 2; k++) {
        if (best[k] < 0) continue;
        text_add(t, " Least drift of the %s: <b>", of[k]);
        text_xml(t, run[best[k]]->label);
        text_add(t, "</b> (%.*f).", decimals_of(v, n, k), v[best[k]][k]);
    }
    text_add(t, "</p>\n");
    add_lengths(t, run, n);
    text_add(t, "</div>\n<div class=\"tiles\"><div class=\"tile\"><b>%d</b>"
             "policies</div>\n", n);
    if (longest)
        text_add(t, "<div class=\"tile\"><b>%lld</b>latent frames</div>\n"
                 "<div class=\"tile\"><b>%.1f s</b>of video</div>\n",
                 (long long)longest, (double)(4 * longest - 3) / RATE);
    text_add(t, "</div>\n");
    add_facts(t, run, n, opt);
    text_add(t, "</header>\n");
}

/* ---- pictures ------------------------------------------------------------ */

/* The curves of drift and the map of what was readable are in sight. */
static void add_figure(tt_ctx *ctx, figure *f, const char *name, void *user)
{
    text *t = user;
    const bool folded = strcmp(name, "drift") && strcmp(name, "retention");
    (void)ctx;
    if (folded) {
        text_add(t, "<details><summary>");
        text_xml(t, f->title ? f->title : name);
        text_add(t, "</summary>\n");
    }
    text_add(t, "<figure class=\"plot\" id=\"%s\">\n", name);
    figure_svg(t, f);
    text_add(t, folded ? "</figure></details>\n" : "</figure>\n");
    figure_end(f);
}

/* Many curves at full detail cannot be told apart: pictures, not numbers, show
 * a running mean where nothing else was asked for. */
static void add_figures(text *t, tt_ctx *ctx, tt_recording *const *run, int n,
                        const tt_analyze_options *opt)
{
    tt_arena mem = {0};
    tt_analyze_options o = *opt;
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < n; i++)
        if (run[i]->n && run[i]->n < shortest) shortest = run[i]->n;
    if (o.window == 1 && n > 2 && shortest != INT64_MAX
        && shortest >= 3 * SMOOTH) o.window = SMOOTH;
    drift_run *drift = tt_alloc(ctx, &mem, n, sizeof *drift, "a report");
    if (drift) {
        const int ndrift = drift_all(drift, ctx, &mem, run, n, &o);
        text_add(t, "<h2>What the caches did</h2>\n<p>Curves and maps of all "
                 "policies.</p>\n");
        output_figures(ctx, run, n, drift, ndrift, &o, add_figure, t);
    }
    tt_arena_free(&mem);
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
    const int ndrift = drift_all(drift, ctx, &mem, run, n, opt);
    double (*v)[COLUMNS] = tt_alloc(ctx, &mem, n, sizeof *v, "a report");
    text_begin(&t, ctx);
    if (!ctx->status) {
        for (int i = 0; i < n; i++)
            find_values(v[i], run[i], ndrift == n ? &drift[i] : NULL, opt);
        add_head(&t, title);
        add_top(&t, title, run, n, v, opt);
        add_table(&t, run, n, v);
        report_strips(&t, ctx, run, n);
        add_figures(&t, ctx, run, n, opt);
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
