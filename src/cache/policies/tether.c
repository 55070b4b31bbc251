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
 * Memory  beyond the buffer the moments of trusted frames, four vectors a
 *         frame, so that a round reads only the frames that are new to it; and
 *         one chunk of one layer, whatever the number of layers: between two
 *         passes the evicted frames stay in the slots of the chunk, whose noisy
 *         keys and values nobody needs any more (tether_state.c).
 * Next    grab.c, tame.c, tether_state.h */
#include "cache/classes.h"
#include "cache/grab.h"
#include "cache/tame.h"
#include "cache/tether_state.h"
#include "tether/device.h"
#include "tether/team.h"

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

static void evict(tt_ctx *ctx, tt_layer *y, const tt_pass *p);

/* The first pass of a chunk. */
static void begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                  const tt_qkv *x)
{
    (void)x;
    const int64_t n = p->frames * y->geo->L;
    if (y->len + n <= y->cap) y->len += n;               /* warm-up           */
    else evict(ctx, y, p);                               /* 1 evict           */
}

/* Step 2, in every pass. */
static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    const int64_t L = y->geo->L;
    if (!y->first && tether_of(y)->pending > 0)
        tether_set_aside(ctx, y, y->len / L - p->frames);
    tt_layer_put(ctx, y, p, x);
}

/* Not the clean pass: the evicted frames are still needed, the chunk is not.
 * Without a clean pass nobody will ever ask for them: the chunk stays. */
static void done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    if (tether_of(y)->pending == 0) return;
    if (p->last) tether_of(y)->pending = 0;
    else tether_put_back(ctx, y);
}

/* Step 1. The chunk's f frames push out the f oldest recent ones, which wait
 * until the clean pass. Without memory nobody asks for them again.
 * When K is not reached exactly, this runs on a buffer whose last slots were
 * never written: they count as frames of zeros, and pending_first no longer
 * names the true frames. Code, and we: as is; tether_check warns. */
static void evict(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
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
    if (s->pending > 0) tether_set_aside(ctx, y, g.recent);
    for (int64_t i = 0; i < f; i++)
        tether_pend_src(y)[i] = y->src_frame[(g.recent + i) * L];
    tt_layer_move(ctx, y, g.recent * L, (g.recent + f) * L,
                  (g.K - g.recent - f) * L);
    y->len = y->cap;
}

static void fill(tt_layer *y);
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, double *known,
                  int64_t first, int64_t n, int64_t sub);
static double *learn(tt_ctx *ctx, tt_layer *y, const tt_real *q, int64_t nq);

/* Steps 3-5, in the clean pass. */
static void commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    tether_state *s = tether_of(y);
    if (!s->filled && y->len == y->cap) fill(y);
    if (!s->filled || s->pending == 0) return;

    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    /* Paper: the queries of the current frame. Code, and we: of the chunk. */
    double *known = learn(ctx, y, x->q, p->frames * y->geo->L);
    /* Paper: one evicted frame at a time. Code: the whole chunk at once. */
    const bool by_frame = y->opt->own[TETHER_POOL].n == TETHER_BY_FRAME;
    const int64_t step = by_frame ? 1 : s->pending;
    for (int64_t i = 0; i < s->pending && !ctx->status; i += step)
        admit(ctx, y, p, known, i, step, i / step);
    s->pending = 0;
    tt_arena_reset(&ctx->scratch, m);
}

/* The cache is full for the first time: what stands in the memory region
 * becomes memory. */
static void fill(tt_layer *y)
{
    const tt_regions g = regions(y);
    tether_state *s = tether_of(y);
    s->filled = 1;
    s->occupancy = y->opt->M;
    for (int64_t i = 0; i < y->opt->M; i++) tether_members(y)[i] = g.memory + i;
}

/* ---- one admission round ------------------------------------------------- */

static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r, double *pend,
                 int64_t first);
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       int64_t first);
static void record(tt_layer *y, const tt_pass *p, const grab_round *r,
                   int64_t sub, double margin);

/* Members whose moments nobody has computed: frames admitted since the last
 * round, and at the first one all. Sink and survivors never change. */
static int64_t unknown(const tt_layer *y)
{
    int64_t n = 0;
    for (int64_t i = 0; i < regions(y).recent; i++) n += !tether_known(y)[i];
    return n;
}

/* Moments of keys and of values, one frame, where they are: [4, width]. */
static void learn_frame(tt_ctx *ctx, const tt_layer *y, tt_wide *to,
                        const tt_real *k, const tt_real *v)
{
    const int64_t L = y->geo->L, w = tether_width(y);
    tame_learn(ctx, to, k, L, w);
    tame_learn(ctx, to + 2 * w, v, L, w);
}

static void learn_members(tt_ctx *ctx, const tt_layer *y, tt_wide *to)
{
    const int64_t size = tether_frame(y);
    for (int64_t i = 0; i < regions(y).recent; i++) {
        if (tether_known(y)[i]) continue;
        learn_frame(ctx, y, to, y->k + i * size, y->v + i * size);
        to += 4 * tether_width(y);
    }
}

/* What was computed of the unknown members, at x, is theirs. */
static void keep_moments(tt_layer *y, const double *x)
{
    const int64_t size = 4 * tether_width(y);
    for (int64_t i = 0; i < regions(y).recent; i++) {
        if (tether_known(y)[i]) continue;
        memcpy(tether_moments(y, i), x, (size_t)size * sizeof *x);
        tether_known(y)[i] = 1;
        x += size;
    }
}

/* All that the rounds of a chunk ask of values, asked at once, so that a device
 * is waited for once: the mean [width] of the nq queries, then the moments
 * [4, width] of every pending frame (without an edit its mean key alone).
 * Brings those of sink and members up to date. */
static double *learn(tt_ctx *ctx, tt_layer *y, const tt_real *q, int64_t nq)
{
    const int64_t w = tether_width(y), pending = tether_of(y)->pending;
    const int64_t n = 1 + 4 * (pending + unknown(y));
    tt_wide *all = tt_wides(ctx, n * w), *to = all;
    if (!all) return NULL;
    tt_col_mean(ctx, to, q, nq, w);
    to += w;
    for (int64_t i = 0; i < pending; i++, to += 4 * w) {
        const tt_real *k = tether_pend_k(y, i);
        if (y->opt->own[TETHER_TAU].x != 0)
            learn_frame(ctx, y, to, k, tether_pend_v(y, i));
        else tt_col_mean(ctx, to, k, y->geo->L, w);
    }
    learn_members(ctx, y, to);
    double *known = tt_get_wides(ctx, all, n * w);
    if (known) keep_moments(y, known + (1 + 4 * pending) * w);
    return known;
}

/* The members that the round before admitted, where a chunk has several. */
static void learn_admitted(tt_ctx *ctx, tt_layer *y)
{
    const int64_t n = 4 * unknown(y) * tether_width(y);
    tt_wide *to = n > 0 ? tt_wides(ctx, n) : NULL;
    if (!to) return;
    learn_members(ctx, y, to);
    const double *known = tt_get_wides(ctx, to, n);
    if (known) keep_moments(y, known);
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
    const int64_t dim[] = { g->heads, g->D };
    const size_t size = (size_t)g->D * sizeof *x;
    if (!TT_TAPPED(ctx)) return;
    double *all = tt_team_all_heads(ctx, x, 1, g->heads, size);
    if (all) tt_tap_emit(ctx, name, TT_F64, all, 2, dim);
    if (all && all != x) memcpy(x, all + g->first * g->D, (size_t)g->H * size);
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

/* Steps 3, 4, 5 for the pending frames [first, first + n) against the members,
 * by what `learn` gave. */
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, double *known,
                  int64_t first, int64_t n, int64_t sub)
{
    const int64_t width = tether_width(y);
    double *pend = known + (1 + 4 * first) * width;
    const tt_policy_options *o = y->opt;
    const tt_geometry *geo = y->geo;
    const tt_regions g = regions(y);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tether_state *s = tether_of(y);
    grab_round r;
    double margin;
    grab_begin(ctx, &r, o->M + n, o->M, geo->L, geo->H, geo->D);
    r.heads = geo->heads;
    TT_ASSERT(s->filled && s->occupancy == o->M);
    learn_admitted(ctx, y);
    for (int64_t i = 0; i < o->M; i++)
        grab_pool(&r, tether_moments(y, g.memory + i), tether_members(y)[i]);
    for (int64_t i = 0; i < n; i++)
        grab_pool(&r, pend + 4 * i * width, s->pending_first + first + i);
    grab_importance(ctx, &r, known, o->own[TETHER_TEMPERATURE].x);
    grab_diversity(ctx, &r);
    grab_score(ctx, &r, o->own[TETHER_ALPHA].x);
    const size_t scope = tt_scope(ctx, "admit.%lld", (long long)sub);
    show_scores(ctx, &r);
    grab_select(ctx, &r, &margin);
    show_keep(ctx, &r);

    edit(ctx, y, &r, pend, first);
    tt_scope_end(ctx, scope);
    if (ctx->status) return;
    write_back(ctx, y, &r, first);
    record(y, p, &r, sub, margin);
    tt_arena_reset(&ctx->scratch, m);
}

/* Step 4. TAME on every admitted frame, in place, still set aside. One
 * snapshot of the pool serves the round: frames admitted together do not see
 * each other. */
static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r, double *pend,
                 int64_t first)
{
    const tt_geometry *geo = y->geo;
    const int64_t width = tether_width(y);
    const double tau = y->opt->own[TETHER_TAU].x;
    tether_state *s = tether_of(y);
    /* Sink and memory lie next to each other: one range of slots. */
    const int64_t F = regions(y).recent;
    if (ctx->status || tau == 0) return;
    tame_stats k, v;
    tame_moments *frame = tt_alloc(ctx, &ctx->scratch, 2 * F, sizeof *frame,
                                   "trusted frames");
    for (int64_t i = 0; i < F && frame; i++) {
        double *m = tether_moments(y, i);
        frame[i] = (tame_moments){ m, m + width };
        frame[F + i] = (tame_moments){ m + 2 * width, m + 3 * width };
    }
    tame_trusted(ctx, &k, frame, F, geo->L, width);
    tame_trusted(ctx, &v, frame + F, F, geo->L, width);
    show_vector(ctx, k.mean, "tame.mean_k", geo);
    show_vector(ctx, k.sd, "tame.sd_k", geo);
    show_vector(ctx, v.mean, "tame.mean_v", geo);
    show_vector(ctx, v.sd, "tame.sd_v", geo);
    for (int64_t c = s->occupancy; c < r->P; c++) {
        if (!r->keep[c]) continue;
        const int64_t i = first + c - s->occupancy, L = geo->L;
        double *m = pend + 4 * (i - first) * width;
        const tame_stats of_k = tame_of(m, L, width);
        const tame_stats of_v = tame_of(m + 2 * width, L, width);
        bool did = tame_edit(ctx, tether_pend_k(y, i), L, width, &of_k, &k,
                             tau);
        did |= tame_edit(ctx, tether_pend_v(y, i), L, width, &of_v, &v, tau);
        s->counter[TETHER_EDITED] += did;
        show_edited(ctx, y, c, i);
    }
}

/* Step 5. New memory = the kept candidates in candidate order. Survivors only
 * ever move towards the front, so this works in place. */
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       int64_t first)
{
    const tt_regions g = regions(y);
    const int64_t L = y->geo->L, size = tether_frame(y);
    const int64_t members = tether_of(y)->occupancy;
    tether_state *s = tether_of(y);
    int64_t slot = 0;
    for (int64_t c = 0; c < r->P; c++) {
        const int64_t to = g.memory + slot, evicted = first + c - members;
        if (!r->keep[c]) {
            s->counter[TETHER_REJECTED] += c >= members;
            continue;
        }
        if (c < members) {
            tt_layer_move(ctx, y, to * L, (g.memory + c) * L, L);
            memmove(tether_moments(y, to), tether_moments(y, g.memory + c),
                    (size_t)(4 * tether_width(y)) * sizeof(double));
        } else {
            const int32_t src = (int32_t)tether_pend_src(y)[evicted];
            tt_copy(ctx, y->k + to * size, tether_pend_k(y, evicted), size);
            tt_copy(ctx, y->v + to * size, tether_pend_v(y, evicted), size);
            for (int64_t i = to * L; i < (to + 1) * L; i++)
                y->src_frame[i] = y->tpos[i] = src;
            tether_known(y)[to] = 0;
            s->counter[TETHER_ADMITTED]++;
        }
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

static void record(tt_layer *y, const tt_pass *p, const grab_round *r,
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
    .state_version = 1,
    .state_heads = tether_state_heads,
    .shared_size = tether_shared_size,
    .reset = tether_reset,
    .valid = tether_valid,
    .begin = begin,
    .write = write,
    .commit = commit,
    .plan = cache_plan_window,
    .done = done,
    .positions = cache_positions_window,
    .events = events,
    .shown = &tether_shown,
    .show = tether_show,
};
