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

void rounds_free(round_list *l)
{
    tt_arena_free(&l->mem);
}

void rounds_take(void *user, const tt_grab_record *g)
{
    round_list *l = user;
    tt_ctx *ctx = l->ctx;
    round_item *r = tt_alloc0(ctx, &l->mem, 1, sizeof *r, "a round");
    int64_t *frame = tt_alloc(ctx, &l->mem, g->P, sizeof *frame, "a round");
    double *score = tt_alloc(ctx, &l->mem, g->P, sizeof *score, "a round");
    double *keep = tt_alloc(ctx, &l->mem, g->P, sizeof *keep, "a round");
    if (ctx->status) return;
    memcpy(frame, g->candidates, (size_t)g->P * sizeof *frame);
    memcpy(score, g->score, (size_t)g->P * sizeof *score);
    for (int64_t i = 0; i < g->P; i++) keep[i] = g->keep[i];
    *r = (round_item){.layer = g->layer, .sub = g->sub, .P = g->P,
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
