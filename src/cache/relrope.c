/* relrope.c: what attention reads. Gather the planned slots and rotate the
 * keys to the positions the policy gives them now; those that a pass before
 * has left rotated stay (kept.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, block-relative RoPE: a frame's position is its place in
 *         the cache, so the model never sees a distance beyond K.
 * Source  tethercache/ (relative), wan/modules/causal_model.py (absolute; it
 *         stores rotated keys, which gives the same bits: the rotation is done
 *         in double from the unrotated key and rounded once).
 * Next    tether.c */
#include "cache/classes.h"
#include "cache/kept.h"
#include "ops/backend.h"
#include "core/device.h"

/* Tokens [lo, hi) of a segment. */
typedef struct rows {
    int64_t lo, hi;
} rows;

/* Frame, row and column of those tokens, of which the first of all is at frame
 * t0. */
static void fill_positions(int32_t *pos, const tt_geometry *geo, rows r,
                           int64_t t0, const int32_t *sidx,
                           const int32_t *tpos)
{
    for (int64_t i = r.lo; i < r.hi; i++, pos += 3) {
        const int64_t s = sidx[i];
        pos[0] = tpos ? tpos[i] : (int32_t)(t0 + i / geo->L);
        pos[1] = (int32_t)(s / geo->grid_w);
        pos[2] = (int32_t)(s % geo->grid_w);
    }
}

/* Policies move positions on by rules. Where those start from the numbers of a
 * saved state, it may show here only that no run leaves such numbers. */
static tt_status check_times(tt_ctx *ctx, const tt_cache *c, const tt_layer *y,
                             const tt_segment *s, rows r)
{
    const int64_t n = tt_cache_rope(c)->npos;
    const int64_t lo = s->slot + r.lo, hi = s->slot + r.hi;
    for (int64_t i = lo; i < hi; i++)
        if (y->tpos[i] < 0 || y->tpos[i] >= n)
            return tt_fail(ctx, TT_EFORMAT, "layer %lld: cache %s gives token "
                           "%lld the frame position %d, outside 0..%lld; if "
                           "this run goes on from a saved state, that is "
                           "damaged: start the run again", (long long)y->index,
                           tt_cache_class(c)->name, (long long)i,
                           (int)y->tpos[i], (long long)(n - 1));
    return TT_OK;
}

/* Are these rows tokens of whole frames, each at one position? */
static bool by_frames(const tt_layer *y, const tt_segment *s, rows r)
{
    const int64_t L = y->geo->L;
    const int32_t *sidx = y->sidx + s->slot, *tpos = y->tpos + s->slot;
    bool so = true;
    for (int64_t i = r.lo; i < r.hi && so; i++)
        so = sidx[i] == (s->slot + i) % L
             && (s->t0 == TT_T_PER_TOKEN
                 ? i == r.lo || sidx[i] == 0 || tpos[i] == tpos[i - 1]
                 : sidx[i] == i % L);
    return so;
}

/* A device finds them by itself. */
static const tt_index *located(tt_ctx *ctx, const tt_layer *y,
                               const tt_segment *s, rows r)
{
    const tt_geometry *geo = y->geo;
    const int64_t L = geo->L, at = s->slot + r.lo, skip = at % L;
    tt_locate_args a = { .to = tt_indices(ctx, &ctx->scratch,
                                          3 * (r.hi - r.lo)),
                         .first = r.lo, .t0 = s->t0, .n = r.hi - r.lo, .L = L,
                         .w = geo->grid_w };
    if (s->t0 == TT_T_PER_TOKEN) {
        const int64_t frames = (skip + a.n + L - 1) / L;
        int32_t *time = tt_alloc(ctx, &ctx->scratch, frames, sizeof *time,
                                 "positions");
        for (int64_t f = 0; time && f < frames; f++)
            time[f] = y->tpos[f ? at - skip + f * L : at];
        a.time = time;
        a.first = skip;
    }
    if (!ctx->status) tt_locate(ctx, &a);
    return a.to;
}

/* [n, 3] of the rows, in ctx->scratch. */
static const tt_index *relrope_positions(tt_ctx *ctx, const tt_cache *c,
                                         const tt_layer *y, const tt_segment *s,
                                         rows r)
{
    const tt_geometry *geo = y->geo;
    const bool own = s->t0 == TT_T_PER_TOKEN;
    if (own && check_times(ctx, c, y, s, r)) return NULL;
    if (ctx->device && by_frames(y, s, r)) return located(ctx, y, s, r);
    int32_t *pos = tt_alloc(ctx, &ctx->scratch, r.hi - r.lo, 3 * sizeof *pos,
                            "positions");
    if (pos)
        fill_positions(pos, geo, r, s->t0, y->sidx + s->slot,
                       own ? y->tpos + s->slot : NULL);
    return pos;
}

/* Of rows that lie at k. */
static void rotate_rows(tt_ctx *ctx, const tt_cache *c, tt_real *out,
                        const tt_real *k, const tt_layer *y,
                        const tt_segment *s, rows r)
{
    const tt_geometry *geo = y->geo;
    const int64_t width = geo->H * geo->D, n = r.hi - r.lo;
    if (s->t0 == TT_T_NONE) {
        tt_copy(ctx, out, k, n * width);
        return;
    }
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_index *pos = relrope_positions(ctx, c, y, s, r);
    tt_rope(ctx, out, k, n, geo->H, geo->D, tt_cache_rope(c), pos);
    tt_arena_reset(&ctx->scratch, m);
}

void cache_put_bf16(tt_ctx *ctx, tt_layer *y, int64_t slot, int64_t n,
                    const tt_qkv *x)
{
    const int64_t c = cache_row(y->geo), all = n * y->geo->H * y->geo->D;
    const tt_segment s = { slot, n, TT_T_PER_TOKEN };
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *rotated = tt_values(ctx, all);
    rotate_rows(ctx, y->cache, rotated, x->k, y, &s, (rows){ 0, n });
    tt_narrow(ctx, y->k + slot * c, rotated, all);
    tt_narrow(ctx, y->v + slot * c, x->v, all);
    tt_arena_reset(&ctx->scratch, m);
}

static void rotate_queries(tt_ctx *ctx, const tt_cache *c, tt_real *out,
                           const tt_real *in, int64_t frames, int64_t t0)
{
    const tt_geometry *geo = tt_cache_geometry(c);
    const int64_t n = frames * geo->L;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_index *pos = tt_indices(ctx, &ctx->scratch, 3 * n);
    tt_locate(ctx, &(tt_locate_args){ .to = pos, .t0 = t0, .n = n, .L = geo->L,
                                      .w = geo->grid_w });
    tt_rope(ctx, out, in, n, geo->H, geo->D, tt_cache_rope(c), pos);
    tt_arena_reset(&ctx->scratch, m);
}

static int64_t check_plan(const tt_plan *plan, const tt_layer *y)
{
    int64_t n = 0;
    TT_ASSERT(plan->nsegments >= 1 && plan->nsegments <= TT_MAX_SEGMENTS);
    for (int i = 0; i < plan->nsegments; i++) {
        const tt_segment *s = &plan->segment[i];
        TT_ASSERT(s->slot >= 0 && s->ntokens >= 0
                  && s->slot + s->ntokens <= y->len);
        n += s->ntokens;
    }
    TT_ASSERT(!y->geo->bf16 || (plan->nsegments == 1
                                && plan->segment[0].t0 == TT_T_PER_TOKEN));
    return n;
}

/* Where a segment meets the chunk's own slots, the last live ones. */
static rows own_rows(const tt_layer *y, const tt_pass *p, const tt_segment *s)
{
    rows r = { y->len - p->frames * y->geo->L - s->slot, y->len - s->slot };
    if (r.lo < 0) r.lo = 0;
    if (r.hi > s->ntokens) r.hi = s->ntokens;
    return r;
}

/* Tokens of a plan before the first of the chunk's own, in whole blocks. */
static int64_t leading(const tt_layer *y, const tt_pass *p, const tt_plan *plan)
{
    int64_t at = 0;
    for (int i = 0; i < plan->nsegments; i++) {
        const rows own = own_rows(y, p, &plan->segment[i]);
        if (own.lo < own.hi) return (at + own.lo) / TT_KEY_BLOCK * TT_KEY_BLOCK;
        at += plan->segment[i].ntokens;
    }
    return at / TT_KEY_BLOCK * TT_KEY_BLOCK;
}

/* What is kept for a plan. */
typedef struct reading {
    const tt_plan *plan;
    int64_t n;                   /* its tokens                                */
    cache_kept *kept;            /* NULL: nothing                             */
    bool there;                  /* all rows but the chunk's own ...          */
    int64_t n_packed;            /* ... or the first rows, packed         */
} reading;

static reading look_up(tt_ctx *ctx, tt_cache *c, const tt_layer *y,
                       const tt_pass *p, const tt_plan *plan)
{
    reading r = { .plan = plan, .n = check_plan(plan, y),
                  .kept = cache_kept_of(c, y->index) };
    if (!r.kept) return r;
    const bool there = kept_holds(ctx, r.kept, y, plan);
    kept_forget(r.kept);
    if (!kept_takes(ctx, r.kept, r.n)) r.kept = NULL;
    r.there = r.kept && r.kept->k && there;
    if (r.kept && r.kept->packed && there) r.n_packed = leading(y, p, plan);
    return r;
}

/* Rows of a segment, whose first is row `at` of all, that must be made. */
static rows new_rows(const reading *r, const tt_layer *y, const tt_pass *p,
                     const tt_segment *s, int64_t at)
{
    if (r->there) return own_rows(y, p, s);
    return (rows){ r->n_packed > at ? r->n_packed - at : 0, s->ntokens };
}

/* Where rows of a segment lie: those before `cut` in their slots, those from it
 * on where the pass has them. */
typedef struct source {
    const tt_real *slots, *own;
    int64_t cut;
} source;

static source source_of(const tt_layer *y, const tt_pass *p,
                        const tt_segment *s, const tt_real *all,
                        const tt_real *own)
{
    const int64_t width = y->geo->H * y->geo->D;
    const int64_t cut = y->len - p->frames * y->geo->L - s->slot;
    return (source){all + s->slot * width, own, own ? cut : s->ntokens};
}

/* The rows from r.lo on that lie together. */
static rows together(rows r, const source *from)
{
    if (r.lo < from->cut && from->cut < r.hi) r.hi = from->cut;
    return r;
}

static const tt_real *row_at(const source *from, int64_t row, int64_t width)
{
    return row < from->cut ? from->slots + row * width
                           : from->own + (row - from->cut) * width;
}

/* Slots of a plan of one segment, from row r->n_packed on. */
static const tt_real *in_place(const tt_layer *y, const tt_real *slots,
                               const reading *r)
{
    return slots + (r->plan->segment->slot + r->n_packed) * cache_row(y->geo);
}

/* The keys of a plan, rotated: what is to be packed, or all. */
static const tt_real *rotate_keys(tt_ctx *ctx, tt_cache *c, const tt_layer *y,
                                  const tt_pass *p, const reading *r)
{
    const int64_t width = y->geo->H * y->geo->D;
    const int64_t n = r->n - r->n_packed;
    if (y->geo->bf16) return in_place(y, y->k, r);
    tt_real *k = r->kept && r->kept->k ? r->kept->k : tt_values(ctx, n * width);
    if (ctx->status) return NULL;
    int64_t at = -r->n_packed;
    for (int i = 0; i < r->plan->nsegments; i++) {
        const tt_segment *s = &r->plan->segment[i];
        const source from = source_of(y, p, s, y->k, y->own_k);
        rows left = new_rows(r, y, p, s, at + r->n_packed);
        while (left.lo < left.hi) {
            const rows now = together(left, &from);
            rotate_rows(ctx, c, k + (at + now.lo) * width,
                        row_at(&from, now.lo, width), y, s, now);
            left.lo = now.hi;
        }
        at += s->ntokens;
    }
    return k;
}

/* Values of a plan from row r->n_packed on: in place, or one segment after the
 * other. */
static const tt_real *gather_values(tt_ctx *ctx, const tt_layer *y,
                                    const reading *r)
{
    const int64_t width = y->geo->H * y->geo->D;
    const tt_segment *s = r->plan->segment;
    if (r->plan->nsegments == 1) return in_place(y, y->v, r);
    tt_real *v = tt_values(ctx, (r->n - r->n_packed) * width), *to = v;
    int64_t skip = r->n_packed;
    for (int i = 0; i < r->plan->nsegments; i++, s++) {
        const int64_t from = skip < s->ntokens ? skip : s->ntokens;
        const int64_t n = (s->ntokens - from) * width;
        tt_copy(ctx, to, y->v + (s->slot + from) * width, n);
        if (v) to += n;
        skip -= from;
    }
    return v;
}

void tt_cache_read(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p,
                   tt_kv_view *out, tt_real *q_out, const tt_real *q_in)
{
    *out = (tt_kv_view){0};
    if (ctx->status) return;
    const tt_layer *y = cache_layer(c, layer);
    tt_plan plan = {0};
    tt_cache_class(c)->plan(ctx, y, p, &plan);
    if (ctx->status) return;
    const reading r = look_up(ctx, c, y, p, &plan);
    tt_kv_view view = { .k = rotate_keys(ctx, c, y, p, &r),
                        .v = gather_values(ctx, y, &r), .n = r.n,
                        .bf16 = y->geo->bf16 };
    rotate_queries(ctx, c, q_out, q_in, p->frames, plan.q_t0);
    if (ctx->status) return;
    *out = view;
    if (!r.kept) return;
    kept_note(ctx, r.kept, y, &plan, p);
    /* what no later pass will read need not stay */
    if (r.n_packed > 0 || r.kept->noted) out->packed = r.kept->packed;
    out->n_packed = r.n_packed;
    if (out->packed) kept_touch(ctx, cache_kept_of(c, 0), y->geo, r.n);
}
