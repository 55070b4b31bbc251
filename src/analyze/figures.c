/* figures.c: the analyses of several runs as pictures.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache: drift over time per policy, cache biography (source
 *         frame of every memory slot over the video), token retention map. */
#include "analyze/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char what[] = "a figure";
static const char frame_axis[] = "latent frame (4 = 1 s of video)";

/* The colours of Okabe and Ito that stand for something in the maps; they do
 * not occur in the scale of source frames. */
#define PAINT_LONG 0xd55e00u
#define PAINT_SHORT 0xcc79a7u

/* ---- curves -------------------------------------------------------------- */

static double *counting(tt_ctx *ctx, int64_t n)
{
    double *x = tt_alloc(ctx, &ctx->scratch, n, sizeof *x, what);
    for (int64_t i = 0; x && i < n; i++) x[i] = (double)i;
    return x;
}

/* n elements, one per run: too many for the stack. */
static void *of_runs(tt_ctx *ctx, int n, size_t size)
{
    return tt_alloc(ctx, &ctx->scratch, n, size, what);
}

/* Curve k of every run that has it. */
static int collect(plot_curve *out, const drift_run *run, int n, int k,
                   const double *x)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (run[i].n[k])
            out[count++] = (plot_curve){x, run[i].curve[k], run[i].n[k], i};
    return count;
}

static const char *drift_unit(const tt_analyze_options *opt)
{
    return opt->norm ? "reference standard deviations"
         : opt->l1 ? "mean absolute distance" : "root mean square distance";
}

static const char *drift_note(tt_ctx *ctx, const tt_analyze_options *opt)
{
    char buf[256];
    int n = opt->reference_run
          ? snprintf(buf, sizeof buf, "Distance of per-channel statistics from "
                     "all frames of %s.", opt->reference_run->label)
          : snprintf(buf, sizeof buf, "Distance of per-channel statistics from "
                     "those of the first %lld frames of the same video.",
                     (long long)opt->reference);
    if (opt->window > 1)
        snprintf(buf + n, sizeof buf - (size_t)n, " Running mean over %lld "
                 "frames.", (long long)opt->window);
    return tt_strdup(ctx, &ctx->scratch, buf);
}

/* Curves [first, first + count) of every run, a panel each. */
typedef struct curve_set {
    int first, count;
    const char *title, *const *panel_title;
} curve_set;

static bool draw_curves(figure *f, tt_ctx *ctx, const drift_run *run, int n,
                        const tt_analyze_options *opt, curve_set set)
{
    plot_panel panel[CURVES];
    plot_key *key = of_runs(ctx, n, sizeof *key);
    static const plot_mark window = {true, 21, "21 frames: training length"};
    int64_t longest = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < CURVES; k++)
            if (run[i].n[k] > longest) longest = run[i].n[k];
    const double *x = counting(ctx, longest);
    if (!x) return false;
    memset(panel, 0, sizeof panel);
    for (int k = 0; k < set.count; k++) {
        plot_curve *curve = of_runs(ctx, n, sizeof *curve);
        if (!curve) return false;
        int curves = collect(curve, run, n, set.first + k, x);
        if (!curves) return false;
        panel[k] = (plot_panel){
            .title = set.panel_title[k], .xlabel = frame_axis,
            .ylabel = drift_unit(opt), .curve = curve, .ncurves = curves,
            .from_zero = true, .mark = &window, .nmarks = 1};
    }
    for (int i = 0; i < n; i++) key[i] = (plot_key){run[i].label, i, 0};
    const plot_spec s = {.title = set.title, .note = drift_note(ctx, opt),
                         .panel = panel, .npanels = set.count, .columns = 2,
                         .panel_w = 400, .panel_h = 230, .key = key,
                         .nkeys = n};
    return plot_draw(f, ctx, &s) == TT_OK;
}

bool figure_drift(figure *f, tt_ctx *ctx, const drift_run *run, int n,
                  const tt_analyze_options *opt)
{
    static const char *const title[] = {"mean of the channels",
                                        "standard deviation of the channels"};
    return draw_curves(f, ctx, run, n, opt, (curve_set){
        0, 2, "Latent drift: how far frames move from the beginning", title});
}

bool figure_features(figure *f, tt_ctx *ctx, const drift_run *run, int n,
                     const tt_analyze_options *opt)
{
    static const char *const title[] = {
        "keys: mean", "keys: standard deviation", "values: mean",
        "values: standard deviation"};
    return draw_curves(f, ctx, run, n, opt, (curve_set){
        2, 4, "Feature drift of what enters the cache", title});
}

bool figure_pixels(figure *f, tt_ctx *ctx, const char *const *label,
                   pixel_row *const *row, const int64_t *frames, int n)
{
    static const char *const title[] = {
        "brightness", "saturation", "sharpness", "change to the frame before"};
    static const char *const unit[] = {
        "mean of R, G, B, 0 to 255", "0 to 1", "Laplacian variance",
        "mean |difference|"};
    plot_curve *curve[4];
    plot_panel panel[4];
    plot_key *key = of_runs(ctx, n, sizeof *key);
    for (int k = 0; k < 4; k++) curve[k] = of_runs(ctx, n, sizeof **curve);
    if (ctx->status) return false;
    for (int i = 0; i < n; i++) {
        const double *x = counting(ctx, frames[i]);
        key[i] = (plot_key){label[i], i, 0};
        for (int k = 0; k < 4; k++) {
            double *y = tt_alloc(ctx, &ctx->scratch, frames[i], sizeof *y,
                                 what);
            for (int64_t t = 0; y && t < frames[i]; t++) {
                const pixel_row *p = &row[i][t];
                y[t] = k == 0 ? (p->mean[0] + p->mean[1] + p->mean[2]) / 3
                     : k == 1 ? p->saturation
                     : k == 2 ? p->sharpness : p->change;
            }
            curve[k][i] = (plot_curve){x, y, frames[i], i};
        }
    }
    if (ctx->status) return false;
    for (int k = 0; k < 4; k++)
        panel[k] = (plot_panel){
            .title = title[k], .ylabel = unit[k], .curve = curve[k],
            .xlabel = "video frame (16 = 1 s)", .ncurves = n};
    const plot_spec s = {.title = "Pixel statistics", .panel = panel,
                         .note = "Proxies computed from pixels; no benchmark "
                                 "reports these numbers.",
                         .npanels = 4, .columns = 2, .panel_w = 400,
                         .panel_h = 190, .key = key, .nkeys = n};
    return plot_draw(f, ctx, &s) == TT_OK;
}

/* ---- maps ---------------------------------------------------------------- */

/* The layer a map of one layer shows. */
static int64_t shown_layer(const tt_analyze_options *opt)
{
    return opt->layer < 0 ? 0 : opt->layer;
}

static double newest_frame(tt_recording *const *run, int n)
{
    int64_t last = 1;
    for (int i = 0; i < n; i++)
        if (run[i]->src && run[i]->frames - 1 > last)
            last = run[i]->frames - 1;
    return (double)last;
}

static const char *panel_title(tt_ctx *ctx, const tt_recording *r,
                               int64_t layer)
{
    char buf[256];
    if (layer < 0)
        snprintf(buf, sizeof buf, "%.180s, mean of %lld layer%s", r->label,
                 (long long)r->layers, r->layers == 1 ? "" : "s");
    else
        snprintf(buf, sizeof buf, "%.180s, layer %lld", r->label,
                 (long long)layer);
    return tt_strdup(ctx, &ctx->scratch, buf);
}

/* Slots down, chunks to the right. */
static bool biography_panel(plot_panel *out, tt_ctx *ctx,
                            const tt_recording *r, int64_t layer, double last,
                            plot_mark mark[2])
{
    colour *cell = tt_alloc(ctx, &ctx->scratch, r->slots * r->chunks,
                            sizeof *cell, what);
    int64_t memory_end = -1;
    if (!cell) return false;
    for (int64_t c = 0; c < r->chunks; c++)
        for (int64_t s = 0; s < r->slots; s++) {
            int64_t at = (c * r->layers + layer) * r->slots + s;
            int64_t f = r->src[at];
            cell[s * r->chunks + c] = f == -2 ? PAINT_LONG
                                    : f == -3 ? PAINT_SHORT
                                    : f < 0 ? PLOT_EMPTY
                                    : plot_scale((double)f / last);
            if (r->region[at] == TT_REGION_MEMORY && s + 1 > memory_end)
                memory_end = s + 1;
        }
    *out = (plot_panel){.title = panel_title(ctx, r, layer),
                        .xlabel = "chunk", .ylabel = "frame slot of the cache",
                        .cell = cell, .rows = r->slots, .cols = r->chunks,
                        .xstep = 1, .ystep = 1, .down = true, .mark = mark};
    if (r->S > 0 && r->S < r->slots)
        mark[out->nmarks++] = (plot_mark){false, (double)r->S, "sink"};
    if (memory_end > 0 && memory_end < r->slots)
        mark[out->nmarks++] = (plot_mark){false, (double)memory_end, "memory"};
    return true;
}

static bool has_summaries(tt_recording *const *run, int n)
{
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; run[i]->src
             && k < run[i]->chunks * run[i]->layers * run[i]->slots; k++)
            if (run[i]->src[k] <= -2) return true;
    return false;
}

static int map_columns(int panels)
{
    return panels < 3 ? panels : panels == 4 ? 2 : 3;
}

bool figure_biography(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt)
{
    plot_panel *panel = of_runs(ctx, n, sizeof *panel);
    plot_mark (*mark)[2] = of_runs(ctx, n, sizeof *mark);
    static const plot_key key[3] = {
        {"empty", -1, PLOT_EMPTY}, {"long-term average", -1, PAINT_LONG},
        {"short-term average", -1, PAINT_SHORT}};
    const double last = newest_frame(run, n);
    int panels = 0;
    if (ctx->status) return false;
    for (int i = 0; i < n; i++)
        if (run[i]->src && run[i]->chunks && shown_layer(opt) < run[i]->layers
            && biography_panel(&panel[panels], ctx, run[i], shown_layer(opt),
                               last, mark[panels]))
            panels++;
    if (!panels) return false;
    const plot_spec s = {
        .title = "Cache biography: which frame lives in which slot",
        .note = "After the context pass of every chunk. Dark: from the "
                "beginning of the video, light: from its end.",
        .panel = panel, .npanels = panels, .columns = map_columns(panels),
        .panel_w = panels == 1 ? 480 : 340, .panel_h = 260, .key = key,
        .nkeys = has_summaries(run, n) ? 3 : 1, .bar = "source frame",
        .bar_lo = 0, .bar_hi = last};
    return plot_draw(f, ctx, &s) == TT_OK;
}

/* White to dark blue: how much of a frame can be read. */
static colour readable_paint(double share)
{
    if (!(share > 0)) return PLOT_EMPTY;
    double keep = 1 - (0.25 + 0.75 * (share > 1 ? 1 : share));
    return (colour)(0xf2 * keep) << 16
         | (colour)(0x50 + (0xf2 - 0x50) * keep) << 8
         | (colour)(0x9a + (0xf2 - 0x9a) * keep);
}

/* Source frames to the right, chunks down. */
static bool retention_panel(plot_panel *out, tt_ctx *ctx,
                            const tt_recording *r, int64_t layer)
{
    const int64_t n = r->chunks * r->frames;
    double *map = tt_alloc(ctx, &ctx->scratch, n, sizeof *map, what);
    colour *cell = tt_alloc(ctx, &ctx->scratch, n, sizeof *cell, what);
    if (!cell) return false;
    retention_map(map, r, layer);
    for (int64_t i = 0; i < n; i++) cell[i] = readable_paint(map[i]);
    *out = (plot_panel){.title = panel_title(ctx, r, layer),
                        .xlabel = "source frame", .ylabel = "chunk",
                        .cell = cell, .rows = r->chunks, .cols = r->frames,
                        .xstep = 1, .ystep = 1, .down = true};
    return true;
}

bool figure_retention(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt)
{
    plot_panel *panel = of_runs(ctx, n, sizeof *panel);
    const plot_key key[4] = {{"not readable", -1, PLOT_EMPTY},
                             {"a third", -1, readable_paint(0.333)},
                             {"two thirds", -1, readable_paint(0.667)},
                             {"the whole frame", -1, readable_paint(1)}};
    int panels = 0;
    if (!panel) return false;
    for (int i = 0; i < n; i++)
        if (run[i]->readable && run[i]->chunks && opt->layer < run[i]->layers
            && retention_panel(&panel[panels], ctx, run[i], opt->layer))
            panels++;
    if (!panels) return false;
    const plot_spec s = {
        .title = "Token retention: which frames can be read at every chunk",
        .note = "Share of a frame's tokens that attention reads after the "
                "context pass, averaged over the layers shown.",
        .panel = panel, .npanels = panels, .columns = map_columns(panels),
        .panel_w = panels == 1 ? 480 : 340, .panel_h = 280, .key = key,
        .nkeys = 4};
    return plot_draw(f, ctx, &s) == TT_OK;
}

/* ---- decisions ----------------------------------------------------------- */

enum { MEMBER_KEPT, MEMBER_DROPPED, ADMITTED, REJECTED };
static const plot_key decision_key[4] = {
    {"member kept", -1, 0x56b4e9}, {"member dropped", -1, 0xe69f00},
    {"newcomer admitted", -1, 0x009e73}, {"newcomer rejected", -1, 0xd55e00}};

/* How many candidates of round i were in memory before? Members come first, and
 * memory is full when rounds are held: as many as are kept. */
static int64_t members_of(const tt_recording *r, int64_t i)
{
    int64_t kept = 0;
    for (int64_t c = 0; c < r->candidates; c++)
        kept += r->grab_keep[i * r->candidates + c];
    return kept;
}

/* A map of n cells, most of them empty, is drawn when the candidates account
 * for it: a short file can name a chunk and a frame far away. */
static bool is_worth(tt_ctx *ctx, const tt_recording *r, int64_t n)
{
    enum { FEW = 1 << 16, PER_CANDIDATE = 1024, MOST = 1 << 26 };
    if (n <= MOST
        && (n - FEW) / PER_CANDIDATE <= r->rounds * r->candidates) return true;
    tt_warn(ctx, "%s: the picture of its selection is left out: %lld cells "
            "for %lld candidates", r->path, (long long)n,
            (long long)(r->rounds * r->candidates));
    return false;
}

/* Cells of `layer`, of rows of `frames`, from the candidates of its rounds. */
static void selection_cells(colour *cell, int64_t frames,
                            const tt_recording *r, int64_t layer)
{
    for (int64_t i = 0; i < r->rounds; i++) {
        if (r->grab_layer[i] != layer) continue;
        const int64_t members = members_of(r, i);
        for (int64_t k = 0; k < r->candidates; k++) {
            int64_t f = r->grab_candidates[i * r->candidates + k];
            bool keep = r->grab_keep[i * r->candidates + k] != 0;
            if (f < 0) continue;
            int d = k < members ? (keep ? MEMBER_KEPT : MEMBER_DROPPED)
                                : (keep ? ADMITTED : REJECTED);
            cell[r->grab_chunk[i] * frames + f] = decision_key[d].paint;
        }
    }
}

static bool selection_panel(plot_panel *out, tt_ctx *ctx,
                            const tt_recording *r, int64_t layer)
{
    int64_t chunks = 0, frames = 0;
    for (int64_t i = 0; i < r->rounds; i++) {
        if (r->grab_chunk[i] + 1 > chunks) chunks = r->grab_chunk[i] + 1;
        for (int64_t k = 0; k < r->candidates; k++) {
            int64_t f = r->grab_candidates[i * r->candidates + k];
            if (f + 1 > frames) frames = f + 1;
        }
    }
    int64_t n = 0;
    if (!tt_checked_mul(&n, chunks, frames)) n = INT64_MAX;
    if (!is_worth(ctx, r, n)) return false;
    colour *cell = tt_alloc(ctx, &ctx->scratch, n, sizeof *cell, what);
    if (!cell || !n) return false;
    for (int64_t i = 0; i < n; i++) cell[i] = PLOT_EMPTY;
    selection_cells(cell, frames, r, layer);
    *out = (plot_panel){.title = panel_title(ctx, r, layer),
                        .xlabel = "source frame", .ylabel = "chunk",
                        .cell = cell, .rows = chunks, .cols = frames,
                        .xstep = 1, .ystep = 1, .down = true};
    return true;
}

bool figure_selection(figure *f, tt_ctx *ctx, tt_recording *const *run, int n,
                      const tt_analyze_options *opt)
{
    plot_panel *panel = of_runs(ctx, n, sizeof *panel);
    int panels = 0;
    if (!panel) return false;
    for (int i = 0; i < n; i++)
        if (run[i]->rounds
            && selection_panel(&panel[panels], ctx, run[i], shown_layer(opt)))
            panels++;
    if (!panels) return false;
    const plot_spec s = {
        .title = "Admission to memory: the candidates of every chunk",
        .panel = panel, .npanels = panels, .columns = map_columns(panels),
        .panel_w = panels == 1 ? 480 : 340, .panel_h = 280,
        .key = decision_key, .nkeys = 4};
    return plot_draw(f, ctx, &s) == TT_OK;
}
