/* rounds.c: see rounds.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/rounds.h"

#include <string.h>

void rounds_clear(round_list *l)
{
    tt_arena_free(&l->mem);
    l->first = NULL;
    l->end = &l->first;
    l->n = 0;
}

void rounds_take(void *user, const tt_event *e)
{
    round_list *l = user;
    tt_ctx *ctx = l->ctx;
    int64_t P;
    const int64_t *candidates = tt_event_values(e, "candidates", TT_I64, &P);
    const double *scores = tt_event_values(e, "scores", TT_F64, NULL);
    const uint8_t *kept = tt_event_values(e, "keep", TT_U8, NULL);
    if (!candidates || !scores || !kept) return;  /* no admission round */
    round_item *r = tt_alloc0(ctx, &l->mem, 1, sizeof *r, "a round");
    int64_t *frame = tt_alloc(ctx, &l->mem, P, sizeof *frame, "a round");
    double *score = tt_alloc(ctx, &l->mem, P, sizeof *score, "a round");
    double *keep = tt_alloc(ctx, &l->mem, P, sizeof *keep, "a round");
    if (ctx->status) return;
    memcpy(frame, candidates, (size_t)P * sizeof *frame);
    memcpy(score, scores, (size_t)P * sizeof *score);
    for (int64_t i = 0; i < P; i++) keep[i] = kept[i];
    *r = (round_item){.layer = e->layer, .sub = tt_event_int(e, "sub"), .P = P,
                      .frame = frame, .score = score, .keep = keep};
    *l->end = r;
    l->end = &r->next;
    l->n++;
}

bool round_matches(const round_item *a, const round_item *b)
{
    return a->layer == b->layer && a->sub == b->sub && a->P == b->P
           && !memcmp(a->frame, b->frame, (size_t)a->P * sizeof *a->frame);
}

bool round_same_pick(const round_item *a, const round_item *b)
{
    return !memcmp(a->keep, b->keep, (size_t)a->P * sizeof *a->keep);
}
