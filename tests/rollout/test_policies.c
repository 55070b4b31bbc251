/* test_policies.c: every cache policy against its released code.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: whole rollouts of ref_data/policy_*. The limit of its README
 * is 2e-5 for latents and caches, 1e-4 for scores; latents are held to the
 * 5e-6 that a faithful float32 program reaches. Integers are equal: selections,
 * reuse counts, positions, cache ends. */
#include "tests/cases.h"

int main(void)
{
    static const char *const cases[] = {
        "policy_sf_full", "policy_sf_fifo_k6_s2",
        "policy_inf_k6_s1", "policy_inf_k21_s3", "policy_inf_scenes_k6",
        "policy_mem_ema_k12", "policy_mem_adaptive_k12",
        "policy_mem_fifo_k9_s2", "policy_mem_fifo_k9_s0",
        "policy_deep_ds_k21", "policy_deep_pc_k21", "policy_deep_pc_k9",
        "policy_longlive_k9", "policy_longlive_k9_flush", "policy_reward_k9",
        "policy_reward_k9_fast", "policy_reward_k9_s2",
    };
    const case_rule rules[] = {
        { "latents", 5e-6, 0, 1e-10 },
        { "chunk*", 2e-5, 0, 1e-10 },
        { "comp*", 1e-4, 0, 1e-10 },
    };
    tt_ctx *ctx = test_begin("rollout/policies");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(ctx, cases[i], rules, 3);
    return test_end();
}
