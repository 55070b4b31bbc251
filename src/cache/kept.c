/* kept.c: see kept.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cache/kept.h"

#include "ops/backend.h"
#include "core/device.h"

#include <string.h>

static int64_t longest_window(const tt_policy_class *cls,
                        const tt_policy_options *opt, const tt_geometry *geo)
{
    return cls->reads ? cls->reads(opt, geo) : cls->slots(opt, geo);
}

int64_t kept_values(tt_ctx *ctx, const tt_policy_class *cls,
                    const tt_policy_options *opt, const tt_geometry *geo,
                    bool *packed)
{
    const int64_t n = longest_window(cls, opt, geo);
    *packed = ctx->ops->packed && n > TT_KEY_BLOCK;
    if (geo->bf16 && !*packed) return 0; /* keys lie rotated in their slots */
    return geo->H * (*packed ? ctx->ops->packed(ctx, n, geo->D) : n * geo->D);
}

void kept_make(tt_ctx *ctx, tt_arena *a, cache_kept *s, const tt_layer *y)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    bool packed;
    const int64_t n = kept_values(ctx, cls, y->opt, y->geo, &packed);
    *s = (cache_kept){ .capacity = longest_window(cls, y->opt, y->geo),
                      .D = y->geo->D,
                       .each = n / y->geo->H };
    for (int i = 0; i < 3; i++)
        s->meta[i] = tt_alloc(ctx, a, y->cap, sizeof *s->meta[i],
                              "kept keys");
    tt_real *x = tt_values_in(ctx, a, n, "kept keys");
    if (packed) s->packed = x;
    else if (n) s->k = x;
}

void kept_forget(cache_kept *s)
{
    if (s) s->valid = s->noted = false;
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

bool kept_takes(tt_ctx *ctx, const cache_kept *s, int64_t n)
{
    if (s->k) return n <= s->capacity;
    return ctx->ops->packed && ctx->ops->packed(ctx, n, s->D) <= s->each;
}

void kept_touch(tt_ctx *ctx, cache_kept *s, const tt_geometry *geo, int64_t n)
{
    const int64_t upto = geo->H * ctx->ops->packed(ctx, n, geo->D);
    if (ctx->device || upto <= s->touched) return;
    const double begin = ctx->profiling ? tt_now() : 0;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real **packed = tt_alloc(ctx, &ctx->scratch, geo->layers, sizeof *packed,
                                "kept keys");
    for (int64_t i = 0; packed && i < geo->layers; i++) packed[i] = s[i].packed;
    tt_zero_all(ctx, packed, geo->layers, s->touched, upto);
    if (packed) s->touched = upto;
    tt_arena_reset(&ctx->scratch, m);
    if (ctx->profiling)
        tt_profile_add(ctx, "first touches", tt_now() - begin, 0);
}

static bool trusts_unit(const tt_ctx *ctx)
{
    return ctx->matrix_unit > 0;
}

static bool same_layout(const tt_ctx *ctx, const cache_kept *s)
{
    return s->ops == ctx->ops && s->unit == trusts_unit(ctx);
}

bool kept_holds(tt_ctx *ctx, const cache_kept *s, const tt_layer *y,
                const tt_plan *plan)
{
    const int32_t *const now[] = { y->src_frame, y->sidx, y->tpos };
    bool same = s->valid && (s->k || same_layout(ctx, s))
                && s->len == y->len && same_plan(&s->plan, plan);
    for (int i = 0; same && i < 3; i++)
        same = !memcmp(s->meta[i], now[i], (size_t)y->len * sizeof **now);
    return same;
}

/* After the clean pass a chunk has no other one. */
void kept_note(tt_ctx *ctx, cache_kept *s, const tt_layer *y,
               const tt_plan *plan, const tt_pass *p)
{
    const int32_t *const now[] = { y->src_frame, y->sidx, y->tpos };
    s->noted = !p->context && !p->last;
    if (!s->noted) return;
    for (int i = 0; i < 3; i++)
        memcpy(s->meta[i], now[i], (size_t)y->len * sizeof **now);
    s->plan = *plan;
    s->len = y->len;
    s->ops = ctx->ops;
    s->unit = trusts_unit(ctx);
}

void kept_done(cache_kept *s)
{
    if (!s || !s->noted) return;
    s->valid = true;
    s->noted = false;
}
