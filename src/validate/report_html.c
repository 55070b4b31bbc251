/* report_html.c: the report as one page that needs no other file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No script, nothing fetched; pictures are inline SVG. The table has failures
 * first, then the rest, each group in order of execution; a page with very many
 * passes shows the first of them and says how many are left out. */
#include "validate/report.h"

#include <math.h>
#include <string.h>

#include "tether/version.h"

enum { PASSES_SHOWN = 2000 };

static const char style[] =
    "body{font:15px/1.45 system-ui,Helvetica,Arial,sans-serif;color:#222;"
    "max-width:1240px;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;"
    "font-variant-numeric:tabular-nums;font-size:13px}"
    "th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;"
    "white-space:nowrap}"
    "td.l,th.l{text-align:left;white-space:normal;overflow-wrap:anywhere}"
    "tr.bad td{background:#fdeceb}tr.tie td{background:#fff7de}"
    ".verdict{padding:.7em 1em;border-radius:6px;font-weight:600;"
    "overflow-wrap:anywhere}"
    ".pass{background:#e2f4e5}.fail{background:#fbd9d6}"
    "figure{display:inline-block;margin:0 1.5em 1.5em 0;vertical-align:top}"
    "figcaption{color:#555;max-width:420px;overflow-wrap:anywhere}"
    "svg text{font:11px system-ui,Helvetica,Arial,sans-serif;fill:#333}";

/* ---- numbers ------------------------------------------------------------- */

static void put_cell(FILE *f, double x)
{
    if (isnan(x)) fputs("<td>&ndash;</td>", f);
    else if (isinf(x)) fprintf(f, "<td>%s&infin;</td>", x < 0 ? "-" : "");
    else fprintf(f, "<td>%.3g</td>", x);
}

static void put_row(FILE *f, const tt_verdict *v)
{
    char shape[200];
    const bool has = v->m.n > 0;
    const double number[] = {
        v->m.max_abs, v->m.rel_l2, v->m.snr_db, v->m.cosine, v->m.mean_ulp,
        v->m.max_ulp, v->m.q50, v->m.q99, v->earned, v->ratio};
    fprintf(f, "<tr%s><td class=\"l\">%s</td><td class=\"l\">",
            report_failing(v->outcome) ? " class=\"bad\""
            : v->outcome != TT_PASS ? " class=\"tie\"" : "",
            tt_outcome_name(v->outcome));
    report_xml(f, v->path);
    fputs("</td><td class=\"l\">", f);
    report_xml(f, v->op);
    fprintf(f, "</td><td>%s</td>",
            tt_shape_string(shape, sizeof shape, v->rank, v->dim));
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
        put_cell(f, has ? number[i] : NAN);
    fprintf(f, "<td>%lld / %lld / %lld</td><td>", (long long)v->m.nan,
            (long long)v->m.inf, (long long)v->m.denormal);
    report_xml(f, v->where);
    fputs("</td><td class=\"l\">", f);
    report_xml(f, v->hint);
    fputs("</td></tr>\n", f);
}

static void put_table(FILE *f, const tt_report *r)
{
    static const char *const column[] = {
        "shape", "max abs", "relative L2", "SNR dB", "cosine", "mean ULP",
        "max ULP", "median error", "99 % error", "declared arithmetic errs",
        "times what is allowed", "NaN / Inf / denormal", "worst at"};
    int64_t left = 0, shown = 0;
    fputs("<h2>Verdicts</h2>\n<div class=\"wide\"><table>\n<thead><tr>"
          "<th class=\"l\">outcome</th><th class=\"l\">tensor</th>"
          "<th class=\"l\">operator</th>", f);
    for (size_t i = 0; i < sizeof column / sizeof column[0]; i++)
        fprintf(f, "<th>%s</th>", column[i]);
    fputs("<th class=\"l\">looks like</th></tr></thead>\n<tbody>\n", f);
    for (const verdict_item *i = r->first; i; i = i->next)
        if (report_failing(i->v.outcome)) put_row(f, &i->v);
    for (const verdict_item *i = r->first; i; i = i->next) {
        if (report_failing(i->v.outcome)) continue;
        if (shown++ < PASSES_SHOWN) put_row(f, &i->v);
        else left++;
    }
    fputs("</tbody></table></div>\n", f);
    if (left)
        fprintf(f, "<p>%lld more that passed are not shown.</p>\n",
                (long long)left);
}

/* ---- maps of the error --------------------------------------------------- */

/* White to dark red over four decades below the largest error. */
static unsigned shade(double unit)
{
    const double u = unit < 0 ? 0 : unit > 1 ? 1 : unit;
    const unsigned r = (unsigned)(255 - 115 * u * u);
    const unsigned g = (unsigned)(245 * (1 - u));
    const unsigned b = (unsigned)(235 * (1 - u) * (1 - u) + 10 * u);
    return r << 16 | g << 8 | b;
}

static void put_axis(FILE *f, const tt_verdict *v, int from, int to)
{
    for (int i = from; i < to; i++)
        fprintf(f, "%s%lld", i > from ? " x " : "", (long long)v->dim[i]);
    if (from == to) fputc('1', f);
}

static void put_map(FILE *f, const tt_verdict *v, const error_map *m)
{
    const int side = m->rows > 32 || m->cols > 32 ? 5 : 9;
    double top = 0;
    for (int i = 0; i < m->rows * m->cols; i++)
        if (isfinite(m->cell[i]) && m->cell[i] > top) top = m->cell[i];
    fprintf(f, "<figure><svg role=\"img\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\" stroke=\"#888\"/>\n", m->cols * side,
            m->rows * side, m->cols * side, m->rows * side);
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->cols; j++) {
            const double e = m->cell[i * m->cols + j];
            if (e == 0) continue;
            fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                    "fill=\"#%06x\"/>\n", j * side, i * side, side, side,
                    isinf(e) ? 0x2040c0u : shade(1 + log10(e / top) / 4));
        }
    fputs("</svg><figcaption>", f);
    report_xml(f, v->path);
    fputs("<br>down: axes of ", f);
    put_axis(f, v, 0, m->split < v->rank ? m->split : v->rank);
    fputs(", across: ", f);
    put_axis(f, v, m->split < v->rank ? m->split : v->rank, v->rank);
    fprintf(f, "; darkest %.3g, four decades to white; blue: NaN or infinity"
            "</figcaption></figure>\n", top);
}

/* ---- histograms of ULP --------------------------------------------------- */

static void put_histogram(FILE *f, const tt_verdict *v)
{
    enum { W = 16, H = 90 };
    int64_t top = 1;
    for (int i = 0; i < TT_ULP_BINS; i++)
        if (v->m.ulp[i] > top) top = v->m.ulp[i];
    fprintf(f, "<figure><svg role=\"img\" width=\"%d\" height=\"%d\">\n",
            TT_ULP_BINS * W, H + 16);
    for (int i = 0; i < TT_ULP_BINS; i++) {
        /* a single element must still be seen beside millions */
        const double h = v->m.ulp[i] == 0 ? 0
                       : H * log1p((double)v->m.ulp[i]) / log1p((double)top);
        fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
                "fill=\"#0072b2\"><title>%lld</title></rect>\n", i * W,
                H - h, W - 2, h, (long long)v->m.ulp[i]);
    }
    fprintf(f, "<text x=\"0\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\">1"
            "</text><text x=\"%d\" y=\"%d\">64</text><text x=\"%d\" "
            "y=\"%d\">4096+</text></svg><figcaption>", H + 13, 2 * W, H + 13,
            8 * W, H + 13, 13 * W, H + 13);
    report_xml(f, v->path);
    fputs("<br>elements (logarithmic) by ULP of float32</figcaption>"
          "</figure>\n", f);
}

static void put_pictures(FILE *f, const tt_report *r)
{
    int64_t n = 0;
    for (const verdict_item *i = r->first; i; i = i->next) n += i->map != NULL;
    if (!n) return;
    fputs("<h2>Where the error is</h2>\n", f);
    for (const verdict_item *i = r->first; i; i = i->next)
        if (i->map) put_map(f, &i->v, i->map);
    fputs("<h2>How large it is</h2>\n", f);
    for (const verdict_item *i = r->first; i; i = i->next)
        if (i->map) put_histogram(f, &i->v);
}

/* ---- growth over the chunks ---------------------------------------------- */

enum { PLOT_W = 460, PLOT_H = 220, LEFT = 56, LOW = 28 };

typedef struct plot_range {
    double lo, hi;       /* decades                                           */
    int64_t chunks;
} plot_range;

static double plot_x(const plot_range *p, int64_t chunk)
{
    return LEFT + (double)(PLOT_W - LEFT - 8) * (double)chunk
                  / (double)(p->chunks > 1 ? p->chunks - 1 : 1);
}

/* Zero and what is not finite lie on the lower edge. */
static double plot_y(const plot_range *p, double v)
{
    double d = isfinite(v) && v > 0 ? log10(v) : p->lo;
    if (d < p->lo) d = p->lo;
    return 6 + (PLOT_H - LOW - 6) * (p->hi - d) / (p->hi - p->lo);
}

static plot_range growth_range(const tt_report *r, const char *curve)
{
    plot_range p = {INFINITY, -INFINITY, 1};
    for (const growth_item *i = r->growth; i; i = i->next) {
        if (strcmp(i->g.curve, curve)) continue;
        const double v[2] = {i->g.rel_l2, i->g.earned};
        for (int k = 0; k < 2; k++)
            if (isfinite(v[k]) && v[k] > 0) {
                p.lo = fmin(p.lo, floor(log10(v[k])));
                p.hi = fmax(p.hi, ceil(log10(v[k])));
            }
        if (i->g.chunk >= p.chunks) p.chunks = i->g.chunk + 1;
    }
    if (!isfinite(p.lo)) p.lo = p.hi = 0;
    if (p.hi <= p.lo) p.hi = p.lo + 1;
    return p;
}

static void put_line(FILE *f, const tt_report *r, const char *curve,
                     const plot_range *p, bool earned)
{
    fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s "
            "points=\"", earned ? "#777" : "#d55e00",
            earned ? " stroke-dasharray=\"5 4\"" : "");
    for (const growth_item *i = r->growth; i; i = i->next)
        if (!strcmp(i->g.curve, curve))
            fprintf(f, "%.1f,%.1f ", plot_x(p, i->g.chunk),
                    plot_y(p, earned ? i->g.earned : i->g.rel_l2));
    fputs("\"/>\n", f);
    for (const growth_item *i = r->growth; i && !earned; i = i->next)
        if (!strcmp(i->g.curve, curve))
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
                    "fill=\"#d55e00\"><title>chunk %lld: %.3g</title>"
                    "</circle>\n", plot_x(p, i->g.chunk),
                    plot_y(p, i->g.rel_l2), (long long)i->g.chunk,
                    i->g.rel_l2);
}

static void put_curve(FILE *f, const tt_report *r, const char *curve)
{
    const plot_range p = growth_range(r, curve);
    fprintf(f, "<figure><svg role=\"img\" width=\"%d\" height=\"%d\">\n",
            PLOT_W, PLOT_H);
    for (double d = p.lo; d <= p.hi; d++)
        fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
                "stroke=\"#ddd\"/><text x=\"4\" y=\"%.1f\">1e%+.0f</text>\n",
                LEFT, PLOT_W - 8, plot_y(&p, pow(10, d)),
                plot_y(&p, pow(10, d)), plot_y(&p, pow(10, d)) + 4, d);
    put_line(f, r, curve, &p, true);
    put_line(f, r, curve, &p, false);
    fprintf(f, "<text x=\"%d\" y=\"%d\">chunk 0</text><text x=\"%d\" y=\"%d\" "
            "text-anchor=\"end\">%lld</text></svg><figcaption>", LEFT,
            PLOT_H - 8, PLOT_W - 8, PLOT_H - 8, (long long)p.chunks - 1);
    report_xml(f, curve);
    fputs(": relative L2 error; dashed: what the declared arithmetic "
          "errs</figcaption></figure>\n", f);
}

static void put_growth(FILE *f, const tt_report *r)
{
    if (r->growth) fputs("<h2>Error growth</h2>\n", f);
    for (const growth_item *i = r->growth; i; i = i->next) {
        bool known = false;
        for (const growth_item *k = r->growth; k != i && !known; k = k->next)
            known = !strcmp(k->g.curve, i->g.curve);
        if (!known) put_curve(f, r, i->g.curve);
    }
}

/* ---- the page ------------------------------------------------------------ */

static void put_summary(FILE *f, const tt_report *r)
{
    char line[700];
    report_headline(r, line, sizeof line);
    fprintf(f, "<p class=\"verdict %s\">",
            tt_report_passed(r) ? "pass" : "fail");
    report_xml(f, line);
    fputs("</p>\n<p>", f);
    fprintf(f, "%lld tensors compared:", (long long)r->compared);
    for (int o = 0; o < OUTCOMES; o++)
        fprintf(f, "%s %lld %s", o ? "," : "", (long long)r->count[o],
                tt_outcome_name((tt_outcome)o));
    fputs(".", f);
    if (r->arith) {
        fputs(" Limits: what ", f);
        report_xml(f, r->arith->name);
        fprintf(f, " errs on the same inputs, times %d.", TT_SLACK);
    }
    fprintf(f, " tether %s.</p>\n", tt_version());
    if (r->notes) fputs("<ul>\n", f);
    for (const note_item *i = r->notes; i; i = i->next) {
        fputs("<li>", f);
        report_xml(f, i->text);
        fputs("</li>\n", f);
    }
    if (r->notes) fputs("</ul>\n", f);
}

tt_status tt_report_html(tt_ctx *ctx, const tt_report *r, const char *path)
{
    report_out o;
    TT_TRY(report_open(ctx, &o, path));
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
          "charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width\">\n<title>", o.f);
    report_xml(o.f, r->title);
    fprintf(o.f, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    report_xml(o.f, r->title);
    fputs("</h1>\n", o.f);
    put_summary(o.f, r);
    put_growth(o.f, r);
    put_pictures(o.f, r);
    put_table(o.f, r);
    fputs("</body>\n</html>\n", o.f);
    return report_close(ctx, &o, path);
}
