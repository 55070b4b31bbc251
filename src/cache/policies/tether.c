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
 * Memory  beyond the buffer room for the keys of one chunk, whatever the number
 *         of layers: the evicted frames wait in the slots of the chunk, which
 *         has none of its own before the clean pass has decided about them
 *         (tether_state.c).
 * Next    grab.c, tame.c, tether_state.h */
#include "cache/classes.h"
#include "cache/grab.h"
#include "cache/tame.h"
#include "cache/tether_state.h"
#include "ops/backend.h"
#include "core/device.h"
#include "team/team.h"

#include <stdio.h>
#include <string.h>

/* First frame slots of the regions (eq. 3), and their end K. */
typedef struct tt_regions {
    int64_t sink, memory, recent, K;
} tt_regions;

static tt_regions regions(const tt_layer *y)
{
    const tt_policy_options *o = y->opt;
    return (tt_regions){ 0, o->S, o->S + o->M, o->K };
}

/* ---- the five steps ------------------------------------------------------ */

static void tether_evict(tt_ctx *ctx, tt_layer *y, const tt_pass *p);

/* The first pass of a chunk. Where frames are evicted, they are in its slots
 * after it: the last live ones. */
static void tether_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_qkv *x)
{
    (void)x;
    const int64_t n = p->frames * y->geo->L;
    if (y->len + n <= y->cap) y->len += n;               /* warm-up           */
    else tether_evict(ctx, y, p);                        /* 1 evict    */
}

/* Step 2, in every pass. The evicted frames have the slots of the chunk until
 * the clean pass: its keys are rotated from where the pass has them, its values
 * take the slots for as long as a layer attends. Without a clean pass no one
 * will ever ask for evicted frames: the chunk has its slots. */
static void tether_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_qkv *x)
{
    if (p->last && !p->context) tether_of(y)->pending = 0;
    if (tether_of(y)->pending > 0) {
        if (p->context) return;                          /* commit does it    */
        y->own_k = x->k;
        tether_set_aside(ctx, y);
    }
    tt_layer_put(ctx, y, p, x);
}

/* Not the clean pass: the evicted frames are still needed, the chunk is not. */
static void tether_done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    (void)p;
    if (tether_of(y)->pending > 0) tether_put_back(ctx, y);
}

/* Step 1. The chunk's f frames push out the f oldest recent ones, which wait
 * until the clean pass. Without memory no one asks for them again.
 * When K is not reached exactly, this runs on a buffer whose last slots were
 * never written: they count as frames of zeros, and pending_first no longer
 * names the true frames. Code, and we: as is; tether_check warns. */
static void tether_evict(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    const tt_regions g = regions(y);
    const int64_t L = y->geo->L, f = p->frames;
    tether_state *s = tether_of(y);
    if (s->pending > 0) {
        tt_fail(ctx, TT_EINVAL, "tether: frame %lld begins a chunk, but the "
                "chunk before it had no last pass; end every chunk with the "
                "context pass, or with one that says `last`",
                (long long)p->start);
        return;
    }
    s->pending = y->opt->M > 0 ? f : 0;
    s->pending_first = y->seen - y->opt->R;
    for (int64_t i = 0; i < f; i++)
        tether_pend_src(y)[i] = y->src_frame[(g.recent + i) * L];
    y->len = y->cap;
    if (s->pending > 0) tether_turn(ctx, y, g.recent);
    else tt_layer_move(ctx, y, g.recent * L, (g.recent + f) * L,
                       (g.K - g.recent - f) * L);
}

static void tether_fill(tt_layer *y);
static void tether_admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_real *q, int64_t first, int64_t n,
                         int64_t round);

/* Steps 3-5, in the clean pass. Paper: one evicted frame at a time. Code: the
 * whole chunk at once. */
static void tether_commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                          const tt_qkv *x)
{
    tether_state *s = tether_of(y);
    if (!s->filled && y->len == y->cap) tether_fill(y);
    if (!s->filled || s->pending == 0) return;
    const bool by_frame = y->opt->own[TETHER_POOL].n == TETHER_BY_FRAME;
    const int64_t step = by_frame ? 1 : s->pending;
    for (int64_t i = 0; i < s->pending && !ctx->status; i += step)
        tether_admit(ctx, y, p, x->q, i, step, i / step);
    s->pending = 0;
    y->own_k = NULL;
    tt_layer_put(ctx, y, p, x);
}

/* The cache is full for the first time: what stands in the memory region
 * becomes memory. */
static void tether_fill(tt_layer *y)
{
    const tt_regions g = regions(y);
    tether_state *s = tether_of(y);
    s->filled = 1;
    s->occupancy = y->opt->M;
    for (int64_t i = 0; i < y->opt->M; i++) tether_members(y)[i] = g.memory + i;
}

/* ---- one admission round ------------------------------------------------- */

/* What a round needs to know of values, got at once. */
typedef struct statistics {
    const double *query;     /* [width] mean query of the chunk               */
    const double *m;         /* [frames, 4, width] mean and second moment of
                                keys, then of values: of sink, members and
                                pending frames, in this order                 */
} statistics;

static statistics learn(tt_ctx *ctx, const tt_layer *y, const tt_real *q,
                        int64_t nq)
{
    const int64_t L = y->geo->L, w = tether_width(y), size = tether_frame(y);
    const int64_t F = regions(y).recent, n = F + tether_of(y)->pending;
    tt_wide *all = tt_wides(ctx, (1 + n * 4) * w), *m = all + w;
    tt_col_mean(ctx, all, q, nq, w);
    for (int64_t i = 0; i < n && !ctx->status; i++, m += 4 * w) {
        const bool old = i < F;
        tame_learn(ctx, m, old ? y->k + i * size : tether_pend_k(y, i - F), L,
                   w);
        tame_learn(ctx, m + 2 * w,
                   old ? y->v + i * size : tether_pend_v(y, i - F), L, w);
    }
    const double *got = tt_get_wides(ctx, all, (1 + n * 4) * w);
    return (statistics){got, got ? got + w : NULL};
}

/* The candidates: all members, then pending frames [first, first + n); scored
 * by the mean query of the chunk. Paper: of the current frame. */
static void tether_score(tt_ctx *ctx, grab_round *r, const tt_layer *y,
                         const statistics *s, int64_t first, int64_t n)
{
    const int64_t w = tether_width(y), S = y->opt->S, M = y->opt->M;
    grab_begin(ctx, r, M + n, M, y->geo->L, y->geo->H, y->geo->D);
    r->heads = y->geo->heads;
    if (ctx->status) return;
    for (int64_t i = 0; i < M; i++)
        grab_pool(r, s->m + (S + i) * 4 * w, tether_members(y)[i]);
    for (int64_t i = first; i < first + n; i++)
        grab_pool(r, s->m + (S + M + i) * 4 * w,
                  tether_of(y)->pending_first + i);
    grab_importance(ctx, r, s->query, y->opt->own[TETHER_TEMPERATURE].x);
    grab_diversity(ctx, r);
    grab_score(ctx, r, y->opt->own[TETHER_ALPHA].x);
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

/* One vector of the heads held. */
static void show_vector(tt_ctx *ctx, double *x, const char *name,
                        const tt_geometry *g)
{
    const int64_t dim[] = { g->heads, g->D }, n = g->H * g->D;
    if (!TT_TAPPED(ctx)) return;
    double *all = tt_team_all_heads(ctx, x, 1, g->heads,
                                    (size_t)g->D * sizeof *x);
    if (!all) return;
    tt_tap_emit(ctx, name, TT_F64, all, 2, dim);
    if (all != x) memcpy(x, all + g->first * g->D, (size_t)n * sizeof *x);
}

/* The edited keys and values of candidate c. */
static void show_edited(tt_ctx *ctx, const tt_layer *y, int64_t c, int64_t i)
{
    const tt_geometry *g = y->geo;
    char name[40];
    if (!TT_TAPPED(ctx)) return;
    snprintf(name, sizeof name, "tame.k/c.%lld", (long long)c);
    tt_team_tap_heads(ctx, name, tether_pend_k(y, i), g->L, g->heads, g->D);
    snprintf(name, sizeof name, "tame.v/c.%lld", (long long)c);
    tt_team_tap_heads(ctx, name, tether_pend_v(y, i), g->L, g->heads, g->D);
}

static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                 const double *m, int64_t first);
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       int64_t first);
static void tether_record(tt_layer *y, const tt_pass *p, const grab_round *r,
                          int64_t round, double margin);

/* Steps 3, 4, 5 for the pending frames [first, first + n) against the
 * members. */
static void tether_admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_real *q, int64_t first, int64_t n,
                         int64_t round)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    grab_round r;
    double margin;
    const statistics s = learn(ctx, y, q, p->frames * y->geo->L);
    tether_score(ctx, &r, y, &s, first, n);
    const size_t scope = tt_scope(ctx, "admit.%lld", (long long)round);
    show_scores(ctx, &r);
    grab_select(ctx, &r, &margin);                       /* 3 select          */
    show_keep(ctx, &r);
    edit(ctx, y, &r, s.m, first);                        /* 4 edit            */
    tt_scope_end(ctx, scope);
    if (ctx->status) return;
    write_back(ctx, y, &r, first);                       /* 5 write back      */
    tether_record(y, p, &r, round, margin);
    tt_arena_reset(&ctx->scratch, mark);
}

/* Step 4. TAME on every admitted frame, in place, still pending. One
 * snapshot of the pool serves the round: frames admitted together do not see
 * each other. */
static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                 const double *m, int64_t first)
{
    const int64_t L = y->geo->L, w = tether_width(y), F = regions(y).recent;
    const double tau = y->opt->own[TETHER_TAU].x;
    tether_state *s = tether_of(y);
    tame_stats k, v;                                     /* trusted           */
    if (ctx->status || tau == 0) return;
    tame_trusted(ctx, &k, m, F, L, w, 4 * w);
    tame_trusted(ctx, &v, m + 2 * w, F, L, w, 4 * w);
    show_vector(ctx, k.mean, "tame.mean_k", y->geo);
    show_vector(ctx, k.sd, "tame.sd_k", y->geo);
    show_vector(ctx, v.mean, "tame.mean_v", y->geo);
    show_vector(ctx, v.sd, "tame.sd_v", y->geo);
    for (int64_t c = s->occupancy; c < r->P; c++) {
        if (!r->keep[c]) continue;
        const int64_t i = first + c - s->occupancy;
        const double *own = m + (F + i) * 4 * w;
        bool did = tame_edit(ctx, tether_pend_k(y, i), L, w, own, &k, tau);
        did |= tame_edit(ctx, tether_pend_v(y, i), L, w, own + 2 * w, &v, tau);
        s->counter[TETHER_EDITED] += did;
        show_edited(ctx, y, c, i);
    }
}

/* Pending frame i becomes the member of that slot. */
static void tether_enter(tt_ctx *ctx, tt_layer *y, int64_t slot, int64_t i)
{
    const int64_t L = y->geo->L, size = tether_frame(y);
    const int64_t to = y->opt->S + slot;
    const int32_t src = (int32_t)tether_pend_src(y)[i];
    tt_copy(ctx, y->k + to * size, tether_pend_k(y, i), size);
    tt_copy(ctx, y->v + to * size, tether_pend_v(y, i), size);
    for (int64_t t = to * L; t < (to + 1) * L; t++)
        y->src_frame[t] = y->tpos[t] = src;
    tether_of(y)->counter[TETHER_ADMITTED]++;
}

/* Step 5. New memory = the kept candidates in candidate order. Survivors only
 * ever move towards the front, so this works in place. */
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       int64_t first)
{
    const int64_t memory = regions(y).memory, L = y->geo->L;
    const int64_t members = tether_of(y)->occupancy;
    tether_state *s = tether_of(y);
    int64_t slot = 0;
    for (int64_t c = 0; c < r->P; c++) {
        if (!r->keep[c]) {
            s->counter[TETHER_REJECTED] += c >= members;
            continue;
        }
        if (c >= members) tether_enter(ctx, y, slot, first + c - members);
        else tt_layer_move(ctx, y, (memory + slot) * L, (memory + c) * L, L);
        tether_members(y)[slot++] = r->index[c];
    }
    TT_ASSERT(slot == y->opt->M);   /* there are more candidates than slots */
}

/* ---- what it reports ----------------------------------------------------- */

#define PER_CANDIDATE (TT_FIELD_ROW | TT_FIELD_TRACED)

enum { SUB, MASS, DIV, SCORES, CANDIDATES, KEEP, MEMORY_AFTER, MARGIN };
static const tt_field grab_fields[] = {
    [SUB] = {"sub", "number of the round in its chunk", TT_I64,
             TT_FIELD_TRACED, 0, 0},
    [MASS] = {"mass", "[P] importance", TT_F64, PER_CANDIDATE | TT_FIELD_REAL,
              0, 0},
    [DIV] = {"div", "[P] diversity", TT_F64, PER_CANDIDATE | TT_FIELD_REAL, 0,
             0},
    [SCORES] = {"scores", "[P] mass + alpha div", TT_F64,
                PER_CANDIDATE | TT_FIELD_REAL, 0, 0},
    [CANDIDATES] = {"candidates", "[P] global frames", TT_I64, PER_CANDIDATE,
                    0, -1},
    [KEEP] = {"keep", "[P] 1: in memory from now on", TT_U8, PER_CANDIDATE, 0,
              0},
    [MEMORY_AFTER] = {"memory_after", "[M] global frames, -1 unused", TT_I64,
                      PER_CANDIDATE, TT_AT(M), -1},
    [MARGIN] = {"margin", "lowest kept - highest dropped score", TT_F64,
                TT_FIELD_TRACED, 0, 0},
    {0},
};
static const tt_event_kind events[] = {{"grab", grab_fields}, {0}};

static void tether_record(tt_layer *y, const tt_pass *p, const grab_round *r,
                          int64_t sub, double margin)
{
    tt_cache_report(y->cache, &(tt_event){
        .kind = &events[0], .layer = y->index, .chunk = p->chunk,
        .value = {
            [SUB] = {&sub, 1}, [MASS] = {r->mass, r->P},
            [DIV] = {r->div, r->P}, [SCORES] = {r->score, r->P},
            [CANDIDATES] = {r->index, r->P}, [KEEP] = {r->keep, r->P},
            [MEMORY_AFTER] = {tether_members(y), r->M},
            [MARGIN] = {&margin, 1},
        },
    });
}

const tt_policy_class cache_tether = {
    .name = "tether",
    .summary = "sink, memory chosen by GRAB and edited by TAME, recent frames "
               "(TetherCache)",
    .knobs = tether_knobs,
    .presets = tether_presets,
    .flags = TT_FILLS_EXACTLY,
    .check = tether_check,
    .slots = cache_slots,
    .state_size = tether_state_size,
    .state_version = 2,
    .shared_size = tether_shared_size,
    .reset = tether_reset,
    .valid = tether_valid,
    .begin = tether_begin,
    .write = tether_write,
    .commit = tether_commit,
    .plan = cache_plan_window,
    .done = tether_done,
    .positions = cache_positions_window,
    .events = events,
    .shown = &tether_shown,
    .show = tether_show,
};
