/* tether.c: TetherCache, the policy. Sink, memory and recent frames in one
 * buffer; GRAB decides who enters memory, TAME how.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, eqs. 2-3 and the five-step procedure ("Putting It
 *         Together"): 1 evict, 2 write, 3 select, 4 edit, 5 write back.
 * Source  tethercache/ (policy and attention of the official code)
 * Model   [ sink 0..S-1 | memory S..S+M-1 | recent S+M..K-1 ], keys unrotated.
 *         A frame's position is its slot, so gaps in time close up. The first
 *         (noisiest) pass of a chunk evicts; the clean pass selects and edits
 *         before its own attention, so it already sees the new memory. In
 *         between the evicted frames are invisible.
 * Prompt  at a change everything stays; sinks and members keep what they say
 *         of the old prompt.
 * Holds   until the first eviction slots equal global frames: the same bits as
 *         `full` and `fifo`. Members are in chronological order.
 * Memory  beyond the buffer the pending eviction, one chunk, and the moments
 *         of trusted frames, four vectors a frame, so that a round reads only
 *         the frames that are new to it.
 * Next    grab.c, tame.c */
#include "cache/classes.h"
#include "cache/grab.h"
#include "cache/tame.h"

#include <stdio.h>
#include <string.h>

/* First frame slots of the regions (eq. 3), and their end K. */
typedef struct tt_regions {
    int64_t sink, memory, recent, K;
} tt_regions;

/* What a layer remembers besides its tokens; pointers are made on demand,
 * because the state is saved as plain bytes. Behind the struct follow
 *   int64_t mem_index[M], pend_src[chunk], known[S+M];
 *   double  moments[S+M, 4, H*D];      k mean, k m2, v mean, v m2 of a slot
 *   tt_real pend_k, pend_v[chunk, L*H*D] */
typedef struct state {
    int64_t filled;              /* the warm-up is over                       */
    int64_t occupancy;           /* memory slots in use                       */
    int64_t pending;             /* evicted frames waiting for the clean pass */
    int64_t pending_first;       /* global index the first of them goes by    */
    int64_t admissions, rejections, edits;
    int64_t reserved;
} state;

static tt_regions regions(const tt_layer *y)
{
    const tt_policy_options *o = y->opt;
    return (tt_regions){ 0, o->S, o->S + o->M, o->K };
}

static state *state_of(const tt_layer *y) { return y->state; }
static int64_t *mem_index(const tt_layer *y)
{
    return (int64_t *)(state_of(y) + 1);
}
static int64_t *pend_src(const tt_layer *y)
{
    return mem_index(y) + y->opt->M;
}
static int64_t frame_size(const tt_layer *y)
{
    return y->geo->L * y->geo->H * y->geo->D;
}
/* 1 when the moments of trusted slot i (sink, then memory) are up to date. */
static int64_t *known(const tt_layer *y)
{
    return pend_src(y) + y->geo->chunk;
}
static int64_t width_of(const tt_layer *y) { return y->geo->H * y->geo->D; }
static double *moments(const tt_layer *y, int64_t slot)
{
    const int64_t trusted = y->opt->S + y->opt->M;
    return (double *)(known(y) + trusted) + slot * 4 * width_of(y);
}
static tt_real *pend_k(const tt_layer *y, int64_t frame)
{
    return (tt_real *)moments(y, y->opt->S + y->opt->M) +
           frame * frame_size(y);
}
static tt_real *pend_v(const tt_layer *y, int64_t frame)
{
    return pend_k(y, y->geo->chunk + frame);
}

static size_t state_size(const tt_policy_options *o, const tt_geometry *geo)
{
    const int64_t pend[] = { o->M > 0 ? 2 : 0, geo->chunk, geo->L, geo->H,
                             geo->D };
    const int64_t rows[] = { o->S + o->M, 4, geo->H, geo->D };
    int64_t bytes, index, stat;
    if (!tt_checked_size(&bytes, pend, 5, sizeof(tt_real)) ||
        !tt_checked_size(&stat, rows, 4, sizeof(double)) ||
        !tt_checked_mul(&index, o->S + 2 * o->M + geo->chunk,
                        sizeof(int64_t)) ||
        !tt_checked_add(&bytes, bytes, index) ||
        !tt_checked_add(&bytes, bytes, stat))
        return INT64_MAX / 2;
    return sizeof(state) + (size_t)bytes;
}

static void reset(tt_ctx *ctx, tt_layer *y)
{
    (void)ctx;
    for (int64_t i = 0; i < y->opt->M; i++) mem_index(y)[i] = -1;
}

static bool valid(const tt_layer *y)
{
    const state *s = state_of(y);
    const int64_t M = y->opt->M, frames = y->geo->frames;
    bool ok = (s->filled == 0 || (s->filled == 1 && y->len == y->cap)) &&
              y->len % y->geo->L == 0 &&
              s->occupancy == (s->filled ? M : 0) &&
              s->pending >= 0 && s->pending <= y->geo->chunk &&
              s->pending_first >= -y->opt->R && s->pending_first < frames &&
              s->admissions >= 0 && s->admissions <= frames &&
              s->rejections >= 0 && s->rejections <= frames &&
              s->edits >= 0 && s->edits <= frames;
    for (int64_t i = 0; i < M; i++)
        ok = ok && mem_index(y)[i] >= -1 && mem_index(y)[i] < frames;
    for (int64_t i = 0; i < y->geo->chunk; i++)
        ok = ok && pend_src(y)[i] >= TT_SRC_NONE && pend_src(y)[i] < frames;
    for (int64_t i = 0; i < y->opt->S + M; i++)
        ok = ok && known(y)[i] >= 0 && known(y)[i] <= 1;
    return ok;
}

/* ---- write: steps A, B, C ------------------------------------------------ */

static void evict(tt_layer *y, const tt_pass *p);
static void commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                   const tt_real *q);

static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_real *q,
                  const tt_real *k, const tt_real *v)
{
    const int64_t L = y->geo->L, n = p->frames * L, end = p->start + p->frames;
    if (end > y->seen) {                               /* A: first pass */
        if (y->len + n <= y->cap) y->len += n;         /*    warm-up    */
        else evict(y, p);                              /*    steady     */
        y->seen = end;
    }
    tt_layer_put(y, y->len - n, p, k, v);              /* B: every pass */
    if (p->context) commit(ctx, y, p, q);              /* C: clean pass */
}

/* The chunk's f frames push out the f oldest recent ones, which wait aside
 * until the clean pass; an eviction nobody consumed is replaced.
 * When K is not reached exactly, this runs on a buffer whose last slots were
 * never written: they count as frames of zeros, and pending_first no longer
 * names the true frames. Code, and we: as is; check() warns. */
static void evict(tt_layer *y, const tt_pass *p)
{
    const tt_regions g = regions(y);
    const int64_t L = y->geo->L, size = frame_size(y), f = p->frames;
    state *s = state_of(y);
    s->pending = f;
    s->pending_first = y->seen - y->opt->R;
    if (y->opt->M > 0) {         /* without memory nobody asks for them again */
        const size_t bytes = (size_t)(f * size) * sizeof(tt_real);
        memcpy(pend_k(y, 0), y->k + g.recent * size, bytes);
        memcpy(pend_v(y, 0), y->v + g.recent * size, bytes);
    }
    for (int64_t i = 0; i < f; i++)
        pend_src(y)[i] = y->src_frame[(g.recent + i) * L];
    tt_layer_move(y, g.recent * L, (g.recent + f) * L,
                  (g.K - g.recent - f) * L);
    y->len = y->cap;
}

static void fill(tt_layer *y);
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                  const double *qbar, int64_t first, int64_t n, int64_t sub);

static void commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                   const tt_real *q)
{
    state *s = state_of(y);
    if (!s->filled && y->len == y->cap) fill(y);
    if (!s->filled || s->pending == 0 || y->opt->M == 0) return;

    const int64_t width = y->geo->H * y->geo->D;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    double *qbar = tt_alloc(ctx, &ctx->scratch, width, sizeof *qbar,
                            "mean query");
    /* Paper: the queries of the current frame. Code, and we: of the chunk. */
    tt_col_mean(ctx, qbar, q, p->frames * y->geo->L, width);
    /* Paper: one evicted frame at a time. Code: the whole chunk at once. */
    const int64_t step = y->opt->pool == TT_POOL_FRAME ? 1 : s->pending;
    for (int64_t i = 0; i < s->pending && !ctx->status; i += step)
        admit(ctx, y, p, qbar, i, step, i / step);
    s->pending = 0;
    tt_arena_reset(&ctx->scratch, m);
}

/* The cache is full for the first time: what stands in the memory region
 * becomes memory. */
static void fill(tt_layer *y)
{
    const tt_regions g = regions(y);
    state *s = state_of(y);
    s->filled = 1;
    s->occupancy = y->opt->M;
    for (int64_t i = 0; i < y->opt->M; i++) mem_index(y)[i] = g.memory + i;
}

/* ---- one admission round: GRAB, TAME, write back ------------------------- */

static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r, int64_t first);
static void write_back(tt_layer *y, const grab_round *r, int64_t first);
static void record(tt_layer *y, const tt_pass *p, const grab_round *r,
                   int64_t sub, double margin);

/* Bring the moments of the sink and of all members up to date. Only frames
 * admitted since the last round are read; sink and survivors never change. */
static void learn(tt_ctx *ctx, tt_layer *y)
{
    const int64_t L = y->geo->L, w = width_of(y);
    for (int64_t i = 0; i < regions(y).recent && !ctx->status; i++) {
        if (known(y)[i]) continue;
        double *m = moments(y, i);
        const int64_t at = i * frame_size(y);
        tame_learn(ctx, &(tame_moments){ m, m + w }, y->k + at, L, w);
        tame_learn(ctx, &(tame_moments){ m + 2 * w, m + 3 * w }, y->v + at, L,
                   w);
        known(y)[i] = 1;
    }
}

/* Taps of a round, under admit.<round>. */
static void show_scores(tt_ctx *ctx, const grab_round *r)
{
    if (!TT_TAPPED(ctx)) return;
    tt_tap_show(ctx, "grab.candidates", TT_I64, r->index, 1, &r->P);
    tt_tap_show(ctx, "grab.mass", TT_F64, r->mass, 1, &r->P);
    tt_tap_show(ctx, "grab.div", TT_F64, r->div, 1, &r->P);
    tt_tap_emit(ctx, "grab.score", TT_F64, r->score, 1, &r->P);
}

/* An injected selection must still fit the memory. */
static void show_keep(tt_ctx *ctx, const grab_round *r)
{
    int64_t kept = 0;
    if (!TT_TAPPED(ctx)) return;
    tt_tap_emit(ctx, "grab.keep", TT_U8, r->keep, 1, &r->P);
    for (int64_t c = 0; c < r->P; c++) kept += r->keep[c] != 0;
    if (kept != r->M)
        tt_fail(ctx, TT_EFORMAT, "%s/grab.keep: the injected selection keeps "
                "%lld candidates, but memory holds %lld", ctx->path,
                (long long)kept, (long long)r->M);
}

static void show_stats(tt_ctx *ctx, const tame_stats *s, const char *mean,
                       const char *sd, int64_t H, int64_t D)
{
    const int64_t dim[] = { H, D };
    if (!TT_TAPPED(ctx)) return;
    tt_tap_emit(ctx, mean, TT_F64, s->mean, 2, dim);
    tt_tap_emit(ctx, sd, TT_F64, s->sd, 2, dim);
}

/* The edited keys and values of candidate c. */
static void show_edited(tt_ctx *ctx, const tt_layer *y, int64_t c, int64_t i)
{
    const tt_geometry *g = y->geo;
    char name[40];
    if (!TT_TAPPED(ctx)) return;
    snprintf(name, sizeof name, "tame.k/c.%lld", (long long)c);
    TT_TAP(ctx, name, pend_k(y, i), g->L, g->H, g->D);
    snprintf(name, sizeof name, "tame.v/c.%lld", (long long)c);
    TT_TAP(ctx, name, pend_v(y, i), g->L, g->H, g->D);
}

/* Pending frames [first, first + n) against the members. */
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                  const double *qbar, int64_t first, int64_t n, int64_t sub)
{
    const tt_policy_options *o = y->opt;
    const tt_geometry *geo = y->geo;
    const tt_regions g = regions(y);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    state *s = state_of(y);
    int64_t *evicted = tt_alloc(ctx, &ctx->scratch, n, sizeof *evicted,
                                "candidates");
    for (int64_t i = 0; i < n && evicted; i++)
        evicted[i] = s->pending_first + first + i;

    grab_round r;
    double margin;
    grab_begin(ctx, &r, o->M + n, o->M, geo->L, geo->H, geo->D);
    TT_ASSERT(s->filled && s->occupancy == o->M);
    learn(ctx, y);
    for (int64_t i = 0; i < o->M; i++)
        grab_pool_known(&r, moments(y, g.memory + i), mem_index(y)[i]);
    grab_pool(ctx, &r, pend_k(y, first), evicted, n);
    grab_importance(ctx, &r, qbar, o->temperature);
    grab_diversity(ctx, &r);
    grab_score(ctx, &r, o->alpha);
    const size_t scope = tt_scope(ctx, "admit.%lld", (long long)sub);
    show_scores(ctx, &r);
    grab_select(ctx, &r, &margin);
    show_keep(ctx, &r);

    edit(ctx, y, &r, first);
    tt_scope_end(ctx, scope);
    if (ctx->status) return;
    write_back(y, &r, first);
    record(y, p, &r, sub, margin);
    tt_arena_reset(&ctx->scratch, m);
}

/* TAME on every admitted frame, in place in the pending copy. One snapshot of
 * the pool serves the round: frames admitted together do not see each other. */
static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r, int64_t first)
{
    const tt_geometry *geo = y->geo;
    const int64_t width = width_of(y);
    const double tau = y->opt->tau;
    state *s = state_of(y);
    /* Sink and memory lie next to each other: one range of slots. */
    const int64_t F = regions(y).recent;
    if (ctx->status || tau == 0) return;
    tame_stats k, v;
    tame_moments *frame = tt_alloc(ctx, &ctx->scratch, 2 * F, sizeof *frame,
                                   "trusted frames");
    for (int64_t i = 0; i < F && frame; i++) {
        double *m = moments(y, i);
        frame[i] = (tame_moments){ m, m + width };
        frame[F + i] = (tame_moments){ m + 2 * width, m + 3 * width };
    }
    tame_trusted(ctx, &k, frame, F, geo->L, width);
    tame_trusted(ctx, &v, frame + F, F, geo->L, width);
    show_stats(ctx, &k, "tame.mean_k", "tame.sd_k", geo->H, geo->D);
    show_stats(ctx, &v, "tame.mean_v", "tame.sd_v", geo->H, geo->D);
    for (int64_t c = s->occupancy; c < r->P; c++) {
        if (!r->keep[c]) continue;
        const int64_t i = first + c - s->occupancy;
        bool did = tame_edit(ctx, pend_k(y, i), geo->L, width, &k, tau);
        did |= tame_edit(ctx, pend_v(y, i), geo->L, width, &v, tau);
        s->edits += did;
        show_edited(ctx, y, c, i);
    }
}

/* New memory = the kept candidates in candidate order. Survivors only ever
 * move towards the front, so this works in place. */
static void write_back(tt_layer *y, const grab_round *r, int64_t first)
{
    const tt_regions g = regions(y);
    const int64_t L = y->geo->L, members = state_of(y)->occupancy;
    const size_t bytes = (size_t)frame_size(y) * sizeof(tt_real);
    state *s = state_of(y);
    int64_t slot = 0;
    for (int64_t c = 0; c < r->P; c++) {
        const int64_t to = g.memory + slot, evicted = first + c - members;
        if (!r->keep[c]) {
            s->rejections += c >= members;
            continue;
        }
        if (c < members) {
            tt_layer_move(y, to * L, (g.memory + c) * L, L);
            memmove(moments(y, to), moments(y, g.memory + c),
                    (size_t)(4 * width_of(y)) * sizeof(double));
        } else {
            memcpy(y->k + to * frame_size(y), pend_k(y, evicted), bytes);
            memcpy(y->v + to * frame_size(y), pend_v(y, evicted), bytes);
            for (int64_t i = to * L; i < (to + 1) * L; i++)
                y->src_frame[i] = y->tpos[i] = (int32_t)pend_src(y)[evicted];
            known(y)[to] = 0;
            s->admissions++;
        }
        mem_index(y)[slot++] = r->index[c];
    }
    TT_ASSERT(slot == y->opt->M);   /* there are more candidates than slots */
}

static void record(tt_layer *y, const tt_pass *p, const grab_round *r,
                   int64_t sub, double margin)
{
    tt_cache_record(y->cache, &(tt_grab_record){
        .layer = y->index, .chunk = p->chunk, .sub = sub,
        .P = r->P, .M = r->M,
        .candidates = r->index, .mass = r->mass, .div = r->div,
        .score = r->score, .keep = r->keep,
        .memory_after = mem_index(y),
        .margin = margin,
    });
}

/* ---- plan: step D -------------------------------------------------------- */

static void plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                 tt_plan *out)
{
    (void)ctx;
    out->nsegments = 1;
    out->segment[0] = (tt_segment){ 0, y->len, 0 };
    out->q_t0 = y->len / y->geo->L - p->frames;
}

static int64_t slots(const tt_policy_options *o, const tt_geometry *geo)
{
    return o->K * geo->L;
}

static int64_t positions(const tt_policy_options *o, const tt_geometry *geo)
{
    (void)geo;
    return o->K;
}

/* ---- options ------------------------------------------------------------- */

static tt_status check_regions(tt_ctx *ctx, tt_policy_options *o,
                               const tt_geometry *geo)
{
    TT_TRY(cache_check_budget(ctx, o));
    if (o->R == -1 && o->M >= 0 && o->M <= o->K && o->S <= o->K)
        o->R = o->K - o->S - o->M;
    if (o->S > o->K || o->R > o->K || o->M > o->K || o->M < -1)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: sink S = %lld, memory M = %lld and recent R = "
                       "%lld must not be negative and must fit the budget "
                       "K = %lld", (long long)o->S, (long long)o->M,
                       (long long)o->R, (long long)o->K);
    /* Code: reads past the buffer below this and crashes. We: refuse. */
    if (o->R < geo->chunk)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: recent R = %lld must hold at least one chunk "
                       "of %lld frames", (long long)o->R,
                       (long long)geo->chunk);
    if (o->M == -1) {
        o->M = o->K - o->S - o->R;
        if (o->M < 0)
            return tt_fail(ctx, TT_EINVAL,
                           "tether: the budget K = %lld leaves no room for "
                           "memory: it must be at least S + R = %lld + %lld",
                           (long long)o->K, (long long)o->S, (long long)o->R);
    }
    if (o->S + o->M + o->R != o->K)
        return tt_fail(ctx, TT_EINVAL,
                       "tether: the budget K = %lld must equal S + M + R = "
                       "%lld + %lld + %lld = %lld", (long long)o->K,
                       (long long)o->S, (long long)o->M, (long long)o->R,
                       (long long)(o->S + o->M + o->R));
    return TT_OK;
}

/* A warm-up that does not end exactly at K leaves never-written frames in the
 * cache and shifts frame indices; see evict(). */
static void warn_about_warm_up(tt_ctx *ctx, const tt_policy_options *o,
                               const tt_geometry *geo)
{
    const int64_t over = (o->K - geo->first_chunk) % geo->chunk;
    if (o->K >= geo->frames || over == 0) return;
    char lower[32] = "";
    if (o->K - over >= o->S + o->R)
        snprintf(lower, sizeof lower, "%lld or ", (long long)(o->K - over));
    tt_warn(ctx, "tether: chunks of %lld frames (the first of %lld) do not "
            "fill K = %lld exactly: %lld never-written frame(s) of zeros enter "
            "the cache and frame indices shift, as in the official code; "
            "K = %s%lld avoids this", (long long)geo->chunk,
            (long long)geo->first_chunk, (long long)o->K,
            (long long)over, lower, (long long)(o->K - over + geo->chunk));
}

static tt_status check(tt_ctx *ctx, tt_policy_options *o,
                       const tt_geometry *geo)
{
    TT_TRY(check_regions(ctx, o, geo));
    if (!(o->tau >= 0 && o->tau <= 1))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: tau = %g must lie in 0..1", o->tau);
    if (!(o->alpha >= 0 && o->alpha <= 1e6))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: alpha = %g must lie in 0..1e6", o->alpha);
    if (!(o->temperature > 0 && o->temperature <= 1e6))
        return tt_fail(ctx, TT_EINVAL,
                       "tether: the score temperature %g must be positive (at "
                       "most 1e6)", o->temperature);
    warn_about_warm_up(ctx, o, geo);
    return TT_OK;
}

const tt_policy_class cache_tether = {
    .name = "tether",
    .summary = "sink, memory chosen by GRAB and edited by TAME, recent frames "
               "(TetherCache)",
    .check = check,
    .slots = slots,
    .state_size = state_size,
    .reset = reset,
    .valid = valid,
    .write = write,
    .plan = plan,
    .positions = positions,
};

bool tt_cache_tether_info(tt_cache *c, int64_t layer,
                          tt_tether_info *out)
{
    if (tt_cache_class(c) != &cache_tether) return false;
    const tt_layer *y = tt_cache_layer(c, layer);
    const state *s = state_of(y);
    *out = (tt_tether_info){
        .filled = s->filled != 0,
        .M = y->opt->M,
        .memory_index = mem_index(y),
        .admissions = s->admissions,
        .rejections = s->rejections,
        .edits = s->edits,
    };
    return true;
}
