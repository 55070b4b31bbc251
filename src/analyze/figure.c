/* figure.c: a drawing as a list of simple items.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/figure.h"

#include <string.h>

void figure_begin(figure *f, tt_ctx *ctx, double w, double h)
{
    memset(f, 0, sizeof *f);
    f->ctx = ctx;
    f->w = w;
    f->h = h;
    f->last = &f->first;
}

void figure_end(figure *f)
{
    tt_arena_free(&f->mem);
}

/* After a failure the item goes nowhere, but may be filled in. */
static fig_item *add(figure *f, fig_kind kind, colour c)
{
    fig_item *i = tt_alloc0(f->ctx, &f->mem, 1, sizeof *i, "a figure");
    if (!i) return &f->nowhere;
    i->kind = kind;
    i->paint = c;
    *f->last = i;
    f->last = &i->next;
    return i;
}

void figure_rect(figure *f, double x, double y, double w, double h, colour c)
{
    fig_item *i = add(f, FIG_RECT, c);
    i->x = x;
    i->y = y;
    i->w = w;
    i->h = h;
}

void figure_line(figure *f, const double *xy, int64_t n, double width,
                 colour c, fig_dash dash)
{
    fig_item *i = add(f, FIG_LINE, c);
    double *copy = tt_alloc(f->ctx, &f->mem, 2 * n, sizeof *copy, "a figure");
    if (copy) memcpy(copy, xy, (size_t)(2 * n) * sizeof *copy);
    i->xy = copy;
    i->n = copy ? n : 0;
    i->width = width;
    i->dash = dash;
}

void figure_segment(figure *f, double x0, double y0, double x1, double y1,
                    double width, colour c)
{
    const double xy[4] = {x0, y0, x1, y1};
    figure_line(f, xy, 2, width, c, FIG_SOLID);
}

void figure_dot(figure *f, double x, double y, double radius, colour c)
{
    fig_item *i = add(f, FIG_DOT, c);
    i->x = x;
    i->y = y;
    i->w = radius;
}

fig_item *figure_text(figure *f, double x, double y, double size, fig_align a,
                      colour c, const char *s)
{
    fig_item *i = add(f, FIG_TEXT, c);
    const char *copy = tt_strdup(f->ctx, &f->mem, s);
    i->x = x;
    i->y = y;
    i->h = size;
    i->align = a;
    i->text = copy ? copy : "";
    return i;
}

bool figure_dashes(fig_dash d, double out[4])
{
    static const double table[][4] = {
        [FIG_SOLID] = {0, 0, 0, 0},
        [FIG_DASH] = {4, 2.2, 4, 2.2},
        [FIG_POINTS] = {0.3, 2.2, 0.3, 2.2},
        [FIG_DASHDOT] = {4.5, 2.2, 0.3, 2.2},
        [FIG_DASHES] = {8, 2.5, 8, 2.5},
    };
    memcpy(out, table[d], sizeof table[d]);
    return d != FIG_SOLID;
}
