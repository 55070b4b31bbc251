/* mpi.c: the engine of MPI, for make MPI=1.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a message to and from every rank, and a look at them again and again
 *         with short sleeps in between: a rank that waits leaves its cores to
 *         others, hears of failures, and knows who is silent. The main thread
 *         alone calls MPI.
 * Holds   ranks other than 0 print nothing. Who fails tells all; rank 0 says
 *         why and ends the job. MPI_Abort is the end after every failure,
 *         because a message that nobody waits for may be on its way. */
#include <mpi.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "team/engine.h"

enum { PARCEL = 1, FAILURE = 2 };
enum { MESSAGE = 1 << 30 };      /* bytes; MPI counts in int                  */

typedef struct failure {
    int status;
    char sentence[1024];
} failure;

typedef struct job {
    tt_team team;                /* first: a team is its job                  */
    FILE *words;                 /* what stderr was                           */
    MPI_Request *request;        /* receives, then sends                      */
    int *peer;                   /* of every request                          */
    int requests, receives, room;
    failure told;                /* on its way to all                         */
    MPI_Request telling[TT_TEAM_MAX];
} job;

/* ---- one exchange -------------------------------------------------------- */

static MPI_Request *next_request(tt_ctx *ctx, job *j, int peer)
{
    if (j->requests == j->room) {
        const size_t room = 2 * (size_t)j->room + 64;
        MPI_Request *r = realloc(j->request, room * sizeof *r);
        if (r) j->request = r;
        int *p = realloc(j->peer, room * sizeof *p);
        if (p) j->peer = p;
        if (!r || !p) {
            tt_fail(ctx, TT_ENOMEM, "out of memory for messages");
            return NULL;
        }
        j->room = (int)room;
    }
    j->peer[j->requests] = peer;
    return &j->request[j->requests++];
}

/* Start to receive, or to send, what is for or from one rank. */
static void start(tt_ctx *ctx, job *j, const tt_parcels *p, int r, bool send)
{
    char *at = p->data + p->at[r];
    for (int64_t left = p->n[r]; left > 0 && !ctx->status;) {
        const int n = left < MESSAGE ? (int)left : MESSAGE;
        MPI_Request *q = next_request(ctx, j, r);
        if (!q) return;
        if (send) MPI_Isend(at, n, MPI_BYTE, r, PARCEL, MPI_COMM_WORLD, q);
        else MPI_Irecv(at, n, MPI_BYTE, r, PARCEL, MPI_COMM_WORLD, q);
        at += n;
        left -= n;
    }
}

static void start_all(tt_ctx *ctx, job *j, const tt_parcels *out,
                      const tt_parcels *in)
{
    const tt_team *t = &j->team;
    j->requests = 0;
    for (int i = 1; i < t->size; i++)
        start(ctx, j, in, (t->rank + t->size - i) % t->size, false);
    j->receives = j->requests;
    for (int i = 1; i < t->size; i++)
        start(ctx, j, out, (t->rank + i) % t->size, true);
}

/* Has anybody given up? */
static tt_status listen(tt_ctx *ctx, job *j)
{
    int there = 0;
    failure f;
    MPI_Iprobe(MPI_ANY_SOURCE, FAILURE, MPI_COMM_WORLD, &there,
               MPI_STATUS_IGNORE);
    if (!there) return TT_OK;
    MPI_Recv(&f, sizeof f, MPI_BYTE, MPI_ANY_SOURCE, FAILURE, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    j->team.broken = true;
    return tt_fail(ctx, (tt_status)f.status, "%s", f.sentence);
}

/* The first of n requests that is not done; n when all are. */
static int first_open(MPI_Request *request, int n)
{
    int i = 0, done = 1;
    for (; i < n; i++) {
        MPI_Test(&request[i], &done, MPI_STATUS_IGNORE);
        if (!done) break;
    }
    return i;
}

static tt_status silent_rank(tt_ctx *ctx, const job *j, int i)
{
    return tt_fail(ctx, TT_EIO, "rank %d has been silent for %g s", j->peer[i],
                   j->team.patience);
}

/* The first looks follow each other at once, then there are 50 microseconds
 * between them, and at last one millisecond. */
static void rest(long looks)
{
    const struct timespec t = {0, looks > 2000 ? 1000000 : 50000};
    if (looks > 50) nanosleep(&t, NULL);
}

static tt_status wait_for_all(tt_ctx *ctx, job *j, bool patient)
{
    const double begin = tt_now();
    for (long looks = 0; !ctx->status; looks++) {
        const int i = first_open(j->request, j->requests);
        if (i == j->requests) return TT_OK;
        if (looks % 16 == 15) listen(ctx, j);
        if (!patient && tt_now() - begin > j->team.patience)
            silent_rank(ctx, j, i);
        rest(looks);
    }
    return ctx->status;
}

/* After a failure the memory of the receives may soon be something else's. One
 * that is under way cannot be cancelled; nobody waits for it. */
static void cancel_receives(job *j)
{
    for (int i = 0, done; i < j->receives; i++) {
        if (j->request[i] == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&j->request[i]);
        MPI_Test(&j->request[i], &done, MPI_STATUS_IGNORE);
    }
}

static tt_status exchange(tt_ctx *ctx, tt_team *t, const tt_parcels *out,
                          const tt_parcels *in, bool patient)
{
    job *j = (job *)t;
    start_all(ctx, j, out, in);
    if (!ctx->status && in->n[t->rank])
        memcpy(in->data + in->at[t->rank], out->data + out->at[t->rank],
               (size_t)in->n[t->rank]);
    wait_for_all(ctx, j, patient);
    if (ctx->status) cancel_receives(j);
    return ctx->status;
}

/* ---- failures ------------------------------------------------------------ */

static void give_up(tt_team *t, tt_status status, const char *sentence)
{
    job *j = (job *)t;
    j->told.status = status;
    snprintf(j->told.sentence, sizeof j->told.sentence, "%s", sentence);
    for (int r = 0; r < t->size; r++) {
        j->telling[r] = MPI_REQUEST_NULL;
        if (r != t->rank)
            MPI_Isend(&j->told, sizeof j->told, MPI_BYTE, r, FAILURE,
                      MPI_COMM_WORLD, &j->telling[r]);
    }
}

/* After a failure. Rank 0 has printed its sentence; the others wait for the end
 * that it makes of all, and speak up if it does not come. */
static void end_job(tt_ctx *ctx, job *j)
{
    const struct timespec pause = {0, 10000000};
    const double begin = tt_now();
    while (j->told.status && tt_now() - begin < 2
           && first_open(j->telling, j->team.size) < j->team.size)
        nanosleep(&pause, NULL);
    while (j->team.rank > 0 && tt_now() - begin < j->team.patience / 2)
        nanosleep(&pause, NULL);
    if (j->team.rank > 0 && j->words)
        fprintf(j->words, "tether: error: %s\n",
                *j->told.sentence ? j->told.sentence : tt_message(ctx));
    if (j->words) fflush(j->words);
    MPI_Abort(MPI_COMM_WORLD, ctx->status == TT_EINVAL ? 2
                              : ctx->status == TT_EINTR ? 130 : 1);
}

static void close_team(tt_ctx *ctx, tt_team *t)
{
    job *j = (job *)t;
    fflush(stdout);
    if (t->broken || ctx->status) end_job(ctx, j);
    MPI_Finalize();
    free(j->request);
    free(j->peer);
    free(j);
}

/* ---- opening ------------------------------------------------------------- */

/* Was this program started by a launcher of MPI, with others? */
static bool launched(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (getenv(sizes[i])) return atoi(getenv(sizes[i])) > 1;
    return getenv("PMIX_RANK") != NULL;
}

/* Only rank 0 is heard. */
static void be_silent(job *j)
{
    const int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    const int nothing = open("/dev/null", O_WRONLY);
    j->words = copy >= 0 ? fdopen(copy, "w") : NULL;
    fflush(stdout);
    if (nothing < 0) return;
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
}

/* Ranks of one machine share its CPUs. Open MPI binds each to one core where
 * nothing else is said. */
static void share_threads(tt_ctx *ctx, const job *j)
{
    MPI_Comm machine;
    int ranks = 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, j->team.rank,
                        MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_free(&machine);
#ifdef __linux__
    cpu_set_t mine;
    const int all = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const bool known = !sched_getaffinity(0, sizeof mine, &mine);
    const int allowed = known ? CPU_COUNT(&mine) : all;
    if (allowed < all / ranks)
        tt_warn(ctx, "rank %d may use %d of the %d CPUs of its machine, which "
                "has %d ranks; start it with mpirun --bind-to none",
                j->team.rank, allowed, all, ranks);
    if (allowed < all) return;  /* bound: what it may use is its own */
#endif
    if (getenv("OMP_NUM_THREADS")) return;
    ctx->nthreads /= ranks;
    if (ctx->nthreads < 1) ctx->nthreads = 1;
}

tt_status team_open_mpi(tt_ctx *ctx, tt_team **out)
{
    int have, rank, size;
    *out = NULL;
    if (!launched()) return TT_OK;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &have);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    job *j = calloc(1, sizeof *j);
    if (!j || size > TT_TEAM_MAX || have < MPI_THREAD_FUNNELED) {
        fprintf(stderr, "tether: error: rank %d of %d cannot begin: at most %d "
                "ranks, and an MPI that allows threads, are needed\n", rank,
                size, TT_TEAM_MAX);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    team_init(&j->team, rank, size);
    j->team.exchange = exchange;
    j->team.give_up = give_up;
    j->team.close = close_team;
    *out = &j->team;
    if (rank > 0) be_silent(j);
    share_threads(ctx, j);
    return TT_OK;
}
