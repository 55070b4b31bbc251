/* window.c: mistakes in what attention reads of the cache: frames that are
 * missing, counted twice, stale, shifted, in another order, at another time;
 * another prompt.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   keys are rotated after the cache. So a window is imitated with the
 *         rope call that made its keys: rows of the cache change, and the
 *         positions with them or not, and keys are made again. What stood in
 *         the cache in the pass before was kept (chain.other, chain.keys). */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F(...) &(attention_fault){__VA_ARGS__}
#define WORK_MOST ((int64_t)1 << 32)     /* of all trials of a family         */

/* ---- frames as a whole --------------------------------------------------- */

/* Frames of L keys: some are not there, some count twice. */
static void frames(hint *h, int64_t L)
{
    const tt_attention_args *a = &h->q->attn;
    const int64_t n = a->N / L;
    for (int64_t i = 0; i < n && n > 1; i++) {
        hint_try_fault(h, F(.gap = i * L, .gap_n = L), "frame %lld of the %lld "
                       "that attention reads is not attended", (long long)i,
                       (long long)n);
        hint_try_fault(h, F(.twice = i * L, .twice_n = L), "frame %lld of the "
                       "%lld that attention reads counts twice%s",
                       (long long)i, (long long)n, i ? "" : " (the sink)");
    }
    for (int64_t m = 2; m < n && m <= 6; m++) {
        for (int64_t i = 0; i + m <= n && i < 32; i++)
            hint_try_fault(h, F(.gap = i * L, .gap_n = m * L), "frames %lld to "
                           "%lld of the %lld that attention reads are not "
                           "attended", (long long)i, (long long)(i + m - 1),
                           (long long)n);
        hint_try_fault(h, F(.twice = 0, .twice_n = m * L), "the first %lld of "
                       "%lld frames (the sink) count twice", (long long)m,
                       (long long)n);
    }
}

/* Of a prompt's rows the last ones, padding as a rule. */
static void masked(hint *h)
{
    const int64_t N = h->q->attn.N;
    for (int64_t n = 1; n < N && call_cost(h->q) * N < WORK_MOST; n++)
        hint_try_fault(h, F(.tail = n), "the last %lld of %lld keys are not "
                       "attended (padding is masked?)", (long long)n,
                       (long long)N);
}

/* ---- positions ----------------------------------------------------------- */

/* Tokens of a frame: those that share the first's position in time. */
static int64_t window_frame_of(const op_call *q)
{
    int64_t L = 1;
    while (L < q->n && q->pos[3 * L] == q->pos[0]) L++;
    return L;
}

/* Queries, or all positions of a window, moved by more than rope.c tries. */
static void other_times(hint *h)
{
    enum { FAR = 32, NEAR = 3 };
    for (int k = -FAR; k <= FAR; k++) {
        rope_fault f = {.step = {k, 0, 0}};
        if (abs(k) > NEAR)
            hint_try_fault(h, &f, "frame position off by %+d%s", k,
                           chain_next(h->chain));
    }
}

/* ---- another window ------------------------------------------------------ */

typedef struct window {
    hint *h;
    const op_call *rope;       /* that made the keys                          */
    int64_t L, n, own;         /* tokens of a frame, frames, of this chunk    */
    int64_t row;               /* H D                                         */
    tt_real *x, *k, *v;        /* [N, H, D] of the trial                      */
    int32_t *pos;
} window;

static void begin_trial(window *w)
{
    const tt_attention_args *a = &w->h->q->attn;
    const size_t bytes = (size_t)(a->N * w->row) * sizeof(tt_real);
    memcpy(w->x, w->rope->x, bytes);
    memcpy(w->v, a->v, bytes);
    memcpy(w->pos, w->rope->pos, (size_t)(3 * a->N) * sizeof *w->pos);
}

enum { ONLY_K = 1, ONLY_V = 2, BOTH = 3 };

/* ---- any window ---------------------------------------------------------- */

/* A window is solved for: in every round the one change is made that leaves
 * least. Frames may be at any time, and hold what any frame of this pass or of
 * those before it held. */
enum { FRAMES_MOST = 32, ITEMS_MOST = 96, FAR_MOST = 32, ROUNDS = 12 };

typedef struct item {
    const tt_real *k, *v;      /* NULL: zeros                                 */
    int64_t place;
    int32_t t;
    const char *path;          /* of the pass; NULL: of this one              */
} item;

typedef struct solver {
    window *w;
    int items;
    item item[ITEMS_MOST];
    int k[FRAMES_MOST], v[FRAMES_MOST];
    int32_t t[FRAMES_MOST];
    double left;
    double *wide;
} solver;

static void lay_frames(const solver *s)
{
    const window *w = s->w;
    const size_t bytes = (size_t)(w->L * w->row) * sizeof *w->x;
    begin_trial(s->w);
    for (int64_t f = 0; f < w->n; f++) {
        const item *k = &s->item[s->k[f]], *v = &s->item[s->v[f]];
        tt_real *x = w->x + f * w->L * w->row, *y = w->v + f * w->L * w->row;
        if (k->k) memcpy(x, k->k, bytes);
        else memset(x, 0, bytes);
        if (v->v) memcpy(y, v->v, bytes);
        else memset(y, 0, bytes);
        for (int64_t i = 0; i < w->L; i++)
            w->pos[3 * (f * w->L + i)] = s->t[f];
    }
}

/* The attention that reads it. Times may lie outside of the table. */
static op_call solved(const solver *s)
{
    const window *w = s->w;
    op_call own = *w->h->q, rope = *w->rope;
    lay_frames(s);
    rope.x = w->x;
    rope.pos = w->pos;
    plain_call(w->h->ctx, &rope, &(rope_fault){0}, s->wide);
    for (int64_t i = 0; i < call_count(&rope); i++)
        w->k[i] = (tt_real)s->wide[i];
    own.attn.k = w->k;
    own.attn.v = w->v;
    return own;
}

static void attempt(solver *best, solver *s)
{
    const op_call own = solved(s);
    s->left = hint_left(s->w->h, &own, NULL);
    if (s->left < best->left) *best = *s;
}

static void other_time(const solver *was, solver *best, int64_t f)
{
    for (int d = -FAR_MOST; d <= FAR_MOST; d++)
        for (int all = 0; all < 2; all++) {
            solver s = *was;
            for (int64_t i = all ? 0 : f; i <= f; i++) s.t[i] += d;
            if (d && (f || !all)) attempt(best, &s);
        }
}

/* What stands in a slot, at its time or at that of what stands there. */
static void other_content(const solver *was, solver *best, int64_t f,
                          bool times)
{
    for (int i = 0; i < was->items; i++)
        for (int how = 2 * ONLY_K; how <= 2 * BOTH + 1; how++) {
            solver s = *was;
            if (how / 2 & ONLY_K) s.k[f] = i;
            if (how / 2 & ONLY_V) s.v[f] = i;
            if (how % 2) s.t[f] = s.item[i].t;
            if (!(how % 2) || (times && s.t[f] != was->t[f]))
                attempt(best, &s);
        }
    for (int64_t g = 0; g < f; g++)
        for (int which = ONLY_K; which <= BOTH; which++) {
            solver s = *was;
            if (which & ONLY_K) s.k[f] = was->k[g], s.k[g] = was->k[f];
            if (which & ONLY_V) s.v[f] = was->v[g], s.v[g] = was->v[f];
            attempt(best, &s);
        }
}

/* Items of a pass, but those that are there already. */
static void items_of(solver *s, const op_call *keys, const tt_real *v,
                     const char *path)
{
    const int64_t L = s->w->L, size = L * s->w->row, n = keys->n / L;
    const tt_real *k = keys->x;
    for (int64_t f = 0; f < n; f++) {
        bool known = false;
        for (int i = 0; i < s->items && path; i++)
            known |= s->item[i].k && !memcmp(s->item[i].k, k + f * size,
                                             (size_t)size * sizeof *k)
                     && !memcmp(s->item[i].v, v + f * size,
                                (size_t)size * sizeof *v);
        if (!known && s->items < ITEMS_MOST)
            s->item[s->items++] = (item){k + f * size, v + f * size, f,
                                             keys->pos[3 * f * L], path};
    }
}

/* Are the times of two frames exchanged, and those of no other? */
static bool two_exchanged(const solver *s, int64_t *lo, int64_t *hi)
{
    const int64_t L = s->w->L;
    const int32_t *pos = s->w->rope->pos;
    int64_t n = 0;
    *lo = *hi = 0;
    for (int64_t f = 0; f < s->w->n; f++)
        if (s->t[f] != pos[3 * f * L]) *(n++ ? hi : lo) = f;
    return n == 2 && s->t[*lo] == pos[3 * *hi * L]
           && s->t[*hi] == pos[3 * *lo * L];
}

static void say_times(const solver *s, char *out, size_t size)
{
    const int64_t n = s->w->n;
    size_t at = 0;
    int64_t same = 0, lo, hi;
    const int32_t *pos = s->w->rope->pos;
    while (same < n && s->t[same] - pos[3 * same * s->w->L]
           == s->t[0] - pos[0]) same++;
    bool rest = true;
    if (same == n) {
        snprintf(out, size, "queries: frame position off by %+d next to "
                 "the keys", pos[0] - s->t[0]);
        return;
    }
    for (int64_t f = same; f < n; f++)
        rest &= s->t[f] == pos[3 * f * s->w->L];
    if (rest && same < n) {
        snprintf(out, size, "%d positions are left out after the first %lld "
                 "frames (times of the video for those of the window?)",
                 pos[0] - s->t[0], (long long)same);
        return;
    }
    if (two_exchanged(s, &lo, &hi)) {
        snprintf(out, size, "frames %lld and %lld of the %lld in memory are in "
                 "each other's place", (long long)lo, (long long)hi,
                 (long long)n);
        return;
    }
    at = (size_t)snprintf(out, size, "frames are in another order, or at "
                          "other times:");
    for (int64_t f = 0; f < n && at < size; f++)
        at += (size_t)snprintf(out + at, size - at, "%s %d", f ? "," : "",
                               s->t[f]);
    for (int64_t f = 0; f < n && at < size; f++)
        at += (size_t)snprintf(out + at, size - at, "%s %d", f ? "," :
                               " where", pos[3 * f * s->w->L]);
    if (at < size) snprintf(out + at, size - at, " belong");
}

/* Whose rows of slot f are another's: ONLY_K, ONLY_V, BOTH; 0: they are not. */
static int frames_changed(const solver *s, int64_t f)
{
    const int k = s->k[f] != f, v = s->v[f] != f;
    return k && v && s->k[f] != s->v[f] ? ONLY_K : k + 2 * v;
}

static const item *item_at(const solver *s, int64_t f)
{
    return &s->item[frames_changed(s, f) & ONLY_K ? s->k[f] : s->v[f]];
}

/* "K and V at places 2 to 4 stood at places 3 to 5 before", of what changed. */
static void say_content(const solver *s, char *out, size_t size)
{
    static const char *const whose[] = {"", "K", "V", "K and V"};
    size_t at = (size_t)snprintf(out, size, "of %lld frames in the window ",
                                 (long long)s->w->n);
    const size_t begin = at;
    int64_t stale = 0;
    while (stale < s->w->n && frames_changed(s, stale) == BOTH
           && item_at(s, stale)->path && item_at(s, stale)->place == stale)
        stale++;
    if (stale == s->w->n) {
        snprintf(out, size, "K and V are stale: those of the pass before, %s",
                 item_at(s, 0)->path);
        return;
    }
    for (int64_t f = 0, g; f < s->w->n && at < size; f = g) {
        const int which = frames_changed(s, f);
        const item *o = item_at(s, f);
        for (g = f + 1; g < s->w->n && frames_changed(s, g) == which
             && !item_at(s, g)->path == !o->path && !item_at(s, g)->k == !o->k
             && item_at(s, g)->place - o->place == g - f;) g++;
        if (!which) continue;
        const long long a = f, b = g - 1, c = o->place;
        at += (size_t)snprintf(out + at, size - at, g - f > 1
            ? "%s%s at places %lld to %lld " : "%s%s at place %lld ",
            at > begin ? "; " : "", whose[which], a, b);
        if (at >= size) return;
        if (!o->k) at += (size_t)snprintf(out + at, size - at, "are zero");
        else if (o->place == f)
            at += (size_t)snprintf(out + at, size - at, "are stale (another "
                "frame evicted, or none written): of the pass before");
        else {
            char to[24] = "";
            if (b > a) snprintf(to, sizeof to, "s %lld to", c);
            at += (size_t)snprintf(out + at, size - at, "stood at place%s %lld"
                "%s", to, c + b - a, o->path ? " in the pass before (eviction)"
                                             : "");
        }
    }
}

static void solve_window(window *w)
{
    const chain *c = w->h->chain;
    const int64_t cost = call_cost(w->h->q);
    solver s = {.w = w, .left = INFINITY};
    char what[160];
    if (w->n > FRAMES_MOST || cost * w->n * 2 * FAR_MOST * 4 > WORK_MOST)
        return;
    s.wide = hint_doubles(w->h, w->h->q->attn.N * w->row);
    items_of(&s, w->rope, w->h->q->attn.v, NULL);
    for (int i = c->others - 1; i >= 0; i--)
        if (c->keys[i].q.kind == OP_ROPE
            && c->keys[i].q.n == c->other[i].q.attn.N)
            items_of(&s, &c->keys[i].q, c->other[i].q.attn.v,
                     c->other[i].path);
    if (s.items < ITEMS_MOST) s.item[s.items++] = (item){0};
    for (int64_t f = 0; f < w->n; f++)
        s.k[f] = s.v[f] = (int)f, s.t[f] = w->rope->pos[3 * f * w->L];
    if (w->h->ctx->status) return;
    const solver right = s;
    for (int content = 0; content < 3; content++) {
        solver best = right;
        const int64_t n = w->n;
        if (cost * n * s.items * 3 * 4 > WORK_MOST && content) return;
        for (int round = 0; round < ROUNDS; round++) {
            const solver was = best;
            for (int64_t f = 0; f < n && !hint_settled(w->h); f++)
                if (content) other_content(&was, &best, f, content > 1);
                else other_time(&was, &best, f);
            if (!(best.left < 0.97 * was.left)) break;
            if (content) say_content(&best, what, sizeof what);
            else say_times(&best, what, sizeof what);
            const op_call own = solved(&best);
            hint_try_call(w->h, &own, "%s", what);
            if (hint_settled(w->h)) return;
        }
    }
}

/* Values are rotated as the keys are. */
static void values_rotated(window *w)
{
    op_call own = *w->h->q, rope = *w->rope;
    rope.x = own.attn.v;
    call_run(w->h->ctx, tt_ops_default(), &rope, w->v);
    own.attn.v = w->v;
    hint_try_call(w->h, &own, "V is rotated as well");
}

/* The rope call whose result attention reads as keys, put together where there
 * are several; false: there is none. */
static bool rope_of(hint *h, op_call *all)
{
    const chain *c = h->chain;
    const char *was = chain_was(c, h->q->attn.k);
    const int64_t N = h->q->attn.N, row = h->q->attn.H * h->q->attn.D;
    int64_t n = 0;
    tt_real *x = tt_scratch(h->ctx, N * row);
    int32_t *pos = tt_alloc(h->ctx, &h->ctx->scratch, 3 * N, sizeof *pos,
                            "positions");
    for (int i = 0; x && pos && was && i < c->at; i++) {
        const op_call *q = &c->link[i].q;
        if (q->kind != OP_ROPE || c->link[i].out_was
            != was + n * row * (int64_t)sizeof *x || q->n + n > N) continue;
        memcpy(x + n * row, q->x, (size_t)(q->n * row) * sizeof *x);
        memcpy(pos + 3 * n, q->pos, (size_t)(3 * q->n) * sizeof *pos);
        *all = *q;
        n += q->n;
    }
    all->n = n;
    all->x = x;
    all->pos = pos;
    return n == N && !h->ctx->status;
}

static void of_cache(hint *h, const op_call *rope)
{
    const tt_attention_args *a = &h->q->attn;
    window w = {.h = h, .rope = rope, .row = a->H * a->D};
    if (a->kv_stride != w.row) return;
    w.L = window_frame_of(w.rope);
    if (a->N % w.L || a->T % w.L) return;
    w.n = a->N / w.L;
    w.own = a->T / w.L;
    w.x = tt_scratch(h->ctx, a->N * w.row);
    w.k = tt_scratch(h->ctx, a->N * w.row);
    w.v = tt_scratch(h->ctx, a->N * w.row);
    w.pos = tt_alloc(h->ctx, &h->ctx->scratch, 3 * a->N, sizeof *w.pos,
                     "positions");
    if (h->ctx->status || w.n > 64) return;
    values_rotated(&w);
    if (!hint_settled(h)) solve_window(&w);
}

/* Keys and values of the text that an earlier chunk was made with. */
static void of_prompt(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    for (int i = h->chain->others - 1; i >= 0; i--) {
        const chain_other *o = &h->chain->other[i];
        op_call own = *h->q;
        if (o->q.attn.N != a->N || o->q.attn.kv_stride != a->kv_stride)
            continue;
        own.attn.k = o->q.attn.k;
        own.attn.v = o->q.attn.v;
        hint_try_call(h, &own, "K and V are those of another prompt, that of "
                      "%s", o->path);
    }
}

void hint_window(hint *h)
{
    const op_call *q = h->q;
    if (q->kind == OP_ROPE) {
        other_times(h);
        return;
    }
    if (q->attn.rel_bias) return;
    for (int64_t d = 1; d <= 4; d++)
        if (q->attn.T % d == 0 && q->attn.N % (q->attn.T / d) == 0
            && q->attn.N / (q->attn.T / d) <= 64)
            frames(h, q->attn.T / d);
    op_call rope = {0};
    if (rope_of(h, &rope)) {
        of_cache(h, &rope);
        return;
    }
    of_prompt(h);
    masked(h);
}
