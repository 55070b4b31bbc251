/* figure.h: a drawing as a list of simple items, and its two back ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A figure is drawn once (plot.c) and written twice: as SVG (svg.c) and as
 * pixels (raster.c). Lengths are points; the origin is top left. Text and
 * coordinates given to the figure are copied into it. */
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

/* ---- text (font.c) ------------------------------------------------------- */

/* A letter is strokes on a grid: x to the right, y down, cap height 0..9,
 * baseline 9, x-height 3. One grid unit is FONT_UNIT times the size. */
#define FONT_UNIT 0.078
#define FONT_GAP 2
/* The strokes of the character at *s, which moves on by one character:
 * strokes are separated by spaces, points are pairs of digits 0-9a-c. */
const char *font_strokes(const char **s, int *width);
/* Width of a line of text in points. */
double font_width(const char *s, double size);

/* ---- back ends ----------------------------------------------------------- */

void figure_svg(text *out, const figure *f);
/* Pixels [*height, *width, 3] at `scale` pixels per point, in `mem`; NULL
 * after a failure. */
uint8_t *figure_raster(const figure *f, tt_arena *mem, double scale,
                       int64_t *width, int64_t *height);
tt_status figure_png(const figure *f, const char *path, double scale);

#endif
