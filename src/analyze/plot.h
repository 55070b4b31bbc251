/* plot.h: panels with axes on a figure: curves and maps of coloured cells.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A figure has a title, a legend under it, panels in rows, and where a map
 * needs one a colour bar on the right. Curves differ in colour and in the
 * dash of their line, so they can be told apart without seeing colours. */
#ifndef ANALYZE_PLOT_H
#define ANALYZE_PLOT_H

#include "analyze/figure.h"

/* For curve i: the first seven colours are those of Okabe and Ito, told apart
 * by all common kinds of colour vision; dash i % 5 goes with colour i % 14, so
 * 70 curves differ, 14 of them in colour. */
enum { PLOT_COLOURS = 14 };
colour plot_colour(int i);
fig_dash plot_dash(int i);
/* Dark blue over green to yellow for 0..1 (viridis). */
colour plot_scale(double unit);
#define PLOT_EMPTY 0xf2f2f2u

typedef struct plot_curve {
    const double *x, *y;  /* [n]; a y that is not finite interrupts the curve */
    int64_t n;
    int style;            /* colour and dash                                  */
} plot_curve;

/* A line across a panel, with a word at its end: where the layout of a cache
 * changes, where a training window ends. */
typedef struct plot_mark {
    bool vertical;
    double at;
    const char *word;
} plot_mark;

typedef struct plot_panel {
    const char *title, *xlabel, *ylabel;
    /* curves */
    const plot_curve *curve;
    int ncurves;
    bool from_zero;       /* the y axis starts at 0                           */
    /* or a map: cell (i, j) of column i, row j covers x in [x0 + i xstep,
     * x0 + (i+1) xstep), y likewise; y grows downwards when `down` */
    const colour *cell;   /* [rows, cols]                                     */
    int64_t rows, cols;
    double x0, xstep, y0, ystep;
    bool down;
    const plot_mark *mark;
    int nmarks;
} plot_panel;

typedef struct plot_key {
    const char *label;
    int style;            /* >= 0: a curve's; -1: a box of `paint`            */
    colour paint;
} plot_key;

typedef struct plot_spec {
    const char *title, *note; /* note: small print under the panels, or NULL  */
    const plot_panel *panel;
    int npanels, columns;
    double panel_w, panel_h;  /* of the plotted areas, points                 */
    const plot_key *key;
    int nkeys;
    const char *bar;          /* label of the colour bar, NULL: none          */
    double bar_lo, bar_hi;
} plot_spec;

/* Lay out and draw; f is begun here and ended by the caller. */
tt_status plot_draw(figure *f, tt_ctx *ctx, const plot_spec *s);

/* Round steps of 1, 2 or 5 times a power of ten, at most about n of them in
 * lo..hi: *first is the first multiple of the step that is >= lo. */
double plot_ticks(double *first, double lo, double hi, int n);

#endif
