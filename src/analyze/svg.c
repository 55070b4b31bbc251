/* svg.c: a figure as SVG.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain shapes and text, no script, no style sheet, nothing outside the file:
 * it may stand alone or inside an HTML page. */
#include "analyze/figure.h"

#include <math.h>

static void add_rect(text *t, const fig_item *i)
{
    text_add(t, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
             "fill=\"#%06x\"/>\n", i->x, i->y, i->w, i->h, i->paint);
}

/* In tenths, each point from the one before: half the bytes. */
static void add_line(text *t, const fig_item *i)
{
    double dash[4];
    const double w = 10 * i->width;
    long x = 0, y = 0;
    text_add(t, "<path transform=\"scale(.1)\" fill=\"none\" stroke=\"#%06x\" "
             "stroke-width=\"%.0f\" stroke-linejoin=\"round\" "
             "stroke-linecap=\"round\"", i->paint, w);
    if (figure_dashes(i->dash, dash))
        text_add(t, " stroke-dasharray=\"%.0f %.0f %.0f %.0f\"", dash[0] * w,
                 dash[1] * w, dash[2] * w, dash[3] * w);
    text_add(t, " d=\"M");
    for (int64_t k = 0; k < i->n; k++) {
        const long dx = lround(10 * i->xy[2 * k]) - x;
        const long dy = lround(10 * i->xy[2 * k + 1]) - y;
        text_add(t, "%s%ld%s%ld", k == 1 ? "l" : dx < 0 || !k ? "" : " ", dx,
                 dy < 0 ? "" : " ", dy);
        x += dx;
        y += dy;
    }
    text_add(t, "\"/>\n");
}

static void add_text(text *t, const fig_item *i)
{
    static const char *const anchor[] = {"start", "middle", "end"};
    text_add(t, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" "
             "text-anchor=\"%s\" fill=\"#%06x\"", i->x, i->y, i->h,
             anchor[i->align], i->paint);
    if (i->bold) text_add(t, " font-weight=\"600\"");
    if (i->turned)
        text_add(t, " transform=\"rotate(-90 %.2f %.2f)\"", i->x, i->y);
    text_add(t, ">");
    text_xml(t, i->text);
    text_add(t, "</text>\n");
}

void figure_svg(text *t, const figure *f)
{
    text_add(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
             "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" " FIGURE_SVG "\n",
             f->w, f->h, f->w, f->h);
    if (f->title) {
        text_add(t, "<title>");
        text_xml(t, f->title);
        text_add(t, "</title>\n");
    }
    text_add(t, "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n");
    bool crisp = false; /* cells of a map touch: no blended edges there */
    for (const fig_item *i = f->first; i; i = i->next) {
        if (crisp != (i->kind == FIG_RECT)) {
            crisp = !crisp;
            text_add(t, crisp ? "<g shape-rendering=\"crispEdges\">\n"
                              : "</g>\n");
        }
        if (i->kind == FIG_RECT) add_rect(t, i);
        else if (i->kind == FIG_LINE) add_line(t, i);
        else if (i->kind == FIG_TEXT) add_text(t, i);
        else
            text_add(t, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" "
                     "fill=\"#%06x\"/>\n", i->x, i->y, i->w, i->paint);
    }
    if (crisp) text_add(t, "</g>\n");
    text_add(t, "</svg>\n");
}
