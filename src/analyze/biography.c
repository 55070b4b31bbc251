/* biography.c: what the summaries in a cache are made of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  MemRoPE keeps two moving averages of the keys and values it evicts.
 *         Their recipe needs no look at keys: it follows from which frames
 *         left the cache when. The first averages replace two frames, which
 *         are lost without entering any average. */
#include <string.h>

#include "analyze/measure.h"

static bool has_frame(const int64_t *src, int64_t slots, int64_t f)
{
    for (int64_t s = 0; s < slots; s++)
        if (src[s] == f) return true;
    return false;
}

/* share[f] of the frames that left between two steps; false when none did.
 * there [frames] is room. */
static bool evicted(double *share, bool *there, const tt_recording *r,
                    const int64_t *was, const int64_t *is)
{
    int64_t n = 0;
    memset(there, 0, (size_t)r->frames * sizeof *there);
    for (int64_t s = 0; s < r->slots; s++)
        if (is[s] >= 0) there[is[s]] = true;
    memset(share, 0, (size_t)r->frames * sizeof *share);
    for (int64_t s = 0; s < r->slots; s++) {
        int64_t f = was[s];
        if (f < 0 || is[s] <= -2 || there[f]) continue;
        share[f] += 1;
        n++;
    }
    for (int64_t f = 0; n && f < r->frames; f++) share[f] /= (double)n;
    return n > 0;
}

bool summary_weights(double *out, const tt_recording *r, int64_t layer,
                     double alpha_long, double alpha_short)
{
    const double alpha[2] = {alpha_long, alpha_short};
    const int64_t size = r->chunks * r->frames;
    tt_arena_mark m = tt_arena_here(&r->ctx->scratch);
    double *share = tt_alloc(r->ctx, &r->ctx->scratch, r->frames,
                             sizeof *share, "weights");
    bool *there = tt_alloc(r->ctx, &r->ctx->scratch, r->frames, sizeof *there,
                           "weights");
    bool any = false;
    memset(out, 0, (size_t)(2 * size) * sizeof *out);
    for (int64_t c = 1; there && c < r->chunks; c++) {
        const int64_t *is = r->src + (c * r->layers + layer) * r->slots;
        const int64_t *was = is - r->layers * r->slots;
        bool moved = evicted(share, there, r, was, is);
        for (int k = 0; k < 2; k++) {
            double *w = out + k * size + c * r->frames;
            const double *old = w - r->frames;
            bool before = has_frame(was, r->slots, -2 - k);
            if (alpha[k] < 0 || !has_frame(is, r->slots, -2 - k)) continue;
            any = true;
            double a = !before ? 1 : moved ? alpha[k] : 0;
            for (int64_t f = 0; f < r->frames; f++)
                w[f] = (1 - a) * old[f] + a * share[f];
        }
    }
    tt_arena_reset(&r->ctx->scratch, m);
    return any;
}
