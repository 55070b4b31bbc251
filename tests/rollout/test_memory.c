/* test_memory.c: running out of memory at any point of a rollout.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The sticky failure (status.h) rests on every loop over scratch memory being
 * guarded. Here one scratch allocation after the other is made to fail, in a
 * rollout that evicts, selects and edits: each must end in TT_ENOMEM with a
 * sentence, and the next run must be as if nothing had happened. */
#include "tests/rollout/tiny.h"

#define STRIDE 53   /* sweep every 53rd allocation */

/* Whole rollout with the n-th scratch allocation failing; 0: none. */
static tt_status run(tt_ctx *ctx, size_t n, tt_real *out)
{
    tt_rollout_options o = options("tether", 9, 2);
    o.latents = 15;
    o.nsteps = 2;
    o.steps[0] = 1000;
    o.steps[1] = 500;
    tt_rollout *r = NULL;
    ctx->scratch.fail_after = n;
    tt_rollout_open(ctx, &r, model, prompt, &o);
    const tt_real *x;
    int64_t f, done = 0;
    while (r && tt_rollout_next(ctx, r, &x, &f) == TT_OK) {
        memcpy(out + done * SIZE, x, (size_t)(f * SIZE) * sizeof *x);
        done += f;
    }
    bool reached = n && ctx->scratch.fail_after == 0;
    ctx->scratch.fail_after = 0;
    tt_status s = ctx->status;
    tt_rollout_close(r);
    if (s)
        expect(s == TT_ENOMEM && strstr(tt_message(ctx), "out of memory"),
               "allocation %zu: status %d, %s", n, (int)s, tt_message(ctx));
    else
        expect(!reached, "allocation %zu failed without being noticed", n);
    tt_clear(ctx);
    tt_arena_free(&ctx->scratch);
    return s;
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/memory");
    static tt_real before[15 * SIZE], after[15 * SIZE];
    load(ctx);
    expect(run(ctx, 0, before) == TT_OK, "an undisturbed run");
    size_t n = 1;
    while (run(ctx, n, after) == TT_ENOMEM) n += STRIDE;
    expect(n > 10 * STRIDE, "only %zu allocations were reached", n);
    expect(run(ctx, 0, after) == TT_OK, "a run after all failures");
    expect_bits("the same video", after, before, sizeof before);
    tt_prompt_free(prompt);
    tt_dit_close(model);
    return test_end();
}
