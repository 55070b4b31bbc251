/* kept.c: see kept.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cache/kept.h"

#include "tether/device.h"

#include <string.h>

void kept_make(tt_ctx *ctx, tt_arena *a, cache_kept *s, const tt_layer *y)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    *s = (cache_kept){ .room = cls->reads ? cls->reads(y->opt, y->geo)
                                          : y->cap };
    for (int i = 0; i < 3; i++)
        s->meta[i] = tt_alloc(ctx, a, y->cap, sizeof *s->meta[i],
                              "kept keys");
    s->k = tt_values_in(ctx, a, s->room * y->geo->H * y->geo->D, "kept keys");
}

void kept_forget(cache_kept *s)
{
    if (s) s->good = false;
}

static bool same_plan(const tt_plan *a, const tt_plan *b)
{
    bool same = a->nsegments == b->nsegments;
    for (int i = 0; same && i < a->nsegments; i++) {
        const tt_segment *s = &a->segment[i], *t = &b->segment[i];
        same = s->slot == t->slot && s->ntokens == t->ntokens
               && s->t0 == t->t0;
    }
    return same;
}

bool kept_holds(const cache_kept *s, const tt_layer *y, const tt_plan *plan)
{
    const int32_t *const now[] = { y->src_frame, y->sidx, y->tpos };
    bool same = s->good && s->len == y->len && same_plan(&s->plan, plan);
    for (int i = 0; same && i < 3; i++)
        same = !memcmp(s->meta[i], now[i], (size_t)y->len * sizeof **now);
    return same;
}

/* Behind the clean pass a chunk has no other one. */
void kept_note(cache_kept *s, const tt_layer *y, const tt_plan *plan,
               const tt_pass *p)
{
    const int32_t *const now[] = { y->src_frame, y->sidx, y->tpos };
    s->good = !p->context && !p->last;
    if (!s->good) return;
    for (int i = 0; i < 3; i++)
        memcpy(s->meta[i], now[i], (size_t)y->len * sizeof **now);
    s->plan = *plan;
    s->len = y->len;
}
