/* policy.c: the list of policies, their official defaults, common checks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  inference_long.py (defaults of the command line), tethercache's
 *         configuration class (alpha, tau, temperature).
 * Paper: tau 0.6. Code: tau 0.35. We: 0.35; the preset `paper` of the command
 * line sets 0.6. */
#include "cache/classes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const tt_policy_class *const table[] = {
    &cache_tether, &cache_fifo, &cache_full, &cache_infinity, &cache_memrope,
    &cache_deep_sink, &cache_deep_forcing, &cache_causvid,
    &cache_causvid_rolling,
};

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

tt_policy_options tt_policy_defaults(const char *name)
{
    tt_policy_options o = {
        .name = name,
        .K = 21, .S = 3, .M = -1, .R = 4,
        .alpha = 0.35, .tau = 0.35, .temperature = 1.0,
        .pool = TT_POOL_CHUNK,
        .context_noise = 0,
        .cut_at = 45,
        .method = TT_MEMROPE_EMA, .alpha_long = 0.01, .alpha_short = 0.1,
        .compress_to = 16, .max_reuse = 7, .fusion = TT_FUSION_SUM,
    };
    const tt_policy_class *c = tt_policy_find(name);
    if (c && c->defaults) c->defaults(&o);
    return o;
}

int tt_policy_describe(char *buf, size_t n, const tt_policy_options *o)
{
    return snprintf(buf, n,
        "cache=%s\nK=%" PRId64 "\nS=%" PRId64 "\nM=%" PRId64 "\nR=%" PRId64
        "\nalpha=%.15g\ntau=%.15g\ntemperature=%.15g\npool=%s\ncut_at=%" PRId64
        "\nraw_slot0=%d\nmemrope_method=%s\nalpha_long=%.15g\n"
        "alpha_short=%.15g\nadaptive=%d\ncompress_to=%" PRId64
        "\nmax_reuse=%" PRId64 "\nfusion=%s\nunify=%d\n",
        o->name ? o->name : "", o->K, o->S, o->M, o->R, o->alpha, o->tau,
        o->temperature, o->pool == TT_POOL_FRAME ? "frame" : "chunk",
        o->cut_at, o->raw_slot0,
        o->method == TT_MEMROPE_EVICTION ? "eviction" : "ema", o->alpha_long,
        o->alpha_short, o->adaptive, o->compress_to, o->max_reuse,
        o->fusion == TT_FUSION_MAX ? "max" : "sum", o->unify);
}

tt_status cache_check_geometry(tt_ctx *ctx, const tt_geometry *g)
{
    int64_t L;
    if (g->layers < 1 || g->layers > 65536 || g->H < 1 || g->D < 2 ||
        g->D % 2 || g->H > CACHE_MAX_FRAMES || g->D > CACHE_MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL,
                       "cache: %lld layers of %lld heads of %lld values: at "
                       "least 1 of each, and an even head width, are needed",
                       (long long)g->layers, (long long)g->H, (long long)g->D);
    if (g->grid_h < 1 || g->grid_w < 1 ||
        !tt_checked_mul(&L, g->grid_h, g->grid_w) || L != g->L)
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
    if (g->chunk < 1 || g->first_chunk < 1 || g->first_chunk > g->chunk ||
        g->frames < 1 || g->frames > CACHE_MAX_FRAMES ||
        g->chunk > CACHE_MAX_FRAMES)
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
    return tt_fail(ctx, TT_EINVAL,
                   "%s: the budget K = %lld must be at least S + chunk = "
                   "%lld + %lld = %lld frames", o->name, (long long)o->K,
                   (long long)o->S, (long long)geo->chunk,
                   (long long)(o->S + geo->chunk));
}
