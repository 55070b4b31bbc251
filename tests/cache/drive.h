/* drive.h: a cache driven without a network, for tests of policies.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Keys and values are made so that each tells its frame, token and pass. */
#ifndef TT_TESTS_CACHE_DRIVE_H
#define TT_TESTS_CACHE_DRIVE_H

#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "core/device.h"
#include "cache/policy.h"

/* Of a frame; a program may have others. */
#ifndef GRID_H
#define GRID_H 2
#define GRID_W 3
#endif
enum { H = 2, D = 12, L = GRID_H * GRID_W, C = 3, W = H * D };

static inline tt_geometry geometry(int64_t frames)
{
    return (tt_geometry){ .layers = 2, .H = H, .D = D, .grid_h = GRID_H,
                          .grid_w = GRID_W, .L = L, .chunk = C,
                          .first_chunk = C, .frames = frames };
}

static inline tt_policy_options options(const char *name, int64_t K, int64_t S,
                                        int64_t R)
{
    tt_policy_options o = tt_policy_defaults(name);
    o.K = K, o.S = S, o.R = R;
    return o;
}

/* Irregular but reproducible values in about -1..1. */
static inline void fill(tt_real *x, int64_t n, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (tt_real)((double)s / 2147483648.0 - 1);
    }
}

/* n values of a device. */
static inline void take(tt_ctx *ctx, tt_real *to, const tt_real *x, int64_t n)
{
    const tt_host *h = tt_get(ctx, x, n);
    if (h) memcpy(to, h, (size_t)n * sizeof *to);
}

/* The values of a view from token `n_packed` on. */
static inline void take_values(tt_ctx *ctx, tt_real *to, const tt_kv_view *view)
{
    take(ctx, to, view->v, (view->n - view->n_packed) * W);
}

/* Are n values of a device these? */
static inline bool are(tt_ctx *ctx, const tt_real *x, const tt_real *want,
                       int64_t n)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_host *h = tt_get(ctx, x, n);
    const bool same = h && !memcmp(h, want, (size_t)n * sizeof *want);
    tt_arena_reset(&ctx->scratch, m);
    return same;
}

static inline bool are_zero(tt_ctx *ctx, const tt_real *x, int64_t n)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_host *h = tt_get(ctx, x, n);
    bool zero = h != NULL;
    for (int64_t i = 0; i < n && zero; i++) zero = h[i] == 0;
    tt_arena_reset(&ctx->scratch, m);
    return zero;
}

/* One value of a device becomes NaN. */
static inline void spoil(tt_ctx *ctx, tt_real *x)
{
    tt_host *h = tt_get(ctx, x, 1);
    if (h) *h = (tt_host)NAN;
    if (h) tt_put(ctx, x, h, 1);
}

/* One pass of a chunk over both layers; the views of the last layer copied. */
typedef struct seen {
    int64_t n;
    tt_real k[64 * L * W], v[64 * L * W], q[C * L * W];
} seen;

static inline void run_pass_as(tt_ctx *ctx, tt_cache *c, seen *out, tt_pass p)
{
    for (int64_t l = 0; l < 2; l++) {
        static tt_real q[C * L * W], k[C * L * W], v[C * L * W];
        const uint32_t id = (uint32_t)(p.start * 64 + p.step * 8 + l * 4);
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        tt_kv_view view;
        fill(q, p.frames * L * W, id);
        fill(k, p.frames * L * W, id + 1);
        fill(v, p.frames * L * W, id + 2);
        const int64_t n = p.frames * L * W;
        const tt_real *sent = tt_send(ctx, q, n);
        tt_real *rotated = tt_values(ctx, n);
        tt_cache_write(ctx, c, l, &p, &(tt_qkv){sent, tt_send(ctx, k, n),
                                                tt_send(ctx, v, n)});
        tt_cache_read(ctx, c, l, &p, &view, rotated, sent);
        if (!ctx->status) {
            take(ctx, out->q, rotated, n);
            take(ctx, out->k, view.k, (view.n - view.n_packed) * W);
            take_values(ctx, out->v, &view);
        }
        out->n = view.n;
        tt_cache_done(ctx, c, l, &p);
        tt_arena_reset(&ctx->scratch, m);
    }
}

static inline void run_pass(tt_ctx *ctx, tt_cache *c, seen *out, int64_t start,
                            int64_t f, int step, bool context)
{
    const tt_pass p = { .start = start, .frames = f, .chunk = start / C,
                        .step = step, .context = context };
    run_pass_as(ctx, c, out, p);
}

/* Two noisy passes and the clean one. */
static inline void run_chunk(tt_ctx *ctx, tt_cache *c, seen *out,
                             int64_t start)
{
    for (int step = 0; step < 3; step++)
        run_pass(ctx, c, out, start, C, step, step == 2);
}

/* The same for the first chunk of a scene. */
static inline void run_scene(tt_ctx *ctx, tt_cache *c, seen *out, int64_t start,
                             bool cut)
{
    for (int step = 0; step < 3; step++)
        run_pass_as(ctx, c, out, (tt_pass){ .start = start, .frames = C,
            .chunk = start / C, .step = step, .context = step == 2,
            .prompt_changed = true, .cut = cut });
}

/* Values of a frame's keys (1) or values (2) in a layer, as its pass `step`
 * wrote them. */
static inline void fill_frame(tt_real *out, int64_t frame, int step, int layer,
                              int what)
{
    static tt_real chunk[C * L * W];
    const int64_t start = frame / C * C;
    fill(chunk, C * L * W,
         (uint32_t)(start * 64 + step * 8 + layer * 4 + what));
    memcpy(out, chunk + (frame - start) * L * W, L * W * sizeof *out);
}

static inline tt_cache *open_cache(tt_ctx *ctx, tt_policy_options o,
                                   int64_t frames)
{
    const tt_geometry g = geometry(frames);
    tt_cache *c;
    if (!expect_ok(tt_cache_open(ctx, &c, NULL, &o, &g), o.name)) return NULL;
    return c;
}

/* Source frame of every frame slot, read from a layer's metadata. */
static inline bool frames_are(const tt_layer *y, const int *want, int n)
{
    for (int f = 0; f < n; f++)
        for (int t = 0; t < L; t++)
            if (y->src_frame[f * L + t] != want[f]
                || y->sidx[f * L + t] != t)
                return false;
    return y->len == n * L;
}

/* The plan of layer 0 for a pass of the chunk at `start`. */
static inline tt_plan plan_at(tt_ctx *ctx, tt_cache *c, int64_t start, int step,
                              bool cut)
{
    tt_plan plan = {0};
    const tt_pass p = { .start = start, .frames = C, .chunk = start / C,
                        .step = step, .cut = cut };
    tt_cache_class(c)->plan(ctx, tt_cache_layer(c, 0), &p, &plan);
    return plan;
}

/* Frame position of every live frame slot, as planned; n of them. */
static inline bool positions_are(tt_cache *c, const tt_plan *plan,
                                 const int *want, int n)
{
    const tt_layer *y = tt_cache_layer(c, 0);
    int f = 0;
    for (int i = 0; i < plan->nsegments; i++)
        for (int64_t t = 0; t < plan->segment[i].ntokens; t += L, f++) {
            const tt_segment *s = &plan->segment[i];
            const int64_t at = s->t0 == TT_T_PER_TOKEN ? y->tpos[s->slot + t]
                                                       : s->t0 + t / L;
            if (f >= n || at != want[f]) return false;
        }
    return f == n;
}

/* Opening a cache with these options is refused, with this word. */
static inline void refused_with(tt_ctx *ctx, const char *word,
                                tt_policy_options o, int64_t scenes)
{
    tt_geometry g = geometry(48);
    tt_cache *c = NULL;
    g.scenes = scenes;
    const tt_status s = tt_cache_open(ctx, &c, NULL, &o, &g);
    expect(c == NULL && strstr(tt_message(ctx), word), "%s: \"%s\" lacks "
           "\"%s\"", o.name, tt_message(ctx), word);
    expect_status(s, TT_EINVAL, word);
}

#endif
