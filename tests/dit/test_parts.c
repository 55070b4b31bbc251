/* test_parts.c: token rows of a chunk computed in parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: a part of a chunk, given the other rows of q, k and v, has the same
 * bits as those rows of the whole; with one time entry and with one per frame,
 * in a first and in a later chunk. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "tether/dit.h"

enum { F = 3, L = 6, T = F * L, ROWS = 5 };

static tt_ctx *ctx;
static tt_dit *model;
static int64_t dim;

/* q, k and v of the blocks that ran, in order. */
typedef struct rows {
    tt_real *all;          /* [n, T, dim]                                     */
    int64_t n;
    int64_t first, T;      /* keep: what is there already                     */
    bool fill;             /* bring the others; else remember all             */
} rows;

static void exchange(void *user, tt_ctx *c, tt_real *x, int64_t width)
{
    rows *r = user;
    tt_real *known = r->all + r->n++ * T * dim;
    (void)c;
    expect(width == dim, "rows are %lld wide", (long long)width);
    for (int64_t i = 0; i < T; i++) {
        const bool own = i >= r->first && i < r->first + r->T;
        const size_t bytes = (size_t)dim * sizeof *x;
        if (!r->fill) memcpy(known + i * dim, x + i * dim, bytes);
        else if (!own) memcpy(x + i * dim, known + i * dim, bytes);
        else expect_bits("own rows", x + i * dim, known + i * dim, bytes);
    }
}

static void fill(tt_real *x, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_real)((i * 37 + seed * 11) % 101) / 50 - 1;
}

static tt_cache *open_cache(void)
{
    const tt_dit_config *c = tt_dit_get_config(model);
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .D = dim / c->heads, .grid_h = 2, .grid_w = 3,
                             .L = L, .chunk = F, .first_chunk = F,
                             .frames = 4 * F};
    tt_policy_options o = tt_policy_defaults("tether");
    tt_cache *cache = NULL;
    o.K = 6;
    o.S = 1;
    o.R = 3;
    o.M = 2;
    expect_ok(tt_cache_open(ctx, &cache, NULL, &o, &geo), "a cache");
    return cache;
}

/* Rows [first, first + n) of the output of two blocks in three chunks, with a
 * noisy and a clean pass each: out [3, 2, n, dim]. */
static void run(tt_real *out, rows *r, int64_t ne)
{
    tt_real *x = malloc((size_t)(T * dim) * sizeof *x);
    tt_real *e0 = malloc((size_t)(ne * 6 * dim) * sizeof *e0);
    tt_real *k = malloc((size_t)(ROWS * dim) * sizeof *k);
    tt_cache *cache = open_cache();
    const tt_dit_context text = {k, k, ROWS};
    fill(e0, ne * 6 * dim, 3);
    fill(k, ROWS * dim, 5);
    r->n = 0;
    for (int64_t i = 0; i < 12 && !ctx->status; i++) {
        const int64_t chunk = i / 4, pass = i / 2 % 2, block = i % 2;
        const tt_pass p = {.start = chunk * F, .frames = F, .chunk = chunk,
                           .step = (int)pass, .context = pass == 1};
        const tt_dit_part part = {r->first, r->T, cache, &p, exchange, r};
        if (block == 0) fill(x, T * dim, i);
        tt_dit_block(ctx, model, block, x + r->first * dim, &part, e0, ne,
                     &text);
        memcpy(out, x + r->first * dim, (size_t)(r->T * dim) * sizeof *out);
        out += r->T * dim;
    }
    expect_ok(ctx->status, "blocks");
    tt_cache_close(cache);
    free(x);
    free(e0);
    free(k);
}

static void check_part(int64_t first, int64_t n, int64_t ne)
{
    const size_t size = (size_t)(12 * T * dim) * sizeof(tt_real);
    tt_real *want = malloc(size), *got = malloc(size);
    rows r = {.all = malloc(3 * size), .T = T};
    run(want, &r, ne);
    r.first = first;
    r.T = n;
    r.fill = true;
    run(got, &r, ne);
    for (int64_t i = 0; i < 12; i++)
        expect_bits("rows of a part", got + i * n * dim,
                    want + (i * T + first) * dim,
                    (size_t)(n * dim) * sizeof *got);
    free(want);
    free(got);
    free(r.all);
}

static void check_refusals(void)
{
    const tt_pass p = {.frames = F};
    tt_cache *cache = open_cache();
    tt_real *x = calloc((size_t)(T * dim), sizeof *x);
    tt_dit_part part = {.first = 6, .T = 6, .cache = cache, .pass = &p};
    tt_dit_self_attention(ctx, model, 0, x, x, &part);
    expect_status(ctx->status, TT_EINVAL, "a part without a gather");
    part.T = T;
    tt_clear(ctx);
    tt_dit_self_attention(ctx, model, 0, x, x, &part);
    expect_status(ctx->status, TT_EINVAL, "rows behind the chunk");
    tt_clear(ctx);
    tt_cache_close(cache);
    free(x);
}

int main(void)
{
    tt_weights *w;
    ctx = test_begin("dit/parts");
    if (!expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                   TT_MODEL_DIT, NULL), "weights")
        || !expect_ok(tt_dit_load(ctx, &model, w, NULL, 0), "model"))
        return 1;
    dim = tt_dit_get_config(model)->dim;
    check_part(0, 6, 1);
    check_part(5, 9, 1);
    check_part(L, 2 * L, F);
    check_part(L + 1, 3, F);
    check_refusals();
    tt_dit_close(model);
    return test_end();
}
