/* mma_cases.c: cases of a class's sums alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Kind mma: d [R, M, N] = c + a b for a [R, M, K], b [R, K, N] of bf16 numbers
 * and c [R, M, N], by the definition of the class that case.json names: block
 * after block over ascending k, starting from c. */
#include <inttypes.h>
#include <string.h>

#include "ops/golden/golden.h"
#include "tests/run_case/run_case.h"

typedef struct extents {
    int64_t R, M, N, K;
} extents;

static void multiply(const golden_class *class, const extents *e, tt_real *d,
                     const tt_real *a, const tt_real *b, const tt_real *c)
{
    for (int64_t i = 0; i < e->R * e->M * e->N; i++) {
        const int64_t row = i / e->N, r = row / e->M, n = i % e->N;
        tt_real sum = c[i];
        for (int64_t k = 0; k < e->K; k += class->block)
            sum = class->chain(sum, b + (r * e->K + k) * e->N + n, e->N,
                               a + row * e->K + k, class->block);
        d[i] = sum;
    }
}

/* An input as the class reads it. */
static tt_real *factors(run_io *io, const golden_class *class,
                        const char *name, int64_t *dim)
{
    tt_real *x = run_input(io, name, 3, dim);
    for (int64_t i = 0; x && i < dim[0] * dim[1] * dim[2]; i++)
        x[i] = class->factor(x[i]);
    return x;
}

static void mma(run_io *io, const char *name, const golden_class *class)
{
    int64_t da[3] = {0}, db[3] = {0}, dc[3] = {0};
    const tt_real *a = factors(io, class, "a", da);
    const tt_real *b = factors(io, class, "b", db);
    const tt_real *c = run_input(io, "c", 3, dc);
    if (io->ctx->status) return;
    const extents e = {dc[0], dc[1], dc[2], da[2]};
    if (da[0] != e.R || da[1] != e.M || db[0] != e.R || db[1] != e.K
        || db[2] != e.N) {
        tt_fail(io->ctx, TT_EFORMAT, "%s/inputs.safetensors: expected a "
                "[R, M, K], b [R, K, N] and c [R, M, N]; their extents do not "
                "agree", io->dir);
        return;
    }
    if (e.K % class->block) {
        tt_fail(io->ctx, TT_EFORMAT, "%s/inputs.safetensors: 'a' has K = %"
                PRId64 ", but class %s takes %d products together: K must be "
                "a multiple of that", io->dir, e.K, name, class->block);
        return;
    }
    tt_real *d = run_alloc(io, e.R * e.M * e.N);
    if (d) multiply(class, &e, d, a, b, c);
    run_put(io, "d", d, e.R, e.M, e.N);
}

tt_status run_mma_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out)
{
    run_io io;
    tt_class cls;
    if (strcmp(tt_json_str(json, "kind", ""), "mma")) return TT_EUNSUPPORTED;
    const char *name = tt_json_str(json, "class", "");
    if (!tt_class_find(&cls, name) || !golden_class_of(cls))
        return tt_fail(ctx, TT_EFORMAT, "%s/case.json: no class '%s' in this "
                       "build; it has: %s", dir, name, tt_class_names());
    if (run_io_open(&io, ctx, json, dir, out) == TT_OK)
        mma(&io, name, golden_class_of(cls));
    return run_io_close(&io);
}
