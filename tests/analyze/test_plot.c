/* test_plot.c: figures are well-formed, and show what they should where.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/plot.h"
#include "core/utf8.h"

/* ---- a small XML check --------------------------------------------------- */

/* Tags nest and close, attributes are quoted, entities are known, no control
 * characters. Returns NULL or what is wrong. */
static const char *xml_problem(const char *s)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                           "&#39;"};
    char stack[32][32];
    int depth = 0, roots = 0;
    while (*s) {
        if (*s == '&') {
            size_t i = 0;
            while (i < 5 && strncmp(s, entities[i], strlen(entities[i]))) i++;
            if (i == 5) return "unknown entity";
        }
        if ((unsigned char)*s < 32 && *s != '\n') return "control character";
        if (!utf8_length(s)) return "not UTF-8";
        if (*s != '<') {
            if (!depth && *s != '\n') return "text outside the root";
            s += utf8_length(s);
            continue;
        }
        bool closing = s[1] == '/';
        const char *name = s + 1 + closing;
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        if (!n || n > 31) return "no name of a tag";
        bool quoted = false;
        for (s = name + n; *s && (quoted || *s != '>'); s++) {
            if (*s == '"') quoted = !quoted;
            if (*s == '<') return "< inside a tag";
        }
        if (!*s) return "a tag without end";
        if (closing) {
            if (!depth || strlen(stack[depth - 1]) != n
                || strncmp(stack[depth - 1], name, n)) return "wrong end tag";
            depth--;
        } else if (s[-1] != '/') {
            if (depth == 32) return "too deep";
            if (!depth) roots++;
            snprintf(stack[depth++], 32, "%.*s", (int)n, name);
        }
        s++;
    }
    return depth ? "a tag is not closed" : roots != 1 ? "roots" : NULL;
}

static void test_xml_check(void)
{
    expect(!xml_problem("<a b=\"x>y\"><c/>t&amp;</a>\n"), "good");
    expect(xml_problem("<a><b></a></b>") != NULL, "crossed");
    expect(xml_problem("<a>&nbsp;</a>") != NULL, "entity");
    expect(xml_problem("<a>") != NULL, "open");
    expect(xml_problem("<a>\x01</a>") != NULL, "control");
}

/* ---- ticks, colours ------------------------------------------------------ */

static void test_ticks(void)
{
    static const double want[][5] = { /* lo, hi, n, first, step */
        {0, 10, 5, 0, 2}, {0, 100, 4, 0, 50}, {0.03, 0.26, 5, 0.05, 0.05},
        {-1, 1, 4, -1, 0.5}, {3, 3, 5, 3, 1}, {0, 1e-9, 5, 0, 2e-10},
        {17, 123456, 4, 50000, 50000}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        double first, step = plot_ticks(&first, want[i][0], want[i][1],
                                        (int)want[i][2]);
        expect(fabs(step - want[i][4]) <= 1e-9 * want[i][4]
               && fabs(first - want[i][3]) <= 1e-9 * want[i][4],
               "ticks %zu: from %g by %g", i, first, step);
    }
    expect(plot_scale(0) == 0x440154 && plot_scale(1) == 0xfde725
           && plot_scale(NAN) == 0x440154, "ends of the colour scale");
    for (int i = 0; i < PLOT_COLOURS; i++)      /* far apart, not only other */
        for (int k = 0; k < i; k++) {
            int apart = 0;
            for (int shift = 0; shift <= 16; shift += 8)
                apart += abs((int)(plot_colour(i) >> shift & 255)
                             - (int)(plot_colour(k) >> shift & 255));
            expect(apart >= 80, "colours %d and %d: %d apart", i, k, apart);
        }
    expect(PLOT_COLOURS >= 13, "a colour for every policy");
    for (int i = 0; i < 70; i++)
        for (int k = 0; k < i; k++)
            expect(plot_colour(i) != plot_colour(k)
                   || plot_dash(i) != plot_dash(k),
                   "curves %d and %d look the same", i, k);
}

/* ---- text ---------------------------------------------------------------- */

static void test_text(tt_ctx *ctx)
{
    text t;
    text_begin(&t, ctx);
    text_xml(&t, "a<b>&\"'\x02\xff\xc3\xa9");
    expect(!strcmp(t.at, "a&lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd"
                         "\xc3\xa9"), "XML: %s", t.at);
    text_end(&t);
    text_begin(&t, ctx);
    text_json(&t, "a\"\\\n\xff\xf0\x9f\x90\x88");
    expect(!strcmp(t.at, "\"a\\\"\\\\\\u000a\xef\xbf\xbd\xf0\x9f\x90\x88\""),
           "JSON: %s", t.at);
    text_end(&t);
    text_begin(&t, ctx);
    text_csv(&t, "plain");
    text_csv(&t, "a,\"b\"");
    text_number(&t, 0.1, "");
    text_number(&t, NAN, "-");
    text_number(&t, -3, "");
    expect(!strcmp(t.at, "plain\"a,\"\"b\"\"\"0.1--3"), "CSV: %s", t.at);
    text_end(&t);
    text_begin(&t, ctx);
    text_base64(&t, (const uint8_t *)"Man is", 6);
    text_base64(&t, (const uint8_t *)"Ma", 2);
    text_base64(&t, (const uint8_t *)"M", 1);
    expect(!strcmp(t.at, "TWFuIGlzTWE=TQ=="), "base64: %s", t.at);
    text_end(&t);
}

/* ---- numbers no axis was made for ---------------------------------------- */

/* Regression: where adding a step changes nothing, or the step is 0, drawing
 * had no end. */
static void test_extremes(tt_ctx *ctx)
{
    static const double pair[][2] = {
        {170, 170 + 0x1p-45}, {-170, -170 + 0x1p-45}, {1e17, 1e17 + 16},
        {0, 0x1p-1074}, {0x1p-1074, 0x1p-1073}, {1e-310, 1e-310}, {0, 1e-310},
        {-1e308, 1e308}, {1.7e308, 1.7e308}, {1e300, -1e300}, {1e-299, 3e-299},
        {0, INFINITY}, {-INFINITY, NAN}, {5, 5}};
    alarm(30);
    for (size_t i = 0; i < 2 * sizeof pair / sizeof pair[0]; i++) {
        static const double plain[2] = {1, 2};
        const double *v = pair[i / 2];
        const plot_curve curve = i % 2 ? (plot_curve){v, plain, 2, 0}
                                       : (plot_curve){plain, v, 2, 0};
        const plot_panel panel = {.curve = &curve, .ncurves = 1};
        const plot_spec s = {.title = "", .panel = &panel, .npanels = 1,
                             .panel_w = 400, .panel_h = 200, .bar = "bar",
                             .bar_lo = v[0], .bar_hi = v[1]};
        figure f;
        text t;
        text_begin(&t, ctx);
        expect_ok(plot_draw(&f, ctx, &s), "draw");
        figure_svg(&t, &f);
        expect(!strstr(t.at, "nan") && !strstr(t.at, "inf"),
               "%g to %g is drawn at finite places", v[0], v[1]);
        int texts = 0;
        for (const char *at = t.at; (at = strstr(at, "<text")); at++) texts++;
        expect(texts < 50, "%g to %g: %d texts", v[0], v[1], texts);
        figure_end(&f);
        text_end(&t);
    }
    alarm(0);
}

/* ---- a figure ------------------------------------------------------------ */

static void make_figure(tt_ctx *ctx, figure *f)
{
    static const double x[4] = {0, 1, 2, 3}, y[4] = {1, 2, NAN, 3};
    static const colour cell[6] = {0xff0000, 0xff0000, 0x00ff00, PLOT_EMPTY,
                                   0x0000ff, 0x0000ff};
    static const plot_curve curve[2] = {{x, y, 4, 0}, {x, x, 4, 1}};
    static const plot_mark mark[2] = {{true, 1.5, "<here>"},
                                      {false, 1, "\"line\" & more"}};
    static const plot_panel panel[2] = {
        {.title = "curves <&>", .xlabel = "x", .ylabel = "y", .curve = curve,
         .ncurves = 2, .mark = mark, .nmarks = 2},
        {.title = "map", .cell = cell, .rows = 2, .cols = 3, .xstep = 1,
         .ystep = 1, .down = true}};
    static const plot_key key[2] = {{"a \"quoted\" \x01 label", 0, 0},
                                    {"box", -1, 0x123456}};
    const plot_spec s = {.title = "Title & <tags> \xff", .note = "note",
                         .panel = panel, .npanels = 2, .columns = 2,
                         .panel_w = 200, .panel_h = 100, .key = key,
                         .nkeys = 2, .bar = "bar", .bar_hi = 1};
    expect_ok(plot_draw(f, ctx, &s), "draw");
}

/* Lines are paths in tenths, each point from the one before. */
static void check_paths(const char *svg, const figure *f)
{
    int wrong = 0;
    for (const fig_item *i = f->first; i && !wrong; i = i->next) {
        long at[2] = {0, 0};
        if (i->kind != FIG_LINE) continue;
        svg = strstr(svg, " d=\"M");
        if (!expect(svg != NULL, "a path is missing")) return;
        svg += strlen(" d=\"M");
        for (int64_t k = 0; k < 2 * i->n; k++) {
            char *end;
            at[k % 2] += strtol(svg + (k == 2 && *svg == 'l'), &end, 10);
            wrong += fabs((double)at[k % 2] / 10 - i->xy[k]) > 0.051;
            svg = end;
        }
        wrong += *svg != '"';
    }
    expect(!wrong, "paths go through the points of their lines");
}

static void test_svg(tt_ctx *ctx, const figure *f)
{
    text t;
    text_begin(&t, ctx);
    figure_svg(&t, f);
    const char *problem = xml_problem(t.at);
    expect(!problem, "SVG: %s", problem ? problem : "");
    expect(strstr(t.at, "<title>Title &amp; &lt;tags&gt;") != NULL, "title");
    expect(strstr(t.at, "nan") == NULL && strstr(t.at, "inf") == NULL,
           "all numbers are finite");
    check_paths(t.at, f);
    int rects = 0; /* equal neighbours are one rectangle, empty cells none */
    for (const char *s = t.at; (s = strstr(s, "fill=\"#0000ff\"")); s++)
        rects++;
    expect(rects == 1, "two blue cells are %d rectangles", rects);
    /* the map begins at 64 + 200 + 18 + 64 = 346, 34 + 22 + 28 = 84 */
    expect(strstr(t.at, "<rect x=\"346.00\" y=\"84.00\" width=\"133.33\" "
                        "height=\"50.00\" fill=\"#ff0000\"/>")
           && strstr(t.at, "<rect x=\"479.33\" y=\"84.00\" width=\"66.67\" "
                           "height=\"50.00\" fill=\"#00ff00\"/>")
           && strstr(t.at, "<rect x=\"412.67\" y=\"134.00\" "
                           "width=\"133.33\" height=\"50.00\" "
                           "fill=\"#0000ff\"/>"), "cells of the map: %s", t.at);
    text_end(&t);
}

int main(void)
{
    tt_ctx *ctx = test_begin("analyze/plot");
    figure f;
    test_xml_check();
    test_ticks();
    test_text(ctx);
    test_extremes(ctx);
    make_figure(ctx, &f);
    test_svg(ctx, &f);
    figure_end(&f);
    return test_end();
}
