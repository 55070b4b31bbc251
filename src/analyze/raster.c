/* raster.c: a figure as pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a stroke covers a pixel by its distance from the pixel's centre; the
 *         segments of one line are joined by the largest coverage, then the
 *         line is blended once, so joints are as even as the rest. Rectangles
 *         are snapped to pixels, so that the cells of a map touch. */
#include <math.h>
#include <string.h>

#include "analyze/figure.h"
#include "tether/video.h"

typedef struct canvas {
    int64_t w, h;
    double scale;
    uint8_t *rgb;            /* [h, w, 3]                                     */
    uint8_t *cover;          /* [h, w], zero between strokes                  */
    int64_t x0, y0, x1, y1;  /* what `cover` holds since the last blend       */
} canvas;

static int64_t clamp(double v, int64_t hi)
{
    return v < 0 || v != v ? 0 : v > (double)hi ? hi : (int64_t)v;
}

/* ---- strokes ------------------------------------------------------------- */

/* Distance of (px, py) from the segment a b. */
static double distance(double px, double py, const double a[2],
                       const double b[2])
{
    double dx = b[0] - a[0], dy = b[1] - a[1], n = dx * dx + dy * dy;
    double t = n > 0 ? ((px - a[0]) * dx + (py - a[1]) * dy) / n : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    dx = px - (a[0] + t * dx);
    dy = py - (a[1] + t * dy);
    return sqrt(dx * dx + dy * dy);
}

/* Cover a capsule of radius r around the segment, in pixels. */
static void cover(canvas *c, const double a[2], const double b[2], double r)
{
    int64_t x0 = clamp(fmin(a[0], b[0]) - r - 1, c->w);
    int64_t x1 = clamp(fmax(a[0], b[0]) + r + 2, c->w);
    int64_t y0 = clamp(fmin(a[1], b[1]) - r - 1, c->h);
    int64_t y1 = clamp(fmax(a[1], b[1]) + r + 2, c->h);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            double v = r + 0.5 - distance((double)x + 0.5, (double)y + 0.5, a,
                                          b);
            uint8_t part = v <= 0 ? 0 : v >= 1 ? 255 : (uint8_t)(255 * v);
            uint8_t *at = c->cover + y * c->w + x;
            if (part > *at) *at = part;
        }
    if (x0 < c->x0) c->x0 = x0;
    if (y0 < c->y0) c->y0 = y0;
    if (x1 > c->x1) c->x1 = x1;
    if (y1 > c->y1) c->y1 = y1;
}

/* Paint what is covered and forget it. */
static void blend(canvas *c, colour paint)
{
    const int rgb[3] = {(int)(paint >> 16), (int)(paint >> 8 & 255),
                        (int)(paint & 255)};
    for (int64_t y = c->y0; y < c->y1; y++)
        for (int64_t x = c->x0; x < c->x1; x++) {
            uint8_t *at = c->cover + y * c->w + x;
            uint8_t *p = c->rgb + 3 * (y * c->w + x);
            for (int k = 0; *at && k < 3; k++)
                p[k] = (uint8_t)(p[k] + (rgb[k] - p[k]) * *at / 255);
            *at = 0;
        }
    c->x0 = c->w;
    c->y0 = c->h;
    c->x1 = c->y1 = 0;
}

static void draw_dashed(canvas *c, const fig_item *i, const double dash[4])
{
    const double s = c->scale, r = 0.5 * i->width * s;
    int phase = 0;
    double left = dash[0] * i->width * s; /* of this dash or gap */
    for (int64_t k = 0; k + 1 < i->n; k++) {
        double a[2] = {i->xy[2 * k] * s, i->xy[2 * k + 1] * s};
        const double b[2] = {i->xy[2 * k + 2] * s, i->xy[2 * k + 3] * s};
        double n = sqrt((b[0] - a[0]) * (b[0] - a[0])
                        + (b[1] - a[1]) * (b[1] - a[1]));
        while (n > 0) {
            double step = n < left ? n : left;
            double e[2] = {a[0] + (b[0] - a[0]) * step / n,
                           a[1] + (b[1] - a[1]) * step / n};
            if (phase % 2 == 0) cover(c, a, e, r);
            a[0] = e[0];
            a[1] = e[1];
            n -= step;
            left -= step;
            if (left <= 0) {
                phase = (phase + 1) % 4;
                left = dash[phase] * i->width * s;
            }
            if (step <= 0) break;
        }
    }
}

static void draw_line(canvas *c, const fig_item *i)
{
    const double s = c->scale;
    double dash[4];
    if (figure_dashes(i->dash, dash)) {
        draw_dashed(c, i, dash);
    } else {
        for (int64_t k = 0; k + 1 < i->n; k++) {
            const double a[2] = {i->xy[2 * k] * s, i->xy[2 * k + 1] * s};
            const double b[2] = {i->xy[2 * k + 2] * s, i->xy[2 * k + 3] * s};
            cover(c, a, b, 0.5 * i->width * s);
        }
    }
    blend(c, i->paint);
}

static void draw_dot(canvas *c, const fig_item *i)
{
    const double a[2] = {i->x * c->scale, i->y * c->scale};
    cover(c, a, a, i->w * c->scale);
    blend(c, i->paint);
}

/* ---- text ---------------------------------------------------------------- */

static int grid(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* A point of the font's grid, `x` units into the line, on the canvas. */
static void place(double out[2], const canvas *c, const fig_item *i, double x,
                  double y)
{
    const double u = FONT_UNIT * i->h;
    double along = x * u, up = (9 - y) * u;
    if (i->align != FIG_LEFT)
        along -= font_width(i->text, i->h) * (i->align == FIG_RIGHT ? 1 : 0.5);
    out[0] = (i->turned ? i->x - up : i->x + along) * c->scale;
    out[1] = (i->turned ? i->y - along : i->y - up) * c->scale;
}

static void draw_text(canvas *c, const fig_item *i)
{
    const double r = i->h * c->scale * (i->bold ? 0.058 : 0.042);
    const char *s = i->text;
    double x = 0;
    while (*s) {
        int width;
        const char *g = font_strokes(&s, &width);
        double a[2] = {0, 0}, b[2];
        bool begun = false;
        for (; *g; g++) {
            if (*g == ' ') {
                begun = false;
                continue;
            }
            place(b, c, i, x + grid(g[0]), grid(g[1]));
            if (begun) cover(c, a, b, r);
            memcpy(a, b, sizeof a);
            begun = true;
            g++;
        }
        x += width + FONT_GAP;
    }
    blend(c, i->paint);
}

/* ---- all ----------------------------------------------------------------- */

static void draw_rect(canvas *c, const fig_item *i)
{
    int64_t x0 = clamp(i->x * c->scale + 0.5, c->w);
    int64_t x1 = clamp((i->x + i->w) * c->scale + 0.5, c->w);
    int64_t y0 = clamp(i->y * c->scale + 0.5, c->h);
    int64_t y1 = clamp((i->y + i->h) * c->scale + 0.5, c->h);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            uint8_t *p = c->rgb + 3 * (y * c->w + x);
            p[0] = (uint8_t)(i->paint >> 16);
            p[1] = (uint8_t)(i->paint >> 8);
            p[2] = (uint8_t)i->paint;
        }
}

uint8_t *figure_raster(const figure *f, tt_arena *mem, double scale,
                       int64_t *width, int64_t *height)
{
    canvas c = {.w = (int64_t)(f->w * scale + 0.5),
                .h = (int64_t)(f->h * scale + 0.5), .scale = scale};
    c.rgb = tt_alloc(f->ctx, mem, c.w * c.h, 3, "a picture");
    c.cover = tt_alloc0(f->ctx, mem, c.w * c.h, 1, "a picture");
    if (!c.cover) return NULL;
    c.x0 = c.w;
    c.y0 = c.h;
    memset(c.rgb, 255, (size_t)(3 * c.w * c.h));
    for (const fig_item *i = f->first; i; i = i->next)
        if (i->kind == FIG_RECT) draw_rect(&c, i);
        else if (i->kind == FIG_LINE) draw_line(&c, i);
        else if (i->kind == FIG_TEXT) draw_text(&c, i);
        else draw_dot(&c, i);
    *width = c.w;
    *height = c.h;
    return c.rgb;
}

tt_status figure_png(const figure *f, const char *path, double scale)
{
    tt_arena mem = {0};
    int64_t w, h;
    uint8_t *rgb = figure_raster(f, &mem, scale, &w, &h);
    if (rgb) tt_png_write(f->ctx, path, rgb, w, h);
    tt_arena_free(&mem);
    return f->ctx->status;
}
