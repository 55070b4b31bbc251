/* test_cases.c: the schedule and every rollout against the official code.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers. Tolerances are those of ref_data/README.md: latents 6e-6 and
 * rms 1e-6 in float, 1e-11 in double; integers equal. */
#include "tests/cases.h"

#include <stdio.h>

static const char *const rollouts[] = {
    "global", "fifo_K9_S0", "fifo_K9_S2", "fifo_K7_S1", "iff", "extend",
    "nowarp", "tether_K9", "tether_K21", "tether_K7_quirk", "tether_tau0",
    "tether_temp", "tether_paper", "i2v_iff", "context_noise",
};

/* One reference is expected to warn (a warm-up that misses K). */
static void count_warning(void *user, const char *sentence)
{
    (void)sentence;
    ++*(int *)user;
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/cases");
    const case_rule schedule[] = {
        { "warped_shift5_list0", 1e-30, 0, 0 },      /* exactly */
        { "sigmas_*", 2.4e-7, 0, 0 },
        { "timesteps_*", 2.5e-4, 0, 0 },
        { "warped_*", 2.5e-4, 0, 0 },
        { "add_noise", 0, 0, 3.5e-7 },
        { "flow_to_x0", 0, 0, 2e-7 },
    };
    check_case(ctx, "dit/scheduler", schedule, 6);

    const case_rule rollout[] = {
        { "latents", 6e-6, 1e-6, 1e-11 },
        { "grab_mass", 2e-6, 0, 1e-11 },
        { "grab_scores", 2e-6, 0, 1e-11 },
    };
    int warnings = 0;
    ctx->warn = count_warning;
    ctx->warn_user = &warnings;
    for (size_t i = 0; i < sizeof rollouts / sizeof *rollouts; i++) {
        char path[64];
        snprintf(path, sizeof path, "dit/roll_%s", rollouts[i]);
        check_case(ctx, path, rollout, 3);
    }
    expect(warnings == 1, "%d warnings, expected the one of K7_quirk",
           warnings);
    return test_end();
}
