/* test_parts.c: token rows of a chunk computed by the ranks of a team.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: the rows of every rank have the bits of those rows when one rank
 * computes all; with one time entry and, where a rank has whole frames, with
 * one per frame, in a first and in a later chunk; with more ranks than heads,
 * with more ranks than rows, and in a window of more than a block. Of the
 * prompt a rank knows its own rows. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "dit/dit.h"
#include "team/team.h"

enum { F = 3, ROWS = 5, CHUNKS = 3, BLOCKS = 2 };
enum { CALLS = CHUNKS * 2 * BLOCKS }; /* a noisy and a clean pass each        */
static int64_t grid_h, grid_w, L, T;

static void set_grid(int64_t h, int64_t w)
{
    grid_h = h;
    grid_w = w;
    L = h * w;
    T = F * L;
}

static tt_dit *model;
static int64_t dim;

static void fill(tt_real *x, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_real)((i * 37 + seed * 11) % 101) / 50 - 1;
}

static tt_cache *open_cache(tt_ctx *ctx)
{
    const tt_dit_config *c = tt_dit_get_config(model);
    const tt_range held = tt_team_heads(ctx, c->heads);
    const tt_geometry geo = {.layers = c->layers, .H = held.hi - held.lo,
                             .D = dim / c->heads, .heads = c->heads,
                             .first = held.lo, .grid_h = grid_h,
                             .grid_w = grid_w, .L = L,
                             .chunk = F, .first_chunk = F,
                             .frames = 4 * F};
    tt_policy_options o = tt_policy_defaults("tether");
    tt_cache *cache = NULL;
    o.K = 6;
    o.S = 1;
    o.R = 3;
    o.M = 2;
    tt_cache_open(ctx, &cache, NULL, &o, &geo);
    return cache;
}

/* ---- blocks on one rank -------------------------------------------------- */

typedef struct blocks {
    int64_t ne;                /* time entries                                */
    tt_real *out;              /* [CALLS, T, dim]: every rank its rows        */
} blocks;

/* Keys or values of the prompt, of which the other rows are no one's. */
static tt_real *own_text(tt_ctx *ctx, int64_t seed)
{
    const tt_range own = tt_team_rows(ctx, ROWS);
    const int64_t n = (own.hi - own.lo) * dim;
    tt_real *all = tt_scratch(ctx, ROWS * dim), *x = tt_scratch(ctx, n);
    if (ctx->status) return NULL;
    fill(all, ROWS * dim, seed);
    memcpy(x, all + own.lo * dim, (size_t)n * sizeof *x);
    return x;
}

static void run(void *user, tt_ctx *ctx)
{
    const blocks *b = user;
    const tt_range own = tt_team_rows(ctx, T);
    const int64_t n = (own.hi - own.lo) * dim;
    tt_real *x = tt_scratch(ctx, T * dim);
    tt_real *e0 = tt_scratch(ctx, b->ne * 6 * dim);
    tt_cache *cache = open_cache(ctx);
    const tt_dit_context text = {.k = own_text(ctx, 5),
                                 .v = own_text(ctx, 7), .rows = ROWS};
    if (ctx->status) return;
    fill(e0, b->ne * 6 * dim, 3);
    for (int64_t i = 0; i < CALLS && !ctx->status; i++) {
        const int64_t chunk = i / 4, pass = i / 2 % 2, block = i % 2;
        const tt_pass p = {.start = chunk * F, .frames = F, .chunk = chunk,
                           .step = (int)pass, .context = pass == 1};
        const tt_dit_part part = {own.lo, own.hi - own.lo, cache, &p};
        if (block == 0) fill(x, T * dim, i);
        tt_dit_block(ctx, model, block, x + own.lo * dim, &part, e0, b->ne,
                     &text);
        memcpy(b->out + (i * T + own.lo) * dim, x + own.lo * dim,
               (size_t)n * sizeof *x);
        /* the next block reads our rows alone: the others are no one's */
        memset(x, 0xff, (size_t)(own.lo * dim) * sizeof *x);
        memset(x + own.hi * dim, 0xff,
               (size_t)((T - own.hi) * dim) * sizeof *x);
    }
    tt_cache_close(cache);
}

static void check_parts(tt_ctx *ctx, int ranks, int64_t ne)
{
    const size_t size = (size_t)(CALLS * T * dim) * sizeof(tt_real);
    blocks one = {ne, malloc(size)}, team = {ne, calloc(1, size)};
    run(&one, ctx);
    expect_ok(ctx->status, "blocks on one rank");
    expect_ok(tt_team_threads(ctx, ranks, run, &team), "blocks on a team");
    for (int64_t i = 0; i < CALLS; i++)
        expect_bits("rows of ranks", team.out + i * T * dim,
                    one.out + i * T * dim, size / CALLS);
    free(one.out);
    free(team.out);
}

static void check_refusals(tt_ctx *ctx)
{
    const tt_pass p = {.frames = F};
    tt_cache *cache = open_cache(ctx);
    tt_real *x = calloc((size_t)(T * dim), sizeof *x);
    tt_dit_part part = {.first = 6, .T = 6, .cache = cache, .pass = &p};
    tt_dit_self_attention(ctx, model, 0, x, x, &part);
    expect_status(ctx->status, TT_EINVAL, "a part that is not ours");
    part.T = T;
    tt_dit_self_attention(ctx, model, 0, x, x, &part);
    expect_status(ctx->status, TT_EINVAL, "rows after the chunk");
    tt_cache_close(cache);
    free(x);
}

int main(void)
{
    tt_weights *w;
    tt_ctx *ctx = test_begin("dit/parts");
    if (!expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                   TT_MODEL_DIT, NULL), "weights")
        || !expect_ok(tt_dit_load(ctx, &model, w, NULL, 0), "model"))
        return 1;
    dim = tt_dit_get_config(model)->dim;
    set_grid(2, 3);
    for (int ranks = 1; ranks < 8; ranks++) check_parts(ctx, ranks, 1);
    check_parts(ctx, 24, 1);
    check_parts(ctx, 1, F);
    check_parts(ctx, F, F);
    check_refusals(ctx);
    set_grid(9, 12);       /* a window of more than a block                   */
    for (int ranks = 2; ranks < 5; ranks++) check_parts(ctx, ranks, 1);
    tt_dit_close(model);
    return test_end();
}
