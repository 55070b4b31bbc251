/* test_cases.c: the transformer's reference cases.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: every part alone, then one block, then the whole network, on
 * three models (heads of 24, 40 and 128). */
#include <stdio.h>

#include "tests/cases.h"

static const char *const module[] = {
    "time_embedding", "embeddings", "rope", "qkv", "cross_attn", "head",
    "block", "forward",
};
static const char *const model[] = {"tiny_a", "tiny_b", "head128"};
static const char *const with_cache[] = {
    "tiny_a_self_attn_fifo_K9_S2", "tiny_b_self_attn_fifo_K9_S0",
    "tiny_b_self_attn_fifo_K8_S1", "tiny_a_self_attn_tether_K9",
    "tiny_b_self_attn_tether_K12",
};

int main(void)
{
    tt_ctx *ctx = test_begin("dit/cases");
    /* sigma(0) of the closed form differs from the official float32 table by
     * 4.7e-10, which x0 of a t = 0 frame shows (README of the references). */
    const case_rule x0 = {.name = "x0", .f64_max = 2e-9};
    char path[128];
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < 8; i++) {
            snprintf(path, sizeof path, "dit/%s_%s", model[m], module[i]);
            check_case(ctx, path, &x0, 1);
        }
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "dit/%s", with_cache[i]);
        check_case(ctx, path, NULL, 0);
    }
    check_case(ctx, "dit/layouts_forward", NULL, 0);
    return test_end();
}
