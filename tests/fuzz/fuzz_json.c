/* fuzz_json.c: the JSON reader, as for config.json.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/json.h"
#include "tests/fuzz/fuzz.h"

static void walk(const tt_json *v)
{
    static const char *const keys[] = {"num_heads", "eps", "patch_size",
                                       "latents_mean", "model_type"};
    for (int i = 0; i < 5; i++) {
        tt_json_int(v, keys[i], -1);
        tt_json_num(v, keys[i], 0);
        tt_json_str(v, keys[i], "");
        tt_json_at(tt_json_get(v, keys[i]), 2);
    }
    for (const tt_json *c = tt_json_first(v); c; c = tt_json_next(c))
        walk(c); /* at most 64 */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    tt_arena a = {0};
    const tt_json *root;
    if (!tt_json_parse(ctx, &a, &root, (const char *)data, size,
                       "config.json"))
        walk(root);
    tt_arena_free(&a);
    fuzz_settle();
    return 0;
}
