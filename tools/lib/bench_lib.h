/* bench_lib.h: what the comparison programs share: options, rounds, medians.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two sides take turns inside one run, so that a machine that is slow for a
 * while is slow for both; a figure is the median of its rounds. */
#ifndef TOOLS_BENCH_LIB_H
#define TOOLS_BENCH_LIB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/threads.h"
#include "ops/machine.h"
#include "core/mathfn.h"
#include "core/context.h"
#include "dit/dit.h"
#include "io/io.h"
#include "rollout/rollout.h"
#include "vae/vae.h"
#include "text/text.h"
#include "tether/version.h"

#define ROUNDS_MAX 31

typedef struct times {
    double t[ROUNDS_MAX];
    int n;
} times;

static inline void times_add(times *b, double seconds)
{
    if (b->n < ROUNDS_MAX) b->t[b->n++] = seconds;
}

static inline int times_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double times_median(const times *b)
{
    times s = *b;
    if (s.n == 0) return 0;
    qsort(s.t, (size_t)s.n, sizeof s.t[0], times_order);
    return s.n % 2 ? s.t[s.n / 2] : 0.5 * (s.t[s.n / 2 - 1] + s.t[s.n / 2]);
}

/* (slowest - fastest) / median */
static inline double times_spread(const times *b)
{
    double low = b->t[0], high = b->t[0];
    for (int i = 1; i < b->n; i++) {
        low = b->t[i] < low ? b->t[i] : low;
        high = b->t[i] > high ? b->t[i] : high;
    }
    return b->n ? (high - low) / times_median(b) : 0;
}

/* -t N, --rounds N, --json FILE, --quick, --cpu; without -t: 1 thread and all.
 * --cpu counts CPU seconds: with one thread they mean something on a machine
 * that is busy with other work as well. */
typedef struct bench_args {
    int threads[2], nthreads, rounds;
    bool quick, cpu;
    FILE *json;
} bench_args;

/* False: print how it is used. */
static inline bool bench_parse(bench_args *b, int all, int argc, char **argv)
{
    *b = (bench_args){.threads = {1, all}, .nthreads = all > 1 ? 2 : 1,
                      .rounds = 5};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--quick")) {
            b->quick = true;
            continue;
        }
        if (!strcmp(argv[i], "--cpu")) {
            b->cpu = true;
            continue;
        }
        if (!strcmp(argv[i], "-t")) {
            b->threads[0] = atoi(value);
            b->nthreads = 1;
        } else if (!strcmp(argv[i], "--rounds")) {
            b->rounds = atoi(value);
        } else if (!strcmp(argv[i], "--json")) {
            b->json = fopen(value, "w");
            if (!b->json) return false;
        } else {
            return false;
        }
        i++;
    }
    return b->threads[0] >= 1 && b->rounds >= 1 && b->rounds <= ROUNDS_MAX;
}

static inline double bench_now(const bench_args *b)
{
    struct timespec t;
    if (!b->cpu || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return tt_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Values in [-1, 1), the same every time. */
static inline void bench_values(float *x, int64_t n, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 1;
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)((double)(int32_t)s * 0x1p-31);
    }
}

/* The largest of some measurements: a peak is a limit, not a typical value. */
static inline double bench_fma_peak(tt_ctx *ctx, const bench_args *b)
{
    double best = 0;
    for (int r = 0; r < 10; r++) {
        double start = bench_now(b), flops = tt_machine_fma(ctx, 20000000);
        double rate = flops / (bench_now(b) - start);
        best = rate > best ? rate : best;
    }
    return best;
}

#endif
