/* fuzz_dump.c: two dumps compared, as tether diff and validate do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "validate/validate.h"

#define ROUND "chunk.1/step.0/block.0/admit.0/"

/* A dump, and tensors of other names: the comparison goes by names alone. */
static const fuzz_tensor whole[] = {
    {"chunk.0/step.0/tokens", TT_F32, 2, {6, 8, 1, 1, 1}, -3, 7},
    {"chunk.0/step.0/block.0/self_attn.q", TT_F32, 3, {6, 2, 4, 1, 1}, -3, 9},
    {"chunk.0/step.0/block.0/self_attn.out", TT_F32, 2, {6, 8, 1, 1, 1}, -4, 9},
    {"chunk.0/step.0/x0", TT_F32, 4, {2, 3, 2, 2, 1}, -5, 11},
    {"chunk.1/block.0/grab.candidates", TT_I64, 1, {5, 1, 1, 1, 1}, 3, 5},
    {"chunk.1/block.0/grab.score", TT_F64, 1, {5, 1, 1, 1, 1}, 0, 5},
    {"chunk.1/block.0/grab.keep", TT_U8, 1, {5, 1, 1, 1, 1}, 0, 2},
    {"chunk.1/step.0/block.0/self_attn.q", TT_F32, 3, {6, 2, 4, 1, 1}, -3, 9},
    {"chunk.1/step.0/x0", TT_F32, 4, {2, 3, 2, 2, 1}, -5, 11},
    {"ends", TT_I64, 2, {2, 2, 1, 1, 1}, 0, 5},
    {"memory_index", TT_I64, 3, {2, 2, 3, 1, 1}, -1, 7},
    {"grab_layer", TT_I64, 1, {3, 1, 1, 1, 1}, 0, 2},
    {"grab_chunk", TT_I64, 1, {3, 1, 1, 1, 1}, 0, 2},
    {"grab_sub", TT_I64, 1, {3, 1, 1, 1, 1}, 0, 1},
    {"grab_candidates", TT_I64, 2, {3, 5, 1, 1, 1}, 1, 5},
    {"grab_mass", TT_F64, 2, {3, 5, 1, 1, 1}, 0, 7},
    {"grab_scores", TT_F64, 2, {3, 5, 1, 1, 1}, 0, 7},
    {"grab_keep", TT_U8, 2, {3, 5, 1, 1, 1}, 0, 2},
    {"grab_memory_after", TT_I64, 2, {3, 3, 1, 1, 1}, 0, 9},
    {"chunk.0/step.0/x", TT_F32, 4, {2, 3, 2, 2, 1}, -5, 11},
    {"chunk.1/step.0/x", TT_F32, 4, {2, 3, 2, 2, 1}, -5, 11},
    {"chunk.0/step.0/block.0/self_attn.k", TT_F32, 3, {6, 2, 4, 1, 1}, -3, 9},
    {"chunk.0/step.0/block.0/self_attn.v", TT_F32, 3, {6, 2, 4, 1, 1}, -3, 9},
    {"chunk.1/step.0/block.0/self_attn.k", TT_F32, 3, {4, 2, 4, 1, 1}, -3, 9},
    {"chunk.1/step.0/block.0/self_attn.v", TT_F32, 3, {6, 2, 4, 1, 1}, -3, 9},
    {ROUND "grab.candidates", TT_I64, 1, {4, 1, 1, 1, 1}, 0, 4},
    {ROUND "grab.mass", TT_F64, 1, {4, 1, 1, 1, 1}, 1, 5},
    {ROUND "grab.div", TT_F64, 1, {4, 1, 1, 1, 1}, 0, 3},
    {ROUND "grab.score", TT_F64, 1, {4, 1, 1, 1, 1}, 0, 5},
    {ROUND "grab.keep", TT_U8, 1, {4, 1, 1, 1, 1}, 0, 2},
    {ROUND "tame.mean_k", TT_F64, 2, {2, 4, 1, 1, 1}, -2, 5},
    {ROUND "tame.sd_k", TT_F64, 2, {2, 4, 1, 1, 1}, 1, 5},
    {ROUND "tame.mean_v", TT_F64, 2, {2, 4, 1, 1, 1}, -2, 5},
    {ROUND "tame.sd_v", TT_F64, 2, {2, 4, 1, 1, 1}, 1, 5},
    {ROUND "tame.k/c.2", TT_F32, 3, {3, 2, 4, 1, 1}, -3, 9},
    {ROUND "tame.v/c.2", TT_F32, 3, {3, 2, 4, 1, 1}, -3, 9},
};
enum { N = sizeof whole / sizeof *whole };

/* Moves the commands up to one for tensor 255 from *data to the end of `to`,
 * which holds n bytes; how many it holds then. */
static size_t take_list(uint8_t *to, size_t n, const uint8_t **data,
                        size_t *size)
{
    while (*size >= 4 && **data != 255) {
        memcpy(to + n, *data, 4);
        n += 4, *data += 4, *size -= 4;
    }
    if (*size >= 4) *data += 4, *size -= 4;
    return n;
}

/* Two bytes choose the way of comparing. Three lists of damage follow, each up
 * to a command for tensor 255: of ours, of theirs, and of both before that:
 * shapes that are not alike are not looked into. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const arith[] = {NULL, "f32", "bf16", "f16", "tf32"};
    if (size < 2 || size > 4096) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const uint8_t how = data[0], more = data[1];
    data += 2, size -= 2;
    uint8_t own[2][4096], both[4096], list[8192];
    size_t n[2];
    for (int i = 0; i < 2; i++) n[i] = take_list(own[i], 0, &data, &size);
    const size_t shared = take_list(both, 0, &data, &size);
    const char *file[2];
    for (int i = 0; i < 2; i++) {
        memcpy(list, both, shared);
        memcpy(list + shared, own[i], n[i]);
        file[i] = fuzz_tensors(whole, N, list, shared + n[i],
                               i ? ".got" : ".want");
    }
    const char *want = file[0], *got = file[1];
    const char *plain = fuzz_tensors(whole, N, NULL, 0, ".plain");
    const tt_arith *a = how % 5 ? tt_arith_find(arith[how % 5]) : NULL;
    tt_report *r;
    if (!tt_report_new(ctx, &r, "fuzz", a)) {
        tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = more & 1 ? plain : want, .got = got, .arith = a,
            .oracle = more & 2 ? plain : NULL,
            .emul = a && more & 4 ? more & 8 ? want : plain : NULL,
            .filter = more & 32 ? "*grab*" : NULL,
            .curve = more & 64 ? "x0" : NULL, .partial = more & 128,
            .extra_fails = how & 128, .injected = how & 64});
        if (how & 32) {
            tt_report_text(ctx, r, "/dev/null", false);
            tt_report_json(ctx, r, "/dev/null");
            tt_report_html(ctx, r, "/dev/null");
        }
        tt_report_free(r);
    }
    fuzz_settle();
    return 0;
}
