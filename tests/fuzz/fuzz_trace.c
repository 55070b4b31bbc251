/* fuzz_trace.c: a run as tether analyze reads it, all analyses and the report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tether/analyze.h"

static const fuzz_tensor whole[] = {
    {"latents", TT_F32, 5, {1, 9, 2, 2, 3}, -3, 7},
    {"kv_stats", TT_F32, 4, {9, 2, 4, 3, 1}, -3, 8},
    {"ends", TT_I64, 2, {3, 2, 1, 1, 1}, 3, 6},
    {"memory_index", TT_I64, 3, {3, 2, 2, 1, 1}, 0, 6},
    {"counters", TT_I64, 3, {3, 2, 3, 1, 1}, 0, 18},
    {"bio_src", TT_I32, 3, {3, 2, 5, 1, 1}, -3, 9},
    {"bio_share", TT_F32, 3, {3, 2, 5, 1, 1}, 0, 2},
    {"bio_region", TT_U8, 3, {3, 2, 5, 1, 1}, 0, 3},
    {"bio_part", TT_I32, 2, {3, 5, 1, 1, 1}, 0, 3},
    {"readable", TT_F32, 3, {3, 2, 9, 1, 1}, 0, 2},
    {"chunk_start", TT_I64, 1, {3, 1, 1, 1, 1}, 0, 6},
    {"chunk_frames", TT_I64, 1, {3, 1, 1, 1, 1}, 3, 1},
    {"grab_layer", TT_I64, 1, {4, 1, 1, 1, 1}, 0, 2},
    {"grab_chunk", TT_I64, 1, {4, 1, 1, 1, 1}, 0, 3},
    {"grab_sub", TT_I64, 1, {4, 1, 1, 1, 1}, 0, 2},
    {"grab_candidates", TT_I64, 2, {4, 5, 1, 1, 1}, 0, 9},
    {"grab_keep", TT_U8, 2, {4, 5, 1, 1, 1}, 0, 2},
    {"grab_mass", TT_F64, 2, {4, 5, 1, 1, 1}, 0, 7},
    {"grab_scores", TT_F64, 2, {4, 5, 1, 1, 1}, 0, 7},
    {"grab_div", TT_F64, 2, {4, 5, 1, 1, 1}, 0, 7},
    {"grab_margin", TT_F64, 1, {4, 1, 1, 1, 1}, 0, 7},
    {"comp_event", TT_I64, 2, {2, 7, 1, 1, 1}, 0, 7},
    {"comp_frame", TT_I64, 2, {4, 4, 1, 1, 1}, 0, 2},
    {"comp_frame_phi", TT_F64, 2, {4, 2, 1, 1, 1}, 0, 5},
    {"comp_chosen", TT_F64, 2, {3, 6, 1, 1, 1}, 0, 3},
};
enum { N = sizeof whole / sizeof *whole };

static char folder[300];

static void remove_folder(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command)) _exit(1);
}

static void make_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/tether-fuzz-XXXXXX",
             tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
}

static void analyze(tt_ctx *ctx, tt_recording *const *run, int n, uint8_t how)
{
    char page[320];
    tt_analyze_options o = tt_analyze_defaults();
    o.folder = folder;
    o.csv = how & 1;
    o.json = how & 2;
    o.svg = how & 4;
    o.png = false;               /* compressing pictures is all it would do  */
    o.reference = how & 8 ? 1 : 6;
    o.norm = how & 16;
    o.layer = how & 32 ? 1 : -1;
    o.average = how & 64;
    tt_analyze(ctx, run, n, &o);
    tt_clear(ctx);
    snprintf(page, sizeof page, "%s/report.html", folder);
    if (how & 128) tt_report_write(ctx, page, "fuzz", run, n, &o);
}

/* One byte of options, then the damage. The damaged run stands alone or beside
 * a whole one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_recording *run[2] = {NULL, NULL};
    if (size < 2 || size > 4096) return 0;
    make_folder();
    tt_ctx *ctx = fuzz_ctx();
    const char *path = fuzz_tensors(whole, N, data + 2, size - 2, ".run");
    tt_recording_open(ctx, &run[0], path);
    if (!ctx->status && data[1] & 1)
        tt_recording_open(ctx, &run[1], fuzz_tensors(whole, N, NULL, 0,
                                                     ".whole"));
    if (!ctx->status) analyze(ctx, run, run[1] ? 2 : 1, data[0]);
    tt_recording_close(run[0]);
    tt_recording_close(run[1]);
    fuzz_settle();
    return 0;
}
