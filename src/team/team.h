/* team.h: several ranks that compute one video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rank is a process with the whole model, perhaps on a machine of its own. It
 * computes a part of the token rows of every linear layer, holds the keys and
 * values of a part of the heads and of a part of the prompt, and decodes a band
 * of every picture. Ranks hand values to each other and never add up what
 * others have added in parts: so no bit depends on their number.
 * All of them know the latents; rank 0 alone writes and prints.
 *
 * A context without a team is alone: it is rank 0 of 1, has all rows and heads,
 * and what is here returns at once. src/team/README.md tells the rest. */
#ifndef TT_TEAM_TEAM_H
#define TT_TEAM_TEAM_H

#include "core/context.h"

#define TT_TEAM_MAX 256      /* ranks                                         */

int tt_team_rank(const tt_ctx *ctx);
int tt_team_size(const tt_ctx *ctx);

/* ---- what is ours -------------------------------------------------------- */

typedef struct tt_range {
    int64_t lo, hi;          /* [lo, hi); may be empty                        */
} tt_range;

/* Rows of T, in the order of the ranks: every row is one rank's. */
tt_range tt_team_rows(const tt_ctx *ctx, int64_t T);
/* Heads of H whose keys and values we hold, at least one. Where ranks do not
 * divide heads, two neighbours hold the same one. */
tt_range tt_team_heads(const tt_ctx *ctx, int64_t H);
/* Of the T queries of head h those whose attention we compute: our piece of the
 * line h * T + row, which lies in the heads we hold. */
tt_range tt_team_queries(const tt_ctx *ctx, int64_t H, int64_t T, int64_t h);

/* A picture in bands of lines. The rows that are shared out are those of the
 * smallest picture, and each is `each` lines of a larger one: so all sizes are
 * cut at the same places. */
typedef struct tt_band {
    int64_t of;              /* lines of the picture                          */
    int64_t first, lines;    /* ours; perhaps none                            */
    int64_t above, below;    /* 1: a line of another rank is next to ours     */
    int64_t each;            /* 0: the picture is not cut, all is ours        */
} tt_band;
tt_band tt_team_band(const tt_ctx *ctx, int64_t T, int64_t each);

/* ---- exchanges ----------------------------------------------------------- */

/* All ranks call these in the same order. What comes out is in ctx->scratch,
 * NULL after a failure; alone it is `x` itself, and nothing is moved.
 *
 * x [our rows of T, H, D] gives [T, heads held, D]. */
tt_real *tt_team_to_heads(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                          int64_t D);
/* x [T, heads held, D] gives [our rows of T, H, D]. */
tt_real *tt_team_to_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                         int64_t D);
/* The same where x has of every head held, one after the other, only our
 * queries [n, D]; alone x is [T, H, D]. */
tt_real *tt_team_answers_to_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                                 int64_t D);
/* x [our rows of T, width] gives [T, width]. */
tt_real *tt_team_all_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t width);
/* The same for lines: x [our lines, width] gives [all lines, width]; and on
 * rank 0 alone, where the others get nothing to read. */
tt_real *tt_team_all_lines(tt_ctx *ctx, tt_real *x, const tt_band *b,
                           int64_t width);
tt_real *tt_team_lines_to_first(tt_ctx *ctx, tt_real *x, const tt_band *b,
                                int64_t width);
/* In place in x [above + our lines + below, width]: the lines of the other
 * ranks come from them. */
void tt_team_halo(tt_ctx *ctx, tt_real *x, const tt_band *b, int64_t width);
/* Host memory: x [n, heads held] of `unit` bytes gives [n, H]. */
void *tt_team_all_heads(tt_ctx *ctx, void *x, int64_t n, int64_t H,
                        size_t unit);

/* What rank 0 has in `data` is in everybody's, however long rank 0 takes. */
tt_status tt_team_broadcast(tt_ctx *ctx, void *data, int64_t bytes);
/* What belongs to head h of H, `bytes` of host memory, goes from a rank that
 * holds the head to rank 0; or from rank 0 to all that hold it. The others'
 * `data` stays as it is. However long rank 0 takes. */
tt_status tt_team_bring_head(tt_ctx *ctx, void *data, int64_t bytes, int64_t H,
                             int64_t h);
tt_status tt_team_hand_head(tt_ctx *ctx, void *data, int64_t bytes, int64_t H,
                            int64_t h);
/* Is it so on any rank? */
bool tt_team_any(tt_ctx *ctx, bool here);

/* ---- failures ------------------------------------------------------------ */

/* Who has failed says so to all at the next exchange, here or when the team is
 * closed; the others then fail with the same status and a sentence that names
 * the rank. Who waits for a rank that is silent for 35 s fails as well. One
 * that computes, reads or writes is waited for; but when all wait for 140 s and
 * nothing comes they fail, in other calls than tt_team_broadcast,
 * tt_team_compare and tt_team_close. */
tt_status tt_team_agree(tt_ctx *ctx);
/* What rank 0 has tried alone, in a context of its own, has failed for all or
 * for no one: its failure is recorded in every rank's ctx, and the team lives.
 * `tried` counts on rank 0 alone. */
tt_status tt_team_follow(tt_ctx *ctx, const tt_ctx *tried);
/* Has no one given up? Only then may a failure be cleared. */
bool tt_team_stands(const tt_ctx *ctx);

/* Is `text`, words "name value ..." about `what`, the same on all ranks?
 * Errors  TT_EINVAL names the first rank that differs, and both values */
tt_status tt_team_compare(tt_ctx *ctx, const char *what, const char *text);

/* ---- time ---------------------------------------------------------------- */

/* Seconds of a rank. An exchange takes what the rank that comes last spends in
 * it; what another spends there beyond that, it waits for others. All else
 * counts as computing, files too. */
typedef struct tt_team_time {
    double compute, exchange, waiting;
    double cpu;              /* of its process, on all cores                  */
    double moving;           /* of them in exchanges: copies, and looks for   */
                             /* what has not come                             */
    int64_t sent, messages;  /* bytes to other ranks, and in how many parcels */
} tt_team_time;

/* Of all ranks since the last call, of[tt_team_size]; it also counts in what
 * they have spent. With of NULL the time before this call is forgotten, and
 * no one is asked. */
tt_status tt_team_measure(tt_ctx *ctx, tt_team_time *of);
tt_team_time tt_team_spent(const tt_ctx *ctx, int rank);

/* ---- taps ---------------------------------------------------------------- */

/* What is shared out is shown as a whole under one name; alone this is TT_TAP.
 * All ranks have a tap, or none has. All inject the same, or none does: what is
 * injected into the whole comes to those who hold its parts.
 *   x [our rows, ...]; x [n, heads held, D] */
void tt_team_tap_rows(tt_ctx *ctx, const char *name, tt_real *x, int rank,
                      const int64_t *dim);
void tt_team_tap_heads(tt_ctx *ctx, const char *name, tt_real *x, int64_t n,
                       int64_t H, int64_t D);
#define TT_TAP_ROWS(ctx, name, x, ...)                                         \
    do {                                                                       \
        if (TT_TAPPED(ctx)) {                                                  \
            const int64_t tt_dim_[] = {__VA_ARGS__};                           \
            tt_team_tap_rows((ctx), (name), (x),                               \
                             (int)(sizeof tt_dim_ / sizeof tt_dim_[0]),        \
                             tt_dim_);                                         \
        }                                                                      \
    } while (0)

/* ---- teams --------------------------------------------------------------- */

/* Join the ranks that mpirun has started; nothing when it has not. Ranks other
 * than 0 are silent from here on. Threads of one machine are shared out.
 * Errors  TT_EINVAL  mpirun started several, but this build has no MPI (make
 *         MPI=1); or the ranks are of different builds */
tt_status tt_team_open(tt_ctx *ctx);
/* Leave it. After a failure the others are told, and the program may end. */
void tt_team_close(tt_ctx *ctx);

/* Rows and heads in these proportions, one number from 1 to 1000 per rank, the
 * same on all; before caches are opened. No bit depends on them. */
tt_status tt_team_share(tt_ctx *ctx, const double *share, int n);

/* A team of `size` threads in this process, for tests: every one of them calls
 * fn with a context of its own, made from ctx. Returns what failed first. */
typedef void (*tt_rank_fn)(void *user, tt_ctx *ctx);
tt_status tt_team_threads(tt_ctx *ctx, int size, tt_rank_fn fn, void *user);

#endif
