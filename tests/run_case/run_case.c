/* run_case.c: dispatch, and help for handlers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/run_case/run_case.h"
#include "core/device.h"

#include <stdio.h>
#include <string.h>

static const run_handler handlers[] = {run_dit_case, run_cache_case,
                                       run_vae_case, run_text_case,
                                       run_mma_case};

tt_status run_case(tt_ctx *ctx, const char *dir, tt_st_writer *out,
                   bool *unknown)
{
    char path[1024];
    tt_arena arena = {0};
    const tt_json *json;
    *unknown = false;
    snprintf(path, sizeof path, "%s/case.json", dir);
    tt_status s = tt_json_file(ctx, &arena, &json, path, 1 << 24);
    if (s == TT_OK) {
        s = TT_EUNSUPPORTED;
        for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
            s = handlers[i](ctx, json, dir, out);
            if (s != TT_EUNSUPPORTED || ctx->status) break;
        }
        *unknown = s == TT_EUNSUPPORTED && !ctx->status;
        if (*unknown)
            s = tt_fail(ctx, TT_EUNSUPPORTED, "%s: unknown kind \"%s\"", path,
                        tt_json_str(json, "kind", ""));
    }
    tt_arena_free(&arena);
    return s;
}

/* ---- inputs -------------------------------------------------------------- */

tt_status run_io_open(run_io *io, tt_ctx *ctx, const tt_json *json,
                      const char *dir, tt_st_writer *out)
{
    char path[1024];
    *io = (run_io){.ctx = ctx, .json = json, .dir = dir, .out = out};
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    return tt_file_open(ctx, &io->inputs, path);
}

tt_status run_io_close(run_io *io)
{
    if (io->inputs) tt_file_close(io->inputs);
    tt_arena_free(&io->arena);
    return io->ctx->status;
}

static const tt_tensor *input(run_io *io, const char *name, int rank,
                              int64_t *dim)
{
    if (io->ctx->status) return NULL;
    const tt_entry *e = tt_file_find(io->inputs, name);
    if (!e || e->t.rank != rank) {
        tt_fail(io->ctx, TT_EFORMAT, "%s/inputs.safetensors: %s '%s'", io->dir,
                e ? "unexpected rank of" : "no", name);
        return NULL;
    }
    if (dim) memcpy(dim, e->t.dim, (size_t)rank * sizeof *dim);
    return &e->t;
}

tt_real *run_input(run_io *io, const char *name, int rank, int64_t *dim)
{
    const tt_tensor *t = input(io, name, rank, dim);
    return t ? tt_read_real(io->ctx, &io->arena, t) : NULL;
}

int64_t *run_input_i64(run_io *io, const char *name, int rank, int64_t *dim)
{
    const tt_tensor *t = input(io, name, rank, dim);
    if (!t) return NULL;
    const int64_t n = tt_tensor_count(t);
    int64_t *x = tt_alloc(io->ctx, &io->arena, n, sizeof *x, "integer input");
    if (!x) return NULL;
    if (t->dtype == TT_I64)
        tt_gather(x, t);
    else if (t->dtype == TT_I32) {
        int32_t *narrow = tt_alloc(io->ctx, &io->arena, n, sizeof *narrow,
                                   "integer input");
        if (!narrow) return NULL;
        tt_gather(narrow, t);
        for (int64_t i = 0; i < n; i++) x[i] = narrow[i];
    } else
        tt_fail(io->ctx, TT_EFORMAT, "%s: input '%s' has type %s", io->dir,
                name, tt_dtype_name(t->dtype));
    return io->ctx->status ? NULL : x;
}

tt_real *run_alloc(run_io *io, int64_t n)
{
    return tt_alloc0(io->ctx, &io->arena, n, sizeof(tt_real), "case tensor");
}

int64_t *run_ints(run_io *io, const char *key, int64_t *n)
{
    const tt_json *a = tt_json_get(io->json, key);
    *n = tt_json_count(a);
    int64_t *x = a ? tt_alloc(io->ctx, &io->arena, *n, sizeof *x, key) : NULL;
    if (!x) *n = 0;
    for (int64_t i = 0; i < *n; i++) x[i] = tt_json_whole(tt_json_at(a, i), 0);
    return x;
}

/* ---- outputs ------------------------------------------------------------- */

void run_put_typed(run_io *io, const char *name, tt_dtype dtype,
                   const void *data, int rank, const int64_t *dim)
{
    if (io->ctx->status) return;
    tt_st_add(io->out, name, dtype, rank, dim, data);
}

tt_status run_load_dit(run_io *io, tt_dit **m)
{
    char path[1024];
    tt_weights *w;
    *m = NULL;
    TT_TRY(io->ctx->status);
    snprintf(path, sizeof path, "%s/%s", io->dir,
             tt_json_str(io->json, "model", ""));
    TT_TRY(tt_weights_open(io->ctx, &w, path, TT_MODEL_DIT, NULL));
    return tt_dit_load(io->ctx, m, w, NULL, 0);
}

void run_fetch(tt_ctx *ctx, tt_host *out, const tt_real *x, int64_t n)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_host *h = tt_get(ctx, x, n);
    if (h) memcpy(out, h, (size_t)n * sizeof *out);
    tt_arena_reset(&ctx->scratch, m);
}
