/* test_validate.c: validate --backend, as a user meets it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in is that of the mutation suite: it calls tt_ functions of the
 * program, which therefore must export them. */
#include "tests/cli/program.h"

static char plugin[1100], model[1100];

#define SMALL "-m %s --latents 9 --cache fifo --no-rollout"

static void test_options(void)
{
    refuses(3, "cannot be loaded", "validate --backend ./absent.so");
    refuses(2, "bf16-stored", "validate --backend golden --arith half");
    refuses(2, "no operator", "validate --backend golden --op nothing");
    refuses(2, "needs a file", "validate --backend ''");
    expect(run("validate --backend golden --op silu --bench 4 > out") == 0 &&
           strstr(text_of(at("out")), "bench silu") &&
           strstr(text_of(at("out")), "+-"), "a built-in one: %s%s", said,
           text_of(at("out")));
}

static void test_plugin(void)
{
    expect(run_after("TETHER_MUTATION=NONE ", "validate --backend %s --op silu "
                     "--rounds 2 > out", plugin) == 0, "no fault: %s%s", said,
           text_of(at("out")));
    expect(run_after("TETHER_MUTATION=SILU_SIGMOID ", "validate --backend %s "
                     "--op silu --rounds 2 --json r.json > out", plugin) == 1 &&
           strstr(text_of(at("out")), "without the factor x") &&
           strstr(text_of(at("out")), "seed 1"), "a fault: %s%s", said,
           text_of(at("out")));
    expect(strstr(text_of(at("r.json")), "\"passed\": false") != NULL, "json");
    expect(run_after("TETHER_MUTATION=LINEAR_LAYER ", "validate --backend %s "
                     "--no-operators " SMALL " > out", plugin, model) == 1 &&
           strstr(text_of(at("out")), "#linear.") &&
           strstr(text_of(at("out")), "scaled by 0.5"), "one layer: %s%s",
           said, text_of(at("out")));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/validate", argv)) return test_end();
    reference(model, "policy_models/a");
    test_options();
    snprintf(plugin, sizeof plugin, "%s", tether);
    char *end = strrchr(plugin, '/');
    snprintf(end, sizeof plugin - (size_t)(end - plugin),
             "/tests/validate/mutants.so");
    if (sizeof(tt_real) == 8)
        printf("note: faults are planted in the float build\n");
    else
        test_plugin();
    return program_end();
}
