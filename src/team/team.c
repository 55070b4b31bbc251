/* team.c: teams begin, fail and end.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    cuts.c */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "team/engine.h"
#include "tether/version.h"

enum { PATIENCE = 35 };          /* all have ended after a minute             */

void team_init(tt_team *t, int rank, int size)
{
    *t = (tt_team){.rank = rank, .size = size, .patience = PATIENCE};
    for (int r = 0; r < size; r++) t->share[r + 1] = r + 1;
}

struct timespec team_after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const double end = (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec += (time_t)end;
    t.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    return t;
}

/* CPU seconds of the process. */
static double cpu_now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- failures ------------------------------------------------------------ */

/* Tell the others that we failed, once. */
static void team_give_up(tt_ctx *ctx)
{
    tt_team *t = ctx->team;
    char sentence[sizeof ctx->message];
    if (!t || t->broken) return;
    t->broken = true;
    snprintf(sentence, sizeof sentence, "rank %d: %.960s", t->rank,
             tt_message(ctx));
    t->give_up(t, ctx->status, sentence);
}

team_load team_load_of(const tt_team *t, const tt_parcels *out,
                       const tt_parcels *in)
{
    team_load x = {0, 0, 0};
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank) continue;
        x.sent += out->n[r];
        x.received += in->n[r];
        x.messages += out->n[r] > 0;
    }
    return x;
}

tt_status team_exchange(tt_ctx *ctx, const tt_parcels *out,
                        const tt_parcels *in, bool patient)
{
    tt_team *t = ctx->team;
    const double begin = tt_now(), cpu = cpu_now();
    const team_load load = team_load_of(t, out, in);
    if (!ctx->status) t->exchange(ctx, t, out, in, patient);
    if (ctx->status) team_give_up(ctx);
    const double took = tt_now() - begin;
    t->sent += load.sent;
    t->messages += load.messages;
    t->moving += cpu_now() - cpu;
    t->took[t->timed] += (float)took;
    if (t->timed < TEAM_TIMED - 1) t->timed++;
    if (ctx->profiling) tt_profile_add(ctx, "between ranks", took, 0);
    return ctx->status;
}

tt_status tt_team_follow(tt_ctx *ctx, const tt_ctx *tried)
{
    struct { tt_status status; char sentence[sizeof ctx->message]; } first;
    memset(&first, 0, sizeof first);
    if (ctx->status) return team_meet(ctx, true);
    if (tt_team_rank(ctx) == 0) {
        first.status = tried->status;
        snprintf(first.sentence, sizeof first.sentence, "%s", tried->message);
    }
    TT_TRY(tt_team_broadcast(ctx, &first, sizeof first));
    if (!first.status) return TT_OK;
    return tt_fail(ctx, first.status, "%s", first.sentence);
}

bool tt_team_stands(const tt_ctx *ctx)
{
    return !ctx->team || !ctx->team->broken;
}

/* ---- time ---------------------------------------------------------------- */

/* What ranks tell each other. */
typedef struct clock_words {
    double all;                  /* seconds since the last time               */
    float took[TEAM_TIMED];      /* of them those of every exchange           */
    double cpu, moving;
    int64_t sent, messages;
} clock_words;

static void begin_time(tt_team *t, double at)
{
    t->since = at;
    t->timed = 0;
    t->cpu = cpu_now();
    t->moving = 0;
    t->sent = t->messages = 0;
    memset(t->took, 0, sizeof t->took);
}

static tt_status gather_clocks(tt_ctx *ctx, clock_words *of)
{
    tt_team *t = ctx->team;
    const double here = tt_now();
    clock_words mine = {.all = here - t->since, .cpu = cpu_now() - t->cpu,
                        .moving = t->moving, .sent = t->sent,
                        .messages = t->messages};
    tt_parcels out = {.data = (char *)&mine}, in = {.data = (char *)of};
    memcpy(mine.took, t->took, sizeof mine.took);
    for (int r = 0; r < t->size; r++) {
        out.n[r] = in.n[r] = sizeof mine;
        in.at[r] = r * (int64_t)sizeof mine;
    }
    begin_time(t, here);
    team_exchange(ctx, &out, &in, false);
    t->sent = t->messages = 0;   /* these words are no part of the work */
    t->moving = 0;
    return ctx->status;
}

/* Every exchange takes the least of what ranks spent in it. */
static void split_time(tt_team_time *of, const clock_words *all, int size)
{
    for (int r = 0; r < size; r++) of[r] = (tt_team_time){0};
    for (int i = 0; i < TEAM_TIMED; i++) {
        double least = all[0].took[i];
        for (int r = 1; r < size; r++)
            if (all[r].took[i] < least) least = all[r].took[i];
        for (int r = 0; r < size; r++) {
            of[r].exchange += least;
            of[r].waiting += all[r].took[i] - least;
        }
    }
    for (int r = 0; r < size; r++) {
        of[r].compute = all[r].all - of[r].exchange - of[r].waiting;
        of[r].cpu = all[r].cpu;
        of[r].moving = all[r].moving;
        of[r].sent = all[r].sent;
        of[r].messages = all[r].messages;
    }
}

static void add_time(tt_team_time *sum, const tt_team_time *t)
{
    sum->compute += t->compute;
    sum->exchange += t->exchange;
    sum->waiting += t->waiting;
    sum->cpu += t->cpu;
    sum->moving += t->moving;
    sum->sent += t->sent;
    sum->messages += t->messages;
}

tt_status tt_team_measure(tt_ctx *ctx, tt_team_time *of)
{
    tt_team *t = ctx->team;
    if (t && !of) begin_time(t, tt_now());
    if (tt_team_size(ctx) == 1 && of) of[0] = (tt_team_time){0};
    if (tt_team_size(ctx) == 1 || !of) return ctx->status;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    clock_words *all = tt_alloc0(ctx, &ctx->scratch, t->size, sizeof *all,
                                 "times of ranks");
    if (!gather_clocks(ctx, all)) {
        split_time(of, all, t->size);
        for (int r = 0; r < t->size; r++) add_time(&t->spent[r], &of[r]);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_team_time tt_team_spent(const tt_ctx *ctx, int rank)
{
    const bool there = ctx->team && rank >= 0 && rank < ctx->team->size;
    return there ? ctx->team->spent[rank] : (tt_team_time){0};
}

/* ---- failures ------------------------------------------------------------ */

/* The word at `text` into buf, which is cut. */
static const char *word_at(char *buf, size_t n, const char *text)
{
    size_t k = strcspn(text, " ");
    snprintf(buf, n, "%.*s", (int)(k < n ? k : n - 1), text);
    return k ? buf : "nothing";
}

/* Both move on to the first word that differs; name is the word before it. */
static void difference(const char **a, const char **b, char *name, size_t n)
{
    const char *before = *a;
    for (;;) {
        const size_t k = strcspn(*a, " ");
        if (!k || k != strcspn(*b, " ") || memcmp(*a, *b, k)) break;
        before = *a;
        *a += k + ((*a)[k] == ' ');
        *b += k + ((*b)[k] == ' ');
    }
    word_at(name, n, before);
}

tt_status tt_team_compare(tt_ctx *ctx, const char *what, const char *text)
{
    char name[64], mine[80], first[80];
    if (tt_team_size(ctx) == 1) return ctx->status;
    if (!text) text = "";
    int64_t n = (int64_t)strlen(text);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_team_broadcast(ctx, &n, sizeof n);
    char *theirs = tt_alloc0(ctx, &ctx->scratch, n + 1, 1, "words of rank 0");
    if (theirs && ctx->team->rank == 0) memcpy(theirs, text, (size_t)n);
    tt_team_broadcast(ctx, theirs, n);
    if (!ctx->status && strcmp(theirs, text)) {
        const char *there = theirs, *here = text;
        difference(&there, &here, name, sizeof name);
        tt_fail(ctx, TT_EINVAL, "%s differs from that of rank 0: %s is %s "
                "here and %s there; all ranks need the same program, options "
                "and files", what, name, word_at(mine, sizeof mine, here),
                word_at(first, sizeof first, there));
    }
    tt_arena_reset(&ctx->scratch, m);
    return team_meet(ctx, true);
}

/* ---- opening and closing ------------------------------------------------- */

#ifndef TT_MPI
/* Processes that mpirun started, as Open MPI and MPICH tell them; 1: none. */
static int started(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *size = getenv(names[i]);
        if (size && atoi(size) > 1) return atoi(size);
    }
    return 1;
}

/* One of them is enough to say why, and mpirun ends the others when the first
 * one ends. */
static void leave_it_to_the_first(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const struct timespec second = {1, 0};
    if (!rank) rank = getenv("PMI_RANK");
    if (!rank || atoi(rank) == 0) return;
    nanosleep(&second, NULL);
    if (!freopen("/dev/null", "w", stderr)) fclose(stderr);
}

static tt_status team_open_mpi(tt_ctx *ctx, tt_team **out)
{
    *out = NULL;
    if (started() == 1) return TT_OK;
    leave_it_to_the_first();
    return tt_fail(ctx, TT_EINVAL, "mpirun started %d programs, but this build "
                   "has no MPI, and all of them would write the same files; "
                   "build it with make MPI=1, or start it without mpirun",
                   started());
}
#endif

tt_status tt_team_open(tt_ctx *ctx)
{
    char build[256];
    if (ctx->status) return ctx->status;
    TT_TRY(team_open_mpi(ctx, &ctx->team));
    snprintf(build, sizeof build, "version %s revision %s type %s bytes %s",
             tt_version(), tt_git_revision(), tt_real_name(),
             tt_host_little_endian() ? "little-endian" : "big-endian");
    return tt_team_compare(ctx, "the program", build);
}

void tt_team_close(tt_ctx *ctx)
{
    tt_team *t = ctx->team;
    if (!t) return;
    team_meet(ctx, true);    /* rank 0 may still decode */
    ctx->team = NULL;
    t->close(ctx, t);
}
