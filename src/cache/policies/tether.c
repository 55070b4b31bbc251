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
 *         room for the values, or keys, of one chunk, whatever the number of
 *         layers: the evicted frames wait in the slots of the chunk, which has
 *         none of its own before the clean pass has decided about them
 *         (tether_state.c).
 * Next    grab.c, tame.c, tether_state.h */
#include "cache/classes.h"
#include "cache/grab.h"
#include "cache/tame.h"
#include "cache/tether_state.h"
#include "tether/backend.h"
#include "tether/device.h"
#include "tether/team.h"

#include <stdio.h>

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

/* The first pass of a chunk. Where frames are evicted, they are in its slots
 * behind it: the last live ones. */
static void begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                  const tt_qkv *x)
{
    (void)x;
    const int64_t n = p->frames * y->geo->L;
    if (y->len + n <= y->cap) y->len += n;               /* warm-up           */
    else evict(ctx, y, p);                               /* 1 evict           */
}

/* Step 2, in every pass. The evicted frames stay in the slots of the chunk: its
 * keys are read where they are, to be rotated, and so are its values, where
 * they may be in pieces and the window has more than one block of them. Else
 * values of the evicted frames make room until `done`. Without a clean pass
 * nobody will ever ask for evicted frames: the chunk has its slots. */
static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    if (p->last && !p->context) tether_of(y)->pending = 0;
    if (tether_of(y)->pending > 0) {
        y->own_k = x->k;
        if (p->context || (ctx->ops->laid && y->len > TT_KEY_BLOCK))
            y->own_v = x->v;
        else tether_set_aside(ctx, y);
    }
    tt_layer_put(ctx, y, p, x);
}

/* Not the clean pass: the evicted frames are still needed, the chunk is not. */
static void done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    (void)p;
    if (tether_of(y)->pending > 0 && !y->own_v) tether_put_back(ctx, y);
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
    for (int64_t i = 0; i < f; i++)
        tether_pend_src(y)[i] = y->src_frame[(g.recent + i) * L];
    y->len = y->cap;
    if (s->pending > 0) tether_turn(ctx, y, g.recent);
    else tt_layer_move(ctx, y, g.recent * L, (g.recent + f) * L,
                       (g.K - g.recent - f) * L);
}

static void fill(tt_layer *y);

/* What the rounds of a chunk know. Moments [4, width] a frame, where values
 * are: of the pending frames, and as they will be edited; NULL when nobody has
 * foreseen that. Means [width], of the host. */
typedef struct knowledge {
    tt_wide *pend, *after;
    bool edited;                 /* the pending frames are, too               */
    const double *query, *pending, *later; /* of queries; keys of `pend`, and of
                                              `after`                         */
    const double **member;       /* [M] keys; NULL: to be asked for           */
    const double *kept;          /* lists of `foresee`, or NULL               */
} knowledge;

static void learn(tt_ctx *ctx, tt_layer *y, knowledge *k, const tt_real *q,
                  int64_t nq);
static void learn_admitted(tt_ctx *ctx, tt_layer *y, knowledge *k);
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, knowledge *k,
                  int64_t first, int64_t n, int64_t sub);

static bool by_frame(const tt_layer *y)
{
    return y->opt->own[TETHER_POOL].n == TETHER_BY_FRAME;
}

/* Steps 3-5, in the clean pass. */
static void commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    tether_state *s = tether_of(y);
    if (!s->filled && y->len == y->cap) fill(y);
    if (!s->filled || s->pending == 0) return;

    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    knowledge k;
    /* Paper: the queries of the current frame. Code, and we: of the chunk. */
    learn(ctx, y, &k, x->q, p->frames * y->geo->L);
    /* Paper: one evicted frame at a time. Code: the whole chunk at once. */
    const int64_t step = by_frame(y) ? 1 : s->pending;
    for (int64_t i = 0; i < s->pending && !ctx->status; i += step) {
        learn_admitted(ctx, y, &k);
        admit(ctx, y, p, &k, i, step, i / step);
    }
    s->pending = 0;
    tt_arena_reset(&ctx->scratch, m);
    y->own_k = y->own_v = NULL;
    tt_layer_put(ctx, y, p, x);
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

static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                 const knowledge *k, int64_t first);
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       knowledge *k, int64_t first);
static void record(tt_layer *y, const tt_pass *p, const grab_round *r,
                   int64_t sub, double margin);

/* Moments of frames move as all values do. */
static void copy_moments(tt_ctx *ctx, tt_wide *to, const tt_wide *from,
                         int64_t n)
{
    const int64_t each = sizeof *to / sizeof(tt_real);
    tt_copy(ctx, (tt_real *)to, (const tt_real *)from, n * each);
}

/* Moments of keys and of values, one frame, where they are: [4, width]. */
static void learn_frame(tt_ctx *ctx, const tt_layer *y, tt_wide *to,
                        const tt_real *k, const tt_real *v)
{
    const int64_t L = y->geo->L, w = tether_width(y);
    tame_learn(ctx, to, k, L, w);
    tame_learn(ctx, to + 2 * w, v, L, w);
}

/* Of members whose moments nobody has computed: frames admitted since the last
 * round, and at the first one all. Sink and survivors never change. */
static void learn_members(tt_ctx *ctx, tt_layer *y)
{
    const int64_t size = tether_frame(y);
    for (int64_t i = 0; i < regions(y).recent && !ctx->status; i++) {
        if (tether_known(y)[i]) continue;
        learn_frame(ctx, y, tether_moments(y, i), y->k + i * size,
                    y->v + i * size);
        tether_known(y)[i] = !ctx->status;
    }
}

/* The statistics of F frames by their moments, of keys and of values. */
static void trusted_of(tt_ctx *ctx, const tt_layer *y, const tt_wide *m,
                       tame_stats out[2])
{
    const int64_t F = regions(y).recent, L = y->geo->L, w = tether_width(y);
    tame_trusted(ctx, &out[0], m, F, L, w, 4 * w);
    tame_trusted(ctx, &out[1], m + 2 * w, F, L, w, 4 * w);
}

/* Pending frame i, by its own moments. */
static bool edit_frame(tt_ctx *ctx, tt_layer *y, int64_t i, const tt_wide *own,
                       const tame_stats trusted[2])
{
    const int64_t L = y->geo->L, w = tether_width(y);
    const double tau = y->opt->own[TETHER_TAU].x;
    bool did = tame_edit(ctx, tether_pend_k(y, i), L, w, own, &trusted[0], tau);
    did |= tame_edit(ctx, tether_pend_v(y, i), L, w, own + 2 * w, &trusted[1],
                     tau);
    return did;
}

/* Sink, members and one candidate as the device knows them. */
typedef struct pool {
    tt_wide *moments;            /* [S+M+1, 4, width]                         */
    tt_index *time;              /* global frames: [S+M], then of all pending
                                    ones from the candidate on                */
} pool;

static pool make_pool(tt_ctx *ctx, const tt_layer *y)
{
    const int64_t F = regions(y).recent;
    return (pool){tt_wides(ctx, (F + 1) * 4 * tether_width(y)),
                  tt_indices(ctx, &ctx->scratch, F + tether_of(y)->pending)};
}

static void first_pool(tt_ctx *ctx, const tt_layer *y, const pool *p)
{
    const int64_t F = regions(y).recent, S = y->opt->S;
    const int64_t n = F + tether_of(y)->pending;
    int32_t *time = tt_alloc0(ctx, &ctx->scratch, n, sizeof *time, "frames");
    for (int64_t i = S; i < n && time; i++)
        time[i] = (int32_t)(i < F ? tether_members(y)[i - S]
                                  : tether_of(y)->pending_first + i - F);
    tt_put_indices(ctx, p->time, time, n);
    copy_moments(ctx, p->moments, tether_moments(y, 0),
                 F * 4 * tether_width(y));
}

/* The pool of the next round, before which `left` frames are pending: what GRAB
 * keeps of the candidates, the rows in `list`. */
static void next_pool(tt_ctx *ctx, const tt_layer *y, const pool *to,
                      const pool *from, const tt_wide *query,
                      const tt_wide *after, tt_index *list, int64_t left)
{
    const tt_geometry *g = y->geo;
    const int64_t F = regions(y).recent, w = tether_width(y), row = 8 * w;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_judge(ctx, &(tt_judge_args){
        .list = list, .score = tt_wides(ctx, F + 1 - y->opt->S), .q = query,
        .m = from->moments, .time = from->time, .first = y->opt->S,
        .n = F + 1, .c = w, .step = 4 * w,
        .norm = grab_norm(g->heads, g->D),
        .temperature = grab_temperature(y->opt->own[TETHER_TEMPERATURE].x),
        .alpha = y->opt->own[TETHER_ALPHA].x});
    copy_moments(ctx, from->moments + F * 4 * w, after, 4 * w);
    tt_pick(ctx, &(tt_pick_args){(tt_index *)to->moments,
                                 (tt_index *)from->moments, list, F, row, row,
                                 row});
    tt_pick(ctx, &(tt_pick_args){to->time, from->time, list, F, 1, 1, 1});
    tt_pick(ctx, &(tt_pick_args){to->time + F, from->time + F + 1, NULL, left,
                                 1, 1, 1});
    tt_arena_reset(&ctx->scratch, m);
}

/* Statistics that take the room of a list of S+M rows, so that both can be got
 * at once. */
static int64_t list_room(const tt_layer *y)
{
    const int64_t each = sizeof(tt_wide) / sizeof(tt_index);
    return (regions(y).recent + each - 1) / each;
}

/* Frame by frame, the second is judged by the first one edited, and edited by a
 * pool that may hold it. So that nobody waits for that, the device goes ahead:
 * every pending frame is edited in its place, whether it will be admitted or
 * not, and the device itself finds the pool of the next. Nobody is judged by
 * the last one. What it finds, the rounds of the host find again: whom it keeps
 * is in `kept`, for `compare`. */
static tt_wide *foresee(tt_ctx *ctx, tt_layer *y, const tt_wide *pend,
                        const tt_wide *query, tt_wide *kept)
{
    const int64_t F = regions(y).recent, each = 4 * tether_width(y);
    const int64_t pending = tether_of(y)->pending;
    pool now = make_pool(ctx, y), next = make_pool(ctx, y);
    tt_wide *after = tt_wides(ctx, pending * each);
    first_pool(ctx, y, &now);
    for (int64_t i = 0; i < pending && !ctx->status; i++) {
        const pool old = now;
        tame_stats trusted[2];
        copy_moments(ctx, now.moments + F * each, pend + i * each, each);
        trusted_of(ctx, y, now.moments, trusted);
        edit_frame(ctx, y, i, pend + i * each, trusted);
        if (i == pending - 1) break;
        learn_frame(ctx, y, after + i * each, tether_pend_k(y, i),
                    tether_pend_v(y, i));
        next_pool(ctx, y, &next, &now, query, after + i * each,
                  (tt_index *)(kept + i * list_room(y)), pending - 1 - i);
        now = next;
        next = old;
    }
    return after;
}

/* The first [width] of n frames' moments, one behind the other. */
static void take_means(tt_ctx *ctx, const tt_layer *y, tt_wide **to,
                       const tt_wide *from, int64_t n)
{
    const int64_t w = tether_width(y);
    tt_pick(ctx, &(tt_pick_args){(tt_index *)*to, (tt_index *)from, NULL, n,
                                 2 * w, 8 * w, 2 * w});
    *to += n * w;
}

/* Can the device go ahead? Not where somebody looks at every round, nor in a
 * team, whose heads meet on the host. */
static bool goes_ahead(tt_ctx *ctx, const tt_layer *y)
{
    return by_frame(y) && y->opt->own[TETHER_TAU].x != 0 && !TT_TAPPED(ctx)
           && tt_team_size(ctx) == 1;
}

/* All that the rounds of a chunk ask of values, asked at once, so that a device
 * is waited for once: the means of the nq queries and of keys. Brings the
 * moments of sink and members up to date. */
static void learn(tt_ctx *ctx, tt_layer *y, knowledge *k, const tt_real *q,
                  int64_t nq)
{
    const int64_t w = tether_width(y), M = y->opt->M;
    const int64_t pending = tether_of(y)->pending;
    const bool edits = y->opt->own[TETHER_TAU].x != 0;
    const int64_t n = (1 + M + 2 * pending) * w + pending * list_room(y);
    tt_wide *means = tt_wides(ctx, n), *to = means + w;
    *k = (knowledge){.pend = tt_wides(ctx, 4 * pending * w)};
    k->member = tt_alloc(ctx, &ctx->scratch, M, sizeof *k->member, "members");
    if (ctx->status) return;
    tt_col_mean(ctx, means, q, nq, w);
    for (int64_t i = 0; i < pending; i++) {
        const tt_real *key = tether_pend_k(y, i);
        tt_wide *own = k->pend + i * 4 * w;
        if (edits || by_frame(y))
            learn_frame(ctx, y, own, key, tether_pend_v(y, i));
        else tt_col_mean(ctx, own, key, y->geo->L, w);
    }
    learn_members(ctx, y);
    take_means(ctx, y, &to, tether_moments(y, y->opt->S), M);
    take_means(ctx, y, &to, k->pend, pending);
    if (by_frame(y) && !edits) k->after = k->pend;
    k->edited = goes_ahead(ctx, y);
    tt_wide *kept = to + (pending - 1) * w;
    if (k->edited) k->after = foresee(ctx, y, k->pend, means, kept);
    if (k->after) take_means(ctx, y, &to, k->after, pending - 1);
    if (k->edited) to += (pending - 1) * list_room(y);
    const double *h = tt_get_wides(ctx, means, to - means);
    if (!h) return;
    k->kept = k->edited ? h + (kept - means) : NULL;
    k->query = h;
    for (int64_t i = 0; i < M; i++) k->member[i] = h + (1 + i) * w;
    k->pending = h + (1 + M) * w;
    k->later = k->after ? k->pending + pending * w : NULL;
}

/* The member that the round before admitted, unforeseen: one wait more. */
static void learn_admitted(tt_ctx *ctx, tt_layer *y, knowledge *k)
{
    const int64_t S = y->opt->S, w = tether_width(y);
    learn_members(ctx, y);
    for (int64_t i = 0; i < y->opt->M && !ctx->status; i++) {
        if (k->member[i]) continue;
        tt_wide *mean = tt_wides(ctx, w);
        copy_moments(ctx, mean, tether_moments(y, S + i), w);
        k->member[i] = tt_get_wides(ctx, mean, w);
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

/* One vector of the heads held. */
static void show_vector(tt_ctx *ctx, tt_wide *there, const char *name,
                        const tt_geometry *g)
{
    const int64_t dim[] = { g->heads, g->D }, n = g->H * g->D;
    if (!TT_TAPPED(ctx)) return;
    double *x = tt_get_wides(ctx, there, n);
    double *all = tt_team_all_heads(ctx, x, 1, g->heads,
                                    (size_t)g->D * sizeof *x);
    if (!all) return;
    tt_tap_emit(ctx, name, TT_F64, all, 2, dim);
    tt_put_wides(ctx, there, all == x ? x : all + g->first * g->D, n);
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

/* Round `sub` of the host keeps whom the device kept when it went ahead, or
 * what it edited is wrong. A plan's device knows nobody: its rows are none of
 * ours. */
static void compare(tt_ctx *ctx, const tt_layer *y, const grab_round *r,
                    const knowledge *k, int64_t sub)
{
    const int64_t S = y->opt->S;
    int64_t at = 0;
    if (ctx->status || !k->kept || sub == tether_of(y)->pending - 1) return;
    const int32_t *list = (const int32_t *)(const void *)
                          (k->kept + sub * list_room(y));
    if (ctx->device && ctx->device->imagined) return;
    for (int64_t i = 0; i < S + r->P && !ctx->status; i++) {
        if (i >= S && !r->keep[i - S]) continue;
        if (list[at++] != i)
            tt_fail(ctx, TT_EFORMAT, "tether: layer %lld, round %lld: %s keeps "
                    "row %lld, but the host row %lld; its kernels do not "
                    "compute what they should: use another backend, and report "
                    "this", (long long)y->index, (long long)sub,
                    ctx->device ? ctx->device->name : "the operator judge",
                    (long long)list[at - 1], (long long)i);
    }
}

/* Steps 3, 4, 5 for the pending frames [first, first + n) against the members,
 * by what `learn` gave. */
static void admit(tt_ctx *ctx, tt_layer *y, const tt_pass *p, knowledge *k,
                  int64_t first, int64_t n, int64_t sub)
{
    const int64_t width = tether_width(y);
    const tt_policy_options *o = y->opt;
    const tt_geometry *geo = y->geo;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tether_state *s = tether_of(y);
    grab_round r;
    double margin;
    grab_begin(ctx, &r, o->M + n, o->M, geo->L, geo->H, geo->D);
    r.heads = geo->heads;
    TT_ASSERT(s->filled && s->occupancy == o->M);
    for (int64_t i = 0; i < o->M; i++)
        grab_pool(&r, k->member[i], tether_members(y)[i]);
    for (int64_t i = first; i < first + n; i++)
        grab_pool(&r, k->pending + i * width, s->pending_first + i);
    grab_importance(ctx, &r, k->query, o->own[TETHER_TEMPERATURE].x);
    grab_diversity(ctx, &r);
    grab_score(ctx, &r, o->own[TETHER_ALPHA].x);
    const size_t scope = tt_scope(ctx, "admit.%lld", (long long)sub);
    show_scores(ctx, &r);
    grab_select(ctx, &r, &margin);
    show_keep(ctx, &r);
    compare(ctx, y, &r, k, sub);

    edit(ctx, y, &r, k, first);
    tt_scope_end(ctx, scope);
    if (ctx->status) return;
    write_back(ctx, y, &r, k, first);
    record(y, p, &r, sub, margin);
    tt_arena_reset(&ctx->scratch, m);
}

/* Step 4. TAME on every admitted frame, in place, still pending. One
 * snapshot of the pool serves the round: frames admitted together do not see
 * each other. */
static void edit(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                 const knowledge *k, int64_t first)
{
    const tt_geometry *geo = y->geo;
    tether_state *s = tether_of(y);
    tame_stats trusted[2];
    if (ctx->status || y->opt->own[TETHER_TAU].x == 0) return;
    if (!k->edited) {
        trusted_of(ctx, y, tether_moments(y, 0), trusted);
        show_vector(ctx, trusted[0].mean, "tame.mean_k", geo);
        show_vector(ctx, trusted[0].sd, "tame.sd_k", geo);
        show_vector(ctx, trusted[1].mean, "tame.mean_v", geo);
        show_vector(ctx, trusted[1].sd, "tame.sd_v", geo);
    }
    for (int64_t c = s->occupancy; c < r->P; c++) {
        if (!r->keep[c]) continue;
        const int64_t i = first + c - s->occupancy;
        const tt_wide *own = k->pend + i * 4 * tether_width(y);
        s->counter[TETHER_EDITED] += k->edited
                                     || edit_frame(ctx, y, i, own, trusted);
        show_edited(ctx, y, c, i);
    }
}

/* Pending frame i becomes the member of that slot. */
static void enter(tt_ctx *ctx, tt_layer *y, knowledge *k, int64_t slot,
                  int64_t i)
{
    const int64_t L = y->geo->L, w = tether_width(y), size = tether_frame(y);
    const int64_t to = y->opt->S + slot;
    const int32_t src = (int32_t)tether_pend_src(y)[i];
    const bool known = k->after && i < tether_of(y)->pending - 1;
    tt_copy(ctx, y->k + to * size, tether_pend_k(y, i), size);
    tt_copy(ctx, y->v + to * size, tether_pend_v(y, i), size);
    for (int64_t t = to * L; t < (to + 1) * L; t++)
        y->src_frame[t] = y->tpos[t] = src;
    if (known)
        copy_moments(ctx, tether_moments(y, to), k->after + i * 4 * w, 4 * w);
    k->member[slot] = known ? k->later + i * w : NULL;
    tether_known(y)[to] = known;
    tether_of(y)->counter[TETHER_ADMITTED]++;
}

/* Step 5. New memory = the kept candidates in candidate order. Survivors only
 * ever move towards the front, so this works in place. */
static void write_back(tt_ctx *ctx, tt_layer *y, const grab_round *r,
                       knowledge *k, int64_t first)
{
    const int64_t memory = regions(y).memory, L = y->geo->L;
    const int64_t members = tether_of(y)->occupancy;
    tether_state *s = tether_of(y);
    int64_t slot = 0;
    for (int64_t c = 0; c < r->P; c++) {
        const int64_t to = memory + slot;
        if (!r->keep[c]) {
            s->counter[TETHER_REJECTED] += c >= members;
            continue;
        }
        if (c >= members) enter(ctx, y, k, slot, first + c - members);
        else if (to != memory + c) {
            tt_layer_move(ctx, y, to * L, (memory + c) * L, L);
            copy_moments(ctx, tether_moments(y, to),
                         tether_moments(y, memory + c), 4 * tether_width(y));
            k->member[slot] = k->member[c];
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
    .values_of_heads = true,
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
