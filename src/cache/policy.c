/* policy.c: the list of policies, and checks that several of them share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the build lists policies/NAME.c as POLICY(NAME): each such file
 *         defines the class cache_NAME. That makes a new policy one file.
 * Next    knobs.c */
#include "cache/classes.h"

#include <string.h>

#define POLICY(name) extern const tt_policy_class cache_##name;
#include "cache_policies.h"
#undef POLICY

#define POLICY(name) &cache_##name,
static const tt_policy_class *const table[] = {
#include "cache_policies.h"
};
#undef POLICY

const tt_policy_class *tt_policy_at(int i)
{
    const int n = (int)(sizeof table / sizeof table[0]);
    return i >= 0 && i < n ? table[i] : NULL;
}

const tt_policy_class *tt_policy_find(const char *name)
{
    const tt_policy_class *c;
    for (int i = 0; name && (c = tt_policy_at(i)); i++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

static tt_status check_layers(tt_ctx *ctx, const tt_geometry *g)
{
    if (g->layers < 1 || g->layers > 65536 || g->H < 1 || g->D < 2
        || g->D % 2 || g->H > CACHE_MAX_FRAMES || g->D > CACHE_MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL,
                       "cache: %lld layers of %lld heads of %lld values: at "
                       "least 1 of each, and an even head width, are needed",
                       (long long)g->layers, (long long)g->H, (long long)g->D);
    return TT_OK;
}

tt_status cache_check_geometry(tt_ctx *ctx, const tt_geometry *g)
{
    int64_t L;
    TT_TRY(check_layers(ctx, g));
    if (g->grid_h < 1 || g->grid_w < 1
        || !tt_checked_mul(&L, g->grid_h, g->grid_w) || L != g->L)
        return tt_fail(ctx, TT_EINVAL,
                       "cache: a grid of %lld x %lld patches does not give "
                       "%lld tokens per frame",
                       (long long)g->grid_h, (long long)g->grid_w,
                       (long long)g->L);
    if (L > CACHE_MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL,
                       "cache: %lld x %lld patches are %lld tokens per frame, "
                       "more than %lld; use a smaller picture",
                       (long long)g->grid_h, (long long)g->grid_w,
                       (long long)L, (long long)CACHE_MAX_FRAMES);
    if (g->chunk < 1 || g->first_chunk < 1 || g->first_chunk > g->chunk
        || g->frames < 1 || g->frames > CACHE_MAX_FRAMES
        || g->chunk > CACHE_MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL,
                       "cache: %lld frames in chunks of %lld (the first of "
                       "%lld): expected 1 <= first <= chunk and 1..%lld frames",
                       (long long)g->frames, (long long)g->chunk,
                       (long long)g->first_chunk, (long long)CACHE_MAX_FRAMES);
    return TT_OK;
}

tt_status cache_check_budget(tt_ctx *ctx, const tt_policy_options *o)
{
    if (o->S < 0)
        return tt_fail(ctx, TT_EINVAL, "%s: the sink S = %lld must not be "
                       "negative", o->name, (long long)o->S);
    if (o->K < 1 || o->K > CACHE_MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL,
                       "%s: the budget K = %lld must lie in 1..%lld frames",
                       o->name, (long long)o->K, (long long)CACHE_MAX_FRAMES);
    return TT_OK;
}

/* Code: below this, slices go wrong silently. We: refuse. */
tt_status cache_check_window(tt_ctx *ctx, tt_policy_options *o,
                             const tt_geometry *geo)
{
    TT_TRY(cache_check_budget(ctx, o));
    if (o->K - o->S >= geo->chunk) return TT_OK;
    int64_t least = INT64_MAX;   /* S + chunk, unless that is even more */
    tt_checked_add(&least, o->S, geo->chunk);
    return tt_fail(ctx, TT_EINVAL,
                   "%s: the budget K = %lld must be at least S + chunk = "
                   "%lld + %lld = %lld frames", o->name, (long long)o->K,
                   (long long)o->S, (long long)geo->chunk,
                   (long long)least);
}

tt_status cache_check_fifo(tt_ctx *ctx, tt_policy_options *o,
                           const tt_geometry *geo)
{
    if (o->K != -1) return cache_check_window(ctx, o, geo);
    if (o->S < 0)                /* no window: nothing is ever evicted */
        return tt_fail(ctx, TT_EINVAL, "%s: the sink S = %lld must not be "
                       "negative", o->name, (long long)o->S);
    o->S = 0;
    return TT_OK;
}
