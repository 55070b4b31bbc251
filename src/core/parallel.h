/* parallel.h: the one way operators use threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     TT_PARALLEL_FOR(ctx)
 *     for (int64_t i = 0; i < n; i++) ...
 *
 * The loop runs over independent outputs; a sum is never split between
 * threads, so their number cannot change a bit. Without OpenMP the pragma
 * vanishes and the same loop runs alone.
 *
 * Threads sleep while they wait (core/threads.h). Waking one takes some
 * microseconds when its core is awake, and up to 50 when it is not: a loop
 * must be worth a multiple of that. */
#ifndef TT_CORE_PARALLEL_H
#define TT_CORE_PARALLEL_H

#include "core/context.h"

/* About a tenth of a millisecond on one core. */
#define TT_SMALL_WORK 131072

/* Do several threads share a loop that is worth so much? */
static inline bool tt_shares(const tt_ctx *ctx, int64_t work)
{
    return ctx->nthreads > 1 && work > TT_SMALL_WORK;
}

/* OpenMP's threads are not in a process that was forked from one that has used
 * them: whoever calls for them there waits for ever. It works alone. */
extern bool tt_forked;      /* threads.c */
void threads_watch_forks(void); /* from here on it is known */
static inline int tt_threads_now(const tt_ctx *ctx)
{
    return tt_forked ? 1 : ctx->nthreads;
}

#ifdef _OPENMP
#include <omp.h>
#define TT_PRAGMA(x) _Pragma(#x)
/* Iterations that may be done side by side, whatever the compiler thinks. */
#define TT_SIMD TT_PRAGMA(omp simd)
#define TT_PARALLEL_FOR(ctx)                                                   \
    TT_PRAGMA(omp parallel for schedule(static)                                \
                  num_threads(tt_threads_now(ctx)))
/* The same, but alone when waking the other threads would cost more than the
 * work: `work` counts elements (or multiply-adds / 32). */
#define TT_PARALLEL_FOR_WORK(ctx, work)                                        \
    TT_PRAGMA(omp parallel for schedule(static)                                \
                  num_threads(tt_threads_now(ctx)) if((work) > TT_SMALL_WORK))
/* Iterations of unequal or large cost, handed out one by one. */
#define TT_PARALLEL_FOR_DYNAMIC(ctx, work)                                     \
    TT_PRAGMA(omp parallel for schedule(dynamic, 1)                            \
                  num_threads(tt_threads_now(ctx)) if((work) > TT_SMALL_WORK))
/* Several loops that need no order among them, in one go:
 *     TT_PARALLEL_WORK(ctx, work)
 *     {
 *         TT_SHARED
 *         for ...
 *         TT_SHARED
 *         for ...
 *     }
 * A thread that finds no iteration of a loop takes some of the next one. */
#define TT_PARALLEL_WORK(ctx, work)                                            \
    TT_PRAGMA(omp parallel num_threads(tt_threads_now(ctx))                    \
                  if((work) > TT_SMALL_WORK))
#define TT_SHARED TT_PRAGMA(omp for schedule(dynamic, 1) nowait)
static inline int tt_thread_id(void)
{
    return omp_get_thread_num();
}
#else
/* so that a context which is only asked for its threads counts as used */
#define TT_SIMD
#define TT_PARALLEL_FOR(ctx) if ((void)(ctx), 1)
#define TT_PARALLEL_FOR_WORK(ctx, work) if ((void)(ctx), (void)(work), 1)
#define TT_PARALLEL_FOR_DYNAMIC(ctx, work) if ((void)(ctx), (void)(work), 1)
#define TT_PARALLEL_WORK(ctx, work) if ((void)(ctx), (void)(work), 1)
#define TT_SHARED
static inline int tt_thread_id(void)
{
    return 0;
}
#endif

#endif
