/* test_deep_forcing.c: what Deep Forcing keeps when it compresses, without a
 * network.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "tests/cache/drive.h"

typedef struct heard {
    int events;
    int64_t kept, delta[16], nselected;
    bool sound;
} heard;

static void on_event(void *user, const tt_event *e)
{
    heard *h = user;
    int64_t n, nselected;
    const double *score = tt_event_values(e, "score", TT_F64, &n);
    const int64_t *reuse = tt_event_values(e, "reuse", TT_I64, NULL);
    const int64_t *selected = tt_event_values(e, "selected", TT_I64,
                                              &nselected);
    if (e->layer != 0) return;
    double lowest = INFINITY;
    h->sound = h->sound && tt_event_int(e, "event") == h->events
               && nselected > 0;
    for (int64_t i = 0; i < nselected; i++) {
        const int64_t j = selected[i];
        if (score[j] < lowest) lowest = score[j];
        h->sound = h->sound && j >= 2 * L && j < n - 4 * L
                   && (i == 0 || j > selected[i - 1]) && reuse[j] < 2;
    }
    for (int64_t j = 2 * L, i = 0; j < n - 4 * L; j++) {
        if (i < nselected && selected[i] == j) i++;
        else h->sound = h->sound && (score[j] <= lowest || reuse[j] == 2);
    }
    h->kept = tt_event_int(e, "kept");
    h->delta[h->events++ & 15] = tt_event_int(e, "sink_delta");
    h->nselected = nselected;
}

/* How often each token slot of layer 0 was selected. */
static const int64_t *reuse_of(tt_cache *c)
{
    tt_event e;
    tt_cache_show(c, 0, &e);
    return tt_event_values(&e, "reuse", TT_I64, NULL);
}

static tt_policy_options deep(void)
{
    tt_policy_options o = options("deep-forcing", 9, 2, 4);
    tt_policy_put(&o, "compress-to", 7);
    tt_policy_put(&o, "max-reuse", 2);
    return o;
}

/* One video. */
static void check_video(tt_ctx *ctx, tt_cache *c)
{
    static seen a;
    heard h = { .sound = true };
    const tt_layer *y = tt_cache_layer(c, 0);
    tt_cache_on_event(c, on_event, &h);
    for (int64_t s = 0; s < 30; s += C) {
        run_chunk(ctx, c, &a, s);
        if (s < 9) continue;
        bool good = y->len == 7 * L && h.kept == 7 * L && h.nselected == L;
        for (int64_t i = 0; i < 2 * L; i++)
            good = good && y->src_frame[i] == i / L
                   && y->tpos[i] == i / L + s - 7;
        for (int64_t i = 2 * L; i < 3 * L; i++)
            good = good && y->tpos[i] == y->src_frame[i]
                   && y->src_frame[i] < s - 1 && reuse_of(c)[i] > 0
                   && y->src_frame[i] >= y->src_frame[i - 1];
        for (int64_t i = 3 * L; i < 7 * L; i++)
            good = good && y->src_frame[i] == s - 1 + (i - 3 * L) / L
                   && reuse_of(c)[i] == 0;
        for (int64_t i = 7 * L; i < y->cap; i++)
            good = good && y->src_frame[i] == -1
                   && are_zero(ctx, y->k + i * W, 1);
        expect(good, "the cache after chunk %d", (int)(s / C));
        expect(plan_at(ctx, c, s, 1, false).q_t0 == s, "absolute queries");
    }
    expect(h.sound && h.events == 7, "every compression is sound");
    expect(h.delta[0] == 2 && h.delta[1] == 3 && h.delta[6] == 3,
           "sinks move by K - N, then by the chunk");
    tt_cache_on_event(c, NULL, NULL);
}

static void check_compression(tt_ctx *ctx)
{
    tt_cache *c = open_cache(ctx, deep(), 60);
    const tt_layer *y = tt_cache_layer(c, 0);
    check_video(ctx, c);
    tt_cache_reset(ctx, c);
    check_video(ctx, c);
    /* A selected token is one whole token: key and value of its frame. */
    const int64_t slot = 2 * L + 1;
    tt_real x[L * W];
    fill_frame(x, y->src_frame[slot], 2, 0, 1);
    expect(are(ctx, y->k + slot * W, x + y->sidx[slot] * W, W),
           "key of a selected token");
    fill_frame(x, y->src_frame[slot], 2, 0, 2);
    expect(are(ctx, y->v + slot * W, x + y->sidx[slot] * W, W), "its value");
    tt_cache_close(c);
}

static void check_unify(tt_ctx *ctx, int64_t recent)
{
    static seen a;
    tt_policy_options o = deep();
    o.R = recent;
    tt_policy_put(&o, "unify", true);
    tt_cache *c = open_cache(ctx, o, 60);
    const tt_layer *y = tt_cache_layer(c, 0);
    for (int64_t s = 0; s < 21; s += C) run_chunk(ctx, c, &a, s);
    bool good = true;
    for (int64_t i = 2 * L; i < (7 - recent) * L; i++)
        good = good && y->tpos[i] == 14 + i / L;
    expect(good && y->tpos[(7 - recent) * L] == 21 - recent,
           "selected tokens end before the recent frames");
    tt_cache_close(c);
}

static bool same_metadata(const tt_layer *a, const tt_layer *b)
{
    const size_t n = (size_t)a->cap * sizeof *a->tpos;
    return a->len == b->len && !memcmp(a->src_frame, b->src_frame, n)
           && !memcmp(a->sidx, b->sidx, n) && !memcmp(a->tpos, b->tpos, n);
}

/* Attention reads the same in every pass, whether kept keys or events are asked
 * for or not. */
static void check_readings(tt_ctx *ctx, const char *knob, double value,
                         int64_t recent)
{
    static seen a, b;
    tt_policy_options o = deep();
    o.R = recent;
    tt_policy_put(&o, knob, value);
    heard h = { .sound = true };
    tt_cache *at_once = open_cache(ctx, o, 60), *later = open_cache(ctx, o, 60);
    tt_cache_on_event(at_once, on_event, &h);
    tt_cache_keep_keys(ctx, later);
    for (int64_t s = 0; s < 24; s += C) {
        for (int step = 0; step < 3; step++) {
            run_pass(ctx, at_once, &a, s, C, step, step == 2);
            run_pass(ctx, later, &b, s, C, step, step == 2);
            const size_t n = (size_t)(a.n * W) * sizeof *a.k;
            expect(a.n == b.n && !memcmp(a.k, b.k, n) && !memcmp(a.v, b.v, n)
                   && !memcmp(a.q, b.q, sizeof a.q),
                   "%s: what is read in pass %d of frame %d", knob, step,
                   (int)s);
        }
        expect(same_metadata(tt_cache_layer(at_once, 0),
                             tt_cache_layer(later, 0)),
               "%s: metadata after frame %d", knob, (int)s);
        expect(!memcmp(reuse_of(at_once), reuse_of(later),
                       (size_t)(9 * L) * sizeof(int64_t)), "%s: reuse", knob);
    }
    expect(h.events > 2, "compressions");
    tt_cache_close(at_once);
    tt_cache_close(later);
}

/* A chunk of one pass whose keys and values are `same`. */
static void write_same(tt_ctx *ctx, tt_cache *c, const tt_pass *p,
                       const tt_real *q, const tt_real *same)
{
    const tt_real *kv = tt_send(ctx, same, C * L * W);
    tt_cache_write(ctx, c, 0, p, &(tt_qkv){tt_send(ctx, q, C * L * W), kv, kv});
    tt_cache_done(ctx, c, 0, p);
}

/* Equal scores: the lower slot. Not finite: refused. */
static void check_ties(tt_ctx *ctx)
{
    static tt_real same[C * L * W], q[C * L * W];
    tt_cache *c = open_cache(ctx, deep(), 60);
    tt_layer *y = tt_cache_layer(c, 0);
    for (int64_t s = 0; s < 12; s += C) {
        const tt_pass p = { .start = s, .frames = C, .chunk = s / C,
                            .last = true };
        fill(q, C * L * W, (uint32_t)s);
        write_same(ctx, c, &p, q, same);
    }
    bool first = true;
    for (int64_t i = 2 * L; i < 3 * L; i++)
        first = first && y->src_frame[i] == 2 && y->sidx[i] == i - 2 * L;
    expect(first, "equal scores keep the oldest tokens");
    const tt_pass p = { .start = 12, .frames = C, .chunk = 4, .last = true };
    spoil(ctx, y->k + 2 * L * W);
    write_same(ctx, c, &p, q, same);
    expect_status(ctx->status, TT_EFORMAT, "NaN in a key");
    tt_cache_close(c);
}

/* The keys that a pass after `start` would read of layer 0. */
static int64_t read_keys(tt_ctx *ctx, tt_cache *c, int64_t start, tt_real *k)
{
    static tt_real q[C * L * W];
    const tt_pass p = { .start = start, .frames = C, .chunk = start / C };
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_kv_view view;
    fill(q, C * L * W, 1);
    tt_cache_read(ctx, c, 0, &p, &view, tt_values(ctx, C * L * W),
                  tt_send(ctx, q, C * L * W));
    take(ctx, k, view.k, view.n * W);
    tt_arena_reset(&ctx->scratch, m);
    return view.n * W;
}

/* The places that move along with tokens are those of the metadata; and one
 * that someone else writes there counts, now and in the next chunk. */
static void check_places(tt_ctx *ctx)
{
    static tt_real a[64 * L * W], b[64 * L * W];
    static seen s;
    enum { moved = 5 * L + 1 };  /* a recent one                              */
    bool equal = true;
    tt_cache *c = open_cache(ctx, deep(), 60);
    for (int64_t start = 0; start < 24; start += C) {
        run_chunk(ctx, c, &s, start);
        const int64_t n = read_keys(ctx, c, start, a);
        tt_cache_layer(c, 0);
        equal = equal && n > 0 && n == read_keys(ctx, c, start, b)
                && !memcmp(a, b, (size_t)n * sizeof *a);
        run_pass(ctx, c, &s, start, C, 2, true);
    }
    expect(equal, "places are those of the metadata");
    tt_layer *y = tt_cache_layer(c, 0);
    y->tpos[moved] += 1;
    int64_t n = read_keys(ctx, c, 21, b);
    expect(memcmp(a + moved * W, b + moved * W, W * sizeof *a)
           && !memcmp(a, b, moved * W * sizeof *a)
           && !memcmp(a + (moved + 1) * W, b + (moved + 1) * W,
                      (size_t)(n - (moved + 1) * W) * sizeof *a),
           "the token that was moved, and no other");
    run_chunk(ctx, c, &s, 24);
    n = read_keys(ctx, c, 24, a);
    tt_cache_layer(c, 0);
    read_keys(ctx, c, 24, b);
    expect(!memcmp(a, b, (size_t)n * sizeof *a), "and is placed there");
    tt_cache_close(c);
}

/* Nothing is erased that no one may have written to: what is there against the
 * rule stays. */
static void check_reset(tt_ctx *ctx)
{
    static const tt_real one[W] = {1};
    tt_cache *c = open_cache(ctx, deep(), 60);
    tt_real *k = tt_cache_look(c, 1)->k;
    tt_put(ctx, k, one, W);
    tt_cache_reset(ctx, c);
    expect(are(ctx, k, one, W), "a new cache is erased already");
    tt_cache_layer(c, 0);
    tt_cache_reset(ctx, c);
    expect(are_zero(ctx, k, W), "one that was written to is not");
    tt_cache_close(c);
}

/* Three lists of metadata. */
static void check_bytes(void)
{
    const tt_policy_options o = deep();
    const tt_geometry g = geometry(60);
    const tt_policy_class *cls = tt_policy_class_of(&o);
    const int64_t token = 2 * W * (int64_t)sizeof(tt_real) + 3 * 4;
    expect(tt_cache_bytes(cls, &o, &g) / g.layers
           - (int64_t)cls->state_size(&o, &g) == cls->slots(&o, &g) * token,
           "all that lies next to a token is counted");
}

int main(void)
{
    tt_ctx *ctx = test_begin("cache/deep_forcing");
    check_compression(ctx);
    check_unify(ctx, 4);
    check_unify(ctx, C);
    check_readings(ctx, "max-reuse", 1, 4);
    check_readings(ctx, "fusion", 1, 3);
    check_readings(ctx, "unify", true, 4);
    check_readings(ctx, "unify", true, 3);
    check_ties(ctx);
    check_places(ctx);
    check_reset(ctx);
    check_bytes();
    expect_ok(ctx->status, "nothing left recorded");
    return test_end();
}
