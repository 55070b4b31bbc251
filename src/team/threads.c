/* threads.c: the engine of threads in one process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   everybody lays out the parcels, waits for the others, copies what is
 *         for him, and waits until all have: two meetings per exchange. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "team/engine.h"
#include "core/context.h"

/* Where the threads meet. */
typedef struct hall {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int size, arrived;
    bool here[TT_TEAM_MAX];
    int64_t meeting;                   /* number of the next one              */
    const tt_parcels *out[TT_TEAM_MAX];
    tt_status failed;                  /* TT_OK: no one gave up               */
    char sentence[1024];
} hall;

/* ---- meetings ------------------------------------------------------------ */

static tt_status silent_rank(tt_ctx *ctx, const tt_team *t, const hall *h)
{
    int r = 0;
    while (r < h->size - 1 && h->here[r]) r++;
    return tt_fail(ctx, TT_EIO, "rank %d has been silent for %g s", r,
                   t->patience);
}

/* With the lock held, until everybody is here. */
static tt_status threads_wait_for_all(tt_ctx *ctx, const tt_team *t, hall *h,
                                      bool patient)
{
    const struct timespec end = team_after(t->patience);
    const int64_t meeting = h->meeting;
    int late = 0;
    if (h->failed) return tt_fail(ctx, h->failed, "%s", h->sentence);
    h->here[t->rank] = true;
    if (++h->arrived == h->size) {
        memset(h->here, 0, sizeof h->here);
        h->arrived = 0;
        h->meeting++;
        pthread_cond_broadcast(&h->moved);
    }
    while (h->meeting == meeting && !h->failed && late != ETIMEDOUT)
        late = patient ? pthread_cond_wait(&h->moved, &h->lock)
                       : pthread_cond_timedwait(&h->moved, &h->lock, &end);
    if (h->meeting != meeting) return TT_OK;
    h->arrived--;                      /* without us no one meets             */
    return h->failed ? tt_fail(ctx, h->failed, "%s", h->sentence)
                     : silent_rank(ctx, t, h);
}

static tt_status meet(tt_ctx *ctx, tt_team *t, bool patient)
{
    hall *h = t->impl;
    pthread_mutex_lock(&h->lock);
    threads_wait_for_all(ctx, t, h, patient);
    if (ctx->status && h->failed) t->broken = true;
    pthread_mutex_unlock(&h->lock);
    return ctx->status;
}

static tt_status threads_exchange(tt_ctx *ctx, tt_team *t,
                                  const tt_parcels *out, const tt_parcels *in,
                                  bool patient)
{
    hall *h = t->impl;
    h->out[t->rank] = out;
    TT_TRY(meet(ctx, t, patient));
    for (int r = 0; r < t->size; r++) {
        const tt_parcels *from = h->out[r];
        TT_ASSERT(from->n[t->rank] == in->n[r]);
        if (in->n[r])
            memcpy(in->data + in->at[r], from->data + from->at[t->rank],
                   (size_t)in->n[r]);
    }
    return meet(ctx, t, patient);
}

static void threads_give_up(tt_team *t, tt_status status, const char *sentence)
{
    hall *h = t->impl;
    pthread_mutex_lock(&h->lock);
    if (!h->failed) {
        h->failed = status;
        snprintf(h->sentence, sizeof h->sentence, "%s", sentence);
    }
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

/* ---- ranks --------------------------------------------------------------- */

typedef struct rank {
    tt_ctx ctx;
    tt_team team;
    tt_rank_fn fn;
    void *user;
    pthread_t thread;
} rank;

static void no_close(tt_ctx *ctx, tt_team *t)
{
    (void)ctx;
    (void)t;
}

static void begin_rank(rank *r, const tt_ctx *from, hall *h, int i)
{
    r->ctx = *from;
    r->ctx.scratch = (tt_arena){0};
    r->ctx.team = &r->team;
    r->ctx.nthreads = from->nthreads / h->size;
    if (r->ctx.nthreads < 1) r->ctx.nthreads = 1;
    team_init(&r->team, i, h->size);
    r->team.impl = h;
    r->team.exchange = threads_exchange;
    r->team.give_up = threads_give_up;
    r->team.close = no_close;
    if (i == 0) return;
    r->ctx.warn = tt_ignore_warning;
    r->ctx.tap = NULL;
    r->ctx.inject = NULL;
}

static void *run_rank(void *arg)
{
    rank *r = arg;
    r->fn(r->user, &r->ctx);
    tt_team_close(&r->ctx);
    return NULL;
}

/* What failed first is what all the others say; who failed says it without his
 * name. */
static tt_status end_rank(tt_ctx *ctx, rank *r, const hall *h)
{
    tt_arena_free(&r->ctx.scratch);
    if (!r->ctx.status) return ctx->status;
    return tt_fail(ctx, r->ctx.status, "%s", h->failed ? h->sentence
                                                       : r->ctx.message);
}

tt_status tt_team_threads(tt_ctx *ctx, int size, tt_rank_fn fn, void *user)
{
    if (ctx->status) return ctx->status;
    if (size < 1 || size > TT_TEAM_MAX)
        return tt_fail(ctx, TT_EINVAL, "a team of %d threads: expected 1..%d",
                       size, TT_TEAM_MAX);
    hall h = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .moved = PTHREAD_COND_INITIALIZER, .size = size};
    rank *r = calloc((size_t)size, sizeof *r);
    int n = 0;
    if (!r) return tt_fail(ctx, TT_ENOMEM, "out of memory for %d ranks", size);
    for (; n < size && !ctx->status; n++) {
        begin_rank(&r[n], ctx, &h, n);
        r[n].fn = fn;
        r[n].user = user;
        if (pthread_create(&r[n].thread, NULL, run_rank, &r[n])) {
            tt_fail(ctx, TT_ENOMEM, "no thread for rank %d of %d", n, size);
            threads_give_up(&r[n].team, TT_ENOMEM, tt_message(ctx));
            break;
        }
    }
    for (int i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
        end_rank(ctx, &r[i], &h);
    }
    pthread_cond_destroy(&h.moved);
    pthread_mutex_destroy(&h.lock);
    free(r);
    return ctx->status;
}
