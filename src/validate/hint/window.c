/* window.c: mistakes in what attention reads of the cache: frames that are
 * missing, counted twice, stale, shifted, in another order, at another time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a window is a list of frames; a sum over keys has no order. It is
 *         solved for: in every round the one change is made that leaves least.
 *         Frames may go, or come from this pass or those before it, whose keys
 *         and values were kept (chain.other, chain.keys); they may hold what
 *         another holds, and be at another time. Keys are rotated after the
 *         cache, so they are made again by the rope call that made them. */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK_MOST ((int64_t)1 << 32)     /* of all trials of a family         */
#define VALUES_MOST ((int64_t)1 << 25)   /* of a window                       */

enum { FRAMES_MOST = 32, RUN_MOST = 8, SLOTS_MOST = FRAMES_MOST + RUN_MOST,
       ITEMS_MOST = 96, FAR_MOST = 32, ROUNDS = 12 };

typedef struct item {
    const tt_real *k, *v;      /* NULL: zeros                                 */
    int64_t place;
    int32_t t;
    const char *path;          /* of the pass; NULL: of this one              */
} item;

typedef struct window {
    hint *h;
    const op_call *q;          /* the attention                               */
    const op_call *rope;       /* that made the keys                          */
    int64_t L, n, own;         /* tokens of a frame, frames, of this chunk    */
    int items;
    item item[ITEMS_MOST];
    tt_real *x, *k, *v;        /* [n + RUN_MOST, L, H D] of the trial         */
    double *wide;
    int32_t *pos;
} window;

/* Indices of items, and times. */
typedef struct slot {
    int k, v;
    int32_t t;
} slot;

typedef struct solver {
    window *w;
    int n;
    slot slot[SLOTS_MOST];
    double left;
} solver;

enum { ONLY_K = 1, ONLY_V = 2, BOTH = 3 };

/* ---- a window ------------------------------------------------------------ */

static void lay_frame(tt_real *to, const tt_real *from, int64_t n)
{
    if (from) memcpy(to, from, (size_t)n * sizeof *to);
    else memset(to, 0, (size_t)n * sizeof *to);
}

/* The attention that reads it. Times may lie outside of the table. */
static op_call solved(const solver *s)
{
    const window *w = s->w;
    const int64_t frame = w->L * w->q->attn.H * w->q->attn.D;
    static const rope_fault right;
    op_call own = *w->q, rope = *w->rope;
    for (int f = 0; f < s->n; f++) {
        const item *k = &w->item[s->slot[f].k], *v = &w->item[s->slot[f].v];
        lay_frame(w->x + f * frame, k->k, frame);
        lay_frame(w->v + f * frame, v->v, frame);
        for (int64_t i = f * w->L; i < (f + 1) * w->L; i++) {
            const int32_t *p = w->rope->pos + 3 * (i % w->L);
            w->pos[3 * i] = s->slot[f].t;
            w->pos[3 * i + 1] = p[1], w->pos[3 * i + 2] = p[2];
        }
    }
    rope.n = own.attn.N = s->n * w->L;
    rope.x = w->x;
    rope.pos = w->pos;
    plain_call(w->h->ctx, &rope, &right, w->wide);
    for (int64_t i = 0; i < s->n * frame; i++) w->k[i] = (tt_real)w->wide[i];
    own.attn.k = w->k;
    own.attn.v = w->v;
    return own;
}

static void attempt(solver *best, solver *s)
{
    if (hint_settled(s->w->h)) return;
    const op_call own = solved(s);
    s->left = hint_left(s->w->h, &own, NULL);
    if (s->left < best->left) *best = *s;
}

/* ---- changes of a window ------------------------------------------------- */

/* Frames that are not there, or there as well. */
static void other_number(const solver *was, solver *best)
{
    const window *w = was->w;
    for (int f = 0; f < was->n; f++)
        for (int m = 1; f + m <= was->n && m < was->n; m++) {
            solver s = *was;
            s.n -= m;
            memmove(s.slot + f, s.slot + f + m,
                    (size_t)(s.n - f) * sizeof *s.slot);
            attempt(best, &s);
        }
    for (int i = 0; i < w->items; i++) {
        solver s = *was;
        for (int m = i; m < w->items && m < i + RUN_MOST; m++) {
            const item *o = &w->item[m];
            if (s.n == (int)w->n + RUN_MOST || o->path != w->item[i].path)
                break;
            s.slot[s.n++] = (slot){m, m, o->t};
            attempt(best, &s);
        }
    }
}

static void other_time(const solver *was, solver *best)
{
    for (int f = 0; f < was->n; f++)
        for (int d = -FAR_MOST; d <= FAR_MOST; d++)
            for (int from = 0; from <= f && d; from++) {
                solver s = *was;
                for (int i = from; i <= f; i++) s.slot[i].t += d;
                attempt(best, &s);
            }
}

/* What stands in a slot, at its time or at that of what stands there. */
static void other_content(const solver *was, solver *best, bool times)
{
    const window *w = was->w;
    for (int f = 0; f < was->n && !hint_settled(w->h); f++) {
        for (int i = 0; i < w->items; i++)
            for (int which = ONLY_K; which <= BOTH; which++) {
                solver s = *was;
                if (which & ONLY_K) s.slot[f].k = i;
                if (which & ONLY_V) s.slot[f].v = i;
                attempt(best, &s);
                s.slot[f].t = w->item[i].t;
                if (times && s.slot[f].t != was->slot[f].t) attempt(best, &s);
            }
        for (int g = 0; g < f; g++)
            for (int which = ONLY_K; which <= BOTH; which++) {
                solver s = *was;
                if (which & ONLY_K)
                    s.slot[f].k = was->slot[g].k, s.slot[g].k = was->slot[f].k;
                if (which & ONLY_V)
                    s.slot[f].v = was->slot[g].v, s.slot[g].v = was->slot[f].v;
                attempt(best, &s);
            }
    }
}

/* ---- what is said of it -------------------------------------------------- */

static void append(char *out, size_t size, const char *fmt, ...)
    TT_PRINTF(3, 4);

static void append(char *out, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(out);
    va_list args;
    va_start(args, fmt);
    vsnprintf(out + n, size - n, fmt, args);
    va_end(args);
}

/* "; frames 2 to 4" */
static void append_range(char *out, size_t size, const char *what, int64_t a,
                         int64_t b)
{
    const char *rest = *out ? "; " : "";
    if (a == b) append(out, size, "%s%s %lld", rest, what, (long long)a);
    else append(out, size, "%s%ss %lld to %lld", rest, what, (long long)a,
                (long long)b);
}

/* How often frame f is there as it was. */
static int times_there(const solver *s, int f)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->slot[i].k == f && s->slot[i].v == f;
    return n;
}

static void say_number(const solver *s, char *out, size_t size)
{
    const int n = (int)s->w->n;
    for (int f = 0, g; f < n; f = g) {
        const int all = times_there(s, f);
        for (g = f + 1; g < n && times_there(s, g) == all;) g++;
        if (all == 1) continue;
        append_range(out, size, "frame", f, g - 1);
        append(out, size, " of the %d that attention reads %s", n,
               !all ? "not attended" : f ? "counted twice"
               : "counted twice (the sink)");
    }
    for (int i = 0, k; i < s->n; i = k) {
        const item *o = &s->w->item[s->slot[i].k];
        k = i + 1;
        if (!o->path) continue;
        while (k < s->n && s->w->item[s->slot[k].k].path == o->path) k++;
        append_range(out, size, "frame", o->place, o->place + k - 1 - i);
        append(out, size, " of the pass before (%s) attended as well", o->path);
    }
}

static int32_t time_off(const solver *s, int f)
{
    return s->slot[f].t - s->w->item[f].t;
}

static void say_times(const solver *s, char *out, size_t size)
{
    for (int f = 0, g; f < s->n; f = g) {
        const int off = time_off(s, f);
        for (g = f + 1; g < s->n && time_off(s, g) == off;) g++;
        if (g - f == s->n)
            append(out, size, "queries: frame position off by %+d next to the "
                   "keys", -off);
        else if (off) {
            append_range(out, size, "positions of frame", f, g - 1);
            append(out, size, " are off by %+d", off);
        }
    }
}

/* Whose rows of slot f are another's: ONLY_K, ONLY_V, BOTH; 0: they are not. */
static int frames_changed(const solver *s, int f)
{
    const int k = s->slot[f].k != f, v = s->slot[f].v != f;
    return k && v && s->slot[f].k != s->slot[f].v ? ONLY_K : k + 2 * v;
}

static const item *item_at(const solver *s, int f)
{
    return &s->w->item[frames_changed(s, f) & ONLY_K ? s->slot[f].k
                                                     : s->slot[f].v];
}

static bool same_change(const solver *s, int f, int g)
{
    const item *a = item_at(s, f), *b = item_at(s, g);
    return frames_changed(s, f) == frames_changed(s, g)
           && a->path == b->path && !a->k == !b->k
           && b->place - a->place == g - f;
}

/* "K and V at places 2 to 4 stood at places 3 to 5 before", of what changed. */
static void say_content(const solver *s, char *out, size_t size)
{
    static const char *const whose[] = {"", "K at place", "V at place",
                                        "K and V at place"};
    for (int f = 0, g; f < s->n; f = g) {
        const int which = frames_changed(s, f);
        const item *o = item_at(s, f);
        for (g = f + 1; g < s->n && same_change(s, f, g);) g++;
        if (!which) continue;
        if (g - f == s->n && o->path && o->place == f && which == BOTH) {
            snprintf(out, size, "K and V are stale: those of the pass before, "
                     "%s", o->path);
            return;
        }
        append_range(out, size, whose[which], f, g - 1);
        append(out, size, g - f == 1 ? " of %d" : " of %d frames", s->n);
        if (!o->k) append(out, size, " are zero");
        else if (o->place == f)
            append(out, size, " are stale, of the pass before");
        else {
            append(out, size, " hold what belongs at place%s %lld",
                   g - f > 1 ? "s from" : "", (long long)o->place);
            append(out, size, "%s", o->path ? " of the pass before" : "");
        }
    }
}

/* ---- what each frame of a chunk sees ------------------------------------- */

enum { NO_LATER, PAST_AND_SELF, ONLY_SELF, NO_SELF, SEEN_FORMS };

static bool sees(int form, int64_t frame, int64_t key, int64_t past)
{
    switch (form) {
    case NO_LATER: return key <= frame;
    case PAST_AND_SELF: return key < past || key == frame;
    case ONLY_SELF: return key == frame;
    default: return key != frame;
    }
}

static void seen_frames(window *w, const solver *right)
{
    static const char *const what[] = {
        "frames do not see later frames of their chunk (causal by frames)",
        "frames see the past and themselves, no other frame of their chunk",
        "frames see themselves alone", "frames do not see themselves"};
    hint *h = w->h;
    const tt_attention_args *a = &w->q->attn;
    const int64_t past = w->n - w->own, size = w->L * a->H * a->D;
    for (int form = 0; form < SEEN_FORMS; form++) {
        bool any = true;
        for (int64_t f = 0; f < w->own && any; f++) {
            solver s = *right;
            s.n = 0;
            for (int g = 0; g < w->n; g++)
                if (sees(form, past + f, g, past))
                    s.slot[s.n++] = right->slot[g];
            op_call own = solved(&s);
            own.attn.T = w->L;
            own.attn.q += f * w->L * a->q_stride;
            any = s.n > 0;
            if (any) plain_call(h->ctx, &own, NULL, h->trial + f * size);
        }
        if (any) hint_try(h, h->trial, "%s", what[form]);
    }
}

/* ---- the search ---------------------------------------------------------- */

/* Items of a pass, but those that are there already. */
static void items_of(window *w, const op_call *keys, const tt_real *v,
                     const char *path)
{
    const int64_t size = w->L * w->q->attn.H * w->q->attn.D;
    const size_t bytes = (size_t)size * sizeof *v;
    for (int64_t f = 0; f < keys->n / w->L && w->items < ITEMS_MOST; f++) {
        const tt_real *x = keys->x + f * size, *y = v + f * size;
        bool known = false;
        for (int i = 0; i < w->items && path; i++)
            known |= !memcmp(w->item[i].k, x, bytes)
                     && !memcmp(w->item[i].v, y, bytes);
        if (!known)
            w->item[w->items++] = (item){x, y, f, keys->pos[3 * f * w->L],
                                         path};
    }
}

/* Everything that a slot may hold; the first are those of this window. */
static void take_items(window *w)
{
    const chain *c = w->h->chain;
    const tt_attention_args *a = &w->q->attn;
    items_of(w, w->rope, a->v, NULL);
    for (int i = c->others - 1; i >= 0; i--) {
        const op_call *k = &c->keys[i].q;
        const tt_attention_args *o = &c->other[i].q.attn;
        if (k->kind == OP_ROPE && k->n == o->N && o->kv_stride == a->kv_stride)
            items_of(w, k, o->v, c->other[i].path);
    }
    if (w->items < ITEMS_MOST) w->item[w->items++] = (item){0};
}

static bool begin_window(window *w)
{
    tt_ctx *ctx = w->h->ctx;
    const tt_attention_args *a = &w->q->attn;
    w->n = a->N / w->L;
    const int64_t most = (w->n + RUN_MOST) * w->L, row = a->H * a->D;
    w->own = a->T / w->L;
    if (a->N % w->L || w->n > FRAMES_MOST || w->n < 2
        || most * row > VALUES_MOST) return false;
    w->x = tt_scratch(ctx, most * row);
    w->k = tt_scratch(ctx, most * row);
    w->v = tt_scratch(ctx, most * row);
    w->wide = hint_doubles(w->h, most * row);
    w->pos = tt_alloc(ctx, &ctx->scratch, 3 * most, sizeof *w->pos,
                      "positions");
    take_items(w);
    return !ctx->status;
}

enum { TIMES, CONTENT, NUMBER, CONTENT_AT_TIMES, SEARCHES };

static void solve_window(window *w)
{
    char what[160];
    solver right = {.w = w, .n = (int)w->n, .left = INFINITY};
    const int64_t cost = call_cost(w->q);
    for (int f = 0; f < w->n; f++)
        right.slot[f] = (slot){f, f, w->item[f].t};
    if (cost * w->n * w->n * FAR_MOST * 4 > WORK_MOST) return;
    if (w->own * w->L == w->q->attn.T) seen_frames(w, &right);
    for (int search = 0; search < SEARCHES; search++) {
        solver best = right;
        if (cost * w->n * w->items * 3 * 4 > WORK_MOST && search != TIMES)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            const solver was = best;
            if (hint_settled(w->h)) return;
            if (search == NUMBER) other_number(&was, &best);
            else if (search == TIMES) other_time(&was, &best);
            else other_content(&was, &best, search == CONTENT_AT_TIMES);
            if (!(best.left < 0.97 * was.left)) break;
            *what = '\0';
            if (search == NUMBER) say_number(&best, what, sizeof what);
            else if (search == TIMES) say_times(&best, what, sizeof what);
            else say_content(&best, what, sizeof what);
            const op_call own = solved(&best);
            hint_try_call(w->h, &own, "%s", what);
        }
    }
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

void hint_window(hint *h)
{
    const op_call *q = h->q;
    op_call rope = {0};
    window w = {.h = h, .q = q};
    if (q->attn.rel_bias || !rope_of(h, &rope)) return;
    w.rope = &rope;
    w.L = 1;                   /* those that share the first's time           */
    while (w.L < rope.n && rope.pos[3 * w.L] == rope.pos[0]) w.L++;
    if (q->attn.kv_stride != q->attn.H * q->attn.D || !begin_window(&w)) return;
    solve_window(&w);
}
