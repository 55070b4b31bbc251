/* mutants_bad.c: functions of a plug-in that do not come back as they should,
 * for tests only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * TETHER_MISBEHAVES names one. It replaces silu, from its fifth call on, so
 * that some cases are right. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/validate/mutants_state.h"

static const char *way;
static int calls;
static void (*right)(tt_ctx *ctx, const tt_silu_args *a);

/* Needs no ending: a limit of time ends it. */
static void stay(void)
{
    for (;;) pause();
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
    ((volatile char *)y)[400000] = 1;    /* behind all canaries */
}

static void misbehave(tt_ctx *ctx, const tt_silu_args *a)
{
    if (calls++ >= 4) {
        if (!strcmp(way, "kill")) raise(SIGKILL);
        if (!strcmp(way, "abort")) abort();
        if (!strcmp(way, "exit")) exit(7);
        if (!strcmp(way, "leave")) _exit(0);
        if (!strcmp(way, "hang")) stay();
        if (!strcmp(way, "deep")) calls += deeper(1);
        if (!strcmp(way, "far")) write_far(a->x);
        if (!strcmp(way, "print")) printf("hello from silu\nagain\n");
    }
    right(ctx, a);
}

void mutant_misbehave(tt_ops *table)
{
    way = getenv("TETHER_MISBEHAVES");
    if (!way || right) return;
    if (!strcmp(way, "load")) raise(SIGKILL);
    right = table->silu;
    table->silu = misbehave;
}
