/* test_windows.c: what infinity-RoPE, MemRoPE and Rolling Sink keep and where
 * they and others believe it to be, without a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: the worked positions of src/cache/README.md, averages computed
 * here by hand. Properties: order, counts. */
#include <math.h>
#include <stdio.h>

#include "tests/cache/drive.h"

/* ---- worked positions ---------------------------------------------------- */

typedef struct row {
    int n;                       /* frames                                    */
    int src[12], t[12];
    int q;
} row;

static void check_rows(tt_ctx *ctx, tt_policy_options o, const row *rows,
                       int nrows)
{
    static seen a;
    tt_cache *c = open_cache(ctx, o, 60);
    for (int i = 0; c && i < nrows; i++) {
        const row *r = &rows[i];
        run_chunk(ctx, c, &a, i * C);
        const tt_plan plan = plan_at(ctx, c, i * C, 2, false);
        expect(frames_are(tt_cache_layer(c, 0), r->src, r->n),
               "%s: frames after chunk %d", o.name, i);
        expect(positions_are(c, &plan, r->t, r->n), "%s: positions of chunk "
               "%d", o.name, i);
        expect(plan.q_t0 == r->q, "%s: queries of chunk %d at %d, expected %d",
               o.name, i, (int)plan.q_t0, r->q);
        expect(a.n == r->n * L, "%s: window of chunk %d", o.name, i);
    }
    tt_cache_close(c);
}

static void check_worked_positions(tt_ctx *ctx)
{
    static const row infinity[] = {
        { 3, { 0, 1, 2 }, { 0, 1, 2 }, 0 },
        { 6, { 0, 1, 2, 3, 4, 5 }, { 0, 1, 2, 3, 4, 5 }, 3 },
        { 6, { 0, 4, 5, 6, 7, 8 }, { 0, 1, 2, 3, 4, 5 }, 3 },
        { 6, { 0, 7, 8, 9, 10, 11 }, { 0, 1, 2, 3, 4, 5 }, 3 },
        { 6, { 0, 10, 11, 12, 13, 14 }, { 0, 1, 2, 3, 4, 5 }, 3 },
    };
    check_rows(ctx, tt_policy_defaults("infinity"), infinity, 5);
    static const row memrope[] = {
        { 3, { 0, 1, 2 }, { 0, 1, 2 }, 0 },
        { 6, { 0, 1, 2, 3, 4, 5 }, { 0, 1, 2, 3, 4, 5 }, 3 },
        { 9, { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 6 },
        { 12, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
          { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 9 },
        { 12, { 0, 1, 2, -2, -3, 8, 9, 10, 11, 12, 13, 14 },
          { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 9 },
        { 12, { 0, 1, 2, -2, -3, 11, 12, 13, 14, 15, 16, 17 },
          { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 9 },
    };
    check_rows(ctx, tt_policy_defaults("memrope"), memrope, 6);
    static const row deep_sink[] = {
        { 3, { 0, 1, 2 }, { 0, 1, 2 }, 0 },
        { 6, { 0, 1, 2, 3, 4, 5 }, { 0, 1, 2, 3, 4, 5 }, 3 },
        { 6, { 0, 1, 5, 6, 7, 8 }, { 0, 1, 5, 6, 7, 8 }, 6 },
        { 6, { 0, 1, 8, 9, 10, 11 }, { 3, 4, 8, 9, 10, 11 }, 9 },
        { 6, { 0, 1, 11, 12, 13, 14 }, { 6, 7, 11, 12, 13, 14 }, 12 },
    };
    check_rows(ctx, options("deep-sink", 6, 2, 0), deep_sink, 5);
}

/* ---- infinity ------------------------------------------------------------ */

/* With K not a multiple of the chunk the evicting pass stands elsewhere than
 * the later ones of its chunk. */
static void check_query_rule(tt_ctx *ctx)
{
    static seen a;
    tt_cache *c = open_cache(ctx, options("infinity", 7, 1, 0), 60);
    run_chunk(ctx, c, &a, 0);
    run_chunk(ctx, c, &a, 3);
    run_pass(ctx, c, &a, 6, C, 0, false);
    expect(plan_at(ctx, c, 6, 0, false).q_t0 == 4, "the pass that evicts");
    run_pass(ctx, c, &a, 6, C, 1, false);
    expect(plan_at(ctx, c, 6, 1, false).q_t0 == 6, "a later pass");
    run_chunk(ctx, c, &a, 9);
    expect(plan_at(ctx, c, 9, 2, false).q_t0 == 4, "a later chunk");
    tt_cache_close(c);
}

static tt_cache *open_scenes(tt_ctx *ctx, int64_t K, int64_t S)
{
    const tt_policy_options o = options("infinity", K, S, 0);
    tt_geometry g = geometry(60);
    tt_cache *c = NULL;
    g.scenes = 3;
    expect_ok(tt_cache_open(ctx, &c, NULL, &o, &g), o.name);
    return c;
}

/* The whole rule in a few lines, over frames instead of tokens: slot[f] is the
 * frame whose clean keys lie in frame slot f, -1 for zeros. */
typedef struct flush_model {
    int slot[16], len, K, S;
} flush_model;

static void model_chunk(flush_model *m, int start, bool scene)
{
    if (scene) {
        m->slot[1] = m->slot[m->K - 2];
        m->slot[2] = m->slot[m->K - 1];
        m->len = 3;
    }
    const int excess = m->len + C - m->K;
    if (excess > 0) {
        for (int f = m->S; f + excess < m->len; f++)
            m->slot[f] = m->slot[f + excess];
        m->len -= excess;
    }
    for (int i = 0; i < C; i++) m->slot[m->len++] = start + i;
}

/* Every slot of the buffer, live or stale, holds what the model says: source,
 * keys and values. */
static bool model_holds(tt_ctx *ctx, const flush_model *m, const tt_layer *y,
                        int layer)
{
    static tt_real k[L * W], v[L * W];
    bool ok = y->len == m->len * L;
    for (int f = 0; f < m->K && ok; f++) {
        memset(k, 0, sizeof k);
        memset(v, 0, sizeof v);
        if (m->slot[f] >= 0) fill_frame(k, m->slot[f], 2, layer, 1);
        if (m->slot[f] >= 0) fill_frame(v, m->slot[f], 2, layer, 2);
        ok = y->src_frame[f * L] == m->slot[f]
             && are(ctx, y->k + f * L * W, k, L * W)
             && are(ctx, y->v + f * L * W, v, L * W);
    }
    return ok;
}

/* Scenes in random places, several lengths: each chunk the cache is what the
 * model says. */
static void check_flush_model(tt_ctx *ctx)
{
    static seen a;
    uint32_t seed = 5;
    for (int K = 6; K <= 13; K++)
        for (int S = 1; S <= 3; S++) {
            tt_cache *c = open_scenes(ctx, K, S);
            flush_model m = { .K = K, .S = S };
            for (int f = 0; f < 16; f++) m.slot[f] = -1;
            bool ok = true;
            for (int start = 0; start < 60 && ok; start += C) {
                seed = seed * 1664525u + 1013904223u;
                const bool scene = start > 0 && (seed >> 24) % 3 == 0;
                if (scene) run_scene(ctx, c, &a, start, (seed >> 23) % 2);
                else run_chunk(ctx, c, &a, start);
                model_chunk(&m, start, scene);
                ok = model_holds(ctx, &m, tt_cache_layer(c, 1), 1);
                expect(ok, "K %d, S %d: the cache after frame %d", K, S,
                       start);
            }
            tt_cache_close(c);
        }
}

static void check_flush(tt_ctx *ctx)
{
    static seen a;
    tt_cache *c = open_scenes(ctx, 9, 2);
    for (int64_t s = 0; s < 12; s += C) run_chunk(ctx, c, &a, s);
    const tt_layer *y = tt_cache_layer(c, 0);
    static const int before[] = { 0, 1, 5, 6, 7, 8, 9, 10, 11 };
    expect(frames_are(y, before, 9), "before the flush");
    run_scene(ctx, c, &a, 12, true);
    static const int after[] = { 0, 10, 11, 12, 13, 14 };
    static const int cut_t[] = { 0, 1, 2, 45, 46, 47 };
    static const int t[] = { 0, 1, 2, 3, 4, 5 };
    tt_plan plan = plan_at(ctx, c, 12, 1, true);
    expect(frames_are(y, after, 6), "slot 0 and the last two");
    expect(positions_are(c, &plan, cut_t, 6) && plan.q_t0 == 45, "the cut");
    plan = plan_at(ctx, c, 12, 1, false);
    expect(positions_are(c, &plan, t, 6) && plan.q_t0 == 6,
           "without one the queries stay at K - C, after their keys");
    /* What is flushed is what was there. */
    tt_real want[L * W];
    fill_frame(want, 10, 2, 0, 1);
    expect(are(ctx, y->k + L * W, want, L * W), "the flushed keys");
    fill_frame(want, 10, 2, 0, 2);
    expect(are(ctx, y->v + L * W, want, L * W), "the flushed values");
    /* A second flush before the cache is full again finds what lay there. */
    run_scene(ctx, c, &a, 15, false);
    static const int stale[] = { 0, 10, 11, 15, 16, 17 };
    expect(frames_are(y, stale, 6), "stale frames");
    tt_cache_close(c);

    /* A flush before the cache was ever full: frames of zeros. */
    c = open_scenes(ctx, 9, 2);
    y = tt_cache_layer(c, 0);
    run_chunk(ctx, c, &a, 0);
    run_scene(ctx, c, &a, 3, false);
    bool zero = y->len == 6 * L;
    for (int64_t i = L; i < 3 * L; i++) zero = zero && y->src_frame[i] == -1;
    zero = zero && are_zero(ctx, y->k + L * W, 2 * L * W)
           && are_zero(ctx, y->v + L * W, 2 * L * W);
    expect(zero, "slots never written are zeros");
    expect(plan_at(ctx, c, 3, 2, false).q_t0 == 3, "queries at their time");
    tt_cache_close(c);
}

/* S = 0 after its switch: frame slot 0 is read as it is, frame 0 is not. */
static void check_raw_slot0(tt_ctx *ctx)
{
    static seen a;
    tt_real want[L * W];
    tt_policy_options o = options("infinity", 6, 0, 0);
    tt_policy_put(&o, "raw-slot0", true);
    tt_cache *c = open_cache(ctx, o, 60);
    tt_policy_options m = options("memrope", 6, 0, 0);
    tt_policy_put(&m, "memrope-method", 1);
    tt_cache *other = open_cache(ctx, m, 60);
    static seen b;
    for (int64_t s = 0; s < 9; s += C) {
        run_chunk(ctx, c, &a, s);
        run_chunk(ctx, other, &b, s);
        const size_t n = (size_t)(a.n * W) * sizeof(tt_real);
        const size_t frame = L * W * sizeof(tt_real);
        if (s < 6) expect_bits("frame 0 is rotated", a.k, b.k, n);
        else expect_bits("the others are", a.k + L * W, b.k + L * W, n - frame);
    }
    fill_frame(want, 3, 2, 1, 1);
    expect_bits("frame slot 0 is raw", a.k, want, sizeof want);
    expect_bits("values", a.v, b.v, (size_t)(a.n * W) * sizeof(tt_real));
    tt_cache_close(c);
    tt_cache_close(other);
}

/* ---- memrope ------------------------------------------------------------- */

/* Mean of frames [first, first + C) of layer 0 per channel, or per position. */
static void mean_of(double *out, int64_t first, int what, bool positions)
{
    tt_real x[L * W];
    for (int i = 0; i < L * W; i++) out[i] = 0;
    for (int f = 0; f < C; f++) {
        fill_frame(x, first + f, 2, 0, what);
        for (int i = 0; i < L * W; i++)
            for (int l = 0; l < L; l++) {
                if (positions && l != i / W) continue;
                out[l * W + i % W] += (double)x[i] / (positions ? C : C * L);
            }
    }
}

static double apart(tt_ctx *ctx, const tt_real *x, const double *b)
{
    static tt_real a[L * W];
    double worst = 0;
    take(ctx, a, x, L * W);
    for (int i = 0; i < L * W; i++)
        if (!(fabs((double)a[i] - b[i]) <= worst))
            worst = fabs((double)a[i] - b[i]);
    return worst;
}

/* First frames 5-7 are evicted, then 8-10 (K 12, S 3). */
static void check_averages(tt_ctx *ctx, bool adaptive)
{
    static seen a;
    static double m1[L * W], m2[L * W], v1[L * W], v2[L * W], want[L * W];
    tt_policy_options o = tt_policy_defaults("memrope");
    tt_policy_put(&o, "adaptive", adaptive);
    tt_policy_put(&o, "alpha-long", 0.25);
    tt_policy_put(&o, "alpha-short", 0.15);
    tt_cache *c = open_cache(ctx, o, 60);
    const tt_layer *y = tt_cache_layer(c, 0);
    const tt_real *k = y->k + 3 * L * W, *v = y->v + 3 * L * W;
    for (int64_t s = 0; s < 15; s += C) run_chunk(ctx, c, &a, s);
    mean_of(m1, 5, 1, adaptive);
    mean_of(v1, 5, 2, adaptive);
    expect(apart(ctx, k, m1) < 1e-6 && apart(ctx, k + L * W, m1) < 1e-6
           && apart(ctx, v, v1) < 1e-6 && apart(ctx, v + L * W, v1) < 1e-6,
           "both averages begin with the first evicted frames");
    run_chunk(ctx, c, &a, 15);
    mean_of(m2, 8, 1, adaptive);
    mean_of(v2, 8, 2, adaptive);
    for (int i = 0; i < L * W; i++) want[i] = 0.25 * m2[i] + 0.75 * m1[i];
    expect(apart(ctx, k, want) < 1e-6, "the slow average");
    for (int i = 0; i < L * W; i++) want[i] = 0.25 * v2[i] + 0.75 * v1[i];
    expect(apart(ctx, v, want) < 1e-6, "of values");

    double rate[L], top = 0;
    for (int l = 0; l < L; l++) {
        rate[l] = 0;
        for (int h = 0; h < H; h++) {
            double sum = 0;
            for (int d = 0; d < D; d++) {
                const int i = l * W + h * D + d;
                sum += (m2[i] - m1[i]) * (m2[i] - m1[i]);
            }
            rate[l] += sqrt(sum) / H;
        }
        if (rate[l] > top) top = rate[l];
    }
    for (int l = 0; l < L; l++)
        rate[l] = adaptive ? 0.015 + rate[l] / top * (0.75 - 0.015) : 0.15;
    for (int i = 0; i < L * W; i++)
        want[i] = rate[i / W] * m2[i] + (1 - rate[i / W]) * m1[i];
    expect(apart(ctx, k + L * W, want) < 1e-6, "the fast average%s",
           adaptive ? ", adaptive" : "");
    for (int i = 0; i < L * W; i++)
        want[i] = rate[i / W] * v2[i] + (1 - rate[i / W]) * v1[i];
    expect(apart(ctx, v + L * W, want) < 1e-6, "of values");
    tt_cache_close(c);
}

/* ---- rolling sink -------------------------------------------------------- */

/* The released rule, written once more: after the clean pass of a chunk that
 * begins at cs >= K, the chunk before it holds first frames of the video. */
static void expect_swept(int *want, int K, int cs)
{
    const int w = K - C, g = cs - C, at = g % w;
    const bool back = g / w % 2 == 1;
    for (int i = 0; i < C; i++)
        want[i] = back ? w - at - C + (C - 1 - i) : at + i;
}

static void check_rolling_sink(tt_ctx *ctx)
{
    enum { K = 9 };
    static seen a;
    int window[K];
    tt_cache *c = open_cache(ctx, options("rolling-sink", K, 0, 0), 60);
    const tt_layer *y = tt_cache_layer(c, 1);
    for (int cs = 0; cs < 48; cs += C) {
        if (cs >= K) memmove(window, window + C, (K - C) * sizeof *window);
        const int n = cs < K ? cs + C : K;
        for (int i = 0; i < C; i++) window[n - C + i] = cs + i;
        run_chunk(ctx, c, &a, cs);
        expect(a.n == n * L, "chunk at %d reads %d tokens", cs, (int)a.n);
        if (cs >= K) expect_swept(window + K - 2 * C, K, cs);
        const int64_t base = y->len - n * L;
        bool ok = true;
        for (int i = 0; i < n * L; i++)
            ok = ok && y->src_frame[base + i] == window[i / L]
                 && y->tpos[base + i] == cs + C - n + i / L;
        for (int f = 0; f < n && cs >= K; f++) {
            static tt_real v[L * W];
            fill_frame(v, window[f], 2, 1, 2);
            ok = ok && are(ctx, y->v + (base + f * L) * W, v, L * W);
        }
        expect(ok, "the window after the chunk at %d", cs);
    }
    tt_cache_close(c);
    refused_with(ctx, "multiple", options("rolling-sink", 10, 0, 0), 0);
    refused_with(ctx, "two chunks", options("rolling-sink", 3, 0, 0), 0);
}

/* ---- the smallest policy ------------------------------------------------- */

/* It keeps everything where it is: written with policy.h alone. */
static int64_t every_slot(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return g->frames * g->L;
}
static int64_t every_frame(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return g->frames;
}
static void read_all(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                     tt_plan *out)
{
    (void)ctx;
    *out = (tt_plan){ 1, { { 0, y->len, 0 } }, p->start };
}
static const tt_policy_class nothing = {
    .name = "nothing", .summary = "a test", .slots = every_slot,
    .positions = every_frame, .plan = read_all,
};

static void check_smallest(tt_ctx *ctx)
{
    static seen a, b;
    const tt_geometry g = geometry(18);
    const tt_policy_options o = { .name = "ignored" };
    tt_cache *full = open_cache(ctx, tt_policy_defaults("full"), 18), *c;
    if (!expect_ok(tt_cache_open(ctx, &c, &nothing, &o, &g), "nothing")) return;
    for (int64_t s = 0; s < 18; s += C) {
        run_chunk(ctx, full, &a, s);
        run_chunk(ctx, c, &b, s);
        const size_t n = (size_t)(a.n * W) * sizeof(tt_real);
        expect(a.n == b.n, "window");
        expect_bits("k", a.k, b.k, n);
        expect_bits("v", a.v, b.v, n);
        expect_bits("q", a.q, b.q, sizeof a.q);
    }
    tt_cache_close(full);
    tt_cache_close(c);
}

int main(void)
{
    tt_ctx *ctx = test_begin("cache/windows");
    check_worked_positions(ctx);
    check_query_rule(ctx);
    check_flush(ctx);
    check_flush_model(ctx);
    check_raw_slot0(ctx);
    check_averages(ctx, false);
    check_averages(ctx, true);
    check_rolling_sink(ctx);
    check_smallest(ctx);
    expect_ok(ctx->status, "nothing left recorded");
    return test_end();
}
