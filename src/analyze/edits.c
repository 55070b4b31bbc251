/* edits.c: what TAME did to the statistics of admitted frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, eqs. 11-13.
 * Model   a run folder has mean and deviation of every channel of a frame's own
 *         keys and values (kv_stats) and the rounds of GRAB. The trusted frames
 *         of a round are the sinks and the members before it; an edit with tau
 *         takes mean and deviation of a channel by that part to those of the
 *         trusted frames. So all of them follow, frame by frame, up to the
 *         rounding of kv_stats to float. */
#include <math.h>
#include <string.h>

#include "analyze/measure.h"

static const char what[] = "edits of memory";

/* One layer: statistics of every frame as they are in the cache by now. */
typedef struct edits {
    tt_ctx *ctx;
    tt_arena mem;
    const tt_recording *r;
    int64_t layer;
    float **now;         /* [nfeatures] each [4, width]; NULL: not read yet   */
    double *trusted;     /* [4, width]                                        */
} edits;

static float *frame_of(edits *e, int64_t f)
{
    const int64_t w = e->r->width;
    if (f < 0 || f >= e->r->nfeatures) return NULL;
    if (!e->now[f]) {
        e->now[f] = tt_alloc(e->ctx, &e->mem, 4 * w, sizeof(float), what);
        if (e->now[f])
            tt_widen_at_f32(e->now[f], e->r->features,
                            (f * e->r->feature_layers + e->layer) * 4 * w,
                            4 * w);
    }
    return e->now[f];
}

int64_t round_members(const tt_recording *r, int64_t round)
{
    int64_t kept = 0;
    for (int64_t c = 0; c < r->candidates; c++)
        kept += r->grab_keep[round * r->candidates + c];
    return kept;
}

/* The frames of sink slot s, then of the members of the round. */
static int64_t trusted_frame(const edits *e, int64_t round, int64_t i)
{
    const tt_recording *r = e->r;
    if (i < r->S)
        return r->src[(r->grab_chunk[round] * r->layers + e->layer) * r->slots
                      + i];
    return r->grab_candidates[round * r->candidates + i - r->S];
}

/* Eqs. 11 and 12; false where a frame has no statistics. */
static bool trust(edits *e, int64_t round)
{
    const int64_t w = e->r->width, n = e->r->S + round_members(e->r, round);
    double *t = e->trusted;
    memset(t, 0, (size_t)(4 * w) * sizeof *t);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i++) {
            const float *x = frame_of(e, trusted_frame(e, round, i));
            if (!x) return false;
            for (int64_t k = 0; k < 2 * w; k++) {
                const int64_t m = k / w * 2 * w + k % w;
                if (!pass) t[m] += x[m] / (double)n;
                else t[m + w] += ((double)x[m + w] * x[m + w]
                                  + (x[m] - t[m]) * (x[m] - t[m])) / (double)n;
            }
        }
    for (int64_t k = 0; k < 2 * w; k++) {
        double *sd = &t[k / w * 2 * w + w + k % w];
        *sd = fmax(1e-6, sqrt(*sd));
    }
    return n > 0;
}

/* Eq. 13 of what is known of a frame. */
static void take_edit(edits *e, float *x)
{
    for (int64_t i = 0; i < 4 * e->r->width; i++)
        x[i] = (float)((1 - e->r->tau) * x[i] + e->r->tau * e->trusted[i]);
}

static void one_round(edits *e, int64_t round, edit_fn fn, void *user)
{
    const tt_recording *r = e->r;
    const int64_t first = round_members(r, round);
    if (r->grab_chunk[round] >= r->chunks || !trust(e, round)) return;
    for (int64_t c = first; c < r->candidates && !e->ctx->status; c++) {
        const int64_t at = round * r->candidates + c;
        float *x = r->grab_keep[at] ? frame_of(e, r->grab_candidates[at])
                                    : NULL;
        if (!x) continue;
        const frame_edit reported = {round, e->layer, r->grab_candidates[at],
                                     e->trusted, x};
        fn(user, r, &reported);
        take_edit(e, x);
    }
}

tt_status edits_all(tt_ctx *ctx, const tt_recording *r, edit_fn fn, void *user)
{
    const bool known = r->rounds && r->features && r->src && r->tau > 0
                    && r->S >= 0 && r->S <= r->slots
                    && r->feature_layers == r->layers;
    for (int64_t i = 0; known && i < r->layers && !ctx->status; i++) {
        edits e = {.ctx = ctx, .r = r, .layer = i};
        e.now = tt_alloc0(ctx, &e.mem, r->nfeatures, sizeof *e.now, what);
        e.trusted = tt_alloc(ctx, &e.mem, 4 * r->width, sizeof *e.trusted,
                             what);
        for (int64_t k = 0; e.trusted && k < r->rounds && !ctx->status; k++)
            if (r->grab_layer[k] == i) one_round(&e, k, fn, user);
        tt_arena_free(&e.mem);
    }
    return ctx->status;
}

edit_part edit_sum_up(const tt_recording *r, const frame_edit *e, bool values)
{
    const int64_t w = r->width, at = values ? 2 * w : 0;
    edit_part p = {0};
    double far = -1;
    for (int64_t i = 0; i < w; i++) {
        const double sd = e->trusted[at + w + i];
        const double z = ((double)e->own[at + i] - e->trusted[at + i]) / sd;
        p.distance += z * z / (double)w;
        p.spread += e->own[at + w + i] / sd / (double)w;
        if (fabs(z) <= far) continue;
        far = fabs(z);
        p.channel = i;
        p.own[0] = e->own[at + i];
        p.own[1] = e->own[at + w + i];
        p.trusted[0] = e->trusted[at + i];
        p.trusted[1] = sd;
    }
    p.distance = sqrt(p.distance);
    return p;
}
