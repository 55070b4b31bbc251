/* mpi.c: the engine of MPI, for make MPI=1.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a message to and from every rank, and a look at them again and again
 *         with short sleeps in between: a rank that waits leaves its cores to
 *         others and hears of failures. Next to these parcels there are words.
 *         Who waits for seconds asks all others whether they are there, and
 *         everybody answers: in an exchange the main thread does, at other
 *         times a second one. So a rank that takes long is known from one that
 *         hangs, and from one that waits as we do.
 * Holds   one thread at a time calls MPI, the one that holds `call`. Ranks
 *         other than 0 print nothing. Who fails tells all; rank 0 says why and
 *         ends the job. MPI_Abort is the end after every failure, because a
 *         message that no one waits for may be on its way. */
#include <mpi.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/threads.h"
#include "team/engine.h"

enum { PARCEL = 1, WORD = 2 };
enum { MESSAGE = 1 << 30 };      /* bytes; MPI counts in int                  */
enum { ROUND = 4 };              /* seconds between questions                 */
enum { LONG = 4 };               /* times our patience, when all wait         */
enum { ABORT = 9 };              /* seconds until ranks other than 0 end all  */
enum { LAST = 4 };               /* until MPI must have ended a job           */

typedef enum kind {
    QUESTION, WAITS, COMPUTES, FAREWELL, SPOKEN, FAILURE
} kind;

typedef struct word {
    int kind;
    int status;                  /* of a failure, and what it was             */
    int lost;                    /* the rank that is silent, -1: none         */
    char sentence[1024];
} word;

/* What another rank has said. */
typedef struct peer {
    double heard;                /* when it answered last                     */
    double computed;             /* and that it was in no exchange            */
} peer;

typedef struct job {
    tt_team team;                /* first: a team is its job                  */
    FILE *words;                 /* what stderr was                           */
    MPI_Request *request;        /* receives, then sends                      */
    int *of;                     /* the rank of every request                 */
    int requests, receives, capacity;
    peer peer[TT_TEAM_MAX];
    double asked;                /* when we asked last                        */
    word learned;                /* FAILURE: from another                     */
    int teacher;                 /* the rank it came from                     */
    word reported;               /* FAILURE: on its way to all            */
    MPI_Request telling[TT_TEAM_MAX];
    int lost;                    /* the rank that we found silent, -1: none   */
    int left;                    /* ranks that said farewell                  */
    bool spoken;                 /* another has printed the sentence of all   */
    pthread_mutex_t call;
    pthread_t answering;
    bool leaving;                /* that thread is to end                     */
} job;

/* ---- words --------------------------------------------------------------- */

/* No one waits until it has gone. */
static void mpi_say(int r, kind what)
{
    static const word words[] = {{.kind = QUESTION}, {.kind = WAITS},
                                 {.kind = COMPUTES}, {.kind = FAREWELL},
                                 {.kind = SPOKEN}};
    MPI_Request q;
    MPI_Isend(&words[what], offsetof(word, sentence), MPI_BYTE, r, WORD,
              MPI_COMM_WORLD, &q);
    MPI_Request_free(&q);
}

static void say_to_all(const job *j, kind what)
{
    for (int r = 0; r < j->team.size; r++)
        if (r != j->team.rank) mpi_say(r, what);
}

/* Rank 0 has a sentence, and prints it. */
static bool has_said(const job *j)
{
    return j->learned.kind == FAILURE && j->teacher == 0;
}

static void mpi_take_word(job *j, int r, const word *w, kind answer)
{
    peer *p = &j->peer[r];
    p->heard = tt_now();
    if (w->kind == QUESTION) mpi_say(r, answer);
    if (w->kind == COMPUTES) p->computed = p->heard;
    if (w->kind == FAREWELL) j->left++;
    if (w->kind == SPOKEN) j->spoken = true;
    if (w->kind != FAILURE || has_said(j)) return;
    j->learned = *w;
    j->teacher = r;
}

/* All that have come; questions are answered. */
static void read_words(job *j, kind answer)
{
    for (;;) {
        int there = 0;
        MPI_Status from;
        word w;
        MPI_Iprobe(MPI_ANY_SOURCE, WORD, MPI_COMM_WORLD, &there, &from);
        if (!there) return;
        MPI_Recv(&w, sizeof w, MPI_BYTE, from.MPI_SOURCE, WORD, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        mpi_take_word(j, from.MPI_SOURCE, &w, answer);
    }
}

/* While the main thread is elsewhere. Its pauses do not grow when someone sets
 * the time of day back. */
static void *answer_questions(void *of)
{
    const struct timespec pause = {0, 100000000};
    job *j = of;
    pthread_mutex_lock(&j->call);
    while (!j->leaving) {
        read_words(j, COMPUTES);
        pthread_mutex_unlock(&j->call);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&j->call);
    }
    pthread_mutex_unlock(&j->call);
    return NULL;
}

/* The second thread; signals are the main one's. */
static bool begin_answers(job *j)
{
    sigset_t all, before;
    pthread_mutex_init(&j->call, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&j->answering, NULL, answer_questions, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

static void end_answers(job *j)
{
    pthread_mutex_lock(&j->call);
    j->leaving = true;
    pthread_mutex_unlock(&j->call);
    pthread_join(j->answering, NULL);
}

/* ---- who is missing ------------------------------------------------------ */

/* Seconds without a word of rank r, counted from `begin` at the earliest. */
static double silence(const job *j, int r, double begin)
{
    const double heard = j->peer[r].heard;
    return tt_now() - (heard > begin ? heard : begin);
}

/* The first rank that was silent for so long; TT_TEAM_MAX: all others were,
 * and are several; -1: no one. */
static int find_silent(const job *j, double begin, double seconds)
{
    int first = -1, n = 0;
    for (int r = 0; r < j->team.size; r++) {
        if (r == j->team.rank || silence(j, r, begin) <= seconds) continue;
        if (n++ == 0) first = r;
    }
    return n > 1 && n == j->team.size - 1 ? TT_TEAM_MAX : first;
}

static tt_status name_silent(tt_ctx *ctx, const job *j, int r, double begin)
{
    if (r < TT_TEAM_MAX)
        return tt_fail(ctx, TT_EIO, "rank %d has been silent for %.0f s", r,
                       silence(j, r, begin));
    for (r = 0; r == j->team.rank; r++) continue;
    return tt_fail(ctx, TT_EIO, "rank %d has heard no other rank for %.0f s",
                   j->team.rank, silence(j, r, begin));
}

/* Seconds in which all that are there have waited, and no one computed. A rank
 * that does is waited for, however slow its machine is. */
static double standstill(const job *j, double begin)
{
    for (int r = 0; r < j->team.size; r++)
        if (j->peer[r].computed > begin) begin = j->peer[r].computed;
    return tt_now() - begin;
}

/* Waiting since `begin` for a parcel of, or to, rank `open`. A launcher that
 * lost a machine interrupts us ten seconds later at the earliest, and kills us
 * after five more: until then we can say who is missing, in a chunk that must
 * be finished too. So ranks then have half a round to answer, not all our
 * patience, and `begin` may lie seconds after the loss. */
static tt_status look_around(tt_ctx *ctx, job *j, double begin, int open,
                             bool patient)
{
    const double now = tt_now(), patience = j->team.patience;
    const bool stopped = ctx->interrupt && *ctx->interrupt;
    if (now - begin > ROUND && now - j->asked > ROUND) {
        j->asked = now;
        say_to_all(j, QUESTION);
    }
    const int r = find_silent(j, begin, stopped ? 1.5 * ROUND : patience);
    if (r >= 0) {
        j->lost = r;
        return name_silent(ctx, j, r, begin);
    }
    if (patient || standstill(j, begin) <= LONG * patience) return TT_OK;
    return tt_fail(ctx, TT_EIO, "rank %d is there, but the others have waited "
                   "%.0f s for it", open, now - begin);
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

/* ---- one exchange -------------------------------------------------------- */

static MPI_Request *next_request(tt_ctx *ctx, job *j, int rank)
{
    if (j->requests == j->capacity) {
        const size_t capacity = 2 * (size_t)j->capacity + 64;
        MPI_Request *r = realloc(j->request, capacity * sizeof *r);
        if (r) j->request = r;
        int *p = realloc(j->of, capacity * sizeof *p);
        if (p) j->of = p;
        if (!r || !p) {
            tt_fail(ctx, TT_ENOMEM, "out of memory for messages");
            return NULL;
        }
        j->capacity = (int)capacity;
    }
    j->of[j->requests] = rank;
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

/* Has anyone given up? Rank 0 that hung, and wakes when all are ended, leaves
 * it to those who missed it to say so. */
static tt_status mpi_listen(tt_ctx *ctx, job *j)
{
    read_words(j, WAITS);
    if (j->learned.kind != FAILURE) return TT_OK;
    if (j->team.rank == 0 && j->learned.lost == 0) be_silent(j);
    j->team.broken = true;
    return tt_fail(ctx, (tt_status)j->learned.status, "%s",
                   j->learned.sentence);
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
        if (looks % 16 == 15 && !mpi_listen(ctx, j))
            look_around(ctx, j, begin, j->of[i], patient);
        rest(looks);
    }
    return ctx->status;
}

/* After a failure the memory of the receives may soon be something else's. One
 * that is under way cannot be cancelled; no one waits for it. */
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
    pthread_mutex_lock(&j->call);
    start_all(ctx, j, out, in);
    if (!ctx->status && in->n[t->rank])
        memcpy(in->data + in->at[t->rank], out->data + out->at[t->rank],
               (size_t)in->n[t->rank]);
    wait_for_all(ctx, j, patient);
    if (ctx->status) cancel_receives(j);
    pthread_mutex_unlock(&j->call);
    return ctx->status;
}

/* ---- failures ------------------------------------------------------------ */

static void mpi_give_up(tt_team *t, tt_status status, const char *sentence)
{
    job *j = (job *)t;
    j->reported = (word){.kind = FAILURE, .status = status, .lost = j->lost};
    snprintf(j->reported.sentence, sizeof j->reported.sentence, "%s", sentence);
    pthread_mutex_lock(&j->call);
    for (int r = 0; r < t->size; r++) {
        j->telling[r] = MPI_REQUEST_NULL;
        if (r != t->rank)
            MPI_Isend(&j->reported, sizeof j->reported, MPI_BYTE, r, WORD,
                      MPI_COMM_WORLD, &j->telling[r]);
    }
    pthread_mutex_unlock(&j->call);
}

/* Of a launcher that is cut off neither end of MPI comes back. */
static void end_at_last(double seconds)
{
    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)seconds);
}

/* A rank other than 0 prints why all end, and tells the others that it does. */
static void speak_up(const tt_ctx *ctx, const job *j)
{
    say_to_all(j, SPOKEN);
    fprintf(j->words, "tether: error: %s\n",
            *j->reported.sentence ? j->reported.sentence : tt_message(ctx));
    fflush(j->words);
}

/* After a failure. Rank 0 has printed its sentence; the others wait a little
 * for the end that it makes of all, but not for a rank 0 that is silent. If it
 * does not come one of them speaks up, the first that is left, unless it knows
 * from rank 0 what happened. */
static void end_job(tt_ctx *ctx, job *j)
{
    const struct timespec pause = {0, 10000000};
    const double begin = tt_now();
    if (j->team.rank == 0 && j->reported.kind != FAILURE)
        mpi_give_up(&j->team, ctx->status, tt_message(ctx));
    while (j->reported.kind == FAILURE && tt_now() - begin < 2
           && first_open(j->telling, j->team.size) < j->team.size)
        nanosleep(&pause, NULL);
    const double wait = j->team.rank + (j->lost == 0 ? 0 : ABORT);
    while (j->team.rank > 0 && tt_now() - begin < wait) {
        read_words(j, WAITS);
        nanosleep(&pause, NULL);
    }
    if (j->team.rank > 0 && j->words && !has_said(j) && !j->spoken)
        speak_up(ctx, j);
    end_at_last(LAST);
    MPI_Abort(MPI_COMM_WORLD, ctx->status == TT_EINVAL ? 2
                              : ctx->status == TT_EINTR ? 130 : 1);
}

/* All words have come when all have said farewell. */
static void mpi_part(tt_ctx *ctx, job *j)
{
    const double begin = tt_now();
    say_to_all(j, FAREWELL);
    for (long looks = 0; j->left < j->team.size - 1; looks++) {
        if (mpi_listen(ctx, j)) return;
        if (tt_now() - begin > j->team.patience) {
            tt_fail(ctx, TT_EIO, "a rank does not end");
            return;
        }
        rest(looks);
    }
}

static void close_team(tt_ctx *ctx, tt_team *t)
{
    job *j = (job *)t;
    fflush(stdout);
    end_answers(j);
    if (!t->broken && !ctx->status) mpi_part(ctx, j);
    if (t->broken || ctx->status) end_job(ctx, j);
    end_at_last(t->patience);
    MPI_Finalize();
    alarm(0);
    pthread_mutex_destroy(&j->call);
    free(j->request);
    free(j->of);
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

/* Open MPI 4 needs minutes to see that a machine has gone. Later ones take its
 * options apart before a rank sees them. */
static void ask_for_keepalive(tt_ctx *ctx, const job *j, int ranks)
{
#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
    if (j->team.rank == 0 && ranks < j->team.size
        && !getenv("OMPI_MCA_oob_tcp_keepalive_time"))
        tt_warn(ctx, "mpirun would wait minutes for a machine that has gone; "
                "start it with --mca oob_tcp_keepalive_time 5 --mca "
                "oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 2");
#endif
    (void)ctx, (void)j, (void)ranks;
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
    ask_for_keepalive(ctx, j, ranks);
#ifdef _OPENMP
    const int all = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int allowed = tt_cores_find("").allowed;
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

static bool begin_team(job *j, int rank, int size)
{
    team_init(&j->team, rank, size);
    j->team.exchange = exchange;
    j->team.give_up = mpi_give_up;
    j->team.close = close_team;
    j->lost = -1;
    return begin_answers(j);
}

tt_status team_open_mpi(tt_ctx *ctx, tt_team **out)
{
    int have, rank, size;
    *out = NULL;
    if (!launched()) return TT_OK;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &have);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    job *j = calloc(1, sizeof *j);
    if (!j || size > TT_TEAM_MAX || have < MPI_THREAD_SERIALIZED
        || !begin_team(j, rank, size)) {
        fprintf(stderr, "tether: error: rank %d of %d cannot begin: at most %d "
                "ranks, an MPI that allows threads, and room for one are "
                "needed\n", rank, size, TT_TEAM_MAX);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    *out = &j->team;
    if (rank > 0) be_silent(j);
    pthread_mutex_lock(&j->call);
    share_threads(ctx, j);
    pthread_mutex_unlock(&j->call);
    return TT_OK;
}
