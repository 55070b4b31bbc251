/* fuzz_text.c: tables people and other programs write: scores of clips (CSV or
 * JSON), the facts of a run, lists of hashes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tether/analyze.h"
#include "tether/validate.h"

static void scores(tt_ctx *ctx, const char *path, double ends)
{
    tt_analyze_options o = tt_analyze_defaults();
    tt_arena mem = {0};
    const char *summary;
    o.folder = fuzz_folder();
    o.csv = o.json = true;
    o.svg = false;
    o.ends = ends;
    tt_analyze_scores(ctx, &mem, &summary, path, &o);
    tt_arena_free(&mem);
}

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
    if (data[0] % 4 == 0) scores(ctx, path, 1);
    if (data[0] % 4 == 1) scores(ctx, path, 0.25);
    if (data[0] % 4 == 2) hashes(ctx, path);
    if (data[0] % 4 == 3) run_facts(ctx, data + 1, size - 1);
    fuzz_settle();
    return 0;
}
