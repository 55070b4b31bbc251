/* limits.c: memory that this process can still have.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three may set an end: the machine (MemAvailable and free swap), a control
 * group and those that contain it, and ulimit -v. TT_MEMORY in the environment,
 * in bytes or with K, M or G after the number, means the first two: the
 * user may know what the system cannot tell. ulimit -d is left alone, because
 * mapped weights do not count there. */
#include "os/os.h"
#include "run/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int64_t plan_anonymous(void)
{
    return os_memory_anonymous();
}

int64_t plan_mapped(void)
{
    return os_memory_held().mapped;
}

int64_t plan_stacks(int threads)
{
    struct rlimit r;
    const int64_t more = threads - os_memory_held().threads;
    const bool set = !getrlimit(RLIMIT_STACK, &r) && r.rlim_cur < 1 << 30;
    return more > 0 ? more * (set ? (int64_t)r.rlim_cur : 8 << 20) : 0;
}

static void lower(plan_limit *to, int64_t bytes, const char *who)
{
    if (bytes < 0) bytes = 0;
    if (bytes < to->bytes) *to = (plan_limit){bytes, who};
}

/* "3000000", "500M", "1.5G"; -1: not set, or no number. */
static int64_t asked_for(void)
{
    static const char units[] = "KMG";
    const char *text = getenv("TT_MEMORY");
    char *end;
    if (!text || !*text) return -1;
    double n = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*end && (!unit || end[1])) return -1;
    for (const char *u = units; unit && u <= unit; u++) n *= 1000;
    return n >= 0 && n < 9e18 ? (int64_t)n : -1;
}

tt_status plan_memory_check(tt_ctx *ctx)
{
    const char *text = getenv("TT_MEMORY");
    if (ctx->status || !text || !*text || asked_for() >= 0) return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "TT_MEMORY=%.60s is no amount of memory: "
                   "give a number of bytes, or one with K, M or G after it "
                   "like 20G, or leave it unset", text);
}

static plan_limit plan_machine(void)
{
    plan_limit least = {INT64_MAX, ""};
    const int64_t free_now = os_memory_available(NULL);
    if (free_now > 0)
        lower(&least, free_now + os_swap_free(), "the machine (MemAvailable)");
    lower(&least, os_memory_granted(""), "the memory of its control group");
    return least;
}

plan_limit plan_memory(int64_t before)
{
    plan_limit least = {INT64_MAX, ""};
    const int64_t asked = asked_for();
    if (asked >= 0) {
        lower(&least, asked - before, "TT_MEMORY");
        return least;
    }
    least = plan_machine();
    /* What was taken since is missing there, and part of what is planned. */
    const int64_t since = plan_anonymous() - before;
    if (since > 0 && least.bytes < INT64_MAX - since) least.bytes += since;
    return least;
}

plan_limit plan_addresses(int64_t before)
{
    plan_limit least = {INT64_MAX, ""};
    struct rlimit r;
    if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY)
        lower(&least, (int64_t)r.rlim_cur - before, "ulimit -v");
    return least;
}

tt_status tt_memory_left(tt_ctx *ctx, int64_t *bytes, const char **who)
{
    TT_TRY(plan_memory_check(ctx));
    const plan_limit l = plan_memory(plan_anonymous());
    *bytes = l.bytes;
    *who = l.who;
    return TT_OK;
}
