/* needs.h: what a run will take, before it takes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     tt_needs n;
 *     TT_TRY(tt_run_open(ctx, &run, &settings, NULL));
 *     TT_TRY(tt_run_plan(ctx, run, &n));          bytes, at no cost
 *     TT_TRY(tt_run_time(ctx, run, &n));          and seconds, in a few
 *
 * Bytes are the sizes that the parts of a run report, summed: within 10 % of
 * what a run holds. Nothing but headers is read for it. A run that cannot fit
 * is refused by tt_run_open. */
#ifndef TT_RUN_NEEDS_H
#define TT_RUN_NEEDS_H

#include "run/run.h"

/* What a part of the run takes; the parts come one after the other, but for
 * those of `during`. */
typedef struct tt_stage {
    int64_t mapped;        /* bytes of weights that stay in their files: the
                              system can take their pages back                */
    int64_t held;          /* bytes that the part adds at most               */
    int64_t peak;          /* with all else that is held then                 */
    double operations;     /* of matrix products                              */
    double seconds;        /* 0: not measured                                 */
} tt_stage;

/* Bytes are those that no file backs, unless said otherwise. Time and
 * disk are one video's, text is of all prompts. */
typedef struct tt_needs {
    int64_t before;        /* the process holds already                       */
    bool during;           /* latents and frames alternate: one peak of both  */
    tt_stage text, latents, decoding;
    tt_stage lora;         /* merged into the transformer: `held` where that is
                              still to come, in all peaks; into the encoder: in
                              text.held                                       */
    int64_t cache;         /* keys and values of `latents`, with the prompt's */
    bool bf16;             /* ... of which the latents' are bf16 numbers      */
    int64_t cache_files;   /* on disk: keys and values of the latents, where
                              kv_dir is set; not in `cache` then              */
    int64_t history_files; /* on disk: what the VAE remembers, where
                              history_dir is set; not in `held` then          */
    int64_t activations;   /* the rest of it                                  */
    bool keys;             /* ... with what is kept of a window, see
                              tt_cache_keep_keys                              */
    int64_t peak;          /* the largest of the three peaks                  */
    int64_t latents_file;  /* on disk                                         */
    int64_t states;        /* on disk, until the latents are complete         */
    int64_t video;         /* on disk as y4m; other formats are smaller       */
    int64_t available;     /* beyond `before`; INT64_MAX: no limit is known   */
    char limit[96];        /* what limits it: "TT_MEMORY"                     */
} tt_needs;

/* Bytes and operations, of this rank; tt_run_open has found them.
 * Errors  TT_EINVAL  run is NULL */
tt_status tt_run_plan(tt_ctx *ctx, const tt_run *run, tt_needs *out);
/* Seconds as well: operations by the rates of this machine, which are measured
 * for that, at the shapes of the run, in some seconds. Reading weights from the
 * disk is not in it. Within 25 % where the machine is otherwise idle.
 * Errors  TT_EUNSUPPORTED  values are in memory of a device, or of a team */
tt_status tt_run_time(tt_ctx *ctx, const tt_run *run, tt_needs *out);

/* Bytes that this process can still have, and what limits them ("TT_MEMORY",
 * the machine, a control group); INT64_MAX where no limit is known.
 * Errors  TT_EINVAL  TT_MEMORY is set and cannot be read */
tt_status tt_memory_left(tt_ctx *ctx, int64_t *bytes, const char **who);

#endif
