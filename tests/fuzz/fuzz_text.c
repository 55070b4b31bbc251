/* fuzz_text.c: what people and other programs write: the facts of a run, lists
 * of hashes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "analyze/analyze.h"
#include "validate/validate.h"

static void hashes(tt_ctx *ctx, const char *path)
{
    tt_manifest m = {0};
    tt_manifest_read(ctx, &m, path);
    tt_manifest_free(&m);
}

static void run_facts(tt_ctx *ctx, const uint8_t *data, size_t size)
{
    char facts[320];
    tt_recording *r;
    snprintf(facts, sizeof facts, "%s/run.json", fuzz_folder());
    FILE *f = fopen(facts, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
    tt_recording_open(ctx, &r, fuzz_folder());
    tt_recording_close(r);
}

/* The first byte says which. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const char *path = fuzz_file(data + 1, size - 1, ".txt");
    if (data[0] % 2 == 0) hashes(ctx, path);
    else run_facts(ctx, data + 1, size - 1);
    fuzz_settle();
    return 0;
}
