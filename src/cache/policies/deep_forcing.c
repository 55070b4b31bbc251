/* deep_forcing.c: Deep Forcing, a full cache is compressed to the tokens the
 * latest queries look at.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Deep Forcing (arXiv 2512.05081), "Participative Compression", Alg. 1.
 * Source  its attention code as redistributed in Relax-Forcing (Apache-2.0).
 * Model   [S sink | selected tokens | recent], absolute positions. A chunk that
 *         does not fit shrinks the cache to N frames: sinks and the last R
 *         frames stay, of the tokens between them those with the largest score
 *           phi_j = sum_r <q_r, k_j> / (sqrt(D) H)
 *         over the last R frames of rotated queries r. Selection is by token,
 *         so frames dissolve; then the sinks move along in time (deep_sink.c).
 * Differs Code: stores rotated keys and rotates the sinks' again at every move.
 *         We: change the position and rotate once, on reading (at most 1.5e-6
 *         apart). Code: keeps every query of the window. We: for the sum their
 *         means per frame are enough.
 * Paper: selected tokens get new positions before the recent frames (eqs. 10,
 *         11). Code: does so for an empty slice, so they keep their own. We: as
 *         the code; `unify` does what the paper says.
 * Paper: no limit on how often a token is selected. Code, and we: max_reuse.
 * Prompt  at a change everything stays; sinks hold the first prompt forever.
 * Holds   slots are in chronological order of source frames, sinks first. */
#include "cache/classes.h"
#include "core/device.h"
#include "team/team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* After the struct follows
 *   int64_t reuse[cap]
 * and, as values of heads,
 *   sum: tt_wide qwin[R][H*D], the mean query of each frame
 *   max: tt_real qwin[R*L][H*D], every query
 * with the oldest frame first. */
typedef struct state {
    int64_t events;              /* compressions so far                       */
    int64_t base;                /* `desired` of the latest one, see below    */
    int64_t window;              /* frames in qwin, at most R                 */
} state;

enum { COMPRESS_TO, MAX_REUSE, FUSION, UNIFY };
enum { SUM, MAX };
static const char *const fusions[] = {"sum", "max", NULL};

static const tt_knob knobs[] = {
    KNOB_BUDGET(21, FRAMES_IN_CACHE),
    KNOB_SINK(10),
    KNOB_FRAMES("recent", "latest frames kept, whose queries a compression "
                "asks", R, 4),
    {"compress-to", "frames a compression leaves", TT_OWN(COMPRESS_TO),
     TT_KNOB_COUNT, 16, 1, CACHE_MAX_FRAMES, NULL},
    {"max-reuse", "how often a token may be selected; 0: no limit",
     TT_OWN(MAX_REUSE), TT_KNOB_COUNT, 7, 0, INFINITY, NULL},
    {"fusion", "a token's score is the sum over recent queries or their "
     "maximum", TT_OWN(FUSION), TT_KNOB_WORD, SUM, SUM, MAX, fusions},
    {"unify", "selected tokens move up to the recent frames, as in the paper; "
     "the code leaves them", TT_OWN(UNIFY), TT_KNOB_SWITCH, 0, 0, 1, NULL},
    KNOB_END,
};

static state *state_of(const tt_layer *y) { return y->state; }
static int64_t *reuse_of(const tt_layer *y)
{
    return (int64_t *)(state_of(y) + 1);
}

static int64_t compress_to(const tt_policy_options *o)
{
    return o->own[COMPRESS_TO].n;
}

static bool keeps_all(const tt_policy_options *o)
{
    return o->own[FUSION].n == MAX;
}

/* Values of one frame of the query window. */
static int64_t window_frame(const tt_policy_options *o,
                            const tt_geometry *geo)
{
    const int64_t width = geo->H * geo->D;
    return keeps_all(o) ? geo->L * width
                        : width * (int64_t)(sizeof(tt_wide) / sizeof(tt_real));
}

static size_t deep_forcing_state_size(const tt_policy_options *o,
                                      const tt_geometry *geo)
{
    int64_t reuse, window;
    const int64_t slots[] = { o->K, geo->L };
    const int64_t frames[] = { o->R, keeps_all(o) ? geo->L : 1, geo->H,
                               geo->D };
    if (!tt_checked_size(&reuse, slots, 2, sizeof(int64_t))
        || !tt_checked_size(&window, frames, 4, sizeof(double)))
        return SIZE_MAX / 4;
    return sizeof(state) + (size_t)reuse
           + (size_t)(o->R * window_frame(o, geo)) * sizeof(tt_real);
}

/* The window: a head of a mean query, or of every query. */
static tt_state_heads deep_forcing_state_heads(const tt_policy_options *o,
                                               const tt_geometry *geo)
{
    const size_t D = (size_t)geo->D;
    return keeps_all(o) ? (tt_state_heads){o->R * geo->L, D * sizeof(tt_real)}
                        : (tt_state_heads){o->R, D * sizeof(tt_wide)};
}

static bool deep_forcing_within(int64_t v, int64_t low, int64_t high)
{
    return v >= low && v <= high;
}

/* The sinks have moved together. The first move, of the first chunk that does
 * not fit, was by K - N, while the max(N, S+R) frames that stayed made `base`;
 * from then on both move alike. */
static bool deep_forcing_valid(const tt_layer *y)
{
    const state *s = state_of(y);
    const tt_policy_options *o = y->opt;
    const int64_t frames = y->geo->frames, L = y->geo->L, sink = o->S * L;
    const int64_t first = y->tpos[0], far = frames + o->K;
    const int64_t stay = o->S + o->R > compress_to(o) ? o->S + o->R
                                                      : compress_to(o);
    bool ok = deep_forcing_within(s->events, 0, frames)
              && deep_forcing_within(s->base, -far, far)
              && deep_forcing_within(s->window, 0, o->R);
    for (int64_t i = 0; i < y->cap; i++)
        ok = ok && deep_forcing_within(reuse_of(y)[i], 0, s->events);
    for (int64_t i = 0; i < sink && i < y->len; i++)
        ok = ok && y->tpos[i] == first + i / L;
    if (!ok || sink == 0 || y->len == 0) return ok;
    if (s->events == 0) return first == 0;
    const int64_t least = s->base + stay - compress_to(o);
    return first >= least && first < least + y->geo->chunk;
}

/* ---- begin and write ----------------------------------------------------- */

static void remember_queries(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                             const tt_real *q);
static void compress(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                     const tt_real *k);

static void deep_forcing_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                               const tt_qkv *x)
{
    const int64_t n = p->frames * y->geo->L;
    remember_queries(ctx, y, p, x->q);           /* before they are asked     */
    if (ctx->status) return;
    if (y->len + n > y->cap) compress(ctx, y, p, x->k);
    else tt_layer_roll(ctx, y, 0, n);
}

static void deep_forcing_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                               const tt_qkv *x)
{
    if (!y->first) remember_queries(ctx, y, p, x->q);
    if (!ctx->status) tt_layer_put(ctx, y, p, x);
}

/* Append the pass's rotated queries to the window, which holds the last R
 * frames of whatever pass. In the first pass of a chunk that is (R 4, C 3) one
 * clean frame of the chunk before and three noisy ones. */
static void remember_queries(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                             const tt_real *q)
{
    const tt_geometry *geo = y->geo;
    const int64_t L = geo->L, width = geo->H * geo->D, n = p->frames * L;
    const int64_t frame = window_frame(y->opt, geo);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_index *pos = tt_indices(ctx, &ctx->scratch, 3 * n);
    if (ctx->status) return;
    tt_locate(ctx, &(tt_locate_args){ .to = pos, .t0 = p->start, .n = n,
                                      .L = L, .w = geo->grid_w });

    state *s = state_of(y);
    int64_t drop = s->window + p->frames - y->opt->R;
    if (drop < 0) drop = 0;
    s->window -= drop;
    tt_real *fresh = y->of_heads + s->window * frame;
    tt_copy(ctx, y->of_heads, y->of_heads + drop * frame, s->window * frame);
    tt_real *rotated = keeps_all(y->opt) ? fresh : tt_values(ctx, n * width);
    tt_rope(ctx, rotated, q, n, geo->H, geo->D, tt_cache_rope(y->cache), pos);
    for (int64_t f = 0; !keeps_all(y->opt) && f < p->frames; f++)
        tt_col_mean(ctx, (tt_wide *)fresh + f * width, rotated + f * L * width,
                    L, width);
    s->window += p->frames;
    tt_arena_reset(&ctx->scratch, m);
}

/* ---- score --------------------------------------------------------------- */

/* L times the sum of the mean queries, frames ascending. */
static tt_real *summed(tt_ctx *ctx, const tt_layer *y, int64_t frames,
                       int64_t width)
{
    const double *mean = tt_get_wides(ctx, (const tt_wide *)y->of_heads,
                                      frames * width);
    tt_real *sums = tt_values(ctx, width);
    tt_host *q = tt_map_write(ctx, sums, width);
    if (ctx->status) return NULL;
    for (int64_t i = 0; i < width; i++) {
        double sum = 0;
        for (int64_t f = 0; f < frames; f++) sum += mean[f * width + i];
        q[i] = (tt_host)(sum * (double)y->geo->L);
    }
    tt_put(ctx, sums, q, width);
    return sums;
}

/* What scoring asks with: rows of queries [n, heads*D], of all heads. For the
 * sum over the window, sum first: one row. */
static tt_tensor question(tt_ctx *ctx, const tt_layer *y)
{
    const tt_geometry *geo = y->geo;
    const int64_t frames = state_of(y)->window, width = geo->H * geo->D;
    const int64_t n = keeps_all(y->opt) ? frames * geo->L : 1;
    tt_real *rows = keeps_all(y->opt) ? y->of_heads
                                      : summed(ctx, y, frames, width);
    rows = tt_team_to_rows(ctx, rows, n, geo->heads, geo->D);
    rows = tt_team_all_rows(ctx, rows, n, geo->heads * geo->D);
    return tt_values_view(rows, 2, (int64_t[]){n, geo->heads * geo->D});
}

/* dot [n, rows] of n <= L tokens with unrotated keys k and positions pos. A dot
 * product goes through all heads: each rank takes some of the tokens. */
static const tt_real *deep_forcing_ask(tt_ctx *ctx, const tt_layer *y,
                                       const tt_real *k, const int32_t *pos,
                                       int64_t n, const tt_tensor *asked)
{
    const tt_geometry *geo = y->geo;
    const int64_t rows = asked->dim[0];
    const tt_range own = tt_team_rows(ctx, n);
    tt_real *rotated = tt_values(ctx, n * geo->H * geo->D);
    tt_real *dot = tt_values(ctx, n * rows);
    tt_rope(ctx, rotated, k, n, geo->H, geo->D, tt_cache_rope(y->cache), pos);
    rotated = tt_team_to_rows(ctx, rotated, n, geo->heads, geo->D);
    tt_linear(ctx, dot, rotated, own.hi - own.lo, asked, NULL);
    return tt_team_all_rows(ctx, dot, n, rows);
}

/* The largest number of x [c]; NaN where it begins with one. */
static tt_host deep_forcing_largest(const tt_host *x, int64_t c)
{
    tt_host best = x[0];
    for (int64_t i = 1; i < c; i++)
        if (x[i] > best) best = x[i];
    return best + 0;                             /* -0 becomes +0             */
}

/* The largest product of each of n tokens with unrotated keys k and positions
 * pos, a frame's worth at a time. */
static void score(tt_ctx *ctx, tt_host *best, const tt_layer *y,
                  const tt_real *k, const int32_t *pos, int64_t n,
                  const tt_tensor *asked)
{
    const tt_geometry *geo = y->geo;
    const int64_t L = geo->L, width = geo->H * geo->D, c = asked->dim[0];
    tt_real *all = c == 1 ? tt_values(ctx, n) : NULL; /* got at once */
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    for (int64_t at = 0; at < n && !ctx->status; at += L) {
        const int64_t b = n - at < L ? n - at : L;
        const tt_real *dot = deep_forcing_ask(ctx, y, k + at * width,
                                              pos + 3 * at, b, asked);
        const tt_host *d = c == 1 ? NULL : tt_get(ctx, dot, b * c);
        if (all) tt_copy(ctx, all + at, dot, b);
        for (int64_t i = 0; d && i < b; i++)
            best[at + i] = deep_forcing_largest(d + i * c, c);
        tt_arena_reset(&ctx->scratch, m);
    }
    const tt_host *d = all ? tt_get(ctx, all, n) : NULL;
    for (int64_t i = 0; d && i < n; i++)
        best[i] = deep_forcing_largest(d + i, 1);
}

/* ---- compress ------------------------------------------------------------ */

/* Everything about one compression; arrays are in ctx->scratch. */
typedef struct compression {
    int64_t n;                   /* source: live tokens, then the chunk's     */
    int64_t sink, recent;        /* tokens kept at both ends                  */
    int64_t count;               /* tokens to select                          */
    int32_t *pos;                /* [n, 3] frame, row, column                 */
    tt_host *best;               /* [n] phi sqrt(D) H                         */
    int64_t *frame, *reuse;      /* [n] position and reuse before the event   */
    int32_t *from;               /* [sink + count + recent] source tokens that
                                    stay, ascending                           */
} compression;

static void deep_forcing_measure(tt_ctx *ctx, compression *c, const tt_layer *y,
                                 const tt_pass *p, const tt_real *k);
static void choose(tt_ctx *ctx, compression *c, const tt_layer *y);
static void rebuild(tt_ctx *ctx, tt_layer *y, const compression *c,
                    const tt_pass *p);
static void move(tt_layer *y, const compression *c, int64_t live,
                 const tt_pass *p);
static int64_t move_sinks(tt_layer *y, const tt_pass *p);
static void unify(tt_layer *y, int64_t sink, int64_t count);
static void record(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                   const compression *c, int64_t delta);

static void compress(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                     const tt_real *k)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    compression c;
    deep_forcing_measure(ctx, &c, y, p, k);  /* phi of all tokens             */
    choose(ctx, &c, y);                      /* the best between the ends     */
    if (ctx->status) return;
    rebuild(ctx, y, &c, p);                  /* sinks, chosen, recent         */
    const int64_t delta = move_sinks(y, p);
    record(ctx, y, p, &c, delta);
    state_of(y)->events++;
    tt_arena_reset(&ctx->scratch, m);
}

/* Frame, row and column of the source tokens. */
static void deep_forcing_place(compression *c, const tt_layer *y)
{
    const int64_t w = y->geo->grid_w, L = y->geo->L;
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t s = i < y->len ? y->sidx[i] : (i - y->len) % L;
        c->pos[3 * i] = (int32_t)c->frame[i];
        c->pos[3 * i + 1] = (int32_t)(s / w);
        c->pos[3 * i + 2] = (int32_t)(s % w);
    }
}

/* Sizes, scores and metadata of the source tokens. */
static void deep_forcing_measure(tt_ctx *ctx, compression *c, const tt_layer *y,
                                 const tt_pass *p, const tt_real *k)
{
    const tt_policy_options *o = y->opt;
    tt_arena *a = &ctx->scratch;
    const int64_t L = y->geo->L, fresh = p->frames * L, n = y->len + fresh;
    *c = (compression){ .n = n, .sink = o->S * L,
                        .recent = state_of(y)->window * L };
    int64_t budget = compress_to(o) * L;
    if (budget < c->sink + c->recent) budget = c->sink + c->recent;
    c->count = budget - c->sink - c->recent;
    c->frame = tt_alloc(ctx, a, n, sizeof *c->frame, "scores");
    c->reuse = tt_alloc0(ctx, a, n, sizeof *c->reuse, "scores");
    c->pos = tt_alloc(ctx, a, n, 3 * sizeof *c->pos, "positions");
    c->best = tt_alloc(ctx, a, n, sizeof *c->best, "scores");
    c->from = tt_alloc(ctx, a, budget, sizeof *c->from, "scores");
    const tt_tensor asked = question(ctx, y);
    const int64_t end = tt_cache_rope(y->cache)->npos;
    if (ctx->status) return;

    memcpy(c->reuse, reuse_of(y), (size_t)y->len * sizeof *c->reuse);
    for (int64_t i = 0; i < n; i++) {
        c->frame[i] = i < y->len ? y->tpos[i] : p->start + (i - y->len) / L;
        TT_ASSERT(c->frame[i] >= 0 && c->frame[i] < end);
    }
    deep_forcing_place(c, y);
    score(ctx, c->best, y, y->k, c->pos, y->len, &asked);
    score(ctx, c->best + y->len, y, k, c->pos + 3 * y->len, fresh, &asked);
}

/* A token that may be selected. */
typedef struct rival {
    tt_host score;
    int32_t token;
} rival;

/* The best first; of equal ones the lower. */
static int by_score(const void *a, const void *b)
{
    const rival *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static int by_token(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The best of what lies between sinks and recent frames and was not selected
 * max_reuse times; fewer when there are fewer. Code: ties undefined. We: the
 * lower slot first. */
static void choose(tt_ctx *ctx, compression *c, const tt_layer *y)
{
    const int64_t most = y->opt->own[MAX_REUSE].n;
    const int64_t end = c->n - c->recent;
    int64_t rivals = 0, to = 0;
    rival *list = tt_alloc(ctx, &ctx->scratch, c->n, sizeof *list, "scores");
    for (int64_t j = c->sink; j < end && !ctx->status; j++) {
        if (!isfinite(c->best[j]))
            tt_fail(ctx, TT_EFORMAT, "deep-forcing: the score of token %lld is "
                    "not finite: the keys or queries hold NaN or Inf",
                    (long long)j);
        if (most == 0 || c->reuse[j] < most)
            list[rivals++] = (rival){c->best[j], (int32_t)j};
    }
    if (ctx->status) return;
    if (c->count > rivals) c->count = rivals;
    qsort(list, (size_t)rivals, sizeof *list, by_score);
    for (int64_t j = 0; j < c->sink; j++) c->from[to++] = (int32_t)j;
    for (int64_t i = 0; i < c->count; i++) c->from[to++] = list[i].token;
    qsort(c->from + c->sink, (size_t)c->count, sizeof *c->from, by_token);
    for (int64_t j = end; j < c->n; j++) c->from[to++] = (int32_t)j;
}

/* Sinks, selected tokens, recent frames, room for the chunk; the rest is
 * zeros. */
static void rebuild(tt_ctx *ctx, tt_layer *y, const compression *c,
                    const tt_pass *p)
{
    const int64_t width = y->geo->H * y->geo->D, n = c->count * width;
    const int64_t fresh = p->frames * y->geo->L, old = c->recent - fresh;
    const int64_t to = c->sink + c->count, len = to + c->recent;
    const int64_t live = y->len;
    const int64_t words = width * (int64_t)(sizeof *y->k / sizeof *c->from);
    tt_real *const kv[] = { y->k, y->v };
    tt_real *chosen = tt_values(ctx, n);
    tt_index *list = tt_indices(ctx, &ctx->scratch, c->count);
    tt_put_indices(ctx, list, c->from + c->sink, c->count);
    for (int i = 0; i < 2; i++) {
        tt_pick(ctx, &(tt_pick_args){ (tt_index *)chosen, (tt_index *)kv[i],
                                      list, c->count, words, words, words });
        tt_copy(ctx, kv[i] + to * width, kv[i] + (live - old) * width,
                old * width);
        tt_copy(ctx, kv[i] + c->sink * width, chosen, n);
        tt_zero(ctx, kv[i] + len * width, (y->cap - len) * width);
    }
    y->len = len;
    move(y, c, live, p);
}

/* Metadata move as keys and values have. A token comes from its own slot or
 * from after it, so this works in place. */
static void move(tt_layer *y, const compression *c, int64_t live,
                 const tt_pass *p)
{
    const int64_t L = y->geo->L;
    int64_t *reuse = reuse_of(y);
    for (int64_t i = c->sink; i < y->len; i++) {
        const int64_t j = c->from[i], k = j - live;
        const int64_t frame = p->start + k / L;
        y->src_frame[i] = k < 0 ? y->src_frame[j] : (int32_t)frame;
        y->sidx[i] = k < 0 ? y->sidx[j] : (int32_t)(k % L);
        y->tpos[i] = k < 0 ? y->tpos[j] : (int32_t)frame;
        reuse[i] = k < 0 ? reuse[j] + (i < c->sink + c->count) : 0;
    }
    for (int64_t i = y->len; i < y->cap; i++) {
        y->src_frame[i] = TT_SRC_NONE;
        reuse[i] = y->sidx[i] = y->tpos[i] = 0;
    }
    if (y->opt->own[UNIFY].n) unify(y, c->sink, c->count);
}

/* Paper: the sinks move to where the recent frames begin (eq. 5). Code: the
 * first time by K - N (its 21 - N), then by what `desired` has grown. We: as
 * the code. They are whole frames, one after the other. */
static int64_t move_sinks(tt_layer *y, const tt_pass *p)
{
    const tt_policy_options *o = y->opt;
    const int64_t L = y->geo->L, sink = o->S * L;
    const int64_t tail = (y->len - sink) / L;
    const int64_t desired = p->start - tail - o->S;
    state *s = state_of(y);
    const int64_t delta = s->events == 0 ? o->K - compress_to(o)
                                         : desired - s->base;
    s->base = desired;
    for (int64_t i = 0; i < sink; i++) y->tpos[i] += (int32_t)delta;
    return delta;
}

/* The selected tokens fill, in slot order, the frame positions right before
 * the recent ones. */
static void unify(tt_layer *y, int64_t sink, int64_t count)
{
    const int64_t L = y->geo->L;
    const int64_t first = y->tpos[sink + count] - (count + L - 1) / L;
    for (int64_t i = 0; i < count; i++)
        y->tpos[sink + i] = (int32_t)(first + i / L);
}

/* ---- what it reports ----------------------------------------------------- */

/* Source tokens are the live ones in slot order and then the chunk's. A trace
 * keeps them counted by frame (analyze/recorder_compress.c): all of them would
 * be too many. */
enum { EVENT, SCORE, FRAME, REUSE_BEFORE, SELECTED, KEPT, SINK_DELTA };
static const tt_field fields[] = {
    [EVENT] = {"event", "compressions of this layer before it", TT_I64, 0, 0,
               0},
    [SCORE] = {"score", "[n] phi of the source tokens", TT_F64, TT_FIELD_ROW,
               0, 0},
    [FRAME] = {"frame", "[n] their frame positions before the event", TT_I64,
               TT_FIELD_ROW, 0, 0},
    [REUSE_BEFORE] = {"reuse", "[n] times selected before", TT_I64,
                      TT_FIELD_ROW, 0, 0},
    [SELECTED] = {"selected", "selected source tokens, ascending", TT_I64,
                  TT_FIELD_ROW, 0, 0},
    [KEPT] = {"kept", "tokens left", TT_I64, 0, 0, 0},
    [SINK_DELTA] = {"sink_delta", "frames the sinks moved", TT_I64, 0, 0, 0},
    {0},
};
static const tt_event_kind events[] = {{"comp", fields}, {0}};

static void record(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                   const compression *c, int64_t delta)
{
    const double norm = sqrt((double)y->geo->D) * (double)y->geo->heads;
    double *phi = tt_alloc(ctx, &ctx->scratch, c->n, sizeof *phi, "scores");
    int64_t *chosen = tt_alloc(ctx, &ctx->scratch, c->n, sizeof *chosen,
                               "scores");
    if (ctx->status) return;
    for (int64_t i = 0; i < c->n; i++) phi[i] = (double)c->best[i] / norm;
    for (int64_t i = 0; i < c->count; i++) chosen[i] = c->from[c->sink + i];
    tt_cache_report(y->cache, &(tt_event){
        .kind = &events[0], .layer = y->index, .chunk = p->chunk,
        .value = {
            [EVENT] = {&state_of(y)->events, 1}, [SCORE] = {phi, c->n},
            [FRAME] = {c->frame, c->n}, [REUSE_BEFORE] = {c->reuse, c->n},
            [SELECTED] = {chosen, c->count}, [KEPT] = {&y->len, 1},
            [SINK_DELTA] = {&delta, 1},
        },
    });
}

static const tt_field shown_fields[] = {
    {"reuse", "[cap] how often the token in each slot was selected", TT_I64,
     TT_FIELD_ROW, 0, 0},
    {0},
};
static const tt_event_kind shown = {"layer", shown_fields};

static void deep_forcing_show(const tt_layer *y, tt_event *out)
{
    out->value[0].at = reuse_of(y);
    out->value[0].n = y->cap;
}

/* ---- positions ----------------------------------------------------------- */

/* Sinks stay before the chunk unless N < S: the first move is by K - N. */
static int64_t deep_forcing_positions(const tt_policy_options *o,
                                      const tt_geometry *geo)
{
    return geo->frames + (o->S > compress_to(o) ? o->S - compress_to(o) : 0);
}

/* ---- options ------------------------------------------------------------- */

static tt_status deep_forcing_check(tt_ctx *ctx, tt_policy_options *o,
                                    const tt_geometry *geo)
{
    TT_TRY(cache_check_window(ctx, o, geo));
    /* Code: a smaller R lets part of the chunk be compressed away, and later
     * passes then write to the wrong slots. We: refuse. */
    if (o->R < geo->chunk || o->R > o->K)
        return tt_fail(ctx, TT_EINVAL,
                       "deep-forcing: recent R = %lld must hold at least one "
                       "chunk of %lld frames and fit the budget K = %lld",
                       (long long)o->R, (long long)geo->chunk,
                       (long long)o->K);
    if (o->K < o->S + o->R)
        return tt_fail(ctx, TT_EINVAL,
                       "deep-forcing: the budget K = %lld must be at least S + "
                       "R = %lld + %lld = %lld frames", (long long)o->K,
                       (long long)o->S, (long long)o->R,
                       (long long)(o->S + o->R));
    if (compress_to(o) > o->K)
        return tt_fail(ctx, TT_EINVAL,
                       "deep-forcing: compress-to N = %lld must lie in 1..K = "
                       "%lld", (long long)compress_to(o), (long long)o->K);
    return TT_OK;
}

const tt_policy_class cache_deep_forcing = {
    .name = "deep-forcing",
    .summary = "a moving sink, the tokens recent queries look at, recent "
               "frames (Deep Forcing)",
    .knobs = knobs,
    .flags = TT_KEEPS_NOISY,
    .check = deep_forcing_check,
    .slots = cache_slots,
    .state_size = deep_forcing_state_size,
    .state_heads = deep_forcing_state_heads,
    .values_of_heads = true,
    .valid = deep_forcing_valid,
    .begin = deep_forcing_begin,
    .write = deep_forcing_write,
    .plan = cache_plan_absolute,
    .positions = deep_forcing_positions,
    .events = events,
    .shown = &shown,
    .show = deep_forcing_show,
};
