/* fuzz_trace.c: a run as tether analyze reads it, all analyses and the report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "analyze/analyze.h"

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

static void analyze(tt_ctx *ctx, tt_recording *const *run, int n,
                    const tt_recording *reference, uint8_t how)
{
    char page[320];
    tt_analyze_options o = tt_analyze_defaults();
    o.folder = fuzz_folder();
    o.csv = how & 1;
    o.json = how & 2;
    o.html = how & 4;
    o.reference = how & 8 ? 1 : 6;
    o.reference_run = reference;
    o.norm = how & 16;
    o.layer = how & 32 ? 1 : -1;
    o.average = how & 64;
    tt_analyze(ctx, run, n, &o);
    tt_clear(ctx);
    snprintf(page, sizeof page, "%s/report.html", o.folder);
    if (how & 128) tt_report_write(ctx, page, "fuzz", run, n, &o);
}

/* Two bytes of options, then the damage. The damaged run is alone or next
 * to a whole one, is compared with a whole one, or a whole one with it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_recording *run[2] = {NULL, NULL};
    if (size < 2 || size > 4096) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const bool both = data[1] & 1, with_whole = data[1] & 2;
    const bool with_damaged = data[1] & 4;
    tt_recording_open(ctx, &run[0], fuzz_tensors(whole, N, data + 2, size - 2,
                                                 ".run"));
    if (!ctx->status && data[1] & 7)
        tt_recording_open(ctx, &run[1], fuzz_tensors(whole, N, NULL, 0,
                                                     ".whole"));
    if (!ctx->status)
        analyze(ctx, run + with_damaged, both && !with_damaged ? 2 : 1,
                with_damaged ? run[0] : with_whole ? run[1] : NULL, data[0]);
    tt_recording_close(run[0]);
    tt_recording_close(run[1]);
    fuzz_settle();
    return 0;
}
