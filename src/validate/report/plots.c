/* plots.c: the pictures of the HTML report, as inline SVG: growth of
 * the error over the chunks, where in a tensor the error is, how large it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Colours of text and lines come from the page's style, so they follow its
 * dark and light looks; a map keeps its white ground. */
#include "validate/report/report.h"

#include <math.h>
#include <string.h>

#include "core/page.h"

static void count_at(FILE *f, double x, double y, const char *anchor, int64_t n)
{
    char buf[32];
    snprintf(buf, sizeof buf, "%lld", (long long)n);
    page_text_at(f, x, y, anchor, buf);
}

/* ---- growth over the chunks ---------------------------------------------- */

enum { PLOT_W = 540, PLOT_H = 290, LEFT = 62, RIGHT = 14, TOP = 12, LOW = 44 };

typedef struct plot_range {
    double lo, hi;       /* decades                                           */
    bool zero;           /* the lower edge stands for 0                       */
    int64_t chunks;
} plot_range;

/* The three lines of a plot; the last two only where an arithmetic was
 * declared. */
typedef enum plot_line { MEASURED, EARNED, LIMIT, PLOT_LINES } plot_line;
static const struct {
    const char *stroke, *word;
} look[PLOT_LINES] = {
    {"stroke=\"var(--mark)\" stroke-width=\"2.5\"", "measured"},
    {"stroke=\"var(--soft)\" stroke-width=\"2\" stroke-dasharray=\"6 4\"",
     "what the declared arithmetic errs"},
    {"stroke=\"var(--bad)\" stroke-width=\"2\" stroke-dasharray=\"2 4\"",
     "8 times that, beyond which nothing passes"}};
_Static_assert(TT_SLACK == 8, "the word of LIMIT");

static double value(const tt_growth *g, plot_line k)
{
    return k == MEASURED ? g->rel_l2 : k == EARNED ? g->earned
         : TT_SLACK * g->earned;
}

static bool can_show(double v)
{
    return isfinite(v) && v > 0;
}

static double plot_x(const plot_range *p, int64_t chunk)
{
    const double room = PLOT_W - LEFT - RIGHT - 24;
    return LEFT + 12 + room * (double)chunk
                       / (double)(p->chunks > 1 ? p->chunks - 1 : 1);
}

/* Zero and what is not finite lie on the lower edge. */
static double plot_y(const plot_range *p, double v)
{
    double d = can_show(v) ? log10(v) : p->lo;
    if (d < p->lo) d = p->lo;
    return TOP + (PLOT_H - LOW - TOP) * (p->hi - d) / (p->hi - p->lo);
}

static plot_range growth_range(const tt_report *r, const char *curve)
{
    plot_range p = {.lo = INFINITY, .hi = -INFINITY, .chunks = 1};
    for (const growth_item *i = r->growth; i; i = i->next) {
        if (strcmp(i->g.curve, curve)) continue;
        if (i->g.rel_l2 == 0) p.zero = true;
        for (int k = 0; k < PLOT_LINES; k++) {
            const double v = value(&i->g, k);
            if (!can_show(v)) continue;
            p.lo = fmin(p.lo, floor(log10(v)));
            p.hi = fmax(p.hi, ceil(log10(v)));
        }
        if (i->g.chunk >= p.chunks) p.chunks = i->g.chunk + 1;
    }
    if (!isfinite(p.lo)) p.lo = p.hi = 0;
    if (p.hi <= p.lo) p.hi = p.lo + 1;
    if (p.zero) p.lo -= 1;
    return p;
}

static bool has_line(const tt_report *r, const char *curve, plot_line k)
{
    for (const growth_item *i = r->growth; i; i = i->next)
        if (!strcmp(i->g.curve, curve) && can_show(value(&i->g, k)))
            return true;
    return k == MEASURED;
}

static void put_line(FILE *f, const tt_report *r, const char *curve,
                     const plot_range *p, plot_line k)
{
    fprintf(f, "<polyline fill=\"none\" %s points=\"", look[k].stroke);
    for (const growth_item *i = r->growth; i; i = i->next)
        if (!strcmp(i->g.curve, curve))
            fprintf(f, "%.1f,%.1f ", plot_x(p, i->g.chunk),
                    plot_y(p, value(&i->g, k)));
    fputs("\"/>\n", f);
    for (const growth_item *i = r->growth; i && k == MEASURED; i = i->next)
        if (!strcmp(i->g.curve, curve))
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" "
                    "fill=\"var(--mark)\"><title>chunk %lld: %.3g</title>"
                    "</circle>\n", plot_x(p, i->g.chunk),
                    plot_y(p, i->g.rel_l2), (long long)i->g.chunk,
                    i->g.rel_l2);
}

/* Steps of 1, 2 or 5 times a power of ten, at most ten of them in n. */
static int64_t round_step(int64_t n)
{
    int64_t step = 1;
    for (int k = 0; n / step > 10; k++) step = step / (k % 3 == 1 ? 2 : 1)
                                               * (k % 3 == 1 ? 5 : 2);
    return step;
}

static void put_axes(FILE *f, const plot_range *p)
{
    const double bottom = PLOT_H - LOW;
    const double every = ceil((p->hi - p->lo) / 8);
    for (double d = p->lo; d <= p->hi; d += every) {
        const double y = plot_y(p, pow(10, d));
        char buf[32];
        page_line_at(f, "g", LEFT, y, PLOT_W - RIGHT, y);
        snprintf(buf, sizeof buf, p->zero && d == p->lo ? "0"
                 : d == 0 ? "1" : "1e%.0f", d);
        page_text_at(f, LEFT - 8, y + 4, "end", buf);
    }
    for (int64_t c = 0; c < p->chunks; c += round_step(p->chunks)) {
        page_line_at(f, "a", plot_x(p, c), bottom, plot_x(p, c), bottom + 5);
        count_at(f, plot_x(p, c), bottom + 19, "middle", c);
    }
    fprintf(f, "<path class=\"a\" d=\"M%d %dV%.0fH%d\"/>\n", LEFT, TOP, bottom,
            PLOT_W - RIGHT);
    page_name_at(f, (PLOT_W + LEFT) / 2, PLOT_H - 6, "chunk");
    page_turned_at(f, 14, TOP + (bottom - TOP) / 2, "relative L2 error");
}

/* A single chunk has no growth: its numbers in words. */
static void put_number(FILE *f, const tt_report *r, const char *curve)
{
    char buf[32];
    const growth_item *i = r->growth;
    while (strcmp(i->g.curve, curve)) i = i->next;
    fputs("<figure><figcaption><b>", f);
    page_xml(f, curve);
    fprintf(f, "</b><br>relative L2 error of the only chunk: %s",
            page_number(buf, sizeof buf, i->g.rel_l2, 3));
    if (can_show(i->g.earned))
        fprintf(f, ", of at most %s", page_number(buf, sizeof buf,
                                                  value(&i->g, LIMIT), 3));
    fputs("</figcaption></figure>\n", f);
}

static void put_curve(FILE *f, const tt_report *r, const char *curve)
{
    const plot_range p = growth_range(r, curve);
    if (p.chunks == 1) {
        put_number(f, r, curve);
        return;
    }
    fputs("<figure>\n", f);
    page_begin_svg(f, PLOT_W, PLOT_H, "relative L2 error of every chunk");
    put_axes(f, &p);
    for (int k = LIMIT; k >= MEASURED; k--)
        if (has_line(r, curve, k)) put_line(f, r, curve, &p, k);
    fputs("</svg>\n<figcaption><b>", f);
    page_xml(f, curve);
    fputs("</b><br>", f);
    for (int k = 0; k < PLOT_LINES; k++)
        if (has_line(r, curve, k))
            fprintf(f, "<span class=\"key\"><svg width=\"30\" height=\"8\">"
                    "<line x2=\"30\" y1=\"4\" y2=\"4\" %s/></svg>%s</span> ",
                    look[k].stroke, look[k].word);
    fputs("</figcaption></figure>\n", f);
}

void report_growth(FILE *f, const tt_report *r)
{
    if (!r->growth) return;
    fputs("<h2>Error growth</h2>\n<p>How far each chunk of the video is from "
          "ours.</p>\n<div class=\"plots\">\n", f);
    for (const growth_item *i = r->growth; i; i = i->next)
        if (report_curve_begins(r, i)) put_curve(f, r, i->g.curve);
    fputs("</div>\n", f);
}

/* ---- maps of the error --------------------------------------------------- */

enum { LEVELS = 16, DECADES = 4, MAP_LEFT = 62, MAP_LOW = 44, BAR_W = 14,
       BAR_ROOM = 116, MAP_BOX = 288 };

/* What the colours of a map mean: LEVELS even steps in the logarithm. */
typedef struct map_scale {
    double lo, hi;       /* errors at the ends, 0 when there is none          */
    double limit;        /* at the worst row, 0: none                         */
} map_scale;

/* Near white to dark red. */
static unsigned shade(double u)
{
    const unsigned r = (unsigned)(250 - 140 * u * u);
    const unsigned g = (unsigned)(228 * (1 - u));
    const unsigned b = (unsigned)(210 * (1 - u) * (1 - u) + 14 * u);
    return r << 16 | g << 8 | b;
}

/* -1: nothing to draw; LEVELS: not finite. */
static int level(const map_scale *s, double e)
{
    if (!(e > 0)) return -1;
    if (isinf(e)) return LEVELS;
    const double u = log(e / s->lo) / log(s->hi / s->lo);
    return u <= 0 ? 0 : u >= 1 ? LEVELS - 1 : (int)(u * LEVELS);
}

/* From the limit on where that lies in sight, else the upper DECADES. */
static map_scale scale_of(const tt_verdict *v, const error_map *m, bool limited)
{
    map_scale s = {0, 0, limited ? TT_SLACK * v->earned : 0};
    for (int i = 0; i < m->rows * m->cols; i++)
        if (isfinite(m->cell[i]) && m->cell[i] > s.hi) s.hi = m->cell[i];
    s.lo = s.hi * pow(10, -DECADES);
    if (!can_show(s.limit)) s.limit = 0;
    if (s.limit > s.lo && s.limit < s.hi / 2) s.lo = s.limit;
    return s;
}

/* One path per level, its cells as short strokes: a fifth of the bytes that
 * a rectangle for every cell takes. */
static void put_cells(FILE *f, const error_map *m, const map_scale *s,
                      double sx, double sy)
{
    fprintf(f, "<g transform=\"translate(%d %d) scale(%.4g %.4g)\" "
            "fill=\"none\" shape-rendering=\"crispEdges\">\n", MAP_LEFT, TOP,
            sx, sy);
    for (int k = 0; k <= LEVELS; k++) {
        bool begun = false;
        for (int i = 0; i < m->rows; i++)
            for (int j = 0, n; j < m->cols; j += n) {
                const float *row = m->cell + i * m->cols;
                for (n = 1; j + n < m->cols && level(s, row[j])
                            == level(s, row[j + n]); n++) {}
                if (level(s, row[j]) != k) continue;
                if (!begun)
                    fprintf(f, "<path stroke=\"#%06x\" d=\"", k == LEVELS
                            ? 0x2040c0u : shade((k + 0.5) / LEVELS));
                begun = true;
                fprintf(f, "M%d %d.5h%d", j, i, n);
            }
        if (begun) fputs("\"/>\n", f);
    }
    fputs("</g>\n", f);
}

/* "rows: 4 x 8" of the axes from..to-1. */
static void axis_word(char *buf, size_t n, const char *what,
                      const tt_verdict *v, int from, int to)
{
    size_t at = (size_t)snprintf(buf, n, "%s", what);
    for (int i = from; i < to && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld",
                               i > from ? " x " : ": ", (long long)v->dim[i]);
}

static int64_t extent(const tt_verdict *v, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= v->dim[i];
    return n;
}

static void put_map_axes(FILE *f, const tt_verdict *v, const error_map *m,
                         double w, double h)
{
    char word[160];
    const int64_t rows = extent(v, 0, m->split);
    const int64_t cols = extent(v, m->split, v->rank);
    fprintf(f, "<rect class=\"a\" x=\"%d\" y=\"%d\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n", MAP_LEFT, TOP, w, h);
    page_text_at(f, MAP_LEFT - 6, TOP + 10, "end", "0");
    if (rows > 1 && h > 30)
        count_at(f, MAP_LEFT - 6, TOP + h, "end", rows - 1);
    page_text_at(f, MAP_LEFT, TOP + h + 16, "start", "0");
    if (cols > 1 && w > 30)
        count_at(f, MAP_LEFT + w, TOP + h + 16, "end", cols - 1);
    axis_word(word, sizeof word, "columns", v, m->split, v->rank);
    page_text_at(f, MAP_LEFT, TOP + h + 34, "start", word);
    axis_word(word, sizeof word, "rows", v, 0, m->split);
    if (h > 100) page_turned_at(f, 14, TOP + h / 2, word);
    else if (rows > 1) page_turned_at(f, 14, TOP + h / 2, "rows");
}

static void bar_tick(FILE *f, double x, double y, double v, const char *more)
{
    char buf[32];
    fprintf(f, "<path class=\"a\" d=\"M%.1f %.1fh5\"/><text x=\"%.1f\" "
            "y=\"%.1f\">%s%s</text>\n", x, y, x + 8, y + 4,
            page_number(buf, sizeof buf, v, 2), more);
}

/* The scale on the right: powers of ten, the largest error and the limit. */
static void put_bar(FILE *f, const map_scale *s, double x, double h)
{
    const double part = h / LEVELS, least = 14;
    const double per = h / log10(s->hi / s->lo);
    fputs("<g shape-rendering=\"crispEdges\">\n", f);
    for (int k = 0; k < LEVELS; k++)
        fprintf(f, "<rect x=\"%.1f\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
                "fill=\"#%06x\"/>\n", x, TOP + h - part * (k + 1), BAR_W,
                part + 0.5, shade((k + 0.5) / LEVELS));
    fprintf(f, "<rect class=\"a\" x=\"%.1f\" y=\"%d\" width=\"%d\" "
            "height=\"%.1f\"/>\n</g>\n", x, TOP, BAR_W, h);
    bar_tick(f, x + BAR_W, TOP, s->hi, "");
    const bool limit = s->lo == s->limit;
    bar_tick(f, x + BAR_W, TOP + h, s->lo, limit ? " limit" : "");
    for (double d = floor(log10(s->hi)); d > log10(s->lo); d--) {
        const double y = TOP + (log10(s->hi) - d) * per;
        if (y > TOP + least && y < TOP + h - least)
            bar_tick(f, x + BAR_W, y, pow(10, d), "");
    }
}

static void put_map(FILE *f, const tt_verdict *v, const error_map *m,
                    const map_scale *s)
{
    const double sx = fmin(24, (double)MAP_BOX / m->cols);
    const double sy = fmin(24, (double)MAP_BOX / m->rows);
    const double w = m->cols * sx, h = m->rows * sy, bar = fmax(h, 96);
    const double right = MAP_LEFT + fmax(w, 150) + 18;
    page_begin_svg(f, right + BAR_ROOM, fmax(TOP + bar + 8, TOP + h + MAP_LOW),
                   "where the error is");
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" "
            "fill=\"#fff\"/>\n", MAP_LEFT, TOP, w, h);
    put_cells(f, m, s, sx, sy);
    put_map_axes(f, v, m, w, h);
    if (s->hi > 0) put_bar(f, s, right, bar);
    fputs("</svg>\n", f);
}

/* ---- histograms of ULP --------------------------------------------------- */

enum { HIST_W = 440, HIST_H = 170, BIN = 22 };

/* Counts go up by tenfolds: a single element must still be seen beside
 * millions. */
static double bar_height(int64_t n, int64_t top)
{
    const double room = HIST_H - LOW - TOP;
    return room * log10(1 + (double)n) / log10(1 + (double)top);
}

static void put_histogram(FILE *f, const tt_verdict *v)
{
    const double bottom = HIST_H - LOW;
    int64_t top = 9;
    for (int i = 0; i < TT_ULP_BINS; i++)
        if (v->m.ulp[i] > top) top = v->m.ulp[i];
    page_begin_svg(f, HIST_W, HIST_H, "how large the error is");
    for (int64_t n = 1, k = 0; n <= top; n *= 10, k++) {
        const double y = bottom - bar_height(n, top);
        page_line_at(f, "g", MAP_LEFT, y, MAP_LEFT + TT_ULP_BINS * BIN, y);
        if (k % (top > 100000 ? 2 : 1) == 0)
            count_at(f, MAP_LEFT - 8, y + 4, "end", n);
        if (n > INT64_MAX / 10) break;
    }
    for (int i = 0; i < TT_ULP_BINS; i++) {
        const double h = bar_height(v->m.ulp[i], top);
        if (v->m.ulp[i])
            fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
                    "fill=\"#3b82c4\"><title>%lld</title></rect>\n",
                    MAP_LEFT + i * BIN + 1, bottom - h, BIN - 2, h,
                    (long long)v->m.ulp[i]);
    }
    fprintf(f, "<path class=\"a\" d=\"M%d %dV%.0fh%d\"/>\n", MAP_LEFT, TOP,
            bottom, TT_ULP_BINS * BIN);
    static const char *const word[TT_ULP_BINS] = {
        "0", NULL, "1", NULL, "4", NULL, "16", NULL, "64", NULL, "256", NULL,
        "1024", NULL, NULL, "&gt; 4096"};
    for (int i = 0; i < TT_ULP_BINS; i++)
        if (word[i])
            page_text_at(f, MAP_LEFT + BIN * (i + 0.5), bottom + 17, "middle",
                         word[i]);
    page_name_at(f, MAP_LEFT + TT_ULP_BINS * BIN / 2, HIST_H - 8,
                 "error up to so many ULP of float32");
    page_turned_at(f, 14, TOP + (bottom - TOP) / 2, "elements");
    fputs("</svg>\n", f);
}

/* ---- both, for every tensor that has them -------------------------------- */

static void put_limit(FILE *f, const map_scale *s)
{
    char buf[32];
    if (!(s->hi > 0)) {
        fputs("No finite error. ", f);
    } else if (s->limit > 0) {
        page_number(buf, sizeof buf, s->limit, 2);
        if (s->lo == s->limit)
            fprintf(f, "The scale begins at %s, the limit of the worst row. ",
                    buf);
        else
            fprintf(f, "The limit of the worst row, %s, is %s the scale. ",
                    buf, s->limit <= s->lo ? "below" : "at the upper end of");
    }
}

static void put_both(FILE *f, const verdict_item *i, bool limited)
{
    const map_scale s = scale_of(&i->v, i->map, limited);
    bool broken = false;
    for (int k = 0; k < i->map->rows * i->map->cols; k++)
        broken = broken || isinf(i->map->cell[k]);
    fputs("<figure><figcaption><code>", f);
    page_xml(f, i->v.path);
    fputs("</code></figcaption>\n", f);
    put_map(f, &i->v, i->map, &s);
    put_histogram(f, &i->v);
    fputs("<figcaption>", f);
    put_limit(f, &s);
    if (broken) fputs("Blue: NaN or infinity on one side only.", f);
    fputs("</figcaption></figure>\n", f);
}

void report_maps(FILE *f, const tt_report *r)
{
    enum { IN_SIGHT = 2 };
    int n = 0;
    if (!r->maps) return;
    fputs("<h2>Where the error is, and how large</h2>\n<p>Of each tensor the "
          "largest absolute error per place, then how many elements err by how "
          "much.</p>\n<div class=\"plots\">\n", f);
    for (const verdict_item *i = r->first; i; i = i->next) {
        if (!i->map) continue;
        if (n++ == IN_SIGHT)
            fprintf(f, "</div>\n<details><summary>%d more tensors</summary>\n"
                    "<div class=\"plots\">\n", r->maps - IN_SIGHT);
        put_both(f, i, r->arith != NULL);
    }
    fputs(n > IN_SIGHT ? "</div></details>\n" : "</div>\n", f);
}
