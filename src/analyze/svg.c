/* svg.c: a figure as SVG.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain shapes and text, no script, no style sheet, nothing outside the file:
 * it may stand alone or inside an HTML page. */
#include "analyze/figure.h"

static void add_rect(text *t, const fig_item *i)
{
    text_add(t, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
             "fill=\"#%06x\"/>\n", i->x, i->y, i->w, i->h, i->paint);
}

static void add_line(text *t, const fig_item *i)
{
    double dash[4];
    text_add(t, "<polyline fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.2f"
             "\" stroke-linejoin=\"round\" stroke-linecap=\"round\"", i->paint,
             i->width);
    if (figure_dashes(i->dash, dash))
        text_add(t, " stroke-dasharray=\"%.2f %.2f %.2f %.2f\"",
                 dash[0] * i->width, dash[1] * i->width, dash[2] * i->width,
                 dash[3] * i->width);
    text_add(t, " points=\"");
    for (int64_t k = 0; k < i->n; k++)
        text_add(t, "%s%.2f,%.2f", k ? " " : "", i->xy[2 * k],
                 i->xy[2 * k + 1]);
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
