/* run_case.h: one reference case in, one file of tensors out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A case folder holds case.json (what to do) and inputs.safetensors; the
 * result goes to a writer under the names of expected.safetensors, which is
 * never opened here. The same handlers serve build/run_case and the test
 * programs (tests/cases.h).
 *
 * Convention of handlers. A handler looks at json's "kind" first. Kind not its
 * own: return TT_EUNSUPPORTED *without recording it* (ctx->status stays
 * TT_OK) and without having written anything. Otherwise: do the work, add the
 * tensors, return TT_OK or a recorded failure. */
#ifndef TT_TESTS_RUN_CASE_H
#define TT_TESTS_RUN_CASE_H

#include "io/json.h"
#include "dit/dit.h"
#include "io/io.h"

typedef tt_status (*run_handler)(tt_ctx *ctx, const tt_json *json,
                                 const char *dir, tt_st_writer *out);

tt_status run_dit_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out);
tt_status run_cache_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                         tt_st_writer *out);
tt_status run_rollout_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                           tt_st_writer *out); /* called by run_cache_case */
tt_status run_vae_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out);
tt_status run_text_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                        tt_st_writer *out);

tt_status run_mma_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out);

/* Read dir/case.json and let the handler of its kind work. An unknown kind is
 * returned as TT_EUNSUPPORTED with the sentence recorded and *unknown set. */
tt_status run_case(tt_ctx *ctx, const char *dir, tt_st_writer *out,
                   bool *unknown);

/* ---- help for handlers --------------------------------------------------- */

/* A case in progress: inputs open, tensors read into the arena. Every call
 * does nothing once ctx carries a failure. */
typedef struct run_io {
    tt_ctx *ctx;
    const tt_json *json;
    const char *dir;
    tt_st_writer *out;
    tt_file *inputs;
    tt_arena arena;
} run_io;

tt_status run_io_open(run_io *io, tt_ctx *ctx, const tt_json *json,
                      const char *dir, tt_st_writer *out);
/* Close and give ctx->status back. */
tt_status run_io_close(run_io *io);

/* An input widened to tt_real, or as int64; its shape goes to dim (rank must
 * match). NULL after a failure. */
tt_real *run_input(run_io *io, const char *name, int rank, int64_t *dim);
int64_t *run_input_i64(run_io *io, const char *name, int rank, int64_t *dim);
/* Zeroed tt_real memory that lives as long as the case. */
tt_real *run_alloc(run_io *io, int64_t n);

/* Add an output; the extents follow. */
#define run_put(io, name, data, ...)                                           \
    run_put_typed((io), (name), sizeof(tt_real) == 8 ? TT_F64 : TT_F32,        \
                  (data), (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8),         \
                  (int64_t[]){__VA_ARGS__})
#define run_put_i64(io, name, data, ...)                                       \
    run_put_typed((io), (name), TT_I64, (data),                                \
                  (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8),                 \
                  (int64_t[]){__VA_ARGS__})
#define run_put_f64(io, name, data, ...)                                       \
    run_put_typed((io), (name), TT_F64, (data),                                \
                  (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8),                 \
                  (int64_t[]){__VA_ARGS__})
void run_put_typed(run_io *io, const char *name, tt_dtype dtype,
                   const void *data, int rank, const int64_t *dim);

/* Integers of an array member of case.json; *n of them, NULL when absent. */
int64_t *run_ints(run_io *io, const char *key, int64_t *n);

/* The transformer in the folder case.json's "model" names. */
tt_status run_load_dit(run_io *io, tt_dit **m);

/* out [n] = values, wherever they are. */
void run_fetch(tt_ctx *ctx, tt_host *out, const tt_real *x, int64_t n);

#endif
