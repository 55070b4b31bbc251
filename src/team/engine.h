/* engine.h: what an engine does for a team.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TEAM_ENGINE_H
#define TT_TEAM_ENGINE_H

#include <time.h>

#include "team/team.h"

/* Bytes [at[r], at[r] + n[r]) of data go to rank r, or come from it. */
typedef struct tt_parcels {
    char *data;
    int64_t at[TT_TEAM_MAX], n[TT_TEAM_MAX];
} tt_parcels;

enum { TEAM_TIMED = 2048 };

typedef struct tt_team tt_team;
struct tt_team {
    int rank, size;
    int64_t share[TT_TEAM_MAX + 1]; /* of the ranks before r; [size]: of all  */
    double patience;           /* seconds a rank may be silent                */
    bool broken;               /* someone failed: no one waits any more       */
    void *impl;                /* the engine's                                */
    double since;              /* when time began, see tt_team_measure        */
    int timed;                 /* exchanges since then                        */
    float took[TEAM_TIMED];    /* seconds of each; the last: of all the rest  */
    double cpu;                /* of the process, at that time                */
    double moving;             /* CPU seconds in exchanges since then         */
    int64_t sent, messages;    /* since then                                  */
    tt_team_time spent[TT_TEAM_MAX];
    /* The only thing an engine does: every rank's `out` into all `in`. A
     * patient exchange waits as long as it takes, while the others live.
     * Errors  what another rank gave up with, and then `broken` is set; else
     *         TT_EIO names the rank that is silent */
    tt_status (*exchange)(tt_ctx *ctx, tt_team *t, const tt_parcels *out,
                          const tt_parcels *in, bool patient);
    /* Everybody who waits, now or later, fails like this. */
    void (*give_up)(tt_team *t, tt_status status, const char *sentence);
    void (*close)(tt_ctx *ctx, tt_team *t);
};

/* What a rank sends to the others. */
typedef struct team_load {
    int64_t sent, received;    /* bytes                                       */
    int64_t messages;          /* that are sent                               */
} team_load;
team_load team_load_of(const tt_team *t, const tt_parcels *out,
                       const tt_parcels *in);

/* So many seconds from now, for pthread_cond_timedwait. */
struct timespec team_after(double seconds);
/* Equal shares. */
void team_init(tt_team *t, int rank, int size);
/* Every rank's `out` into all `in`; who has failed tells the others. */
tt_status team_exchange(tt_ctx *ctx, const tt_parcels *out,
                        const tt_parcels *in, bool patient);
/* A byte to and from everybody. */
tt_status team_meet(tt_ctx *ctx, bool patient);

#ifdef TT_MPI
/* The ranks of mpirun; *out stays NULL when it started no other. */
tt_status team_open_mpi(tt_ctx *ctx, tt_team **out);
#endif

#endif
