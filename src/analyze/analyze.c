/* analyze.c: every analysis of several runs into a folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    measure.h (the formulas), report.c (the page) */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "analyze/table.h"

static const char what[] = "an analysis";

tt_analyze_options tt_analyze_defaults(void)
{
    return (tt_analyze_options){.csv = true, .json = true, .html = true,
                                .reference = 3, .window = 1, .layer = -1};
}

/* ---- A ------------------------------------------------------------------- */

static tt_status write_drift(tt_ctx *ctx, const drift_run *run, int n,
                             const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "drift");
    for (int i = 0; i < n; i++) {
        int64_t frames = 0;
        for (int k = 0; k < CURVES; k++)
            if (run[i].n[k] > frames) frames = run[i].n[k];
        for (int64_t f = 0; f < frames; f++) {
            table_row(&t);
            table_str(&t, run[i].label);
            table_num(&t, (double)f);
            for (int k = 0; k < CURVES; k++)
                table_num(&t, f < run[i].n[k] ? run[i].curve[k][f] : NAN);
        }
    }
    return t.rows ? output_table(ctx, &t, "drift", opt)
                  : (table_end(&t), ctx->status);
}

/* ---- B ------------------------------------------------------------------- */

/* Layers [*first, *end) that the options ask for. */
static void layers_of(int64_t *first, int64_t *end, const tt_recording *r,
                      const tt_analyze_options *opt)
{
    *first = opt->layer < 0 ? 0 : opt->layer;
    *end = opt->layer < 0 ? r->layers : opt->layer + 1;
}

static void biography_row(table *t, const tt_recording *r, int64_t c,
                          int64_t layer, int64_t slot, int64_t src,
                          double share)
{
    int64_t at = (c * r->layers + layer) * r->slots + slot;
    table_row(t);
    table_str(t, r->label);
    table_num(t, (double)c);
    table_num(t, (double)layer);
    table_num(t, (double)slot);
    table_str(t, tt_region_name((tt_region)r->region[at]));
    table_num(t, (double)src);
    table_num(t, share);
}

/* One row per live slot; a slot with tokens of several frames has a row for
 * each of them. Tokens per frame follow from a part and its share. */
static void biography_rows(table *t, const tt_recording *r,
                           const tt_analyze_options *opt)
{
    int64_t first, end, part = 0;
    layers_of(&first, &end, r, opt);
    for (int64_t c = 0; c < r->chunks; c++)
        for (int64_t i = 0; i < r->layers; i++)
            for (int64_t s = 0; s < r->slots; s++) {
                int64_t at = (c * r->layers + i) * r->slots + s;
                int64_t begin = part, most = 0;
                bool shown = i >= first && i < end;
                for (; part < r->nparts && r->part[5 * part] == c
                       && r->part[5 * part + 1] == i
                       && r->part[5 * part + 2] == s; part++)
                    if (r->part[5 * part + 4] > most)
                        most = r->part[5 * part + 4];
                if (!shown || r->src[at] == -1) continue;
                if (begin == part)
                    biography_row(t, r, c, i, s, r->src[at], r->share[at]);
                for (int64_t p = begin; p < part; p++)
                    biography_row(t, r, c, i, s, r->part[5 * p + 3],
                                  r->share[at] * (double)r->part[5 * p + 4]
                                  / (double)most);
            }
}

static tt_status write_biography(tt_ctx *ctx, tt_recording *const *run, int n,
                                 const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "biography");
    for (int i = 0; i < n; i++)
        if (run[i]->src) biography_rows(&t, run[i], opt);
    return t.rows ? output_table(ctx, &t, "biography", opt)
                  : (table_end(&t), ctx->status);
}

static void weight_rows(table *t, tt_ctx *ctx, const tt_recording *r,
                        const tt_analyze_options *opt)
{
    static const char *const name[2] = {"long", "short"};
    int64_t first, end, size = r->chunks * r->frames;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    double *w = tt_alloc(ctx, &ctx->scratch, 2 * size, sizeof *w, what);
    layers_of(&first, &end, r, opt);
    for (int64_t i = first; w && i < end; i++) {
        if (!summary_weights(w, r, i, r->alpha_long, r->alpha_short)) continue;
        for (int64_t k = 0; k < 2 * size; k++) {
            if (!(w[k] > 0)) continue;
            table_row(t);
            table_str(t, r->label);
            table_num(t, (double)(k % size / r->frames));
            table_num(t, (double)i);
            table_str(t, name[k / size]);
            table_num(t, (double)(k % r->frames));
            table_num(t, w[k]);
        }
    }
    tt_arena_reset(&ctx->scratch, m);
}

static tt_status write_weights(tt_ctx *ctx, tt_recording *const *run, int n,
                               const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "weights");
    for (int i = 0; i < n; i++)
        if (run[i]->src) weight_rows(&t, ctx, run[i], opt);
    return t.rows ? output_table(ctx, &t, "weights", opt)
                  : (table_end(&t), ctx->status);
}

/* ---- C ------------------------------------------------------------------- */

/* layer -1: the mean over layers; only what is readable at all. */
static void retention_rows(table *t, tt_ctx *ctx, const tt_recording *r,
                           int64_t layer)
{
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    double *map = tt_alloc(ctx, &ctx->scratch, r->chunks * r->frames,
                           sizeof *map, what);
    if (map) retention_map(map, r, layer);
    for (int64_t k = 0; map && k < r->chunks * r->frames; k++) {
        if (!(map[k] > 0)) continue;
        table_row(t);
        table_str(t, r->label);
        if (layer < 0) table_str(t, "mean");
        else table_num(t, (double)layer);
        table_num(t, (double)(k / r->frames));
        table_num(t, (double)(k % r->frames));
        table_num(t, map[k]);
    }
    tt_arena_reset(&ctx->scratch, m);
}

static tt_status write_retention(tt_ctx *ctx, tt_recording *const *run, int n,
                                 const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "retention");
    for (int i = 0; i < n; i++) {
        int64_t first, end;
        if (!run[i]->readable) continue;
        layers_of(&first, &end, run[i], opt);
        if (opt->layer < 0) retention_rows(&t, ctx, run[i], -1);
        for (int64_t k = first; k < end; k++)
            retention_rows(&t, ctx, run[i], k);
    }
    return t.rows ? output_table(ctx, &t, "retention", opt)
                  : (table_end(&t), ctx->status);
}

static void step_fields(table *t, const retention_step *s)
{
    table_num(t, s->distinct);
    table_num(t, s->span);
    table_num(t, s->mean_age);
    table_num(t, s->band_share);
    table_num(t, s->band_full);
}

static tt_status write_steps(tt_ctx *ctx, tt_recording *const *run, int n,
                             const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "steps");
    for (int i = 0; i < n; i++)
        for (int64_t c = 0; run[i]->readable && c < run[i]->chunks; c++) {
            retention_step s = retention_at(run[i], c, opt->layer);
            table_row(&t);
            table_str(&t, run[i]->label);
            table_num(&t, (double)c);
            step_fields(&t, &s);
        }
    return t.rows ? output_table(ctx, &t, "steps", opt)
                  : (table_end(&t), ctx->status);
}

static tt_status write_summary(tt_ctx *ctx, tt_recording *const *run, int n,
                               const drift_run *drift,
                               const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "summary");
    for (int i = 0; i < n; i++) {
        const tt_recording *r = run[i];
        const retention_step none = {NAN, NAN, NAN, NAN, NAN};
        retention_summary s = {none, none, NAN, NAN, NAN, NAN, NAN};
        if (r->readable && r->chunks) s = retention_sum_up(r, opt->layer);
        table_row(&t);
        table_str(&t, r->label);
        table_str(&t, r->policy);
        table_num(&t, (double)(r->readable ? r->frames : r->n));
        table_num(&t, r->readable ? (double)r->chunks : NAN);
        step_fields(&t, &s.last);
        step_fields(&t, &s.mean);
        table_num(&t, s.admissions);
        table_num(&t, s.rejections);
        table_num(&t, s.edits);
        table_num(&t, s.admitted);
        table_num(&t, s.lifetime);
        table_num(&t, drift ? drift_last_quarter(&drift[i], 0) : NAN);
        table_num(&t, drift ? drift_last_quarter(&drift[i], 1) : NAN);
    }
    return output_table(ctx, &t, "summary", opt);
}

/* ---- D ------------------------------------------------------------------- */

static void selection_rows(table *t, const tt_recording *r,
                           const tt_analyze_options *opt)
{
    for (int64_t i = 0; i < r->rounds; i++)
        for (int64_t k = 0; k < r->candidates; k++) {
            int64_t at = i * r->candidates + k;
            if (opt->layer >= 0 && r->grab_layer[i] != opt->layer) continue;
            if (r->grab_candidates[at] < 0) continue;
            table_row(t);
            table_str(t, r->label);
            table_num(t, (double)r->grab_chunk[i]);
            table_num(t, (double)r->grab_layer[i]);
            table_num(t, (double)r->grab_sub[i]);
            table_num(t, (double)r->grab_candidates[at]);
            table_num(t, r->grab_mass[at]);
            table_num(t, r->grab_div ? r->grab_div[at] : NAN);
            table_num(t, r->grab_scores[at]);
            table_num(t, (double)r->grab_keep[at]);
            table_num(t, r->grab_margin ? r->grab_margin[i] : NAN);
        }
}

static tt_status write_selection(tt_ctx *ctx, tt_recording *const *run, int n,
                                 const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "selection");
    for (int i = 0; i < n; i++) selection_rows(&t, run[i], opt);
    return t.rows ? output_table(ctx, &t, "selection", opt)
                  : (table_end(&t), ctx->status);
}

/* Deep Forcing: one row per source frame with candidates. */
static tt_status write_compression(tt_ctx *ctx, tt_recording *const *run,
                                   int n, const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "compression");
    for (int i = 0; i < n; i++) {
        const tt_recording *r = run[i];
        for (int64_t k = 0; k < r->event_frames; k++) {
            const int64_t *f = r->event_frame + 4 * k;
            const int64_t *e = r->event + 7 * f[0];
            if (opt->layer >= 0 && e[0] != opt->layer) continue;
            table_row(&t);
            table_str(&t, r->label);
            table_num(&t, (double)e[1]);
            table_num(&t, (double)e[0]);
            table_num(&t, (double)e[2]);
            for (int c = 1; c < 4; c++) table_num(&t, (double)f[c]);
            table_num(&t, r->event_phi[2 * k]);
            table_num(&t, r->event_phi[2 * k + 1]);
        }
    }
    return t.rows ? output_table(ctx, &t, "compression", opt)
                  : (table_end(&t), ctx->status);
}

/* Deep Forcing: every chosen token. At real sizes that is thousands per layer
 * and chunk, so only of a layer that was asked for, or when they are few. */
static tt_status write_chosen(tt_ctx *ctx, tt_recording *const *run, int n,
                              const tt_analyze_options *opt)
{
    enum { FEW = 200000 };
    table t;
    output_begin(&t, ctx, "chosen");
    for (int i = 0; i < n; i++) {
        const tt_recording *r = run[i];
        if (opt->layer < 0 && r->chosen > FEW) continue;
        for (int64_t k = 0; k < r->chosen; k++) {
            double row[6];
            memcpy(row, (const char *)r->chosen_token->data
                   + (size_t)k * sizeof row, sizeof row);
            tt_swap_stored(row, TT_F64, 6);
            if (opt->layer >= 0 && row[1] != (double)opt->layer) continue;
            table_row(&t);
            table_str(&t, r->label);
            for (int c = 0; c < 6; c++) table_num(&t, row[c]);
        }
    }
    return t.rows ? output_table(ctx, &t, "chosen", opt)
                  : (table_end(&t), ctx->status);
}

/* ---- all ----------------------------------------------------------------- */

static tt_status check_layer(tt_ctx *ctx, const tt_recording *r, int64_t layer)
{
    const bool no_slots = r->src && layer >= r->layers;
    const bool no_features = r->features && layer >= r->feature_layers;
    if (layer < 0 || (!no_slots && !no_features)) return TT_OK;
    const int64_t layers = no_slots ? r->layers : r->feature_layers;
    return tt_fail(ctx, TT_EINVAL, "%s has %lld layer%s: there is no layer "
                   "%lld (they count from 0)", r->path, (long long)layers,
                   layers == 1 ? "" : "s", (long long)layer);
}

tt_status output_check(tt_ctx *ctx, tt_recording *const *run, int n,
                       const tt_analyze_options *opt)
{
    if (n < 1 || n > RUNS_MAX)
        return tt_fail(ctx, TT_EINVAL, "1 to %d runs can be analysed together,"
                       " not %d", RUNS_MAX, n);
    if (opt->reference < 1 || opt->window < 1)
        return tt_fail(ctx, TT_EINVAL, "the reference and the window need at "
                       "least one frame");
    bool layers = opt->layer < 0;
    for (int i = 0; i < n; i++) {
        TT_TRY(check_layer(ctx, run[i], opt->layer));
        layers = layers || run[i]->src || run[i]->features;
    }
    if (!layers)
        return tt_fail(ctx, TT_EINVAL, "there is no layer %lld: only "
                       "`generate --analyze` and --trace-cache record layers",
                       (long long)opt->layer);
    if (opt->reference_run)
        TT_TRY(check_layer(ctx, opt->reference_run, opt->layer));
    return TT_OK;
}

tt_status tt_analyze(tt_ctx *ctx, tt_recording *const *run, int n,
                     const tt_analyze_options *opt)
{
    static const char *const name[] = {
        "drift", "biography", "weights", "retention", "steps",
        "summary", "selection", "compression", "chosen", NULL};
    tt_arena mem = {0};
    TT_TRY(output_check(ctx, run, n, opt));
    TT_TRY(output_keep(ctx, opt, name, "index"));
    TT_TRY(files_make_folder(ctx, opt->folder));
    drift_run *drift = tt_alloc(ctx, &mem, n, sizeof *drift, what);
    TT_TRY(ctx->status);
    int ndrift = drift_all(drift, ctx, &mem, run, n, opt);
    if (!ctx->status) write_drift(ctx, drift, ndrift, opt);
    if (!ctx->status) write_biography(ctx, run, n, opt);
    if (!ctx->status) write_weights(ctx, run, n, opt);
    if (!ctx->status) write_retention(ctx, run, n, opt);
    if (!ctx->status) write_steps(ctx, run, n, opt);
    if (!ctx->status)
        write_summary(ctx, run, n, ndrift == n ? drift : NULL, opt);
    if (!ctx->status) write_selection(ctx, run, n, opt);
    if (!ctx->status) write_compression(ctx, run, n, opt);
    if (!ctx->status) write_chosen(ctx, run, n, opt);
    if (!ctx->status && opt->html)
        tt_report_write(ctx, files_join(ctx, &mem, opt->folder, "index",
                                        ".html"),
                        n == 1 ? run[0]->label : "Runs compared", run, n, opt);
    tt_arena_free(&mem);
    return ctx->status;
}
