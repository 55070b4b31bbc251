/* retention.c: which frames could still be read, and for how long.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "analyze/measure.h"

/* Layers [*first, *end) that `layer` means. */
static void layer_range(int64_t *first, int64_t *end, const tt_recording *r,
                        int64_t layer)
{
    *first = layer < 0 ? 0 : layer;
    *end = layer < 0 ? r->layers : layer + 1;
}

void retention_map(double *out, const tt_recording *r, int64_t layer)
{
    int64_t first, end;
    layer_range(&first, &end, r, layer);
    for (int64_t c = 0; c < r->chunks; c++)
        for (int64_t f = 0; f < r->frames; f++) {
            double sum = 0;
            for (int64_t i = first; i < end; i++)
                sum += r->readable[(c * r->layers + i) * r->frames + f];
            out[c * r->frames + f] = sum / (double)(end - first);
        }
}

static retention_step step_of_layer(const double *readable, int64_t newest)
{
    double total = 0, age = 0, band = 0;
    int64_t oldest = newest, distinct = 0;
    for (int64_t f = newest; f >= 0; f--) {
        if (!(readable[f] > 0)) continue;
        oldest = f;
        distinct++;
        total += readable[f];
        age += readable[f] * (double)(newest - f);
        if (newest - f <= RETENTION_BAND) band += readable[f];
    }
    int64_t width = newest < RETENTION_BAND ? newest + 1 : RETENTION_BAND + 1;
    return (retention_step){
        .distinct = (double)distinct, .span = (double)(newest - oldest),
        .mean_age = total > 0 ? age / total : 0,
        .band_share = total > 0 ? band / total : 0,
        .band_full = band / (double)width};
}

static void add_step(retention_step *sum, retention_step s, double weight)
{
    sum->distinct += weight * s.distinct;
    sum->span += weight * s.span;
    sum->mean_age += weight * s.mean_age;
    sum->band_share += weight * s.band_share;
    sum->band_full += weight * s.band_full;
}

retention_step retention_at(const tt_recording *r, int64_t c, int64_t layer)
{
    int64_t first, end;
    retention_step sum = {0};
    layer_range(&first, &end, r, layer);
    for (int64_t i = first; i < end; i++)
        add_step(&sum,
                 step_of_layer(r->readable + (c * r->layers + i) * r->frames,
                               r->start[c] + r->count[c] - 1),
                 1 / (double)(end - first));
    return sum;
}

/* ---- members of memory --------------------------------------------------- */

/* stays[f] = chunks after chunk `filled` with frame f in the memory of a layer,
 * once each whatever the slots; -1 for what was there in that chunk already.
 * stays, last [frames] are 0 before. */
static void count_stays(int64_t *stays, int64_t *last, const tt_recording *r,
                        int64_t layer, int64_t filled)
{
    for (int64_t c = filled; c < r->chunks; c++)
        for (int64_t s = 0; s < r->slots; s++) {
            const int64_t at = (c * r->layers + layer) * r->slots + s;
            const int64_t f = r->src[at];
            if (f < 0 || r->region[at] != TT_REGION_MEMORY) continue;
            if (stays[f] < 0 || last[f] == c + 1) continue;
            last[f] = c + 1;
            stays[f] = c == filled ? -1 : stays[f] + 1;
        }
}

/* Chunks that admitted frames spent in the memory of a layer. Its first members
 * were there when it filled and were never chosen: they do not count. */
static void count_members(const tt_recording *r, int64_t layer,
                          double *admitted, double *chunks)
{
    tt_ctx *ctx = r->ctx;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    int64_t *stays = tt_alloc0(ctx, &ctx->scratch, r->frames, sizeof *stays,
                               "members of memory");
    int64_t *last = tt_alloc0(ctx, &ctx->scratch, r->frames, sizeof *last,
                              "members of memory");
    int64_t filled = r->chunks;
    for (int64_t c = 0; c < r->chunks && filled == r->chunks; c++)
        for (int64_t s = 0; s < r->slots; s++)
            if (r->region[(c * r->layers + layer) * r->slots + s]
                == TT_REGION_MEMORY) filled = c;
    if (last) count_stays(stays, last, r, layer, filled);
    for (int64_t f = 0; last && f < r->frames; f++) {
        if (stays[f] <= 0) continue;
        *admitted += 1;
        *chunks += (double)stays[f];
    }
    tt_arena_reset(&ctx->scratch, m);
}

retention_summary retention_sum_up(const tt_recording *r, int64_t layer)
{
    retention_summary s = {.admissions = NAN, .rejections = NAN,
                           .edits = NAN, .lifetime = NAN};
    int64_t first, end;
    double chunks = 0;
    layer_range(&first, &end, r, layer);
    for (int64_t c = 0; c < r->chunks; c++)
        add_step(&s.mean, retention_at(r, c, layer), 1 / (double)r->chunks);
    s.last = retention_at(r, r->chunks - 1, layer);
    if (r->counters) s.admissions = s.rejections = s.edits = 0;
    for (int64_t i = first; i < end; i++) {
        count_members(r, i, &s.admitted, &chunks);
        if (!r->counters) continue;
        const int64_t *n = r->counters
                         + ((r->chunks - 1) * r->layers + i) * 3;
        s.admissions += (double)n[0];
        s.rejections += (double)n[1];
        s.edits += (double)n[2];
    }
    if (s.admitted > 0) s.lifetime = chunks / s.admitted;
    return s;
}
