/* test_foresight.c: a device that goes ahead of TetherCache and keeps other
 * frames than the rounds of the host is found out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device is memory of the host and the verbs of the host, but for one: a
 * round of GRAB, of which it may let the wrong frame go. */
#include "tests/rollout/tiny.h"
#include "tether/device.h"

static const tt_device device;
static int64_t rounds, wrong;    /* the round that goes wrong, or -1          */

static void *own_alloc(const tt_device *d, size_t bytes)
{
    (void)d;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void own_free(const tt_device *d, void *block, size_t bytes)
{
    (void)d, (void)bytes;
    free(block);
}

static void own_copy(tt_ctx *ctx, void *to, const void *from, size_t bytes)
{
    (void)ctx;
    memmove(to, from, bytes);
}

static void own_zero(tt_ctx *ctx, void *to, size_t bytes)
{
    (void)ctx;
    memset(to, 0, bytes);
}

#define OWN(verb)                                                              \
    static void own_##verb(tt_ctx *ctx, const tt_##verb##_args *a)             \
    {                                                                          \
        ctx->device = NULL;                                                    \
        tt_##verb(ctx, a);                                                     \
        ctx->device = &device;                                                 \
    }
OWN(total)
OWN(most)
OWN(choose)
OWN(locate)
OWN(pick)
OWN(apart)
OWN(rates)
OWN(follow)
OWN(trust)
OWN(gain)

/* Wrong: the last row goes instead of the one before the last. */
static void own_judge(tt_ctx *ctx, const tt_judge_args *a)
{
    ctx->device = NULL;
    tt_judge(ctx, a);
    ctx->device = &device;
    if (rounds++ != wrong) return;
    const bool last = a->list[a->n - 2] == a->n - 1;
    a->list[a->n - 2] = (tt_index)(last ? a->n - 2 : a->n - 1);
}

static const tt_device device = {
    .name = "the device of this test", .alloc = own_alloc, .free = own_free,
    .put = own_copy, .get = own_copy, .copy = own_copy, .zero = own_zero,
    .total = own_total, .most = own_most, .choose = own_choose,
    .locate = own_locate, .pick = own_pick, .apart = own_apart,
    .rates = own_rates, .follow = own_follow, .trust = own_trust,
    .gain = own_gain, .judge = own_judge,
};

static tt_rollout_options frame_by_frame(void)
{
    tt_rollout_options o = evicting_for("tether", FRAMES, 1);
    tt_policy_put(&o.policy, "pool", 1);
    return o;
}

/* All of a rollout whose round `at` goes wrong. */
static void go_wrong(tt_ctx *ctx, int64_t at, const char *says)
{
    const tt_rollout_options o = frame_by_frame();
    const tt_real *x;
    int64_t f;
    rounds = 0;
    wrong = at;
    tt_rollout *r = start(ctx, &o);
    while (tt_rollout_next(ctx, r, &x, &f) == TT_OK) continue;
    expect(rounds > at, "round %lld", (long long)at);
    expect(strstr(tt_message(ctx), says)
               && strstr(tt_message(ctx), device.name),
           "round %lld: \"%s\" does not say \"%s\"", (long long)at,
           tt_message(ctx), says);
    expect_status(ctx->status, TT_EFORMAT, "another frame");
    tt_rollout_close(r);
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/foresight");
    const tt_rollout_options o = frame_by_frame();
    load(ctx);
    tt_real *want = whole(ctx, &o);
    tt_dit_close(model);
    tt_prompt_free(prompt);
    const tt_device *before = ctx->device;
    ctx->device = &device;
    wrong = -1;
    load(ctx);
    tt_real *got = whole(ctx, &o);
    expect(rounds > 4, "the device went ahead %lld times", (long long)rounds);
    expect_bits("ahead", got, want, FRAMES * SIZE * sizeof *got);
    go_wrong(ctx, 0, "layer 0, round 0");
    go_wrong(ctx, 3, "layer 1, round 1");
    tt_prompt_free(prompt);
    tt_dit_close(model);
    ctx->device = before;
    free(want);
    free(got);
    return test_end();
}
