/* test_last_block.c: what a clean pass leaves of its last block.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: it leaves the same cache, bit by bit, whether it computes all of
 * the block, for taps, or what the cache needs; and then it does less. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "dit/dit.h"

enum { F = 3, GRID_H = 2, GRID_W = 3, ROWS = 5 };

static tt_ctx *ctx;
static tt_dit *model;

static void fill(tt_real *x, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_real)((i * 37 + seed * 11) % 101) / 50 - 1;
}

static tt_cache *open_cache(void)
{
    const tt_dit_config *c = tt_dit_get_config(model);
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .heads = c->heads, .D = c->dim / c->heads,
                             .grid_h = GRID_H, .grid_w = GRID_W,
                             .L = GRID_H * GRID_W, .chunk = F,
                             .first_chunk = F, .frames = 4 * F};
    tt_policy_options o = tt_policy_defaults("tether");
    tt_cache *cache = NULL;
    o.K = 6;
    o.S = 1;
    o.R = 3;
    o.M = 2;
    expect_ok(tt_cache_open(ctx, &cache, NULL, &o, &geo), "a cache");
    return cache;
}

static void hear_nothing(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *extent, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)extent, (void)data;
}

static int64_t attention_calls(void)
{
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++)
        if (!strcmp(ctx->profile[i].name, "attention"))
            return ctx->profile[i].calls;
    return 0;
}

/* Three chunks of a noisy and a clean pass; the calls of attention in the clean
 * ones, which are tapped or not. */
static int64_t run(tt_cache *cache, const tt_prompt *prompt, bool tapped)
{
    const int64_t h = 2 * GRID_H, w = 2 * GRID_W;
    const int64_t n = F * tt_dit_get_config(model)->in_dim * h * w;
    tt_host *x = malloc((size_t)n * sizeof *x);
    tt_host *flow = malloc((size_t)n * sizeof *flow);
    int64_t calls = 0;
    ctx->profiling = true;
    for (int64_t i = 0; i < 6; i++) {
        const bool clean = i % 2;
        const double t = clean ? 0 : 750;
        const int64_t before = attention_calls();
        const tt_pass p = {.start = i / 2 * F, .frames = F, .chunk = i / 2,
                           .step = (int)(i % 2), .context = clean};
        fill(x, n, i);
        ctx->tap = clean && tapped ? hear_nothing : NULL;
        tt_dit_forward(ctx, model, clean ? NULL : flow, x,
                       &(tt_dit_call){.h = h, .w = w, .t = &t, .nt = 1,
                                      .prompt = prompt, .cache = cache,
                                      .pass = &p});
        ctx->tap = NULL;
        if (clean) calls += attention_calls() - before;
    }
    expect_ok(ctx->status, "chunks");
    ctx->profiling = false;
    free(x);
    free(flow);
    return calls;
}

int main(void)
{
    tt_weights *w;
    ctx = test_begin("dit/last_block");
    if (!expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                   TT_MODEL_DIT, NULL), "weights")
        || !expect_ok(tt_dit_load(ctx, &model, w, NULL, 0), "model"))
        return 1;
    const tt_dit_config *c = tt_dit_get_config(model);
    tt_cache *whole = open_cache(), *least = open_cache();
    tt_prompt *prompt = NULL;
    tt_host *text = malloc((size_t)(ROWS * c->text_dim) * sizeof *text);
    fill(text, ROWS * c->text_dim, 7);
    expect_ok(tt_prompt_make(ctx, &prompt, model, text, ROWS), "a prompt");
    const int64_t all = run(whole, prompt, true);
    const int64_t some = run(least, prompt, false);
    /* self- and cross-attention of each layer, in three clean passes */
    expect(all == 6 * c->layers && some == all - 6,
           "%lld calls of attention with taps, %lld without", (long long)all,
           (long long)some);
    for (int64_t i = 0; i < c->layers; i++) {
        const tt_layer *a = tt_cache_layer(whole, i);
        const tt_layer *b = tt_cache_layer(least, i);
        const int64_t n = a->cap * c->dim;
        const size_t bytes = (size_t)n * sizeof *a->k;
        expect_bits("keys", tt_get(ctx, b->k, n), tt_get(ctx, a->k, n), bytes);
        expect_bits("values", tt_get(ctx, b->v, n), tt_get(ctx, a->v, n),
                    bytes);
        expect_bits("state", b->state, a->state, a->state_size);
    }
    tt_prompt_free(prompt);
    tt_cache_close(whole);
    tt_cache_close(least);
    free(text);
    tt_dit_close(model);
    return test_end();
}
