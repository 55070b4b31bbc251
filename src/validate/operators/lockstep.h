/* lockstep.h: shared by lockstep.c and lockstep_rounds.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_LOCKSTEP_H
#define VALIDATE_LOCKSTEP_H

#include "validate/operators/call.h"
#include "validate/operators/rounds.h"

enum { OURS, FORCED, FORCED_EMUL, FREE, FREE_EMUL, RUNS };

typedef struct lane {
    const tt_ops *ops;
    tt_rollout *run;
    tt_prompt *prompt;
    const tt_real *x;        /* the chunk                                     */
    round_list rounds;       /* of this chunk                                 */
} lane;

typedef struct lockstep {
    tt_ctx *ctx;
    tt_report *report;
    const tt_arith *arith;
    const char *state;
    struct watch *watch;     /* who looks on the candidate; NULL: no one      */
    lane lane[RUNS];
    int64_t chunk, frames, n; /* n values of the chunk                        */
    int64_t tie, own;         /* layer of the candidate's first flipped pick,
                                 of the emulation's; -1: none                 */
    char why_not[160];        /* what comes after the former is not checked   */
} lockstep;

/* Verdict over real tensors of the three restored lanes, rows of the last
 * axis. */
void lockstep_check(lockstep *s, const char *path, const double *got,
                    const double *want, const double *emul, int rank,
                    const int64_t *dim);
/* Verdict over integers: equal or not. */
bool lockstep_equal(lockstep *s, const char *path, const int32_t *got,
                    const int32_t *want, int64_t n, const char *why);
void lockstep_not_checked(lockstep *s, const char *path, const char *why);

/* Verdicts over the admission rounds of a chunk; sets tie and own. */
void lockstep_rounds(lockstep *s);

#endif
