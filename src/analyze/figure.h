/* figure.h: a drawing as a list of simple items.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A figure is drawn by plot.c and written as SVG by svg.c. Lengths are points;
 * the origin is top left. Text and coordinates given to the figure are copied
 * into it. */
#ifndef ANALYZE_FIGURE_H
#define ANALYZE_FIGURE_H

#include "analyze/text.h"

typedef uint32_t colour; /* 0xRRGGBB */

typedef enum fig_kind { FIG_RECT, FIG_LINE, FIG_DOT, FIG_TEXT } fig_kind;
typedef enum fig_align { FIG_LEFT, FIG_MIDDLE, FIG_RIGHT } fig_align;
typedef enum fig_dash { FIG_SOLID, FIG_DASH, FIG_POINTS, FIG_DASHDOT,
                        FIG_DASHES } fig_dash;

typedef struct fig_item {
    fig_kind kind;
    colour paint;
    double x, y, w, h;      /* RECT: box; DOT: centre and radius w; TEXT:
                               anchor on the baseline, size h                 */
    double width;           /* LINE: thickness                                */
    fig_dash dash;
    const double *xy;       /* LINE: n points                                 */
    int64_t n;
    const char *text;
    fig_align align;
    bool turned, bold;      /* TEXT: read from bottom to top                  */
    struct fig_item *next;
} fig_item;

typedef struct figure {
    tt_ctx *ctx;
    tt_arena mem;
    double w, h;
    const char *title;      /* for the SVG's <title>                          */
    fig_item *first, **last;
    fig_item nowhere;       /* items land here once memory ran out            */
} figure;

void figure_begin(figure *f, tt_ctx *ctx, double w, double h);
void figure_end(figure *f);

void figure_rect(figure *f, double x, double y, double w, double h, colour c);
/* n points x0 y0 x1 y1 ..., joined. */
void figure_line(figure *f, const double *xy, int64_t n, double width,
                 colour c, fig_dash dash);
void figure_segment(figure *f, double x0, double y0, double x1, double y1,
                    double width, colour c);
void figure_dot(figure *f, double x, double y, double radius, colour c);
fig_item *figure_text(figure *f, double x, double y, double size, fig_align a,
                      colour c, const char *s);

/* Lengths of the dashes of a style: on, off, on, off, in points times the
 * line's thickness; false for a solid line. */
bool figure_dashes(fig_dash d, double out[4]);

/* The head of its first element ends with this. */
#define FIGURE_SVG                                                             \
    "role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">"

/* The figure as an SVG document. */
void figure_svg(text *out, const figure *f);

#endif
