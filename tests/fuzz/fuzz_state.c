/* fuzz_state.c: saved states whose digest is right and whose numbers are not.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A state that is accepted must carry the run on without harm. Needs
 * ref_data/dit/models/tiny_b, so it is run where that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rollout/run.h"
#include "tests/fuzz/fuzz.h"

enum { C = 16, H = 4, W = 6, ROWS = 24, DIM = 48, RUNS = 12 };

static const struct { const char *policy; int S, R, N; bool unify; }
runs[RUNS] = {
    {"tether", 1, -1, 5, false},       {"memrope", 1, -1, 5, false},
    {"deep-forcing", 1, 4, 5, false},  {"infinity", 1, -1, 5, false},
    {"deep-sink", 1, -1, 5, false},    {"causvid-rolling", 1, -1, 5, false},
    {"fifo", 1, -1, 5, false},         {"deep-forcing", 4, 3, 2, false},
    {"deep-forcing", 0, 3, 7, true},   {"tether", 0, 3, 5, false},
    {"deep-sink", 4, -1, 5, false},    {"memrope", 2, -1, 5, false}};

static struct {
    tt_rollout *run;
    uint8_t *file;               /* its state after three chunks              */
    size_t size;
} base[RUNS];

static void give_up(tt_ctx *ctx, const char *why)
{
    fprintf(stderr, "fuzz_state: %s: %s\n", why, tt_message(ctx));
    exit(2);
}

static tt_rollout *open_run(tt_ctx *ctx, int i)
{
    static tt_dit *model;
    static tt_prompt *prompt;
    tt_real text[ROWS * DIM];
    tt_rollout_options o = tt_rollout_defaults();
    tt_rollout *r = NULL;
    static tt_weights *w;        /* the model reads from it                   */
    for (int k = 0; k < ROWS * DIM; k++)
        text[k] = (tt_real)(k * 37 % 101) / 50 - 1;
    if (!model)
        if (tt_weights_open(ctx, &w, "ref_data/dit/models/tiny_b", TT_MODEL_DIT,
                            NULL)
            || tt_dit_load(ctx, &model, w, NULL, 0)
            || tt_prompt_make(ctx, &prompt, model, text, ROWS))
            give_up(ctx, "the model");
    o.latents = 15;
    o.h = H;
    o.w = W;
    o.nsteps = 1;
    o.policy = tt_policy_defaults(runs[i].policy);
    o.policy.K = 7;
    o.policy.S = runs[i].S;
    if (runs[i].R > 0) o.policy.R = runs[i].R;
    if (tt_policy_knob(o.policy.cls, "unify")) {
        tt_policy_put(&o.policy, "compress-to", runs[i].N);
        tt_policy_put(&o.policy, "unify", runs[i].unify);
    }
    if (tt_rollout_open(ctx, &r, model, prompt, &o))
        give_up(ctx, runs[i].policy);
    return r;
}

/* A run after three chunks, and its state. */
static void prepare(tt_ctx *ctx, int i)
{
    const tt_real *x;
    int64_t frames;
    if (base[i].run) return;
    base[i].run = open_run(ctx, i);
    const char *path = fuzz_file(NULL, 0, ".state");
    for (int k = 0; k < 3; k++) tt_rollout_next(ctx, base[i].run, &x, &frames);
    tt_rollout_save(ctx, base[i].run, path);
    FILE *f = fopen(path, "rb");
    if (ctx->status || !f || fseek(f, 0, SEEK_END))
        give_up(ctx, runs[i].policy);
    base[i].size = (size_t)ftell(f);
    base[i].file = malloc(base[i].size);
    rewind(f);
    if (!base[i].file
        || fread(base[i].file, 1, base[i].size, f) != base[i].size)
        give_up(ctx, runs[i].policy);
    fclose(f);
}

static int64_t number(uint8_t c)
{
    static const int64_t far[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN,
                                  1000, -1000, INT64_C(1) << 40};
    const size_t n = sizeof far / sizeof *far;
    return c < n ? far[c] : (int64_t)c - 40;
}

/* One damage: layer, place, index, value. */
static void damage(tt_rollout *r, const uint8_t c[4])
{
    const int64_t layers = tt_cache_geometry(r->cache)->layers;
    tt_layer *y = tt_cache_layer(r->cache, c[0] % layers);
    const int64_t words = (int64_t)y->state_size / 8;
    const int64_t v = number(c[3]), at = c[2] % y->cap;
    switch (c[1] % 9) {
    case 0: y->src_frame[at] = (int32_t)v; break;
    case 1: y->sidx[at] = (int32_t)v; break;
    case 2: y->tpos[at] = (int32_t)v; break;
    case 3: y->len = v; break;
    case 4: y->seen = v; break;
    case 5: case 6: case 7:
        if (words > 0) memcpy((char *)y->state + 8 * (c[2] % words), &v, 8);
        break;
    case 8:
        if (c[2] == 0) r->chunk = v;
        if (c[2] == 1) r->done = v;
        if (c[2] == 2) r->rollout = v;
        break;
    }
}

/* The run, then damages of four bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tt_real *x;
    int64_t frames;
    if (size < 5 || size > 200) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const int p = data[0] % RUNS;
    prepare(ctx, p);
    tt_rollout *r = base[p].run;
    if (tt_rollout_restore(ctx, r, fuzz_file(base[p].file, base[p].size,
                                             ".state")))
        give_up(ctx, "its own state is refused");
    for (size_t i = 1; i + 4 <= size; i += 4) damage(r, data + i);
    const char *path = fuzz_file(NULL, 0, ".state");
    if (tt_rollout_save(ctx, r, path)) give_up(ctx, "save");
    if (!tt_rollout_restore(ctx, r, path))
        for (int i = 0; i < 2 && !ctx->status; i++)
            tt_rollout_next(ctx, r, &x, &frames);
    fuzz_settle();
    return 0;
}
