/* test_fpenv.c: the floating-point environment of a thread is seen, set and
 * set back, in the threads of operators too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>
#include <float.h>
#include <string.h>
#if defined __x86_64__ || defined __SSE__
#include <xmmintrin.h>
#endif

#include "core/parallel.h"
#include "tests/fpenv.h"
#include "tests/harness.h"

static tt_ctx *ctx;

/* Half of the smallest normal number, as this thread computes it. */
static float half_of_least(void)
{
    volatile float least = FLT_MIN, half = 0.5f;
    return least * half;
}

static void test_text(void)
{
    char what[96];
    const tt_fpenv ours = tt_fpenv_get();
    expect(!*tt_fpenv_text(what, sizeof what, ours), "ours: %s", what);
    expect(!tt_fpenv_flushes(ours), "nothing is flushed");
    fesetround(FE_UPWARD);
    const tt_fpenv up = tt_fpenv_begin();
    expect(!strcmp(tt_fpenv_text(what, sizeof what, up),
                   "the rounding mode (upward)"), "upward: %s", what);
    expect(!tt_fpenv_flushes(up), "a rounding mode flushes nothing");
    expect(fegetround() == FE_TONEAREST, "to nearest again");
    tt_fpenv_set(up);
    expect(fegetround() == FE_UPWARD, "what was set before");
    tt_fpenv_set(ours);
#if defined __x86_64__ || defined __SSE__
    _MM_SET_ROUNDING_MODE(_MM_ROUND_DOWN);   /* fegetround does not see it */
    const tt_fpenv down = tt_fpenv_begin();
    expect(!strcmp(tt_fpenv_text(what, sizeof what, down),
                   "the rounding mode (downward)"), "MXCSR alone: %s", what);
    expect(_MM_GET_ROUNDING_MODE() == _MM_ROUND_NEAREST, "to nearest again");
#endif
    if (!FLUSH) return;
    tt_fpenv_set(ours | FLUSH);
    expect(half_of_least() == 0, "flushed");
    const tt_fpenv flush = tt_fpenv_begin();
    expect(half_of_least() != 0, "kept again");
    expect(tt_fpenv_flushes(flush) && strstr(tt_fpenv_text(what, sizeof what,
           flush), "FTZ"), "flush: %s", what);
}

/* How many of this context's threads flush. */
static int64_t flushing(void)
{
    int64_t n = 0;
    int8_t each[3] = {0};
    TT_PARALLEL_FOR(ctx)
    for (int i = 0; i < 3; i++) each[i] = half_of_least() == 0;
    for (int i = 0; i < 3; i++) n += each[i];
    return n;
}

/* GNU's threads keep an environment of their own, LLVM's take the caller's. */
static void test_all(void)
{
    ctx->nthreads = 3;
    tt_fpenv_set(tt_fpenv_get() | FLUSH);
    TT_PARALLEL_FOR(ctx)
    for (int i = 0; i < 3; i++) tt_fpenv_set(tt_fpenv_get() | FLUSH);
    expect(flushing() == (FLUSH ? 3 : 0), "%d threads flush", (int)flushing());
    tt_fpenv_begin_all(3);
    expect(flushing() == 0, "none of them does");
}

int main(void)
{
    ctx = test_begin("core/fpenv");
    test_text();
    test_all();
    return test_end();
}
