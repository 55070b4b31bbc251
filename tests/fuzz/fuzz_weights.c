/* fuzz_weights.c: a file of weights with scales, marks and metadata, as every
 * kind of model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is taken is widened: a scale must belong to its weight. */
#include "io/weights.h"
#include "tests/fuzz/fuzz.h"

static void widen_all(tt_ctx *ctx, const tt_weights *w)
{
    for (int64_t i = 0; i < tt_weights_count(w) && !ctx->status; i++) {
        const weight *x = &w->item[i];
        const int64_t n = tt_tensor_count(&x->t);
        if (n > 1 << 16) continue;
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        const tt_tensor *t = tt_weights_find(w, x->name);
        float *v = t ? tt_alloc(ctx, &ctx->scratch, n, sizeof *v, "values")
                     : NULL;
        if (v) tt_widen_at_f32(v, t, 0, n);
        tt_arena_reset(&ctx->scratch, m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 8192) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const char *path = fuzz_file(data, size, ".weights");
    for (int kind = 0; kind < TT_MODEL_KINDS; kind++) {
        tt_weights *w = NULL;
        tt_weights_open(ctx, &w, path, (tt_model_kind)kind, NULL);
        widen_all(ctx, w);
        fuzz_settle();
        tt_weights_close(w);
    }
    return 0;
}
