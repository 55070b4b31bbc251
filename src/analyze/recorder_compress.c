/* recorder_compress.c: what Deep Forcing chose when it compressed the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the trace keeps per source frame how many tokens were candidates,
 *         how many were chosen and how they scored; the run folder gets every
 *         chosen token. (All scores of all candidates would be 40 000 numbers
 *         per layer and compression at 1.3B and 832x480.)
 * Relies  on being told after the chosen tokens moved to the slots after the
 *         sinks, where their source is still written next to them. */
#include <string.h>

#include "analyze/recorder.h"

static const char what[] = "the record of a run";

/* The fields of such an event. */
typedef struct choice {
    const double *score;           /* [n] source tokens: live ones, new ones  */
    const int64_t *frame, *reuse;  /* [n]                                     */
    const int64_t *selected;       /* [nselected] of them                     */
    int64_t n, nselected, kept;
} choice;

static bool read_choice(choice *c, const tt_event *e)
{
    c->score = tt_event_values(e, "score", TT_F64, &c->n);
    c->frame = tt_event_values(e, "frame", TT_I64, NULL);
    c->reuse = tt_event_values(e, "reuse", TT_I64, NULL);
    c->selected = tt_event_values(e, "selected", TT_I64, &c->nselected);
    c->kept = tt_event_int(e, "kept");
    return c->score && c->frame && c->reuse && c->selected;
}

typedef struct tally {
    int64_t first, last;       /* candidates: source tokens [first, last)     */
    int64_t lo, n;             /* frames lo .. lo + n - 1 occur               */
} tally;

static tally tally_of(const tt_recorder *r, const choice *c)
{
    const int64_t sink = tt_cache_options(r->cache)->S * r->L;
    tally t = {.first = sink, .last = c->n - (c->kept - sink - c->nselected)};
    int64_t hi = INT64_MIN;
    t.lo = INT64_MAX;
    for (int64_t i = t.first; i < t.last; i++) {
        if (c->frame[i] < t.lo) t.lo = c->frame[i];
        if (c->frame[i] > hi) hi = c->frame[i];
    }
    t.n = t.last > t.first ? hi - t.lo + 1 : 0;
    return t;
}

static void recorder_compress_count_frames(rec_choice *x, const choice *c,
                                           tally t)
{
    for (int64_t f = 0; f < t.n; f++) x->frame[3 * f] = t.lo + f;
    for (int64_t i = t.first; i < t.last; i++) {
        int64_t f = c->frame[i] - t.lo;
        double *phi = x->phi + 2 * f;
        if (!x->frame[3 * f + 1] || c->score[i] > phi[1]) phi[1] = c->score[i];
        phi[0] += c->score[i];
        x->frame[3 * f + 1]++;
    }
    for (int64_t i = 0; i < c->nselected; i++)
        x->frame[3 * (c->frame[c->selected[i]] - t.lo) + 2]++;
    for (int64_t f = 0; f < t.n; f++)
        if (x->frame[3 * f + 1])
            x->phi[2 * f] /= (double)x->frame[3 * f + 1];
}

/* chunk, layer, source frame, place in it, reuse before, phi */
static void recorder_compress_write_chosen(tt_recorder *r, const tt_event *e,
                                           const choice *c, int64_t first)
{
    const tt_layer *y = tt_cache_look(r->cache, e->layer);
    for (int64_t i = 0; r->chosen && i < c->nselected; i++) {
        const int64_t k = c->selected[i];
        const double row[6] = {
            (double)e->chunk, (double)e->layer,
            (double)(y->src_frame[first + i] + r->shift),
            (double)y->sidx[first + i], (double)c->reuse[k], c->score[k]};
        tt_st_append(r->chosen, 0, 1, row);
    }
}

void recorder_take_choice(tt_recorder *r, const tt_event *e)
{
    choice c;
    if (!read_choice(&c, e)) return;
    const tally t = tally_of(r, &c);
    rec_choice *x = tt_alloc0(r->ctx, &r->mem, 1, sizeof *x, what);
    if (!x) return;
    const int64_t head[7] = {e->layer, e->chunk, tt_event_int(e, "event"), c.n,
                             c.kept, c.nselected,
                             tt_event_int(e, "sink_delta")};
    memcpy(x->head, head, sizeof head);
    x->nframes = t.n;
    x->frame = tt_alloc0(r->ctx, &r->mem, 3 * t.n, sizeof *x->frame, what);
    x->phi = tt_alloc0(r->ctx, &r->mem, 2 * t.n, sizeof *x->phi, what);
    if (r->ctx->status) return;
    recorder_compress_count_frames(x, &c, t);
    recorder_compress_write_chosen(r, e, &c, t.first);
    *r->last_choice = x;
    r->last_choice = &x->next;
}
