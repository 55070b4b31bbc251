/* plan.h: what a run will take, before it takes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     tt_needs n;
 *     TT_TRY(tt_run_open(ctx, &run, &settings, NULL));
 *     TT_TRY(tt_run_plan(ctx, run, &n));          bytes, at no cost
 *     TT_TRY(tt_run_time(ctx, run, 3.0, &n));     and seconds, in 3 or more
 *
 * The bytes are those of the code that allocates: the models run once without
 * memory and without arithmetic. Nothing but headers is read for it. A run that
 * cannot fit is refused by tt_run_open. */
#ifndef TETHER_PLAN_H
#define TETHER_PLAN_H

#include "tether/api.h"
#include "tether/run.h"

TT_API_BEGIN

/* What a part of the run takes; the parts come one after the other, but for
 * those of `during`. */
typedef struct tt_stage {
    int64_t mapped;        /* bytes of weights that stay in their files: the
                              system can take their pages back                */
    int64_t held;          /* bytes that the part adds at most               */
    int64_t peak;          /* with all else that is held then                 */
    int64_t addresses;     /* bytes of addresses for it                       */
    int64_t kept;          /* of it, what scratch keeps for later parts       */
    double operations;     /* of matrix products                              */
    double seconds;        /* 0: not measured                                 */
} tt_stage;

/* Bytes are those that no file stands behind, unless said otherwise. Time and
 * disk are one video's, text is of all prompts. */
typedef struct tt_needs {
    int64_t before;        /* the process holds already                       */
    bool during;           /* latents and frames take turns: one peak of both */
    tt_stage text, latents, decoding;
    int64_t tokens;        /* of the longest prompt; 0: not known yet         */
    double reading;        /* seconds beside theirs: opening, weights         */
    int64_t cache;         /* keys and values of `latents`, with the prompt's */
    int64_t cache_files;   /* on disk: keys and values of the latents, where
                              kv_dir is set; not in `cache` then              */
    int64_t history_files; /* on disk: what the VAE remembers, where
                              history_dir is set; not in `held` then          */
    int64_t heads;         /* of every layer, that are held                   */
    int64_t activations;   /* the rest of it                                  */
    bool keys;             /* ... with what is kept of a window, see
                              tt_cache_keep_keys                              */
    bool laid;             /* ... keys and values laid out for attention      */
    int64_t peak;          /* the largest of the three peaks; 0: not known    */
    int64_t latents_file;  /* on disk                                         */
    int64_t states;        /* on disk, until the latents are complete         */
    int64_t video;         /* on disk as y4m; other formats are smaller       */
    int64_t available;     /* beyond `before`; INT64_MAX where nobody says    */
    char limit[96];        /* who says so: "TT_MEMORY"                        */
} tt_needs;

/* Bytes and operations, of this rank; tt_run_open has found them.
 * Errors  TT_EUNSUPPORTED  the run could not be planned */
tt_status tt_run_plan(tt_ctx *ctx, const tt_run *run, tt_needs *out);
/* Seconds as well: every kind of call is measured at its true shape, or at a
 * part of it, in about `seconds` altogether, or more where single calls are
 * slow, as golden's are. The weights it takes are read.
 * Errors  also TT_EUNSUPPORTED  values are in memory of a device, or of a team
 */
tt_status tt_run_time(tt_ctx *ctx, const tt_run *run, double seconds,
                      tt_needs *out);

/* Bytes that this process can still have, and who says so ("TT_MEMORY", the
 * machine, a control group); INT64_MAX where nobody says.
 * Errors  TT_EINVAL  TT_MEMORY is set and cannot be read */
tt_status tt_memory_left(tt_ctx *ctx, int64_t *bytes, const char **who);

/* One rank of several equal ones, whether they are there or not. */
typedef struct tt_share_of {
    int rank, size;
    double seconds;        /* to measure in; 0: no time is measured           */
    bool cpu;              /* CPU seconds of the process, not the clock's     */
} tt_share_of;

/* What it does for a chunk, once the window is full. */
typedef struct tt_share {
    double seconds;        /* of computing                                    */
    double operations;     /* of matrix products                              */
    double exchanges;      /* in which all ranks take part                    */
    double messages, sent; /* to other ranks; bytes                           */
    double moved;          /* bytes: of every exchange what is sent or what is
                              received, whichever is more                     */
    int64_t heads;         /* held                                            */
    int64_t held, cache;   /* bytes, and those of keys and values; none for
                              rotated keys that need not be kept              */
} tt_share;

/* Of a chunk, the mean of some whose turn the policy makes; with `decoding` of
 * its frames as pictures. The rank is that of the real code, which runs in
 * shadow: nothing is taken from a table.
 * Errors  TT_EINVAL  no such rank */
tt_status tt_run_share(tt_ctx *ctx, const tt_run *run, const tt_share_of *of,
                       bool decoding, tt_share *out);

TT_API_END

#endif
