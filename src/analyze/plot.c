/* plot.c: panels with axes on a figure: curves and maps of coloured cells.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = 64, RIGHT = 18, ABOVE = 28, BELOW = 46, TITLE = 34, KEYS = 22,
       BAR = 74, NOTE = 20, KEY_MAX = 330 };
#define INK 0x222222u
#define SOFT 0x666666u
#define GRID 0xdddddfu

/* ---- colours ------------------------------------------------------------- */

colour plot_colour(int i)
{
    /* Okabe, Ito: Color Universal Design. Yellow is left out: it is too
     * light for lines on white. */
    static const colour table[PLOT_COLOURS] = {
        0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000,
        0x6a3d9a, 0x8b4513, 0x8a8a8a, 0xb00030, 0x7d8000, 0x24c6b0, 0x23238e};
    return table[i % PLOT_COLOURS];
}

fig_dash plot_dash(int i)
{
    static const fig_dash table[] = {FIG_SOLID, FIG_DASH, FIG_DASHDOT,
                                     FIG_DASHES, FIG_POINTS};
    return table[i % 5];
}

colour plot_scale(double unit)
{
    /* ten stations of viridis (public domain) */
    static const colour station[] = {
        0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779,
        0x6dcd59, 0xb4de2c, 0xfde725};
    enum { N = sizeof station / sizeof station[0] };
    if (!(unit > 0)) return station[0];
    if (unit >= 1) return station[N - 1];
    int i = (int)(unit * (N - 1));
    double part = unit * (N - 1) - i;
    colour out = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double a = station[i] >> shift & 255, b = station[i + 1] >> shift & 255;
        out |= (colour)(a + part * (b - a) + 0.5) << shift;
    }
    return out;
}

/* ---- ticks --------------------------------------------------------------- */

/* Differences and tenfolds of what lies between are neither 0 nor infinite. */
#define SMALLEST 1e-300
#define LARGEST 1e300

static bool can_draw(double v)
{
    return fabs(v) <= LARGEST; /* not a NAN */
}

double plot_ticks(double *first, double lo, double hi, int n)
{
    double step = 1, want = (hi - lo) / (n < 1 ? 1 : n);
    *first = lo;
    if (!(want >= SMALLEST && want <= LARGEST)) return 1;
    while (step > want) step /= 10;
    while (step * 10 <= want) step *= 10;
    /* step <= want < 10 step */
    if (step < want) step *= want <= 2 * step ? 2 : want <= 5 * step ? 5 : 10;
    *first = ceil(lo / step - 1e-9) * step;
    return step;
}

/* Ticks first, first + step, ... up to `hi`. They are counted: where numbers
 * are coarse, adding a step may change nothing. */
static int tick_count(double first, double step, double hi)
{
    enum { MOST = 100 };
    double n = floor((hi - first) / step + 1e-9) + 1;
    return n >= 1 && n <= MOST ? (int)n : 0;
}

static const char *number(char buf[32], double v, double step)
{
    if (fabs(v) < 1e-9 * step) v = 0;
    snprintf(buf, 32, "%.6g", v);
    return buf;
}

/* ---- text ---------------------------------------------------------------- */

/* Width that a line takes at most in any common font: which one a reader has
 * is not known. */
static double text_room(const char *s, double size)
{
    int64_t n = 0;
    for (; *s; s++) n += (*s & 0xc0) != 0x80;
    return 0.64 * size * (double)n;
}

/* `s` cut to what has room in `width`. */
static const char *text_fit(figure *f, const char *s, double size, double width)
{
    const size_t n = strlen(s);
    if (text_room(s, size) <= width) return s;
    char *copy = tt_alloc(f->ctx, &f->mem, (int64_t)n + 4, 1, "a figure");
    if (!copy) return "";
    memcpy(copy, s, n + 1);
    for (size_t k = n; k > 0; k--) {
        if ((copy[k] & 0xc0) == 0x80) continue;
        memcpy(copy + k, "...", 4);
        if (text_room(copy, size) <= width) break;
    }
    return copy;
}

/* ---- a panel ------------------------------------------------------------- */

typedef struct area {
    figure *f;
    const plot_panel *p;
    double x, y, w, h;            /* where it lies                            */
    double x0, x1, y0, y1;        /* what it shows                            */
} area;

static double to_x(const area *a, double v)
{
    return a->x + (v - a->x0) / (a->x1 - a->x0) * a->w;
}

static double to_y(const area *a, double v)
{
    double unit = (v - a->y0) / (a->y1 - a->y0);
    return a->p->down ? a->y + unit * a->h : a->y + a->h - unit * a->h;
}

/* Values that are one and the same, or nearly, get a range of `by`. */
static void widen(double *lo, double *hi, double by)
{
    const double size = fmax(fabs(*lo), fabs(*hi));
    if (*hi - *lo > fmax(1e-9 * size, SMALLEST)) return;
    *hi = *lo + fmax(by, 1e-6 * size);
}

static void find_range(area *a)
{
    const plot_panel *p = a->p;
    if (p->cell) {
        a->x0 = p->x0;
        a->x1 = p->x0 + p->xstep * (double)p->cols;
        a->y0 = p->y0;
        a->y1 = p->y0 + p->ystep * (double)p->rows;
        return;
    }
    a->x0 = a->y0 = INFINITY;
    a->x1 = a->y1 = -INFINITY;
    for (int i = 0; i < p->ncurves; i++)
        for (int64_t k = 0; k < p->curve[i].n; k++) {
            double x = p->curve[i].x[k], y = p->curve[i].y[k];
            if (!can_draw(x) || !can_draw(y)) continue;
            a->x0 = fmin(a->x0, x);
            a->x1 = fmax(a->x1, x);
            a->y0 = fmin(a->y0, y);
            a->y1 = fmax(a->y1, y);
        }
    if (!(a->x0 <= a->x1)) a->x0 = a->y0 = 0, a->x1 = a->y1 = 1;
    if (p->from_zero && a->y0 > 0) a->y0 = 0;
    widen(&a->x0, &a->x1, 1);
    widen(&a->y0, &a->y1, fabs(a->y0) > SMALLEST ? fabs(a->y0) : 1);
    double room = 0.06 * (a->y1 - a->y0);
    a->y1 += room;
    for (int i = 0; i < p->nmarks; i++)     /* its word is above the curves  */
        if (p->mark[i].vertical && p->mark[i].word) {
            a->y1 += 1.5 * room;
            break;
        }
    if (!(p->from_zero && a->y0 == 0)) a->y0 -= room;
}

static void draw_axes(const area *a)
{
    figure *f = a->f;
    char buf[32];
    double first, step = plot_ticks(&first, a->x0, a->x1, (int)(a->w / 55));
    bool map = a->p->cell != NULL;
    for (int i = 0; i < tick_count(first, step, a->x1); i++) {
        double v = first + i * step, x = to_x(a, v);
        if (!map) figure_segment(f, x, a->y, x, a->y + a->h, 0.6, GRID);
        figure_segment(f, x, a->y + a->h, x, a->y + a->h + 4, 0.8, SOFT);
        figure_text(f, x, a->y + a->h + 17, 11, FIG_MIDDLE, INK,
                    number(buf, v, step));
    }
    step = plot_ticks(&first, a->y0, a->y1, (int)(a->h / 32));
    for (int i = 0; i < tick_count(first, step, a->y1); i++) {
        double v = first + i * step, y = to_y(a, v);
        if (!map) figure_segment(f, a->x, y, a->x + a->w, y, 0.6, GRID);
        figure_segment(f, a->x - 4, y, a->x, y, 0.8, SOFT);
        figure_text(f, a->x - 8, y + 4, 11, FIG_RIGHT, INK,
                    number(buf, v, step));
    }
}

static void draw_frame(const area *a)
{
    figure *f = a->f;
    const plot_panel *p = a->p;
    const double xy[10] = {a->x, a->y, a->x + a->w, a->y, a->x + a->w,
                           a->y + a->h, a->x, a->y + a->h, a->x, a->y};
    figure_line(f, xy, 5, 0.8, SOFT, FIG_SOLID);
    if (p->title)
        figure_text(f, a->x, a->y - 9, 12.5, FIG_LEFT, INK,
                    text_fit(f, p->title, 13.5, a->w))->bold = true;
    if (p->xlabel)
        figure_text(f, a->x + a->w / 2, a->y + a->h + 36, 12, FIG_MIDDLE, INK,
                    p->xlabel);
    if (p->ylabel)
        figure_text(f, a->x - 44, a->y + a->h / 2, 12, FIG_MIDDLE, INK,
                    p->ylabel)->turned = true;
}

/* Neighbouring cells of one colour become one rectangle; empty ones none. */
static void draw_cells(const area *a)
{
    const plot_panel *p = a->p;
    figure_rect(a->f, a->x, a->y, a->w, a->h, PLOT_EMPTY);
    for (int64_t j = 0; j < p->rows; j++) {
        const colour *row = p->cell + j * p->cols;
        double y = to_y(a, p->y0 + p->ystep * (double)(p->down ? j : j + 1));
        double h = a->h / (double)p->rows;
        for (int64_t i = 0, n; i < p->cols; i += n) {
            for (n = 1; i + n < p->cols && row[i + n] == row[i]; n++) {}
            if (row[i] == PLOT_EMPTY) continue;
            double x = to_x(a, p->x0 + p->xstep * (double)i);
            figure_rect(a->f, x, y, a->w * (double)n / (double)p->cols, h,
                        row[i]);
        }
    }
}

/* A curve in pieces between values that are not finite. */
static void draw_curve(const area *a, const plot_curve *c)
{
    tt_arena_mark m = tt_arena_here(&a->f->ctx->scratch);
    double *xy = tt_alloc(a->f->ctx, &a->f->ctx->scratch, 2 * c->n,
                          sizeof *xy, "a curve");
    int64_t n = 0;
    for (int64_t k = 0; xy && k <= c->n; k++) {
        if (k < c->n && can_draw(c->x[k]) && can_draw(c->y[k])) {
            xy[2 * n] = to_x(a, c->x[k]);
            xy[2 * n++ + 1] = to_y(a, c->y[k]);
            continue;
        }
        if (n == 1) figure_dot(a->f, xy[0], xy[1], 2.5, plot_colour(c->style));
        if (n > 1)
            figure_line(a->f, xy, n, 1.8, plot_colour(c->style),
                        plot_dash(c->style));
        n = 0;
    }
    tt_arena_reset(&a->f->ctx->scratch, m);
}

static void draw_marks(const area *a)
{
    const plot_panel *p = a->p;
    for (int i = 0; i < p->nmarks; i++) {
        const plot_mark *m = &p->mark[i];
        double at = m->vertical ? to_x(a, m->at) : to_y(a, m->at);
        double lo = m->vertical ? a->x : a->y;
        double hi = lo + (m->vertical ? a->w : a->h);
        if (!(at >= lo - 0.01 && at <= hi + 0.01)) continue;
        const double v[4] = {at, a->y, at, a->y + a->h};
        const double h[4] = {a->x, at, a->x + a->w, at};
        figure_line(a->f, m->vertical ? v : h, 2, 1.1, INK, FIG_DASH);
        if (!m->word) continue;
        double width = text_room(m->word, 10);
        double x = m->vertical ? at + 5 : a->x + a->w - width - 6;
        double y = m->vertical ? a->y + 13 : at - 4;
        if (!m->vertical)     /* readable on the cells of a map              */
            figure_rect(a->f, x - 3, y - 10, width + 6, 13, 0xffffff);
        figure_text(a->f, x, y, 10, FIG_LEFT, SOFT, m->word);
    }
}

static void draw_panel(figure *f, const plot_panel *p, double x, double y,
                       double w, double h)
{
    area a = {.f = f, .p = p, .x = x, .y = y, .w = w, .h = h};
    find_range(&a);
    if (p->cell) draw_cells(&a);
    draw_axes(&a);
    for (int i = 0; i < p->ncurves; i++) draw_curve(&a, &p->curve[i]);
    draw_marks(&a);
    draw_frame(&a);
}

/* ---- around the panels --------------------------------------------------- */

static double key_width(const plot_key *k)
{
    const double w = text_room(k->label, 12);
    return (k->style >= 0 ? 34 : 20) + (w < KEY_MAX ? w : KEY_MAX) + 18;
}

/* Rows the legend takes in `width`; draws when f is not NULL. */
static int legend(figure *f, const plot_spec *s, double x0, double y,
                  double width)
{
    double x = x0;
    int rows = s->nkeys ? 1 : 0;
    for (int i = 0; i < s->nkeys; i++) {
        const plot_key *k = &s->key[i];
        if (x > x0 && x + key_width(k) > x0 + width) {
            x = x0;
            y += KEYS;
            rows++;
        }
        if (f && k->style >= 0) {
            const double xy[4] = {x, y - 4, x + 28, y - 4};
            figure_line(f, xy, 2, 2.2, plot_colour(k->style),
                        plot_dash(k->style));
            figure_text(f, x + 34, y, 12, FIG_LEFT, INK,
                        text_fit(f, k->label, 12, KEY_MAX));
        } else if (f) {
            figure_rect(f, x - 0.5, y - 10.5, 15, 13, SOFT);
            figure_rect(f, x, y - 10, 14, 12, k->paint);
            figure_text(f, x + 20, y, 12, FIG_LEFT, INK,
                        text_fit(f, k->label, 12, KEY_MAX));
        }
        x += key_width(k);
    }
    return rows;
}

static void draw_bar(figure *f, const plot_spec *s, double x, double y,
                     double h)
{
    enum { STEPS = 64 };
    char buf[32];
    for (int i = 0; i < STEPS; i++)
        figure_rect(f, x, y + h - h * (i + 1) / STEPS, 14, h / STEPS,
                    plot_scale((i + 0.5) / STEPS));
    double lo = s->bar_lo, hi = s->bar_hi, first, step;
    widen(&lo, &hi, 1);
    step = plot_ticks(&first, lo, hi, 5);
    for (int i = 0; i < tick_count(first, step, hi); i++) {
        double v = first + i * step;
        double at = y + h - h * (v - lo) / (hi - lo);
        figure_segment(f, x + 14, at, x + 18, at, 0.8, SOFT);
        figure_text(f, x + 21, at + 4, 11, FIG_LEFT, INK,
                    number(buf, v, step));
    }
    figure_text(f, x + 54, y + h / 2, 12, FIG_MIDDLE, INK, s->bar)->turned =
        true;
}

tt_status plot_draw(figure *f, tt_ctx *ctx, const plot_spec *s)
{
    int columns = s->columns < 1 ? 1 : s->columns;
    if (columns > s->npanels) columns = s->npanels;
    int rows = (s->npanels + columns - 1) / columns;
    double cell_w = LEFT + s->panel_w + RIGHT;
    double cell_h = ABOVE + s->panel_h + BELOW;
    double width = columns * cell_w + (s->bar ? BAR : 0);
    double room = text_room(s->title, 15) + 2 * RIGHT;
    if (width < room) width = room;
    if (s->note && width < text_room(s->note, 9) + 2 * RIGHT)
        width = text_room(s->note, 9) + 2 * RIGHT;
    double top = TITLE + KEYS * legend(NULL, s, 0, 0, width - 2 * RIGHT);
    figure_begin(f, ctx, width, top + rows * cell_h + (s->note ? NOTE : 0));
    f->title = tt_strdup(ctx, &f->mem, s->title);
    figure_text(f, RIGHT, 24, 15, FIG_LEFT, INK, s->title)->bold = true;
    legend(f, s, RIGHT, TITLE + 14, width - 2 * RIGHT);
    for (int i = 0; i < s->npanels; i++)
        draw_panel(f, &s->panel[i], i % columns * cell_w + LEFT,
                   top + i / columns * cell_h + ABOVE, s->panel_w,
                   s->panel_h);
    if (s->bar)
        draw_bar(f, s, columns * cell_w, top + ABOVE, s->panel_h);
    if (s->note)
        figure_text(f, RIGHT, f->h - 8, 10, FIG_LEFT, SOFT, s->note);
    return ctx->status;
}
