/* test_policy.c: options, and what a layer holds and reads, without a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties. Keys and values are made so that each tells its frame, token and
 * pass; the positions a policy plans are read back by undoing the rotation. */
#include <math.h>

#include "tests/cache/drive.h"
#include "tests/cache/shown.h"

/* ---- options ------------------------------------------------------------- */

static void refused(tt_ctx *ctx, const char *why, tt_policy_options o)
{
    const tt_geometry g = geometry(48);
    tt_cache *c = NULL;
    const tt_status s = tt_cache_open(ctx, &c, NULL, &o, &g);
    expect(c == NULL && strlen(tt_message(ctx)) > 20, "%s: no sentence", why);
    expect_status(s, TT_EINVAL, why);
}

static void keep_last(void *user, const char *sentence)
{
    strncpy(user, sentence, 400);
}

static void check_options(tt_ctx *ctx)
{
    tt_policy_options o = tt_policy_defaults("tether");
    expect(o.K == 21 && o.S == 3 && o.R == 4 && o.M == -1
           && tt_policy_get(&o, "alpha") == 0.35
           && tt_policy_get(&o, "tau") == 0.35
           && tt_policy_get(&o, "score-temperature") == 1
           && tt_policy_get(&o, "pool") == 0,
           "tether's official defaults");
    o = tt_policy_defaults("fifo");
    expect(o.K == 21 && o.S == 3, "fifo's defaults");
    expect(tt_policy_defaults("full").K == -1, "full has no window");
    expect(tt_policy_find("tether") && !tt_policy_find("theter"), "by name");
    for (int i = 0; tt_policy_at(i); i++)
        expect(tt_policy_find(tt_policy_at(i)->name) == tt_policy_at(i),
               "policy %d is found by its name", i);

    refused(ctx, "unknown", options("theter", 9, 2, 4));
    refused(ctx, "R < chunk", options("tether", 9, 2, 2));
    refused(ctx, "K < S + R", options("tether", 6, 3, 4));
    refused(ctx, "S < 0", options("tether", 9, -1, 4));
    refused(ctx, "K = 0", options("tether", 0, 0, 4));
    refused(ctx, "K without window", options("tether", -1, 0, 4));
    refused(ctx, "huge K", options("tether", INT64_MAX, 3, 4));
    refused(ctx, "huge R", options("tether", 21, 3, INT64_MAX));
    o = options("tether", 9, 2, 4);
    o.M = 4;
    refused(ctx, "K != S + M + R", o);
    o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "tau", 1.01);
    refused(ctx, "tau", o);
    tt_policy_put(&o, "tau", NAN);
    refused(ctx, "tau NaN", o);
    o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "alpha", -0.1);
    refused(ctx, "alpha", o);
    o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "score-temperature", 0);
    refused(ctx, "temperature", o);
    refused(ctx, "fifo K < S + chunk", options("fifo", 4, 2, 0));
    refused(ctx, "fifo S < 0", options("fifo", 9, -2, 0));
    refused(ctx, "full with a budget", options("full", 9, 0, 0));

    /* Warnings: a warm-up that misses K, and positions past the tables. */
    char said[512] = "";
    ctx->warn = keep_last;
    ctx->warn_user = said;
    tt_cache_close(open_cache(ctx, options("tether", 10, 2, 4), 48));
    expect(strstr(said, "K = 9 or 12") != NULL, "warm-up: \"%s\"", said);
    said[0] = 0;
    tt_cache_close(open_cache(ctx, options("tether", 10, 2, 4), 9));
    expect(!said[0], "nothing to warn of when all frames fit: %s", said);
    tt_cache_close(open_cache(ctx, options("fifo", 9, 2, 4), 1026));
    expect(strstr(said, "1025") != NULL, "positions: \"%s\"", said);
    ctx->warn = NULL;

    /* Without memory: legal, nothing is set aside. */
    const tt_geometry g = geometry(48);
    o = options("tether", 7, 3, 4);
    o.M = 0;
    tt_policy_options with = options("tether", 7, 2, 4);
    with.M = 1;
    const tt_policy_class *cls = tt_policy_find("tether");
    const int64_t chunk = C * L * W * (int64_t)sizeof(tt_real);
    const int64_t index = g.layers * (int64_t)sizeof(int64_t);
    expect(tt_cache_bytes(cls, &with, &g) - tt_cache_bytes(cls, &o, &g)
           == chunk + index, "memory needs a chunk's values of one layer");
}

/* ---- windows ------------------------------------------------------------- */

/* Until the first eviction all policies read the same bits. */
static void check_same_start(tt_ctx *ctx)
{
    static seen a, b, d;
    tt_cache *full = open_cache(ctx, tt_policy_defaults("full"), 30);
    tt_cache *fifo = open_cache(ctx, options("fifo", 9, 2, 0), 30);
    tt_cache *tether = open_cache(ctx, options("tether", 9, 2, 4), 30);
    for (int64_t s = 0; s < 12; s += C) {
        run_chunk(ctx, full, &a, s);
        run_chunk(ctx, fifo, &b, s);
        run_chunk(ctx, tether, &d, s);
        const size_t n = (size_t)(a.n * W) * sizeof(tt_real);
        if (s == 9) {
            expect(a.n == 12 * L && b.n == 9 * L && d.n == 9 * L,
                   "windows after the first eviction");
            expect(memcmp(b.k, d.k, (size_t)(b.n * W) * sizeof *b.k) != 0,
                   "policies differ once they evict");
            break;
        }
        expect(a.n == (s + C) * L && b.n == a.n && d.n == a.n, "window at %d",
               (int)s);
        expect_bits("fifo k", a.k, b.k, n);
        expect_bits("fifo v", a.v, b.v, n);
        expect_bits("fifo q", a.q, b.q, sizeof a.q);
        expect_bits("tether k", a.k, d.k, n);
        expect_bits("tether v", a.v, d.v, n);
        expect_bits("tether q", a.q, d.q, sizeof a.q);
    }
    tt_cache_close(full);
    tt_cache_close(fifo);
    tt_cache_close(tether);
}

/* The worked positions of src/cache/README.md: fifo K 6, S 1. */
static void check_fifo_frames(tt_ctx *ctx)
{
    static seen a;
    static const int want[5][6] = { { 0, 1, 2 }, { 0, 1, 2, 3, 4, 5 },
                                    { 0, 4, 5, 6, 7, 8 },
                                    { 0, 7, 8, 9, 10, 11 },
                                    { 0, 10, 11, 12, 13, 14 } };
    tt_cache *c = open_cache(ctx, options("fifo", 6, 1, 0), 30);
    for (int i = 0; i < 5; i++) {
        run_chunk(ctx, c, &a, i * C);
        expect(frames_are(tt_cache_layer(c, 0), want[i], i ? 6 : 3),
               "fifo frames after chunk %d", i);
    }
    tt_cache_close(c);
}

/* Two calls with the same input leave the same cache; a new video starts from
 * zeros. */
static void check_rewrite(tt_ctx *ctx, const char *name)
{
    static seen a, b;
    tt_policy_options o = options(name, 9, 2, 4);
    tt_cache *c = open_cache(ctx, o, 30);
    for (int64_t s = 0; s < 15; s += C) run_chunk(ctx, c, &a, s);
    run_pass(ctx, c, &a, 15, C, 0, false);
    run_pass(ctx, c, &b, 15, C, 0, false);
    const size_t n = (size_t)(a.n * W) * sizeof(tt_real);
    expect_bits(name, a.k, b.k, n);
    expect_bits(name, a.v, b.v, n);

    tt_cache_reset(ctx, c);
    const tt_layer *y = tt_cache_layer(c, 1);
    bool zero = y->len == 0 && y->seen == 0;
    zero = zero && are_zero(ctx, y->k, y->cap * W)
           && are_zero(ctx, y->v, y->cap * W);
    expect(zero, "%s: reset leaves something", name);
    tt_cache *fresh = open_cache(ctx, o, 30);
    for (int64_t s = 0; s < 18; s += C) {
        run_chunk(ctx, c, &a, s);
        run_chunk(ctx, fresh, &b, s);
    }
    expect_bits("a second video", a.k, b.k, n);
    tt_cache_close(fresh);
    tt_cache_close(c);
}

/* ---- TetherCache --------------------------------------------------------- */

static void check_tether_counts(tt_ctx *ctx)
{
    static seen a;
    tt_cache *c = open_cache(ctx, options("tether", 9, 2, 4), 60);
    for (int64_t s = 0; s < 60; s += C) {
        run_chunk(ctx, c, &a, s);
        for (int64_t l = 0; l < 2; l++) {
            tether_layer t;
            const tt_layer *y = tt_cache_layer(c, l);
            if (!expect(tether_look(c, l, &t), "is tether")) break;
            const int64_t evicted = s >= 9 ? s - 6 : 0;
            expect(t.filled == (s >= 6), "filled at %d", (int)s);
            expect(t.admissions + t.rejections == evicted,
                   "every evicted frame is judged once");
            expect(t.edits == t.admissions, "every admitted frame is edited");
            for (int m = 0; m < 3 && t.filled; m++) {
                expect(t.memory_index[m] == y->src_frame[(2 + m) * L],
                       "memory index and metadata agree");
                expect(m == 0 || t.memory_index[m] > t.memory_index[m - 1],
                       "members are in time order");
            }
        }
    }
    tt_cache_close(c);
    c = open_cache(ctx, options("fifo", 9, 2, 4), 60);
    tether_layer t;
    expect(!tether_look(c, 0, &t), "fifo is not tether");
    tt_cache_close(c);
}

/* tau 0 edits nothing: every member's values are bits of a written frame. With
 * tau those of admitted members are not; founding members (frames 2, 3, 4)
 * were never edited. */
static void check_tau(tt_ctx *ctx, double tau)
{
    static seen a;
    static tt_real v[C * L * W];
    tt_policy_options o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "tau", tau);
    tt_cache *c = open_cache(ctx, o, 60);
    for (int64_t s = 0; s < 30; s += C) run_chunk(ctx, c, &a, s);
    int same = 0, founding = 0;
    tether_layer t;
    const tt_layer *y = tt_cache_layer(c, 1);
    tether_look(c, 1, &t);
    for (int m = 0; m < 3; m++) {
        const int64_t frame = t.memory_index[m], start = frame / C * C;
        fill(v, C * L * W, (uint32_t)(start * 64 + 2 * 8 + 4 + 2));
        founding += frame < 5;
        same += are(ctx, y->v + (2 + m) * L * W, v + (frame - start) * L * W,
                    L * W);
    }
    expect(t.admissions > 0, "someone was admitted");
    expect(founding < 3, "someone was replaced");
    expect(same == (tau == 0 ? 3 : founding),
           "tau %g: %d of 3 members as written", tau, same);
    expect(t.edits == (tau == 0 ? 0 : t.admissions), "edits");
    tt_cache_close(c);
}

/* Without memory: sink and recent frames, block-relative. */
static void check_no_memory(tt_ctx *ctx)
{
    static seen a, b;
    static const int want[7] = { 0, 1, 2, 11, 12, 13, 14 };
    tt_policy_options o = options("tether", 7, 3, 4);
    void (*const warn)(void *, const char *) = ctx->warn;
    char said[512];
    ctx->warn = keep_last;
    ctx->warn_user = said;
    tt_cache *c = open_cache(ctx, o, 60);
    o = options("tether", 7, 0, 7);              /* recency only */
    tt_cache *r = open_cache(ctx, o, 60);
    ctx->warn = warn;
    for (int64_t s = 0; s < 15; s += C) {
        run_chunk(ctx, c, &a, s);
        run_chunk(ctx, r, &b, s);
    }
    expect(frames_are(tt_cache_layer(c, 0), want, 7), "M = 0");
    expect(a.n == 7 * L && b.n == 7 * L, "M = 0 window");
    expect_bits("same queries", a.q, b.q, sizeof a.q);
    tt_cache_close(c);
    tt_cache_close(r);
}

/* Frame f of a view's values holds what pass `step` wrote for `frame`. */
static bool holds(const seen *a, int64_t f, int64_t frame, int step)
{
    static tt_real want[L * W];
    fill_frame(want, frame, step, 1, 2);
    return !memcmp(a->v + f * L * W, want, sizeof want);
}

/* Every pass of a chunk attends to sink, memory, recent frames and itself,
 * though the evicted frames have the chunk's slots between two passes; and
 * these come out as they went in. */
static void check_exchange(tt_ctx *ctx)
{
    static seen a;
    tt_policy_options o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "tau", 0);                 /* members are as written */
    tt_cache *c = open_cache(ctx, o, 60);
    for (int64_t s = 0; s < 9; s += C) run_chunk(ctx, c, &a, s);
    const tt_layer *y = tt_cache_layer(c, 1);
    for (int64_t s = 9; s < 30; s += C)
        for (int step = 0; step < 3; step++) {
            run_pass(ctx, c, &a, s, C, step, step == 2);
            bool ok = a.n == 9 * L;
            for (int64_t f = 0; f < 6; f++)
                ok = ok && holds(&a, f, y->src_frame[f * L], 2);
            for (int64_t f = 0; f < C; f++)
                ok = ok && holds(&a, 6 + f, s + f, step);
            expect(ok, "window of chunk %d, pass %d", (int)(s / C), step);
            for (int64_t f = 0; f < 2 * C && step < 2; f++) {
                static tt_real out[L * W];
                const int layer = (int)(f / C);  /* they share the buffer */
                const tt_layer *at = tt_cache_layer(c, layer);
                fill_frame(out, s - 4 + f % C, 2, layer, 2);
                expect(are(ctx, at->v + (6 + f % C) * L * W, out, L * W),
                       "evicted frame %d waits", (int)(s - 4 + f % C));
            }
        }
    tt_cache_close(c);
}

/* Given latents under another context noise: one pass that commits nothing.
 * The chunk stays, whom it pushed out is forgotten. A chunk that never ends is
 * refused. */
static void check_last(tt_ctx *ctx)
{
    static seen a;
    static const int want[9] = { 0, 1, 2, 3, 4, 14, 15, 16, 17 };
    tt_cache *c = open_cache(ctx, options("tether", 9, 2, 4), 60);
    tether_layer t;
    for (int64_t s = 0; s < 18; s += C)
        run_pass_as(ctx, c, &a, (tt_pass){ .start = s, .frames = C,
            .chunk = s / C, .last = true });
    const tt_layer *y = tt_cache_layer(c, 1);
    bool ok = frames_are(y, want, 9);
    for (int64_t f = 0; f < 9; f++) ok = ok && holds(&a, f, want[f], 0);
    for (int64_t f = 0; f < 9; f++) {
        static tt_real v[L * W];
        fill_frame(v, want[f], 0, 1, 2);
        ok = ok && are(ctx, y->v + f * L * W, v, L * W);
    }
    expect(ok, "given chunks stay");
    tether_look(c, 1, &t);
    expect(t.admissions + t.rejections == 0, "no frame is scored");
    run_chunk(ctx, c, &a, 18);
    tether_look(c, 1, &t);
    expect(t.admissions + t.rejections == C, "one chunk's frames are judged");
    run_pass(ctx, c, &a, 21, C, 0, false);
    run_pass(ctx, c, &a, 24, C, 0, false);
    expect_status(ctx->status, TT_EINVAL, "a chunk without a last pass");
    tt_cache_close(c);
}

static double worst;             /* |sum of mass - 1| over all rounds */
typedef struct listener {
    const tt_layer *y;
    int64_t rounds;
} listener;

static void on_event(void *user, const tt_event *e)
{
    listener *l = user;
    double sum = 0;
    int64_t kept = 0, P, M, one;
    const double *mass = tt_event_values(e, "mass", TT_F64, &P);
    const double *div = tt_event_values(e, "div", TT_F64, NULL);
    const uint8_t *keep = tt_event_values(e, "keep", TT_U8, NULL);
    const double *margin = tt_event_values(e, "margin", TT_F64, &one);
    if (!expect(!strcmp(e->kind->name, "grab") && mass && div && keep
                && one == 1, "a round has its fields")) return;
    tt_event_values(e, "memory_after", TT_I64, &M);
    for (int64_t c = 0; c < P; c++) {
        sum += mass[c];
        kept += keep[c];
        if (!(div[c] >= 0 && div[c] <= 1)) worst = 1;
    }
    if (!(fabs(sum - 1) <= worst)) worst = fabs(sum - 1);
    expect(kept == M && M == 3 && *margin >= 0, "round %d", (int)l->rounds);
    expect(!tt_event_values(e, "mass", TT_I64, &M) && M == 0
           && !tt_event_values(e, "masses", TT_F64, NULL)
           && tt_event_int(e, "mass") == 0
           && tt_event_int(e, "keep") == keep[0],
           "fields go by name and type");
    l->rounds++;
}

static void check_records(tt_ctx *ctx, int pool)
{
    static seen a;
    listener l = {0};
    tt_policy_options o = options("tether", 9, 2, 4);
    tt_policy_put(&o, "pool", pool);
    tt_cache *c = open_cache(ctx, o, 60);
    tt_cache_on_event(c, on_event, &l);
    worst = 0;
    for (int64_t s = 0; s < 30; s += C) run_chunk(ctx, c, &a, s);
    expect(worst < 1e-12, "mass sums to 1, diversity in 0..1: %g", worst);
    expect(l.rounds == 7 * 2 * (pool == 1 ? C : 1),
           "%d rounds", (int)l.rounds);
    tt_cache_close(c);
}

/* NaN in the keys is refused at the first admission, not spread. */
static void check_nan(tt_ctx *ctx)
{
    static seen a;
    tt_cache *c = open_cache(ctx, options("tether", 9, 2, 4), 60);
    for (int64_t s = 0; s < 9; s += C) run_chunk(ctx, c, &a, s);
    spoil(ctx, tt_cache_layer(c, 0)->k + 3 * L * W);
    run_chunk(ctx, c, &a, 9);
    expect_status(ctx->status, TT_EFORMAT, "NaN in a member");
    tt_cache_close(c);
}

/* ---- a policy from outside ----------------------------------------------- */

/* Newest chunk first, then one sink frame far away: two segments, one with
 * positions per token. Written with policy.h alone. */
static int64_t odd_slots(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return 4 * g->L;
}
static int64_t odd_positions(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return g->frames + 50;
}
static void odd_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                      const tt_qkv *x)
{
    (void)ctx, (void)x;
    tt_layer_roll(ctx, y, y->geo->L, p->frames * y->geo->L);
}
static void odd_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                      const tt_qkv *x)
{
    tt_layer_put(ctx, y, p, x);
    for (int64_t i = 0; i < y->geo->L; i++) y->tpos[i] = 47;
}
static void odd_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                     tt_plan *out)
{
    const int64_t n = p->frames * y->geo->L;
    (void)ctx;
    out->nsegments = 2;
    out->segment[0] = (tt_segment){ y->len - n, n, 5 };
    out->segment[1] = (tt_segment){ 0, y->geo->L, TT_T_PER_TOKEN };
    out->q_t0 = 5;
}
static const tt_policy_class odd = {
    .name = "odd", .summary = "a test", .slots = odd_slots,
    .begin = odd_begin, .write = odd_write, .plan = odd_plan,
    .positions = odd_positions,
};

/* y = the keys of T tokens at these positions. */
static void turn(tt_ctx *ctx, tt_real *y, const tt_real *k, int64_t T,
                 tt_cache *c, const int32_t *pos)
{
    tt_real *rotated = tt_values(ctx, T * W);
    tt_rope(ctx, rotated, tt_send(ctx, k, T * W), T, H, D, tt_cache_rope(c),
            pos);
    take(ctx, y, rotated, T * W);
}

static void check_outside_policy(tt_ctx *ctx)
{
    static seen a;
    static tt_real k[C * L * W], want[C * L * W];
    const tt_geometry g = geometry(30);
    const tt_policy_options o = { .name = "ignored" };
    tt_cache *c;
    if (!expect_ok(tt_cache_open(ctx, &c, &odd, &o, &g), "odd")) return;
    for (int64_t s = 0; s < 9; s += C) run_chunk(ctx, c, &a, s);
    expect(a.n == 4 * L, "two segments");
    int32_t pos[C * L][3];
    for (int i = 0; i < C * L; i++)
        pos[i][0] = 5 + i / L, pos[i][1] = i % L / 3, pos[i][2] = i % L % 3;
    fill(k, C * L * W, 6 * 64 + 2 * 8 + 4 + 1);   /* newest chunk, last pass */
    turn(ctx, want, k, C * L, c, pos[0]);
    expect_bits("newest first", a.k, want, sizeof want);
    for (int i = 0; i < L; i++) pos[i][0] = 47;
    fill(k, C * L * W, 0 * 64 + 2 * 8 + 4 + 1);   /* frame 0 */
    turn(ctx, want, k, L, c, pos[0]);
    expect_bits("sink after", a.k + C * L * W, want, L * W * sizeof *want);
    fill(k, C * L * W, 0 * 64 + 2 * 8 + 4 + 2);
    expect_bits("its values", a.v + C * L * W, k, L * W * sizeof *k);
    tt_cache_close(c);
}

int main(void)
{
    tt_ctx *ctx = test_begin("cache/policy");
    check_options(ctx);
    check_same_start(ctx);
    check_fifo_frames(ctx);
    check_rewrite(ctx, "fifo");
    check_rewrite(ctx, "tether");
    check_tether_counts(ctx);
    check_tau(ctx, 0);
    check_tau(ctx, 0.35);
    check_no_memory(ctx);
    check_records(ctx, 0);
    check_records(ctx, 1);
    check_nan(ctx);
    check_exchange(ctx);
    check_last(ctx);
    check_outside_policy(ctx);
    expect_ok(ctx->status, "nothing left recorded");
    return test_end();
}
