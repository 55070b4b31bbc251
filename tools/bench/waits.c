/* waits.c: how long threads wait for each other at the ends of loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded (tools/bench_waits.sh) it stands before GNU's OpenMP: of every
 * parallel region it notes when each thread is done, and writes to $WAITS, for
 * each of them, its address, calls, wall seconds and the seconds that the other
 * threads waited for the last one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 1024, REGIONS = 1024 };

typedef struct call {
    void (*body)(void *);
    void *data;
    double end[THREADS];
    int threads;
} call;

typedef struct region {
    uintptr_t at;
    long calls;
    double wall, waited;
} region;

static region regions[REGIONS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void timed(void *user)
{
    call *c = user;
    const int i = omp_get_thread_num();
    if (i == 0) c->threads = omp_get_num_threads();
    c->body(c->data);
    if (i < THREADS) c->end[i] = now();
}

static void note(const call *c, double wall)
{
    const uintptr_t at = (uintptr_t)c->body;
    const int n = c->threads < THREADS ? c->threads : THREADS;
    double last = 0;
    int r = 0;
    while (r < REGIONS - 1 && regions[r].at && regions[r].at != at) r++;
    for (int i = 0; i < n; i++)
        if (c->end[i] > last) last = c->end[i];
    regions[r].at = at;
    regions[r].calls++;
    regions[r].wall += wall;
    for (int i = 0; i < n; i++) regions[r].waited += last - c->end[i];
}

typedef void parallel(void (*body)(void *), void *data, unsigned threads,
                      unsigned flags);

/* The program calls it from one thread at a time. */
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags)
{
    static parallel *real;
    static call c;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "GOMP_parallel");
    c.body = body;
    c.data = data;
    const double begin = now();
    real(timed, &c, threads, flags);
    note(&c, now() - begin);
}

static int first(struct dl_phdr_info *program, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = program->dlpi_addr;
    return 1;
}

__attribute__((destructor)) static void give(void)
{
    const char *path = getenv("WAITS");
    FILE *f = path && regions[0].at ? fopen(path, "w") : NULL;
    uintptr_t base = 0;
    if (!f) return;
    dl_iterate_phdr(first, &base);
    for (int r = 0; r < REGIONS && regions[r].at; r++)
        fprintf(f, "%016lx %ld %.6f %.6f\n",
                (unsigned long)(regions[r].at - base), regions[r].calls,
                regions[r].wall, regions[r].waited);
    fclose(f);
}
