/* mutants_bad.c: functions of a plug-in that do not come back as they should,
 * for tests only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * TETHER_MISBEHAVES names one. It replaces silu, from its fifth call on, so
 * that some cases are right; some are how it is loaded or closed. */
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fpenv.h"
#include "tests/validate/mutants_state.h"

static const char *way;
static int calls;
static void (*right)(tt_ctx *ctx, const tt_silu_args *a);

/* Needs no ending: a limit of time ends it. */
static void stay(void)
{
    for (;;) sleep(1000);
}

/* The stack ends. */
static int deeper(volatile int depth)
{
    volatile char some[4096];
    some[0] = (char)depth;
    return depth > 0 ? deeper(depth + 1) + some[0] : 0;
}

static void write_far(tt_real *y)
{
    ((volatile char *)y)[400000] = 1;    /* after all canaries */
}

/* As one that sets FTZ at its first call, or in threads of its own. */
static void flush(tt_ctx *ctx)
{
    tt_fpenv_set(tt_fpenv_get() | FLUSH);
    if (!strcmp(way, "flush-back")) return;
#ifdef _OPENMP
#pragma omp parallel num_threads(ctx->nthreads)
#endif
    tt_fpenv_set(tt_fpenv_get() | FLUSH);
    (void)ctx;
}

static void misbehave(tt_ctx *ctx, const tt_silu_args *a)
{
    const tt_fpenv before = tt_fpenv_get();
    if (!strncmp(way, "flush", 5)) flush(ctx);
    if (!strcmp(way, "round-loading")) fesetround(FE_TONEAREST);
    if (!strcmp(way, "deaf")) {          /* and no call is long */
        signal(SIGTERM, SIG_IGN);
        usleep(500000);
    }
    if (calls++ >= 4) {
        if (!strcmp(way, "kill")) raise(SIGKILL);
        if (!strcmp(way, "abort")) abort();
        if (!strcmp(way, "exit")) exit(7);
        if (!strcmp(way, "leave")) _exit(0);
        if (!strcmp(way, "hang")) stay();
        if (!strcmp(way, "deep")) calls += deeper(1);
        if (!strcmp(way, "far")) write_far(a->x);
        if (!strcmp(way, "print")) printf("hello from silu\nagain\n");
        if (!strcmp(way, "fork") && calls == 6 && !fork()) stay();
    }
    right(ctx, a);
    if (!strcmp(way, "flush-back")) tt_fpenv_set(before);
    if (!strcmp(way, "round")) fesetround(FE_UPWARD);
}

/* Its last function; the process of a test that loads it has none of this. */
__attribute__((destructor)) static void end(void)
{
    if (!way) return;
    if (!strcmp(way, "stay-closing")) stay();
    if (!strcmp(way, "closing-flush")) tt_fpenv_set(tt_fpenv_get() | FLUSH);
}

static tt_status round_up(tt_ctx *ctx, const tt_ops *ops)
{
    (void)ops;
    fesetround(FE_UPWARD);
    return ctx->status;
}

void mutant_misbehave(tt_ops *table)
{
    way = getenv("TETHER_MISBEHAVES");
    if (!way || right) return;
    if (!strcmp(way, "load")) raise(SIGKILL);
    if (!strcmp(way, "stay-loading")) stay();
    if (!strcmp(way, "round-loading")) fesetround(FE_UPWARD);
    if (!strncmp(way, "flush-loading", 13)) {
        if (!strcmp(way, "flush-loading-round")) table->open = round_up;
        way = "none";
        tt_fpenv_set(tt_fpenv_get() | FLUSH);
    }
    right = table->silu;
    table->silu = misbehave;
}
